/* spawned.c - see spawn.h: the side of the mpiexec that runs a spawned job. */
#include "mpiexec/spawn.h"
#include "base/err.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    bool is;
    bool started;
    int fd; /* to the first mpiexec, until the line is opened */
    struct way way;
    char words[2048]; /* what we have said last, while it is held back */
} self;

static void hold(const char *line) { snprintf(self.words, sizeof self.words, "%s", line); }

const char *spawned_open(struct job *j, const char *word)
{
    unsigned long long limit;
    int end = 0;
    if (sscanf(word, "%d:%llu:%n", &self.fd, &limit, &end) != 2 || !end || fcntl(self.fd, F_SETFD, FD_CLOEXEC) ||
        strlen(word + end) >= sizeof j->parent)
        return SPAWNED_OPTION " is for mpiexec's own use";
    strcpy(j->parent, word + end);
    self.is = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct ucred first;
    socklen_t n = sizeof first;
    if (getsockopt(self.fd, SOL_SOCKET, SO_PEERCRED, &first, &n)) return SPAWNED_OPTION " is for mpiexec's own use";
    if (getppid() != first.pid) _exit(EXIT_RESOURCE); /* it died before we asked for the signal */
    struct rlimit r;
    if (!getrlimit(RLIMIT_NOFILE, &r) && limit <= r.rlim_max) {
        r.rlim_cur = (rlim_t)limit;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    words_to = hold;
    return NULL;
}

bool spawned_is(void) { return self.is; }

bool spawned_way(struct way *way)
{
    *way = self.way;
    return self.started;
}

static void hear(struct line *l, const struct ask_head *h, const void *bytes) { asks_take(l, h, false, bytes); }

/* The first mpiexec is gone: the system is about to kill us. */
static void gone(struct line *l) { asks_lose(l); }

static const struct line_calls calls = {hear, gone};

static void heard(void *arg, int status, const void *bytes, size_t n) { (void)arg, (void)status, (void)bytes, (void)n; }

void spawned_started(struct job *j)
{
    uint8_t room[sizeof j->name + 16];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!self.is) return;
    self.started = true;
    words_to = NULL;
    self.way.line = line_number(line_open(j->base, self.fd, &calls, 0));
    ask_put32(&o, (uint32_t)j->size);
    ask_put_text(&o, j->name);
    asks_send(self.way, ASK_STARTED, 0, o.bytes, o.n, heard, NULL);
}

void spawned_ended(int code)
{
    uint8_t room[sizeof self.words + 64];
    struct ask_out o = {.bytes = room + sizeof(struct ask_head), .room = sizeof room - sizeof(struct ask_head)};
    char words[64];
    if (!self.is || self.started) return;
    snprintf(words, sizeof words, "the job was not started (exit code %d)", code);
    ask_put_text(&o, *self.words ? self.words : words);
    struct ask_head h = ask_swap((struct ask_head){.length = (uint32_t)o.n, .type = ASK_FAILED, .id = 1});
    memcpy(room, &h, sizeof h);
    (void)!send(self.fd, room, sizeof h + o.n, MSG_NOSIGNAL); /* small, and the first: it fits */
}
