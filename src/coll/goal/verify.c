/*
 * verify.c - the judge of blocks that came from outside this process's builders.
 *
 * First the layout (every offset and count against the size of the block), then each
 * operation by itself, then the graph: edges lead to operations, counters agree with
 * the edges, the list of independent operations is exact, and there is no cycle.
 * Nothing is read before it is known to lie inside the block.
 */
#include "coll/goal/goal.h"

#include "base/err.h"
#include "coll/goal/arith.h"
#include <stdlib.h>
#include <string.h>

#define BAD(...) err_set(TERN_ERR_PROGRAM, "collective schedule: " __VA_ARGS__)

static int check_head(const struct goal_head *h, size_t size)
{
    if (size < sizeof *h || ((uintptr_t)h & 7)) return BAD("%zu bytes are too few or misaligned", size);
    if (h->magic != GOAL_MAGIC) return BAD("bad magic number 0x%x", h->magic);
    if (h->version != GOAL_VERSION) return BAD("version %u where %u is known", h->version, GOAL_VERSION);
    if (h->bytes != size) return BAD("says it has %u bytes where there are %zu", h->bytes, size);
    if (h->flags & ~(unsigned)GOAL_TYPED_SCRATCH) return BAD("unknown flags 0x%x", h->flags);
    if (h->size < 1 || h->rank < 0 || h->rank >= h->size) return BAD("rank %d of %d", h->rank, h->size);
    if (h->slot_count > GOAL_SLOT_MAX + 1) return BAD("%u slots", h->slot_count);
    if (h->zero) return BAD("0x%x where zero belongs", h->zero);
    if (h->scratch < 0 || (uint64_t)h->scratch > GOAL_LEN_MAX) return BAD("scratchpad of %lld bytes", (long long)h->scratch);
    uint64_t first = sizeof *h + (uint64_t)h->slot_count * sizeof(struct goal_range) +
                     (uint64_t)h->indep_ops_count * sizeof(uint32_t);
    if (h->first_op != ((first + 7) & ~(uint64_t)7) || h->first_op > size) return BAD("first operation at %u", h->first_op);
    if ((size - h->first_op) / sizeof(struct goal_op) < h->op_count) return BAD("no room for %u operations", h->op_count);
    return 0;
}

static int check_ranges(const struct goal_head *h)
{
    const struct goal_range *r = goal_ranges(h);
    for (uint32_t i = 0; i < h->slot_count; i++) {
        if (r[i].lo > r[i].hi || r[i].hi > (int64_t)GOAL_LEN_MAX || r[i].lo < -(int64_t)GOAL_LEN_MAX)
            return BAD("slot %u has range [%lld,%lld)", i, (long long)r[i].lo, (long long)r[i].hi);
        if (r[i].flags & ~(unsigned)(GOAL_SLOT_READ | GOAL_SLOT_WRITE)) return BAD("slot %u has flags 0x%x", i, r[i].flags);
        if (r[i].zero || (!r[i].flags && (r[i].lo || r[i].hi))) return BAD("slot %u is not used, but has a range", i);
    }
    if (h->slot_count > GOAL_SCRATCH && (r[GOAL_SCRATCH].lo < 0 || r[GOAL_SCRATCH].hi > h->scratch))
        return BAD("scratchpad of %lld bytes is used up to %lld", (long long)h->scratch, (long long)r[GOAL_SCRATCH].hi);
    return 0;
}

/* How many pieces an operation of this type may read and write: at least, at most. */
static const struct {
    uint16_t in_min, in_max, out_min, out_max;
} arity[GOAL_OP_END] = {
    [GOAL_OP_SEND] = {0, GOAL_PIECES_MAX, 0, 0},
    [GOAL_OP_RECV] = {0, 0, 0, GOAL_PIECES_MAX},
    [GOAL_OP_COPY] = {0, GOAL_PIECES_MAX, 0, GOAL_PIECES_MAX},
    [GOAL_OP_REDUCE] = {0, GOAL_PIECES_MAX, 0, GOAL_PIECES_MAX},
    [GOAL_OP_REDUCE3] = {2, 2, 1, 1},
    [GOAL_OP_JOIN] = {0, 0, 0, 0},
    [GOAL_OP_STAMP] = {0, 0, 1, 1},
    [GOAL_OP_ARITH] = {0, GOAL_PIECES_MAX, 0, GOAL_PIECES_MAX},
};

