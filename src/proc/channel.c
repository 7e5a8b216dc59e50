/* channel.c - see channel.h. */
#include "proc/channel.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rights.h"
#include "base/sleep.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_MAX 4          /* connections that are kept */
#define SOCKET_NS 1000000000u /* the launcher wakes who waits for its socket; a look now and then costs nothing */

static struct {
    struct job_head *job;
    uint32_t rank;
    pthread_mutex_t lock; /* guards the rest */
    int idle[IDLE_MAX], nidle;
    uint32_t last_id;
    int posted; /* the connection of channel_post */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .posted = -1};

void channel_open(struct job_head *job, uint32_t rank)
{
    self.job = job;
    self.rank = rank;
}

void channel_close(void)
{
    pthread_mutex_lock(&self.lock);
    while (self.nidle) close(self.idle[--self.nidle]);
    if (self.posted >= 0) close(self.posted);
    self.posted = -1;
    self.job = NULL;
    pthread_mutex_unlock(&self.lock);
}

/* ---- bytes ---- */

static int lost(void)
{
    return err_set(TERN_ERR_PEER, "the launcher has closed its connection to this process (has mpiexec ended?)");
}

static int send_all(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EPIPE || errno == ECONNRESET ? lost() : err_sys("cannot ask the launcher");
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Until `deadline` (clock_ns), UINT64_MAX = without end. TERN_AGAIN: it is over. */
static int await(int fd, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int n = 0; n <= 0;) {
        uint64_t now = clock_ns(), left = deadline > now ? deadline - now : 0;
        n = poll(&p, 1, deadline == UINT64_MAX ? -1 : (int)min_size((left + 999999) / 1000000, INT_MAX));
        if (!n && !left) return TERN_AGAIN;
        if (n < 0 && errno != EINTR) return err_sys("cannot wait for the launcher");
    }
    return 0;
}

