/*
 * coll_sim_test.c - every algorithm of every collective for 1..33 ranks, all roots, in place and
 * not, with and without gaps in the buffers, with operators that do not commute, in the simulator;
 * results against a direct evaluation of what the standard says (GOAL-1, 26, 27, 28).
 *
 * TERN_SIM_RANKS sets the largest number of ranks, TERN_SIM_REPEAT how many seeds each case runs with.
 */
#include "coll/select.h"
#include "sim.h"

#include "base/err.h"
#include "base/var.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;
static int max_ranks = 33, repeat = 1;

struct trial {
    int alg, P, root;
    int64_t elems;     /* of the buffer or of a block; in v-collectives, scale of the lengths */
    int64_t esize;     /* bytes of an element */
    bool in_place, ordered, gap;
    int64_t segment;
    int radix, nodes;
    bool mixed; /* COLL_MIXED */
    int32_t node[64];
    uint64_t seed;
};

/* One rank's buffers. */
struct side {
    int64_t elems;     /* its packed size */
    int64_t low;       /* elements that lie before the address given to the collective */
    char *mem;         /* elems * extent */
    char *packed;      /* what it shall hold at the end, packed */
};

struct rank_state {
    struct side send, recv;
    int64_t *send_len, *send_off, *recv_len, *recv_off; /* packed bytes, relative to the address given */
};

struct bench { /* all of one trial */
    const struct trial *t;
    enum coll_kind kind;
    struct sim_type type;
    struct rank_state rank[64];
};

