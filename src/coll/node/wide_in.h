/*
 * wide_in.h - between the files of wide.h: an operation and its halves.
 */
#ifndef TERN_COLL_NODE_WIDE_IN_H
#define TERN_COLL_NODE_WIDE_IN_H

#include "coll/node/block.h"

/* Packed data of (count x type) as one piece of memory: the user's own, or a copy. */
struct node_flat {
    char *at;   /* NULL: memory is out */
    char *copy; /* at, if it is one */
    size_t bytes;
};

/* An operation, at one slice of the vector, or of each block. */
struct node_pass {
    struct node *n;
    const struct coll_call *a;
    struct node_flat in, out; /* what this rank gives and gets; `at` is NULL if that is nothing */
    size_t block;             /* bytes of the vector, or of a block; of the longest one where they differ */
    uint32_t seq;
    size_t at, len;               /* the slice */
    int lacks;                    /* a code: this rank has no memory for packed copies */
    const int64_t *counts;        /* elements of each rank's block; NULL: all have `block` bytes */
    size_t start[NODE_RANKS_MAX]; /* with `counts`: where the blocks begin in `in` or `out` */
};

/* Bytes of the slice of a rank's block, and where that block begins. */
static inline size_t node_pass_len(const struct node_pass *p, int rank)
{
    if (!p->counts) return p->len;
    size_t bytes = (size_t)(p->counts[rank] * p->a->rtype->size);
    return bytes <= p->at ? 0 : min_size(bytes - p->at, p->len);
}

static inline size_t node_pass_start(const struct node_pass *p, int rank)
{
    return p->counts ? p->start[rank] : (size_t)rank * p->block;
}

/* The user's buffers (wide_ends.c), behind which is what this rank sends to itself. */
void node_pass_open(struct node_pass *);
void node_pass_close(struct node_pass *, bool good);

/* Whose contribution a rank waits for: all; those of lower ranks (all, where arrivals are counted); the root for that
 * of all; the others for the root's, or for what the root leaves in their own slot. */
enum node_wide_needs { NODE_WIDE_ALL, NODE_WIDE_LOWER, NODE_WIDE_ROOT_ALL, NODE_WIDE_ROOTS, NODE_WIDE_OWN };

/* As in struct node_op of the small ones; no functions: not for this. */
struct node_wide_op {
    int (*leave)(struct node_pass *);
    int (*take)(struct node_pass *);
    enum node_wide_needs needs;
};
extern const struct node_wide_op node_wide_ops[COLL_KINDS];

static inline bool node_pass_root(const struct node_pass *p) { return p->n->rank == p->a->root; }
static inline bool node_pass_in_place(const struct node_pass *p) { return p->a->sendbuf == MPI_IN_PLACE; }

#endif
