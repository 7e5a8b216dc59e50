/*
 * dock.h - a large operation on the private memory of a target of this node, in pieces through the large letters of its mail: the
 * origin writes one piece while the target does another. Cross-memory attach copies once, by one processor, and looks up every
 * page; two processors that copy through a cache are faster.
 *
 * The dock of a target is one origin's at a time, until that flushes; others do without, as the target has but one core to do it with.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_DOCK_H
#define TERN_RMA_DOCK_H

#include "rma/op.h"
#include "type/cursor.h"

/*
 * The next n bytes of a put or get, or elements of an accumulate, at `address` of the target, where they lie in one piece. Moves
 * `from` and `to`, where the operation has data and results. *done: how many, which may be fewer, as the target has left; the rest
 * is for another way. Of a put the data may be used again on return, a get is complete after dock_flush, an accumulate on
 * return; it is by an origin that has what apply.h asks for. 0, or a code with words.
 */
int dock_do(struct win_target *, const struct win_op *, uint64_t address, int64_t n, struct type_cursor *from, struct type_cursor *to,
            int64_t *done);

/* All of it is done, and others may have the dock. 0, or a code with words. */
int dock_flush(struct win_target *);

void dock_close(struct win_target *);

/* The origin of this seat has died: what it has in the dock is taken back (mail_clear). By any process that has the target's mail. */
void dock_forget(struct win_target *, uint32_t seat);

#endif
