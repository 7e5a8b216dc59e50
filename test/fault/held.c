/*
 * held.c PAGE LATE HELD - rank LATE comes last into MPI_Finalize. Rank HELD polls there (TERN_SPIN), and loses the core in the moment
 * in which its wait looks how long it has lasted, while others pass the last barrier and end. They have no connection to
 * each other. PAGE: a file of 4096 bytes in which the ranks find each other.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATE_US 5000  /* the others wait in the barrier */
#define HELD_US 60000 /* longer than the 20 ms after which a wait looks who has ended; others have left */

static struct page {
    _Atomic int come;
    _Atomic bool late_comes;
} * page;
static _Atomic bool hold; /* threads of PMIx look at the clock as well */
static bool held;

/* In place of the C library's, also for the MPI library. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (hold && page->late_comes && gettid() == getpid()) {
        hold = false;
        held = true;
        usleep(HELD_US);
    }
    return (int)syscall(SYS_clock_gettime, clock, t);
}

static void open_page(const char *path)
{
    int fd = open(path, O_RDWR);
    page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) perror(path), exit(2);
    close(fd);
}

int main(int argc, char **argv)
{
    int rank, size;
    if (argc != 4) return 2;
    open_page(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hold = rank == atoi(argv[3]);
    page->come++;
    if (rank == atoi(argv[2])) {
        while (page->come < size) usleep(100);
        usleep(LATE_US);
        page->late_comes = true;
    }
    int rc = MPI_Finalize();
    return rc || (rank == atoi(argv[3]) && !held);
}