/* One list of pieces: none empty, inside their slots' ranges, which allow the use. Their total length is added up. */
static int check_pieces(const struct goal_head *h, const struct goal_op *op, unsigned from, unsigned n, unsigned how,
                        uint64_t *total_p)
{
    const struct goal_range *range = goal_ranges(h);
    uint64_t total = 0;
    for (unsigned i = from; i < from + n; i++) {
        unsigned slot = goal_piece_slot(&op->piece[i]);
        int64_t off = op->piece[i].off, len = goal_piece_len(&op->piece[i]);
        if (slot >= h->slot_count) return BAD("operation %u names slot %u of %u", op->index, slot, h->slot_count);
        const struct goal_range *r = &range[slot];
        if (off < r->lo || off > r->hi || len < 1 || len > r->hi - off || (r->flags & how) != how)
            return BAD("operation %u names %lld bytes at %lld of slot %u", op->index, (long long)len, (long long)off, slot);
        total += (uint64_t)len;
    }
    *total_p = total;
    return 0;
}

/* What two lists of equal length have side by side is one place or two that do not overlap: then it can be copied in any order. */
static int check_overlap(const struct goal_op *op)
{
    const struct goal_piece *in = op->piece, *out = in + op->n_in, *end = out;
    int64_t in_pos = 0, out_pos = 0;
    while (in < end) {
        int64_t in_left = goal_piece_len(in) - in_pos, out_left = goal_piece_len(out) - out_pos;
        int64_t n = in_left < out_left ? in_left : out_left, apart = (out->off + out_pos) - (in->off + in_pos);
        if (goal_piece_slot(in) == goal_piece_slot(out) && apart && apart < n && -apart < n)
            return BAD("operation %u (%s) reads and writes memory that overlaps", op->index, goal_type_name(op->type));
        in_pos += n;
        out_pos += n;
        if (n == in_left) in++, in_pos = 0;
        if (n == out_left) out++, out_pos = 0;
    }
    return 0;
}

static bool overlap(const struct goal_piece *a, const struct goal_piece *b)
{
    return goal_piece_slot(a) == goal_piece_slot(b) && a->off < b->off + goal_piece_len(b) &&
           b->off < a->off + goal_piece_len(a);
}

static int check_reduce3(const struct goal_op *op, uint64_t in, uint64_t out)
{
    if (goal_piece_len(op->piece) != goal_piece_len(op->piece + 1) || in != 2 * out)
        return BAD("operation %u has operands of unequal length", op->index);
    if (overlap(op->piece, op->piece + 2) || overlap(op->piece + 1, op->piece + 2))
        return BAD("operation %u (reduce3) writes over its operands", op->index);
    return 0;
}

/* Operator and type exist, and no piece splits a number. */
static int check_arith(const struct goal_op *op)
{
    if (!goal_arith_known(op->tag)) return BAD("operation %u does unknown arithmetic 0x%x", op->index, op->tag);
    int64_t unit = (int64_t)goal_arith_unit(op->tag);
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++)
        if (goal_piece_len(&op->piece[i]) % unit)
            return BAD("operation %u splits a number of %lld bytes", op->index, (long long)unit);
    return 0;
}

