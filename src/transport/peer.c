/*
 * peer.c - the table of peers, and connecting to them on first use.
 *
 * Ahead of the transports' parts (wires.h) a card has one named SETTINGS, a struct settings.
 */
#include "transport/peer.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/endpoint.h"
#include "transport/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SETTINGS "set"

struct settings {
    uint64_t compared;    /* peer_settings */
    int64_t first_quota; /* of its peers: what each may send before it is given more */
};
static_assert(sizeof(struct settings) == 16 && sizeof SETTINGS == 3 + 1, "the lengths in put_card");

void (*tp_lost)(struct peer *, int code);
void (*tp_left)(struct peer *);
struct peer **peer_table;
struct peer **_Atomic peer_short_table;
struct peer **_Atomic peer_shared_table;
static struct peer **nobody; /* a table like peer_table, without peers */
static struct lock table_lock; /* a leaf: new peers and their quotas */
uint32_t peer_count;
int64_t peer_other_quotas;
bool (*peer_forgotten)(struct peer *);
void (*peer_connected)(struct peer *);
uint64_t peer_settings;

int peer_card(void *card, size_t cap)
{
    static const char head[] = "\3" SETTINGS "\20";
    size_t n = sizeof head - 1;
    struct settings own = {peer_settings, peer_first_quota()};
    if (cap < n + sizeof own) return err_set(TERN_ERR_INTERN, "no room for a card");
    memset(card, 0, cap);
    memcpy(card, head, n);
    memcpy((uint8_t *)card + n, &own, sizeof own);
    return wires_cards(card, n + sizeof own, cap);
}

static int put_card(void)
{
    uint8_t card[PEER_CARD_MAX];
    int n = peer_card(card, sizeof card);
    return n < 0 ? n : proc_card_put(card, (size_t)n);
}

int peers_meet_others(void) { return wires_open_for_others(); }

/* ---- the table ---- */

static size_t table_bytes(void) { return ((size_t)proc_self()->size + JOBS_PLACES) * sizeof(struct peer *); }

/* Address space of small pages, so that a single entry costs one of those. */
static struct peer **make_table(void)
{
    void *t = mmap(NULL, table_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t == MAP_FAILED) {
        err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", proc_self()->size);
        return NULL;
    }
    madvise(t, table_bytes(), MADV_NOHUGEPAGE);
    return t;
}

int peers_open(void)
{
    int rc = wires_open();
    if (rc) return rc;
    peer_other_quotas = 0;
    peer_table = make_table();
    if (!peer_table) return TERN_ERR_NOMEM;
    peer_count = proc_self()->size;
    peer_short_open(true);
    return put_card();
}

/* What it has of a transport goes, and its place in the table. */
static void take_out(struct peer *p)
{
    __atomic_store_n(&peer_table[p->index], NULL, __ATOMIC_RELAXED); /* no thread sends to it any more */
    if (p->ep.ops) wires_ep_close(&p->ep);
    if (!jobs_is_own(p->index)) watcher_forget(p->index); /* it may have been noted without a connection; the index is used again */
    leaf_take(&table_lock);
    if (!jobs_is_own(p->index)) __atomic_fetch_sub(&peer_other_quotas, peer_first_quota(), __ATOMIC_RELAXED);
    leaf_give(&table_lock);
}

void peer_free(struct peer *p)
{
    struct job_entry *job = jobs_of_index(p->index);
    if (job) {
        job_unref(job);
        job_unref(job); /* that of the peer */
    }
    for (struct peer_lane *w = p->first.next, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    free(p->gather);
    free(p->ready);
    free(p->unplaced);
    free(p);
}

void peers_close(void)
{
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (!p) continue;
        take_out(p);
        peer_free(p);
    }
    if (peer_table) munmap(peer_table, table_bytes());
    if (nobody) munmap(nobody, table_bytes());
    peer_table = nobody = NULL;
    peer_count = 0;
    wires_unshare();
    wires_close();
}

int64_t peer_first_quota(void)
{
    int64_t others = proc_self()->size > 1 ? proc_self()->size - 1 : 1;
    return min_int64(var_int(VAR_EAGER_STORE) / 2 / others, var_int(VAR_EAGER_CREDIT));
}

static struct peer *no_peer(uint32_t index)
{
    err_set(TERN_ERR_ABSENT, "no process with index %u is known here", index);
    return NULL;
}

static void peer_lane_init(struct peer_lane *w, struct peer *p, uint32_t lane)
{
    *w = (struct peer_lane){.peer = p, .lane = lane};
    list_init(&w->ops);
    list_init(&w->in_lane);
    list_init(&w->streams_waiting);
}

struct peer_lane *peer_lane_add(struct peer *p, uint32_t lane)
{
    struct peer_lane *w = malloc(sizeof *w);
    if (!w) {
        err_set(TERN_ERR_NOMEM, "no memory for what waits for room at %s", jobs_long_words(p->index));
        return NULL;
    }
    peer_lane_init(w, p, lane);
    leaf_take(&table_lock);
    w->next = p->first.next;
    __atomic_store_n(&p->first.next, w, __ATOMIC_RELEASE); /* pairs with the acquire in peer_lane_of */
    leaf_give(&table_lock);
    return w;
}

