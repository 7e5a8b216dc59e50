/*
 * single_rank.c - a program that is started without mpiexec, for singleton.test. What it does is its first word; it spawns
 * itself, and then the first word says what the child does.
 *
 *     spawn           children that talk with it, one and three at a time, twice each; names and ports, both ways
 *     talk            the same in a process that has been started by a launcher of others
 *     facts           directory, variable and limit are those of a child, too
 *     wait            what the program itself waits for and is signalled is as it was without spawning
 *     files           a pipe of the program's is nobody else's
 *     stay N          spawns N children that sleep for ever, says "up", and sleeps
 *     fork            the same with a copy of itself that lives on when it is killed
 *     bare            the same after it has closed descriptors that it did not open, and then ends in order
 *     lost            a child is killed: an error, and the next child is as good as the first
 *     end             calls exit without MPI_Finalize while a child sleeps
 *     outlive         ends in order, and its child says so
 *     accept FILE     opens a port whose name it writes to the file, and connect FILE calls there: two jobs of one size
 *     vain            spawns a program that is no MPI program, while the mpiexec is killed: an error
 *     words           says the error of each call that needs a launcher
 */
#include "../mpi/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MOST 200 /* open files, the limit that a child gets */

static char *own; /* this program */
static MPI_Comm parent;

/* ---- children ---- */

static void child_echo(void)
{
    int word = check_rank + 100 * check_size, back = -1, remote = 0;
    CHECK_OK(MPI_Comm_remote_size(parent, &remote));
    CHECK(remote == 1, "%d parents", remote);
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 1, parent));
    CHECK_OK(MPI_Recv(&back, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE));
    CHECK(back == word, "%d came back", back);
}

/* Calls at the port that the parent has published, and publishes one where the parent calls. */
static void child_names(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int word = 1, back = 0;
    CHECK_OK(MPI_Lookup_name("single parent", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    CHECK_OK(MPI_Sendrecv(&word, 1, MPI_INT, 0, 4, &back, 1, MPI_INT, 0, 4, inter, MPI_STATUS_IGNORE));
    CHECK(back == 2, "the parent says %d", back);
    CHECK_OK(MPI_Comm_disconnect(&inter));
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Publish_name("single child", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 5, parent)); /* it is there */
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    CHECK_OK(MPI_Unpublish_name("single child", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Close_port(port));
}

static void child_facts(void)
{
    char text[1000], *cwd = getcwd(NULL, 0);
    const char *word = getenv("TERN_TEST_WORD"), *early = getenv("TERN_TEST_EARLY");
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    snprintf(text, sizeof text, "in %s with %s and %s and %d files", cwd, early ? early : "nothing", word ? word : "nothing",
             (int)files.rlim_cur);
    CHECK_OK(MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, 1, parent));
    free(cwd);
}

static void child_lost(void)
{
    int word = 0;
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 1, parent));
    raise(SIGKILL);
}

static void sleep_for_ever(void)
{
    printf("up\n");
    fflush(stdout);
    for (;;) pause();
}

static void child_outlive(void)
{
    CHECK_OK(MPI_Comm_disconnect(&parent));
    usleep(300000);
    printf("outlived\n");
}

