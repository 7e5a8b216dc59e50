/*
 * crowd.c - a process that waits polls while there are enough cores, and gives up its core after each look when it and the processes
 * of other jobs that it is connected with are more than the cores: the parent, which knows all of its children, and a child, which
 * only knows the parent. When the last child has gone the parent polls again.
 *
 * The library's calls of sched_yield come to the one below.
 */
#include "../check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CORES_MAX = 16, FEW = 8, MANY = 24 };

static _Atomic int yields;

__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

/* Of a wait of 20 ms, which is longer than polling ever pays. The other side is in answer_late. */
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

static void both_wait(MPI_Comm inter, int *here, int *there)
{
    int again = 1;
    CHECK_OK(MPI_Send(&again, 1, MPI_INT, 0, 4, inter));
    *here = yields_of_a_wait(inter);
    *there = yields_there(inter);
}

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

int main(int argc, char **argv)
{
    MPI_Comm parent, inter[CORES_MAX];
    cpu_set_t mask;
    int n = 0, here = 0, there;
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    int cores = sched_getaffinity(0, sizeof mask, &mask) ? 0 : CPU_COUNT(&mask);
    if (check_size != 1 || cores < 2 || cores > CORES_MAX) return check_skip("one rank and 2 to 16 cores are needed");
    while (n < cores && here < MANY) {
        inter[n++] = spawn_one(argv[0]);
        both_wait(inter[n - 1], &here, &there);
        CHECK(n < cores || here >= MANY, "%d processes on %d cores: %d yields of the parent", n + 1, cores, here);
        CHECK(here <= FEW || here >= MANY, "%d processes on %d cores: %d yields of the parent", n + 1, cores, here);
        CHECK(here >= MANY ? there >= MANY : there <= FEW, "%d yields of a child, %d of the parent", there, here);
    }
    dismiss(&inter[--n]);
    if (n) {
        both_wait(inter[0], &here, &there);
        CHECK(here <= FEW && there <= FEW, "behind the last child's end: %d yields, %d of the child", here, there);
    }
    while (n) dismiss(&inter[--n]);
    return check_done();
}
