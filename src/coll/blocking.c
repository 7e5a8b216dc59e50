/* blocking.c - the collectives that the library itself needs, by name. */
#include "coll/call.h"

int coll_barrier(struct comm *c) { return coll_run(c, &(struct coll_call){.kind = COLL_BARRIER}); }

int coll_last_barrier(struct comm *c)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_BARRIER, .root = COLL_LAST_BARRIER});
}

int coll_bcast(struct comm *c, void *buf, int64_t count, struct type *t, int root)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_BCAST, .recvbuf = buf, .rcount = count, .rtype = t, .root = root});
}

int coll_allgather(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                   int64_t rcount, struct type *rtype)
{
    struct coll_call a = {COLL_ALLGATHER, sendbuf, recvbuf, scount, rcount, stype, rtype, .root = 0};
    return coll_run(c, &a);
}