static int child(const char *what)
{
    if (!strcmp(what, "echo")) child_echo();
    else if (!strcmp(what, "names")) child_names();
    else if (!strcmp(what, "facts")) child_facts();
    else if (!strcmp(what, "lost")) child_lost();
    else if (!strcmp(what, "sleep")) sleep_for_ever();
    else if (!strcmp(what, "outlive")) child_outlive();
    else CHECK(false, "a child is to do '%s'", what);
    if (parent != MPI_COMM_NULL && strcmp(what, "outlive")) CHECK_OK(MPI_Comm_disconnect(&parent));
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

/* ---- the process that was started alone ---- */

static MPI_Comm spawn(const char *what, int n)
{
    char *argv[] = {(char *)(uintptr_t)what, NULL};
    int codes[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, remote = -1;
    MPI_Comm inter = MPI_COMM_NULL;
    CHECK_OK(MPI_Comm_spawn(own, argv, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
    for (int i = 0; i < n; i++) CHECK(codes[i] == MPI_SUCCESS, "code %d is %d", i, codes[i]);
    CHECK_OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == n, "%d children of %d", remote, n);
    return inter;
}

static void echo(int n)
{
    MPI_Comm inter = spawn("echo", n);
    for (int i = 0; i < n; i++) {
        MPI_Status s;
        int word = -1;
        CHECK_OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter, &s));
        CHECK(word == s.MPI_SOURCE + 100 * n, "child %d says %d", s.MPI_SOURCE, word);
        CHECK_OK(MPI_Send(&word, 1, MPI_INT, s.MPI_SOURCE, 2, inter));
    }
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

static void names(void)
{
    char port[MPI_MAX_PORT_NAME] = "", its[MPI_MAX_PORT_NAME] = "";
    int word = 2, back = 0;
    MPI_Comm inter, by_port;
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Publish_name("single parent", MPI_INFO_NULL, port));
    inter = spawn("names", 1);
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &by_port));
    CHECK_OK(MPI_Sendrecv(&word, 1, MPI_INT, 0, 4, &back, 1, MPI_INT, 0, 4, by_port, MPI_STATUS_IGNORE));
    CHECK(back == 1, "the child says %d", back);
    CHECK_OK(MPI_Comm_disconnect(&by_port));
    CHECK_OK(MPI_Recv(&back, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Lookup_name("single child", MPI_INFO_NULL, its));
    CHECK_OK(MPI_Comm_connect(its, MPI_INFO_NULL, 0, MPI_COMM_SELF, &by_port));
    CHECK_OK(MPI_Comm_disconnect(&by_port));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    CHECK_OK(MPI_Unpublish_name("single parent", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Close_port(port));
}

static void attributes(void)
{
    int *value, is_set = 1;
    CHECK(check_size == 1 && parent == MPI_COMM_NULL, "%d processes", check_size);
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &is_set));
    CHECK(!is_set, "there is an MPI_APPNUM");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &is_set));
    CHECK(!is_set || *value >= 1, "MPI_UNIVERSE_SIZE is %d", *value);
}

static void do_talk(void)
{
    for (int i = 0; i < 2; i++) {
        echo(1);
        echo(3);
    }
    names();
}

static void do_facts(const char *dir)
{
    char text[1000] = "", wanted[1000], *cwd;
    MPI_Comm inter;
    CHECK(!chdir(dir) && (cwd = getcwd(NULL, 0)), "no directory %s", dir);
    setenv("TERN_TEST_WORD", "a word", 1);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = FILES_MOST;
    CHECK(!setrlimit(RLIMIT_NOFILE, &files), "no limit");
    snprintf(wanted, sizeof wanted, "in %s with %s and a word and %d files", cwd, getenv("TERN_TEST_EARLY"), FILES_MOST);
    free(cwd);
    inter = spawn("facts", 1);
    CHECK_OK(MPI_Recv(text, sizeof text, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK(!strcmp(text, wanted), "the child is %s, not %s", text, wanted);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

static volatile sig_atomic_t signalled;

static void on_child(int sig)
{
    (void)sig;
    signalled++;
}

static void do_wait(void)
{
    int status = 0, ends[2];
    char byte;
    signal(SIGCHLD, on_child);
    CHECK(!pipe(ends), "no pipe");
    pid_t pid = fork();
    if (!pid) { /* ends when the parent closes the pipe, after the spawning */
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 7 : 1);
    }
    echo(1);
    CHECK(signalled == 0, "%d signals of the ends of children", (int)signalled);
    close(ends[1]);
    close(ends[0]);
    pid_t got;
    while ((got = wait(&status)) < 0 && errno == EINTR) continue;
    CHECK(got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, "waited for %d, got %d (status %d)", (int)pid, (int)got, status);
    CHECK(wait(&status) < 0 && errno == ECHILD, "there is another child");
    CHECK(signalled == 1, "%d signals of the ends of children", (int)signalled);
    echo(1);
    CHECK(wait(&status) < 0 && errno == ECHILD, "there is another child now");
}

static void do_files(void)
{
    int ends[2];
    char byte;
    CHECK(!pipe(ends), "no pipe");
    MPI_Comm inter = spawn("sleep", 1);
    close(ends[1]);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    CHECK(poll(&p, 1, 5000) == 1 && read(ends[0], &byte, 1) == 0, "another process has the pipe open");
    if (!check_failures) printf("good\n");
    fflush(stdout);
    (void)inter;
    raise(SIGKILL); /* the child sleeps for ever */
}

static void do_fork(void)
{
    spawn("sleep", 1);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        for (int i = 0; i < 200 && getppid() != 1; i++) usleep(20000);
        sleep(1);
        _exit(0);
    }
    sleep_for_ever();
}

static void do_bare(void)
{
    MPI_Comm inter = spawn("echo", 1);
    int word = -1, closed = 0;
    for (int fd = 3; fd < 1024; fd++) { /* the line to the launcher, and not what MPI needs for messages */
        int type = 0;
        socklen_t n = sizeof type;
        if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_SEQPACKET && !close(fd)) closed++;
    }
    CHECK(closed == 1, "%d lines", closed);
    usleep(200000);
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 2, inter));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    echo(1);
}

