/*
 * direct.h - large reductions inside a node: ranks say where their buffers are, read operands from each other's memory by
 * single copies, combine their shares of the elements, and write results there (direct_reduce.c).
 *
 * Blocking calls with nothing else pending, once it is known that all ranks reach all others' memory.
 */
#ifndef TERN_COLL_NODE_DIRECT_H
#define TERN_COLL_NODE_DIRECT_H

#include "coll/node/block.h"

int node_direct_reduce(struct node *, const struct coll_call *);         /* to a root, or to all */
int node_direct_reduce_scatter(struct node *, const struct coll_call *); /* blocks of one size */

/* ---- for them: functions return 0 or a code with words ---- */

/* Two words of each rank. */
struct node_said {
    uint64_t place[NODE_RANKS_MAX][2];
};
int node_say_all(struct node *, uint64_t first, uint64_t second, struct node_said *);

/* Returns when all ranks have come here, or never will (node_failed). */
void node_meet(struct node *);

/* n bytes from, or to, `place` of a rank's memory. */
int node_fetch(struct node *, int rank, void *to, uint64_t place, size_t n);
int node_store(struct node *, int rank, uint64_t place, const void *from, size_t n);

#endif
