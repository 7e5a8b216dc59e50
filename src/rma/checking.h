/*
 * checking.h - TERN_CHECK=rma: conflicting operations on windows are errors that name both.
 *
 * A target must see all operations on its memory to compare them. So with the variable set, operations on other processes go
 * by messages, also where the memory is mapped here; locks are taken as ever. Before each operation goes a note of the call.
 * The target does the operation, enters it in its log (access_log.h), and keeps what it finds for both origins:
 *
 *     origin    note, operation, seen? ---->    target    does it, and compares it with what others have under way
 *                                     <-----              it is in the log; or TERN_ERR_WIN_CONFLICT with both accesses
 *               flush, unlock         ----->              what the origin has behind it goes from the log
 *                                     <-----              done; or TERN_ERR_WIN_CONFLICT, if a later access met one of these
 *
 * An operation waits until the target has it in its log, so that the order in the program is the order in the log. The origin
 * words the error, of the operation that comes second; the other origin has it at its next call, if it has not flushed
 * meanwhile. Operations of a process on its own memory are entered by that process itself.
 *
 * Loads and stores of the program itself are not seen, nor what follows a flush without the origins having waited for it.
 * All ranks must have the variable alike, as processes without it have no such messages (rma.c). Off: win.checking is NULL, and
 * nothing is done but to find that.
 *
 * Threads: under the lane of the window's communicator, but for checking_open, _close and _fence.
 */
#ifndef TERN_RMA_CHECKING_H
#define TERN_RMA_CHECKING_H

#include "rma/op.h"

bool checking_wanted(void);
int checking_open(struct win *); /* 0; TERN_ERR_NOMEM with words */
void checking_close(struct win *);

/* ---- an origin ---- */

/* May near_do do what it can, as ever? */
static inline bool checking_lets_near(const struct win_target *t)
{
    return likely(!t->win->checking) || t->rank == t->win->comm->rank;
}

/* The note of a call, which is to go before each record of its operation. */
void checking_note(const struct win_target *, const struct win_op *, struct win_note *);

/* An operation that this process has done on its own memory. 0, or TERN_ERR_WIN_CONFLICT with words; so does
 * checking_flush_own, for all until now, if the target is this process. */
int checking_own(const struct win_target *, const struct win_op *);
int checking_flush_own(const struct win_target *);
void checking_flush_local(struct win_target *); /* before what has been read comes */

/* The words of what a target has answered, which may be anything. Returns TERN_ERR_WIN_CONFLICT. */
int checking_words(const struct win_target *, const struct win_conflict *) TERN_COLD;

/* ---- a target ---- */

bool checking_on_note(struct win *, int32_t origin, const void *note); /* false: it cannot be */
void checking_on_op(struct win *, int32_t origin, const struct win_record *, const char *runs); /* that has been done */
void checking_on_flush(struct win *, int32_t origin);                        /* or unlock */
bool checking_conflict(struct win *, int32_t origin, struct win_conflict *); /* true: one that the origin is to be told of */
void checking_fence(struct win *);        /* all have met in MPI_Win_fence. Takes the lane */
void checking_end_exposure(struct win *); /* MPI_Win_wait */
void checking_forget(struct win *, int32_t origin); /* it is lost */

#endif
