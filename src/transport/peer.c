/*
 * peer.c - opening the transports, cards, and connecting to peers on first use.
 *
 * A card is a list of the cards of all transports of a process:
 *     | name length (1) | name | card length (1) | card | ... | 0 |
 * and ahead of them, in the same form, under the name SETTINGS, a struct settings.
 */
#include "transport/peer.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD_MAX 496
#define DOMS_MAX 8
#define SETTINGS "set"

struct settings {
    uint64_t compared;    /* peer_settings */
    int64_t first_window; /* of its peers: what each may send before it is given more */
};
static_assert(sizeof(struct settings) == 16 && sizeof SETTINGS == 3 + 1, "the lengths in put_card");

tp_handler_fn tp_handlers[AM_COUNT];
tp_sink_fn tp_sinks[AM_COUNT];
void (*tp_lost)(struct peer *, int code);
void (*tp_left)(struct peer *);
struct peer **peer_table;
struct peer **_Atomic peer_short_table;
static struct peer **nobody; /* a table like peer_table, without peers */
uint32_t peer_count;
uint64_t peer_settings;

static struct open_dom {
    const struct tp_ops *ops;
    struct tp_dom *dom;
} doms[DOMS_MAX];
static int dom_count;

/* Those that are polled: the near ones, looked at each time since that costs a few loads, and the far ones, where a look
 * is a system call. */
static struct open_dom near[DOMS_MAX], far[DOMS_MAX];
static int near_count, far_count;

/* Looks at the near ones that find nothing before the far ones have their turn: about a tenth of what a look there costs. */
#define FAR_TURN 8

static char absent[200]; /* why the last of those that could not be opened could not */

static struct bell own_bell; /* where no transport has one */
static struct bell *bell = &own_bell;

const struct tp_ops *const peer_transports[] = {&tp_self, &tp_shm, &tp_tcp, &tp_mock, NULL};

static const struct tp_ops *find_ops(const char *name, size_t len)
{
    for (const struct tp_ops *const *t = peer_transports; *t; t++)
        if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len)) return *t;
    return NULL;
}

static int open_dom(const struct tp_ops *ops)
{
    struct open_dom *d = &doms[dom_count];
    if (bell != &own_bell && ops->bell)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: %s cannot be used together with the transports before it", ops->name);
    int rc = ops->open(&d->dom);
    if (rc == TERN_ERR_NOT_FOUND) {
        snprintf(absent, sizeof absent, ": %s", err_words());
        return 0;
    }
    if (rc) return rc;
    d->ops = ops;
    dom_count++;
    if (ops->bell) bell = ops->bell(d->dom);
    if (ops->wait_fd) far[far_count++] = *d;
    else if (ops->progress) near[near_count++] = *d;
    return 0;
}

/* Who also waits for descriptors sleeps in another way. */
static int open_bell(void)
{
    if (bell == &own_bell) bell_open(bell, true);
    return far_count ? bell_open_socket(bell) : 0;
}

/* Opens what TERN_TRANSPORTS lists, "a,b,c". */
static int open_listed(const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        const struct tp_ops *ops = find_ops(list, len);
        if (len && !ops)
            return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: '%.*s' is no transport (there are self, shm, tcp and mock)", (int)len, list);
        if (ops && dom_count < DOMS_MAX) {
            int rc = open_dom(ops);
            if (rc) return rc;
        }
        list += len + (list[len] == ',');
    }
    return dom_count ? 0 : err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS names no transport that can be used%s", absent);
}

