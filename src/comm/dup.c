/*
 * dup.c - duplicating communicators, now or started; see create.h.
 *
 * The context id comes from rank 0 by a broadcast. An intercommunicator's ranks 0 of
 * both groups first swap what each proposes; the broadcast to the others of the group
 * has its place in the order of collectives from the start, and begins when the swap
 * has ended.
 */
#include "base/err.h"
#include "coll/coll.h"
#include "comm/agree.h"
#include "comm/create.h"
#include "comm/talk.h"
#include "obj/hints.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"

#include <stdlib.h>

/* A duplication under way. */
struct dup {
    struct comm *parent, *made; /* made may be NULL: nothing is wanted here */
    struct news news;           /* what the broadcast tells: all of it, or the context id only */
    struct side mine;           /* of rank 0 of an intercommunicator's group ... */
    struct request send, recv;  /* ... which swaps it with the other's */
    int left;                   /* messages of the swap that have not ended */
    struct request *told;       /* the broadcast, and the whole */
};

int comm_dup_reserve(struct comm *parent, struct comm **made_p)
{
    struct rankmap *remote = parent->inter ? rankmap_ref(parent->map) : NULL;
    return comm_reserve(rankmap_ref(parent->local), remote, parent, made_p);
}

/* All that the new communicator needs is known. */
static int found(struct dup *d)
{
    struct comm *made = d->made;
    if (d->news.rc) return err_set(d->news.rc, "the leaders of the two groups could not agree on a context");
    if (!made) return 0;
    return made->inter ? comm_found_inter(made, d->news.ctx, d->news.within) : comm_found(made, d->news.ctx);
}

/* The broadcast has ended. Lock held. */
static void dup_done(struct request *r)
{
    struct dup *d = r->owner;
    if (!r->result.error) r->result.error = found(d);
    if (r->result.error && d->made) comm_discard(d->made);
    free(d);
}

/* ---- the swap between the ranks 0 of an intercommunicator ---- */

static void swapped(struct dup *d, int error)
{
    if (error) d->news.rc = error;
    if (--d->left) return;
    if (!d->news.rc) d->news.ctx = side_context(&d->mine, &d->news.remote);
    coll_go(d->told); /* may be the end of it all */
}

static void swap_done(struct request *r) { swapped(r->owner, r->result.error); }

static void start_message(struct dup *d, struct request *r, uint8_t kind, void *buf, size_t bytes)
{
    r->flags = REQ_INTERNAL | REQ_LAST_WORD;
    r->owner = d;
    talk_start(r, kind, d->parent, buf, bytes, 0, TALK_INTER);
    if (request_is_complete(r)) swapped(d, r->result.error);
    else r->done = swap_done;
}

static void start_swap(struct dup *d)
{
    d->mine = (struct side){.ctx = comm_fresh_ctx_of(d->parent), .leader = side_name(rankmap_at(d->parent->local, 0))};
    d->news.within = comm_fresh_ctx_of(d->parent->within);
    d->left = 2;
    start_message(d, &d->recv, REQ_RECV, &d->news.remote, sizeof d->news.remote);
    start_message(d, &d->send, REQ_SEND, &d->mine, sizeof d->mine);
}

/* ---- starting ---- */

/* The broadcast of the context in the parent, or of all the news in its local group. */
static int prepare(struct dup *d)
{
    struct comm *parent = d->parent, *group = parent->inter ? parent->within : parent;
    struct coll_call a = {.kind = COLL_BCAST, .rtype = type_of(MPI_BYTE)};
    a.recvbuf = parent->inter ? (void *)&d->news : &d->news.ctx;
    a.rcount = parent->inter ? (int64_t)sizeof d->news : (int64_t)sizeof d->news.ctx;
    int rc = coll_prepare(group, &a, &d->told);
    if (rc) return rc;
    d->told->done = dup_done;
    d->told->owner = d;
    d->told->comm = comm_ref(parent); /* users know of this one */
    comm_unref(group);
    return 0;
}

int comm_dup_start(struct comm *parent, struct comm *made, struct request **req_p)
{
    struct dup *d = calloc(1, sizeof *d);
    int rc = TERN_ERR_NOMEM;
    if (d) {
        d->parent = parent;
        d->made = made;
        rc = prepare(d);
    } else {
        err_set(rc, "no memory to duplicate a communicator");
    }
    if (rc) {
        if (made) comm_discard(made);
        free(d);
        return rc;
    }
    *req_p = d->told;
    lane_enter(parent->lane);
    if (!parent->inter && parent->rank == 0) d->news.ctx = comm_fresh_ctx_of(parent);
    if (parent->inter && parent->rank == 0) start_swap(d);
    else coll_go(d->told);
    lane_leave_to_itself(parent->lane, *req_p);
    lane_leave(parent->lane);
    return 0;
}

/* ---- now ---- */

static int reserve(struct comm *parent, struct info *hints, struct comm **made_p)
{
    int rc = comm_dup_reserve(parent, made_p);
    if (rc || !hints || !(rc = comm_hints_set(*made_p, hints))) return rc;
    comm_discard(*made_p);
    return rc;
}

static int inter_dup(struct comm *parent, struct info *hints, struct comm **out)
{
    struct request *r;
    struct comm *made;
    int rc = reserve(parent, hints, &made);
    if (!rc) rc = comm_dup_start(parent, made, &r);
    if (rc) return rc;
    rc = pt_wait(r);
    pt_retire(r);
    if (!rc) *out = made;
    return rc;
}

int comm_dup(struct comm *parent, struct info *hints, struct comm **out)
{
    if (parent->inter) return inter_dup(parent, hints, out);
    uint64_t ctx = parent->rank == 0 ? comm_fresh_ctx_of(parent) : 0;
    int rc = coll_bcast(parent, &ctx, sizeof ctx, type_of(MPI_BYTE), 0);
    struct comm *made;
    if (!rc) rc = reserve(parent, hints, &made);
    if (rc) return rc;
    rc = comm_found(made, ctx);
    if (rc) comm_discard(made);
    else *out = made;
    return rc;
}
