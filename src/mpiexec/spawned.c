/* spawned.c - see spawn.h: the side of the mpiexec that runs a spawned job. */
#include "mpiexec/spawn.h"
#include "mpiexec/starter.h"
#include "base/err.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    bool is;
    bool started;
    int fd; /* to the first mpiexec, until the line is opened */
    struct route route;
    char words[2048]; /* what we have said last, while it is held back */
} self;

static void hold(const char *line) { snprintf(self.words, sizeof self.words, "%s", line); }

/* All bytes, or false. */
static bool read_all(int fd, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = recv(fd, (char *)bytes + done, n - done, 0);
        if (!k || (k < 0 && errno != EINTR)) return false;
        if (k > 0) done += (size_t)k;
    }
    return true;
}

static bool read_command(struct job *j, struct strv *argv, rlim_t *limit)
{
    struct ask_head h;
    if (!read_all(self.fd, &h, sizeof h)) _exit(EXIT_RESOURCE); /* nobody is there to be told */
    h = ask_swap(h);
    void *bytes = h.type == ASK_RUN && h.length <= ASK_BYTES_MAX ? xcalloc(1, h.length + 1) : NULL; /* for ever: argv lies in it */
    if (!bytes || !read_all(self.fd, bytes, h.length)) return false;
    struct ask_in in = ask_of(bytes, h.length);
    snprintf(j->parent, sizeof j->parent, "%s", ask_get_text(&in, sizeof j->parent));
    *limit = ask_get64(&in);
    for (uint32_t i = 0, n = ask_get32(&in); i < n && !in.bad; i++) strv_push(argv, (char *)(uintptr_t)ask_get_text(&in, ASK_BYTES_MAX));
    return ask_done(&in) && argv->n;
}

/* A small frame, while nothing waits to be sent: it fits. */
static void send_first(struct ask_head h, uint8_t *room)
{
    size_t n = h.length;
    h = ask_swap(h);
    memcpy(room, &h, sizeof h);
    (void)!send(self.fd, room, sizeof h + n, MSG_NOSIGNAL);
}

/* Only this process knows for sure which order it has taken. */
static void name_self(void)
{
    uint8_t room[sizeof(struct ask_head) + 8];
    struct ask_out o = {.bytes = room + sizeof(struct ask_head), .room = 8};
    ask_put32(&o, (uint32_t)getpid());
    send_first((struct ask_head){.length = (uint32_t)o.n, .type = ASK_LAUNCHER}, room);
}

const char *spawned_open(struct job *j, int line, struct strv *argv)
{
    rlim_t limit;
    struct rlimit r;
    self.fd = line;
    self.is = true;
    words_to = hold;
    name_self();
    if (!read_command(j, argv, &limit)) return "the command of the first mpiexec is none";
    if (!getrlimit(RLIMIT_NOFILE, &r) && limit <= r.rlim_max) {
        r.rlim_cur = limit;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    return NULL;
}

bool spawned_is(void) { return self.is; }

bool spawned_own_route(struct route *route)
{
    *route = self.route;
    return self.is;
}

bool spawned_route(struct route *route)
{
    *route = self.route;
    return self.started;
}

static void hear(struct line *l, const struct ask_head *h, const void *bytes) { asks_take(l, h, false, bytes); }

/* The first mpiexec is gone: the system is about to kill us. */
static void gone(struct line *l) { asks_lose(l); }

static const struct line_calls calls = {hear, gone};

static void ignore_answer(void *arg, int status, const void *bytes, size_t n) { (void)arg, (void)status, (void)bytes, (void)n; }

void spawned_join(struct event_base *base)
{
    if (self.is) self.route.line = line_number(line_open(base, self.fd, &calls, 0));
}

void spawned_started(struct job *j)
{
    uint8_t room[sizeof j->name + 16];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!self.is) return;
    starter_next(launch_nlocal(j));
    self.started = true;
    words_to = NULL;
    ask_put32(&o, (uint32_t)j->size);
    ask_put_text(&o, j->name);
    asks_send(self.route, ASK_STARTED, 0, o.bytes, o.n, ignore_answer, NULL);
}

void spawned_ended(int code)
{
    uint8_t room[sizeof self.words + 64];
    struct ask_out o = {.bytes = room + sizeof(struct ask_head), .room = sizeof room - sizeof(struct ask_head)};
    char words[64];
    if (!self.is || self.started) return;
    snprintf(words, sizeof words, "the job was not started (exit code %d)", code);
    ask_put_text(&o, *self.words ? self.words : words);
    send_first((struct ask_head){.length = (uint32_t)o.n, .type = ASK_FAILED, .id = 1}, room);
}
