/* epoch.c - see epoch.h. */
#include "rma/epoch.h"
#include "base/err.h"
#include "coll/coll.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "rma/checking.h"
#include "rma/far.h"
#include "rma/near.h"
#include "transport/peer.h"

#include <mpi.h>
#include <stdlib.h>

#define CALLS_A_LOOK 8

static int wrong_order(const char *why) { return err_set(TERN_ERR_WIN_SYNC, "%s", why); }

/* Operations of the epoch before are not taken for those of the next. */
static void next_epoch(struct win *w)
{
    uint32_t epoch = atomic_load_explicit(&w->epoch, memory_order_relaxed) + 1;
    atomic_store_explicit(&w->epoch, epoch ? epoch : 1, memory_order_relaxed); /* 0 is that of closed targets */
}

static void close_target(struct win_target *t)
{
    t->open = WIN_CLOSED;
    t->held = t->unchecked = false;
    atomic_store_explicit(&t->epoch, 0, memory_order_relaxed);
}

/* ---- admission ---- */

static int take(struct win_target *t, enum win_lock_mode mode)
{
    int rc = t->exposure ? near_take(t, 0, mode) : far_lock(t, mode);
    t->held = !rc;
    return rc;
}

static void open_target(struct win *w, struct win_target *t, enum win_open open)
{
    t->open = open;
    atomic_store_explicit(&t->epoch, atomic_load_explicit(&w->epoch, memory_order_relaxed), memory_order_relaxed);
}

/* The first of some ranks whose process is lost; NULL: none. */
static const struct peer *first_lost(const struct win *w, const int32_t *rank, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const struct peer *p = peer_known(comm_index(w->comm, rank[i]));
        if (p && p->lost) return p;
    }
    return NULL;
}

/* Where one of the targets is lost the epoch fails, and others may have given it up already: nobody is waited for. */
static bool has_posted(void *target)
{
    const struct win_target *t = target;
    return t->posts > 0 || t->held || first_lost(t->win, t->win->started, t->win->starts);
}

/* The target has called MPI_Win_post. */
static int await_post(struct win_target *t)
{
    if (t->unchecked || t->held) return 0;
    lane_wait(t->win->comm->lane, has_posted, t, NULL);
    if (t->held) return 0; /* another thread has met it */
    if (!t->posts) return err_set(TERN_ERR_PEER, "%s", first_lost(t->win, t->win->started, t->win->starts)->lost);
    t->posts--;
    t->held = true; /* its post */
    return 0;
}

static int admit_locked_all(struct win *w, struct win_target *t)
{
    t->unchecked = w->unchecked;
    int rc = t->unchecked ? 0 : take(t, WIN_LOCK_SHARED);
    if (!rc) open_target(w, t, WIN_LOCKED_SHARED);
    return rc;
}

int epoch_admit(struct win *w, struct win_target *t)
{
    int rc;
    switch (t->open) {
    case WIN_LOCKED_SHARED:
    case WIN_LOCKED_EXCLUSIVE: open_target(w, t, t->open); return 0;
    case WIN_STARTED:
        rc = await_post(t);
        if (!rc) open_target(w, t, WIN_STARTED);
        return rc;
    case WIN_CLOSED: break;
    }
    if (w->access == WIN_LOCK_ALL) return admit_locked_all(w, t);
    if (w->access == WIN_FENCE) {
        atomic_store_explicit(&t->epoch, atomic_load_explicit(&w->epoch, memory_order_relaxed), memory_order_relaxed);
        w->fence_used = true;
        return 0;
    }
    return err_set(TERN_ERR_WIN_SYNC, "no access epoch to rank %d is open: it begins with MPI_Win_fence, MPI_Win_start, MPI_Win_lock or "
                   "MPI_Win_lock_all", t->rank);
}

/* ---- completion ---- */

/* What near origins have stored is seen by whoever is told of it later. */
static void order_stores(void) { atomic_thread_fence(memory_order_seq_cst); }

/* At this process, and at the target. */
static int flush_locally(struct win_target *t)
{
    int rc = near_flush(t);
    return rc ? rc : far_flush_local(t);
}

static int flush_operations(struct win_target *t)
{
    int rc = near_flush(t), far = far_flush(t);
    return rc ? rc : far;
}

static int flush_target(struct win_target *t)
{
    if (t->exposure && t->peer->lost) return err_set(TERN_ERR_PEER, "%s", t->peer->lost);
    return flush_operations(t);
}

/* A program may wait in a loop of calls that need no message for what others do by messages: for a word that they set, for a
 * lock. So one call in some makes progress. Lane held. */
static void look_around(struct win *w)
{
    if (++w->calls % CALLS_A_LOOK == 0) lane_poll(w->comm->lane);
}

/* All of them, also behind one that fails; the first code. Another thread may make the table grow while this one waits: then once
 * more. */
