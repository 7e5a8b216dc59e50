/* talk.c - see talk.h. */
#include "comm/talk.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"

void talk_start(struct request *r, uint8_t kind, struct comm *c, const void *buf, size_t bytes, int rank, int tag)
{
    pt_prepare(r, kind, c, PT_COLL, buf, (int64_t)bytes, type_of(MPI_BYTE), rank, tag, PT_STANDARD);
    lane_enter(c->lane);
    if (kind == REQ_SEND) pt_send_start(r);
    else pt_recv_start(r);
    lane_leave(c->lane);
}

int talk_send(struct comm *c, const void *buf, size_t bytes, int rank, int tag)
{
    struct request r = {0};
    talk_start(&r, REQ_SEND, c, buf, bytes, rank, tag);
    return pt_wait(&r);
}

int talk_recv(struct comm *c, void *buf, size_t bytes, int rank, int tag)
{
    struct request r = {0};
    talk_start(&r, REQ_RECV, c, buf, bytes, rank, tag);
    return pt_wait(&r);
}

int talk_swap(struct comm *c, const void *out, size_t out_bytes, void *in, size_t in_bytes, int rank, int tag)
{
    struct request r = {0}, s = {0};
    talk_start(&r, REQ_RECV, c, in, in_bytes, rank, tag);
    talk_start(&s, REQ_SEND, c, out, out_bytes, rank, tag);
    int rc = pt_wait(&s), rc_recv = pt_wait(&r); /* both: the buffers are ours */
    return rc ? rc : rc_recv;
}

/* A binomial tree. */
int talk_spread(struct comm *c, void *buf, size_t bytes, int root)
{
    int32_t size = c->size, me = (c->rank - root + size) % size, bit = talk_lowest_bit(me, size);
    int rc = 0;
    if (me) rc = talk_recv(c, buf, bytes, (me - bit + root) % size, TALK_CREATE);
    while (!rc && (bit >>= 1))
        if (me + bit < size) rc = talk_send(c, buf, bytes, (me + bit + root) % size, TALK_CREATE);
    return rc;
}
