/* talk.c - see talk.h. */
#include "comm/talk.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"

#include <stdlib.h>

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

/* A message without bytes says that there is no memory on the way from the root. Here as well: then the bytes are not taken (buf is NULL). */
static int recv_or_hear(struct comm *c, void *buf, size_t bytes, int rank)
{
    struct request r = {0};
    talk_start(&r, REQ_RECV, c, buf, buf ? bytes : 0, rank, TALK_CREATE);
    int rc = pt_wait(&r);
    if (!buf && (!rc || rc == TERN_ERR_TRUNCATE)) return err_set(TERN_ERR_NOMEM, "no memory for %zu bytes from rank %d", bytes, rank);
    if (!rc && r.result.bytes != (int64_t)bytes) return err_set(TERN_ERR_NOMEM, "rank %d had no memory to pass on %zu bytes", rank, bytes);
    return rc;
}

int talk_spread_new(struct comm *c, void **buf, size_t bytes, int root)
{
    int32_t size = c->size, me = (c->rank - root + size) % size, bit = talk_lowest_bit(me, size);
    int own = 0, rc = 0;
    if (me) {
        *buf = calloc(1, bytes);
        own = err_keep(buf, recv_or_hear(c, *buf, bytes, (me - bit + root) % size));
    }
    size_t some = own ? 0 : bytes;
    while ((!own || own == TERN_ERR_NOMEM) && !rc && (bit >>= 1))
        if (me + bit < size) rc = talk_send(c, *buf, some, (me + bit + root) % size, TALK_CREATE);
    if (own) {
        free(*buf);
        *buf = NULL;
        err_recall(buf, own);
    }
    return own ? own : rc;
}