static int put_card(void)
{
    uint8_t card[CARD_MAX] = "\3" SETTINGS "\20";
    size_t n = sizeof "\3" SETTINGS "\20" - 1;
    struct settings own = {peer_settings, peer_first_window()};
    memcpy(card + n, &own, sizeof own);
    n += sizeof own;
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
    if (!near_count) rc = shared_open(NULL, 0, (uint64_t)64 << 20);
    if (!rc) rc = open_bell();
    peer_count = proc_self()->size;
    peer_table = calloc(peer_count, sizeof *peer_table);
    if (!peer_table) return err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", peer_count);
    peer_short_open(true);
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
    free(nobody);
    peer_table = nobody = NULL;
    peer_count = 0;
    shared_close();
    bell_close(bell);
    bell = &own_bell;
    while (dom_count) {
        dom_count--;
        doms[dom_count].ops->close(doms[dom_count].dom);
    }
    near_count = far_count = 0;
    absent[0] = 0;
}

int64_t peer_first_window(void)
{
    int64_t others = peer_count > 1 ? peer_count - 1 : 1;
    return min_int64(var_int(VAR_EAGER_STORE) / 2 / others, var_int(VAR_EAGER_CREDIT));
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
    p->window = peer_first_window();
    p->due = p->window / 2;
    p->short_max = -1;
    list_init(&p->pending_head);
    list_init(&p->in_pending);
    list_init(&p->in_lost);
    list_init(&p->streams_waiting);
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

static int out_of_reach(uint32_t index)
{
    return err_set(TERN_ERR_PEER, "no transport of TERN_TRANSPORTS=%s reaches rank %u of the job%s",
                   var_text(VAR_TRANSPORTS), index, absent);
}

/* Without memory that the launcher has made for all, a process of this node may be out of reach as well. */
static bool may_be_apart(void) { return !proc_shared() && peer_count > 1; }

bool peer_local_only(void) { return !far_count && (proc_self()->nodes > 1 || may_be_apart()); }

bool peer_may_be_beyond(uint32_t index)
{
    return peer_local_only() && (may_be_apart() || proc_node_of(index) != proc_node_of(proc_self()->rank));
}

int peer_beyond(uint32_t index)
{
    uint8_t card[CARD_MAX];
    if (!peer_may_be_beyond(index) || (peer_table[index] && peer_table[index]->ep.ops)) return 0;
    int n = proc_card_get(index, card, sizeof card);
    return n < 0 ? n : best_dom(card, (size_t)n) ? 0 : out_of_reach(index);
}

static bool settings_on(const uint8_t *card, size_t n, struct settings *s)
{
    size_t len;
    const uint8_t *part = card_part(card, n, SETTINGS, &len);
    if (!part || len != sizeof *s) return false;
    memcpy(s, part, sizeof *s);
    return true;
}

static void learn_window(struct peer *p, const uint8_t *card, size_t n)
{
    struct settings s;
    if (p->flags & PEER_WINDOW_KNOWN || !settings_on(card, n, &s)) return;
    p->flags |= PEER_WINDOW_KNOWN;
    p->window_there += s.first_window;
    p->credit += s.first_window;
}

void peer_learn_window(struct peer *p)
{
    uint8_t card[CARD_MAX];
    int n = p->flags & PEER_WINDOW_KNOWN ? 0 : proc_card_get(p->index, card, sizeof card);
    if (n > 0) learn_window(p, card, (size_t)n);
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
        out_of_reach(index);
        return NULL;
    }
    size_t len;
    const uint8_t *part = card_part(card, (size_t)n, d->ops->name, &len);
    if (d->ops->ep_open(d->dom, p, part, len, &p->ep)) return NULL;
    learn_window(p, card, (size_t)n);
    return p;
}

int peer_settings_of(uint32_t index, uint64_t *settings)
{
    uint8_t card[CARD_MAX];
    struct settings s;
    int n = proc_card_get(index, card, sizeof card);
    if (n < 0) return n;
    if (!settings_on(card, (size_t)n, &s))
        return err_set(TERN_ERR_PEER, "the card of rank %u of the job does not say its settings", index);
    *settings = s.compared;
    return 0;
}

int peer_short_prepare(void)
{
    if (!nobody) nobody = calloc(peer_count, sizeof *nobody); /* never written: address space */
    return nobody ? 0 : err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", peer_count);
}

