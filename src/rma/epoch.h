/*
 * epoch.h - synchronisation of windows (MPI-5.0 section 12.5): when this process may access the memory of which others, and
 * when its operations are complete.
 *
 * An operation is admitted once for each target and epoch: epoch_admit finds out whether the target is open, takes the lock that
 * MPI_Win_lock_all has put off, or waits for the target's post. Then win_target.epoch is that of the window, and further
 * operations need no more than to compare the two (win_target_is_open).
 *
 * All return 0 or a code with words: TERN_ERR_WIN_SYNC, a call in the wrong order; TERN_ERR_PEER; TERN_ERR_NOMEM; what a target has
 * refused since the last one (TERN_ERR_WIN_RANGE).
 *
 * Threads: any; each takes the lane.
 */
#ifndef TERN_RMA_EPOCH_H
#define TERN_RMA_EPOCH_H

#include "obj/group.h"
#include "rma/target.h"
#include "rma/win_lock.h"

static inline bool win_target_is_open(const struct win *w, const struct win_target *t)
{
    return likely(atomic_load_explicit(&t->epoch, memory_order_relaxed) == atomic_load_explicit(&w->epoch, memory_order_relaxed));
}

/* Lane held. */
int epoch_admit(struct win *, struct win_target *);

int win_fence(struct win *, int assertion);
int win_start(struct win *, const struct group *, int assertion);
int win_complete(struct win *);
int win_post(struct win *, const struct group *, int assertion);
int win_wait(struct win *);
int win_test(struct win *, bool *over);
int win_lock(struct win *, int32_t rank, enum win_lock_mode, int assertion);
int win_unlock(struct win *, int32_t rank);
int win_lock_all(struct win *, int assertion);
int win_unlock_all(struct win *);
int win_flush(struct win *, int32_t rank);
int win_flush_local(struct win *, int32_t rank);
int win_flush_all(struct win *);
int win_flush_local_all(struct win *);
int win_sync(struct win *);

#endif
