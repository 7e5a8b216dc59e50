/*
 * inter_sim_test.c - every algorithm between two groups, in the simulator: groups of 1..8 and 1..8 ranks, all roots in
 * either group, amounts that differ in the two directions, nothing at all, gaps in the buffers, operators that do
 * not commute; results against a direct evaluation of what the standard says (MPI-5.0 6.2.3).
 *
 * TERN_SIM_GROUP sets the largest group, TERN_SIM_REPEAT how many seeds each case runs with.
 */
#include "coll/alg/alg.h"
#include "side.h"

#include "base/err.h"
#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GROUP_MAX = 16 };

static uint64_t seed;
static int max_group = 8, repeat = 1;

struct trial {
    int alg, n[2];     /* ranks of the groups */
    int root_group, root;
    int64_t elems[2];  /* of the buffer, or of a block that leaves this group; scale of the lengths of v-collectives */
    int64_t esize;
    bool ordered, gap;
    uint64_t seed;
};

struct member {
    int group, rank, place; /* place: among the ranks of both groups */
    struct side send, recv;
    int64_t out[GROUP_MAX], out_at[GROUP_MAX], in[GROUP_MAX], in_at[GROUP_MAX]; /* blocks, elements */
    int64_t bytes[4][GROUP_MAX];                                                /* the same in bytes */
};

struct bench {
    const struct trial *t;
    enum coll_kind kind;
    struct sim_type type;
    int ranks;
    struct member m[2 * GROUP_MAX];
};

static bool has_root(enum coll_kind k) { return k == COLL_BCAST || k == COLL_REDUCE || (k >= COLL_GATHER && k <= COLL_SCATTERV); }
static bool is_member(const struct bench *b, const struct member *m) { return m->group != b->t->root_group; }
static bool is_root(const struct bench *b, const struct member *m) { return !is_member(b, m) && m->rank == b->t->root; }

/* ---- contents ------------------------------------------------------------- */

/* Element i of what the rank at place `from` has for the one at place `to`. */
static void value(const struct trial *t, int from, int to, int64_t i, char *out)
{
    side_value(t->seed ^ ((uint64_t)from << 40) ^ ((uint64_t)to << 32) ^ (uint64_t)i, t->esize, out);
}

static enum sim_op_kind op_kind(const struct trial *t) { return t->ordered ? SIM_MATRIX : SIM_SUM; }

/* Element i of the inputs of a group, combined in the order of its ranks. */
static void fold(const struct trial *t, int group, int64_t i, char *out)
{
    char x[16];
    int first = group ? t->n[0] : 0;
    value(t, first, 0, i, out);
    for (int r = 1; r < t->n[group]; r++) {
        value(t, first + r, 0, i, x);
        sim_op_apply(op_kind(t), out, x, out);
    }
}

/* Elements in a block of the v-collectives: a quarter of them is empty. */
static int64_t random_length(const struct trial *t, int group, int from, int to)
{
    uint64_t state = t->seed + (uint64_t)from * 64 + (uint64_t)to, x = sim_random(&state);
    return x % 4 == 0 ? 0 : (int64_t)(x >> 8) % (t->elems[group] + 1);
}

/* Elements from the rank at place `from` in `group` to the one at place `to` in the other one. */
static int64_t length(const struct bench *b, int group, int from, int to)
{
    const struct trial *t = b->t;
    switch (b->kind) {
    case COLL_GATHERV: case COLL_ALLGATHERV: return random_length(t, group, from, 0);
    case COLL_SCATTERV: return random_length(t, group, 0, to);
    case COLL_ALLTOALLV: case COLL_ALLTOALLW: return random_length(t, group, from, to);
    default: return t->elems[group];
    }
}

/* Has every receiver a block of its own? Else all get the same. */
static bool for_each(enum coll_kind k)
{
    return k == COLL_SCATTER || k == COLL_SCATTERV || (k >= COLL_ALLTOALL && k <= COLL_ALLTOALLW);
}

/* ---- buffers -------------------------------------------------------------- */

static void give(const struct bench *b, struct side *s, int64_t i, int from, int to, int64_t index)
{
    value(b->t, from, to, index, side_elem(s, i));
    value(b->t, from, to, index, side_want(s, i));
}

static int place_of(const struct trial *t, int group, int r) { return group ? t->n[0] + r : r; }

/* A buffer with a block for each of n ranks; those of the v-collectives in reverse order, with holes. */
static void blocks_open(struct bench *b, struct side *s, int n, const int64_t *len, int64_t *at)
{
    bool v = coll_has_blocks(b->kind);
    int64_t end = 0, low = v && b->kind != COLL_ALLTOALLW ? 2 : 0;
    for (int k = 0; k < n; k++) {
        int i = v ? n - 1 - k : k;
        at[i] = end - low;
        end += len[i] + v;
    }
    side_open(&b->type, s, end, low);
}

