/*
 * wires.c - opening the transports, looking at all of them, and the lists of their cards.
 */
#include "transport/wires.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/shared.h"

#include <stdio.h>
#include <string.h>

#define DOMS_MAX 8

static struct wire doms[DOMS_MAX];
static int dom_count;

/* Those that are polled: the near ones, looked at each time since that costs a few loads, and the far ones, where a look
 * is a system call. */
static struct wire near[DOMS_MAX], far[DOMS_MAX];
static int near_count, far_count;

/* Looks at the near ones that find nothing before the far ones have their turn: about a tenth of what a look there costs. */
#define FAR_TURN 8

static char absent[200]; /* why the last of those that could not be opened could not */

static struct bell own_bell; /* where no transport has one */
static struct bell *bell = &own_bell;

const struct tp_ops *const wires_known[] = {&tp_self, &tp_shm, &tp_tcp, &tp_mock, NULL};

static const struct tp_ops *find_ops(const char *name, size_t len)
{
    for (const struct tp_ops *const *t = wires_known; *t; t++)
        if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len)) return *t;
    return NULL;
}

static int open_dom(const struct tp_ops *ops)
{
    struct wire *d = &doms[dom_count];
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

/* Somebody has died. */
static void rouse(void) { bell_rouse(bell); }

int wires_open(void)
{
    int rc = open_listed(var_text(VAR_TRANSPORTS));
    if (rc) return rc;
    if (!near_count) rc = shared_open(NULL, 0, (uint64_t)64 << 20);
    if (!rc) rc = open_bell();
    if (!rc) proc_bell(shared_node_place(bell), bell->name);
    if (!rc) watcher_wakes(rouse);
    return rc;
}

void wires_close(void)
{
    watcher_close();
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

void wires_ep_close(struct tp_ep *ep)
{
    for (int d = 0; d < dom_count; d++)
        if (doms[d].ops == ep->ops) {
            doms[d].ops->ep_close(doms[d].dom, ep);
            return;
        }
}

bool wires_any_far(void) { return far_count > 0; }

const char *wires_absent(void) { return absent; }

/* ---- cards ---- */

int wires_cards(uint8_t *card, size_t n, size_t cap)
{
    for (int i = 0; i < dom_count; i++) {
        size_t name = strlen(doms[i].ops->name);
        card[n++] = (uint8_t)name;
        memcpy(card + n, doms[i].ops->name, name);
        n += name;
        int len = doms[i].ops->card(doms[i].dom, card + n + 1, cap - n - 2 < 255 ? cap - n - 2 : 255);
        if (len < 0) return len;
        card[n] = (uint8_t)len;
        n += 1 + (size_t)len;
    }
    card[n++] = 0;
    return (int)n;
}

const uint8_t *wires_card_part(const uint8_t *card, size_t n, const char *name, size_t *len)
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

const struct wire *wires_best(const uint8_t *card, size_t n)
{
    struct wire *best = NULL;
    int least = 0;
    for (int i = 0; i < dom_count; i++) {
        size_t len;
        const uint8_t *part = wires_card_part(card, n, doms[i].ops->name, &len);
        int cost = part ? doms[i].ops->reach(doms[i].dom, part, len) : 0;
        if (cost && (!best || cost < least)) {
            best = &doms[i];
            least = cost;
        }
    }
    return best;
}

/* ---- looking at all of them ---- */

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

int wires_progress_near(int budget) { return progress_near(budget); }

int wires_progress(int budget)
{
    int n = progress_near(budget);
    return likely(!far_count) ? n : progress_far(budget, n);
}

void wires_cores(bool gates, cpu_set_t *cores)
{
    for (int i = 0; i < near_count; i++)
        if (near[i].ops->cores) near[i].ops->cores(near[i].dom, gates, cores);
}

struct bell *wires_bell(void) { return bell; }

bool wires_idle(bool want_room)
{
    for (int i = 0; i < near_count; i++)
        if (!near[i].ops->idle(near[i].dom, want_room)) return false;
    for (int i = 0; i < far_count; i++)
        if (!far[i].ops->idle(far[i].dom, want_room)) return false;
    return true;
}

int wires_wait_fds(int *fds)
{
    int n = 0;
    for (int i = 0; i < far_count && n < BELL_FDS_MAX; i++) fds[n++] = far[i].ops->wait_fd(far[i].dom);
    return n;
}

void wires_sleep(struct bell *b, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns)
{
    int fds[BELL_FDS_MAX];
    if (!bell_has_socket(b)) {
        bell_wait(b, ticket, words, most_ns);
        return;
    }
    bell_poll(b, ticket, fds, wires_wait_fds(fds), most_ns); /* who opens the gate rings the bell too */
}

void wires_trim(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->trim) doms[i].ops->trim(doms[i].dom);
}

bool wires_drained(void)
{
    for (int i = 0; i < dom_count; i++)
        if (doms[i].ops->drained && !doms[i].ops->drained(doms[i].dom)) return false;
    return true;
}

