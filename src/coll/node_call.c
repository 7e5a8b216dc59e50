/* node_call.c - which calls go through the node-local block, and how. */
#include "coll/node.h"

/* The largest contribution of a rank in this call: what it leaves in its slot. */
static int64_t contribution(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    bool for_each = a->kind == COLL_ALLTOALL || a->kind == COLL_REDUCE_SCATTER_BLOCK;
    return for_each ? bytes * c->size : bytes;
}

/* By things that all ranks know alike only. */
static bool suits(const struct coll_call *a)
{
    if (coll_has_neighbors(a->kind)) return false;
    if (coll_has_blocks(a->kind)) return false; /* not by the arrays: they are there at some ranks only */
    return !coll_reduces(a->kind) || (a->rtype->contig && a->rtype->size > 0);
}

static int dispatch(struct node *n, const struct coll_call *a)
{
    switch (a->kind) {
    case COLL_BARRIER: return node_barrier(n);
    case COLL_BCAST: return node_bcast(n, a->recvbuf, a->rcount, a->rtype, a->root);
    case COLL_REDUCE: return node_reduce(n, a->sendbuf, a->recvbuf, a->rcount, a->rtype, a->op, a->root, false);
    case COLL_ALLREDUCE: return node_reduce(n, a->sendbuf, a->recvbuf, a->rcount, a->rtype, a->op, 0, true);
    case COLL_GATHER:
        return node_gather(n, a->sendbuf, a->scount, a->stype, a->recvbuf, a->rcount, a->rtype, a->root, false);
    case COLL_ALLGATHER:
        return node_gather(n, a->sendbuf, a->scount, a->stype, a->recvbuf, a->rcount, a->rtype, 0, true);
    case COLL_SCATTER:
        return node_scatter(n, a->sendbuf, a->scount, a->stype, a->recvbuf, a->rcount, a->rtype, a->root);
    case COLL_ALLTOALL:
        return node_alltoall(n, a->sendbuf, a->scount, a->stype, a->recvbuf, a->rcount, a->rtype);
    case COLL_REDUCE_SCATTER_BLOCK:
        return node_reduce_scatter_block(n, a->sendbuf, a->recvbuf, a->rcount, a->rtype, a->op);
    default: return node_scan(n, a->sendbuf, a->recvbuf, a->rcount, a->rtype, a->op, a->kind == COLL_EXSCAN);
    }
}

bool node_run(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    if (unlikely(!suits(a))) return false;
    struct node *n = node_for(c, contribution(c, a, bytes), rc_p);
    if (!n) return *rc_p != 0;
    *rc_p = dispatch(n, a);
    return true;
}
