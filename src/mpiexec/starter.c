/* starter.c - see starter.h. */
#include "mpiexec/starter.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/rights.h"
#include "base/start_attr.h"
#include "mpiexec/cpus.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORDERS_FD 3 /* of the starter: where orders come */
#define PAUSE_STARTS 4   /* the starter's pause, as many times what starting a rank took */
#define PAUSE_MOST_MS 40
#define ORDER_WAITS_MS 1000
#define OWN_MOST ((size_t)4 << 20)
#define RANGES_MOST 128

/* ---- orders: a byte with three descriptors ---- */

static_assert(STARTER_ENDS <= RIGHTS_MOST, "an order has room");

static bool send_order(int fd, const int ends[STARTER_ENDS])
{
    return rights_send(fd, "", 1, ends, STARTER_ENDS, MSG_DONTWAIT) == 1;
}

/* False: there will be no more; or this one has failed, as there was no room for descriptors. */
static bool take_order(int fd, int ends[STARTER_ENDS])
{
    char byte;
    return rights_recv(fd, &byte, 1, ends, STARTER_ENDS) > 0 && ends[0] >= 0;
}

/* ---- the first mpiexec ---- */

/* An order, until there is room for it in the socket. */
struct order {
    struct order *next;
    int ends[STARTER_ENDS];
};

static struct {
    const struct job *job;
    char **own;
    pid_t pid;   /* of the starter; 0: there is none */
    pid_t ready; /* the launcher that was made last, until it has ended; 0: there is none */
    int fd;
    struct event *readable, *writable;
    struct order *first, **last; /* as they were given, and will be taken */
    const char *why; /* no launcher could be made */
} self = {.fd = -1, .last = &self.first};

void starter_open(const struct job *j, char **own)
{
    self.job = j;
    self.own = own;
}

static void drop_first(void)
{
    struct order *o = self.first;
    if (!(self.first = o->next)) self.last = &self.first;
    for (int i = 0; i < STARTER_ENDS; i++) close(o->ends[i]);
    free(o);
}

/* There is no starter any more; the next order makes another one. */
static void lose(const char *why)
{
    if (self.fd < 0) return;
    event_free(self.readable);
    event_free(self.writable);
    close(self.fd); /* the launcher that is ready ends as well */
    self.fd = -1;
    if (!self.why) self.why = why;
    while (self.first) drop_first();
}

static void send_orders(void)
{
    while (self.first && send_order(self.fd, self.first->ends)) drop_first();
    if (self.first) event_add(self.writable, NULL);
}

static void take_numbers(void)
{
    int32_t pid;
    ssize_t n = -1;
    while (self.fd >= 0 && (n = recv(self.fd, &pid, sizeof pid, MSG_DONTWAIT)) == sizeof pid) {
        if (pid > 0) self.ready = pid;
        self.why = pid > 0 ? NULL : strerror(-pid);
    }
    if (!n) lose("the process that makes launchers has ended");
}

const char *starter_why(void)
{
    take_numbers();
    return self.why;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    take_numbers();
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    send_orders();
}

static int spawn_starter(int end)
{
    char name[] = "mpiexec", option[] = STARTER_OPTION, *argv[] = {name, option, NULL};
    struct start_attr how;
    sigset_t standard;
    sigemptyset(&standard);
    const int ours[] = {SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) sigaddset(&standard, ours[i]);
    start_attr_open(&how, &self.job->signal_mask, &standard); /* the terminal's signals come by this mpiexec */
    posix_spawn_file_actions_addopen(&how.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&how.files, end, ORDERS_FD); /* equal numbers: it is kept open */
    int error = posix_spawn(&self.pid, "/proc/self/exe", &how.files, &how.attr, argv, self.own);
    start_attr_close(&how);
    if (error) self.pid = 0;
    return error;
}

/* 0 or the system's error. */
static int start(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) return errno;
    int error = spawn_starter(pair[1]);
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    self.fd = pair[0];
    self.readable = event_new(self.job->base, self.fd, EV_READ | EV_PERSIST, on_readable, NULL);
    self.writable = event_new(self.job->base, self.fd, EV_WRITE, on_writable, NULL);
    event_add(self.readable, NULL);
    return 0;
}

void starter_order(const int ends[STARTER_ENDS])
{
    struct order *o = xcalloc(1, sizeof *o);
    int error = self.fd < 0 ? start() : 0;
    memcpy(o->ends, ends, sizeof o->ends);
    *self.last = o;
    self.last = &o->next;
    self.why = error ? strerror(error) : NULL;
    if (error) drop_first();
    else send_orders();
}

/* What the starter has said before is taken first: the launcher may be the one that it has made last. */
bool starter_exited(pid_t pid)
{
    take_numbers();
    bool starter = self.pid && pid == self.pid, ready = self.ready && pid == self.ready;
    if (starter) self.pid = 0;
    if (ready) self.ready = 0;
    return starter || ready;
}

/* Unless it has been waited for already, and the number may be another's. */
static void end_process(pid_t pid)
{
    if (!pid || waitpid(pid, NULL, WNOHANG)) return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

void starter_close(void)
{
    lose("the job is ending");
    end_process(self.pid);
    end_process(self.ready);
    self.pid = self.ready = 0;
}

/* ---- the starter, and launchers ---- */

static int next_fd = -1; /* of a launcher: its end of a pair, which it closes */
static uint64_t order_ns; /* of a launcher: when it got its order */

/* The kernel ends this process when the first mpiexec, which has made the socket, ends. */
static void tie_to_first(void)
{
    struct ucred first;
    socklen_t n = sizeof first;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getsockopt(ORDERS_FD, SOL_SOCKET, SO_PEERCRED, &first, &n) || getppid() != first.pid) _exit(EXIT_RESOURCE);
}

