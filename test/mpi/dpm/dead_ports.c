/*
 * dead_ports.c - ports of processes that have gone, have closed them or do not look after them, and callers that die or are stopped, in
 * their call or behind it: what the calls say of it, and that they end. The other processes are this program again, each a job of its
 * own.
 */
#include "../check.h"

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *own; /* this program */
static int root;        /* of the calls */

/* ---- other processes ---- */

static char port[MPI_MAX_PORT_NAME];

/* Opens a port, says its name, and is in no call of MPI any more. */
static void child_open(void)
{
    MPI_Open_port(MPI_INFO_NULL, port);
    printf("%s\n", port);
    fflush(stdout);
    for (;;) pause();
}

static void child_call(const char *name)
{
    MPI_Comm inter;
    int word = 4711;
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Send(&word, 1, MPI_INT, root, 1, inter);
    MPI_Comm_disconnect(&inter);
}

/* Connects, and is in no call of MPI any more. */
static void child_stay(const char *name)
{
    MPI_Comm inter;
    MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    for (;;) pause();
}

static int child(char **argv)
{
    MPI_Init(NULL, NULL);
    root = atoi(argv[2]);
    if (!strcmp(argv[1], "open")) child_open();
    else if (!strcmp(argv[1], "stay")) child_stay(argv[3]);
    else child_call(argv[3]);
    MPI_Finalize();
    return 0;
}

/* Starts one; *out, if not NULL, is what it says. */
static pid_t start(const char *what, const char *name, int *out)
{
    char number[20];
    char *argv[] = {(char *)own, (char *)what, number, (char *)name, NULL};
    int way[2];
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    snprintf(number, sizeof number, "%d", root);
    posix_spawn_file_actions_init(&actions);
    if (out && pipe(way)) return -1;
    if (out) posix_spawn_file_actions_adddup2(&actions, way[1], 1);
    setenv("TERN_BOOTSTRAP", "single", 1);
    if (posix_spawn(&pid, own, &actions, NULL, argv, environ)) pid = -1;
    unsetenv("TERN_BOOTSTRAP");
    posix_spawn_file_actions_destroy(&actions);
    if (out) {
        close(way[1]);
        *out = way[0];
    }
    CHECK(pid > 0, "%s cannot be started", own);
    return pid;
}

/* A process with a port, whose name is in `port` then. */
static pid_t start_with_port(void)
{
    int out = -1;
    size_t n = 0;
    pid_t pid = start("open", "", &out);
    for (ssize_t k; n < sizeof port - 1 && (k = read(out, port + n, sizeof port - 1 - n)) > 0 && !memchr(port + n, '\n', (size_t)k);) n += (size_t)k;
    close(out);
    port[strcspn(port, "\n")] = 0;
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- calls ---- */

/* All ranks: how long it takes to be told that the port cannot be connected to. */
static double connect_in_vain(const char *part)
{
    MPI_Comm inter = MPI_COMM_WORLD;
    double begin = MPI_Wtime();
    if (check_rank == root) CHECK_WORDS(MPI_Comm_connect(port, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter), MPI_ERR_PORT, part);
    else CHECK_CLASS(MPI_Comm_connect(NULL, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    return MPI_Wtime() - begin;
}

/* The time of a process that is there and does not answer, TERN_DGRAM_TIMEOUT, is that of no other one. */
static void vain_calls(void)
{
    pid_t pid = 0;
    if (check_rank == root) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    double closed = connect_in_vain("nobody listens at");
    if (check_rank == root) end(start_with_port());
    double dead = connect_in_vain("nobody listens at");
    if (check_rank == root) pid = start_with_port();
    double silent = connect_in_vain("no answer from");
    CHECK(closed < silent / 2 && dead < silent / 2, "a closed port took %.3f s, one of a dead process %.3f s, a silent one %.3f s", closed, dead, silent);
    if (check_rank == root) end(pid);
}

/* One that dies is waited for no more; the next one takes its place. */
static void caller_dies(double seconds)
{
    MPI_Comm inter;
    pid_t bad = 0, good = 0;
    int word = 0, size = 0, flag;
    if (check_rank == root) {
        MPI_Open_port(MPI_INFO_NULL, port);
        bad = start("call", port, NULL);
        for (double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        end(bad);
        good = start("call", port, NULL);
    }
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter));
    CHECK_OK(MPI_Comm_remote_size(inter, &size));
    CHECK(size == 1, "%d processes have connected", size);
    if (check_rank == root) {
        CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        CHECK(word == 4711, "the caller says %d", word);
        CHECK_OK(MPI_Close_port(port));
    }
    CHECK_OK(MPI_Comm_disconnect(&inter));
    if (good) waitpid(good, NULL, 0);
}

/* One that is stopped in the midst of its call is given up; the next one takes its place. When it goes on, its call fails. */
static void caller_stops(double seconds)
{
    MPI_Comm inter;
    pid_t bad = 0, good = 0;
    int word = 0, flag, status = 0;
    double begin = MPI_Wtime();
    if (check_rank == root) {
        MPI_Open_port(MPI_INFO_NULL, port);
        bad = start("call", port, NULL);
        while (MPI_Wtime() - begin < seconds) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        kill(bad, SIGSTOP);
        good = start("call", port, NULL);
    }
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter));
    if (check_rank == root) {
        CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        CHECK(word == 4711, "the caller says %d", word);
        CHECK_OK(MPI_Close_port(port));
        kill(bad, SIGCONT);
        waitpid(bad, &status, 0);
        CHECK(status, "the call of the stopped process has not failed");
    }
    CHECK_OK(MPI_Comm_disconnect(&inter));
    if (good) waitpid(good, NULL, 0);
}

