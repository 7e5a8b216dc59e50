/* trial.c - see trial.h: drawing trials and running them. Their buffers are in trial_sides.c. */
#include "trial_sides.h"

#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running -------------------------------------------------------------- */

static struct coll_shape shape_of(const struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct coll_shape s;
    memset(&s, 0, sizeof s);
    s.kind = (uint8_t)b->kind;
    s.alg = (uint8_t)t->alg;
    bool rooted = b->kind == COLL_REDUCE || b->kind == COLL_GATHER || b->kind == COLL_GATHERV ||
                  b->kind == COLL_SCATTER || b->kind == COLL_SCATTERV;
    if (t->in_place && (!rooted || r == t->root)) s.flags |= COLL_IN_PLACE;
    if (!t->loose) s.flags |= t->ordered ? COLL_ORDERED : COLL_EXACT;
    if (t->gap && b->kind == COLL_BCAST) s.flags |= COLL_STAGED;
    s.rank = r;
    s.size = t->P;
    s.root = t->root;
    s.bytes = is_v(b->kind) ? 0 : t->elems * t->esize;
    if (b->kind == COLL_GATHERV) s.bytes = b->rank[r].send.elems * t->esize;
    if (b->kind == COLL_SCATTERV) s.bytes = b->rank[r].recv.elems * t->esize;
    s.grain = coll_reduces(b->kind) ? t->esize : 1;
    s.segment = t->segment;
    s.radix = t->radix;
    s.nodes = t->nodes;
    s.domains = t->domains;
    s.flags |= (uint16_t)t->mixed;
    return s;
}

static void bind(struct bench *b, struct sim *sim, int r)
{
    struct rank_state *k = &b->rank[r];
    const struct sim_type *type = b->t->gap ? &b->type : NULL;
    if (b->kind != COLL_ALLTOALLW) {
        sim_bind(sim, r, GOAL_SEND_BUF, k->send.mem ? elem(b, &k->send, k->send.low) : NULL, type);
        sim_bind(sim, r, GOAL_RECV_BUF, k->recv.mem ? elem(b, &k->recv, k->recv.low) : NULL, type);
        return;
    }
    for (int p = 0; p < b->t->P; p++) {
        sim_bind(sim, r, (unsigned)coll_slot_w(p, false), elem(b, &k->send, k->send_off[p] / b->t->esize), type);
        sim_bind(sim, r, (unsigned)coll_slot_w(p, true), elem(b, &k->recv, k->recv_off[p] / b->t->esize), type);
    }
}

/* What went wrong, if nothing has before; false. */
static bool complain(const struct bench *b, int r, const char *what)
{
    const struct trial *t = b->t;
    if (b->words[0]) return false;
    snprintf(
        b->words, TRIAL_WORDS,
        "%s %s: %d ranks on %d nodes with %d domains, root %d, %lld elements of %lld bytes, segment %lld, radix %d%s%s%s, seed %llu: "
        "rank %d: %s",
        coll_kind_name(b->kind), coll_algs[t->alg].name, t->P, t->nodes, t->domains, t->root, (long long)t->elems,
        (long long)t->esize, (long long)t->segment, t->radix, t->in_place ? ", in place" : "",
        t->ordered ? ", ordered" : "", t->gap ? ", gaps" : "", (unsigned long long)t->seed, r, what);
    return false;
}

static bool check_side(const struct bench *b, int r, const struct side *s, const char *what)
{
    for (int64_t i = 0; i < s->elems; i++) {
        if (memcmp(elem(b, s, i), want(b, s, i), (size_t)b->type.size)) return complain(b, r, what);
        for (int64_t k = b->type.size; k < b->type.extent; k++)
            if ((unsigned char)elem(b, s, i)[k] != 0xa5) return complain(b, r, "a gap was written to");
    }
    return true;
}

static bool compile(struct bench *b, struct goal_prog *prog[])
{
    for (int r = 0; r < b->t->P; r++) {
        set_rank(b, r);
        struct rank_state *k = &b->rank[r];
        struct coll_shape s = shape_of(b, r);
        struct coll_given v = {.send_len = k->send_len,
                               .send_off = k->send_off,
                               .recv_len = k->recv_len,
                               .recv_off = k->recv_off,
                               .node = b->t->nodes > 1 ? b->t->node : NULL,
                               .domain = b->t->domains > b->t->nodes ? b->t->domain : NULL};
        if (coll_compile(&s, &v, &prog[r])) return complain(b, r, err_words());
        if (goal_verify(&prog[r]->head, prog[r]->head.bytes)) return complain(b, r, err_words());
    }
    return true;
}

static bool run(struct bench *b, struct goal_prog *prog[])
{
    const struct trial *t = b->t;
    struct sim_op op = {op_kind(t)};
    struct sim *sim = sim_open(t->P, prog, t->seed);
    bool ok = true;
    for (int r = 0; r < t->P; r++) bind(b, sim, r);
    sim_bind_op(sim, &op, t->gap ? &b->type : NULL);
    if (sim_run(sim)) ok = complain(b, 0, err_words());
    if (ok && b->kind == COLL_BARRIER && sim_was_early(sim)) ok = complain(b, 0, "a rank left before all had come");
    sim_close(sim);
    for (int r = 1; r < t->P && ok && t->loose; r++)
        if (memcmp(b->rank[r].recv.mem, b->rank[0].recv.mem, (size_t)(b->rank[0].recv.elems * b->type.extent)))
            ok = complain(b, r, "another result than rank 0");
    for (int r = 0; r < t->P && ok && !t->loose; r++)
        ok = check_side(b, r, &b->rank[r].recv, "wrong data in the receive buffer") &&
             check_side(b, r, &b->rank[r].send, "the send buffer was changed");
    return ok;
}

