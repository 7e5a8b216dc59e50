/* answer.c - see answer.h. */
#include "mpiexec/answer.h"
#include "base/err.h"
#include "base/sleep.h"
#include "mpiexec/cards.h"
#include "mpiexec/offers.h"
#include "mpiexec/registry.h"
#include "mpiexec/server_jobs.h"
#include "mpiexec/spawn.h"
#include "mpiexec/standing.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGER_S 10 /* for a process that has connected to say the secret */
#define BACKLOG 128
#define FULL_S 1 /* others may have closed descriptors */

static struct {
    struct job *job;
    int fd;
    uint64_t socket_id;
    struct event *readable;
    struct event *again;
    bool full; /* no descriptor for another connection: none is accepted until one of these is closed, or for FULL_S */
} self = {.fd = -1};

/* ---- cards ---- */

static void give_card(void *arg, const void *card, size_t n)
{
    struct asker *a = arg;
    if (n)
        asks_answer(a, 0, card, n);
    else
        asks_refuse(a, TERN_ERR_PEER, "the process has ended without calling MPI_Init");
    free(a);
}

static void own_card(const struct asker *a, uint32_t rank)
{
    struct asker *copy = xcalloc(1, sizeof *copy);
    *copy = *a;
    cards_fetch(rank, give_card, copy);
}

/* What a rank of this job has left: `here` answers for a rank of this node, and `type` asks its node otherwise. */
static void fetch(const struct asker *a, uint32_t rank, enum ask_type type,
                  void (*here)(const struct asker *, uint32_t rank))
{
    const struct job *j = self.job;
    uint8_t room[sizeof rank];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    ask_put32(&o, rank);
    if (rank >= (uint32_t)j->size)
        asks_refuse(a, TERN_ERR_RANK, "job %s has no rank %u", j->name, rank);
    else if (j->ranks[rank].node == j->node)
        here(a, rank);
    else if (j->root)
        asks_forward(a, (struct route){.node = j->ranks[rank].node}, type, o.bytes, o.n);
    else
        asks_refuse(a, TERN_ERR_INTERN, "rank %u of job %s is on another node", rank, j->name);
}

void answer_fetch(const struct asker *a, uint32_t rank) { fetch(a, rank, ASK_FETCH, own_card); }

void answer_modex(const struct asker *a, uint32_t rank) { fetch(a, rank, ASK_MODEX_OF, server_jobs_give); }

/* ---- memory ---- */

void answer_offer(const struct asker *a, const void *question, size_t n)
{
    const struct job *j = self.job;
    struct ask_in in = ask_of(question, n);
    uint32_t rank = ask_get32(&in), fd = ask_get32(&in);
    uint64_t key = ask_get64(&in);
    if (!ask_done(&in) || rank >= (uint32_t)j->size)
        asks_refuse(a, TERN_ERR_RANK, "job %s has no such rank", j->name);
    else if (j->ranks[rank].node == j->node)
        offers_make(a, self.socket_id, rank, fd, key);
    else if (j->root)
        asks_forward(a, (struct route){.node = j->ranks[rank].node}, ASK_OFFER, question, n);
    else
        asks_refuse(a, TERN_ERR_INTERN, "rank %u of job %s is on another node", rank, j->name);
}

/* Of a rank of the own job, which is on this node, as the asker is. */
static bool is_own_file(const void *question, size_t n)
{
    struct ask_in in = ask_of(question, n);
    ask_get(&in, ASK_OFFER_BYTES);
    return !*ask_get_text(&in, ASK_NAME_MAX) && ask_done(&in);
}

/* ---- questions ---- */

static void take(const struct asker *a, enum ask_type type, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    struct route first;
    if (type == ASK_LOOK) {
        cards_look();
        asks_answer(a, 0, NULL, 0);
    } else if (type == ASK_OFFER) {
        answer_offer(a, bytes, n);
    } else if (type == ASK_FILE && is_own_file(bytes, n)) {
        answer_offer(a, bytes, ASK_OFFER_BYTES);
    } else if (type == ASK_FETCH || type == ASK_MODEX_OF) {
        uint32_t rank = ask_get32(&in);
        if (!ask_done(&in)) rank = UINT32_MAX;
        if (type == ASK_FETCH)
            answer_fetch(a, rank);
        else
            answer_modex(a, rank);
    } else if (type == ASK_DAEMON && !self.job->root) {
        standing_take(self.job, a, bytes, n);
    } else if (type == ASK_STANDING && self.job->root) {
        standing_forward(self.job, a, &in);
    } else if (!self.job->root) {
        asks_forward(a, (struct route){.node = TREE_ROOT}, type, bytes, n);
    } else if (spawned_route(&first)) {
        asks_forward(a, first, type, bytes, n);
    } else {
        registry_take(a, type, bytes, n);
    }
}

