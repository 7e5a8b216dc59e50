/*
 * shared_core.c - two ranks that the scheduler has left on one core, though there may be more: the one that waits must
 * not keep the core from the other for the time that it would poll on a core of its own.
 *
 * The measure is the quickest that two processes can take turns on that core: round trips of a byte through pipes, to a
 * child on the same core. Both are measured in turn in short rounds, and the best rounds are compared, so that other
 * work on the machine does not count. A rank that polls until it sleeps takes some hundred times as long, one
 * that polls until its slice is over a thousand times.
 */
#include "../check.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { ROUNDS = 60, STEPS = 20, MOST_WAITING = 25, MOST_TESTING = 150 };

/* ---- the measure ---- */

static int there[2], back[2];

/* The child is made before MPI is. It ends with its parent. */
static pid_t make_child(void)
{
    char byte;
    if (pipe(there) || pipe(back)) abort();
    pid_t child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) continue;
    _exit(0);
}

static void trip_by_pipe(void)
{
    char byte = 0;
    CHECK(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "the pipes do not work");
}

/* ---- what is measured ---- */

static void trip_waiting(void)
{
    int x = 0;
    MPI_Status *no = MPI_STATUS_IGNORE;
    if (check_rank) MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, no);
    MPI_Send(&x, 1, MPI_INT, 1 - check_rank, 1, MPI_COMM_WORLD);
    if (!check_rank) MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, no);
}

static void reduce(void)
{
    int in = 1, out = 0;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out == 2, "the sum is %d", out);
}

static void barrier_by_messages(void)
{
    MPI_Request q;
    MPI_Ibarrier(MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void receive_testing(void)
{
    MPI_Request q;
    int x, done = 0;
    MPI_Irecv(&x, 1, MPI_INT, 1 - check_rank, 1, MPI_COMM_WORLD, &q);
    while (!done) MPI_Test(&q, &done, MPI_STATUS_IGNORE);
}

static void receive_probing(void)
{
    int x, there_is = 0;
    while (!there_is) MPI_Iprobe(1 - check_rank, 1, MPI_COMM_WORLD, &there_is, MPI_STATUS_IGNORE);
    MPI_Recv(&x, 1, MPI_INT, 1 - check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void trip_polling(void (*receive)(void))
{
    int x = 0;
    if (check_rank) receive();
    MPI_Send(&x, 1, MPI_INT, 1 - check_rank, 1, MPI_COMM_WORLD);
    if (!check_rank) receive();
}

static void trip_testing(void) { trip_polling(receive_testing); }
static void trip_probing(void) { trip_polling(receive_probing); }

static double seconds_of(void (*step)(void))
{
    double t = MPI_Wtime();
    for (int i = 0; i < STEPS; i++) step();
    return MPI_Wtime() - t;
}

/* Rank 0 judges. Meanwhile rank 1 sleeps in its receive, so that the pipes have the core for themselves. */
static void compare(const char *what, void (*step)(void), double most)
{
    double best = 1e9, by_pipe = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double t = seconds_of(step);
        if (t < best) best = t;
        t = check_rank ? 1e9 : seconds_of(trip_by_pipe);
        if (t < by_pipe) by_pipe = t;
    }
    if (check_rank) return;
    printf("%s: %.1f us, by pipes %.1f us\n", what, best / STEPS * 1e6, by_pipe / STEPS * 1e6);
    CHECK(best < most * by_pipe, "%s takes %.0f us on a shared core, %.1f times what a turn by pipes takes", what,
          best / STEPS * 1e6, best / by_pipe);
}

/* The main thread of `process` (0: this one) runs on `core` from now on; false if it may not. */
static bool run_on(pid_t process, int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    return !sched_setaffinity(process, sizeof one, &one);
}

int main(int argc, char **argv)
{
    cpu_set_t mask, after;
    pid_t child = make_child();
    check_start(&argc, &argv);
    int core = sched_getcpu(), bad;
    bool ok = !sched_getaffinity(0, sizeof mask, &mask);
    MPI_Bcast(&core, 1, MPI_INT, 0, MPI_COMM_WORLD);
    bad = !ok || !run_on(0, core) || !run_on(child, core);
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (bad || check_size != 2) return check_skip("two ranks cannot be put on one core");
    compare("a round trip", trip_waiting, MOST_WAITING);
    compare("MPI_Allreduce", reduce, MOST_WAITING);
    compare("MPI_Ibarrier", barrier_by_messages, MOST_WAITING);
    compare("a round trip by MPI_Test", trip_testing, MOST_TESTING);
    compare("a round trip by MPI_Iprobe", trip_probing, MOST_TESTING);

    /* A rank may move now. Its mask is the program's. */
    CHECK(!sched_setaffinity(0, sizeof mask, &mask), "the mask cannot be set");
    compare("a round trip, free to move,", trip_waiting, MOST_WAITING);
    CHECK(!sched_getaffinity(0, sizeof after, &after) && CPU_EQUAL(&mask, &after), "the affinity mask has changed");
    kill(child, SIGKILL);
    return check_done();
}
