/* pmi_wire.c - see pmi_wire.h. */
#include "proc/pmi_wire.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME_HEAD 6 /* digits and blanks that say how long a PMI-2 message is */

static struct {
    int fd; /* -1: closed */
    bool frames;
    size_t from, to; /* what has been read and not been used, in `in` */
    char in[4096];
    char question[FRAME_HEAD + PMI_TEXT_MAX], answer[PMI_TEXT_MAX];
} wire = {.fd = -1};

/* ---- the launcher's socket ---- */

/* The number in PMI_FD if that is an open socket, else -1. */
static int inherited(void)
{
    const char *s = getenv("PMI_FD");
    char *end;
    struct stat st;
    if (!s || !*s) return -1;
    long fd = strtol(s, &end, 10);
    if (*end || fd < 0 || fd > INT32_MAX || fstat((int)fd, &st) || !S_ISSOCK(st.st_mode)) return -1;
    return (int)fd;
}

bool pmi_wire_here(void) { return inherited() >= 0 || (getenv("PMI_PORT") && getenv("PMI_ID")); }
bool pmi_wire_is_open(void) { return wire.fd >= 0; }
void pmi_wire_frames(void) { wire.frames = true; }

void pmi_wire_close(void)
{
    if (wire.fd >= 0) close(wire.fd);
    wire.fd = -1;
    wire.from = wire.to = 0;
    wire.frames = false;
}

static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *a;
    int fd = -1, rc = getaddrinfo(host, port, &hints, &list);
    if (rc)
        return err_set(TERN_ERR_SYSTEM, "the launcher's host %s, from PMI_PORT, is not known: %s", host,
                       gai_strerror(rc));
    for (a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
            int why = errno;
            close(fd);
            errno = why;
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd >= 0 ? fd : err_sys("cannot connect to the launcher at %s:%s, from PMI_PORT", host, port);
}

/* PMI_PORT is "host:port". */
static int dial_port(const char *at)
{
    char host[256];
    const char *colon = strrchr(at, ':');
    if (!colon || colon == at || (size_t)(colon - at) >= sizeof host)
        return err_set(TERN_ERR_SYSTEM, "PMI_PORT is '%s', which is no host:port", at);
    memcpy(host, at, (size_t)(colon - at));
    host[colon - at] = 0;
    return dial(host, colon + 1);
}

/* ---- bytes ---- */

static int broken(int rc)
{
    pmi_wire_close();
    return rc;
}

static int closed(void)
{
    return broken(err_set(TERN_ERR_SYSTEM,
                          "the launcher has closed its connection with this process (PMI): it has ended, or "
                          "another MPI program ran in this process's place before"));
}

static int send_all(const char *text, size_t n)
{
    while (n) {
        ssize_t k = send(wire.fd, text, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = wire.fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (k < 0 && errno == EPIPE) return closed();
        if (k < 0) return broken(err_sys("cannot talk to the launcher (PMI)"));
        text += k;
        n -= (size_t)k;
    }
    return 0;
}

static int refill(void)
{
    for (;;) {
        ssize_t k = recv(wire.fd, wire.in, sizeof wire.in, 0);
        if (k > 0) {
            wire.from = 0;
            wire.to = (size_t)k;
            return 0;
        }
        if (k == 0 || errno == ECONNRESET) return closed();
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = wire.fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            return broken(err_sys("cannot hear the launcher (PMI)"));
    }
}

static int next_byte(char *c)
{
    if (wire.from == wire.to) {
        int rc = refill();
        if (rc) return rc;
    }
    *c = wire.in[wire.from++];
    return 0;
}

static int nonsense(const char *what)
{
    return broken(err_set(TERN_ERR_SYSTEM, "what the launcher sent is no PMI: %s", what));
}

static bool printable(char c) { return c >= ' ' && c <= '~'; }

static int read_line(char *text)
{
    for (size_t n = 0;; n++) {
        int rc = next_byte(&text[n]);
        if (rc) return rc;
        if (text[n] == '\n') {
            text[n] = 0;
            return 0;
        }
        if (!printable(text[n])) return nonsense("a line has bytes that are no text");
        if (n + 2 > PMI_TEXT_MAX) return nonsense("a line does not end");
    }
}

static int frame_length(size_t *n)
{
    char head[FRAME_HEAD + 1] = "", *end;
    for (int i = 0; i < FRAME_HEAD; i++) {
        int rc = next_byte(&head[i]);
        if (rc) return rc;
    }
    if (strspn(head, "0123456789 ") != FRAME_HEAD) return nonsense("a message does not begin with its length");
    *n = strtoul(head, &end, 10);
    if (!*n || end[strspn(end, " ")]) return nonsense("the length of a message is no number");
    return *n < PMI_TEXT_MAX ? 0 : nonsense("a message is too long");
}

static int read_frame(char *text)
{
    size_t n = 0;
    int rc = frame_length(&n);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = next_byte(&text[i]);
        if (!rc && !printable(text[i])) return nonsense("a message has bytes that are no text");
    }
    if (!rc) text[n] = 0;
    return rc;
}

