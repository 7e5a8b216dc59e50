/*
 * letters.h - small operations on the private memory of a target of this node: they are written into a letter (mail.h), several into
 * one, and posted when it is full or the epoch wants them done. So many puts cost one exchange with the target, or one call of the
 * system.
 *
 * An accumulate is posted at once, with what is before it, and waited for.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_LETTERS_H
#define TERN_RMA_LETTERS_H

#include "rma/op.h"

#define LETTERS_MOST ((size_t)512) /* bytes of an operation's data, at most */

/* n bytes in one piece at `address` of the target. `data` may be used again on return; `to` gets them by the next flush. 0, or a
 * code with words; TERN_ERR_UNSUPPORTED: nothing has been done. */
int letters_put(struct win_target *, uint64_t address, const void *data, size_t n);
int letters_get(struct win_target *, uint64_t address, void *to, size_t n);

/* n elements, as they lie in memory: done on return. data: NULL for MPI_NO_OP; before: gets what was there, NULL: it is not
 * wanted. By an origin that has what apply.h asks for. */
int letters_change(struct win_target *, const struct win_op *, uint64_t address, const void *data, void *before, int64_t n);

/* All of it is done. 0, or a code with words. */
int letters_flush(struct win_target *);

void letters_close(struct win_target *);

#endif
