/*
 * wires.c - opening the transports, looking at all of them, and the lists of their cards.
 */
#include "transport/wires.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/find.h"
#include "transport/peer.h"
#include "transport/progress.h"
#include "transport/remote.h"
#include "transport/shared.h"
#include "transport/wire_lock.h"

#include <stdio.h>
#include <string.h>

static struct wire doms[WIRES_MAX];
static char dom_names[WIRES_MAX][32 + 1 + TP_DOMAIN_NAME]; /* a transport's name is shorter (find.c) */
static _Atomic int dom_count; /* one more: threads that sleep see the wire as well */
bool wires_others;
bool wires_unwatched;

/* Those that are polled: where a look costs a few loads, at each time; where it is a system call, in turns. */
static struct wire cheap[WIRES_MAX], costly[WIRES_MAX];
static int cheap_count, costly_count;
static const struct wire *delivering; /* the one that is looked at now, or was last */
static bool look_costly; /* costly ones or open steps are to be looked at */

/* Looks at the cheap ones that find nothing before the costly ones have their turn: as long as a look at those takes. */
static uint32_t costly_turn;
#define COSTLY_TURN_MAX 64

#define MESSAGES "am"
static uint64_t messages; /* the ids that this process has, as on its card */

static char absent[200]; /* why the last of those that could not be opened could not */

static struct bell own_bell; /* where no transport has one */
static struct bell *bell = &own_bell;

static bool is_open(const struct tp_ops *ops)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops == ops) return true;
    return false;
}

static bool is_costly(const struct tp_ops *ops) { return ops->cost.poll_ns >= TP_SYSTEM_CALL_NS; }

/* The domain of this name, NULL: the only one. Domains of one transport share its bell. */
static int open_dom(const struct tp_ops *ops, const char *domain)
{
    struct wire *d = &doms[dom_count];
    bool first = !is_open(ops);
    if (dom_count == WIRES_MAX)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS names more than %d transports and domains", WIRES_MAX);
    snprintf(dom_names[dom_count], sizeof dom_names[0], "%s%s%s", ops->name, domain ? ":" : "", domain ? domain : "");
    for (int i = 0; i < dom_count; i++)
        if (!strcmp(dom_names[i], dom_names[dom_count]))
            return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: %s is in it twice", dom_names[i]);
    if (first && bell != &own_bell && ops->bell)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: %s cannot be used together with the transports before it", ops->name);
    int rc = ops->open(&d->dom, tp_env(), domain);
    if (rc == TERN_ERR_NOT_FOUND) {
        snprintf(absent, sizeof absent, ": %s", err_words());
        return 0;
    }
    if (rc) return rc;
    if (wires_threaded && ops->share) ops->share(d->dom);
    d->ops = ops;
    d->name = dom_names[dom_count];
    dom_count++;
    if (ops->bell && first) bell = ops->bell(d->dom);
    if (ops->progress && is_costly(ops)) costly[costly_count++] = *d;
    else if (ops->progress) cheap[cheap_count++] = *d;
    return 0;
}

static TERN_COLD int no_domain(const struct tp_ops *ops, const char *domain, char (*names)[TP_DOMAIN_NAME], int n)
{
    char text[200] = "";
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "", names[i]);
    return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: %s has no domain '%s' (%s%s)", ops->name, domain,
                   n ? "there are: " : "it has none that have names", text);
}

/* All domains, or the one of this name. */
static int open_domains(const struct tp_ops *ops, const char *domain)
{
    char names[WIRES_MAX][TP_DOMAIN_NAME];
    int n = ops->domains ? ops->domains(tp_env(), names, WIRES_MAX) : 0, rc = n < 0 ? n : 0;
    bool found = false;
    if (!n && !domain) return open_dom(ops, NULL);
    for (int i = 0; i < n && !rc; i++) {
        if (domain && strcmp(domain, names[i])) continue;
        found = true;
        rc = open_dom(ops, names[i]);
    }
    return rc || found ? rc : no_domain(ops, domain, names, n);
}

