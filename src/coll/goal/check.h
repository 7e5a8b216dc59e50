/*
 * check.h - what can be wrong with the messages of schedules, found before a run.
 */
#ifndef TERN_COLL_GOAL_CHECK_H
#define TERN_COLL_GOAL_CHECK_H

#include "coll/goal/goal.h"

/* Where the words of a mistake point to: two operations, as the place of their program in block[] and their index. */
struct goal_spot {
    int program; /* -1: nowhere */
    uint32_t op;
};

/* One program by itself: no two sends to one rank, nor two receives from one, have the same tag. `spot` may be NULL. */
int goal_check_tags(const struct goal_head *, struct goal_spot spot[2]);

/*
 * The programs of all n ranks together, each of which goal_verify has passed: every send has its receive with room for
 * it, and the other way round, and no ranks wait for each other for ever, even if no message is buffered. 0, or
 * TERN_ERR_PROGRAM with words that name ranks, operations and tag.
 *
 * near < n: there are two groups, the first `near` programs being those of the first one. Each program names its own
 * group's ranks first, those of the other one behind them; its own rank counts within its group. `spot` may be NULL.
 */
int goal_check_all(int n, int near, const struct goal_head *const block[], struct goal_spot spot[2]);

#endif
