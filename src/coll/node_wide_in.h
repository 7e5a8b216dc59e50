/*
 * node_wide_in.h - between the files of node_wide.h: an operation and its halves.
 */
#ifndef TERN_COLL_NODE_WIDE_IN_H
#define TERN_COLL_NODE_WIDE_IN_H

#include "coll/node_block.h"
#include "coll/node_direct.h"

/* An operation, at one slice of the vector, or of each block. */
struct node_pass {
    struct node *n;
    const struct coll_call *a;
    struct node_flat in, out; /* what this rank gives and gets; `at` is NULL if that is nothing */
    size_t block;             /* bytes of the vector, or of a block */
    uint32_t seq;
    size_t at, len; /* the slice */
    int lacks;      /* a code: this rank has no memory for packed copies */
};

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
