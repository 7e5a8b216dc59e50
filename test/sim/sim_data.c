/* sim_data.c - see sim_data.h. */
#include "sim_data.h"

#include "base/err.h"
#include <string.h>

/* ---- operators and elements ---- */

int64_t sim_op_size(enum sim_op_kind kind) { return kind == SIM_SUM ? 8 : 16; }

void sim_op_apply(enum sim_op_kind kind, const void *a, const void *b, void *out)
{
    if (kind == SIM_SUM) {
        uint64_t x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        x += y;
        memcpy(out, &x, 8);
        return;
    }
    uint32_t x[4], y[4], z[4];
    memcpy(x, a, 16);
    memcpy(y, b, 16);
    for (int i = 0; i < 4; i++) z[i] = x[i & 2] * y[i & 1] + x[(i & 2) + 1] * y[(i & 1) + 2];
    memcpy(out, z, 16);
}

/* The i-th byte of packed data of a buffer. */
static char *byte_at(const struct goal_buf *b, int64_t i)
{
    const struct sim_type *t = (const struct sim_type *)b->type;
    if (!t) return b->buf + i;
    i += b->skip;
    return b->buf + i / t->size * t->extent + i % t->size;
}

int sim_copy(struct goal_frame *f, const struct goal_buf *from, const struct goal_buf *to)
{
    (void)f;
    if (!from->type && !to->type) {
        memmove(to->buf, from->buf, (size_t)from->len);
        return 0;
    }
    for (int64_t i = 0; i < from->len; i++) *byte_at(to, i) = *byte_at(from, i);
    return 0;
}

int sim_reduce3(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b,
                       const struct goal_buf *out)
{
    const struct sim_op *op = (const struct sim_op *)f->op;
    int64_t size = sim_op_size(op->kind);
    if (a->len % size || a->skip || b->skip || out->skip)
        return err_set(TERN_ERR_PROGRAM, "a reduction splits an element");
    for (int64_t i = 0; i < a->len; i += size)
        sim_op_apply(op->kind, byte_at(a, i), byte_at(b, i), byte_at(out, i));
    return 0;
}

int sim_reduce(struct goal_frame *f, const struct goal_buf *in, const struct goal_buf *inout)
{
    return sim_reduce3(f, in, inout, inout);
}

/* ---- pieces ---- */

void sim_move_pieces(const struct goal_frame *f, const struct goal_op *op, char *data, int64_t len, bool from)
{
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out && len; i++) {
        struct goal_buf b = goal_piece_buf(f, &op->piece[i]);
        if (!b.type) {
            int64_t n = b.len < len ? b.len : len;
            memcpy(from ? data : b.buf, from ? b.buf : data, (size_t)n);
            data += n;
            len -= n;
            continue;
        }
        for (int64_t k = 0; k < b.len && len; k++, len--, data++) {
            if (from) *data = *byte_at(&b, k);
            else *byte_at(&b, k) = *data;
        }
    }
}

int64_t sim_op_len(const struct goal_op *op)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) sum += goal_piece_len(&op->piece[i]);
    return sum;
}

void sim_poison(struct goal_frame *f, const struct goal_op *op)
{
    for (unsigned i = 0; i < op->n_out; i++) {
        struct goal_buf b = goal_piece_buf(f, &op->piece[i]);
        if (!b.type) memset(b.buf, 0xee, (size_t)b.len);
        for (int64_t k = 0; b.type && k < b.len; k++) *byte_at(&b, k) = (char)0xee;
    }
}

bool sim_still_poisoned(const struct goal_frame *f, const struct goal_op *op)
{
    for (unsigned i = 0; i < op->n_out; i++) {
        struct goal_buf b = goal_piece_buf(f, &op->piece[i]);
        for (int64_t k = 0; k < b.len; k++)
            if (*byte_at(&b, k) != (char)0xee) return false;
    }
    return true;
}
