/*
 * moves.h - large puts and gets to a far target: from where the data lie to where they belong, through the target's remote key
 * (transport/remote.h), where both sides are in one piece. The target's process does its part when it makes progress.
 *
 * An origin asks for the key once (WIN_KEY). A move begins when the target has granted what the epoch needs (far.c), and its memory
 * stays the caller's until moves_local.
 *
 * Not where threads may share the transports: what comes by a key is handled without a lane.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_MOVES_H
#define TERN_RMA_MOVES_H

#include "rma/op.h"

struct win_moves {
    struct win_key shown;   /* as the target has sent it */
    bool known;             /* it has */
    struct remote_key *key; /* NULL: it has none, or not yet */
    uint32_t under_way;     /* moves, and flushes */
    bool unflushed;         /* moves have been started since the last flush */
    int code;               /* of the first one that failed since then */
};

/* Is this an operation for it, as far as the origin knows? */
bool moves_suit(const struct win_target *, const struct win_op *);

/* The key has come: 0, or a code with words. */
int moves_open(struct win_target *, struct win_moves *);

/* Starts it. 0, or a code with words; TERN_ERR_UNSUPPORTED: the target has no key, or the operation is beyond its memory. */
int moves_start(struct win_target *, struct win_moves *, const struct win_op *, struct request *);

/* Waits until the memory here may be used again; until all is in the target's memory. 0, or a code with words. */
int moves_local(struct win_target *, struct win_moves *);
int moves_flush(struct win_target *, struct win_moves *);

void moves_close(struct win_moves *); /* none is under way */

#endif