/* What leaves this rank, for one receiver or for each. */
static void set_out(struct bench *b, struct member *m)
{
    const struct trial *t = b->t;
    int other = !m->group, n = for_each(b->kind) ? t->n[other] : 1;
    for (int i = 0; i < n; i++) m->out[i] = length(b, m->group, m->place, place_of(t, other, i));
    if (for_each(b->kind)) blocks_open(b, &m->send, n, m->out, m->out_at);
    else side_open(&b->type, &m->send, m->out[0], 0);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < m->out[i]; k++)
            give(b, &m->send, m->send.low + m->out_at[i] + k, m->place, for_each(b->kind) ? place_of(t, other, i) : 0, k);
}

/* What comes from one rank of the other group, or (first < 0) from all. */
static void set_in(struct bench *b, struct member *m, int first)
{
    const struct trial *t = b->t;
    int other = !m->group, n = first < 0 ? t->n[other] : 1;
    for (int i = 0; i < n; i++) m->in[i] = length(b, other, place_of(t, other, first < 0 ? i : first), m->place);
    if (first < 0) blocks_open(b, &m->recv, n, m->in, m->in_at);
    else side_open(&b->type, &m->recv, m->in[0], 0);
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < m->in[i]; k++)
            value(t, place_of(t, other, first < 0 ? i : first), for_each(b->kind) ? m->place : 0, k,
                  side_want(&m->recv, m->recv.low + m->in_at[i] + k));
}

static void set_bcast(struct bench *b, struct member *m)
{
    const struct trial *t = b->t;
    int64_t n = t->elems[0];
    if (!is_root(b, m) && !is_member(b, m)) return;
    side_open(&b->type, &m->recv, n, 0);
    for (int64_t i = 0; i < n; i++)
        value(t, place_of(t, t->root_group, t->root), 0, i, side_want(&m->recv, i));
    for (int64_t i = 0; i < n && is_root(b, m); i++) value(t, m->place, 0, i, side_elem(&m->recv, i));
}

/* Elements that this rank of a group gets of a reduce_scatter, and how many are before it. */
static int64_t share(const struct bench *b, int group, int rank, int64_t *before)
{
    const struct trial *t = b->t;
    int64_t all = t->elems[0] * t->n[0] * t->n[1], at = 0, n = 0;
    for (int r = 0; r <= rank; r++) {
        at += n;
        n = all / t->n[group];
        if (b->kind == COLL_REDUCE_SCATTER) { /* unequal, as long as there is something left */
            n = random_length(t, 0, place_of(t, group, r), 0) * t->n[!group];
            if (n > all - at || r == t->n[group] - 1) n = all - at;
        }
    }
    *before = at;
    return n;
}

static void set_reduction(struct bench *b, struct member *m)
{
    const struct trial *t = b->t;
    int64_t n = t->elems[0], all = n, at = 0;
    bool scatter = b->kind >= COLL_REDUCE_SCATTER;
    if (scatter) {
        all = n * t->n[0] * t->n[1];
        for (int r = 0; r < t->n[m->group]; r++) m->out[r] = share(b, m->group, r, &m->out_at[r]);
        n = m->out[m->rank], at = m->out_at[m->rank];
    }
    bool gives = b->kind != COLL_REDUCE || is_member(b, m), gets = b->kind != COLL_REDUCE || is_root(b, m);
    if (gives) side_open(&b->type, &m->send, all, 0);
    for (int64_t i = 0; i < all && gives; i++) give(b, &m->send, i, m->place, 0, i);
    if (gets) side_open(&b->type, &m->recv, n, 0);
    for (int64_t i = 0; i < n && gets; i++) fold(t, !m->group, at + i, side_want(&m->recv, i));
}

static void set_member(struct bench *b, struct member *m)
{
    const struct trial *t = b->t;
    switch (b->kind) {
    case COLL_BARRIER: return;
    case COLL_BCAST: set_bcast(b, m); return;
    case COLL_GATHER: case COLL_GATHERV:
        if (is_member(b, m)) set_out(b, m);
        else if (is_root(b, m)) set_in(b, m, -1);
        return;
    case COLL_SCATTER: case COLL_SCATTERV:
        if (is_root(b, m)) set_out(b, m);
        else if (is_member(b, m)) set_in(b, m, t->root);
        return;
    default: break;
    }
    if (coll_reduces(b->kind)) {
        set_reduction(b, m);
        return;
    }
    set_out(b, m);
    set_in(b, m, -1);
}

/* ---- running -------------------------------------------------------------- */

