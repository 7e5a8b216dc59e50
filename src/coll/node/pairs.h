/*
 * pairs.h - large collectives inside a node: one transfer (transfer/transfer.h) for each pair of ranks that have something
 * for each other, copied from memory to memory by either of the two, whichever is inside the library. Of what goes one way
 * each side copies half; where both ranks have something for each other each receives first, and helps when that is over.
 *
 *   in the block, behind the big slots, for each of `pair_sets` operations:
 *
 *     pair[P][P]   row: the sender, column: the receiver; two lines each
 *     left[P]      transfers of a rank that are not over, and an error; a line each
 *
 * A rank writes down its count, and the ends that it has something for in its row and column, with the number of the operation,
 * then sets its flag (node_signal). When both ends of a transfer are there, either side copies; who does the last chunk takes
 * the transfer out of both counts, and wakes the other side if that was its last. An operation is over at a rank whose count
 * is 0.
 *
 * What a rank has for itself is its own to copy. In a nonblocking operation of ranks that have cores of their own, a long one is a
 * transfer too, in the diagonal: a rank that has nothing else to do carries chunks of it, by way of a buffer. Since its own
 * operation is over by then, that goes on behind its end (background.c), and the rank keeps the lines until no chunk is left. So
 * a rank that computes has all done by those that wait. A process with a helper thread needs no aid, and gives none: nobody
 * would look again.
 *
 * A transfer counts for a rank only if its own end is not empty. If the other end is (the lengths differ, which is an
 * error of the program's), it is over as soon as that is known: the other's flag is set, and the end is not there.
 *
 * Operation s uses the lines s modulo `pair_sets`, when all ranks have finished s - pair_sets (node_free_slots); a rank
 * touches them only until it has finished itself.
 *
 * Nothing is copied before it is known that all ranks reach all others' memory (NODE_REACHES), which each says of itself
 * before its first such operation. If it is not so, these operations are messages, see background.c.
 *
 * Threads: everything but the shared lines is under the lane's lock.
 */
#ifndef TERN_COLL_NODE_PAIRS_H
#define TERN_COLL_NODE_PAIRS_H

#include "coll/node/block.h"

#define NODE_PAIRS_RANKS 64   /* the lines grow with the square of the ranks */
#define NODE_PAIRS_MOST 4096 /* of pairs in a block, about: with many ranks there are sets for fewer operations */

/* The lines behind `base`, or NULL to measure; bytes. Sets what the node keeps of them. */
size_t node_pairs_layout(struct node *, char *base);

/* Says whether this rank reaches the memory of all others, unless it has done so. Takes the lane's lock. */
void node_tell_reach(struct node *);

/* ---- the transfers of an operation ---- */

struct node_pairs;

/* What this rank has to do in operation `seq`, which is this call; the arrays are not needed any more on return. The
 * call's types are held by the caller. NULL: memory is out. */
struct node_pairs *node_pairs_new(struct node *, const struct coll_call *, bool blocking, uint32_t seq);
void node_pairs_free(struct node_pairs *);

/* Says what this rank has for others, and what it expects, if the lines are free (else false). The caller sets the flag next. */
bool node_pairs_begin(struct node_pairs *);

/* The flag is set: wakes those who may go on, unless all ranks wait. */
void node_pairs_wake(struct node_pairs *);

/* Copies some. True when all is over, with its result in *rc_p if that is 0. */
bool node_pairs_go_on(struct node_pairs *, int *rc_p);

/* The operation ends by an error, before it is over: true when nobody touches the memory of its buffers any more, or after half a second
 * (NODE_LEAVE_NS): a process that has lost its core may still copy then. Else it is to be called again, as others copy what they have
 * begun with. */
bool node_pairs_leave(struct node_pairs *) TERN_COLD;

/* It is over here: is there something of other ranks' own to carry? Carries some; true: there is nothing (more). */
bool node_pairs_may_carry(const struct node_pairs *);
bool node_pairs_carry(struct node_pairs *);

/* Is there something to copy between this rank and one without a helper? Nobody but this rank's helper may do it while
 * both compute. */
bool node_pairs_are_ours(const struct node_pairs *) TERN_COLD;

/* Sender and receiver disagree: rank `from` has a long block where this one expects a short one, or the other way
 * round. */
void node_pairs_refuse(struct node *, uint32_t seq, int from);
void node_pairs_expect_none(struct node_pairs *, int from);

#endif