/* Calls that look, and do not wait: with what they end when the process that they name is found dead; MPI_SUCCESS: it is not found. */
static int look_by_test(MPI_Comm inter, double until)
{
    MPI_Request r;
    int word, rc = MPI_Irecv(&word, 1, MPI_INT, 0, 1, inter, &r), flag = 0;
    while (!rc && !flag && MPI_Wtime() < until) rc = MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    if (!rc && !flag) MPI_Cancel(&r);
    if (!rc && !flag) MPI_Request_free(&r);
    return rc;
}

static int look_by_testany(MPI_Comm inter, double until)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL};
    int word, rc = MPI_Irecv(&word, 1, MPI_INT, 0, 1, inter, &r[1]), flag = 0, which;
    while (!rc && !flag && MPI_Wtime() < until) rc = MPI_Testany(2, r, &which, &flag, MPI_STATUS_IGNORE);
    if (!rc && !flag) MPI_Cancel(&r[1]);
    if (!rc && !flag) MPI_Request_free(&r[1]);
    return rc;
}

static int look_by_probe(MPI_Comm inter, double until)
{
    int rc = MPI_SUCCESS, flag = 0;
    while (!rc && !flag && MPI_Wtime() < until) rc = MPI_Iprobe(0, 1, inter, &flag, MPI_STATUS_IGNORE);
    return rc;
}

static int look_by_send(MPI_Comm inter, double until)
{
    MPI_Request r;
    int word = 1, rc = MPI_Issend(&word, 1, MPI_INT, 0, 1, inter, &r), flag = 0;
    while (!rc && !flag && MPI_Wtime() < until) rc = MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    return rc;
}

/* A process has connected, has said nothing, so that no connection to it is there, and has died. Whoever looks finds that in 5 s. */
static void member_dies(int (*look)(MPI_Comm, double))
{
    MPI_Comm inter;
    pid_t other = 0;
    if (check_rank == root) {
        CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
        other = start("stay", port, NULL);
    }
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (check_rank == root) {
        CHECK_OK(MPI_Close_port(port));
        end(other);
    }
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    double begin = MPI_Wtime();
    CHECK_WORDS(look(inter, begin + 5), MPI_ERR_PROC_ABORTED, "rank 0 of job single");
    CHECK(MPI_Wtime() - begin < 5, "the death was found after %.2f s", MPI_Wtime() - begin);
    MPI_Comm_free(&inter);
}

int main(int argc, char **argv)
{
    own = realpath(argv[0], NULL);
    if (argc > 1) return child(argv);
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (root = 0; root < check_size; root += check_size > 1 ? check_size - 1 : 1) vain_calls();
    root = 0;
    for (int ms = 5; ms <= 320; ms *= 4) caller_dies(ms / 1000.);
    caller_stops(0.3);
    member_dies(look_by_test);
    member_dies(look_by_testany);
    member_dies(look_by_probe);
    member_dies(look_by_send);
    return check_done();
}
