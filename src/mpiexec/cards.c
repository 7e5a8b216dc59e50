/*
 * cards.c - see cards.h.
 *
 *     TREE_CARD_ASK  rank[n]           to the node of these ranks: their cards, please
 *     TREE_CARD      rank, bytes       the answer, when the rank has written its card; without bytes: the rank has
 *                                      ended and wrote none
 *
 * An ask is remembered until the card is there, once a node that asks: no more than ranks here times nodes.
 */
#include "mpiexec/cards.h"
#include "mpiexec/tree.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_MAX 1024 /* ranks in one message */

struct waiter {
    int node;           /* if `done` is NULL */
    cards_done_fn done; /* somebody in this process */
    void *arg;
    struct waiter *next;
};

static struct {
    struct job *job;
    struct waiter **waiting; /* by local rank: the nodes that want its card */
    uint32_t *ask;           /* [nnodes * ASK_MAX] as far as used: ranks to ask for, by node */
    int *nask;
    struct event *wanted;
} self;

static struct job_card *card_of(uint32_t rank) { return &job_cards(self.job->block.head)[rank]; }
static bool is_ours(uint32_t rank) { return self.job->ranks[rank].node == self.job->node; }

/* ---- ours ---- */

/* acquire: pairs with the owner's release, after which the card may be read */
static bool is_here(uint32_t rank)
{
    return atomic_load_explicit(&card_of(rank)->state, memory_order_acquire) == JOB_CARD_HERE;
}

/* relaxed: this process has set it (block_end) */
static bool has_ended(uint32_t rank)
{
    return atomic_load_explicit(&card_of(rank)->life, memory_order_relaxed) & JOB_ENDED;
}

/* The card of a rank of ours, or no bytes if it will have none. */
static void give(const struct waiter *w, uint32_t rank)
{
    const struct job_card *c = card_of(rank);
    unsigned char message[sizeof rank + JOB_CARD_MAX];
    size_t n = is_here(rank) ? min_size(c->len, JOB_CARD_MAX) : 0; /* it is the rank's word */
    memcpy(message, &rank, sizeof rank);
    memcpy(message + sizeof rank, c->data, n);
    if (w->done)
        w->done(w->arg, message + sizeof rank, n);
    else
        tree_send(w->node, TREE_CARD, message, sizeof rank + n);
}

/* The card of a rank of ours has come, or will not come any more: all nodes that asked are told. */
static void give_all(uint32_t rank)
{
    if (!is_here(rank) && !has_ended(rank)) return; /* a wanted bit without a card is another program's mistake */
    struct waiter **list = &self.waiting[self.job->ranks[rank].local];
    while (*list) {
        struct waiter *w = *list;
        *list = w->next;
        give(w, rank);
        free(w);
    }
}

/* False: that node has asked before. */
static bool remember(const struct waiter *asks, uint32_t rank)
{
    struct waiter **at = &self.waiting[self.job->ranks[rank].local];
    for (; *at; at = &(*at)->next)
        if (!asks->done && !(*at)->done && (*at)->node == asks->node) return false;
    *at = xcalloc(1, sizeof **at);
    **at = *asks;
    return true;
}

static bool asked_for(const struct waiter *asks, uint32_t rank)
{
    uint32_t state = JOB_CARD_EMPTY;
    if (rank >= (uint32_t)self.job->size || !is_ours(rank)) return false;
    /* acquire: it may be there, and is read then */
    atomic_compare_exchange_strong_explicit(&card_of(rank)->state, &state, JOB_CARD_WANTED, memory_order_acquire,
                                            memory_order_acquire);
    if (state != JOB_CARD_HERE && !has_ended(rank)) return remember(asks, rank);
    give(asks, rank);
    return true;
}

void cards_fetch(uint32_t rank, cards_done_fn done, void *arg)
{
    asked_for(&(struct waiter){.done = done, .arg = arg}, rank);
}

static bool on_ask(int from, const void *bytes, size_t n)
{
    uint32_t rank;
    int node = launch_node_of(self.job, from);
    if (!n || n % sizeof rank || n > ASK_MAX * sizeof rank || node == NODE_NONE) return false;
    for (size_t at = 0; at < n; at += sizeof rank) {
        memcpy(&rank, (const char *)bytes + at, sizeof rank);
        if (!asked_for(&(struct waiter){.node = node}, rank)) return false;
    }
    return true;
}

