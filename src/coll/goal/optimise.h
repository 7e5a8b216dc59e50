/*
 * optimise.h - programs that do the same with less (GOAL-29): fewer operations, edges and messages.
 *
 * What a program does is what it leaves in its slots other than the scratchpad, and which messages it exchanges. It is
 * understood that what is bound to different slots does not overlap.
 */
#ifndef TERN_COLL_GOAL_OPTIMISE_H
#define TERN_COLL_GOAL_OPTIMISE_H

#include "coll/goal/goal.h"

enum goal_pass {
    GOAL_PASS_COPIES = 1, /* what is copied to or from the scratchpad is used where it is; only for slots of plain bytes */
    GOAL_PASS_DEAD = 2,   /* work whose results nobody uses, and joins that join nothing, go */
    GOAL_PASS_EDGES = 4   /* edges that follow from others go */
};
#define GOAL_PASSES 7

/* A new program from one that goal_verify has passed; one reference. Programs of very many operations stay as they are. */
int goal_optimise(const struct goal_head *, unsigned passes, struct goal_prog **out_p);

/*
 * The programs of all n ranks, of one group, which goal_check_all has passed: messages between two ranks that wait for the same at both
 * ends become one of several pieces, of at most `most` bytes. All out[] are new, or none is.
 */
#define GOAL_COALESCED_MAX 4096 /* for `most` in general: what is put together is copied */
int goal_coalesce(int n, const struct goal_head *const in[], int64_t most, struct goal_prog *out[]);

#endif
