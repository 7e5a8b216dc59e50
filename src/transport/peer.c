/*
 * peer.c - opening the transports, cards, and connecting to peers on first use.
 *
 * A card is a list of the cards of all transports of a process:
 *     | name length (1) | name | card length (1) | card | ... | 0 |
 */
#include "transport/peer.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/shared.h"

#include <stdlib.h>
#include <string.h>

#define CARD_MAX 496
#define DOMS_MAX 8

tp_handler_fn tp_handlers[AM_COUNT];
tp_sink_fn tp_sinks[AM_COUNT];
void (*tp_lost)(struct peer *, int code);
struct peer **peer_table;
uint32_t peer_count;

static struct open_dom {
    const struct tp_ops *ops;
    struct tp_dom *dom;
} doms[DOMS_MAX];
static int dom_count;
static struct tp_dom *poll_dom; /* the one transport that is polled */
static const struct tp_ops *poll_ops;

const struct tp_ops *const peer_transports[] = {&tp_self, &tp_shm, &tp_mock, NULL};

static const struct tp_ops *find_ops(const char *name, size_t len)
{
    for (const struct tp_ops *const *t = peer_transports; *t; t++)
        if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len)) return *t;
    return NULL;
}

static int open_dom(const struct tp_ops *ops)
{
    struct open_dom *d = &doms[dom_count];
    if (ops->progress && poll_ops)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: %s and %s cannot be used together", poll_ops->name, ops->name);
    int rc = ops->open(&d->dom);
    if (rc == TERN_ERR_NOT_FOUND) return 0;
    if (rc) return rc;
    d->ops = ops;
    dom_count++;
    if (ops->progress) {
        poll_ops = ops;
        poll_dom = d->dom;
    }
    return 0;
}

/* Opens what TERN_TRANSPORTS lists, "a,b,c". */
static int open_listed(const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        const struct tp_ops *ops = find_ops(list, len);
        if (len && !ops)
            return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: '%.*s' is no transport (there are self, shm and mock)", (int)len, list);
        if (ops && dom_count < DOMS_MAX) {
            int rc = open_dom(ops);
            if (rc) return rc;
        }
        list += len + (list[len] == ',');
    }
    return dom_count ? 0 : err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS names no transport");
}

static int put_card(void)
{
    uint8_t card[CARD_MAX];
    size_t n = 0;
    for (int i = 0; i < dom_count; i++) {
        size_t name = strlen(doms[i].ops->name);
        card[n++] = (uint8_t)name;
        memcpy(card + n, doms[i].ops->name, name);
        n += name;
        int len = doms[i].ops->card(doms[i].dom, card + n + 1, CARD_MAX - n - 2 < 255 ? CARD_MAX - n - 2 : 255);
        if (len < 0) return len;
        card[n] = (uint8_t)len;
        n += 1 + (size_t)len;
    }
    card[n++] = 0;
    return proc_card_put(card, n);
}

/* The part of a card that speaks of one transport, NULL if there is none or the card is cut short. */
static const uint8_t *card_part(const uint8_t *card, size_t n, const char *name, size_t *len)
{
    size_t want = strlen(name), i = 0;
    while (i < n && card[i]) {
        size_t name_len = card[i], at = i + 1 + name_len;
        if (at >= n || at + 1 + card[at] > n) return NULL;
        if (name_len == want && !memcmp(card + i + 1, name, want)) {
            *len = card[at];
            return card + at + 1;
        }
        i = at + 1 + card[at];
    }
    return NULL;
}

int peer_open(void)
{
    int rc = open_listed(var_text(VAR_TRANSPORTS));
    if (rc) return rc;
    if (!poll_ops) rc = shared_open(NULL, 0, (uint64_t)64 << 20);
    peer_count = proc_self()->size;
    peer_table = calloc(peer_count, sizeof *peer_table);
    if (!peer_table) return err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", peer_count);
    return rc ? rc : put_card();
}

void peer_close(void)
{
    for (uint32_t i = 0; i < peer_count && peer_table; i++) {
        struct peer *p = peer_table[i];
        if (!p) continue;
        for (int d = 0; d < dom_count; d++)
            if (doms[d].ops == p->ep.ops) {
                doms[d].ops->ep_close(doms[d].dom, &p->ep);
                break;
            }
        free(p);
    }
    free(peer_table);
    peer_table = NULL;
    peer_count = 0;
    shared_close();
    while (dom_count) {
        dom_count--;
        doms[dom_count].ops->close(doms[dom_count].dom);
    }
    poll_ops = NULL;
}

struct peer *peer_of_sender(uint32_t index)
{
    if (index >= peer_count) {
        err_set(TERN_ERR_PEER, "there is no process %u: the job has %u", index, peer_count);
        return NULL;
    }
    struct peer *p = peer_table[index];
    if (p) return p;
    p = aligned_alloc(CACHE_LINE, round_up(sizeof *p, CACHE_LINE));
    if (!p) {
        err_set(TERN_ERR_NOMEM, "no memory for a peer");
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->index = index;
    p->credit = var_int(VAR_EAGER_CREDIT);
    p->short_max = -1;
    list_init(&p->pending_head);
    list_init(&p->in_pending);
    peer_table[index] = p;
    return p;
}

/* The open transport with the least cost to the process with this card, NULL if none reaches it. */
static struct open_dom *best_dom(const uint8_t *card, size_t n)
{
    struct open_dom *best = NULL;
    int least = 0;
    for (int i = 0; i < dom_count; i++) {
        size_t len;
        const uint8_t *part = card_part(card, n, doms[i].ops->name, &len);
        int cost = part ? doms[i].ops->reach(doms[i].dom, part, len) : 0;
        if (cost && (!best || cost < least)) {
            best = &doms[i];
            least = cost;
        }
    }
    return best;
}

struct peer *peer_connect(uint32_t index)
{
    uint8_t card[CARD_MAX];
    struct peer *p = peer_of_sender(index);
    if (!p) return NULL;
    int n = proc_card_get(index, card, sizeof card);
    if (n < 0) return NULL;
    struct open_dom *d = best_dom(card, (size_t)n);
    if (!d) {
        err_set(TERN_ERR_PEER, "no transport of TERN_TRANSPORTS=%s reaches rank %u of the job", var_text(VAR_TRANSPORTS), index);
        return NULL;
    }
    size_t len;
    const uint8_t *part = card_part(card, (size_t)n, d->ops->name, &len);
    if (d->ops->ep_open(d->dom, p, part, len, &p->ep)) return NULL;
    return p;
}

void peer_close_short(void)
{
    for (uint32_t i = 0; i < peer_count; i++)
        if (peer_table[i]) __atomic_store_n(&peer_table[i]->short_max, -1, __ATOMIC_RELAXED); /* its reader may be at it */
}

bool peer_is_local(uint32_t index)
{
    struct peer *p = peer_get(index);
    return p && (p->ep.caps & TP_CAP_MAP);
}

int peer_progress(int budget) { return poll_ops ? poll_ops->progress(poll_dom, budget) : 0; }

struct bell *peer_bell(void)
{
    static struct bell lonely; /* nobody rings it */
    return poll_ops && poll_ops->bell ? poll_ops->bell(poll_dom) : &lonely;
}

bool peer_idle(bool want_room) { return !poll_ops || poll_ops->idle(poll_dom, want_room); }

void *peer_shared_alloc(size_t bytes, uint64_t *offset) { return shared_alloc(bytes, offset); }
void peer_shared_free(void *block, size_t bytes) { shared_free(block, bytes); }
bool peer_shared_public(void) { return shared_is_public(); }