static void cancel(const struct asker *a)
{
    if (self.job->root) registry_cancel(a);
}

/* Ranks that look at the word in the block rather than at their descriptors. */
static void ring(void)
{
    struct job_head *h = self.job->block.head;
    if (!h) return;
    /* release: the answer was sent before, unless the socket is full */
    atomic_fetch_add_explicit(&h->events, 1, memory_order_release);
    futex_wake_all(&h->events);
}

static const struct asks_calls asks = {take, cancel, ring};

/* ---- the lines of the ranks: a line asks when it has said the secret ---- */

static void hear(struct line *l, const struct ask_head *h, const void *bytes)
{
    if (h->type > ASK_HELLO && h->type < ASK_OF_RANKS && h->type != ASK_ANSWER && h->type != ASK_TAKE && h->rank < (uint32_t)self.job->size)
        asks_take(l, h, h->type == ASK_WATCH, bytes);
    else
        line_refuse(l, h->id, TERN_ERR_ARG, "the launcher got a message that cannot be");
}

static void accept_again(void)
{
    if (self.full) event_add(self.readable, NULL);
    self.full = false;
}

static void gone(struct line *l)
{
    asks_lose(l);
    accept_again();
}

static const struct line_calls known = {hear, gone};

/* Takes as long whatever was said. */
static bool knows_secret(const void *bytes, size_t n)
{
    const uint8_t *said = bytes;
    uint8_t different = 0;
    if (n != sizeof self.job->secret) return false;
    for (size_t i = 0; i < n; i++) different |= said[i] ^ self.job->secret[i];
    return !different;
}

/* A process of this job or another: the ticket says that it may. */
static void hand_out(struct line *l, const struct ask_head *h, const void *ticket)
{
    int fd = offers_take(ticket, h->length);
    if (fd >= 0) {
        line_hand_out(l, fd);
        close(fd);
    }
    line_close(l);
    accept_again();
}

static void greet(struct line *l, const struct ask_head *h, const void *bytes)
{
    if (h->type == ASK_TAKE) {
        hand_out(l, h, bytes);
        return;
    }
    if (h->type != ASK_HELLO || !knows_secret(bytes, h->length)) {
        line_refuse(l, h->id, TERN_ERR_ARG, "the launcher takes questions of its own job's processes only");
        return;
    }
    line_trust(l);
    line_set_calls(l, &known);
}

static void left(struct line *l)
{
    (void)l;
    accept_again();
}

static const struct line_calls strangers = {greet, left};

static bool is_own_user(int fd)
{
    struct ucred c;
    socklen_t n = sizeof c;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && (c.uid == getuid() || c.uid == geteuid() || !c.uid);
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
    (void)what, (void)arg;
    for (int one; (one = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
        if (is_own_user(one))
            line_open(self.job->base, one, &strangers, STRANGER_S);
        else
            close(one);
    if (errno != EMFILE && errno != ENFILE) return;
    self.full = true;
    event_del(self.readable);
    event_add(self.again, &(struct timeval){.tv_sec = FULL_S});
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    accept_again();
}

/* False with errno. */
static bool listen_at(uint64_t socket_id)
{
    struct sockaddr_un a;
    self.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self.fd < 0) return false;
    if (bind(self.fd, (struct sockaddr *)&a, ask_address(&a, socket_id)) || listen(self.fd, BACKLOG)) return false;
    self.readable = event_new(self.job->base, self.fd, EV_READ | EV_PERSIST, on_connection, NULL);
    self.again = evtimer_new(self.job->base, on_time, NULL);
    return self.readable && self.again && !event_add(self.readable, NULL);
}

void answer_start(void)
{
    struct job_head *h = self.job->block.head;
    if (!h) return;
    uint64_t socket_id;
    bool open = getrandom(&socket_id, sizeof socket_id, 0) == sizeof socket_id && listen_at(socket_id);
    if (!open) say_verbose("no socket for questions of the ranks: %s", strerror(errno));
    h->socket_id = self.socket_id = socket_id;
    /* release: pairs with the acquire of ranks, which read the name then */
    atomic_store_explicit(&h->socket_state, open ? JOB_SOCKET_OPEN : JOB_SOCKET_CLOSED, memory_order_release);
    futex_wake_all(&h->socket_state);
}

void answer_open(struct job *j)
{
    self.job = j;
    asks_open(&asks);
    offers_open(j);
    if (j->root) registry_open(j);
}