void peer_short_open(bool open)
{
    /* release: who sees the table again sees what was done meanwhile with the peers */
    atomic_store_explicit(&peer_short_table, open ? peer_table : nobody, memory_order_release);
}

bool peer_is_mappable(uint32_t index)
{
    uint8_t card[CARD_MAX];
    if (!far_count || index == proc_self()->rank) return true;
    int n = proc_card_get(index, card, sizeof card);
    const struct open_dom *d = n < 0 ? NULL : best_dom(card, (size_t)n);
    return d && d->ops->map;
}

/* Far ones have their turn when the near ones have nothing, and now and then when they always have something. */
static TERN_COLD int progress_far(int budget, int n)
{
    static uint32_t fruitless, fruitful;
    if (near_count && (n ? ++fruitful : ++fruitless) % FAR_TURN) return n;
    for (int i = 0; i < far_count; i++) n += far[i].ops->progress(far[i].dom, budget);
    return n;
}

static inline int progress_near(int budget)
{
    int n = 0;
    for (int i = 0; i < near_count; i++) n += near[i].ops->progress(near[i].dom, budget);
    return n;
}

int peer_progress_near(int budget) { return progress_near(budget); }

int peer_progress(int budget)
{
    int n = progress_near(budget);
    return likely(!far_count) ? n : progress_far(budget, n);
}

void peer_cores(bool gates, cpu_set_t *cores)
{
    for (int i = 0; i < near_count; i++)
        if (near[i].ops->cores) near[i].ops->cores(near[i].dom, gates, cores);
}

struct bell *peer_bell(void) { return bell; }

bool peer_idle(bool want_room)
{
    for (int i = 0; i < near_count; i++)
        if (!near[i].ops->idle(near[i].dom, want_room)) return false;
    for (int i = 0; i < far_count; i++)
        if (!far[i].ops->idle(far[i].dom, want_room)) return false;
    return true;
}

int peer_wait_fds(int *fds)
{
    int n = 0;
    for (int i = 0; i < far_count && n < BELL_FDS_MAX; i++) fds[n++] = far[i].ops->wait_fd(far[i].dom);
    return n;
}

void peer_sleep(struct bell *b, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns)
{
    int fds[BELL_FDS_MAX];
    if (!bell_has_socket(b)) {
        bell_wait(b, ticket, words, most_ns);
        return;
    }
    bell_poll(b, ticket, fds, peer_wait_fds(fds), most_ns); /* who opens the gate rings the bell too */
}

/* Connects to the peer, as its bell is in its segment. The peer may be awake, asleep at the gate, asleep by its bell,
 * or have left: only the peer knows. If it cannot be connected, the caller has not failed: its error is kept. */
static TERN_COLD struct peer *connect_to_wake(uint32_t index)
{
    struct peer *p = peer_table[index];
    char words[512];
    int code = err_code();
    if (p && p->lost) return NULL;
    snprintf(words, sizeof words, "%s", err_words());
    p = peer_connect(index);
    err_set(code, "%s", words);
    return p;
}

void peer_wake(uint32_t index)
{
    struct peer *p = peer_table[index];
    if (unlikely(!p || !p->ep.ops)) p = connect_to_wake(index);
    if (p && p->ep.ops->nudge) p->ep.ops->nudge(&p->ep);
}

bool peer_is_helped(uint32_t index)
{
    struct peer *p = peer_get(index);
    return p && p->ep.ops->helped && p->ep.ops->helped(&p->ep);
}

void peer_trim(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->trim) doms[i].ops->trim(doms[i].dom);
}

bool peer_drained(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->drained && !doms[i].ops->drained(doms[i].dom)) return false;
    return true;
}

void *peer_shared_alloc(size_t bytes, uint64_t *offset) { return shared_alloc(bytes, offset); }
void peer_shared_free(void *block, size_t bytes) { shared_free(block, bytes); }
bool peer_shared_public(void) { return shared_is_public(); }
