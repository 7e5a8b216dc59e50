/* pair.c - a send and a receive as one operation; see pair.h. */
#include "pt2pt/pair.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "type/cursor.h"

#include <stdlib.h>

static const struct request_result from_nobody = {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};

/* ---- blocking ---- */

int pair_run(struct comm *c, const struct pair_send *s, const struct pair_recv *r, struct request_result *result)
{
    if (r->source == MPI_PROC_NULL) {
        *result = from_nobody;
        return pt_send(c, s->buf, s->count, s->type, s->dest, s->tag, PT_STANDARD);
    }
    if (s->dest == MPI_PROC_NULL) return pt_recv(c, r->buf, r->count, r->type, r->source, r->tag, result);
    struct request send = {0}, recv = {0};
    pt_prepare(&recv, REQ_RECV, c, PT_USER, r->buf, r->count, r->type, r->source, r->tag, PT_STANDARD);
    pt_prepare(&send, REQ_SEND, c, PT_USER, s->buf, s->count, s->type, s->dest, s->tag, PT_STANDARD);
    lane_enter(c->lane);
    pt_recv_start(&recv); /* first: a message to oneself finds it */
    pt_send_start(&send);
    lane_leave(c->lane);
    int rc = pt_wait(&send);
    if (rc) pt_cancel(&recv); /* the other side, gone, will not send */
    int rrc = pt_wait(&recv);
    *result = recv.result;
    return rc ? rc : rrc;
}

/* ---- nonblocking ---- */

/* One half is over: lane_finish called this. The last one ends the whole. Lock held. */
static void half_done(struct request *half)
{
    struct request *whole = half->owner;
    if (half->kind == REQ_RECV) {
        int error = whole->result.error;
        whole->result = half->result;
        if (!half->result.error) whole->result.error = error;
    } else if (half->result.error) {
        whole->result.error = half->result.error;
    }
    if (--whole->cookie[0] == 0) lane_finish(whole, whole->result.error);
}

/* A half, freed by its end. */
static struct request *new_half(struct request *whole, uint8_t kind)
{
    struct request *r = request_new(kind);
    if (!r) return NULL;
    r->flags |= REQ_INTERNAL;
    r->course |= REQ_DETACHED;
    r->done = half_done;
    r->owner = whole;
    return r;
}

static struct request *new_whole(struct comm *c)
{
    struct request *w = request_new(REQ_PAIR);
    if (!w) return NULL;
    w->comm = comm_ref(c);
    w->type = type_of(MPI_BYTE); /* the data is the halves' */
    w->result = from_nobody;
    return w;
}

static void drop_whole(struct request *w)
{
    comm_unref(w->comm);
    request_free(w);
}

static void start_halves(struct request *whole, struct request *recv, const struct pair_recv *r, struct request *send,
                         const struct pair_send *s)
{
    struct comm *c = whole->comm;
    lane_enter(c->lane);
    lane_going(c->lane);
    if (!recv && !send) lane_finish(whole, 0);
    if (recv) {
        type_ref(r->type);
        pt_prepare(recv, REQ_RECV, comm_ref(c), PT_USER, r->buf, r->count, r->type, r->source, r->tag, PT_STANDARD);
        pt_recv_start(recv);
    }
    if (send) {
        type_ref(s->type);
        pt_prepare(send, REQ_SEND, comm_ref(c), PT_USER, s->buf, s->count, s->type, s->dest, s->tag, PT_STANDARD);
        pt_send_start(send);
    }
    lane_leave_to_itself(c->lane, whole);
    lane_leave(c->lane);
}

/* `done` and `owner`: for the end of the whole, may be NULL. */
static int start_whole(struct comm *c, const struct pair_send *s, const struct pair_recv *r, void (*done)(struct request *),
                       void *owner, struct request **req_p)
{
    bool sends = s->dest != MPI_PROC_NULL, receives = r->source != MPI_PROC_NULL;
    struct request *whole = new_whole(c);
    if (!whole) return TERN_ERR_NOMEM;
    struct request *recv = receives ? new_half(whole, REQ_RECV) : NULL;
    struct request *send = sends ? new_half(whole, REQ_SEND) : NULL;
    if ((receives && !recv) || (sends && !send)) {
        if (recv) request_free(recv);
        if (send) request_free(send);
        drop_whole(whole);
        return TERN_ERR_NOMEM;
    }
    whole->done = done;
    whole->owner = owner;
    whole->cookie[0] = (uint64_t)sends + receives;
    start_halves(whole, recv, r, send, s);
    *req_p = whole;
    return 0;
}

int pair_start(struct comm *c, const struct pair_send *s, const struct pair_recv *r, struct request **req_p)
{
    return start_whole(c, s, r, NULL, NULL, req_p);
}

/* ---- one buffer ---- */

/* The data of r's buffer, packed; `few` is used if it fits. NULL with words when memory is out. */
static void *pack_aside(const struct pair_recv *r, void *few, size_t room, struct pair_send *s)
{
    struct type_cursor cursor;
    type_cursor_init(&cursor, r->type, r->count, r->buf);
    void *copy = cursor.total <= room ? few : malloc(cursor.total);
    if (!copy) {
        err_set(TERN_ERR_NOMEM, "no memory to put %zu bytes aside", cursor.total);
        return NULL;
    }
    s->buf = copy;
    s->count = (int64_t)cursor.total;
    s->type = type_of(MPI_BYTE);
    type_pack(&cursor, copy, cursor.total);
    return copy;
}

int pair_replace(struct comm *c, int dest, int sendtag, const struct pair_recv *r, struct request_result *result)
{
    char few[1024];
    struct pair_send s = {.dest = dest, .tag = sendtag};
    void *copy = pack_aside(r, few, sizeof few, &s);
    if (!copy) return TERN_ERR_NOMEM;
    int rc = pair_run(c, &s, r, result);
    if (copy != few) free(copy);
    return rc;
}

static void free_copy(struct request *whole) { free(whole->owner); }

int pair_start_replace(struct comm *c, int dest, int sendtag, const struct pair_recv *r, struct request **req_p)
{
    char none;
    struct pair_send s = {.dest = dest, .tag = sendtag};
    void *copy = pack_aside(r, &none, 0, &s);
    if (!copy) return TERN_ERR_NOMEM;
    if (copy == &none) copy = NULL;
    int rc = start_whole(c, &s, r, free_copy, copy, req_p);
    if (rc) free(copy);
    return rc;
}