/* What holds for the lengths of a local operation's lists. */
static int check_local(const struct goal_op *op, uint64_t in, uint64_t out)
{
    switch (op->type) {
    case GOAL_OP_COPY:
    case GOAL_OP_REDUCE:
    case GOAL_OP_ARITH:
        if (in != out) return BAD("operation %u has lists of unequal length", op->index);
        if (op->type == GOAL_OP_ARITH && check_arith(op)) return TERN_ERR_PROGRAM;
        return check_overlap(op);
    case GOAL_OP_REDUCE3: return check_reduce3(op, in, out);
    case GOAL_OP_STAMP:
        if (out != sizeof(int64_t)) return BAD("operation %u stamps %llu bytes", op->index, (unsigned long long)out);
        return 0;
    default: return 0;
    }
}

static int check_op(const struct goal_head *h, const struct goal_op *op, uint32_t index)
{
    if (op->index != index || op->zero) return BAD("operation %u is numbered %u", index, op->index);
    if (op->type == 0 || op->type >= GOAL_OP_END) return BAD("operation %u has unknown type %u", index, op->type);
    if (op->n_in < arity[op->type].in_min || op->n_in > arity[op->type].in_max ||
        op->n_out < arity[op->type].out_min || op->n_out > arity[op->type].out_max)
        return BAD("operation %u (%s) reads %u pieces and writes %u", index, goal_type_name(op->type), op->n_in, op->n_out);
    bool message = op->type == GOAL_OP_SEND || op->type == GOAL_OP_RECV;
    if (op->peer < 0 || op->peer >= (message ? h->size : 1)) return BAD("operation %u names rank %d", index, op->peer);
    if (op->tag && !message && op->type != GOAL_OP_ARITH) return BAD("operation %u has tag %u", index, op->tag);
    uint64_t in, out;
    bool reads_out = op->type == GOAL_OP_REDUCE || op->type == GOAL_OP_ARITH;
    unsigned how_out = reads_out ? GOAL_SLOT_READ | GOAL_SLOT_WRITE : GOAL_SLOT_WRITE;
    int rc = check_pieces(h, op, 0, op->n_in, GOAL_SLOT_READ, &in);
    if (!rc) rc = check_pieces(h, op, op->n_in, op->n_out, how_out, &out);
    return rc ? rc : check_local(op, in, out);
}

/* All operations lie in the block, one behind the other, up to its very end. place[i] becomes the offset of the i-th. */
static int check_ops(const struct goal_head *h, uint32_t *place, uint32_t *op_p)
{
    size_t at = h->first_op;
    for (uint32_t i = 0; i < h->op_count; i++) {
        *op_p = i;
        if (h->bytes - at < sizeof(struct goal_op)) return BAD("operation %u lies outside the block", i);
        const struct goal_op *op = goal_op_at(h, (uint32_t)at);
        size_t n = goal_op_bytes((size_t)op->n_in + op->n_out, (size_t)op->n_finish + op->n_start);
        if (h->bytes - at < n) return BAD("operation %u lies outside the block", i);
        int rc = check_op(h, op, i);
        if (rc) return rc;
        if (((op->n_finish + op->n_start) & 1) && goal_edges(op)[op->n_finish + op->n_start])
            return BAD("operation %u is not followed by zeros", i);
        place[i] = (uint32_t)at;
        at += n;
    }
    *op_p = GOAL_NO_OP;
    return at == h->bytes ? 0 : BAD("%zu bytes lie behind the last operation", h->bytes - at);
}

/* The operation at offset `off`, whose index must lead back to it; NULL if there is none. */
static const struct goal_op *find_op(const struct goal_head *h, const uint32_t *place, uint32_t off)
{
    if ((off & 7) || off < h->first_op || h->bytes < sizeof(struct goal_op) || off > h->bytes - sizeof(struct goal_op)) return NULL;
    uint32_t index = goal_op_at(h, off)->index;
    return index < h->op_count && place[index] == off ? goal_op_at(h, off) : NULL;
}

