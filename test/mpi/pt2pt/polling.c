/*
 * polling.c - programs that loop over MPI_Testall or MPI_Iprobe instead of waiting: with more ranks than cores they
 * must not keep the very ranks from running that they look for, so a loop that finds nothing gives up its core now and
 * then. Counted are the calls by which the library does that.
 */
#include "../check.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEPS = 100, LOOKS = 3200, LOOKS_A_YIELD = 32 };

static _Atomic long yields; /* other threads yield as well */

/* In place of the C library's. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* More ranks on this node than processors for them? */
static bool cores_are_shared(void)
{
    MPI_Comm node;
    cpu_set_t mine;
    int ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    MPI_Comm_free(&node);
    return sched_getaffinity(0, sizeof mine, &mine) == 0 && ranks > CPU_COUNT(&mine);
}

static void look(bool probing, MPI_Request *none)
{
    int found;
    if (probing) MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    else MPI_Test(none, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "something was found that nobody sent");
}

/* Nothing comes while this rank looks for it. */
static void in_vain(bool probing)
{
    MPI_Request q;
    int got;
    MPI_Irecv(&got, 1, MPI_INT, check_rank, 9, MPI_COMM_WORLD, &q);
    if (probing) {
        MPI_Cancel(&q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long before = yields;
    for (int i = 0; i < LOOKS; i++) look(probing, &q);
    long given = yields - before;
    if (cores_are_shared())
        CHECK(given >= LOOKS / LOOKS_A_YIELD / 2, "%d looks gave up the core %ld times", LOOKS, given);
    if (!probing) {
        MPI_Cancel(&q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
}

/* A step around the ring; completes both requests by looking for them. */
static void step(bool probing, int i, int next, int before)
{
    MPI_Request q[2];
    int got = -1, done = 0;
    if (probing) {
        MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &q[0]);
        while (!done) MPI_Iprobe(before, 1, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &q[0]);
        MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &q[1]);
        while (!done) MPI_Testall(2, q, &done, MPI_STATUSES_IGNORE);
    }
    CHECK(got == i, "step %d brought %d", i, got);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    for (int probing = 0; probing < 2; probing++) {
        for (int i = 0; i < STEPS; i++) step(probing, i, next, before);
        in_vain(probing);
    }
    return check_done();
}
