/*
 * early.c - large messages to a rank that has posted the receive and computes, and from one that has started the send and computes
 * (PRO-18, PRO-33): the other side's call ends all the same. A rank "computes" until the other one has said by way of memory that its
 * call is over, so a call that waits for that rank never ends.
 *
 * Ranks in pairs, 0 and 1, 2 and 3, and so on. And what such receives must not change: which message is which receive's (PRO-24, PRO-25),
 * what is cut off, and what a probe finds.
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

/* ---- which message is which receive's ---- */

enum { LARGE = 200000, SMALL = 100, ROOM = 300000 };

/* Of contents that have not been in these buffers before; the same at both ranks of a pair. */
static int new_seed(void)
{
    static int seed = 1000;
    return seed += 10;
}

/* Rank 0 of the pair receives, rank 1 sends; a message of no bytes says that the receives are posted. */
static int receives(void) { return check_rank % 2 == 0; }

static void posted(void)
{
    if (receives()) MPI_Send(NULL, 0, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD);
    else MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void came(char *at, int bytes, int seed, const MPI_Status *st)
{
    int n = -1;
    MPI_Get_count(st, MPI_BYTE, &n);
    CHECK(n == bytes && !check_differ(at, (size_t)bytes, (unsigned)seed), "%d bytes in place of %d, or others", n, bytes);
}

/* Two receives and two messages of one tag: the first is the first one's, whichever of the messages is large (PRO-24). `rooms`: bytes of
 * the receives. */
static void in_order(const int rooms[2], const int messages[2])
{
    static char at[2][ROOM];
    int seed = new_seed();
    MPI_Request r[2];
    MPI_Status st[2];
    if (receives()) {
        for (int i = 0; i < 2; i++) MPI_Irecv(at[i], rooms[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r[i]);
        posted();
        MPI_Waitall(2, r, st);
        for (int i = 0; i < 2; i++) came(at[i], messages[i], seed + i, &st[i]);
        return;
    }
    for (int i = 0; i < 2; i++) check_fill(at[i], (size_t)messages[i], (unsigned)(seed + i));
    posted();
    for (int i = 0; i < 2; i++) MPI_Isend(at[i], messages[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

/* A message that is longer than the receive is an error, and nothing is written behind it; the next one is whole. */
static void cut_off(MPI_Comm all)
{
    static char at[ROOM];
    int seed = new_seed();
    MPI_Request r;
    MPI_Status st;
    if (receives()) {
        check_fill(at + LARGE, ROOM - LARGE, 9);
        MPI_Irecv(at, LARGE, MPI_BYTE, peer, TAG, all, &r);
        posted();
        CHECK_CLASS(MPI_Wait(&r, &st), MPI_ERR_TRUNCATE);
        CHECK(!check_differ(at + LARGE, ROOM - LARGE, 9), "written behind the receive");
        MPI_Recv(at, ROOM, MPI_BYTE, peer, TAG, all, &st);
        came(at, LARGE, seed, &st);
        return;
    }
    posted();
    check_fill(at, ROOM, (unsigned)seed + 1);
    CHECK_OK(MPI_Send(at, ROOM, MPI_BYTE, peer, TAG, all));
    check_fill(at, LARGE, (unsigned)seed);
    CHECK_OK(MPI_Send(at, LARGE, MPI_BYTE, peer, TAG, all));
}

/* A probe finds the second message: the first one is the receive's that was posted before. */
static void probed(void)
{
    static char at[2][LARGE];
    int seed = new_seed();
    MPI_Request r;
    MPI_Status st;
    MPI_Message m;
    if (receives()) {
        MPI_Irecv(at[0], LARGE, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r);
        posted();
        MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
        MPI_Mrecv(at[1], LARGE, MPI_BYTE, &m, &st);
        came(at[1], LARGE, seed + 1, &st);
        MPI_Wait(&r, &st);
        came(at[0], LARGE, seed, &st);
        return;
    }
    posted();
    for (int i = 0; i < 2; i++) {
        check_fill(at[i], LARGE, (unsigned)(seed + i));
        MPI_Send(at[i], LARGE, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
}

/* Equal tags of all to all (PRO-25). */
static void all_to_all(int seed)
{
    MPI_Request *r = malloc(2 * (size_t)check_size * sizeof *r);
    char *in = malloc((size_t)check_size * LARGE), *out = malloc((size_t)check_size * LARGE);
    for (int i = 0; i < check_size; i++) MPI_Irecv(in + (size_t)i * LARGE, LARGE, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &r[i]);
    for (int i = 0; i < check_size; i++) {
        check_fill(out + (size_t)i * LARGE, LARGE, (unsigned)(seed + check_rank * check_size + i));
        MPI_Isend(out + (size_t)i * LARGE, LARGE, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &r[check_size + i]);
    }
    MPI_Waitall(2 * check_size, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < check_size; i++)
        CHECK(!check_differ(in + (size_t)i * LARGE, LARGE, (unsigned)(seed + i * check_size + check_rank)), "not rank %d's message", i);
    free(r);
    free(in);
    free(out);
}

static void whose(void)
{
    static const int cases[][2][2] = {/* rooms, messages */
                                      {{ROOM, SMALL}, {LARGE, SMALL}}, {{ROOM, ROOM}, {SMALL, LARGE}}, {{ROOM, ROOM}, {LARGE, SMALL}},
                                      {{ROOM, LARGE}, {LARGE, LARGE}}, {{ROOM, ROOM}, {0, LARGE}}};
    MPI_Comm all;
    for (int round = 0; round < 20 && peer < check_size; round++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) in_order(cases[i][0], cases[i][1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    for (int round = 0; round < 5 && peer < check_size; round++) {
        cut_off(all);
        probed();
    }
    MPI_Comm_free(&all);
    for (int round = 0; round < 5; round++) all_to_all(round);
}

/* Over sockets, what their buffers take is sent early. */
static int in_memory(void)
{
    const char *transports = getenv("TERN_TRANSPORTS");
    return !transports || !strstr(transports, "tcp");
}

int main(int argc, char **argv)
{
    static const int sizes[] = {65536, 65537, 100000, 256 << 10, 1 << 20, 4 << 20};
    check_start(&argc, &argv);
    peer = check_rank ^ 1;
    map_file();
    for (int i = 0; i < 20 && peer < check_size; i++) nothing();
    for (int round = 0; round < 40 && peer < check_size; round++)
        for (int s = 0; s < (in_memory() && round < 8 ? 6 : 4); s++) {
            calls = (check_rank + round) % 2;
            one_call(round % 3 != 0, sizes[s], round);
            both(sizes[s], round);
        }
    whose();
    munmap((void *)said, 4096);
    return check_done();
}
