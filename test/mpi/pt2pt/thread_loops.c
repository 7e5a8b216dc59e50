/*
 * thread_loops.c - threads of one process that share a core and call MPI_Test in loops give it up to each other: a message
 * is handed over after some looks, not after the thousands that fit into a slice of the scheduler.
 */
#include "../check.h"

#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 500, LOOKS = 500 }; /* a slice of 3 ms is some 20,000 looks */

static pthread_barrier_t both;

static void on_one_core(void)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    CHECK(cpu >= 0 && !sched_setaffinity(0, sizeof one, &one), "cannot stay on core %d", cpu);
}

/* Sends to the other thread and looks for its answer; returns the looks. Tags: 1 to the first thread, 2 to the second. */
static long play(int mine, int its, int first)
{
    long looks = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int in = -1, flag = 0;
        MPI_Request r;
        MPI_Irecv(&in, 1, MPI_INT, check_rank, mine, MPI_COMM_WORLD, &r);
        if (first) MPI_Send(&i, 1, MPI_INT, check_rank, its, MPI_COMM_WORLD);
        for (; !flag; looks++) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        CHECK(in == i, "%d instead of %d", in, i);
        if (!first) MPI_Send(&i, 1, MPI_INT, check_rank, its, MPI_COMM_WORLD);
    }
    return looks;
}

/* It has called MPI before: until then the first thread is alone, and gives up the core to nobody. */
static void *second(void *looks)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_barrier_wait(&both);
    *(long *)looks = play(2, 1, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t id;
    long looks[2] = {0, 0};
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    on_one_core();
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&id, NULL, second, &looks[1]);
    pthread_barrier_wait(&both);
    looks[0] = play(1, 2, 1);
    pthread_join(id, NULL);
    CHECK(looks[0] + looks[1] <= (long)LOOKS * ROUNDS, "%ld looks for %d messages", looks[0] + looks[1], 2 * ROUNDS);
    return check_done();
}
