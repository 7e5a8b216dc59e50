/*
 * direct.h - large reductions inside a node: ranks say where their buffers are, read operands from each other's memory by
 * single copies, combine their shares of the elements, and write results there.
 *
 * Blocking calls with nothing else pending, once it is known that all ranks reach all others' memory (NODE_REACHES). 0, or a
 * code with words.
 */
#ifndef TERN_COLL_NODE_DIRECT_H
#define TERN_COLL_NODE_DIRECT_H

#include "coll/node/block.h"

int node_direct_reduce(struct node *, const struct coll_call *);         /* to a root, or to all */
int node_direct_reduce_scatter(struct node *, const struct coll_call *); /* blocks of one size */

#endif
