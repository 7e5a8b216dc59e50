/* pack.h - user's buffers to and from payloads, for the operations inside a node. */
#ifndef TERN_COLL_NODE_PACK_H
#define TERN_COLL_NODE_PACK_H

#include "type/cursor.h"
#include <string.h>

/* Lengths that most small calls have need no call. */
static inline void node_copy(char *to, const char *from, size_t n)
{
    if (n == 8)
        memcpy(to, from, 8);
    else if (n == 4)
        memcpy(to, from, 4);
    else if (n)
        memcpy(to, from, n);
}

static inline void node_pack(char *to, const void *buf, int64_t count, const struct type *t)
{
    size_t n = (size_t)(count * t->size);
    if (likely(t->contig)) {
        node_copy(to, (const char *)buf + t->true_lb, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, t, count, buf);
    type_pack(&c, to, n);
}

/* The first n packed bytes of count x t. */
static inline void node_unpack_some(void *buf, int64_t count, const struct type *t, const char *from, size_t n)
{
    if (likely(t->contig)) {
        node_copy((char *)buf + t->true_lb, from, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, t, count, buf);
    type_unpack(&c, from, n);
}

static inline void node_unpack(void *buf, int64_t count, const struct type *t, const char *from)
{
    node_unpack_some(buf, count, t, from, (size_t)(count * t->size));
}

#endif
