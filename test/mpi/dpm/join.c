/*
 * join.c - MPI_Comm_join: two processes with a TCP socket between them become those of an intercommunicator; the socket carries the names of
 * ports and a byte, and is left as it was. Ranks 2k and 2k + 1 do so at the same time; then what cannot be.
 */
#include "../check.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAG 5
#define NAME 800 /* bytes of a name in the socket: PORT_NAME of src/dpm/port.h */

/* A connection of this rank with `other`, by the loopback interface. */
static int connected_socket(int other)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0, "no socket");
    if (check_rank > other) {
        CHECK_OK(MPI_Recv(&a.sin_port, sizeof a.sin_port, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(!connect(fd, (struct sockaddr *)&a, n), "no connection");
        return fd;
    }
    CHECK(!bind(fd, (struct sockaddr *)&a, n) && !listen(fd, 1) && !getsockname(fd, (struct sockaddr *)&a, &n), "nothing to listen at");
    CHECK_OK(MPI_Ssend(&a.sin_port, sizeof a.sin_port, MPI_BYTE, other, TAG, MPI_COMM_WORLD)); /* it has come before we wait outside of MPI */
    int one = accept(fd, NULL, NULL);
    CHECK(one >= 0, "nobody has connected");
    close(fd);
    return one;
}

/* What has gone over the socket, both ways. */
static uint64_t bytes_of(int fd)
{
    struct tcp_info i = {0};
    socklen_t n = sizeof i;
    CHECK(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n), "no facts about the socket");
    return i.tcpi_bytes_received + i.tcpi_bytes_acked;
}

static void traffic(MPI_Comm inter)
{
    static int mine[50000], its[50000];
    for (int k = 1; k <= 50000; k = 7 * k + 1) {
        for (int i = 0; i < k; i++) mine[i] = 100 * check_rank + i;
        CHECK_OK(MPI_Sendrecv(mine, k, MPI_INT, 0, TAG, its, k, MPI_INT, 0, TAG, inter, MPI_STATUS_IGNORE));
        CHECK(its[k - 1] == 100 * (check_rank ^ 1) + k - 1, "%d numbers, the last is %d", k, its[k - 1]);
    }
}

static void join(int other)
{
    MPI_Comm inter;
    int size = 0, remote = 0, fd = connected_socket(other);
    char byte = (char)check_rank, its = 0;
    CHECK_OK(MPI_Comm_join(fd, &inter));
    CHECK_OK(MPI_Comm_size(inter, &size));
    CHECK_OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(size == 1 && remote == 1, "groups of %d and %d", size, remote);
    usleep(50000); /* acknowledgements */
    uint64_t before = bytes_of(fd);
    CHECK(before > 0 && before < 4096, "%llu bytes for two names", (unsigned long long)before);
    traffic(inter);
    usleep(50000);
    CHECK(bytes_of(fd) == before, "%llu bytes, and %llu before messages were sent", (unsigned long long)bytes_of(fd), (unsigned long long)before);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(poll(&p, 1, 0) == 0, "something is left in the socket");
    CHECK_OK(MPI_Barrier(inter)); /* the other one has looked as well, before there is something */
    CHECK(send(fd, &byte, 1, 0) == 1 && recv(fd, &its, 1, 0) == 1 && its == other, "the socket is not what it was");
    close(fd);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

/* Another process that sends a name, and perhaps a byte behind it, and closes the socket then or does not. With a higher name than ours it
 * is the one that calls, with a lower one it is called. It hears by a byte that we have failed; with an empty name it cannot be joined. */
static void half(const char *its, const char *then, bool closes)
{
    int pair[2];
    char name[NAME], byte = 0;
    MPI_Comm inter = MPI_COMM_SELF;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
    memset(name, 0, sizeof name);
    strcpy(name, its);
    CHECK(send(pair[1], name, sizeof name, 0) == sizeof name, "no name");
    CHECK(send(pair[1], then, strlen(then), 0) == (ssize_t)strlen(then), "no byte");
    if (closes) CHECK(!shutdown(pair[1], SHUT_WR), "not closed");
    CHECK(MPI_Comm_join(pair[0], &inter) != MPI_SUCCESS && inter == MPI_COMM_NULL, "joined with %s", its);
    CHECK(recv(pair[0], &byte, 1, MSG_DONTWAIT) <= 0, "a byte is left");
    CHECK(recv(pair[1], name, sizeof name, MSG_WAITALL) == sizeof name && *name, "no name has come");
    ssize_t told = recv(pair[1], &byte, 1, MSG_DONTWAIT);
    CHECK(*its ? told == 1 && byte == 'n' : told <= 0, "%zd bytes behind the name", told);
    close(pair[0]);
    close(pair[1]);
}

/* Hears the name and the byte of the one that joins, and says its own byte late. */
static void *say_late(void *fd)
{
    char heard[NAME + 1];
    ssize_t n = recv(*(int *)fd, heard, sizeof heard, MSG_WAITALL);
    usleep(300000);
    return n == sizeof heard && heard[NAME] == 'n' && send(*(int *)fd, "n", 1, 0) == 1 ? fd : NULL;
}

/* One that calls, and gets no answer, waits for the other's byte, which comes late: nothing is left in the socket. */
static void late_byte(void)
{
    int pair[2];
    char name[NAME] = "! lower: cannot be called", byte;
    pthread_t thread;
    void *told;
    MPI_Comm inter = MPI_COMM_SELF;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
    CHECK(send(pair[1], name, sizeof name, 0) == sizeof name, "no name");
    CHECK(!pthread_create(&thread, NULL, say_late, &pair[1]), "no thread");
    CHECK_CLASS(MPI_Comm_join(pair[0], &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    pthread_join(thread, &told);
    CHECK(told == &pair[1], "the other one has not heard that it failed");
    CHECK(recv(pair[0], &byte, 1, MSG_DONTWAIT) <= 0, "a byte is left");
    close(pair[0]);
    close(pair[1]);
}

/* A descriptor that is none, one whose other end is closed, one that says something else, and processes that do not call, or do not
 * answer. */
static void wrong(void)
{
    int pair[2];
    char noise[4096];
    MPI_Comm inter = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_join(-1, &inter), MPI_ERR_ARG);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
    close(pair[1]);
    CHECK(MPI_Comm_join(pair[0], &inter) != MPI_SUCCESS && inter == MPI_COMM_NULL, "joined with nobody");
    close(pair[0]);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "no sockets");
    memset(noise, 'x', sizeof noise);
    CHECK(send(pair[1], noise, sizeof noise, 0) == sizeof noise, "noise");
    CHECK(MPI_Comm_join(pair[0], &inter) != MPI_SUCCESS && inter == MPI_COMM_NULL, "joined by noise");
    close(pair[0]);
    close(pair[1]);
    half("~ higher, and gone", "", true);
    half("~ higher, could not call", "n", false);
    half("! lower", "", false);
    half("", "", false);
    late_byte();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size % 2) return check_skip("an even number of ranks is needed");
    for (int i = 0; i < 3; i++) join(check_rank ^ 1);
    wrong();
    return check_done();
}