/* ---- questions and answers ---- */

static int say(const char *fmt, va_list args)
{
    char *text = wire.question, *body = text + (wire.frames ? FRAME_HEAD : 0);
    if (wire.fd < 0) return err_set(TERN_ERR_SYSTEM, "there is no connection to the launcher (PMI) any more");
    int n = vsnprintf(body, PMI_TEXT_MAX - 1, fmt, args);
    if (n < 0 || n >= PMI_TEXT_MAX - 1)
        return err_set(TERN_ERR_INTERN, "a message of %d bytes for the launcher is too long", n);
    if (!wire.frames) {
        body[n++] = '\n';
        return send_all(text, (size_t)n);
    }
    char head[FRAME_HEAD + 1];
    snprintf(head, sizeof head, "%6u", (unsigned)n % 1000000);
    memcpy(text, head, FRAME_HEAD);
    return send_all(text, FRAME_HEAD + (size_t)n);
}

int pmi_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = say(fmt, args);
    va_end(args);
    return rc;
}

static int hear(struct pmi_answer *a)
{
    a->sep = wire.frames ? ';' : ' ';
    a->text = wire.answer;
    return wire.frames ? read_frame(wire.answer) : read_line(wire.answer);
}

int pmi_ask(struct pmi_answer *a, const char *cmd, const char *fmt, ...)
{
    char got[64];
    va_list args;
    va_start(args, fmt);
    int rc = say(fmt, args);
    va_end(args);
    if (!rc) rc = hear(a);
    if (rc) return rc;
    if (pmi_field(a, "cmd", got, sizeof got) && !strcmp(got, cmd)) return 0;
    return broken(err_set(TERN_ERR_SYSTEM, "the launcher (PMI) answered '%.100s' where %s was expected", a->text, cmd));
}

/* Where the value of a field begins, NULL if there is no such field. */
static const char *find(const struct pmi_answer *a, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = a->text; at; at = strchr(at, a->sep)) {
        at += strspn(at, (char[]){a->sep, 0});
        if (!strncmp(at, name, len) && at[len] == '=') return at + len + 1;
    }
    return NULL;
}

bool pmi_field(const struct pmi_answer *a, const char *name, char *to, size_t cap)
{
    const char *v = find(a, name);
    if (!v) return false;
    size_t n = strcspn(v, (char[]){a->sep, 0});
    if (n >= cap) return false;
    memcpy(to, v, n);
    to[n] = 0;
    return true;
}

int64_t pmi_number(const struct pmi_answer *a, const char *name, int64_t otherwise)
{
    char text[24], *end;
    if (!pmi_field(a, name, text, sizeof text) || !*text) return otherwise;
    errno = 0;
    int64_t n = strtoll(text, &end, 10);
    return *end || errno ? otherwise : n;
}

int pmi_good(const struct pmi_answer *a, const char *doing)
{
    char why[256] = "";
    int64_t rc = pmi_number(a, "rc", 0);
    if (!rc) return 0;
    if (!pmi_field(a, "msg", why, sizeof why)) pmi_field(a, "errmsg", why, sizeof why);
    return err_set(TERN_ERR_SYSTEM, "the launcher (PMI) refuses %s: code %lld %s", doing, (long long)rc, why);
}

/* ---- opening ---- */

/* A launcher that listens wants to know which of its processes this is, and says then what that is in the job:
 * an acknowledgement, "cmd=set size=N", "cmd=set rank=R", "cmd=set debug=D". */
static int introduce(uint32_t *rank, uint32_t *size)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "initack", "cmd=initack pmiid=%ld", strtol(getenv("PMI_ID"), NULL, 10));
    if (!rc) rc = pmi_good(&a, "this process");
    for (int lines = 0; !rc && lines < 3; lines++) {
        rc = hear(&a);
        if (!rc && strncmp(a.text, "cmd=set ", 8)) rc = nonsense("it does not say which process this is");
        if (rc) break;
        *size = (uint32_t)pmi_number(&a, "size", *size);
        *rank = (uint32_t)pmi_number(&a, "rank", *rank);
    }
    return rc;
}

int pmi_wire_open(uint32_t *rank, uint32_t *size)
{
    int fd = inherited();
    if (!pmi_wire_here()) return TERN_ERR_NOT_FOUND;
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* what this process starts must not speak in its name */
        wire.fd = fd;
        return 0;
    }
    fd = dial_port(getenv("PMI_PORT"));
    if (fd < 0) return fd;
    wire.fd = fd;
    return introduce(rank, size);
}
