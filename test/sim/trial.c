/* trial.c - see trial.h. */
#include "trial.h"

#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rank's buffers. */
struct side {
    int64_t elems; /* its packed size */
    int64_t low;   /* elements that lie before the address given to the collective */
    char *mem;     /* elems * extent */
    char *packed;  /* what it shall hold at the end, packed */
};

struct rank_state {
    struct side send, recv;
    int64_t *send_len, *send_off, *recv_len, *recv_off; /* packed bytes, relative to the address given */
};

struct bench { /* all of one trial */
    const struct trial *t;
    enum coll_kind kind;
    struct sim_type type;
    char *words;
    char *fold; /* see there */
    struct rank_state rank[TRIAL_RANKS];
};

static bool is_v(enum coll_kind k)
{
    return k == COLL_GATHERV || k == COLL_SCATTERV || k == COLL_ALLGATHERV || k == COLL_ALLTOALLV ||
           k == COLL_ALLTOALLW || k == COLL_REDUCE_SCATTER;
}

static void *memory(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    if (!p) abort();
    return p;
}

/* ---- contents ------------------------------------------------------------- */

/* Element i of what rank r contributes. */
static void value(const struct trial *t, int r, int64_t i, char *out)
{
    uint64_t state = t->seed ^ ((uint64_t)r << 40) ^ (uint64_t)i;
    for (int64_t k = 0; k < t->esize; k += 8) {
        uint64_t x = sim_random(&state);
        memcpy(out + k, &x, (size_t)(t->esize - k < 8 ? t->esize - k : 8));
    }
}

/* Elements in the block from rank `from` to rank `to` of the v-collectives: some are empty. */
static int64_t length_v(const struct trial *t, int from, int to)
{
    uint64_t state = t->seed + (uint64_t)from * 64 + (uint64_t)to;
    uint64_t x = sim_random(&state);
    return x % 4 == 0 ? 0 : (int64_t)(x >> 8) % (t->elems + 1);
}

static enum sim_op_kind op_kind(const struct trial *t) { return t->ordered ? SIM_MATRIX : SIM_SUM; }

/* x[0] op ... op x[r], element i: worked out once a trial for all r. */
static const char *fold(struct bench *b, int r, int64_t i, int64_t elems)
{
    const struct trial *t = b->t;
    int64_t row = elems * t->esize;
    if (!b->fold) {
        b->fold = memory((size_t)(t->P * row));
        for (int64_t k = 0; k < elems; k++)
            for (int q = 0; q < t->P; q++) {
                char *out = b->fold + q * row + k * t->esize;
                value(t, q, k, out);
                if (q) sim_op_apply(op_kind(t), out - row, out, out);
            }
    }
    return b->fold + r * row + i * t->esize;
}

/* ---- buffers -------------------------------------------------------------- */

static void side_open(struct bench *b, struct side *s, int64_t elems, int64_t low)
{
    s->elems = elems;
    s->low = low;
    s->mem = memory((size_t)(elems * b->type.extent));
    s->packed = memory((size_t)(elems * b->type.size));
    memset(s->mem, 0xa5, (size_t)(elems * b->type.extent));
    memset(s->packed, 0xa5, (size_t)(elems * b->type.size));
}

static char *elem(const struct bench *b, const struct side *s, int64_t i) { return s->mem + i * b->type.extent; }
static char *want(const struct bench *b, const struct side *s, int64_t i) { return s->packed + i * b->type.size; }

/* Input: the element is in memory and, unless something replaces it, shall be there at the end. */
static void give(const struct bench *b, struct side *s, int64_t i, int r, int64_t index)
{
    value(b->t, r, index, elem(b, s, i));
    value(b->t, r, index, want(b, s, i));
}

static void expect(const struct bench *b, struct side *s, int64_t i, int r, int64_t index)
{
    value(b->t, r, index, want(b, s, i));
}

/* The combination of ranks 0 to `last`, element `index` of `elems`. */
static void expect_fold(struct bench *b, struct side *s, int64_t i, int last, int64_t index, int64_t elems)
{
    memcpy(want(b, s, i), fold(b, last, index, elems), (size_t)b->t->esize);
}