static int recv_all(int fd, void *bytes, size_t n, uint64_t deadline)
{
    for (char *at = bytes; n;) {
        int rc = await(fd, deadline);
        if (rc) return rc;
        ssize_t got = recv(fd, at, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return lost();
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

static int send_frame(int fd, enum ask_type type, uint32_t id, const void *bytes, size_t n)
{
    struct ask_head h =
        ask_swap((struct ask_head){.length = (uint32_t)n, .type = (uint16_t)type, .id = id, .rank = self.rank});
    int rc = send_all(fd, &h, sizeof h);
    return rc ? rc : send_all(fd, bytes, n);
}

/* ---- connections ---- */

/* The launcher opens its socket when it has started the ranks of the node, which may be after this one has begun.
 * TERN_AGAIN: not before `deadline`. */
static int await_socket(uint64_t *socket_id, uint64_t deadline)
{
    uint32_t state;
    /* acquire: pairs with the launcher's release, after which the name is read */
    while ((state = atomic_load_explicit(&self.job->socket_state, memory_order_acquire)) == JOB_SOCKET_COMING) {
        uint64_t now = clock_ns(), left = deadline > now ? deadline - now : 0;
        if (!left) return TERN_AGAIN;
        futex_sleep(&self.job->socket_state, state, left < SOCKET_NS ? left : SOCKET_NS);
    }
    *socket_id = self.job->socket_id;
    if (state == JOB_SOCKET_OPEN) return 0;
    return err_set(TERN_ERR_UNSUPPORTED, "the launcher takes no questions: it could not open a socket for them");
}

/* The abstract name could be that of another user's process by now, if the launcher has ended. */
static int check_owner(int fd)
{
    struct ucred c;
    socklen_t n = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n))
        return err_sys("cannot find out who the launcher's socket belongs to");
    if (!c.uid || c.uid == geteuid() || c.uid == getuid()) return 0;
    return err_set(TERN_ERR_SYSTEM, "the launcher's socket belongs to another user (uid %u): it is not used",
                   (unsigned)c.uid);
}

static int greet(int fd)
{
    return send_frame(fd, ASK_HELLO, 0, self.job->secret, sizeof self.job->secret);
}

/* To a launcher of the own user. */
static int connect_to(uint64_t socket_id, int *fd_p)
{
    struct sockaddr_un a;
    int rc = 0, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return err_sys("cannot make a socket for questions to the launcher");
    if (connect(fd, (struct sockaddr *)&a, ask_address(&a, socket_id)))
        rc =
            err_sys("cannot reach the launcher by its socket (has it ended, or is this process in a network name space "
                    "of its own?)");
    if (!rc) rc = check_owner(fd);
    if (rc)
        close(fd);
    else
        *fd_p = fd;
    return rc;
}

static int open_connection(int *fd_p, uint64_t deadline)
{
    int fd;
    uint64_t socket_id;
    int rc = await_socket(&socket_id, deadline);
    if (!rc) rc = connect_to(socket_id, &fd);
    if (rc) return rc;
    rc = greet(fd);
    if (rc)
        close(fd);
    else
        *fd_p = fd;
    return rc;
}

static int take_connection(int *fd, uint32_t *id, uint64_t deadline)
{
    pthread_mutex_lock(&self.lock);
    *id = ++self.last_id;
    *fd = self.nidle ? self.idle[--self.nidle] : -1;
    pthread_mutex_unlock(&self.lock);
    return *fd >= 0 ? 0 : open_connection(fd, deadline);
}

static void give_back(int fd)
{
    pthread_mutex_lock(&self.lock);
    bool keep = self.nidle < IDLE_MAX;
    if (keep) self.idle[self.nidle++] = fd;
    pthread_mutex_unlock(&self.lock);
    if (!keep) close(fd);
}

/* ---- questions ---- */

static int refused(int status, const struct channel_answer *a)
{
    struct ask_in in = ask_of(a->bytes, a->n);
    const char *words = ask_get_text(&in, ASK_BYTES_MAX);
    if (status > TERN_OK || status <= TERN_ERR_LAST || in.bad)
        return err_set(TERN_ERR_SYSTEM, "the launcher's answer is none");
    return err_set(status, "%s", words);
}

/* Memory for what comes behind that head. */
static int make_room(const struct ask_head *h, struct channel_answer *a)
{
    if (h->type != ASK_ANSWER || h->length > ASK_BYTES_MAX) return err_set(TERN_ERR_SYSTEM, "the launcher's answer is none");
    if (h->length && !(a->bytes = malloc(h->length))) return err_set(TERN_ERR_NOMEM, "no memory for the launcher's answer");
    a->n = h->length;
    return 0;
}

/* The launcher's status, and what came with it. */
static int take_answer(int fd, uint32_t id, uint64_t deadline, int *status, struct channel_answer *a)
{
    struct ask_head h;
    int rc = recv_all(fd, &h, sizeof h, deadline);
    if (rc) return rc;
    h = ask_swap(h);
    rc = make_room(&h, a);
    if (!rc && h.id != id) rc = err_set(TERN_ERR_SYSTEM, "the launcher's answer is none to this question");
    *status = h.status;
    return rc ? rc : recv_all(fd, a->bytes, a->n, UINT64_MAX);
}

int channel_ask(enum ask_type type, const struct ask_out *q, int wait_ms, struct channel_answer *a)
{
    uint32_t id;
    int fd, status = 0;
    *a = (struct channel_answer){0};
    if (!self.job) return err_set(TERN_ERR_UNSUPPORTED, "this process has no launcher to ask");
    if (q->bad) return err_set(TERN_ERR_ARG, "a question to the launcher is too long");
    uint64_t deadline = wait_ms < 0 ? UINT64_MAX : clock_ns() + (uint64_t)wait_ms * 1000000;
    int rc = take_connection(&fd, &id, deadline);
    if (rc) return rc;
    rc = send_frame(fd, type, id, q->bytes, q->n);
    if (!rc) rc = take_answer(fd, id, deadline, &status, a);
    if (rc)
        close(fd); /* which also tells the launcher that nobody waits any more */
    else
        give_back(fd);
    if (!rc && status) rc = refused(status, a);
    if (rc) {
        free(a->bytes);
        *a = (struct channel_answer){0};
    }
    return rc;
}

/* ---- descriptors ---- */

/* Of the first byte of an answer; -1: none came with it. */
static int recv_descriptor(int fd)
{
    char byte;
    int own;
    rights_recv(fd, &byte, 1, &own, 1);
    return own;
}

int channel_take(uint64_t socket_id, const uint8_t ticket[ASK_TICKET], int wait_ms, int *own)
{
    int fd;
    int rc = connect_to(socket_id, &fd);
    if (rc) return rc;
    rc = send_frame(fd, ASK_TAKE, 0, ticket, ASK_TICKET);
    if (!rc) rc = await(fd, clock_ns() + (uint64_t)wait_ms * 1000000);
    if (rc == TERN_AGAIN) rc = err_set(TERN_ERR_SYSTEM, "the launcher does not hand out a descriptor within %d ms", wait_ms);
    if (!rc && (*own = recv_descriptor(fd)) < 0)
        rc = err_set(TERN_ERR_SYSTEM, "the launcher has handed out no descriptor (has this process as many as it may, or "
                                      "was the launcher asked too late?)");
    close(fd);
    return rc;
}

/* ---- questions whose answers are collected ---- */

int channel_post_fd(void) { return self.posted; }
_Atomic uint32_t *channel_events(void) { return self.job ? &self.job->events : NULL; }

int channel_post(enum ask_type type, const struct ask_out *q, uint32_t id)
{
    int rc = 0;
    if (!self.job) return err_set(TERN_ERR_UNSUPPORTED, "this process has no launcher to ask");
    if (q->bad) return err_set(TERN_ERR_ARG, "a question to the launcher is too long");
    pthread_mutex_lock(&self.lock);
    if (self.posted < 0) rc = open_connection(&self.posted, UINT64_MAX);
    if (!rc) rc = send_frame(self.posted, type, id, q->bytes, q->n);
    pthread_mutex_unlock(&self.lock);
    return rc;
}

int channel_collect(uint32_t *id, int *status, struct channel_answer *a)
{
    struct ask_head h;
    *a = (struct channel_answer){0};
    if (self.posted < 0) return 0;
    ssize_t n = recv(self.posted, &h, sizeof h, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) return lost();
    h = ask_swap(h);
    if (n < (ssize_t)sizeof h) return 0;
    int rc = make_room(&h, a); /* without memory the answer stays, whole */
    *id = h.id;
    *status = h.status;
    if (!rc) rc = recv_all(self.posted, &h, sizeof h, UINT64_MAX);
    if (!rc) rc = recv_all(self.posted, a->bytes, a->n, UINT64_MAX);
    if (!rc && *status) *status = refused(*status, a);
    if (!rc) return 1;
    free(a->bytes);
    *a = (struct channel_answer){0};
    return rc;
}

int channel_cancel(uint32_t id) { return channel_post(ASK_CANCEL, &(struct ask_out){0}, id); }
