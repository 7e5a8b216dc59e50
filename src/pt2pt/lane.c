/* lane.c - a lane's life, and the end of its operations. */
#include "pt2pt/lane.h"
#include "base/err.h"
#include "base/var.h"
#include "pt2pt/call_log.h"
#include "pt2pt/doubt.h"
#include "pt2pt/listen.h"
#include "pt2pt/lost.h"
#include "pt2pt/rndv/ready.h"
#include "type/type.h"

#include <stdio.h>
#include <string.h>

/* ---- life ---- */

/* Each registers the steps of its own file. */
static void (*const steps[])(struct lane *) = {pending_open, offer_open, stream_open, bulk_open,
                                               chores_open,  lost_open,  call_log_open, doubt_open};

void lane_open(struct lane *l, uint32_t number)
{
    memset(l, 0, sizeof *l);
    l->eager_now = INT64_MAX;
    list_init(&l->contexts);
    l->number = number;
    list_init(&l->waiters);
    ids_open(&l->ids, number);
    progress_init(&l->steps);
    listen_open(l);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) steps[i](l);
    match_pool_init(&l->pool, SIZE_MAX, (size_t)var_int(VAR_MATCH_HEAD)); /* bounded by the peers' credits */
}

void lane_close(struct lane *l)
{
    inbox_drop(l);
    match_pool_fini(&l->pool);
    ids_close(&l->ids);
}

void lane_fatal(const char *what)
{
    char line[700];
    snprintf(line, sizeof line, "rank %u cannot go on: %s: %s. The job is ended.", proc_self()->rank, what, err_words());
    proc_abort(1, line);
}

/* ---- completion ---- */

static void end_course(struct request *r)
{
    if (r->course & REQ_READY) ready_withdraw(r);
    if (!(r->course & REQ_BACKGROUND)) return;
    r->course &= (uint8_t)~REQ_BACKGROUND;
    background_over();
}

/* What is done whoever may wait for it. True: the request is gone. */
static inline bool end(struct request *r, int error)
{
    bool gone = r->done && (r->flags & REQ_LAST_WORD);
    r->result.error = error;
    lane_has_read(r);
    if (unlikely(r->course & (REQ_BACKGROUND | REQ_READY))) end_course(r);
    if (unlikely(r->id)) ids_drop(&lane_of(r)->ids, r);
    if (r->done) r->done(r);
    return gone;
}

/* Of one that the user has let go. */
static TERN_COLD void free_detached(struct request *r, struct comm *c)
{
    if (r->flags & REQ_HOOKED && r->hooks->drop) r->hooks->drop(r);
    type_unref(r->type);
    request_free(r);
    comm_unref(c);
}

/* A thread may wait for the request, or for what its end brings about in its lane. The communicator may go with `done`, or with the
 * thread that waits: its lane is looked up before. */
static inline void finish_among_threads(struct request *r, int error)
{
    struct comm *c = r->comm;
    struct lane *l = c ? c->lane : NULL;
    bool detached = r->course & REQ_DETACHED;
    bool gone = end(r, error);
    if (likely(l != NULL)) l->changed = true;
    if (likely(!gone)) waits_finish(r);
    if (unlikely(detached)) free_detached(r, c);
}

void lane_finish(struct request *r, int error)
{
    if (unlikely(waits_threaded())) {
        finish_among_threads(r, error);
        return;
    }
    struct comm *c = r->comm;
    bool detached = r->course & REQ_DETACHED;
    /* release: everything before is seen by who finds the request complete */
    if (!end(r, error)) atomic_store_explicit(&r->complete, REQUEST_COMPLETE, memory_order_release);
    if (unlikely(detached)) free_detached(r, c);
}