/* Index of the i-th element of the block from one rank to another: what `value` is asked for. */
static int64_t index_of(int to, int64_t i) { return (int64_t)to * 1000 + i; }

/* A table of lengths and places with a hole between blocks, the last block first; returns elements in all. */
static int64_t lay_out(const struct bench *b, const struct trial *t, int me, bool sends, int64_t low, int64_t **len_p,
                       int64_t **off_p)
{
    int64_t *len = memory((size_t)t->P * sizeof *len), *off = memory((size_t)t->P * sizeof *off), at = 0;
    for (int i = t->P - 1; i >= 0; i--) {
        int from = sends ? me : i, to = sends ? i : me;
        if (b->kind == COLL_GATHERV || b->kind == COLL_ALLGATHERV) to = 0; /* one length a sender */
        if (b->kind == COLL_SCATTERV) from = 0;
        if (b->t->in_place && (b->kind == COLL_ALLTOALLV || b->kind == COLL_ALLTOALLW) && from > to) {
            int x = from; /* in place, both directions of a pair have the same length */
            from = to;
            to = x;
        }
        len[i] = length_v(t, from, to) * t->esize;
        off[i] = (at - low) * t->esize;
        at += len[i] / t->esize + 1;
    }
    *len_p = len;
    *off_p = off;
    return at;
}

/* ---- what each operation is given and shall give -------------------------- */

static void set_rooted(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool root = r == t->root, in_place = t->in_place && root;
    int64_t n = t->elems;
    if (b->kind == COLL_BCAST) {
        side_open(b, &k->recv, n, 0);
        for (int64_t i = 0; i < n; i++) {
            if (root) give(b, &k->recv, i, r, i);
            expect(b, &k->recv, i, t->root, i);
        }
        return;
    }
    if (b->kind == COLL_REDUCE) {
        side_open(b, &k->recv, root ? n : 0, 0);
        side_open(b, &k->send, n, 0);
        for (int64_t i = 0; i < n; i++) give(b, in_place ? &k->recv : &k->send, i, r, i);
        for (int64_t i = 0; i < n && root; i++) expect_fold(b, &k->recv, i, t->P - 1, i, n);
        return;
    }
    struct side *mine = b->kind == COLL_GATHER ? &k->send : &k->recv,
                *all = b->kind == COLL_GATHER ? &k->recv : &k->send;
    side_open(b, mine, n, 0);
    side_open(b, all, root ? n * t->P : 0, 0);
    for (int64_t i = 0; i < n; i++) {
        if (b->kind == COLL_GATHER) {
            if (in_place)
                give(b, all, r * n + i, r, i);
            else
                give(b, mine, i, r, i);
        } else if (!in_place) {
            expect(b, mine, i, t->root, index_of(r, i));
        }
    }
    for (int64_t i = 0; i < n * t->P && root; i++) {
        if (b->kind == COLL_GATHER)
            expect(b, all, i, (int)(i / n), i % n);
        else
            give(b, all, i, r, index_of((int)(i / n), i % n));
    }
}

static void set_rooted_v(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool root = r == t->root, in_place = t->in_place && root, gather = b->kind == COLL_GATHERV;
    int64_t n = gather ? length_v(t, r, 0) : length_v(t, 0, r), low = root ? 3 : 0;
    struct side *mine = gather ? &k->send : &k->recv, *all = gather ? &k->recv : &k->send;
    side_open(b, mine, n, 0);
    for (int64_t i = 0; i < n; i++) {
        if (gather)
            give(b, mine, i, r, i);
        else if (!in_place)
            expect(b, mine, i, t->root, index_of(r, i));
    }
    if (!root) {
        side_open(b, all, 0, 0);
        return;
    }
    int64_t **len = gather ? &k->recv_len : &k->send_len, **off = gather ? &k->recv_off : &k->send_off;
    int64_t total = lay_out(b, t, r, !gather, low, len, off);
    side_open(b, all, total, low);
    for (int p = 0; p < t->P; p++)
        for (int64_t i = 0; i < (*len)[p] / t->esize; i++) {
            int64_t at = (*off)[p] / t->esize + low + i;
            if (!gather)
                give(b, all, at, r, index_of(p, i));
            else if (in_place && p == r)
                give(b, all, at, r, i);
            else
                expect(b, all, at, p, i);
        }
}

