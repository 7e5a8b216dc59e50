/*
 * node.h - small collectives inside a node: flags and payloads in one shared block
 * for each communicator, instead of messages.
 *
 * Every operation is single-stage: who has something leaves it in its slot, who
 * needs something waits for the slots and takes it. Nothing has to pass through a third
 * rank, so a rank that came late finds everything there.
 *
 *   block:  | struct node_head | done[P] | slots[K][P] of one line | middle slots[K][P] | big slots[BIG_K][P] |
 *
 *   slot:   | flag (8) | lengths (8) | payload (48) |   a longer payload lies in a middle or big slot
 *
 * Operation number s of the communicator uses the slots k = s mod K. A slot is
 * written again K operations later; the writer first makes sure that every rank has
 * finished all operations up to s - K, from `done` or from having met all ranks since.
 *
 * Waiting, with a core for each rank: on the flags themselves. With more ranks than
 * cores: arrivals are counted and only the last one wakes the others, all by one
 * system call, so that each rank is switched in once. Who needs one rank, or (prefix
 * reductions) the lower ones only, looks at their flags in any case. Rank 0 decides
 * which it is, for all (coll_comm.oversubscribed).
 *
 * Nonblocking operations are the same: started, the contribution is left; what comes
 * then is done by whatever progress the process makes (background.c). A rank that
 * computes holds nobody up, as long as no more than K are pending.
 *
 * Threads: collectives on one communicator come one after the other. With nothing in
 * the background the lane's lock is taken for waiting only; otherwise for everything.
 */
#ifndef TERN_COLL_NODE_H
#define TERN_COLL_NODE_H

#include "coll/coll.h"

/* At the end of the library: blocks not given back yet are forgotten. */
void node_forget_retired(void);

/* Nobody uses the library here any more: returns when all ranks have had what they want from blocks of this process. */
void node_settle(void);

/* The largest contribution for the slots of a communicator of that size. */
int64_t node_slot_max(const struct comm *);

/*
 * Does the call through the node if it can: true, and its result in *rc_p. `bytes`: packed size of the buffer (bcast,
 * reductions) or of one rank's block (others), the same at all ranks. False: use messages, unless *rc_p is a code.
 */
bool node_run(struct comm *, const struct coll_call *, int64_t bytes, int *rc_p);

/* The same where the slots do not come first: hint, variable or the user's table may say otherwise. */
bool node_run_by_rules(struct comm *, const struct coll_call *, int64_t bytes, int *rc_p);

/*
 * The same for one that goes on in the background. The short way, when nothing stands in it: true, and *req_p is started, or
 * the shared request that is complete. False: nothing has happened, prepare it.
 */
bool node_start(struct comm *, const struct coll_call *, int64_t bytes, struct request **req_p);

/*
 * The long way: true if the request r has taken its place in the order of the node's
 * operations; node_go starts it, lock held. It takes references to types and operator, and a number of coll_comm.seq as
 * long as it may turn out that messages have to be used after all. `by_rules`: as in node_run_by_rules.
 */
bool node_prepare(struct comm *, const struct coll_call *, int64_t bytes, struct request *r, bool by_rules, int *rc_p);
void node_go(struct request *r);

#endif