static uint32_t poll_ns(const struct wire *w, int n)
{
    uint32_t sum = 0;
    for (int i = 0; i < n; i++) sum += w[i].ops->cost.poll_ns;
    return sum;
}

uint32_t wires_look_ns(void) { return cheap_count ? poll_ns(cheap, cheap_count) : poll_ns(costly, costly_count); }

void wires_turns(void)
{
    uint32_t all = poll_ns(cheap, cheap_count), looks = poll_ns(costly, costly_count) + progress_open_ns();
    uint32_t turn = all ? looks / all : 1;
    if (turn < 1) turn = 1;
    if (turn > COSTLY_TURN_MAX) turn = COSTLY_TURN_MAX;
    /* relaxed: other threads may be polling, and have either value for a moment */
    __atomic_store_n(&look_costly, looks, __ATOMIC_RELAXED);
    __atomic_store_n(&costly_turn, turn, __ATOMIC_RELAXED);
}

static bool any_descriptor(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->wait_fd) return true;
    return false;
}

/* The launcher knows how to wake this process. */
static void tell_bell(void)
{
    proc_bell(shared_node_place(bell), atomic_load_explicit(&bell->name, memory_order_relaxed));
}

/* Who also waits for descriptors sleeps in another way. */
static int open_bell(void)
{
    if (bell == &own_bell) bell_open(bell, true);
    int rc = any_descriptor() ? bell_open_socket(bell) : 0;
    if (!rc) tell_bell();
    return rc;
}

/* A word of TERN_TRANSPORTS that names nothing that can be used. */
static TERN_COLD int not_found(const char *name, size_t len, int code)
{
    char names[200];
    if (code == TERN_ERR_NOT_FOUND)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: '%.*s' is no transport (there are %s), nor the name of a module with one: %s",
                       (int)len, name, tp_names(names, sizeof names), err_words());
    return err_set(code, "variable TERN_TRANSPORTS: %s", err_words());
}

/* "NAME" or "NAME:DOMAIN", of len bytes. */
static int open_named(const char *text, size_t len)
{
    const struct tp_ops *ops;
    char domain[TP_DOMAIN_NAME];
    size_t name = min_size(strcspn(text, ":"), len);
    int rc = tp_find(text, name, &ops);
    if (rc) return not_found(text, name, rc);
    if (name == len) return open_domains(ops, NULL);
    if (len - name > sizeof domain)
        return err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS: '%.*s' is too long for the name of a domain", (int)(len - name - 1), text + name + 1);
    snprintf(domain, sizeof domain, "%.*s", (int)(len - name - 1), text + name + 1);
    return open_domains(ops, domain);
}

/* Calls `open` for what TERN_TRANSPORTS lists, "a,b,c:DOMAIN". */
static int for_listed(const char *list, int (*open)(const char *name, size_t len))
{
    while (*list) {
        size_t len = strcspn(list, ",");
        int rc = len ? open(list, len) : 0;
        if (rc) return rc;
        list += len + (list[len] == ',');
    }
    return 0;
}

static int open_listed(const char *list)
{
    int rc = for_listed(list, open_named);
    if (rc) return rc;
    return dom_count ? 0 : err_set(TERN_ERR_ARG, "variable TERN_TRANSPORTS names no transport that can be used%s", absent);
}

int wires_open(void)
{
    int rc = remote_open();
    if (rc) return rc;
    messages = tp_am_seal();
    rc = open_listed(var_text(VAR_TRANSPORTS));
    if (rc) return rc;
    if (!shared_is_open()) rc = shared_open(NULL, 0, (uint64_t)64 << 20);
    wires_turns();
    if (!rc) rc = open_bell();
    wires_unwatched = !proc_tells_deaths() && proc_self()->local_size > 1;
    return rc;
}