static struct peer *make_peer(uint32_t index)
{
    struct peer *p = aligned_alloc(CACHE_LINE, round_up(sizeof *p, CACHE_LINE));
    if (!p) {
        err_set(TERN_ERR_NOMEM, "no memory for a peer");
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->index = index;
    p->quota = peer_first_quota();
    p->due = p->quota / 2;
    p->short_max = -1;
    p->comms = -1;
    peer_lane_init(&p->first, p, 0);
    list_init(&p->in_lost);
    list_init(&p->in_closing);
    return p;
}

/* A new peer enters the table, unless another thread was faster, whose peer it then is. */
static struct peer *enter(struct peer *p, int64_t of_others)
{
    leaf_take(&table_lock);
    struct peer *there = peer_table[p->index];
    if (!there) {
        __atomic_store_n(&peer_table[p->index], p, __ATOMIC_RELEASE); /* made, and its job is known */
        if (p->index >= peer_count) __atomic_store_n(&peer_count, p->index + 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&peer_other_quotas, of_others, __ATOMIC_RELAXED);
    }
    leaf_give(&table_lock);
    if (!there) return p;
    free(p);
    return there;
}

struct peer *peer_of_sender(uint32_t index)
{
    struct peer *p = peer_known(index);
    if (p) return p;
    struct job_entry *job = jobs_is_own(index) ? NULL : jobs_of_index(index); /* the reference is the peer's */
    struct peer *made = job || jobs_is_own(index) ? make_peer(index) : no_peer(index);
    if (made) p = enter(made, job ? peer_first_quota() : 0);
    if (job && (!made || p != made)) job_unref(job);
    return p;
}

int peer_add(struct job_entry *job, uint32_t rank, const void *card, size_t n, uint32_t *index)
{
    int rc = job_card_put(job, rank, card, n);
    if (!rc) *index = job_index(job, rank);
    return rc;
}

static bool any_stream(const struct peer *p)
{
    bool some = false;
    for (const struct peer_lane *w = &p->first; w; w = w->next) some |= w->streams || !list_empty(&w->streams_waiting);
    return some;
}

static bool is_quiet(const struct peer *p) { return !peer_waiting(p) && !p->arriving && !any_stream(p) && list_empty(&p->in_lost); }

int peer_close(uint32_t index)
{
    struct peer *p = peer_known(index);
    if (!p) return 0;
    if (wire_is_inside()) return TERN_AGAIN;
    if (!is_quiet(p)) return err_set(TERN_ERR_PENDING, "something is under way to or from %s", jobs_long_words(index));
    p->flags |= PEER_CLOSING;
    peer_set_short(p, -1);
    int rc = wires_peer_close(p);
    if (rc) return rc;
    take_out(p);
    if (!peer_forgotten || !peer_forgotten(p)) peer_free(p);
    leaf_take(&table_lock);
    uint32_t count = peer_count;
    while (count > proc_self()->size && !peer_table[count - 1]) count--;
    __atomic_store_n(&peer_count, count, __ATOMIC_RELAXED);
    leaf_give(&table_lock);
    jobs_look_again();
    return 0;
}

/* ---- connecting ---- */

static int out_of_reach(uint32_t index)
{
    return err_set(TERN_ERR_ABSENT, "no transport of TERN_TRANSPORTS=%s reaches %s%s", var_text(VAR_TRANSPORTS),
                   jobs_long_words(index), wires_absent());
}

static TERN_COLD void other_messages(uint32_t index)
{
    err_set(TERN_ERR_ABSENT,
            "%s knows other messages than this process: it runs another version of the library, or with another "
            "TERN_CHECK",
            jobs_long_words(index));
}

/* Without memory that the launcher has made for all, a process of this node may be out of reach as well. */
static bool may_be_apart(void) { return !proc_shared() && proc_self()->size > 1; }

bool peer_local_only(void)
{
    return !wires_beyond_node() && (proc_self()->nodes > 1 || may_be_apart() || jobs_others());
}

bool peer_may_be_beyond(uint32_t index)
{
    return peer_local_only() && (may_be_apart() || jobs_node_of(index) != jobs_node_of(proc_self()->rank));
}

int peer_beyond(uint32_t index)
{
    uint8_t card[PEER_CARD_MAX];
    const struct peer *p = peer_known(index);
    if (!peer_may_be_beyond(index) || (p && peer_is_connected(p))) return 0;
    struct wire_path best;
    int n = jobs_card_get(index, card, sizeof card);
    return n < 0 ? n : wires_best(card, (size_t)n, &best) ? 0 : out_of_reach(index);
}

static bool settings_on(const uint8_t *card, size_t n, struct settings *s)
{
    size_t len;
    const uint8_t *part = wires_card_part(card, n, SETTINGS, &len);
    if (!part || len != sizeof *s) return false;
    memcpy(s, part, sizeof *s);
    return true;
}

static void learn_quota(struct peer *p, const uint8_t *card, size_t n)
{
    struct settings s;
    leaf_take(&table_lock);
    if (!(p->flags & PEER_QUOTA_KNOWN) && settings_on(card, n, &s)) {
        p->flags |= PEER_QUOTA_KNOWN;
        __atomic_fetch_add(&p->quota_there, s.first_quota, __ATOMIC_RELAXED);
        __atomic_fetch_add(&p->credit, s.first_quota, __ATOMIC_RELAXED);
    }
    leaf_give(&table_lock);
}

void peer_learn_quota(struct peer *p)
{
    uint8_t card[PEER_CARD_MAX];
    int n = p->flags & PEER_QUOTA_KNOWN ? 0 : jobs_card_get(p->index, card, sizeof card);
    if (n > 0) learn_quota(p, card, (size_t)n);
}

/* Makes the way, unless another thread has made it. False with words. */
static bool open_way(struct peer *p, const struct wire_path *way)
{
    const struct wire *w = way->wire;
    int number = (int)(w - wires_at(0));
    struct tp_ep ep = {0};
    if (wire_take(number, WIRE_CALL)) {
        err_set(TERN_ERR_PENDING, "%s cannot be connected now: another thread uses %s", jobs_long_words(p->index), w->name);
        return false;
    }
    int rc = p->ep.ops ? 0 : w->ops->ep_open(w->dom, p, way->card, way->n, &ep);
    if (ep.ops && !rc) {
        ep.am_short = wire_short(ep.ops, ep.am_short);
        /* All but ops, which others read. */
        memcpy((char *)&p->ep + sizeof ep.ops, (char *)&ep + sizeof ep.ops, sizeof ep - sizeof ep.ops);
        __atomic_store_n(&p->ep.ops, ep.ops, __ATOMIC_RELEASE); /* pairs with peer_get: the rest is there */
    }
    wire_give(number, WIRE_CALL);
    return !rc;
}

struct peer *peer_connect(uint32_t index)
{
    uint8_t card[PEER_CARD_MAX];
    struct peer *p = peer_of_sender(index);
    if (!p) return NULL;
    if (p->flags & PEER_CLOSING) {
        err_set(TERN_ERR_ABSENT, "%s is being disconnected", jobs_long_words(index));
        return NULL;
    }
    int n = jobs_card_get(index, card, sizeof card);
    if (n < 0) return NULL;
    if (!wires_same_messages(card, (size_t)n)) {
        other_messages(index);
        return NULL;
    }
    struct wire_path way;
    if (!wires_best(card, (size_t)n, &way)) {
        out_of_reach(index);
        return NULL;
    }
    if (!open_way(p, &way)) return NULL;
    learn_quota(p, card, (size_t)n);
    if (peer_connected) peer_connected(p);
    return p;
}

int peer_settings_of(uint32_t index, uint64_t *settings)
{
    uint8_t card[PEER_CARD_MAX];
    struct settings s;
    int n = jobs_card_get(index, card, sizeof card);
    if (n < 0) return n;
    if (!settings_on(card, (size_t)n, &s))
        return err_set(TERN_ERR_ABSENT, "the card of %s does not say its settings", jobs_long_words(index));
    *settings = s.compared;
    return 0;
}

int peer_short_prepare(void)
{
    if (!nobody) nobody = make_table(); /* never written: address space */
    return nobody ? 0 : TERN_ERR_NOMEM;
}

void peer_short_open(bool open)
{
    /* release: who sees the table again sees what was done meanwhile with the peers */
    atomic_store_explicit(&peer_short_table, open ? peer_table : nobody, memory_order_release);
}

bool peer_is_mappable(uint32_t index)
{
    uint8_t card[PEER_CARD_MAX];
    if (wires_all_map() || index == proc_self()->rank) return true;
    int n = jobs_card_get(index, card, sizeof card);
    struct wire_path way;
    return n >= 0 && wires_best(card, (size_t)n, &way) && way.wire->ops->map;
}

/* Connects to the peer, as its bell is in its segment. The peer may be awake, asleep at the gate, asleep by its bell,
 * or have left: only the peer knows. If it cannot be connected, the caller has not failed: its error is kept. */
static TERN_COLD struct peer *connect_to_wake(uint32_t index)
{
    struct peer *p = peer_known(index);
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
    struct peer *p = peer_known(index);
    if (unlikely(!p || !peer_is_connected(p))) p = connect_to_wake(index);
    if (p && p->ep.ops->nudge) p->ep.ops->nudge(&p->ep, true);
}

bool peer_is_helped(uint32_t index)
{
    struct peer *p = peer_get(index);
    return p && ep_is_helped(&p->ep);
}

void *peer_shared_alloc(size_t bytes, uint64_t *offset) { return shared_alloc(bytes, offset); }
void peer_shared_free(void *block, size_t bytes) { shared_free(block, bytes); }
bool peer_shared_public(void) { return shared_is_public(); }
