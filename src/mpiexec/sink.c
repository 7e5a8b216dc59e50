/* sink.c - queued writing without blocking, on descriptors whose flags are not ours to change. */
#include "mpiexec/sink.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void (*sink_has_room)(void);

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    sink_flush(arg);
}

struct sink *sink_new(struct event_base *base, int fd, const char *name)
{
    struct sink *s = xcalloc(1, sizeof *s);
    struct stat st;
    s->fd = fd;
    s->name = name;
    s->kind = fstat(fd, &st) || S_ISREG(st.st_mode) ? SINK_FILE : isatty(fd) ? SINK_TTY : SINK_PIPE;
    s->writable = event_new(base, fd, EV_WRITE, on_writable, s);
    return s;
}

static void append(struct sink *s, const char *data, size_t n)
{
    if (s->length + n > s->room) {
        s->room = (s->length + n) * 2;
        s->queue = xrealloc(s->queue, s->room);
    }
    memcpy(s->queue + s->length, data, n);
    s->length += n;
}

void sink_put(struct sink *s, const void *owner, const char *data, size_t n)
{
    if (s->lost || !n) return;
    if (s->owner && s->owner != owner) append(s, "\n", 1);
    append(s, data, n);
    s->owner = data[n - 1] == '\n' ? NULL : owner;
}

static void lose(struct sink *s, int error)
{
    s->lost = error;
    s->length = 0;
    event_del(s->writable);
    if (s->name) say("cannot write to %s: %s; output of the ranks is lost from here on", s->name, strerror(error));
}

/* How much may be written at once without blocking: a pipe that polls writable takes a page; a terminal takes little.
 */
static size_t portion(const struct sink *s)
{
    if (s->kind == SINK_FILE) return s->length;
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0) return 0;
    return min_size(s->length, s->kind == SINK_TTY ? 512 : 4096);
}

static void close_now(struct sink *s)
{
    if (s->fd < 0) return;
    event_del(s->writable);
    close(s->fd);
    s->fd = -1;
}

void sink_flush(struct sink *s)
{
    size_t at = 0, all = s->length;
    bool was_full = sink_is_full(s);
    while (at < all) {
        s->length = all - at;
        size_t n = portion(s);
        ssize_t w = n ? write(s->fd, s->queue + at, n) : 0;
        if (w < 0 && errno == EINTR) continue;
        if (w < 0 && errno != EAGAIN) {
            lose(s, errno);
            break;
        }
        if (w <= 0) break;
        at += (size_t)w;
    }
    s->length = s->lost ? 0 : all - at;
    if (s->length && at) memmove(s->queue, s->queue + at, s->length);
    if (s->length)
        event_add(s->writable, NULL);
    else if (s->ending)
        close_now(s);
    if (was_full && !sink_is_full(s) && sink_has_room) sink_has_room();
}

void sink_end(struct sink *s)
{
    s->ending = true;
    sink_flush(s);
}
