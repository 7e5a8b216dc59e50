/*
 * schedule.h - what stands behind the public goal.h: schedules that users make.
 *
 * A schedule is being built until it is compiled, and then runs as often as wanted, also
 * several times at once: every run has a frame, and so a scratchpad, of its own. Its slots are
 *
 *     GOAL_SCRATCH          the scratchpad
 *     GOAL_SLOT_USER        GOAL_USERSPACE: offsets from the lowest address that is named
 *     GOAL_SLOT_USER + 1..  GOAL_BUFFER(0) and following
 *
 * Messages. Schedules of a communicator have numbers, given in the order in which they are made
 * and free again when they are freed, and so have the runs of a schedule; ranks make, free and
 * start theirs in the same order, so the numbers agree without a message. Both are in the tag:
 *
 *     | 0 | 1 | 1 | schedule, 10 bits | run modulo 8 | tag of the operation, 16 bits |
 *
 * which other collectives do not have, and comm/talk.h only with zeros behind the first four bits: schedules are not
 * numbered 0 or 512.
 *
 * Between two groups, messages are with ranks of the other one. Its ranks follow those of the own group in the program
 * (as in struct coll_shape), which is of as many ranks as both have together.
 *
 * A number is used again only after its last run is over here; then all messages of that run have
 * been posted, and those of the new one follow them in order.
 *
 * Functions return 0 or a code with words. Source: GOAL-1 to GOAL-11, GOAL-16.
 *
 * Threads: one thread at a time builds a schedule; schedule_run, _test and _wait may be called by any.
 */
#ifndef TERN_COLL_SCHEDULE_H
#define TERN_COLL_SCHEDULE_H

#include "coll/goal/build.h"
#include "obj/comm.h"
#include <goal.h>

struct coll_frame;
struct schedule; /* HANDLE_SCHEDULE */

static inline struct schedule *schedule_of(GOAL_Schedule s) { return handle_get(s, HANDLE_SCHEDULE); }
struct comm *schedule_comm(const struct schedule *);
const struct goal_head *schedule_block(const struct schedule *); /* NULL: not compiled */

int schedule_create(struct comm *, int64_t scratch, struct schedule **schedule_p);
int schedule_import(struct comm *, const void *block, size_t bytes, struct schedule **schedule_p);
int schedule_parse(struct comm *, const char *text, struct schedule **schedule_p);
int schedule_free(struct schedule *); /* TERN_ERR_PENDING while it runs */

/* Operations; *op_p (may be NULL) names them. A message to or from MPI_PROC_NULL is nothing. */
int schedule_send(struct schedule *, const GOAL_Piece *, int n, int dest, int tag, goal_id *op_p);
int schedule_recv(struct schedule *, const GOAL_Piece *, int n, int source, int tag, goal_id *op_p);
int schedule_copy(struct schedule *, const GOAL_Piece *from, int n_from, const GOAL_Piece *to, int n_to, goal_id *op_p);
int schedule_arith(struct schedule *, unsigned code, const GOAL_Piece *in, int n_in, const GOAL_Piece *inout, int n_inout,
                   goal_id *op_p);
int schedule_stamp(struct schedule *, void *to, int place, goal_id *op_p);
int schedule_join(struct schedule *, goal_id *op_p);
int schedule_edge(struct schedule *, goal_id op, goal_id before, bool start);

/* Ends the building. With TERN_GOAL_CHECK=all or TERN_GOAL_OPTIMISE=all it is collective. */
int schedule_compile(struct schedule *);

/* The address of a place, for runs that are started from now on. */
int schedule_bind(struct schedule *, int place, void *base, int64_t bytes);

int schedule_run(struct schedule *, GOAL_Request *);
int schedule_test(GOAL_Request *, bool *over_p); /* the error of the run, if it is over */
int schedule_wait(GOAL_Request *);

/* The communicator of an active request, for its error handler. */
struct comm *schedule_request_comm(const GOAL_Request *);

/* ---- for the parts of this folder ---- */

enum {
    SCHEDULE_NUMBERS = 1024, /* that schedules of a communicator may have, but for two */
    SCHEDULE_RUNS = 8,       /* of a schedule at once */
    SCHEDULE_TAGS = 0x6000   /* the upper half of their tags begins with that */
};

/* Numbers of the communicator's schedules (struct coll_comm.schedules). */
struct schedule_numbers {
    uint64_t live[SCHEDULE_NUMBERS / 64];
    uint32_t next;
};

struct schedule_run {
    struct schedule_run *next; /* of the idle ones */
    struct schedule *schedule;
    struct coll_frame *frame;
    GOAL_Request *request;
    unsigned number; /* modulo SCHEDULE_RUNS */
    bool left;       /* to go on by itself (lane_left_work) */
    char *words;     /* of its failure, until somebody has waited for it */
};

struct schedule_place { /* what a slot is bound to */
    char *base;
    int64_t bytes; /* -1: nobody knows */
    bool bound;
};

struct schedule {
    struct handle h;
    struct comm *comm; /* a reference */
    unsigned number;
    int64_t scratch;          /* bytes, as the user said */
    struct goal_build *build; /* until it is compiled ... */
    struct goal_prog *prog;   /* ... and from then on */
    char *anchor;             /* address that offsets in user space count from while it is built; NULL: none named yet */
    struct schedule_place *place; /* by slot */
    int places;
    bool checked;  /* everything that the program touches is bound, since the last bind */
    uint32_t runs; /* started so far */
    uint32_t busy; /* numbers of runs that are not over, or failed and were not waited for */
    struct schedule_run *idle;
};

/* How many ranks a program for this communicator has: those of both groups, if there are two. */
static inline int schedule_ranks(const struct comm *c) { return c->inter ? c->size + comm_peers(c) : c->size; }

int schedule_new(struct comm *, struct schedule **schedule_p); /* a number, and nothing else */
void schedule_drop(struct schedule *);
int schedule_building(const struct schedule *); /* 0, or words: it is compiled */
int schedule_slot(int place); /* of a place; -1: there is no such place */
struct schedule_place *schedule_place(struct schedule *, int slot); /* NULL with words when memory is out */
void schedule_drop_runs(struct schedule *);

#endif
