/*
 * build.c - collects operations, pieces and edges in growing arrays and seals them
 * into a block. Operations are laid out in the order of a breadth-first traversal
 * of the graph (Kahn), which is roughly the order in which a run touches them, and
 * which finds cycles on the way.
 */
#include "coll/goal/build_in.h"

#include "base/err.h"
#include <stdlib.h>
#include <string.h>

int goal_count(const struct goal_build *b) { return (int)b->ops; }
int goal_build_error(const struct goal_build *b) { return b->err; }

void goal_build_fail(struct goal_build *b, int code)
{
    if (!b->err) b->err = code;
}

struct goal_build *goal_build_open(int rank, int size, unsigned flags)
{
    struct goal_build *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->rank = rank;
    b->size = size;
    b->flags = flags;
    return b;
}

void goal_build_close(struct goal_build *b)
{
    if (!b) return;
    free(b->op);
    free(b->piece);
    free(b->edge);
    free(b->range);
    free(b);
}

/* Room for `more` elements behind the `used` ones of the array at *array_p; false and the sticky error if not. */
static bool grow(struct goal_build *b, void **array_p, size_t elem, size_t used, size_t more, size_t *cap_p)
{
    if (b->err) return false;
    if (used + more <= *cap_p) return true;
    size_t cap = max_size(used + more, *cap_p ? *cap_p * 2 : 16);
    void *p = cap > INT32_MAX ? NULL : realloc(*array_p, cap * elem);
    if (!p) {
        b->err = err_set(TERN_ERR_NOMEM, "no memory to build a collective schedule of %zu operations", b->ops);
        return false;
    }
    *array_p = p;
    *cap_p = cap;
    return true;
}

struct goal_mem goal_scratch(struct goal_build *b, int64_t bytes)
{
    struct goal_mem m = {GOAL_SCRATCH, b->scratch};
    b->scratch += b->flags & GOAL_TYPED_SCRATCH ? bytes : (int64_t)round_up((size_t)bytes, CACHE_LINE);
    return m;
}

/* ---- operations --------------------------------------------------------- */

/* The slot's range grows to cover a piece. */
static bool touch(struct goal_build *b, struct goal_mem at, int64_t len, unsigned how)
{
    if (at.slot < 0 || at.slot > GOAL_SLOT_MAX || len < 0 || (uint64_t)len > GOAL_LEN_MAX) {
        goal_build_fail(b, err_set(TERN_ERR_PROGRAM, "schedule names slot %d, %lld bytes", at.slot, (long long)len));
        return false;
    }
    size_t n = (size_t)at.slot + 1;
    if (n > b->ranges) {
        if (!grow(b, (void **)&b->range, sizeof *b->range, b->ranges, n - b->ranges, &b->range_cap)) return false;
        memset(b->range + b->ranges, 0, (n - b->ranges) * sizeof *b->range);
        b->ranges = n;
    }
    struct goal_range *r = &b->range[at.slot];
    if (!r->flags) r->lo = r->hi = at.off;
    if (at.off < r->lo) r->lo = at.off;
    if (at.off + len > r->hi) r->hi = at.off + len;
    r->flags |= how;
    return true;
}

static int add_pieces(struct goal_build *b, const struct goal_part *part, int n, unsigned how)
{
    if (n < 0 || n > GOAL_PIECES_MAX) {
        goal_build_fail(b, err_set(TERN_ERR_UNSUPPORTED, "a schedule's operation cannot have %d pieces", n));
        return 0;
    }
    if (!grow(b, (void **)&b->piece, sizeof *b->piece, b->pieces, (size_t)n, &b->piece_cap)) return 0;
    int used = 0;
    for (int i = 0; i < n; i++) {
        struct goal_mem at = goal_stage_place(b, part[i].at);
        if (!part[i].len) continue;
        if (!touch(b, at, part[i].len, how)) return 0;
        b->piece[b->pieces++] = (struct goal_piece){at.off, (uint64_t)at.slot << 48 | (uint64_t)part[i].len};
        used++;
    }
    return used;
}