static int flush_each(struct win *w, int (*flush)(struct win_target *))
{
    int first = 0;
    uint32_t room;
    do {
        room = w->room;
        for (uint32_t i = 0; i < w->room && room == w->room; i++) {
            int rc = w->targets[i] ? flush(w->targets[i]) : 0;
            if (rc && !first) first = rc;
        }
    } while (room != w->room);
    return first;
}

/* ---- fence ---- */

static int may_fence(const struct win *w)
{
    if (w->access == WIN_START) return wrong_order("MPI_Win_complete must end the epoch of MPI_Win_start before");
    if (w->access == WIN_LOCK_ALL || w->locks) return wrong_order("locks are held, which must be given back before");
    if (w->exposed) return wrong_order("MPI_Win_wait must end the epoch of MPI_Win_post before");
    return 0;
}

static int end_fence(struct win *w)
{
    int rc = may_fence(w);
    if (rc) return rc;
    order_stores();
    rc = flush_each(w, flush_operations);
    next_epoch(w);
    w->access = WIN_NO_ACCESS;
    return rc;
}

int win_fence(struct win *w, int assertion)
{
    struct lane *l = w->comm->lane;
    lane_enter(l);
    int rc = end_fence(w);
    lane_leave(l);
    int met = rc == TERN_ERR_WIN_SYNC ? 0 : coll_barrier(w->comm); /* also behind a failure: the others wait */
    if (unlikely(w->checking) && rc != TERN_ERR_WIN_SYNC) checking_fence(w);
    if (rc || met) return rc ? rc : met;
    lane_enter(l);
    if (!(assertion & MPI_MODE_NOSUCCEED)) w->access = WIN_FENCE;
    w->fence_used = false;
    lane_leave(l);
    return 0;
}

/* An epoch of another kind begins: the one that MPI_Win_fence has perhaps begun does not. */
static int leave_fence(struct win *w)
{
    if (w->access != WIN_FENCE) return 0;
    if (w->fence_used) return wrong_order("the epoch of MPI_Win_fence goes on, as operations have followed it; MPI_Win_fence ends it");
    w->access = WIN_NO_ACCESS;
    next_epoch(w);
    return 0;
}

/* ---- start, complete, post, wait ---- */

/* The ranks in the window of a group's members, malloc'ed; NULL with words. */
static int32_t *ranks_of(const struct win *w, const struct group *g)
{
    int32_t n = g->map->size, *rank = malloc((size_t)(n ? n : 1) * sizeof *rank);
    if (!rank) {
        err_set(TERN_ERR_NOMEM, "no memory for the ranks of a group");
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        rank[i] = rankmap_find(w->comm->map, rankmap_at(g->map, i));
        if (rank[i] >= 0) continue;
        err_set(TERN_ERR_GROUP, "member %d of the group is not in the window", i);
        free(rank);
        return NULL;
    }
    return rank;
}

static int open_started(struct win *w, bool unchecked)
{
    for (int32_t i = 0; i < w->starts; i++) {
        struct win_target *t = win_target(w, w->started[i]);
        if (!t) return err_code();
        t->open = WIN_STARTED;
        t->unchecked = unchecked;
        t->held = false;
    }
    return 0;
}

static void end_start(struct win *w)
{
    for (int32_t i = 0; i < w->starts; i++) {
        struct win_target *t = win_target_known(w, w->started[i]);
        if (t) close_target(t);
    }
    free(w->started);
    w->started = NULL;
    w->starts = 0;
    w->access = WIN_NO_ACCESS;
    next_epoch(w);
}

static int start(struct win *w, const struct group *g, int assertion)
{
    if (w->access == WIN_START) return wrong_order("an epoch of MPI_Win_start is open already");
    if (w->access == WIN_LOCK_ALL || w->locks) return wrong_order("locks are held, which must be given back before");
    int rc = leave_fence(w);
    int32_t *ranks = rc ? NULL : ranks_of(w, g);
    if (!ranks) return rc ? rc : err_code();
    w->started = ranks;
    w->starts = g->map->size;
    w->access = WIN_START;
    next_epoch(w);
    rc = open_started(w, assertion & MPI_MODE_NOCHECK);
    if (rc) end_start(w);
    return rc;
}

int win_start(struct win *w, const struct group *g, int assertion)
{
    lane_enter(w->comm->lane);
    int rc = start(w, g, assertion);
    lane_leave(w->comm->lane);
    return rc;
}

static int complete_one(struct win_target *t)
{
    int rc = await_post(t);
    int near = near_flush(t);
    int told = !rc && unlikely(t->win->checking) ? far_flush(t) : 0; /* asks for conflicts */
    if (!rc) rc = far_complete(t);
    return rc ? rc : near ? near : told;
}