int64_t trial_programs;

bool trial_run(const struct trial *t, const struct trial_change *change, char words[TRIAL_WORDS])
{
    struct bench b = {
        .t = t, .kind = coll_algs[t->alg].kind, .type = {t->esize, t->gap ? 3 * t->esize : t->esize}, .words = words};
    struct goal_prog *prog[TRIAL_RANKS] = {NULL};
    words[0] = 0;
    bool ok = compile(&b, prog);
    if (ok && change) change->make(change->ctx, prog);
    if (ok) ok = run(&b, prog);
    trial_programs += t->P;
    for (int r = 0; r < t->P; r++) {
        if (prog[r]) goal_unref(prog[r]);
        close_rank(&b.rank[r]);
    }
    free(b.fold);
    return ok;
}

bool trial_compile(const struct trial *t, struct goal_prog *prog[TRIAL_RANKS])
{
    char words[TRIAL_WORDS] = "";
    struct bench b = {.t = t, .kind = coll_algs[t->alg].kind, .type = {t->esize, t->esize}, .words = words};
    bool ok = compile(&b, prog);
    for (int r = 0; r < t->P; r++) close_rank(&b.rank[r]);
    free(b.fold);
    return ok;
}

/* ---- drawing --------------------------------------------------------------- */

bool trial_has_root(enum coll_kind k)
{
    return k == COLL_BCAST || k == COLL_REDUCE || k == COLL_GATHER || k == COLL_GATHERV || k == COLL_SCATTER ||
           k == COLL_SCATTERV;
}

/* Parts of the ranks, of any sizes, each inside one of those of `in` (NULL: all ranks), numbered by their first ranks, in
 * blocks or in any order. Returns how many; *mixed: they are not in order. */
static int draw_parts(int P, const int32_t *in, uint64_t *state, int32_t part[], bool *mixed)
{
    int most = 1 + (int)(sim_random(state) % (uint64_t)P), of[TRIAL_RANKS], parts = 0;
    bool blocks = sim_random(state) & 1;
    for (int r = 0, at = 0; r < P; r++) {
        if (blocks) at += r && sim_random(state) % (uint64_t)P < (uint64_t)most;
        else at = (int)(sim_random(state) % (uint64_t)most);
        of[r] = at;
        int same = 0; /* the first rank of the same part */
        while (of[same] != at || (in && in[same] != in[r])) same++;
        part[r] = same < r ? part[same] : parts++;
        *mixed |= r && part[r] < part[r - 1];
    }
    return parts;
}

static void draw_places(struct trial *t, uint64_t *state)
{
    bool mixed = false, shuffled = false;
    t->nodes = draw_parts(t->P, NULL, state, t->node, &mixed);
    t->domains = draw_parts(t->P, t->node, state, t->domain, &shuffled);
    t->mixed = (mixed ? COLL_MIXED : 0) | (shuffled ? COLL_SHUFFLED : 0);
    if (sim_random(state) % 4) return;
    t->nodes = 1; /* a single node with domains */
    memset(t->node, 0, sizeof t->node);
    t->mixed &= COLL_SHUFFLED;
}

bool trial_fits(const struct trial *t)
{
    struct coll_shape s = {.kind = (uint8_t)coll_algs[t->alg].kind, .size = t->P, .nodes = t->nodes, .domains = t->domains};
    s.flags = (uint16_t)((t->ordered ? COLL_ORDERED : COLL_EXACT) | t->mixed);
    return coll_alg_fits(t->alg, &s);
}

bool trial_draw(struct trial *t, int alg, int P, int root, unsigned options, uint64_t state)
{
    static const int64_t few[] = {1, 2, 5};
    enum coll_kind kind = coll_algs[alg].kind;
    bool vector =
        kind <= COLL_ALLREDUCE || kind == COLL_SCAN || kind == COLL_EXSCAN; /* and not a block for each rank */
    const int64_t sizes[3] = {0, 1, vector ? 61 : 9};
    *t = (struct trial){.alg = alg, .P = P, .root = root, .in_place = options & TRIAL_IN_PLACE};
    t->ordered = options & TRIAL_ORDERED;
    t->seed = sim_random(&state);
    t->gap = sim_random(&state) % 4 == 0;
    t->elems = sizes[options / TRIAL_SIZE % 3];
    if (t->elems == 1) t->elems = few[sim_random(&state) % 3];
    t->esize = t->ordered ? 16 : coll_reduces(kind) ? 8 : 1 + (int64_t)(t->seed % 9);
    t->segment = (sim_random(&state) & 1 ? 3 : 7) * t->esize;
    t->radix = 2 + (int)(sim_random(&state) % 5);
    draw_places(t, &state);
    if (coll_has_neighbors(kind) || (coll_algs[alg].flags & ALG_INTER)) return false; /* other tests' */
    if (t->in_place && (kind == COLL_BCAST || kind == COLL_BARRIER)) return false;
    if (t->ordered && !coll_reduces(kind)) return false;
    return trial_fits(t);
}