/* ---- theirs ---- */

static bool on_card(int from, const void *bytes, size_t n)
{
    uint32_t rank;
    if (n < sizeof rank || n > sizeof rank + JOB_CARD_MAX) return false;
    memcpy(&rank, bytes, sizeof rank);
    if (rank >= (uint32_t)self.job->size || self.job->ranks[rank].node != launch_node_of(self.job, from)) return false;
    if (is_ours(rank) || atomic_load_explicit(&card_of(rank)->state, memory_order_relaxed) != JOB_CARD_WANTED)
        return false;
    if (n == sizeof rank)
        block_end(&self.job->block, (int)rank);
    else
        block_card_put(&self.job->block, rank, (const char *)bytes + sizeof rank, n - sizeof rank);
    return true;
}

static void send_asks(int node)
{
    size_t n = (size_t)self.nask[node];
    self.nask[node] = 0;
    if (n) tree_send(node, TREE_CARD_ASK, self.ask + (size_t)node * ASK_MAX, n * sizeof *self.ask);
}

/* Each rank that wants the card says so, until it has been asked for. */
static void want(uint32_t rank)
{
    int node = self.job->ranks[rank].node;
    uint32_t empty = JOB_CARD_EMPTY;
    /* relaxed: of such a card only this process sets the state */
    if (!atomic_compare_exchange_strong_explicit(&card_of(rank)->state, &empty, JOB_CARD_WANTED, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    self.ask[(size_t)node * ASK_MAX + (size_t)self.nask[node]++] = rank;
    if (self.nask[node] == ASK_MAX) send_asks(node);
}

/* ---- cards that ranks want ---- */

static void take_bits(uint32_t first, uint64_t bits)
{
    for (; bits; bits &= bits - 1) {
        uint32_t rank = first + (uint32_t)__builtin_ctzll(bits);
        if (rank >= (uint32_t)self.job->size) return;
        if (is_ours(rank))
            give_all(rank);
        else
            want(rank);
    }
}

void cards_look(void)
{
    uint32_t size = (uint32_t)self.job->size;
    _Atomic uint64_t *wanted = job_wanted(self.job->block.head);
    for (uint32_t w = 0; w < job_wanted_words(size); w++)
        if (atomic_load_explicit(&wanted[w], memory_order_relaxed)) /* relaxed: the message came after, by a descriptor */
            take_bits(w * 64, atomic_exchange_explicit(&wanted[w], 0, memory_order_acquire));
    for (int i = 0; i < self.job->nnodes; i++) send_asks(i);
}

static void on_wanted(evutil_socket_t fd, short what, void *arg)
{
    char bytes[4096];
    (void)what, (void)arg;
    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) continue; /* first: what is set later rings again */
    cards_look();
}

void cards_end(int rank)
{
    if (self.job) give_all((uint32_t)rank);
}

int cards_open(struct job *j)
{
    if (j->node == NODE_NONE) return 0;
    int rc = j->nnodes > 1 ? block_open_wanted_pipe(&j->block) : 0;
    if (rc) return rc;
    self.job = j;
    self.waiting = xcalloc((size_t)launch_nlocal(j), sizeof(struct waiter *));
    self.ask = xcalloc((size_t)j->nnodes * ASK_MAX, sizeof *self.ask); /* untouched pages cost nothing */
    self.nask = xcalloc((size_t)j->nnodes, sizeof *self.nask);
    if (j->nnodes == 1) return 0;
    tree_handlers[TREE_CARD_ASK] = on_ask;
    tree_handlers[TREE_CARD] = on_card;
    self.wanted = event_new(j->base, j->block.wanted_pipe[0], EV_READ | EV_PERSIST, on_wanted, NULL);
    if (self.wanted) event_add(self.wanted, NULL);
    return 0;
}

void cards_close(void)
{
    for (int i = 0; self.job && i < launch_nlocal(self.job); i++)
        for (struct waiter *w = self.waiting[i], *next; w; w = next) {
            next = w->next;
            free(w);
        }
    if (self.wanted) event_free(self.wanted);
    tree_handlers[TREE_CARD_ASK] = tree_handlers[TREE_CARD] = NULL;
    free(self.waiting);
    free(self.ask);
    free(self.nask);
    memset(&self, 0, sizeof self);
}