/* Allgather and alltoall, regular and v: the receive buffer has a block from everyone. */
static void set_all(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool gather = b->kind == COLL_ALLGATHER || b->kind == COLL_ALLGATHERV, v = is_v(b->kind), in_place = t->in_place;
    int64_t n = t->elems, low = v && b->kind != COLL_ALLTOALLW ? 2 : 0;
    if (v)
        side_open(b, &k->recv, lay_out(b, t, r, false, low, &k->recv_len, &k->recv_off), low);
    else
        side_open(b, &k->recv, n * t->P, 0);
    if (gather)
        side_open(b, &k->send, v ? length_v(t, r, 0) : n, 0);
    else if (v)
        side_open(b, &k->send, lay_out(b, t, r, true, low, &k->send_len, &k->send_off), low);
    else
        side_open(b, &k->send, n * t->P, 0);
    for (int p = 0; p < t->P; p++) {
        int64_t len = v ? k->recv_len[p] / t->esize : n, at = v ? k->recv_off[p] / t->esize + low : p * n;
        for (int64_t i = 0; i < len; i++) {
            if (gather && in_place && p == r)
                give(b, &k->recv, at + i, r, i);
            else if (!gather && in_place)
                give(b, &k->recv, at + i, r, index_of(p, i));
            expect(b, &k->recv, at + i, p, gather ? i : index_of(r, i));
        }
        if (gather) continue;
        len = v ? k->send_len[p] / t->esize : n, at = v ? k->send_off[p] / t->esize + low : p * n;
        for (int64_t i = 0; i < len; i++) give(b, &k->send, at + i, r, index_of(p, i));
    }
    for (int64_t i = 0; gather && i < k->send.elems; i++) give(b, &k->send, i, r, i);
}

static void set_reduction(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    int64_t n = t->elems, mine = n, first = 0, total = n;
    bool blocks = b->kind == COLL_REDUCE_SCATTER || b->kind == COLL_REDUCE_SCATTER_BLOCK;
    if (blocks) {
        k->send_len = memory((size_t)t->P * sizeof *k->send_len);
        k->send_off = memory((size_t)t->P * sizeof *k->send_off);
        total = 0;
        for (int p = 0; p < t->P; p++) {
            int64_t len = b->kind == COLL_REDUCE_SCATTER ? length_v(t, 0, p) : n;
            k->send_len[p] = len * t->esize;
            k->send_off[p] = total * t->esize;
            if (p == r) mine = len, first = total;
            total += len;
        }
    }
    side_open(b, &k->send, total, 0);
    side_open(b, &k->recv, t->in_place ? total : mine, 0);
    for (int64_t i = 0; i < total; i++) give(b, t->in_place ? &k->recv : &k->send, i, r, i);
    for (int64_t i = 0; i < mine; i++) {
        if (b->kind == COLL_SCAN)
            expect_fold(b, &k->recv, i, r, i, total);
        else if (b->kind != COLL_EXSCAN)
            expect_fold(b, &k->recv, i, t->P - 1, first + i, total);
        else if (r > 0)
            expect_fold(b, &k->recv, i, r - 1, i, total);
    }
}

static void set_rank(struct bench *b, int r)
{
    switch (b->kind) {
    case COLL_BARRIER:
        break;
    case COLL_BCAST:
    case COLL_REDUCE:
    case COLL_GATHER:
    case COLL_SCATTER:
        set_rooted(b, r);
        break;
    case COLL_GATHERV:
    case COLL_SCATTERV:
        set_rooted_v(b, r);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
        set_all(b, r);
        break;
    default:
        set_reduction(b, r);
    }
}

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

static void close_rank(struct rank_state *k)
{
    free(k->send.mem);
    free(k->send.packed);
    free(k->recv.mem);
    free(k->recv.packed);
    free(k->send_len);
    free(k->send_off);
    free(k->recv_len);
    free(k->recv_off);
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