static goal_id add(struct goal_build *b, unsigned type, int peer, int tag, const struct goal_part *in, int n_in,
                   const struct goal_part *out, int n_out, unsigned how_out)
{
    if (!grow(b, (void **)&b->op, sizeof *b->op, b->ops, 1, &b->op_cap)) return GOAL_NONE;
    if (unlikely(b->staged) && (type == GOAL_OP_SEND || type == GOAL_OP_RECV)) {
        peer = peer >= 0 && peer < b->stage.size ? b->stage.ranks[peer] : -1;
        tag += b->stage.tag;
    }
    if (peer < 0 || peer >= b->size || tag < 0 || tag > UINT16_MAX) {
        goal_build_fail(b, err_set(TERN_ERR_PROGRAM, "schedule names rank %d, tag %d", peer, tag));
        return GOAL_NONE;
    }
    struct draft *d = &b->op[b->ops];
    *d = (struct draft){.type = (uint8_t)type, .tag = (uint16_t)tag, .peer = peer, .piece = (uint32_t)b->pieces};
    d->n_in = (uint16_t)add_pieces(b, in, n_in, GOAL_SLOT_READ);
    d->n_out = (uint16_t)add_pieces(b, out, n_out, how_out);
    return b->err ? GOAL_NONE : (goal_id)b->ops++;
}

goal_id goal_sendv(struct goal_build *b, int peer, int tag, const struct goal_part *part, int n)
{
    return add(b, GOAL_OP_SEND, peer, tag, part, n, NULL, 0, 0);
}

goal_id goal_recvv(struct goal_build *b, int peer, int tag, const struct goal_part *part, int n)
{
    return add(b, GOAL_OP_RECV, peer, tag, NULL, 0, part, n, GOAL_SLOT_WRITE);
}

goal_id goal_send(struct goal_build *b, int peer, int tag, struct goal_mem from, int64_t len)
{
    return goal_sendv(b, peer, tag, &(struct goal_part){from, len}, 1);
}

goal_id goal_recv(struct goal_build *b, int peer, int tag, struct goal_mem to, int64_t len)
{
    return goal_recvv(b, peer, tag, &(struct goal_part){to, len}, 1);
}

static int64_t total(const struct goal_part *part, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) sum += part[i].len;
    return sum;
}

static goal_id add_local(struct goal_build *b, unsigned type, unsigned code, const struct goal_part *in, int n_in,
                         const struct goal_part *out, int n_out, unsigned how_out)
{
    if (total(in, n_in) != total(out, n_out)) {
        goal_build_fail(b, err_set(TERN_ERR_PROGRAM, "schedule's %s has lists of unequal length", goal_type_name(type)));
        return GOAL_NONE;
    }
    return add(b, type, 0, (int)code, in, n_in, out, n_out, how_out);
}

goal_id goal_copyv(struct goal_build *b, const struct goal_part *from, int n_from, const struct goal_part *to, int n_to)
{
    return add_local(b, GOAL_OP_COPY, 0, from, n_from, to, n_to, GOAL_SLOT_WRITE);
}

goal_id goal_copy(struct goal_build *b, struct goal_mem from, struct goal_mem to, int64_t len)
{
    return goal_copyv(b, &(struct goal_part){from, len}, 1, &(struct goal_part){to, len}, 1);
}

goal_id goal_reducev(struct goal_build *b, const struct goal_part *in, int n_in, const struct goal_part *inout,
                     int n_inout)
{
    return add_local(b, GOAL_OP_REDUCE, 0, in, n_in, inout, n_inout, GOAL_SLOT_READ | GOAL_SLOT_WRITE);
}

goal_id goal_reduce(struct goal_build *b, struct goal_mem in, struct goal_mem inout, int64_t len)
{
    return goal_reducev(b, &(struct goal_part){in, len}, 1, &(struct goal_part){inout, len}, 1);
}

goal_id goal_reduce3(struct goal_build *b, struct goal_mem x, struct goal_mem y, struct goal_mem out, int64_t len)
{
    if (!len) return goal_join(b);
    const struct goal_part in[2] = {{x, len}, {y, len}};
    return add(b, GOAL_OP_REDUCE3, 0, 0, in, 2, &(struct goal_part){out, len}, 1, GOAL_SLOT_WRITE);
}

goal_id goal_arithv(struct goal_build *b, unsigned code, const struct goal_part *in, int n_in,
                    const struct goal_part *inout, int n_inout)
{
    return add_local(b, GOAL_OP_ARITH, code, in, n_in, inout, n_inout, GOAL_SLOT_READ | GOAL_SLOT_WRITE);
}

