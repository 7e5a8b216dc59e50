/*
 * tree.h - the trees along which collectives go up and down, seen from one rank.
 *
 * Ranks are counted from the root, `first`, which has number 0. In all trees but those of the pair a subtree spans
 * neighbouring numbers and its root has the least of them, so that combining my own part with those of my children one
 * after the other keeps the order of the numbers. The pair (Sanders, Speck and Traeff) are two in-order trees over the
 * numbers from 1, hung below number 0: who has children in one has none in the other, so that each carries half of the
 * data at full speed; the order is kept if what comes from a child of lesser number is combined from the left.
 */
#ifndef TERN_COLL_ALG_TREE_H
#define TERN_COLL_ALG_TREE_H

#include <stdbool.h>

struct coll_shape;
struct coll_given;

enum { TREE_RADIX_MAX = 16, TREE_CHILDREN_MAX = 128 }; /* 15 children at each of 8 levels: 2^31 ranks; 31 of radix 2 */

struct coll_tree {
    int vr, parent; /* my number; rank of my parent, -1 at the root */
    int span;       /* numbers in my subtree, me included: vr .. vr + span - 1; 0: they are not neighbours */
    int children;   /* ascending; child k spans the numbers child_vr[k] .. child_vr[k] + child_span[k] - 1 */
    int child[TREE_CHILDREN_MAX], child_vr[TREE_CHILDREN_MAX], child_span[TREE_CHILDREN_MAX];
};

void coll_tree_binomial(struct coll_tree *, int rank, int size, int first);
void coll_tree_knomial(struct coll_tree *, int rank, int size, int first, int radix); /* radix 2 to TREE_RADIX_MAX */
void coll_tree_chain(struct coll_tree *, int rank, int size, int first);
void coll_tree_chains(struct coll_tree *, int rank, int size, int first, int n); /* n chains below the root */
void coll_tree_binary(struct coll_tree *, int rank, int size, int first);        /* balanced */
void coll_tree_pair(struct coll_tree *, int rank, int size, int first, bool second);

/*
 * Binomial among the leaders of each level (levels.h): over the nodes, the domains of each node, the ranks of each domain.
 * Spans are 0, numbers only tell the order of the children. In rank order if `first` is 0 and the ranks of every group are
 * neighbours.
 */
void coll_tree_levels(struct coll_tree *, const struct coll_shape *, const struct coll_given *, int first);

/* The same by name, with the parameters of a shape. */
enum coll_tree_kind { TREE_BINOMIAL, TREE_KNOMIAL, TREE_CHAIN, TREE_CHAINS, TREE_BINARY, TREE_PAIR, TREE_LEVELS };

/* Makes one tree, of the pair two; returns how many. */
int coll_tree_make(struct coll_tree t[2], enum coll_tree_kind, const struct coll_shape *, const struct coll_given *,
                   int first);

#endif