static struct coll_shape shape_of(const struct bench *b, const struct member *m)
{
    const struct trial *t = b->t;
    bool idle = has_root(b->kind) && !is_member(b, m) && !is_root(b, m), scatters = b->kind == COLL_SCATTER || b->kind == COLL_SCATTERV;
    struct coll_shape s = {.kind = (uint8_t)b->kind, .alg = (uint8_t)t->alg, .nodes = 1, .radix = 4};
    s.flags = t->ordered ? COLL_ORDERED : 0;
    if (t->gap && b->kind == COLL_BCAST) s.flags |= COLL_STAGED;
    s.rank = m->rank;
    s.size = t->n[m->group];
    s.remote = t->n[!m->group];
    s.root = !has_root(b->kind) ? 0 : is_root(b, m) ? MPI_ROOT : is_member(b, m) ? t->root : MPI_PROC_NULL;
    s.grain = coll_reduces(b->kind) ? t->esize : 1;
    s.segment = 7 * t->esize;
    s.bytes = t->elems[0];
    if (b->kind == COLL_GATHER) s.bytes = t->elems[!t->root_group];
    if (b->kind == COLL_SCATTER) s.bytes = t->elems[t->root_group];
    if (b->kind >= COLL_ALLGATHER && b->kind <= COLL_ALLTOALLW) s.bytes = m->out[0];
    if (b->kind == COLL_ALLGATHER || b->kind == COLL_ALLTOALL) s.from = m->in[0] * t->esize;
    if (coll_has_blocks(b->kind) && b->kind != COLL_ALLGATHERV) s.bytes = is_member(b, m) ? (scatters ? m->in[0] : m->out[0]) : 0;
    if (b->kind >= COLL_ALLTOALLV && b->kind <= COLL_ALLTOALLW) s.bytes = 0;
    if (b->kind == COLL_REDUCE_SCATTER) s.bytes = 0;
    if (b->kind == COLL_REDUCE_SCATTER_BLOCK) s.bytes = m->out[0];
    s.bytes = idle ? 0 : s.bytes * t->esize;
    return s;
}

/* The blocks of the v-collectives, in bytes. */
static struct coll_given given_of(const struct bench *b, struct member *m)
{
    struct coll_given v = {.node = NULL};
    const int64_t *from[4] = {m->out, m->out_at, m->in, m->in_at};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < GROUP_MAX; i++) m->bytes[k][i] = from[k][i] * b->t->esize;
    if (!coll_has_blocks(b->kind)) return v;
    bool rooted = has_root(b->kind);
    if (for_each(b->kind) ? !rooted || is_root(b, m) : b->kind == COLL_REDUCE_SCATTER)
        v.send_len = m->bytes[0], v.send_off = m->bytes[1];
    if (b->kind == COLL_GATHERV ? is_root(b, m) : b->kind != COLL_REDUCE_SCATTER && !rooted)
        v.recv_len = m->bytes[2], v.recv_off = m->bytes[3];
    return v;
}

static void bind(struct bench *b, struct sim *sim, struct member *m)
{
    const struct sim_type *type = b->t->gap ? &b->type : NULL;
    if (b->kind != COLL_ALLTOALLW) {
        sim_bind(sim, m->place, GOAL_SEND_BUF, m->send.mem ? side_elem(&m->send, m->send.low) : NULL, type);
        sim_bind(sim, m->place, GOAL_RECV_BUF, m->recv.mem ? side_elem(&m->recv, m->recv.low) : NULL, type);
        return;
    }
    for (int p = 0; p < b->t->n[!m->group]; p++) {
        sim_bind(sim, m->place, (unsigned)coll_slot_w(p, false), side_elem(&m->send, m->out_at[p]), type);
        sim_bind(sim, m->place, (unsigned)coll_slot_w(p, true), side_elem(&m->recv, m->in_at[p]), type);
    }
}

static void complain(const struct bench *b, const struct member *m, const char *what, const struct goal_prog *prog)
{
    const struct trial *t = b->t;
    char *text = goal_print(&prog->head);
    print_error("%s %s: %d and %d ranks, root %d in group %d, %lld and %lld elements of %lld bytes%s%s, seed %llu: rank %d of group %d: %s\n%s",
                coll_kind_name(b->kind), coll_algs[t->alg].name, t->n[0], t->n[1], t->root, t->root_group,
                (long long)t->elems[0], (long long)t->elems[1], (long long)t->esize, t->ordered ? ", ordered" : "",
                t->gap ? ", gaps" : "", (unsigned long long)t->seed, m->rank, m->group, what, text ? text : "");
    free(text);
    fail();
}

static void check_side(const struct bench *b, const struct member *m, const struct side *s, const char *what, const struct goal_prog *p)
{
    const char *wrong = side_wrong(s, what);
    if (wrong) complain(b, m, wrong, p);
}