goal_id goal_join(struct goal_build *b) { return add(b, GOAL_OP_JOIN, 0, 0, NULL, 0, NULL, 0, 0); }

goal_id goal_stamp(struct goal_build *b, struct goal_mem to)
{
    return add(b, GOAL_OP_STAMP, 0, 0, NULL, 0, &(struct goal_part){to, sizeof(int64_t)}, 1, GOAL_SLOT_WRITE);
}

/* ---- edges -------------------------------------------------------------- */

static void add_edge(struct goal_build *b, goal_id op, goal_id before, bool start)
{
    if (op == GOAL_NONE || before == GOAL_NONE) return;
    if (op < 0 || before < 0 || (size_t)op >= b->ops || (size_t)before >= b->ops) {
        goal_build_fail(b, err_set(TERN_ERR_PROGRAM, "schedule has an edge from operation %d to %d of %zu", before, op,
                                   b->ops));
        return;
    }
    if (!grow(b, (void **)&b->edge, sizeof *b->edge, b->edges, 1, &b->edge_cap)) return;
    b->edge[b->edges++] = (struct edge){before, op, start};
}

void goal_after(struct goal_build *b, goal_id op, goal_id before) { add_edge(b, op, before, false); }
void goal_after_start(struct goal_build *b, goal_id op, goal_id before) { add_edge(b, op, before, true); }

/* ---- sealing ------------------------------------------------------------ */

struct plan { /* per operation; then the edges sorted by origin, those after the end first */
    uint32_t *deps, *n_finish, *n_start;
    uint32_t *first; /* index in `to` of its first successor */
    uint32_t *order; /* operations in the order of the block ... */
    uint32_t *place; /* ... and where each begins there */
    uint32_t *to;
};

static uint32_t *plan_open(const struct goal_build *b, struct plan *p)
{
    size_t n = b->ops;
    uint32_t *mem = calloc(7 * n + b->edges + 1, sizeof *mem);
    if (!mem) return NULL;
    p->deps = mem;
    p->n_finish = mem + n;
    p->n_start = mem + 2 * n;
    p->first = mem + 3 * n;
    p->order = mem + 4 * n;
    p->place = mem + 5 * n;
    p->to = mem + 7 * n; /* one array of n in between: the cursors of plan_edges */
    return mem;
}

/* Sorts the edges by origin and counts them. */
static int plan_edges(const struct goal_build *b, struct plan *p)
{
    uint32_t *cursor = p->place + b->ops, sum = 0;
    for (size_t i = 0; i < b->edges; i++) {
        const struct edge *e = &b->edge[i];
        p->deps[e->to]++;
        (e->start ? p->n_start : p->n_finish)[e->from]++;
    }
    for (size_t i = 0; i < b->ops; i++) {
        if (p->n_start[i] > GOAL_EDGES_MAX || p->n_finish[i] > GOAL_EDGES_MAX)
            return err_set(TERN_ERR_UNSUPPORTED, "an operation of a schedule has more than %d successors",
                           GOAL_EDGES_MAX);
        p->first[i] = cursor[i] = sum;
        sum += p->n_start[i] + p->n_finish[i];
    }
    for (int start = 0; start < 2; start++)
        for (size_t i = 0; i < b->edges; i++) {
            const struct edge *e = &b->edge[i];
            if (e->start == (start == 1)) p->to[cursor[e->from]++] = (uint32_t)e->to;
        }
    return 0;
}

/* Breadth-first order; the operations without predecessors come first. Returns how many those are. */
static int plan_order(const struct goal_build *b, struct plan *p, uint32_t *indep_p)
{
    uint32_t *left = p->place; /* not yet in use */
    uint32_t head = 0, tail = 0;
    memcpy(left, p->deps, b->ops * sizeof *left);
    for (size_t i = 0; i < b->ops; i++)
        if (!left[i]) p->order[tail++] = (uint32_t)i;
    *indep_p = tail;
    for (; head < tail; head++) {
        uint32_t op = p->order[head], n = p->n_finish[op] + p->n_start[op];
        for (uint32_t k = 0; k < n; k++) {
            uint32_t to = p->to[p->first[op] + k];
            if (!--left[to]) p->order[tail++] = to;
        }
    }
    if (tail == b->ops) return 0;
    return err_set(TERN_ERR_PROGRAM, "the dependencies of a schedule form a cycle (%zu of %zu operations are in it or "
                   "behind it)", b->ops - tail, b->ops);
}