static int complete(struct win *w)
{
    int first = 0;
    if (w->access != WIN_START) return wrong_order("no epoch of MPI_Win_start is open");
    order_stores();
    for (int32_t i = 0; i < w->starts; i++) {
        int rc = complete_one(win_target_known(w, w->started[i]));
        if (rc && !first) first = rc;
    }
    end_start(w);
    return first;
}

int win_complete(struct win *w)
{
    lane_enter(w->comm->lane);
    int rc = complete(w);
    lane_leave(w->comm->lane);
    return rc;
}

/* One that has not completed may do so later, if another one was lost: that is not for the next epoch. */
static void end_post(struct win *w)
{
    for (int32_t i = 0; i < w->posted; i++) {
        struct win_target *t = win_target(w, w->origins[i]);
        if (t) t->completes--;
    }
    free(w->origins);
    w->origins = NULL;
    w->posted = 0;
    w->exposed = false;
}

/* All of them, also behind one that fails; then no epoch is open, and those that were told are the origins that may complete. */
static int post_all(struct win *w)
{
    int first = 0;
    int32_t told = 0;
    order_stores();
    for (int32_t i = 0; i < w->posted; i++) {
        struct win_target *t = win_target(w, w->origins[i]);
        int rc = t ? far_post(t) : err_code();
        if (!rc) w->origins[told++] = w->origins[i];
        else if (!first) first = rc;
    }
    w->posted = told;
    if (first) end_post(w);
    return first;
}

static int post(struct win *w, const struct group *g, int assertion)
{
    if (w->exposed) return wrong_order("an epoch of MPI_Win_post is open already");
    if (w->access == WIN_FENCE && w->fence_used) return leave_fence(w);
    w->origins = ranks_of(w, g);
    if (!w->origins) return err_code();
    w->posted = g->map->size;
    w->exposed = true;
    return assertion & MPI_MODE_NOCHECK ? 0 : post_all(w);
}

int win_post(struct win *w, const struct group *g, int assertion)
{
    lane_enter(w->comm->lane);
    int rc = post(w, g, assertion);
    lane_leave(w->comm->lane);
    return rc;
}

/* An origin that has not completed, perhaps, is lost; NULL: none. */
static const struct peer *lost_origin(const struct win *w) { return first_lost(w, w->origins, w->posted); }

static bool each_is_complete(const struct win *w)
{
    for (int32_t i = 0; i < w->posted; i++) {
        const struct win_target *t = win_target_known(w, w->origins[i]);
        if (!t || t->completes <= 0) return false;
    }
    return true;
}

static bool all_complete(void *win)
{
    const struct win *w = win;
    return each_is_complete(w) || lost_origin(w);
}

/* After all_complete. */
static int end_exposure(struct win *w)
{
    const struct peer *p = each_is_complete(w) ? NULL : lost_origin(w);
    int rc = p ? err_set(TERN_ERR_PEER, "%s", p->lost) : 0;
    end_post(w);
    if (unlikely(w->checking)) checking_end_exposure(w);
    order_stores();
    return rc;
}

int win_wait(struct win *w)
{
    struct lane *l = w->comm->lane;
    int rc = 0;
    lane_enter(l);
    if (!w->exposed) rc = wrong_order("no epoch of MPI_Win_post is open");
    else {
        lane_wait(l, all_complete, w, NULL);
        rc = end_exposure(w);
    }
    lane_leave(l);
    return rc;
}

int win_test(struct win *w, bool *over)
{
    struct lane *l = w->comm->lane;
    int rc = 0;
    lane_enter(l);
    if (!w->exposed) rc = wrong_order("no epoch of MPI_Win_post is open");
    else {
        if (!all_complete(w)) lane_poll(l);
        *over = all_complete(w);
        if (*over) rc = end_exposure(w);
    }
    lane_leave(l);
    return rc;
}

/* ---- locks ---- */

static int lock(struct win *w, int32_t rank, enum win_lock_mode mode, int assertion)
{
    if (w->access == WIN_LOCK_ALL) return wrong_order("MPI_Win_lock_all has locked all targets already");
    if (w->access == WIN_START) return wrong_order("MPI_Win_complete must end the epoch of MPI_Win_start before");
    int rc = leave_fence(w);
    struct win_target *t = rc ? NULL : win_target(w, rank);
    if (!t) return rc ? rc : err_code();
    if (t->open != WIN_CLOSED) return err_set(TERN_ERR_WIN_SYNC, "rank %d is locked by this process already", rank);
    t->unchecked = assertion & MPI_MODE_NOCHECK;
    t->open = mode == WIN_LOCK_SHARED ? WIN_LOCKED_SHARED : WIN_LOCKED_EXCLUSIVE; /* before another thread comes in */
    rc = t->unchecked ? 0 : take(t, mode);
    if (rc) {
        close_target(t);
        return rc;
    }
    open_target(w, t, t->open);
    w->locks++;
    return 0;
}

