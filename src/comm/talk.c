/* talk.c - see talk.h. */
#include "comm/talk.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"

#include <stdlib.h>
#include <time.h>

enum { TRIES = 100 }; /* 10 ms apart */

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

int talk_recv_some(struct comm *c, void *buf, size_t room, int rank, int tag, size_t *bytes_p)
{
    struct request r = {0};
    talk_start(&r, REQ_RECV, c, buf, room, rank, tag);
    int rc = pt_wait(&r);
    *bytes_p = (size_t)r.result.bytes;
    return rc;
}

/* A rank of another job may send what it should not. */
static int check_length(size_t come, size_t bytes, int rank)
{
    return come == bytes ? 0 : err_set(TERN_ERR_SYSTEM, "rank %d has sent %zu bytes in place of %zu", rank, come, bytes);
}

int talk_recv(struct comm *c, void *buf, size_t bytes, int rank, int tag)
{
    size_t come;
    int rc = talk_recv_some(c, buf, bytes, rank, tag, &come);
    return rc ? rc : check_length(come, bytes, rank);
}

int talk_swap(struct comm *c, const void *out, size_t out_bytes, void *in, size_t in_bytes, int rank, int tag)
{
    struct request r = {0}, s = {0};
    talk_start(&r, REQ_RECV, c, in, in_bytes, rank, tag);
    talk_start(&s, REQ_SEND, c, out, out_bytes, rank, tag);
    int rc = pt_wait(&s), rc_recv = pt_wait(&r); /* both: the buffers are ours */
    if (!rc) rc = rc_recv;
    return rc ? rc : check_length((size_t)r.result.bytes, in_bytes, rank);
}

/* ---- from one to all, by a binomial tree ---- */

/*
 * In place of the bytes a rank that has not got them, or has no memory for them, passes on its code, in one byte; nothing else that is
 * spread has one. Without memory here (buf is NULL) the bytes are not taken.
 */
static int recv_or_hear(struct comm *c, void *buf, size_t bytes, int rank)
{
    size_t come;
    int rc = talk_recv_some(c, buf, buf ? bytes : 0, rank, TALK_CREATE, &come);
    if (!buf && (!rc || rc == TERN_ERR_TRUNCATE)) return err_set(TERN_ERR_NOMEM, "no memory for %zu bytes from rank %d", bytes, rank);
    if (rc || come == bytes) return rc;
    int code = come == 1 ? *(int8_t *)buf : TERN_ERR_SYSTEM;
    if (code == TERN_ERR_NOMEM) return err_set(code, "rank %d had no memory to pass on %zu bytes", rank, bytes);
    return err_set(code < 0 ? code : TERN_ERR_SYSTEM, "rank %d has not got %zu bytes to pass on", rank, bytes);
}

/* To one rank below, which waits. If memory is out here nothing was sent, and the send is repeated, for a second. */
static void pass_on_to(struct comm *c, const void *buf, size_t bytes, int rank)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    for (int tries = 0; tries < TRIES && talk_send(c, buf, bytes, rank, TALK_CREATE) == TERN_ERR_NOMEM; tries++) nanosleep(&pause, NULL);
}

/* To all below: `code`, or the bytes. Who is gone is passed over, as the others wait. */
static void pass_on(struct comm *c, const void *buf, size_t bytes, int code, int32_t me, int root)
{
    int8_t word = (int8_t)code;
    for (int32_t size = c->size, bit = talk_lowest_bit(me, size); bit >>= 1;)
        if (me + bit < size) pass_on_to(c, code ? &word : buf, code ? 1 : bytes, (me + bit + root) % size);
}

/* The rank that has it first. */
static int above(const struct comm *c, int32_t me, int root) { return (me - talk_lowest_bit(me, c->size) + root) % c->size; }

int talk_spread(struct comm *c, void *buf, size_t bytes, int root)
{
    int32_t me = (c->rank - root + c->size) % c->size;
    int rc = me ? err_keep(&me, recv_or_hear(c, buf, bytes, above(c, me, root))) : 0;
    pass_on(c, buf, bytes, rc, me, root);
    err_recall(&me, rc);
    return rc;
}

int talk_spread_new(struct comm *c, void **buf, size_t bytes, int root)
{
    int32_t me = (c->rank - root + c->size) % c->size;
    if (me) *buf = calloc(1, bytes);
    int rc = me ? err_keep(&me, recv_or_hear(c, *buf, bytes, above(c, me, root))) : 0;
    pass_on(c, *buf, bytes, rc, me, root);
    err_recall(&me, rc);
    if (rc) {
        free(*buf);
        *buf = NULL;
    }
    return rc;
}
