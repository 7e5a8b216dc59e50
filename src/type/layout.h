/*
 * layout.h - where the bytes of one element lie: a tree of loops over runs of memory.
 *
 * Five kinds of node; the first four are leaves:
 *
 *   RUN     [off, off + block)
 *   VECTOR  n blocks of `block` bytes, `stride` apart, the first at off
 *   BLOCKS  n blocks of `block` bytes, at offs[i]
 *   LIST    n pieces, piece i from pieces[i].off; its packed bytes start at pieces[i].at
 *   LOOPS   n loops, each a body repeated loop.n times, loop.stride apart, the first
 *           at loop.off; the packed bytes of loop i start at loops[i].at
 *
 * Packed order is the order of the tree. All functions that make nodes simplify:
 * what touches is joined, what is regular becomes a VECTOR, one-element loops go.
 * An empty layout is NULL. Nodes never change and are shared between types, so the
 * tree is really a directed graph without cycles, far smaller than what it describes.
 */
#ifndef TERN_TYPE_LAYOUT_H
#define TERN_TYPE_LAYOUT_H

#include "base/compiler.h"
#include <stdatomic.h>

enum layout_kind { LAYOUT_RUN, LAYOUT_VECTOR, LAYOUT_BLOCKS, LAYOUT_LIST, LAYOUT_LOOPS };

struct layout_piece {
    int64_t off;
    int64_t at; /* the entry behind the last has the total here, so a length is a difference */
};

struct layout_loop {
    int64_t off, n, stride;
    const struct layout *body; /* a reference is held; NULL only in the entry behind the last */
    int64_t at;
};

struct layout {
    uint32_t kind;
    _Atomic int32_t refs;
    int64_t size;   /* packed bytes, > 0 */
    int64_t blocks; /* runs of memory it consists of */
    int64_t off, n, block, stride;
    int32_t depth; /* LOOPS on the longest way down */
    union {
        int64_t *offs;
        struct layout_piece *pieces;
        struct layout_loop *loops;
    };
};

/* Nesting that is left after simplification is bounded, since walking it recurses. */
#define LAYOUT_DEPTH_MAX 1000

/* Makers return 0 and *out with a reference for the caller, TERN_ERR_NOMEM, or TERN_ERR_ARG beyond LAYOUT_DEPTH_MAX.
 * Sizes are known not to overflow. Bodies stay the caller's. */
int layout_run(int64_t off, int64_t len, const struct layout **out);
/* Bodies may be NULL. */
int layout_repeat(const struct layout *body, int64_t off, int64_t n, int64_t stride, const struct layout **out);
int layout_join(int64_t n, const struct layout_loop *loops, const struct layout **out); /* sets at */

/* Collects pieces of memory in packed order and makes the simplest leaf of them. */
struct layout_pieces {
    struct layout_piece *list; /* at: packed position */
    int64_t n, room, size;
};
int layout_pieces_open(struct layout_pieces *, int64_t room);
void layout_pieces_add(struct layout_pieces *, int64_t off, int64_t len);  /* room must suffice */
int layout_pieces_seal(struct layout_pieces *, const struct layout **out); /* releases the collection in any case */

/* The same bytes in the form that moves fastest: small inner loops unrolled to BLOCKS or a LIST. For commit. */
int layout_flatten(const struct layout *l, const struct layout **out);

static inline const struct layout *layout_ref(const struct layout *l)
{
    if (l) atomic_fetch_add_explicit((_Atomic int32_t *)&l->refs, 1, memory_order_relaxed);
    return l;
}
void layout_unref(const struct layout *l); /* NULL is ignored */

#endif
