/*
 * tree_reduce.h - combining up trees, piece by piece: what reduce does, and allreduce before it goes down again.
 *
 * A vector is cut into pieces of coll_segment bytes (or not at all); piece i goes up tree i modulo the number of trees.
 * What children send waits in scratch, and away from the root so does what is combined: a few pieces of each, used in
 * turn, so that scratch does not grow with the vector.
 */
#ifndef TERN_COLL_ALG_TREE_REDUCE_H
#define TERN_COLL_ALG_TREE_REDUCE_H

#include "coll/alg/alg.h"

enum { TREE_PIECES = 8 }; /* under way at a time */

struct tree_reduce {
    struct goal_build *b;
    const struct coll_shape *s;
    struct coll_tree t[2];
    int trees;
    int64_t seg;               /* bytes of a piece */
    bool keeps;                /* results stay, in the receive buffer; else dst is scratch used in turn */
    struct goal_mem dst;
    struct goal_mem in[TREE_CHILDREN_MAX]; /* room for what child k sends */
    goal_id free[TREE_PIECES]; /* the places of that turn are free again after this */
};

/* Trees from rank `top`; whole: one piece. everywhere: the receive buffer may be used at all ranks. */
void tree_reduce_open(struct tree_reduce *, struct goal_build *, const struct coll_shape *, const struct coll_given *,
                      enum coll_tree_kind, int top, bool whole, bool everywhere);

static inline int64_t tree_reduce_end(const struct tree_reduce *c, int64_t lo)
{
    return c->seg < c->s->bytes - lo ? lo + c->seg : c->s->bytes;
}

/* The tree of the piece that begins at byte lo. */
static inline const struct coll_tree *tree_reduce_tree(const struct tree_reduce *c, int64_t lo)
{
    return &c->t[lo / c->seg % c->trees];
}

/*
 * The piece at lo: what the children send is combined with my own and goes up; at the top it is put into the receive
 * buffer. Returns the operation that ends it here.
 */
goal_id tree_reduce_piece(struct tree_reduce *, int64_t lo, int tag);

#endif