static bool is_open_domain(const char *text, size_t len)
{
    for (int i = 0; i < dom_count; i++)
        if (strlen(dom_names[i]) == len && !memcmp(dom_names[i], text, len)) return true;
    return false;
}

/* What cannot be found any more was not found at the start. Threads may sleep by the bell that there is: no other one
 * comes. */
static int open_missing(const char *text, size_t len)
{
    const struct tp_ops *ops;
    size_t name = min_size(strcspn(text, ":"), len);
    if (tp_find(text, name, &ops) || dom_count == WIRES_MAX || (ops->bell && !is_open(ops))) return 0;
    bool open = name == len ? is_open(ops) : is_open_domain(text, len);
    return open ? 0 : open_named(text, len);
}

/* Those that are open already. */
static int widen(void)
{
    int rc = 0;
    for (int i = 0; i < dom_count && !rc; i++)
        if (doms[i].ops->others && !(rc = wire_take(i, WIRE_CALL))) {
            rc = doms[i].ops->others(doms[i].dom);
            wire_give(i, WIRE_CALL);
        }
    return rc;
}

/* Sleepers that have polled fewer descriptors look again. Only a new wire brings one (tp_ops.wait_fd): one that is widened
 * has what it watches behind the same. */
int wires_open_for_others(void)
{
    int before = dom_count;
    if (wires_others) return 0;
    wires_others = true;
    absent[0] = 0;
    int rc = widen();
    if (!rc) rc = for_listed(var_text(VAR_TRANSPORTS), open_missing);
    wires_others = !rc;
    if (dom_count == before) return rc;
    wires_turns();
    int bell_rc = any_descriptor() && !bell_has_socket(bell) ? bell_open_socket(bell) : 0;
    tell_bell();
    wires_wake_all();
    return rc ? rc : bell_rc;
}

void wires_close(void)
{
    wires_unwatched = false;
    watcher_close(); /* it rings the bell */
    remote_close();
    shared_close();
    bell_close(bell);
    bell = &own_bell;
    while (dom_count) {
        dom_count--;
        doms[dom_count].ops->close(doms[dom_count].dom);
    }
    cheap_count = costly_count = 0;
    look_costly = wires_others = false;
    delivering = NULL;
    absent[0] = 0;
    tp_am_unseal();
}

void wires_ep_close(struct tp_ep *ep)
{
    remote_forget(container_of(ep, struct peer, ep));
    for (int d = 0; d < dom_count; d++)
        if (doms[d].ops == ep->ops && (!ep->dom || ep->dom == doms[d].dom)) {
            wire_take(d, WIRE_ALL); /* the caller is in no wire */
            doms[d].ops->ep_close(doms[d].dom, ep);
            wire_give(d, WIRE_ALL);
            return;
        }
}

int wires_peer_close(struct peer *p)
{
    int rc = 0;
    for (int d = 0; d < dom_count && !rc; d++) {
        if (!doms[d].ops->peer_close) continue;
        rc = wire_take(d, WIRE_ALL);
        if (rc) return rc;
        rc = doms[d].ops->peer_close(doms[d].dom, p);
        wire_give(d, WIRE_ALL);
    }
    return rc;
}

bool wires_beyond_node(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->cost.locality == TP_NETWORK) return true;
    return false;
}

bool wires_all_map(void)
{
    for (int i = 0; i < dom_count; i++)
        if (!doms[i].ops->map) return false;
    return true;
}

const struct wire *wires_at(int i) { return i < dom_count ? &doms[i] : NULL; }

const struct wire *wires_delivering(void) { return wires_threaded ? wire_polled() : delivering; }

const char *wires_absent(void) { return absent; }

/* ---- cards ---- */

/* The head of a part whose card has `bytes` at least: where that goes, 0 when there is no room. One byte is left. */
static size_t put_name(uint8_t *card, size_t n, size_t cap, const char *name, size_t bytes)
{
    size_t len = strlen(name);
    if (n + 1 + len + 1 + bytes + 1 > cap) return 0;
    card[n] = (uint8_t)len;
    memcpy(card + n + 1, name, len);
    card[n + 1 + len] = (uint8_t)bytes;
    return n + 1 + len + 1;
}