static void close_member(struct member *m)
{
    side_close(&m->send);
    side_close(&m->recv);
}

static void compile(struct bench *b, struct goal_prog **prog)
{
    for (int i = 0; i < b->ranks; i++) {
        struct member *m = &b->m[i];
        m->group = i >= b->t->n[0];
        m->rank = m->group ? i - b->t->n[0] : i;
        m->place = i;
        set_member(b, m);
        struct coll_shape s = shape_of(b, m);
        struct coll_given v = given_of(b, m);
        assert_true(coll_alg_fits(b->t->alg, &s));
        assert_int_equal(coll_compile(&s, &v, &prog[i]), 0);
        if (goal_verify(&prog[i]->head, prog[i]->head.bytes)) complain(b, m, err_words(), prog[i]);
    }
}

static void run_trial(const struct trial *t)
{
    struct bench b = {.t = t, .kind = coll_algs[t->alg].kind, .type = {t->esize, t->gap ? 3 * t->esize : t->esize}};
    struct goal_prog *prog[2 * GROUP_MAX];
    struct sim_op op = {op_kind(t)};
    b.ranks = t->n[0] + t->n[1];
    compile(&b, prog);
    struct sim *sim = sim_open(b.ranks, prog, t->seed);
    sim_two_groups(sim, t->n[0]);
    for (int i = 0; i < b.ranks; i++) bind(&b, sim, &b.m[i]);
    sim_bind_op(sim, &op, t->gap ? &b.type : NULL);
    if (sim_run(sim)) complain(&b, &b.m[0], err_words(), prog[0]);
    if (b.kind == COLL_BARRIER && sim_was_early(sim)) complain(&b, &b.m[0], "a rank left before all of the other group had come", prog[0]);
    for (int i = 0; i < b.ranks; i++) {
        check_side(&b, &b.m[i], &b.m[i].recv, "wrong data in the receive buffer", prog[i]);
        check_side(&b, &b.m[i], &b.m[i].send, "the send buffer was changed", prog[i]);
    }
    sim_close(sim);
    for (int i = 0; i < b.ranks; i++) {
        goal_unref(prog[i]);
        close_member(&b.m[i]);
    }
}

/* Options: bit 0 the operator's order matters, 1 gaps. */
static void run_option(int alg, int n0, int n1, int root, unsigned option, int round)
{
    static const int64_t sizes[] = {0, 1, 5, 40};
    enum coll_kind kind = coll_algs[alg].kind;
    bool reduces = coll_reduces(kind);
    uint64_t state = seed + (uint64_t)(((alg * 31 + n0) * 31 + n1) * 31 + root) * 8 + option + (uint64_t)round * 977;
    struct trial t = {.alg = alg, .n = {n0, n1}, .ordered = option & 1, .gap = option & 2, .seed = sim_random(&state)};
    t.root_group = root >= n0;
    t.root = t.root_group ? root - n0 : root;
    t.elems[0] = sizes[(t.seed >> 8) % 4];
    t.elems[1] = sizes[(t.seed >> 16) % 4];
    t.esize = t.ordered ? 16 : reduces ? 8 : 1 + (int64_t)(t.seed % 9);
    if (t.ordered && !reduces) return;
    run_trial(&t);
}

static void run_alg(void **state)
{
    int alg = (int)(intptr_t)*state, roots = has_root(coll_algs[alg].kind);
    for (int n0 = 1; n0 <= max_group; n0++)
        for (int n1 = 1; n1 <= max_group; n1++)
            for (int root = 0; root < (roots ? n0 + n1 : 1); root++)
                for (unsigned option = 0; option < 4; option++)
                    for (int n = 0; n < repeat; n++) run_option(alg, n0, n1, root, option, n);
}

int main(void)
{
    static struct CMUnitTest test[64];
    static char name[64][64];
    size_t n = 0;
    if (getenv("TERN_SIM_GROUP")) max_group = atoi(getenv("TERN_SIM_GROUP"));
    if (getenv("TERN_SIM_REPEAT")) repeat = atoi(getenv("TERN_SIM_REPEAT"));
    if (max_group < 1 || max_group > GROUP_MAX) max_group = GROUP_MAX;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    for (int i = 0; i < coll_algs_count; i++) {
        if (!(coll_algs[i].flags & ALG_INTER)) continue;
        assert_true(n < ARRAY_LEN(test));
        snprintf(name[n], sizeof name[n], "%s %s", coll_kind_name(coll_algs[i].kind), coll_algs[i].name);
        test[n] = (struct CMUnitTest){.name = name[n], .test_func = run_alg, .initial_state = (void *)(intptr_t)i};
        n++;
    }
    return _cmocka_run_group_tests("collectives between two groups in the simulator", test, n, NULL, NULL);
}