/*
 * What a fork leaves to be done page by page when a page is touched, a launcher does at once, and before there is an order (0.2 ms): copies
 * of data, bss, heap and stack, and the mapping of the program and the C library. Where they lie is found once, by the starter: reading that
 * takes longer. Where the system cannot do it, it happens then.
 */
static struct range {
    uintptr_t from, to;
    bool copied;
} ranges[RANGES_MOST];
static unsigned range_count;

static void find_pages(void)
{
    char line[512], mode[8], path[256];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool program = true; /* the first mappings are its own */
    while (maps && range_count < RANGES_MOST && fgets(line, sizeof line, maps)) {
        struct range r;
        *path = 0;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %*s %255s", &r.from, &r.to, mode, path) < 3) continue;
        program &= strcmp(path, "[heap]") != 0;
        r.copied = !strcmp(mode, "rw-p");
        bool run = (program || strstr(path, "/libc.so")) && (!strcmp(mode, "r-xp") || !strcmp(mode, "r--p"));
        if ((r.copied || run) && r.to - r.from <= OWN_MOST) ranges[range_count++] = r;
    }
    if (maps) fclose(maps);
}

static void own_pages(void)
{
#ifdef MADV_POPULATE_WRITE
    for (unsigned i = 0; i < range_count; i++) {
        const struct range *r = &ranges[i];
        (void)madvise((void *)r->from, r->to - r->from, r->copied ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    }
#endif
}

static bool order_waits(void)
{
    struct pollfd orders = {.fd = ORDERS_FD, .events = POLLIN};
    return poll(&orders, 1, 0) == 1;
}

/* A launcher, from its fork to its order. */
static int wait_for_order(int fd, void (*make_ready)(void))
{
    int ends[STARTER_ENDS];
    next_fd = fd;
    setpgid(0, 0);
    tie_to_first();
    guard_make_ready(GUARD_READY);
    if (!order_waits()) {
        own_pages();
        make_ready();
    }
    if (!take_order(ORDERS_FD, ends)) _exit(0);
    order_ns = clock_ns();
    close(ORDERS_FD);
    dup2(ends[STARTER_OUT], STDOUT_FILENO);
    dup2(ends[STARTER_ERR], STDERR_FILENO);
    close(ends[STARTER_OUT]);
    close(ends[STARTER_ERR]);
    return ends[STARTER_LINE];
}

void starter_next(int ranks)
{
    if (next_fd < 0) return;
    int32_t each_us = (int32_t)((clock_ns() - order_ns) / 1000 / (ranks > 1 ? (unsigned)ranks : 1));
    (void)send(next_fd, &each_us, sizeof each_us, MSG_NOSIGNAL); /* the starter may be gone */
    close(next_fd);
    next_fd = -1;
}

/* What all launchers of this host would find out alike. */
static void prepare(void)
{
    tern_crypto_sodium.start();
    cpus_usable();
}

/* Has the launcher started its ranks, or ended? False: it has not, some time after there was an order, its own or the next, and one waits:
 * the launcher may be stopped, or look for files of a server that does not answer. */
static bool await_started(int fd)
{
    struct pollfd both[] = {{.fd = fd, .events = POLLIN}, {.fd = ORDERS_FD, .events = POLLIN}};
    for (;;) {
        poll(both, 2, -1);
        if (both[0].revents || poll(both, 1, ORDER_WAITS_MS) == 1) return true;
        if (order_waits()) return false;
    }
}

/*
 * Waits until the launcher has started its ranks, or has ended; and then a little, unless there is an order: the ranks begin now, and want the
 * cores. They take longer where starting them took longer: a child is connected 2.6 times as long after its start as that took. On a machine of
 * 2 cores where a page fault costs 17 us, MPI_Comm_spawn of a child took 13.4 ms with a pause of 4 ms, 9.5 with one of 15, a bare process 3.7.
 */
static void await_next(int fd)
{
    int32_t each_us = 0;
    struct pollfd orders = {.fd = ORDERS_FD, .events = POLLIN};
    if (await_started(fd))
        while (recv(fd, &each_us, sizeof each_us, 0) < 0 && errno == EINTR) continue;
    close(fd);
    int64_t ms = ((int64_t)each_us * PAUSE_STARTS + 999) / 1000;
    poll(&orders, 1, ms < PAUSE_MOST_MS ? (int)ms : PAUSE_MOST_MS);
}

int starter_run(void (*make_ready)(void))
{
    if (fcntl(ORDERS_FD, F_SETFD, FD_CLOEXEC)) {
        say(STARTER_OPTION " is for mpiexec's own use");
        _exit(EXIT_USAGE);
    }
    tie_to_first();
    prctl(PR_SET_NAME, "mpiexec"); /* not "exe", as it was executed */
    prepare();
    find_pages();
    for (;;) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) break;
        /* As fork, but a child of the first mpiexec, which waits for its end and may send it signals. */
        int32_t pid = (int32_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (!pid) {
            close(pair[0]);
            return wait_for_order(pair[1], make_ready);
        }
        if (pid < 0) pid = -errno;
        close(pair[1]);
        if (send(ORDERS_FD, &pid, sizeof pid, MSG_NOSIGNAL) != sizeof pid || pid < 0) break;
        await_next(pair[0]);
    }
    _exit(0);
}