static bool is_v(enum coll_kind k)
{
    return k == COLL_GATHERV || k == COLL_SCATTERV || k == COLL_ALLGATHERV || k == COLL_ALLTOALLV ||
           k == COLL_ALLTOALLW || k == COLL_REDUCE_SCATTER;
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

/* out = x[first] op ... op x[last], element i. */
static void fold(const struct trial *t, int first, int last, int64_t i, char *out)
{
    char x[16];
    value(t, first, i, out);
    for (int r = first + 1; r <= last; r++) {
        value(t, r, i, x);
        sim_op_apply(op_kind(t), out, x, out);
    }
}

/* ---- buffers -------------------------------------------------------------- */

static void side_open(struct bench *b, struct side *s, int64_t elems, int64_t low)
{
    s->elems = elems;
    s->low = low;
    s->mem = malloc((size_t)(elems * b->type.extent) + 1);
    s->packed = malloc((size_t)(elems * b->type.size) + 1);
    assert_non_null(s->mem);
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

static void expect_fold(const struct bench *b, struct side *s, int64_t i, int first, int last, int64_t index)
{
    fold(b->t, first, last, index, want(b, s, i));
}

/* Index of the i-th element of the block from one rank to another: what `value` is asked for. */
static int64_t index_of(int to, int64_t i) { return (int64_t)to * 1000 + i; }

/* A table of lengths and places with a hole between blocks, the last block first; returns elements in all. */
static int64_t lay_out(const struct bench *b, const struct trial *t, int me, bool sends, int64_t low, int64_t **len_p,
                       int64_t **off_p)
{
    int64_t *len = calloc((size_t)t->P, sizeof *len), *off = calloc((size_t)t->P, sizeof *off), at = 0;
    assert_true(len && off);
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
        for (int64_t i = 0; i < n && root; i++) expect_fold(b, &k->recv, i, 0, t->P - 1, i);
        return;
    }
    struct side *mine = b->kind == COLL_GATHER ? &k->send : &k->recv, *all = b->kind == COLL_GATHER ? &k->recv : &k->send;
    side_open(b, mine, n, 0);
    side_open(b, all, root ? n * t->P : 0, 0);
    for (int64_t i = 0; i < n; i++) {
        if (b->kind == COLL_GATHER) {
            if (in_place) give(b, all, r * n + i, r, i);
            else give(b, mine, i, r, i);
        } else if (!in_place) {
            expect(b, mine, i, t->root, index_of(r, i));
        }
    }
    for (int64_t i = 0; i < n * t->P && root; i++) {
        if (b->kind == COLL_GATHER) expect(b, all, i, (int)(i / n), i % n);
        else give(b, all, i, r, index_of((int)(i / n), i % n));
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
        if (gather) give(b, mine, i, r, i);
        else if (!in_place) expect(b, mine, i, t->root, index_of(r, i));
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
            if (!gather) give(b, all, at, r, index_of(p, i));
            else if (in_place && p == r) give(b, all, at, r, i);
            else expect(b, all, at, p, i);
        }
}

/* Allgather and alltoall, regular and v: the receive buffer has a block from everyone. */
static void set_all(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool gather = b->kind == COLL_ALLGATHER || b->kind == COLL_ALLGATHERV, v = is_v(b->kind), in_place = t->in_place;
    int64_t n = t->elems, low = v && b->kind != COLL_ALLTOALLW ? 2 : 0;
    if (v) side_open(b, &k->recv, lay_out(b, t, r, false, low, &k->recv_len, &k->recv_off), low);
    else side_open(b, &k->recv, n * t->P, 0);
    if (gather) side_open(b, &k->send, v ? length_v(t, r, 0) : n, 0);
    else if (v) side_open(b, &k->send, lay_out(b, t, r, true, low, &k->send_len, &k->send_off), low);
    else side_open(b, &k->send, n * t->P, 0);
    for (int p = 0; p < t->P; p++) {
        int64_t len = v ? k->recv_len[p] / t->esize : n, at = v ? k->recv_off[p] / t->esize + low : p * n;
        for (int64_t i = 0; i < len; i++) {
            if (gather && in_place && p == r) give(b, &k->recv, at + i, r, i);
            else if (!gather && in_place) give(b, &k->recv, at + i, r, index_of(p, i));
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
        k->send_len = calloc((size_t)t->P, sizeof *k->send_len);
        k->send_off = calloc((size_t)t->P, sizeof *k->send_off);
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
        if (b->kind == COLL_SCAN) expect_fold(b, &k->recv, i, 0, r, i);
        else if (b->kind != COLL_EXSCAN) expect_fold(b, &k->recv, i, 0, t->P - 1, first + i);
        else if (r > 0) expect_fold(b, &k->recv, i, 0, r - 1, i);
    }
}

static void set_rank(struct bench *b, int r)
{
    switch (b->kind) {
    case COLL_BARRIER: break;
    case COLL_BCAST: case COLL_REDUCE: case COLL_GATHER: case COLL_SCATTER: set_rooted(b, r); break;
    case COLL_GATHERV: case COLL_SCATTERV: set_rooted_v(b, r); break;
    case COLL_ALLGATHER: case COLL_ALLGATHERV: case COLL_ALLTOALL: case COLL_ALLTOALLV: case COLL_ALLTOALLW:
        set_all(b, r);
        break;
    default: set_reduction(b, r);
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
    s.flags |= t->ordered ? COLL_ORDERED : COLL_EXACT;
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
    if (t->mixed) s.flags |= COLL_MIXED;
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

static void complain(const struct bench *b, int r, const char *what, const struct goal_prog *prog)
{
    const struct trial *t = b->t;
    char *text = goal_print(&prog->head);
    print_error("%s %s: %d ranks, root %d, %lld elements of %lld bytes, segment %lld%s%s%s, seed %llu: rank %d: %s\n%s",
                coll_kind_name(b->kind), coll_algs[t->alg].name, t->P, t->root, (long long)t->elems,
                (long long)t->esize, (long long)t->segment, t->in_place ? ", in place" : "", t->ordered ? ", ordered" : "",
                t->gap ? ", gaps" : "", (unsigned long long)t->seed, r, what, text ? text : "");
    free(text);
    fail();
}

static void check_side(const struct bench *b, int r, const struct side *s, const char *what, const struct goal_prog *p)
{
    for (int64_t i = 0; i < s->elems; i++) {
        if (memcmp(elem(b, s, i), want(b, s, i), (size_t)b->type.size)) complain(b, r, what, p);
        for (int64_t k = b->type.size; k < b->type.extent; k++)
            if ((unsigned char)elem(b, s, i)[k] != 0xa5) complain(b, r, "a gap was written to", p);
    }
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

static void run_trial(const struct trial *t)
{
    struct bench b = {.t = t, .kind = coll_algs[t->alg].kind, .type = {t->esize, t->gap ? 3 * t->esize : t->esize}};
    struct goal_prog *prog[64];
    struct sim_op op = {op_kind(t)};
    for (int r = 0; r < t->P; r++) {
        set_rank(&b, r);
        struct rank_state *k = &b.rank[r];
        struct coll_shape s = shape_of(&b, r);
        struct coll_given v = {.send_len = k->send_len, .send_off = k->send_off, .recv_len = k->recv_len, .recv_off = k->recv_off};
        v.node = t->nodes > 1 ? t->node : NULL;
        assert_int_equal(coll_compile(&s, &v, &prog[r]), 0);
        if (goal_verify(&prog[r]->head, prog[r]->head.bytes)) complain(&b, r, err_words(), prog[r]);
    }
    struct sim *sim = sim_open(t->P, prog, t->seed);
    for (int r = 0; r < t->P; r++) bind(&b, sim, r);
    sim_bind_op(sim, &op, t->gap ? &b.type : NULL);
    if (sim_run(sim)) complain(&b, 0, err_words(), prog[0]);
    if (b.kind == COLL_BARRIER && sim_was_early(sim)) complain(&b, 0, "a rank left before all had come", prog[0]);
    for (int r = 0; r < t->P; r++) {
        check_side(&b, r, &b.rank[r].recv, "wrong data in the receive buffer", prog[r]);
        check_side(&b, r, &b.rank[r].send, "the send buffer was changed", prog[r]);
    }
    sim_close(sim);
    for (int r = 0; r < t->P; r++) {
        goal_unref(prog[r]);
        close_rank(&b.rank[r]);
    }
}

static bool has_root(enum coll_kind k)
{
    return k == COLL_BCAST || k == COLL_REDUCE || k == COLL_GATHER || k == COLL_GATHERV || k == COLL_SCATTER ||
           k == COLL_SCATTERV;
}

/* Nodes of any size, numbered by their first ranks, in blocks or in any order. */
static void draw_nodes(struct trial *t, uint64_t *state)
{
    int n = 1 + (int)(sim_random(state) % (uint64_t)t->P), number[64];
    bool blocks = sim_random(state) & 1;
    for (int r = 0; r < t->P; r++) number[r] = -1;
    for (int r = 0, at = 0; r < t->P; r++) {
        if (blocks) at += r && sim_random(state) % (uint64_t)t->P < (uint64_t)n;
        else at = (int)(sim_random(state) % (uint64_t)n);
        if (number[at] < 0) number[at] = t->nodes++;
        t->node[r] = number[at];
        t->mixed |= r && t->node[r] < t->node[r - 1];
    }
}

/* One algorithm with one number of ranks: roots and options. */
static void run_options(int alg, int P)
{
    static const int64_t sizes[] = {0, 1, 5, 40};
    enum coll_kind kind = coll_algs[alg].kind;
    if (coll_has_neighbors(kind)) return; /* they need a graph */
    int roots = has_root(kind) ? P : 1;
    for (int root = 0; root < roots; root++)
        for (unsigned option = 0; option < 8; option++)
            for (int n = 0; n < repeat; n++) {
                uint64_t state = seed + (uint64_t)(alg * 1000003 + P * 7919 + root * 31) * 8 + option + (uint64_t)n * 977;
                struct trial t = {.alg = alg, .P = P, .root = root, .in_place = option & 1, .ordered = option & 2};
                t.gap = option & 4;
                t.seed = sim_random(&state);
                t.elems = sizes[(root + (int)option + n + (int)(seed & 3)) % 4];
                t.esize = t.ordered ? 16 : coll_reduces(kind) ? 8 : 1 + (int64_t)(t.seed % 9);
                t.segment = 7 * t.esize;
                t.radix = 2 + (int)(sim_random(&state) % 5);
                draw_nodes(&t, &state);
                if (kind == COLL_BCAST && t.in_place) continue;
                if (t.ordered && !coll_reduces(kind) && kind != COLL_BARRIER) continue;
                struct coll_shape s = {.kind = (uint8_t)kind, .size = P, .flags = t.ordered ? COLL_ORDERED : COLL_EXACT};
                s.nodes = t.nodes;
                if (t.mixed) s.flags |= COLL_MIXED;
                if (coll_alg_fits(alg, &s)) run_trial(&t);
            }
}

static void run_alg(void **state)
{
    int alg = (int)(intptr_t)*state;
    for (int P = 1; P <= max_ranks; P++) run_options(alg, P);
}

/* Sends in one rank's program of `bytes` bytes: its stages, where each stage sends one message. */
static int sends_of(int alg, int rank, int P, int64_t bytes)
{
    struct coll_shape s = {.kind = (uint8_t)coll_algs[alg].kind, .alg = (uint8_t)alg, .flags = COLL_EXACT, .rank = rank,
                           .size = P, .bytes = bytes, .grain = 8, .segment = bytes};
    struct goal_prog *prog;
    assert_int_equal(coll_compile(&s, &coll_given_nothing, &prog), 0);
    const struct goal_op *op = goal_op_at(&prog->head, prog->head.first_op);
    int sends = 0;
    for (uint32_t i = 0; i < prog->head.op_count; i++, op = goal_op_next(op)) sends += op->type == GOAL_OP_SEND;
    goal_unref(prog);
    return sends;
}

/* GOAL-26: ceil(log2 P) stages; every rank sends once in each (of a scan, the first rank does). */
static void stage_count(void **state)
{
    static const struct {
        enum coll_kind kind;
        const char *name;
    } log_algs[] = {{COLL_BARRIER, "dissemination"}, {COLL_ALLTOALL, "bruck"}, {COLL_ALLREDUCE, "dissemination"},
                    {COLL_ALLGATHER, "bruck"}, {COLL_SCAN, "doubling"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(log_algs); i++)
        for (int P = 1; P <= max_ranks; P++) {
            int stages = 0, alg = coll_alg_find(log_algs[i].kind, log_algs[i].name);
            while (1 << stages < P) stages++;
            for (int r = 0; r < (log_algs[i].kind == COLL_SCAN ? 1 : P); r++)
                assert_int_equal(sends_of(alg, r, P, 64), stages);
        }
}

int main(void)
{
    static struct CMUnitTest test[256];
    static char name[256][64];
    size_t n = 0;
    if (getenv("TERN_SIM_RANKS")) max_ranks = atoi(getenv("TERN_SIM_RANKS"));
    if (getenv("TERN_SIM_REPEAT")) repeat = atoi(getenv("TERN_SIM_REPEAT"));
    if (max_ranks < 1 || max_ranks > 64) max_ranks = 64;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    for (int i = 0; i < coll_algs_count; i++, n++) {
        snprintf(name[n], sizeof name[n], "%s %s", coll_kind_name(coll_algs[i].kind), coll_algs[i].name);
        test[n] = (struct CMUnitTest){.name = name[n], .test_func = run_alg, .initial_state = (void *)(intptr_t)i};
    }
    test[n++] = (struct CMUnitTest){.name = "ceil(log2 P) stages", .test_func = stage_count};
    return _cmocka_run_group_tests("collectives in the simulator", test, n, NULL, NULL);
}
