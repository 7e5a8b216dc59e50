/*
 * cursor.h - moving the data of (count x type) at a buffer, in pieces of any size.
 *
 * A cursor is a position in the packed form of the data: the first byte of the
 * first element is 0, `total` is the end. It holds nothing else, so it may be
 * copied, dropped and moved freely; finding the place in the type again costs one
 * division or binary search per level of the type, once per call. Any position
 * will do, also within a basic element: ring cells are filled to the last byte.
 *
 * The type must stay referenced while a cursor is in use and should be committed
 * (an uncommitted one works, more slowly). No function here allocates or fails.
 */
#ifndef TERN_TYPE_CURSOR_H
#define TERN_TYPE_CURSOR_H

#include "type/type.h"
#include <string.h>
#include <sys/uio.h>

struct type_cursor {
    const struct type *type;
    char *buf;    /* the user's address, or the first byte of data if type->contig */
    size_t pos;   /* packed bytes that lie behind */
    size_t total; /* count * size */
    int64_t count;
};

/* count * size must not exceed the address space. `buf` is written to by type_unpack only. */
static inline void type_cursor_init(struct type_cursor *c, const struct type *t, int64_t count, const void *buf)
{
    c->type = t;
    c->buf = (char *)(uintptr_t)buf + (t->contig ? t->true_lb : 0);
    c->pos = 0;
    c->total = (size_t)(count * t->size);
    c->count = count;
}

static inline void type_cursor_seek(struct type_cursor *c, size_t packed_pos)
{
    c->pos = min_size(packed_pos, c->total);
}
static inline size_t type_cursor_left(const struct type_cursor *c) { return c->total - c->pos; }

size_t type_pack_general(struct type_cursor *c, void *out, size_t max);
size_t type_unpack_general(struct type_cursor *c, const void *in, size_t n);

/* Packs the next bytes, at most `max`, to `out`; returns how many (less than max only at the end of the data). */
static inline size_t type_pack(struct type_cursor *c, void *out, size_t max)
{
    if (unlikely(!c->type->contig)) return type_pack_general(c, out, max);
    size_t n = min_size(max, c->total - c->pos);
    if (n) memcpy(out, c->buf + c->pos, n); /* where there is nothing to copy, the address may be NULL */
    c->pos += n;
    return n;
}

/* Stores `n` packed bytes; returns how many found room (less than n only at the end of the data). */
static inline size_t type_unpack(struct type_cursor *c, const void *in, size_t n)
{
    if (unlikely(!c->type->contig)) return type_unpack_general(c, in, n);
    n = min_size(n, c->total - c->pos);
    if (n) memcpy(c->buf + c->pos, in, n);
    c->pos += n;
    return n;
}

/* The next pieces of memory, in packed order, joined where they touch: at most *n_inout of them and max_bytes
 * together. Sets *n_inout to the number written; returns their bytes (0 only at the end, or if either limit is 0). */
size_t type_iov(struct type_cursor *c, struct iovec *iov, int *n_inout, size_t max_bytes);

/* Copies `count` elements from one user buffer to another of the same type, without touching the gaps. */
void type_copy(void *dst, const void *src, int64_t count, const struct type *t);

/* Copies (scount x stype) to (dcount x dtype) through packed order, until either ends; returns the bytes. */
size_t type_copy_across(void *dst, int64_t dcount, const struct type *dtype, const void *src, int64_t scount,
                        const struct type *stype);

#endif
