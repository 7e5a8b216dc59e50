/* input.c - passes standard input to one rank or to all. At a daemon it comes from the root. */
#include "mpiexec/input.h"
#include "mpiexec/relay.h"
#include "mpiexec/sink.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKGROUND_POLL_MS 500 /* how often a job in the background looks whether it has the terminal again */

static struct {
    const struct in_spec *spec;
    bool passing; /* we read and write, rather than hand our descriptor on */
    bool is_tty;
    bool always_ready; /* a file: the event loop's poll does not take it */
    bool ended;
    bool daemon;
    size_t owed; /* daemon: bytes not acknowledged, for a pipe was full */
    int null;
    struct sink **to;
    int nto;
    struct event_base *base;
    struct event *readable, *later;
} self = {.null = -1};

int input_open(struct job *j)
{
    struct stat st;
    self.spec = &j->spec->in;
    self.base = j->base;
    self.daemon = !j->root;
    self.is_tty = isatty(STDIN_FILENO);
    self.always_ready = !fstat(STDIN_FILENO, &st) && (S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && !self.is_tty));
    self.passing =
        self.daemon || self.spec->kind == IN_ALL || (self.spec->kind == IN_RANK && self.is_tty) || relay_has_readers();
    self.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (self.null >= 0) return 0;
    say("cannot open /dev/null: %s", strerror(errno));
    return EXIT_RESOURCE;
}

int input_for(struct job *j, int rank)
{
    int ends[2];
    bool reads = self.spec->kind == IN_ALL || (self.spec->kind == IN_RANK && self.spec->rank == rank);
    if (!reads) return self.null;
    if (!self.passing) return STDIN_FILENO;
    if (pipe2(ends, O_CLOEXEC)) {
        say("cannot make a pipe for the standard input of rank %d: %s", rank, strerror(errno));
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    self.to = xrealloc(self.to, sizeof *self.to * ((size_t)self.nto + 1));
    self.to[self.nto++] = sink_new(j->base, ends[1], NULL); /* no name: a rank that does not read is no news */
    return ends[0];
}

void input_given(int fd)
{
    if (fd != self.null && fd != STDIN_FILENO) close(fd);
}

/* Reading the terminal from the background would stop us. */
static bool in_background(void) { return self.is_tty && tcgetpgrp(STDIN_FILENO) != getpgrp(); }

static void end(void)
{
    self.ended = true;
    for (int i = 0; i < self.nto; i++) sink_end(self.to[i]);
    if (!self.daemon) relay_input(NULL, 0);
}

/* To the readers here. Does any of them want more, is the pipe of one full? */
static void put_to_all(const char *data, size_t n, bool *wanted, bool *full)
{
    *wanted = *full = false;
    for (int i = 0; i < self.nto; i++) {
        sink_put(self.to[i], self.to[i], data, n);
        sink_flush(self.to[i]);
        *wanted |= !self.to[i]->lost;
        *full |= sink_is_full(self.to[i]);
    }
}

static void wait_ms(int ms)
{
    struct timeval delay = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(self.later, &delay);
}

/* True when reading may go on at once. */
static bool pass_some(void)
{
    static char chunk[16 * 1024];
    bool wanted, full;
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0 && errno == EIO && in_background()) { /* it went there a moment ago */
        wait_ms(BACKGROUND_POLL_MS);
        return false;
    }
    if (n <= 0) {
        end();
        return false;
    }
    put_to_all(chunk, (size_t)n, &wanted, &full);
    relay_input(chunk, (size_t)n);
    wanted |= relay_has_readers();
    full |= relay_input_full();
    if (!wanted) self.ended = true;
    return wanted && !full;
}

static void listen_on(void)
{
    if (in_background())
        wait_ms(BACKGROUND_POLL_MS);
    else if (self.always_ready)
        wait_ms(0);
    else
        event_add(self.readable, NULL);
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (self.ended) return;
    if (in_background() || pass_some()) listen_on();
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
    if (self.always_ready)
        on_input(fd, what, arg);
    else if (!self.ended)
        listen_on();
}

static bool is_full(void)
{
    for (int i = 0; i < self.nto; i++)
        if (sink_is_full(self.to[i])) return true;
    return !self.daemon && relay_input_full();
}

void input_resume(void)
{
    if (!self.passing || self.ended || is_full()) return;
    if (!self.daemon) {
        if (self.readable) listen_on();
        return;
    }
    if (self.owed) relay_input_taken(self.owed, false);
    self.owed = 0;
}

void input_take(const char *data, size_t n)
{
    bool wanted, full;
    if (self.ended) return;
    if (!n) {
        end();
        return;
    }
    put_to_all(data, n, &wanted, &full);
    self.owed += n;
    if (!wanted) {
        self.ended = true;
        relay_input_taken(self.owed, true);
    } else
        input_resume();
}

void input_start(struct job *j)
{
    if (!self.passing || self.daemon) return;
    self.readable = event_new(j->base, STDIN_FILENO, EV_READ, on_input, NULL);
    self.later = evtimer_new(j->base, on_later, NULL);
    input_resume();
}