static int check_edges(const struct goal_head *h, const uint32_t *place, uint32_t *met, uint32_t *op_p)
{
    for (uint32_t i = 0; i < h->op_count; i++) {
        *op_p = i;
        const struct goal_op *op = goal_op_at(h, place[i]);
        const uint32_t *to = goal_edges(op);
        for (unsigned k = 0; k < (unsigned)op->n_finish + op->n_start; k++) {
            const struct goal_op *next = find_op(h, place, to[k]);
            if (!next) return BAD("operation %u has an edge to byte %u, where no operation begins", i, to[k]);
            met[next->index]++;
        }
    }
    uint32_t indep = 0;
    for (uint32_t i = 0; i < h->op_count; i++) {
        *op_p = i;
        uint32_t deps = goal_op_at(h, place[i])->dependencies;
        if (deps != met[i]) return BAD("operation %u waits for %u edges where %u lead to it", i, deps, met[i]);
        if (deps) continue;
        if (indep == h->indep_ops_count || goal_indep(h)[indep++] != place[i])
            return BAD("operation %u is missing in the list of independent ones", i);
    }
    *op_p = GOAL_NO_OP;
    if ((indep & 1) && goal_indep(h)[indep]) return BAD("the list of independent operations is not followed by zeros");
    return indep == h->indep_ops_count ? 0 : BAD("%u independent operations are listed, %u exist", h->indep_ops_count, indep);
}

/*
 * A cycle among the operations that still wait (met > 0): each of them waits for another one of them, so that going from
 * one to what it waits for ends in one. `waits_for` has room for all.
 */
static int find_cycle(const struct goal_head *h, const uint32_t *place, const uint32_t *met, uint32_t *waits_for, uint32_t *op_p)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < h->op_count; i++) {
        const struct goal_op *op = goal_op_at(h, place[i]);
        if (!met[i]) continue;
        for (unsigned k = 0; k < (unsigned)op->n_finish + op->n_start; k++) {
            at = goal_op_at(h, goal_edges(op)[k])->index;
            waits_for[at] = i;
        }
    }
    for (uint32_t i = 0; i < h->op_count; i++) at = waits_for[at];
    *op_p = at;
    return at == waits_for[at] ? BAD("the dependencies form a cycle: operation %u waits for itself", at)
                               : BAD("the dependencies form a cycle: operation %u waits for %u, and that for the first in the end",
                                     at, waits_for[at]);
}

/* Every operation can be reached in an order that respects the edges. met is consumed; queue has room for all. */
static int check_acyclic(const struct goal_head *h, const uint32_t *place, uint32_t *met, uint32_t *queue, uint32_t *op_p)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < h->op_count; i++)
        if (!met[i]) queue[tail++] = place[i];
    while (head < tail) {
        const struct goal_op *op = goal_op_at(h, queue[head++]);
        const uint32_t *to = goal_edges(op);
        for (unsigned k = 0; k < (unsigned)op->n_finish + op->n_start; k++)
            if (!--met[goal_op_at(h, to[k])->index]) queue[tail++] = to[k];
    }
    return tail == h->op_count ? 0 : find_cycle(h, place, met, queue, op_p);
}

int goal_verify_at(const void *block, size_t size, uint32_t *op_p)
{
    const struct goal_head *h = block;
    *op_p = GOAL_NO_OP;
    int rc = check_head(h, size);
    if (!rc) rc = check_ranges(h);
    if (rc) return rc;
    uint32_t *mem = calloc((size_t)h->op_count * 3 + 1, sizeof *mem);
    if (!mem) return err_set(TERN_ERR_NOMEM, "no memory to check a collective schedule of %u operations", h->op_count);
    uint32_t *place = mem, *met = mem + h->op_count, *queue = met + h->op_count;
    rc = check_ops(h, place, op_p);
    if (!rc) rc = check_edges(h, place, met, op_p);
    if (!rc) rc = check_acyclic(h, place, met, queue, op_p);
    free(mem);
    return rc;
}

int goal_verify(const void *block, size_t size)
{
    uint32_t op;
    return goal_verify_at(block, size, &op);
}
