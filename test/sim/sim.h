/*
 * sim.h - the programs of all ranks run in one process by the real interpreter, over
 * a port that plays the network.
 *
 * Messages are matched by (source, destination, tag). Whether a send is buffered or
 * waits for its receive, when data moves and in which order completions are reported
 * is random by seed. A receive's memory is spoilt when it is posted, and data arrives
 * only at completion, so that a schedule that reads too early or shares memory that it
 * must not share gives wrong results; writing there in between is an error, too. Two messages under way with the same identity, a
 * receive shorter than its message, messages left over and ranks that never finish are
 * errors in words.
 */
#ifndef TERN_TEST_SIM_H
#define TERN_TEST_SIM_H

#include "coll/goal/exec.h"

/* Elements as the simulator knows them: `size` bytes of data every `extent` bytes. Passed as struct type. */
struct sim_type {
    int64_t size, extent;
};

/* Operators, passed as struct op. */
enum sim_op_kind {
    SIM_SUM,   /* uint64_t, 8 bytes an element */
    SIM_MATRIX /* product of 2x2 matrices of uint32_t, 16 bytes an element: associative, does not commute */
};
struct sim_op {
    enum sim_op_kind kind;
};
int64_t sim_op_size(enum sim_op_kind);
void sim_op_apply(enum sim_op_kind, const void *a, const void *b, void *out); /* one element; out may be a or b */

struct sim; /* one run */

/* A frame for each of the n programs, unbound. NULL when memory is out. */
struct sim *sim_open(int n, struct goal_prog *const progs[], uint64_t seed);
void sim_close(struct sim *);

/*
 * The first `near` programs are those of one group, the others of a second one; each names its own group's ranks
 * first (see struct coll_shape).
 */
void sim_two_groups(struct sim *, int near);

struct goal_frame *sim_frame(struct sim *, int rank);

/* Binds a slot to packed bytes or, if type is not NULL, to elements with gaps. */
void sim_bind(struct sim *, int rank, unsigned slot, void *base, const struct sim_type *type);

/* The operator of all ranks, and the elements of typed scratchpads; type NULL: without gaps. */
void sim_bind_op(struct sim *, const struct sim_op *op, const struct sim_type *type);

/* Starts all ranks in random order and runs to the end. 0, or TERN_ERR_... with words. */
int sim_run(struct sim *);

/* Was a rank done before all of them had started (with two groups: all of the other one)? Never so in a barrier. */
bool sim_was_early(const struct sim *);

/* splitmix64: the next random number of a state. */
static inline uint64_t sim_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Seed of random tests: TERN_TEST_SEED, else the clock; printed as a TAP comment. */
uint64_t sim_seed(void);

#endif