static void do_lost(void)
{
    int word = -1;
    MPI_Comm inter = spawn("lost", 1);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE) != MPI_SUCCESS, "a killed process has sent something");
    (void)MPI_Comm_disconnect(&inter);
    echo(2);
}

/* With the process of the same rank at the other side. */
static void exchange(MPI_Comm inter, int word, int wanted)
{
    int back = 0, remote = 0;
    CHECK_OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == check_size, "%d at the other side", remote);
    CHECK_OK(MPI_Sendrecv(&word, 1, MPI_INT, check_rank, 0, &back, 1, MPI_INT, check_rank, 0, inter, MPI_STATUS_IGNORE));
    CHECK(back == wanted, "the other says %d", back);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

/* The file is whole when it has its name. */
static void do_accept(const char *path)
{
    char port[MPI_MAX_PORT_NAME], part[1000];
    MPI_Comm inter;
    if (check_rank == 0) {
        CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
        snprintf(part, sizeof part, "%s.part", path);
        FILE *f = fopen(part, "w");
        fputs(port, f);
        fclose(f);
        CHECK(!rename(part, path), "no file");
    }
    CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    exchange(inter, 3, 4);
}

static void do_connect(const char *path)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    FILE *f;
    if (check_rank == 0) {
        while (!(f = fopen(path, "r"))) usleep(1000);
        CHECK(fgets(port, sizeof port, f) != NULL, "no name");
        fclose(f);
    }
    CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    exchange(inter, 4, 3);
}

static void say(const char *call, int rc)
{
    char words[MPI_MAX_ERROR_STRING] = "success";
    int n, class = MPI_SUCCESS;
    if (rc) MPI_Error_string(rc, words, &n);
    if (rc) MPI_Error_class(rc, &class);
    printf("%s: class %d: %s\n", call, class, words);
}

static void do_words(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    say("spawn", MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    say("publish", MPI_Publish_name("single", MPI_INFO_NULL, port));
    say("lookup", MPI_Lookup_name("single", MPI_INFO_NULL, port));
}

static void do_vain(void)
{
    char *argv[] = {(char *)(uintptr_t)"100", NULL};
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("spawn", MPI_Comm_spawn("sleep", argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    CHECK(inter == MPI_COMM_NULL, "a communicator");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *with = argc > 2 ? argv[2] : "";
    own = realpath(argv[0], NULL);
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(what);
    if (!strcmp(what, "spawn")) attributes(), do_talk();
    else if (!strcmp(what, "talk")) do_talk();
    else if (!strcmp(what, "facts")) do_facts(with);
    else if (!strcmp(what, "wait")) do_wait();
    else if (!strcmp(what, "files")) do_files();
    else if (!strcmp(what, "stay")) spawn("sleep", atoi(with)), sleep_for_ever();
    else if (!strcmp(what, "fork")) do_fork();
    else if (!strcmp(what, "bare")) do_bare();
    else if (!strcmp(what, "lost")) do_lost();
    else if (!strcmp(what, "end")) spawn("sleep", 1), exit(0);
    else if (!strcmp(what, "accept")) do_accept(with);
    else if (!strcmp(what, "connect")) do_connect(with);
    else if (!strcmp(what, "vain")) do_vain();
    else if (!strcmp(what, "words")) do_words();
    else if (!strcmp(what, "outlive")) {
        MPI_Comm inter = spawn("outlive", 1);
        CHECK_OK(MPI_Comm_disconnect(&inter));
    } else CHECK(false, "nothing is to be done: '%s'", what);
    return check_done();
}