/* Gives every operation its place. Returns the size of the block; 0 if it cannot be laid out. */
static size_t plan_places(const struct goal_build *b, struct plan *p, size_t first_op)
{
    size_t at = first_op;
    for (size_t i = 0; i < b->ops; i++) {
        uint32_t op = p->order[i];
        p->place[op] = (uint32_t)at;
        at += goal_op_bytes((size_t)b->op[op].n_in + b->op[op].n_out, (size_t)p->n_finish[op] + p->n_start[op]);
        if (at > UINT32_MAX) return 0;
    }
    return at;
}

static void write_op(const struct goal_build *b, const struct plan *p, struct goal_head *h, uint32_t index)
{
    uint32_t id = p->order[index], edges = p->n_finish[id] + p->n_start[id];
    const struct draft *d = &b->op[id];
    struct goal_op *op = (struct goal_op *)((char *)h + p->place[id]);
    *op = (struct goal_op){.type = d->type,
                           .tag = d->tag,
                           .n_in = d->n_in,
                           .n_out = d->n_out,
                           .index = index,
                           .dependencies = p->deps[id],
                           .n_finish = (uint16_t)p->n_finish[id],
                           .n_start = (uint16_t)p->n_start[id],
                           .peer = d->peer};
    size_t pieces = (size_t)d->n_in + d->n_out;
    if (pieces) memcpy(op->piece, b->piece + d->piece, pieces * sizeof *op->piece);
    uint32_t *to = (uint32_t *)(op->piece + pieces);
    for (uint32_t k = 0; k < edges; k++) to[k] = p->place[p->to[p->first[id] + k]];
}

static struct goal_prog *write_block(const struct goal_build *b, const struct plan *p, uint32_t indep, size_t first_op,
                                     size_t bytes)
{
    struct goal_prog *prog = calloc(1, offsetof(struct goal_prog, head) + bytes);
    if (!prog) return NULL;
    atomic_init(&prog->refs, 1);
    struct goal_head *h = &prog->head;
    *h = (struct goal_head){.magic = GOAL_MAGIC,
                            .version = GOAL_VERSION,
                            .flags = (uint16_t)b->flags,
                            .bytes = (uint32_t)bytes,
                            .op_count = (uint32_t)b->ops,
                            .indep_ops_count = indep,
                            .slot_count = (uint32_t)b->ranges,
                            .rank = b->rank,
                            .size = b->size,
                            .scratch = b->scratch,
                            .first_op = (uint32_t)first_op};
    if (b->ranges) memcpy(h + 1, b->range, b->ranges * sizeof *b->range);
    uint32_t *indep_ops = (uint32_t *)goal_indep(h);
    for (uint32_t i = 0; i < indep; i++) indep_ops[i] = p->place[p->order[i]];
    for (uint32_t i = 0; i < b->ops; i++) write_op(b, p, h, i);
    return prog;
}

static int seal(struct goal_build *b, struct plan *p, struct goal_prog **prog_p)
{
    uint32_t indep = 0;
    int rc = plan_edges(b, p);
    if (!rc) rc = plan_order(b, p, &indep);
    if (rc) return rc;
    size_t first_op = sizeof(struct goal_head) + b->ranges * sizeof(struct goal_range) + indep * sizeof(uint32_t);
    first_op = round_up(first_op, 8);
    size_t bytes = plan_places(b, p, first_op);
    if (!bytes) return err_set(TERN_ERR_UNSUPPORTED, "a schedule of %zu operations exceeds 4 GB", b->ops);
    struct goal_prog *prog = write_block(b, p, indep, first_op, bytes);
    if (!prog) return err_set(TERN_ERR_NOMEM, "no memory for a collective schedule of %zu bytes", bytes);
    *prog_p = prog;
    return 0;
}

int goal_seal(struct goal_build *b, struct goal_prog **prog_p)
{
    struct plan plan;
    if (b->err) return b->err;
    uint32_t *mem = plan_open(b, &plan);
    if (!mem) return err_set(TERN_ERR_NOMEM, "no memory to build a collective schedule of %zu operations", b->ops);
    int rc = seal(b, &plan, prog_p);
    free(mem);
    return rc;
}
