/*
 * goal.h - what the entry points of the public goal.h share (goal.c, goal_arith.c).
 *
 * They stand beside MPI's: the same error classes, handlers and words.
 */
#ifndef TERN_MPI_GOAL_H
#define TERN_MPI_GOAL_H

#include "coll/schedule.h"
#include "mpi/report.h"

/* At the start of a line: the function is seen from outside. */
#define GOAL_EXPORT __attribute__((visibility("default")))

int bad_schedule(const char *call, GOAL_Schedule) TERN_COLD; /* reports why it is none */

/* The schedule behind a handle; NULL: *rc is the reported class. */
static inline struct schedule *schedule_given(const char *call, GOAL_Schedule h, int *rc)
{
    struct schedule *s = schedule_of(h);
    if (unlikely(!s)) *rc = bad_schedule(call, h);
    return s;
}

/* The last line of most: 0 is MPI_SUCCESS, else to the handler of the communicator. */
static inline int schedule_report(const struct schedule *s, const char *call, int code)
{
    return report_if(schedule_comm(s), call, code);
}

#endif
