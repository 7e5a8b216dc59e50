/* output.c - from the ranks' pipes to the sinks, line by line. */
#include "mpiexec/output.h"
#include "mpiexec/launch.h"
#include "mpiexec/relay.h"
#include "mpiexec/sink.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (64 * 1024)       /* bytes of one read: what a pipe holds */
#define LINE_MAX_HELD (1 << 20) /* a longer unfinished line goes out in pieces */
#define DRAIN_READS 32          /* of a rank that has ended: its children may go on writing for ever */
#define TICK_MS 50
#define DELAY_TTY 0.1 /* seconds until an unfinished line is shown */
#define DELAY_FILE 2.0

static struct {
    struct job *job;
    struct sink *out, *err; /* our own; the same if both lead to the same file */
    struct sink **all;
    int nall;
    struct stream *others; /* of no rank */
    struct event *tick; /* armed while a line is unfinished */
    bool tagged;
} self;

static struct sink *add_sink(int fd, const char *name)
{
    self.all = xrealloc(self.all, sizeof *self.all * ((size_t)self.nall + 1));
    return self.all[self.nall++] = sink_new(self.job->base, fd, name);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static size_t make_tag(const struct stream *st, char *buf, size_t size)
{
    const struct out_spec *o = &self.job->spec->out;
    size_t n = 0;
    if (st->rank < 0) return 0;
    if (o->tag_time) {
        struct timespec t;
        struct tm tm;
        clock_gettime(CLOCK_REALTIME, &t);
        localtime_r(&t.tv_sec, &tm);
        n += strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
        n += (size_t)snprintf(buf + n, size - n, ".%03ld ", t.tv_nsec / 1000000);
    }
    if (o->tag_rank) n += (size_t)snprintf(buf + n, size - n, "[%d] ", st->rank);
    if (o->tag_stream) n += (size_t)snprintf(buf + n, size - n, "[1,%d]<%s>:", st->rank, st->name);
    return n;
}

/* Lines, the last of them perhaps unfinished, to one sink. The sink knows whether the first continues ours. */
static void put_lines(struct sink *s, const struct stream *st, const char *data, size_t n)
{
    char tag[96];
    size_t tag_length = self.tagged ? make_tag(st, tag, sizeof tag) : 0;
    if (!tag_length) {
        sink_put(s, st, data, n);
        return;
    }
    while (n) {
        const char *end = memchr(data, '\n', n);
        size_t length = end ? (size_t)(end - data) + 1 : n;
        if (s->owner != st) sink_put(s, st, tag, tag_length);
        sink_put(s, st, data, length);
        data += length;
        n -= length;
    }
}

static void pass(struct stream *st, const char *data, size_t n)
{
    for (int i = 0; i < 2; i++)
        if (st->to[i]) put_lines(st->to[i], st, data, n);
}

static void flush(struct stream *st)
{
    for (int i = 0; i < 2; i++)
        if (st->to[i]) sink_flush(st->to[i]);
}

static void show_unfinished(struct stream *st)
{
    pass(st, st->line, st->length);
    st->length = 0;
}

static void hold(struct stream *st, const char *data, size_t n)
{
    if (!n) return;
    if (st->length + n > st->room) {
        st->room = (st->length + n) * 2;
        st->line = xrealloc(st->line, st->room);
    }
    memcpy(st->line + st->length, data, n);
    st->length += n;
    st->since = launch_now();
    /* One rank alone has nobody to mix with: its prompts come without delay. */
    if ((self.job->size == 1 && !self.others) || st->length > LINE_MAX_HELD)
        show_unfinished(st);
    else if (!evtimer_pending(self.tick, NULL))
        evtimer_add(self.tick, &(struct timeval){.tv_usec = TICK_MS * 1000});
}

static void feed(struct stream *st, const char *data, size_t n)
{
    const char *last = memrchr(data, '\n', n);
    size_t whole = last ? (size_t)(last - data) + 1 : 0;
    if (whole) {
        if (st->length) show_unfinished(st);
        pass(st, data, whole);
    }
    hold(st, data + whole, n - whole);
}

/* False: it is to be looked at again. */
static bool show_late(struct stream *st, double now)
{
    if (!st->length) return true;
    if (now - st->since < (st->to[0]->kind == SINK_TTY ? DELAY_TTY : DELAY_FILE)) return false;
    show_unfinished(st);
    flush(st);
    return true;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    bool more = false;
    double now = launch_now();
    (void)fd, (void)what, (void)arg;
    for (int i = 0; i < 2 * self.job->size; i++)
        more |= !show_late(i % 2 ? &self.job->ranks[i / 2].err : &self.job->ranks[i / 2].out, now);
    for (struct stream *st = self.others; st; st = st->next) more |= !show_late(st, now);
    if (more) evtimer_add(self.tick, &(struct timeval){.tv_usec = TICK_MS * 1000});
}

/* --- streams ----------------------------------------------------------------------------------------------------- */

static void close_stream(struct stream *st)
{
    if (self.job->root) {
        show_unfinished(st);
        flush(st);
    }
    if (st->readable) event_free(st->readable);
    if (st->fd >= 0) close(st->fd);
    free(st->line);
    *st = (struct stream){
        .fd = -1, .rank = st->rank, .name = st->name, .to = {st->to[0], st->to[1]}, .next = st->next};
}

void output_take(struct stream *st, const char *data, size_t n)
{
    feed(st, data, n);
    flush(st);
}

/* One read; false when nothing is to be had now, or ever. */
static bool take(struct stream *st)
{
    static char chunk[CHUNK];
    ssize_t n = st->fd < 0 ? -1 : read(st->fd, chunk, sizeof chunk);
    if (n < 0 && (st->fd < 0 || errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) {
        close_stream(st);
        return false;
    }
    if (!self.job->root) {
        relay_output(st, chunk, (size_t)n);
        return true;
    }
    output_take(st, chunk, (size_t)n);
    /* Its reader is gone for good: let the rank know by the means of the system, a broken pipe. */
    if (st->to[0]->lost == EPIPE && !st->to[1]) close_stream(st);
    return true;
}

bool output_is_full(const struct stream *st)
{
    if (!self.job->root) return relay_output_full();
    return sink_is_full(st->to[0]) || (st->to[1] && sink_is_full(st->to[1]));
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *st = arg;
    (void)fd, (void)what;
    take(st);
    if (st->fd < 0 || !output_is_full(st)) return;
    st->paused = true;
    event_del(st->readable);
}

static void resume(struct stream *st)
{
    if (!st->paused || st->fd < 0 || output_is_full(st)) return;
    st->paused = false;
    event_add(st->readable, NULL);
}

void output_resume(void)
{
    for (int i = 0; i < 2 * self.job->size; i++)
        resume(i % 2 ? &self.job->ranks[i / 2].err : &self.job->ranks[i / 2].out);
    for (struct stream *st = self.others; st; st = st->next) resume(st);
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

/* The digits of the highest rank. */
static int rank_digits(void) { return snprintf(NULL, 0, "%d", self.job->size - 1); }

/* "%r" = rank, "%R" with zeros before it, "%h" = host, "%p" = node, "%%" = %; "%g" names the job, of which we have one.
 */
static char *expand(const char *pattern, int rank)
{
    char *name = xstrdup("");
    for (const char *p = pattern; *p; p++) {
        char *next;
        if (*p != '%' || !p[1])
            next = xasprintf("%s%c", name, *p);
        else if (*++p == 'r')
            next = xasprintf("%s%d", name, rank);
        else if (*p == 'R')
            next = xasprintf("%s%0*d", name, rank_digits(), rank);
        else if (*p == 'h')
            next = xasprintf("%s%s", name, launch_host(self.job, &self.job->ranks[rank]));
        else if (*p == 'p')
            next = xasprintf("%s%d", name, self.job->ranks[rank].node);
        else if (*p == 'g')
            next = xasprintf("%s0", name);
        else
            next = xasprintf("%s%c", name, *p);
        free(name);
        name = next;
    }
    return name;
}

/* Makes the directories that a file lies in; what cannot be made is found when the file is opened. */
static void make_dirs(char *name)
{
    for (char *slash = name; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(name, 0777);
        *slash = '/';
    }
}

/* The sink of a file, opened at its first use: ranks may share one. NULL after saying why. */
static struct sink *file_sink(const char *pattern, int rank)
{
    char *name = expand(pattern, rank);
    for (int i = 0; i < self.nall; i++)
        if (self.all[i]->name && !strcmp(self.all[i]->name, name)) {
            free(name);
            return self.all[i];
        }
    if (self.job->spec->out.make_dirs) make_dirs(name);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0) return add_sink(fd, name);
    say("cannot open %s for the output of rank %d: %s", name, rank, strerror(errno));
    return NULL;
}

static int open_stream(struct stream *st, const char *pattern, const char *tee, struct sink *own)
{
    if (!(st->to[0] = pattern ? file_sink(pattern, st->rank) : own)) return EXIT_USAGE;
    if (!tee) return 0;
    if (!(st->to[1] = file_sink(tee, st->rank))) return EXIT_USAGE;
    if (self.job->spec->out.tee_only) {
        st->to[0] = st->to[1];
        st->to[1] = NULL;
    }
    return 0;
}

static bool same_file(int a, int b)
{
    struct stat s, t;
    return !fstat(a, &s) && !fstat(b, &t) && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/* Before the launcher itself speaks: what ranks wrote comes first, and the message begins a line of its own. */
static void before_words(void)
{
    sink_flush(self.out);
    if (self.err->owner) sink_put(self.err, NULL, "\n", 1);
    self.err->owner = NULL;
    sink_flush(self.err);
}

int output_open(struct job *j)
{
    const struct out_spec *o = &j->spec->out;
    self.job = j;
    for (int i = 0; i < j->size; i++) {
        j->ranks[i].out = (struct stream){.fd = -1, .rank = i, .name = "stdout"};
        j->ranks[i].err = (struct stream){.fd = -1, .rank = i, .name = "stderr"};
    }
    if (!j->root) return 0;
    self.tagged = o->tag_rank || o->tag_stream || o->tag_time;
    self.tick = evtimer_new(j->base, on_tick, NULL);
    self.out = add_sink(STDOUT_FILENO, "standard output");
    self.err = same_file(STDOUT_FILENO, STDERR_FILENO) ? self.out : add_sink(STDERR_FILENO, "standard error");
    words_before = before_words;
    for (int i = 0; i < j->size; i++) {
        int rc = open_stream(&j->ranks[i].out, o->out_pattern, o->tee_out, self.out);
        if (!rc) rc = open_stream(&j->ranks[i].err, o->err_pattern, o->merge ? NULL : o->tee_err, self.err);
        if (rc) return rc;
    }
    return 0;
}

void output_attach(struct stream *st, int fd)
{
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK); /* of our end only */
    st->fd = fd;
}

static void listen_to(struct stream *st)
{
    st->readable = event_new(self.job->base, st->fd, EV_READ | EV_PERSIST, on_readable, st);
    event_add(st->readable, NULL);
}

void output_start(struct job *j)
{
    for (int i = 0; i < 2 * j->size; i++) {
        struct stream *st = i % 2 ? &j->ranks[i / 2].err : &j->ranks[i / 2].out;
        if (st->fd < 0) continue;
        listen_to(st);
    }
}

static void drain(struct stream *st)
{
    for (int i = 0; i < DRAIN_READS && take(st); i++) {
    }
}

void output_join(struct stream *st, int fd, const char *name)
{
    *st = (struct stream){.rank = -1, .name = name, .next = self.others};
    st->to[0] = strcmp(name, "stderr") ? self.out : self.err;
    self.others = st;
    output_attach(st, fd);
    listen_to(st);
}

/* Its memory may be that of another stream soon, which would seem to go on with its unfinished line. */
static void disown_line_of(const struct stream *st)
{
    for (int i = 0; i < 2; i++)
        if (st->to[i] && st->to[i]->owner == st) st->to[i]->owner = &self; /* of no stream */
}

void output_detach(struct stream *st)
{
    struct stream **at = &self.others;
    while (*at != st) at = &(*at)->next;
    drain(st);
    close_stream(st);
    disown_line_of(st);
    *at = st->next;
}

void output_drain(struct job *j, int rank)
{
    drain(&j->ranks[rank].out);
    drain(&j->ranks[rank].err);
}

void output_finish(struct job *j)
{
    for (int i = 0; i < j->size; i++) {
        output_drain(j, i);
        close_stream(&j->ranks[i].out);
        close_stream(&j->ranks[i].err);
    }
}

size_t output_pending(void)
{
    size_t n = 0;
    for (int i = 0; i < self.nall; i++) n += self.all[i]->length;
    return n;
}

bool output_lost(void)
{
    for (int i = 0; i < self.nall; i++)
        if (self.all[i]->lost) return true;
    return false;
}

bool output_broken(void) { return self.out->lost == EPIPE; }

void output_break(void)
{
    for (int i = 0; i < launch_nlocal(self.job); i++) close_stream(&launch_local(self.job, i)->out);
}
