/*
 * early.c - large messages to a rank that has posted the receive and computes, and from one that has started the send and computes
 * (PRO-18, PRO-33): the other side's call ends all the same. A rank "computes" until the other one has said by way of memory that its
 * call is over, so a call that waits for that rank never ends.
 *
 * Ranks in pairs, 0 and 1, 2 and 3, and so on.
 */
#include "../check.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECONDS 20 /* that a rank computes at most */
#define TAG 5

static _Atomic int *said; /* one for each pair, in a file that all have mapped: rounds that the calling rank has done */
static int peer, calls;   /* this rank is the one that calls */

/* No call of MPI. */
static int compute_until(int round)
{
    struct timespec t = {0, 100000};
    for (int i = 0; i < SECONDS * 10000 && atomic_load(said + check_rank / 2) < round; i++) nanosleep(&t, NULL);
    return atomic_load(said + check_rank / 2) >= round;
}

static void map_file(void)
{
    char name[64] = "/tmp/tern-early-XXXXXX";
    int fd = -1, n = 4096;
    if (check_rank == 0) CHECK((fd = mkstemp(name)) >= 0 && !ftruncate(fd, n), "no file");
    CHECK_OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (check_rank) CHECK((fd = open(name, O_RDWR)) >= 0, "no file");
    said = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(said != MAP_FAILED, "no memory");
    close(fd);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0) unlink(name);
}

/* `send`: the rank that calls does MPI_Send, else MPI_Recv; the other one has begun the opposite before, and computes. */
static void one_call(int send, int bytes, int seed)
{
    static int round;
    MPI_Request r;
    char *at = malloc((size_t)bytes);
    int sends = send == calls;
    round++;
    if (sends) check_fill(at, (size_t)bytes, (unsigned)seed);
    if (!calls && send) MPI_Irecv(at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r);
    if (!calls && !send) MPI_Isend(at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r);
    /* behind the receive, as small messages are */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG + 1, NULL, 0, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (calls) {
        if (send) MPI_Send(at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        else MPI_Recv(at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        atomic_store(said + check_rank / 2, round);
    } else {
        CHECK(compute_until(round), "%s of %d bytes has waited for a rank that computes", send ? "MPI_Send" : "MPI_Recv", bytes);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    if (!sends) CHECK(!check_differ(at, (size_t)bytes, (unsigned)seed), "the message of %d bytes is another one", bytes);
    free(at);
}

/* An exchange: both have posted their receives. */
static void both(int bytes, int seed)
{
    MPI_Request r;
    char *in = malloc((size_t)bytes), *out = malloc((size_t)bytes);
    check_fill(out, (size_t)bytes, (unsigned)(seed + check_rank));
    MPI_Irecv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG + 1, NULL, 0, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(!check_differ(in, (size_t)bytes, (unsigned)(seed + peer)), "the message of %d bytes is another one", bytes);
    free(in);
    free(out);
}

/* A message without data for a large receive: by the same way, where it is offered (TERN_EAGER_CREDIT=0). */
static void nothing(void)
{
    static char room[65536];
    MPI_Request r;
    MPI_Status st;
    int n = -1;
    MPI_Irecv(room, sizeof room, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG + 1, NULL, 0, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(room, 0, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    MPI_Wait(&r, &st);
    MPI_Get_count(&st, MPI_BYTE, &n);
    CHECK(n == 0, "%d bytes came in place of none", n);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {65536, 65537, 100000, 256 << 10};
    check_start(&argc, &argv);
    peer = check_rank ^ 1;
    map_file();
    for (int i = 0; i < 20 && peer < check_size; i++) nothing();
    for (int round = 0; round < 40 && peer < check_size; round++)
        for (int s = 0; s < 4; s++) {
            calls = (check_rank + round) % 2;
            one_call(round % 3 != 0, sizes[s], round);
            both(sizes[s], round);
        }
    munmap((void *)said, 4096);
    return check_done();
}