static int no_room(const char *name) { return err_set(TERN_ERR_INTERN, "no room for %s on the card of this process", name); }

int wires_cards(uint8_t *card, size_t n, size_t cap)
{
    n = put_name(card, n, cap, MESSAGES, sizeof messages);
    if (!n) return no_room(MESSAGES);
    memcpy(card + n, &messages, sizeof messages);
    n += sizeof messages;
    for (int i = 0; i < dom_count; i++) {
        n = put_name(card, n, cap, doms[i].name, 0);
        if (!n) return no_room(doms[i].name);
        int len = doms[i].ops->card(doms[i].dom, card + n, min_size(cap - n - 1, 255));
        if (len < 0) return len;
        card[n - 1] = (uint8_t)len;
        n += (size_t)len;
    }
    card[n++] = 0;
    return (int)n;
}

bool wires_same_messages(const uint8_t *card, size_t n)
{
    size_t len;
    const uint8_t *theirs = wires_card_part(card, n, MESSAGES, &len);
    return theirs && len == sizeof messages && !memcmp(theirs, &messages, len);
}

/* A part of a card, its name not ended by a zero. */
struct part {
    const char *name;
    const uint8_t *card;
    size_t name_len, n;
};

/* The part at byte *i, which moves on to the next. False: there is none, or the card is cut short. */
static bool next_part(const uint8_t *card, size_t n, size_t *i, struct part *p)
{
    if (*i >= n || !card[*i]) return false;
    size_t at = *i + 1 + card[*i];
    if (at >= n || at + 1 + card[at] > n) return false;
    *p = (struct part){(const char *)card + *i + 1, card + at + 1, card[*i], card[at]};
    *i = at + 1 + card[at];
    return true;
}

const uint8_t *wires_card_part(const uint8_t *card, size_t n, const char *name, size_t *len)
{
    struct part p;
    for (size_t i = 0; next_part(card, n, &i, &p);) {
        if (p.name_len != strlen(name) || memcmp(p.name, name, p.name_len)) continue;
        *len = p.n;
        return p.card;
    }
    return NULL;
}

/* Is it the card of this transport, or of one of its domains? */
static bool is_of(const struct part *p, const struct tp_ops *ops)
{
    size_t len = strlen(ops->name);
    return p->name_len >= len && !memcmp(p->name, ops->name, len) && (p->name_len == len || p->name[len] == ':');
}

/* Takes this way if it is the best so far. */
static void compare(const struct wire *w, const struct part *p, struct wire_path *best)
{
    if (!w->ops->reach(w->dom, p->card, p->n)) return;
    struct tp_cost cost = w->ops->cost;
    if (w->ops->cost_to) w->ops->cost_to(w->dom, p->card, p->n, &cost);
    if (!best->wire || cost.latency_ns < best->cost.latency_ns) *best = (struct wire_path){w, p->card, p->n, cost};
}

bool wires_best(const uint8_t *card, size_t n, struct wire_path *best)
{
    best->wire = NULL;
    for (int d = 0; d < dom_count; d++) {
        struct part p;
        for (size_t i = 0; next_part(card, n, &i, &p);)
            if (is_of(&p, doms[d].ops)) compare(&doms[d], &p, best);
    }
    return best->wire;
}

/* ---- looking at all of them ---- */

static inline int look_at(const struct wire *w, int budget)
{
    delivering = w;
    return w->ops->progress(w->dom, budget);
}

/* Costly ones have their turn when the cheap ones have nothing, and now and then when they always have something. */
static TERN_COLD int progress_costly(int budget, int n)
{
    static uint32_t fruitless, fruitful;
    if (cheap_count && (n ? ++fruitful : ++fruitless) % costly_turn) return n;
    for (int i = 0; i < costly_count; i++) n += look_at(&costly[i], budget);
    return n + progress_look();
}

