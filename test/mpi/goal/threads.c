/*
 * threads.c - schedules of several threads at once (MPI_THREAD_MULTIPLE): each on a communicator of its own, all on one
 * communicator, and all running the same schedule, which is bound anew in between (GOAL-16).
 */
#include "../check.h"

#include <goal.h>
#include <pthread.h>

enum { THREADS = 4, TIMES = 200, N = 40 };

struct worker {
    pthread_t thread;
    MPI_Comm comm;
    GOAL_Schedule schedule;
    int64_t mine[N], sum[N];
    int number, wrong;
};

static struct worker worker[THREADS];

static int left(void) { return (check_rank + check_size - 1) % check_size; }
static int right(void) { return (check_rank + 1) % check_size; }
static int64_t value(int rank, int thread, int time, int i) { return rank * 1000000 + thread * 10000 + time * 50 + i; }

/* sum = sum + what the rank to the left has. */
static GOAL_Schedule make(MPI_Comm comm, int64_t *mine, int64_t *sum)
{
    GOAL_Schedule s = GOAL_SCHEDULE_NULL;
    GOAL_Op recv, add;
    GOAL_Create(comm, N * 8, &s);
    GOAL_Send(s, mine, GOAL_USERSPACE, N * 8, right(), 1, NULL);
    GOAL_Recv(s, GOAL_AT(0), GOAL_SCRATCHPAD, N * 8, left(), 1, &recv);
    GOAL_Add(s, GOAL_INT64, N, GOAL_AT(0), GOAL_SCRATCHPAD, sum, GOAL_USERSPACE, &add);
    GOAL_Requires(s, add, recv);
    return s;
}

static int wait_or_test(GOAL_Request *r, int test)
{
    int flag = 0, rc = MPI_SUCCESS;
    while (test && !flag && !rc) rc = GOAL_Test(r, &flag);
    return rc ? rc : GOAL_Wait(r);
}

static void run_times(struct worker *w)
{
    for (int t = 0; t < TIMES; t++) {
        GOAL_Request r;
        for (int i = 0; i < N; i++) w->mine[i] = value(check_rank, w->number, t, i), w->sum[i] = -7;
        w->wrong += GOAL_Run(w->schedule, &r) != MPI_SUCCESS || wait_or_test(&r, t % 2) != MPI_SUCCESS;
        for (int i = 0; i < N; i++) w->wrong += w->sum[i] != value(left(), w->number, t, i) - 7;
    }
}

/* Each makes its own schedule. */
static void *own_comm(void *arg)
{
    struct worker *w = arg;
    w->schedule = make(w->comm, w->mine, w->sum);
    w->wrong += GOAL_Compile(w->schedule) != MPI_SUCCESS;
    run_times(w);
    w->wrong += GOAL_Free(&w->schedule) != MPI_SUCCESS;
    return NULL;
}

static void *run_it(void *arg)
{
    run_times(arg);
    return NULL;
}

static GOAL_Schedule shared;
static int64_t mark, marks[THREADS];

/* Runs of one schedule in whatever order: all do the same, so that it does not matter which meets which. */
static void *run_shared(void *arg)
{
    struct worker *w = arg;
    for (int t = 0; t < TIMES; t++) {
        GOAL_Request r;
        if (t % 8 == w->number) w->wrong += GOAL_Bind(shared, GOAL_BUFFER(0), &marks[w->number], 8) != MPI_SUCCESS;
        w->wrong += GOAL_Run(shared, &r) != MPI_SUCCESS || wait_or_test(&r, t % 2) != MPI_SUCCESS;
    }
    return NULL;
}

static void start_all(void *(*work)(void *), const char *what)
{
    for (int k = 0; k < THREADS; k++) {
        worker[k].wrong = 0;
        CHECK(!pthread_create(&worker[k].thread, NULL, work, &worker[k]), "thread %d", k);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(worker[k].thread, NULL);
        CHECK(worker[k].wrong == 0, "%s: thread %d: %d things are wrong", what, k, worker[k].wrong);
    }
}

static void one_comm(void)
{
    for (int k = 0; k < THREADS; k++) {
        worker[k].schedule = make(MPI_COMM_WORLD, worker[k].mine, worker[k].sum);
        CHECK_OK(GOAL_Compile(worker[k].schedule));
    }
    start_all(run_it, "one communicator");
    for (int k = 0; k < THREADS; k++) CHECK_OK(GOAL_Free(&worker[k].schedule));
}

static void one_schedule(void)
{
    int64_t word = 100 + check_rank;
    GOAL_Op recv, copy;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 8, &shared));
    CHECK_OK(GOAL_Send(shared, &word, GOAL_USERSPACE, 8, right(), 1, NULL));
    CHECK_OK(GOAL_Recv(shared, GOAL_AT(0), GOAL_SCRATCHPAD, 8, left(), 1, &recv));
    CHECK_OK(GOAL_Copy(shared, GOAL_AT(0), GOAL_SCRATCHPAD, GOAL_AT(0), GOAL_BUFFER(0), 8, &copy));
    CHECK_OK(GOAL_Requires(shared, copy, recv));
    CHECK_OK(GOAL_Compile(shared));
    CHECK_OK(GOAL_Bind(shared, GOAL_BUFFER(0), &mark, 8));
    start_all(run_shared, "one schedule");
    CHECK_OK(GOAL_Free(&shared));
    for (int k = 0; k < THREADS; k++)
        CHECK(marks[k] == 0 || marks[k] == 100 + left(), "the mark of thread %d is %lld", k, (long long)marks[k]);
    CHECK(marks[0] || marks[1] || marks[2] || marks[3] || mark, "somebody's mark was made");
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int k = 0; k < THREADS; k++) {
        worker[k].number = k;
        CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &worker[k].comm));
    }
    start_all(own_comm, "communicators of their own");
    one_comm();
    one_schedule();
    for (int k = 0; k < THREADS; k++) CHECK_OK(MPI_Comm_free(&worker[k].comm));
    return check_done();
}
