/* early.c - see early.h. */
#include "pt2pt/early.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/say.h"
#include "transport/wire_lock.h"

#include <stdlib.h>
#include <string.h>

/* Contexts that messages have come for and no communicator was made for yet: many more than there can be honestly. */
#define EARLY_MAX 65536

#define BUCKETS 1024

/* The buckets are made for the first message that is too early. */
static struct early {
    struct early *next; /* in the same bucket */
    uint64_t ctx;       /* even */
    struct link messages;
} **table;

uint32_t early_contexts;

static struct early **place_of(uint64_t ctx)
{
    if (unlikely(!table)) table = calloc(BUCKETS, sizeof(struct early *));
    if (unlikely(!table)) lane_fatal("no memory for messages that are too early");
    struct early **at = &table[(ctx >> 1) * 0x9e3779b97f4a7c15u >> 54];
    while (*at && (*at)->ctx != (ctx & ~CTX_COLL)) at = &(*at)->next;
    return at;
}

static struct kept_message *message_of(struct link *l) { return container_of(l, struct kept_message, link); }

/* Bytes of the payload; -1: there is none, but an offer of it. */
static int64_t payload(const struct kept_message *m)
{
    if (m->kind->id == AM_RTS) return -1;
    size_t head = m->kind->id == AM_EAGER_SYNC ? sizeof(uint64_t) : 0;
    return m->n > head ? (int64_t)(m->n - head) : 0;
}

static void count(const struct kept_message *m, int by)
{
    int64_t n = payload(m);
    if (n >= 0) counter_add(&m->from->stored, by * eager_cost((size_t)n));
}

/* ---- coming ---- */

static struct early *early_new(struct early **at, uint64_t ctx)
{
    struct early *e = malloc(sizeof *e);
    if (!e) lane_fatal("no memory for the messages of a communicator");
    *e = (struct early){.ctx = ctx & ~CTX_COLL};
    list_init(&e->messages);
    *at = e;
    early_contexts++;
    return e;
}

static bool is_too_many(struct early **at) { return !*at && early_contexts == EARLY_MAX; }

/* The lock is a leaf: nothing else is done with it. */
static void keep(struct early **at, struct kept_message *m)
{
    struct early *e = *at ? *at : early_new(at, m->h0);
    if (unlikely(pt_checking)) pt_check_keep(m);
    count(m, 1);
    list_push(&e->messages, &m->link);
}

/* Who has sent it is checked by its handler. */
bool early_put(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(!contexts_are_open())) return true;
    if (!env_possible(h0, h1)) {
        pt_stranger(from, h1);
        return true;
    }
    if (pt_is_too_much(from, n)) return true;
    struct kept_message *m = kept_message_new(k, from, h0, h1, data, n, true);
    leaf_take(&contexts_lock);
    struct early **at = place_of(h0);
    bool made = context_find_locked(h0), kept = !made && !is_too_many(at);
    if (kept) keep(at, m);
    leaf_give(&contexts_lock);
    if (kept) return true;
    free(m);
    if (!made) pt_violation(from, "messages for %u unknown communicators", EARLY_MAX);
    return !made;
}

/* ---- going ---- */

static void early_free(struct early **at)
{
    struct early *e = *at;
    *at = e->next;
    early_contexts--;
    free(e);
}

/* The peer may have a receive under way, whose header has come: that is not for this message. */
static void handle(struct pt_comm *pt, struct kept_message *m)
{
    struct peer *from = m->from;
    void *arriving = from->arriving;
    from->arriving = NULL;
    if (unlikely(pt_checking)) pt_check_recall(m);
    count(m, -1);
    m->kind->handler(pt->lane, pt, from, m->h0, m->h1, m->data, m->n);
    from->arriving = arriving;
    free(m);
}

/* All that has come for a context. */
static void take_all(uint64_t ctx, struct link *messages)
{
    struct early **at = place_of(ctx);
    if (!*at) return;
    for (struct link *a; (a = list_pop(&(*at)->messages));) list_push(messages, a);
    early_free(at);
}

void early_open(struct pt_comm *pt)
{
    struct link messages = LIST_INIT(messages);
    take_all(pt->ctx, &messages);
    for (struct link *a; (a = list_pop(&messages));) handle(pt, message_of(a));
}