static inline int progress_cheap(int budget)
{
    int n = 0;
    for (int i = 0; i < cheap_count; i++) n += look_at(&cheap[i], budget);
    return n;
}

/* ---- the same by threads that share them ---- */

/* Other threads count too: that some looks are not counted changes little. */
static bool is_turn(_Atomic uint32_t *looks)
{
    uint32_t n = atomic_load_explicit(looks, memory_order_relaxed) + 1;
    atomic_store_explicit(looks, n, memory_order_relaxed);
    return n % __atomic_load_n(&costly_turn, __ATOMIC_RELAXED) == 0;
}

static int poll_those(bool costly_ones, int budget)
{
    int n = 0;
    for (int i = 0, end = dom_count; i < end; i++)
        if (is_costly(doms[i].ops) == costly_ones) n += wire_poll(i, budget);
    return n;
}

int wires_poll(int budget, bool all)
{
    static _Atomic uint32_t fruitless, fruitful;
    int n = poll_those(false, budget);
    if (!all || !__atomic_load_n(&look_costly, __ATOMIC_RELAXED) || !is_turn(n ? &fruitful : &fruitless)) return n;
    return n + poll_those(true, budget);
}

int wires_steps(bool all)
{
    static _Atomic uint32_t looks;
    int n = all && __atomic_load_n(&look_costly, __ATOMIC_RELAXED) && is_turn(&looks) ? progress_look() : 0;
    return n + progress_turn(&progress_process);
}

bool wires_quiet(bool want_room)
{
    for (int i = 0, end = dom_count; i < end; i++)
        if (!wire_idle(i, want_room)) return false;
    return true;
}

/* Apart from the usual way, which would save registers around the calls. */
static __attribute__((noinline)) int progress_shared(int budget, bool all)
{
    int n = wires_poll(budget, all);
    return n + wires_steps(all);
}

/* ---- with the steps of the process ---- */

/* They come behind the wires, which may have made room. */
int wires_progress_cheap(int budget)
{
    if (unlikely(wires_threaded)) return progress_shared(budget, false);
    int n = progress_cheap(budget);
    return n + progress_turn(&progress_process);
}

int wires_progress(int budget)
{
    if (unlikely(wires_threaded)) return progress_shared(budget, true);
    int n = progress_cheap(budget);
    if (unlikely(look_costly)) n = progress_costly(budget, n);
    return n + progress_turn(&progress_process);
}

bool wires_cores(bool gates, cpu_set_t *cores)
{
    bool crowded = false;
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->cores && !wire_take(i, WIRE_CALL)) {
            crowded |= doms[i].ops->cores(doms[i].dom, gates, cores);
            wire_give(i, WIRE_CALL);
        }
    return crowded;
}

struct bell *wires_bell(void) { return bell; }

static bool idle_alone(bool want_room)
{
    for (int i = 0; i < cheap_count; i++)
        if (!cheap[i].ops->idle(cheap[i].dom, want_room)) return false;
    for (int i = 0; i < costly_count; i++)
        if (!costly[i].ops->idle(costly[i].dom, want_room)) return false;
    return true;
}

bool wires_idle(bool want_room)
{
    want_room |= progress_waits(&progress_process);
    bool idle = unlikely(wires_threaded) ? wires_quiet(want_room) : idle_alone(want_room);
    return idle && progress_idle(&progress_process) && progress_timer_idle();
}

/* ---- sleeping ---- */

static_assert(WIRES_MAX + PROGRESS_FDS <= BELL_FDS_MAX, "a sleeper polls all descriptors");

/* Threads in bell_poll, or about to. What they poll is closed only when there are none (wires_poll_stop). A futex word: the last
 * one wakes the thread that waits for that (POLLERS_AWAITED). */
static _Atomic uint32_t pollers;
#define POLLERS_AWAITED 0x80000000u

