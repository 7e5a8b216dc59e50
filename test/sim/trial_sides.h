/*
 * trial_sides.h - the buffers of a trial: what each rank is given, and what the standard says that it shall have in the end.
 * Only for trial.c.
 */
#ifndef TERN_TEST_TRIAL_SIDES_H
#define TERN_TEST_TRIAL_SIDES_H

#include "trial.h"

/* A buffer of a rank. */
struct side {
    int64_t elems; /* its packed size */
    int64_t low;   /* elements that lie before the address given to the collective */
    char *mem;     /* elems * extent */
    char *packed;  /* what it shall hold at the end, packed */
};

struct rank_state {
    struct side send, recv;
    int64_t *send_len, *send_off, *recv_len, *recv_off; /* packed bytes, relative to the address given */
};

struct bench { /* all of one trial */
    const struct trial *t;
    enum coll_kind kind;
    struct sim_type type;
    char *words;
    char *fold; /* see there */
    struct rank_state rank[TRIAL_RANKS];
};

/* Is it a collective with lengths of its own for each block? */
static inline bool is_v(enum coll_kind k)
{
    return k == COLL_GATHERV || k == COLL_SCATTERV || k == COLL_ALLGATHERV || k == COLL_ALLTOALLV ||
           k == COLL_ALLTOALLW || k == COLL_REDUCE_SCATTER;
}

static inline enum sim_op_kind op_kind(const struct trial *t) { return t->ordered ? SIM_MATRIX : SIM_SUM; }

/* Element i of a buffer: in memory, and as it shall be in the end. */
static inline char *elem(const struct bench *b, const struct side *s, int64_t i) { return s->mem + i * b->type.extent; }
static inline char *want(const struct bench *b, const struct side *s, int64_t i) { return s->packed + i * b->type.size; }

/* The buffers of a rank, filled with what it is given; and their end. */
void set_rank(struct bench *, int rank);
void close_rank(struct rank_state *);

#endif
