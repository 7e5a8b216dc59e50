/* own_launcher.c - see own_launcher.h. */
#include "proc/own_launcher.h"
#include "base/err.h"
#include "base/memfile.h"
#include "base/rights.h"
#include "base/sanitizer.h"
#include "base/signals.h"
#include "base/start_attr.h"
#include "base/var.h"
#include "proc/ask.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_ROOM 4096
#define STACK_BYTES ((size_t)256 << 10) /* of the process in between */

/* ---- where it is ---- */

static bool is_there(const char *path) { return !access(path, X_OK); }

/* Beside the folder of the library, or of that one: libraries may lie in lib/x86_64-linux-gnu. */
static bool find_beside(char *path, const char *library)
{
    static const char *const ways[] = {"..", "../.."};
    const char *slash = strrchr(library, '/');
    for (size_t i = 0; slash && i < ARRAY_LEN(ways); i++) {
        snprintf(path, PATH_ROOM, "%.*s/%s/bin/mpiexec", (int)(slash - library), library, ways[i]);
        if (is_there(path)) return true;
    }
    return false;
}

static int find(char *path)
{
    Dl_info here = {0};
    const char *named = var_text(VAR_MPIEXEC), *library = "";
    if (*named) {
        snprintf(path, PATH_ROOM, "%s", named);
        if (is_there(path)) return 0;
        return err_set(TERN_ERR_UNSUPPORTED, "this process was started without mpiexec, and TERN_MPIEXEC=%s cannot be executed: %s", path,
                       strerror(errno));
    }
    if (dladdr((void *)(uintptr_t)own_launcher_start, &here) && here.dli_fname) library = here.dli_fname;
    if (find_beside(path, library)) return 0;
    return err_set(TERN_ERR_UNSUPPORTED,
                   "this process was started without mpiexec, and there is none that it could start in the folder bin beside that of the "
                   "library (%s). The variable TERN_MPIEXEC may name one",
                   library);
}

/* ---- the start ---- */

struct start {
    const char *path;
    char *const *argv;
    struct start_attr how;
    int error;
};

/* The process in between, which has our memory, while our thread stands still. */
static int between(void *arg)
{
    struct start *s = arg;
    pid_t pid;
    s->error = posix_spawn(&pid, s->path, &s->how.files, &s->how.attr, s->argv, environ);
    return 0;
}

/* A child of a child that ends at once: it is adopted by init. Without a signal for its end, which the program might
 * see, the child in between is found by this wait only. 0 or the system's error. */
static int start_apart(struct start *s)
{
    sigset_t before;
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return errno;
    signals_block(&before); /* a handler would run in both */
    pid_t pid = sanitizer_clone(between, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, s);
    int error = pid < 0 ? errno : s->error;
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) continue;
    signals_restore(&before);
    munmap(stack, STACK_BYTES);
    return error;
}

/* Signals that the program ignores are ignored by mpiexec only if they are those of the terminal, as with nohup. mpiexec is a group of
 * its own: the terminal's signals reach the program only, and mpiexec ends when the program does. */
static void open_attr(struct start_attr *s)
{
    static const int kept[] = {SIGHUP, SIGINT, SIGQUIT};
    sigset_t none, reset;
    sigemptyset(&none);
    sigfillset(&reset);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) sigdelset(&reset, kept[i]);
    start_attr_open(s, &none, &reset);
}

/* 0 or the system's error. */
static int start(char *path, int line)
{
    char option[] = ASK_ALONE_OPTION, *argv[] = {path, option, NULL};
    struct start s = {.path = path, .argv = argv};
    open_attr(&s.how);
    posix_spawn_file_actions_addopen(&s.how.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&s.how.files, line, ASK_ALONE_LINE);
    int error = start_apart(&s);
    start_attr_close(&s.how);
    return error;
}

/* ---- the line ---- */

/* Tells it the job's name, and gets the block. */
static int agree(const char *path, const char *job, int line, int *block)
{
    char text[ASK_ALONE_TEXT] = "";
    ssize_t n = send(line, job, strlen(job) + 1, MSG_NOSIGNAL);
    *block = -1;
    if (n > 0) n = rights_recv(line, text, sizeof text - 1, block, 1);
    if (*block >= 0) return 0;
    if (n > 0 && *text) return err_set(TERN_ERR_SYSTEM, "the launcher of this process, %s, cannot serve it: %s", path, text);
    return err_set(TERN_ERR_SYSTEM, "the launcher of this process, %s, has ended at once", path);
}

int own_launcher_start(const char *job, int *line, int *block)
{
    static char path[PATH_ROOM];
    int pair[2], rc = find(path);
    if (rc) return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return err_sys("no line to a launcher of this process");
    int theirs = memfile_move_up(pair[1]), own = memfile_move_up(pair[0]);
    int error = start(path, theirs);
    close(theirs);
    rc = error ? err_set(TERN_ERR_SYSTEM, "cannot start %s, as the launcher of this process: %s", path, strerror(error))
               : agree(path, job, own, block);
    if (rc) close(own);
    else *line = own;
    return rc;
}