int wires_wait_fds(int *fds)
{
    int n = 0;
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->wait_fd) fds[n++] = doms[i].ops->wait_fd(doms[i].dom);
    return n + progress_fds(fds + n);
}

void wires_sleep(struct bell *b, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns)
{
    int fds[BELL_FDS_MAX];
    if (!bell_has_socket(b)) {
        bell_wait(b, ticket, words, most_ns);
        return;
    }
    atomic_fetch_add_explicit(&pollers, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in wires_wake_all */
    bell_poll(b, ticket, fds, wires_wait_fds(fds), most_ns); /* who opens the gate rings the bell too */
    /* release: pairs with the acquire in wires_wake_all */
    if (atomic_fetch_sub_explicit(&pollers, 1, memory_order_release) == (POLLERS_AWAITED | 1)) futex_wake_one(&pollers);
}

void wires_wake_all(void)
{
    /* The caller is the only thread that sleeps here: no socket need be made to tell it so (20 us). */
    if (!wires_threaded && !atomic_load_explicit(&bell->helped, memory_order_relaxed)) return;
    bell_wake_all(bell);
    atomic_thread_fence(memory_order_seq_cst); /* who begins to sleep after this sees that the bell has rung */
    uint32_t n = atomic_fetch_or_explicit(&pollers, POLLERS_AWAITED, memory_order_acquire) | POLLERS_AWAITED;
    for (; n != POLLERS_AWAITED; n = atomic_load_explicit(&pollers, memory_order_acquire)) futex_sleep(&pollers, n, 0);
    atomic_fetch_and_explicit(&pollers, ~POLLERS_AWAITED, memory_order_relaxed);
}

void wires_wake_others(void)
{
    if (atomic_load_explicit(&pollers, memory_order_relaxed)) bell_ring(bell);
}

int wires_poll_start(void)
{
    int rc = bell_has_socket(bell) ? 0 : bell_open_socket(bell);
    if (!rc) tell_bell();
    return rc;
}

void wires_poll_stop(void)
{
    if (any_descriptor()) return;
    bell_close(bell);
    tell_bell();
}

void wires_wait_lasts(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->wait_lasts && !wire_take(i, WIRE_CALL)) {
            doms[i].ops->wait_lasts(doms[i].dom);
            wire_give(i, WIRE_CALL);
        }
}

static bool watch_one(int number)
{
    const struct wire *w = &doms[number];
    if (!w->ops->watch) return true;
    if (wire_take(number, WIRE_CALL)) return false;
    bool all = w->ops->watch(w->dom);
    wire_give(number, WIRE_CALL);
    return all;
}

static bool watch_all(void)
{
    bool all = true;
    for (int i = 0; i < dom_count; i++) all &= watch_one(i);
    return all;
}

/* The wait that this is part of has not failed by what fails here. */
void wires_watch(void)
{
    char words[512];
    int code = err_code();
    snprintf(words, sizeof words, "%s", err_words());
    wires_unwatched = !watch_all();
    err_set(code, "%s", words);
}

enum tp_end wires_how_ended(uint32_t index)
{
    enum tp_end end = TP_END_UNKNOWN;
    for (int i = 0; i < dom_count && end == TP_END_UNKNOWN; i++)
        if (doms[i].ops->how_ended && !wire_take(i, WIRE_CALL)) {
            end = doms[i].ops->how_ended(doms[i].dom, index);
            wire_give(i, WIRE_CALL);
        }
    return end;
}

static bool is_drained(int number)
{
    const struct wire *w = &doms[number];
    if (!w->ops->drained) return true;
    if (wire_take(number, WIRE_CALL)) return false;
    bool drained = w->ops->drained(w->dom);
    wire_give(number, WIRE_CALL);
    return drained;
}

bool wires_drained(void)
{
    if (!progress_drained(&progress_process)) return false;
    for (int i = 0; i < dom_count; i++)
        if (!is_drained(i)) return false;
    return true;
}