void early_post(const struct pt_comm *pt)
{
    struct link messages = LIST_INIT(messages);
    take_all(pt->ctx, &messages);
    for (struct link *a; (a = list_pop(&messages));) {
        struct kept_message *m = message_of(a);
        count(m, -1);
        deliver_push(pt->lane, m);
    }
}

/* The sender of a synchronous or offered message names it so. */
static uint64_t send_of(const struct kept_message *m)
{
    uint64_t send = 0;
    memcpy(&send, m->data, min_size(m->n, sizeof send));
    return send;
}

/* It is out of its list, and counts as received. */
static void consume(struct lane *l, struct kept_message *m)
{
    int64_t n = payload(m);
    if (n >= 0) pt_consumed(l, m->from, (size_t)n);
    count(m, -1);
    free(m);
}

/* A large message that is coming without having been asked for, or a part of it: its sender waits for no answer. */
static bool is_ahead(const struct kept_message *m)
{
    const struct pt_rts *rts = m->data;
    return m->kind->id == AM_AHEAD || (m->kind->id == AM_RTS && m->n == sizeof *rts && rts->offer == RTS_AHEAD);
}

struct search {
    const struct peer *from;
    uint64_t ctx, send;
};

static bool is_that_send(const struct kept_message *m, const struct search *s)
{
    return m->h0 == s->ctx && m->from == s->from && m->kind->id != AM_EAGER && !is_ahead(m) && send_of(m) == s->send;
}

static bool is_of_collective(const struct kept_message *m, const struct search *s)
{
    (void)s;
    return m->h0 & CTX_COLL && !pt_tag_is_for_two(env_tag(m->h1));
}

static bool is_offer_of(const struct kept_message *m, const struct search *s) { return m->from == s->from && m->kind->id != AM_EAGER; }

static void pick_from(struct early *e, bool (*suits)(const struct kept_message *, const struct search *), const struct search *s,
                      struct link *found)
{
    list_each(a, next, &e->messages)
    {
        if (!suits(message_of(a), s)) continue;
        list_remove(a);
        list_push(found, a);
    }
}

/* What suits, out of the queue of one context. */
static void pick(const struct search *s, bool (*suits)(const struct kept_message *, const struct search *), struct link *found)
{
    leaf_take(&contexts_lock);
    struct early **at = place_of(s->ctx);
    if (*at) pick_from(*at, suits, s, found);
    if (*at && list_empty(&(*at)->messages)) early_free(at);
    leaf_give(&contexts_lock);
}

bool early_cancel(struct lane *l, struct peer *from, uint64_t ctx, uint64_t send)
{
    struct link found = LIST_INIT(found);
    struct search s = {from, ctx, send};
    bool any = false;
    pick(&s, is_that_send, &found);
    for (struct link *a; (a = list_pop(&found)); any = true) consume(l, message_of(a));
    return any;
}

static void answer(struct lane *l, const struct kept_message *m)
{
    struct pt_cts nothing = {0, 0, 0};
    if (m->kind->id == AM_RTS && !is_ahead(m)) lane_say(l, m->from, AM_CTS, send_of(m), 0, &nothing, sizeof nothing);
    if (m->kind->id == AM_EAGER_SYNC) lane_say(l, m->from, AM_ACK, send_of(m), 0, NULL, 0);
}

void early_swallow(struct lane *l, uint64_t ctx)
{
    struct link found = LIST_INIT(found);
    struct search s = {.ctx = ctx};
    pick(&s, is_of_collective, &found);
    for (struct link *a; (a = list_pop(&found));) {
        answer(l, message_of(a));
        consume(l, message_of(a));
    }
}

static void drop(struct kept_message *m)
{
    count(m, -1);
    free(m);
}

static void drop_all(struct link *messages)
{
    for (struct link *a; (a = list_pop(messages));) drop(message_of(a));
}

void early_drop_offers(const struct peer *p)
{
    struct link found = LIST_INIT(found);
    struct search s = {.from = p};
    leaf_take(&contexts_lock);
    for (int i = 0; i < BUCKETS && early_contexts; i++)
        for (struct early *e = table[i]; e; e = e->next) pick_from(e, is_offer_of, &s, &found);
    leaf_give(&contexts_lock);
    drop_all(&found);
}

/* No other thread is inside. */
void early_close(void)
{
    for (int i = 0; i < BUCKETS && early_contexts; i++)
        while (table[i]) {
            drop_all(&table[i]->messages);
            early_free(&table[i]);
        }
    free(table);
    table = NULL;
}
