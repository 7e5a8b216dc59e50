/* blocks.c - see blocks.h. */
#include "coll/node/blocks.h"

static struct node_block all(struct node_block b, bool each, int ranks)
{
    if (each) b.count *= ranks;
    return b;
}

struct node_block node_out_all(const struct coll_call *a, int me, int ranks)
{
    int other = me ? 0 : 1; /* that it has something for, if for any */
    if (coll_reduces(a->kind)) return node_operand(a, ranks);
    if (NODE_TO_ROOT >> a->kind & 1) other = a->root;
    if (other == me || !node_moves(a, me, other)) return (struct node_block){0};
    return all(node_out(a, me, 0), NODE_SENDS_EACH >> a->kind & 1, ranks);
}

struct node_block node_in_all(const struct coll_call *a, int me, int ranks)
{
    int other = NODE_FROM_ROOT >> a->kind & 1 ? a->root : me ? 0 : 1;
    int64_t before;
    if (a->kind == COLL_REDUCE && me != a->root) return (struct node_block){0};
    if (coll_reduces(a->kind)) return node_result(a, me, &before);
    if (other == me || !node_moves(a, other, me)) return (struct node_block){0};
    return all(node_in(a, 0), NODE_GETS_EACH >> a->kind & 1, ranks);
}
