/*
 * crowd.c - a process that waits polls while there are enough cores, and gives up its core after each look when it and the processes
 * of other jobs that it is connected with are more than the cores: the parent, which knows all of its children, and a child, which
 * only knows the parent. When the last child has gone the parent polls again.
 *
 * The library's calls of sched_yield come to the one below. TERN_SPIN_MAX and TERN_YIELD_MAX are larger than all waits here: a wait looks
 * on to its end.
 */
#include "../check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CORES_MAX = 16, FEW = 8, MANY = 24, TRIES = 50 };

static _Atomic int yields;

__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* Of a wait of 20 ms. The other side is in answer_late. */
static int yields_of_a_wait(MPI_Comm inter)
{
    int word = 1;
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 1, inter));
    int before = yields;
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
    return yields - before;
}

static void answer_late(MPI_Comm inter)
{
    int word;
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    usleep(20000);
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 2, inter));
}

static int yields_there(MPI_Comm inter)
{
    int count = -1;
    answer_late(inter);
    CHECK_OK(MPI_Recv(&count, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
    return count;
}

/* Until the parent sends anything but a 1: its wait, then one here. */
static int child(MPI_Comm parent)
{
    for (int again; CHECK_OK(MPI_Recv(&again, 1, MPI_INT, 0, 4, parent, MPI_STATUS_IGNORE)), again == 1;) {
        answer_late(parent);
        int count = yields_of_a_wait(parent);
        CHECK_OK(MPI_Send(&count, 1, MPI_INT, 0, 3, parent));
    }
    CHECK_OK(MPI_Comm_disconnect(&parent));
    return check_done();
}

struct seen {
    int here, there; /* yields */
};

static struct seen both_wait(MPI_Comm inter)
{
    struct seen s;
    int again = 1;
    CHECK_OK(MPI_Send(&again, 1, MPI_INT, 0, 4, inter));
    s.here = yields_of_a_wait(inter);
    s.there = yields_there(inter);
    return s;
}

/* Beside busy programs a single yield may take longer than all looking does. */
static bool both_yield(MPI_Comm inter, struct seen *s)
{
    struct seen most = *s;
    for (int i = 0; i < TRIES && (most.here < MANY || most.there < MANY); i++) {
        *s = both_wait(inter);
        if (s->here > most.here) most.here = s->here;
        if (s->there > most.there) most.there = s->there;
    }
    *s = most;
    return most.here >= MANY && most.there >= MANY;
}

static bool both_poll(const struct seen *s) { return s->here <= FEW && s->there <= FEW; }

static void dismiss(MPI_Comm *inter)
{
    int again = 0;
    CHECK_OK(MPI_Send(&again, 1, MPI_INT, 0, 4, *inter));
    CHECK_OK(MPI_Comm_disconnect(inter));
}

static MPI_Comm spawn_one(char *own)
{
    MPI_Comm inter;
    CHECK_OK(MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    return inter;
}

/* Of processor time, which leaves fewer cores than the mask says. */
static bool has_quota(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f) f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re");
    int first = f ? fgetc(f) : 'm';
    if (f) fclose(f);
    return first >= '1' && first <= '9';
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter[CORES_MAX];
    cpu_set_t mask;
    int n = 0;
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    int cores = sched_getaffinity(0, sizeof mask, &mask) ? 0 : CPU_COUNT(&mask);
    if (check_size != 1 || cores < 2 || cores > CORES_MAX) return check_skip("one rank and 2 to 16 cores are needed");
    bool poll = true;
    while (n < cores && poll) {
        inter[n++] = spawn_one(argv[0]);
        struct seen s = both_wait(inter[n - 1]);
        poll = n < cores && (both_poll(&s) || !has_quota());
        CHECK(!poll || both_poll(&s), "%d processes on %d cores: %d yields, %d of the child", n + 1, cores, s.here, s.there);
        CHECK(poll || both_yield(inter[n - 1], &s), "%d processes on %d cores: %d yields, %d of the child", n + 1, cores, s.here, s.there);
    }
    dismiss(&inter[--n]);
    if (n) {
        struct seen s = both_wait(inter[0]);
        CHECK(both_poll(&s), "behind the last child's end: %d yields, %d of the other child", s.here, s.there);
    }
    while (n) dismiss(&inter[--n]);
    return check_done();
}
