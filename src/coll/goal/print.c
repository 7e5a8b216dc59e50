/*
 * print.c - a program as text, for people: a head line, a line for each slot, a line
 * for each operation with what it touches and whom it releases.
 *
 *   schedule v2: rank 1 of 2, 3 operations, 1 independent, scratchpad 64 bytes, 3 slots, 240 bytes
 *     slot 0 (send) [0,64) read
 *     0  recv     from 0 tag 0: scratch[0,64)           then 1
 *     1  reduce   send[0,64) -> scratch[0,64)           then 2     started: 3
 *     2  add      int32: send[0,64) -> scratch[0,64)
 *
 * Nothing is left out: parse.c makes the same block of it again.
 */
#include "base/text.h"
#include "coll/goal/arith.h"
#include "coll/goal/goal.h"

#include <stdio.h>

static const char *slot_name(unsigned slot, char room[16])
{
    static const char *const name[] = {"send", "recv", "scratch"};
    if (slot < ARRAY_LEN(name)) return name[slot];
    snprintf(room, 16, "slot%u", slot);
    return room;
}

static void print_pieces(FILE *f, const struct goal_piece *p, unsigned n)
{
    char room[16];
    if (!n) fputs(" nothing", f);
    for (unsigned i = 0; i < n; i++, p++)
        fprintf(f, " %s[%lld,%lld)", slot_name(goal_piece_slot(p), room), (long long)p->off,
                (long long)(p->off + goal_piece_len(p)));
}

static void print_edges(FILE *f, const struct goal_head *h, const char *word, const uint32_t *to, unsigned n)
{
    if (n) fputs(word, f);
    for (unsigned i = 0; i < n; i++) fprintf(f, " %u", goal_op_at(h, to[i])->index);
}

/* What it does; the word for that takes at least so much room. */
static void print_work(FILE *f, const struct goal_op *op, int width)
{
    bool arith = op->type == GOAL_OP_ARITH;
    fprintf(f, "%-*s", width, arith ? goal_operator_name(op->tag >> 8) : goal_type_name(op->type));
    if (arith) fprintf(f, " %s:", goal_number_name(op->tag & 0xff));
    if (op->type == GOAL_OP_SEND) fprintf(f, " to %d tag %u:", op->peer, op->tag);
    if (op->type == GOAL_OP_RECV) fprintf(f, " from %d tag %u:", op->peer, op->tag);
    if (op->n_in || op->type == GOAL_OP_SEND) print_pieces(f, op->piece, op->n_in);
    if (op->n_in && op->n_out) fputs(" ->", f);
    if (op->n_out || op->type == GOAL_OP_RECV) print_pieces(f, op->piece + op->n_in, op->n_out);
}

static void print_op(FILE *f, const struct goal_head *h, const struct goal_op *op)
{
    fprintf(f, "  %-4u ", op->index);
    print_work(f, op, 8);
    print_edges(f, h, "  then", goal_edges(op), op->n_finish);
    print_edges(f, h, "  started:", goal_edges(op) + op->n_finish, op->n_start);
    fputc('\n', f);
}

static void print_slots(FILE *f, const struct goal_head *h)
{
    char room[16];
    for (uint32_t i = 0; i < h->slot_count; i++) {
        const struct goal_range *r = &goal_ranges(h)[i];
        if (!r->flags) continue;
        fprintf(f, "  slot %u (%s) [%lld,%lld)%s%s\n", i, slot_name(i, room), (long long)r->lo, (long long)r->hi,
                r->flags & GOAL_SLOT_READ ? " read" : "", r->flags & GOAL_SLOT_WRITE ? " write" : "");
    }
}

static void print_op_alone(FILE *f, const void *op) { print_work(f, op, 0); }

char *goal_print_op(const struct goal_op *op) { return text_of(print_op_alone, op); }

static void print_all(FILE *f, const void *what)
{
    const struct goal_head *h = what;
    fprintf(f, "schedule v%u: rank %d of %d, %u operations, %u independent, scratchpad %lld %s, %u slots, %u bytes\n", h->version,
            h->rank, h->size, h->op_count, h->indep_ops_count, (long long)h->scratch,
            h->flags & GOAL_TYPED_SCRATCH ? "bytes of elements" : "bytes", h->slot_count, h->bytes);
    print_slots(f, h);
    const struct goal_op *op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op)) print_op(f, h, op);
}

char *goal_print(const struct goal_head *h) { return text_of(print_all, h); }
