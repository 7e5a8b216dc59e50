/*
 * near.h - operations on memory of a target of the node: the origin does them by loads and stores where it is mapped, else with the
 * target's help if that is in the library (letters.h, dock.h), else by cross-memory attach. The rule of atomicity is in apply.h.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_NEAR_H
#define TERN_RMA_NEAR_H

#include "rma/op.h"

/*
 * Does an operation: it is complete on return, but for what other processes see of it, which is ordered by the synchronisation
 * of the window, and puts and gets on private memory, which are complete after near_flush. 0, or a code with words;
 * TERN_ERR_UNSUPPORTED: it goes by messages, and nothing has been done. So do
 *     those on private memory that the system does not let this process reach, and all later ones
 *     accumulates on common memory that this process has failed to map
 *     in dynamic windows, those on several pieces, or on memory that is not known to be attached: the owner decides
 */
int near_do(struct win_target *, const struct win_op *);

/* 0, or a code with words. */
int near_flush(struct win_target *);

/* Takes one of the target's two locks, and waits for it. 0, or TERN_ERR_PEER with words: the target is lost. `which`: 0 the
 * lock of MPI_Win_lock, 1 that of accumulates. */
int near_take(struct win_target *, int which, enum win_lock_mode);
void near_give(struct win_target *, int which, enum win_lock_mode);

#endif