int win_lock(struct win *w, int32_t rank, enum win_lock_mode mode, int assertion)
{
    struct lane *l = w->comm->lane;
    lane_enter(l);
    int rc = lock(w, rank, mode, assertion);
    const struct win_target *t = win_target_known(w, rank);
    if (t && !t->exposure) lane_leave_noted(l); /* the request goes out with the operations */
    else lane_leave(l);
    return rc;
}

/* Ends the epoch to a target that was locked. */
static int give(struct win_target *t)
{
    enum win_lock_mode mode = t->open == WIN_LOCKED_EXCLUSIVE ? WIN_LOCK_EXCLUSIVE : WIN_LOCK_SHARED;
    int rc = 0;
    if (t->held && !t->exposure) rc = far_unlock(t);
    else {
        rc = flush_operations(t);
        if (t->held) near_give(t, 0, mode);
    }
    close_target(t);
    return rc;
}

static int unlock(struct win *w, int32_t rank)
{
    struct win_target *t = win_target_known(w, rank);
    if (w->access == WIN_LOCK_ALL || !t || t->open < WIN_LOCKED_SHARED)
        return err_set(TERN_ERR_WIN_SYNC, "rank %d is not locked by MPI_Win_lock", rank);
    w->locks--;
    int rc = give(t);
    look_around(w);
    return rc;
}

int win_unlock(struct win *w, int32_t rank)
{
    lane_enter(w->comm->lane);
    int rc = unlock(w, rank);
    lane_leave(w->comm->lane);
    return rc;
}

static int lock_all(struct win *w, int assertion)
{
    if (w->access == WIN_LOCK_ALL) return wrong_order("MPI_Win_lock_all was called already");
    if (w->locks) return wrong_order("MPI_Win_lock has locked a target");
    if (w->access == WIN_START) return wrong_order("MPI_Win_complete must end the epoch of MPI_Win_start before");
    int rc = leave_fence(w);
    if (rc) return rc;
    w->access = WIN_LOCK_ALL;
    w->unchecked = assertion & MPI_MODE_NOCHECK;
    next_epoch(w);
    return 0;
}

int win_lock_all(struct win *w, int assertion)
{
    lane_enter(w->comm->lane);
    int rc = lock_all(w, assertion);
    lane_leave(w->comm->lane);
    return rc;
}

static int give_if_open(struct win_target *t) { return t->open == WIN_CLOSED ? 0 : give(t); }

static int unlock_all(struct win *w)
{
    if (w->access != WIN_LOCK_ALL) return wrong_order("MPI_Win_lock_all was not called before");
    int rc = flush_each(w, give_if_open);
    w->access = WIN_NO_ACCESS;
    next_epoch(w);
    return rc;
}

int win_unlock_all(struct win *w)
{
    lane_enter(w->comm->lane);
    int rc = unlock_all(w);
    lane_leave(w->comm->lane);
    return rc;
}

/* ---- flush ---- */

static int may_flush(const struct win *w)
{
    if (w->access == WIN_LOCK_ALL || w->locks) return 0;
    return wrong_order("no target is locked: MPI_Win_lock or MPI_Win_lock_all begins an epoch in which operations can be flushed");
}

static int flush(struct win *w, int32_t rank, int (*how)(struct win_target *))
{
    struct lane *l = w->comm->lane;
    order_stores();
    lane_enter(l);
    int rc = may_flush(w);
    struct win_target *t = rc ? NULL : win_target_known(w, rank);
    if (!rc && w->access != WIN_LOCK_ALL && (!t || t->open == WIN_CLOSED))
        rc = err_set(TERN_ERR_WIN_SYNC, "rank %d is not locked", rank);
    if (!rc && t) rc = how(t);
    look_around(w);
    lane_leave(l);
    return rc;
}

static int flush_all(struct win *w, int (*how)(struct win_target *))
{
    struct lane *l = w->comm->lane;
    order_stores();
    lane_enter(l);
    int rc = may_flush(w);
    if (!rc) rc = flush_each(w, how);
    look_around(w);
    lane_leave(l);
    return rc;
}

int win_flush(struct win *w, int32_t rank) { return flush(w, rank, flush_target); }
int win_flush_local(struct win *w, int32_t rank) { return flush(w, rank, flush_locally); }
int win_flush_all(struct win *w) { return flush_all(w, flush_target); }
int win_flush_local_all(struct win *w) { return flush_all(w, flush_locally); }

/* The copies of the window that the processor sees are one (MPI_WIN_UNIFIED). A call also looks for messages, as programs
 * that wait in a loop for what others store expect. */
int win_sync(struct win *w)
{
    order_stores();
    lane_enter(w->comm->lane);
    lane_poll(w->comm->lane);
    lane_leave(w->comm->lane);
    return 0;
}
