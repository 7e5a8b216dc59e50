/* helper.c - see helper.h. */
#include "pt2pt/helper.h"
#include "base/clock.h"
#include "base/err.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/helper_cpus.h"
#include "pt2pt/limits.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

/* How long the helper goes on looking after it found something, at most: about what it costs to be woken. */
#define LOOK_MAX_NS 20000u

/* It gets up by itself, after twice the time as before as long as that was for nothing: see bell_announce_helper. */
#define NAP_MIN_NS 50000000u
#define NAP_MAX_NS 1000000000u

static struct {
    pthread_t thread;
    struct lane *lane;
    _Atomic bool stop;
    _Atomic uint32_t awake; /* it looks by itself; or has just been kicked, and will */
    _Atomic uint32_t kicks; /* futex word: calls, where it does not sleep by the bell */
    _Atomic bool polls;     /* it sleeps in poll, or is about to: by the bell, though a waiter may have withdrawn that */
    uint64_t look_ns, look_max_ns; /* learnt, as in wait.c; 0: there is no core to spare for it */
    uint64_t asleep_since, nap_ns;
} helper;

bool helper_shares_cores;

/* ---- called by others ---- */

static bool is_awake(void) { return atomic_load_explicit(&helper.awake, memory_order_relaxed); }
static void set_awake(bool on) { atomic_store_explicit(&helper.awake, on, memory_order_relaxed); }

static void add_background(struct lane *l, int by)
{
    uint32_t n = atomic_load_explicit(&l->background, memory_order_relaxed) + (uint32_t)by;
    atomic_store_explicit(&l->background, n, memory_order_relaxed);
}

/* Small messages come to their receives as well when the caller is back: they are over for their sender. */
void lane_left_behind(struct lane *l, struct request *r)
{
    if (lane_helping || request_is_complete(r) || (r->kind == REQ_RECV && r->bytes <= limits_eager_least())) return;
    r->flags |= REQ_BACKGROUND;
    add_background(l, 1);
}

/* The request keeps its flag: a waiter may be looking at the others, without the lock. */
void lane_come_back(struct lane *l) { add_background(l, -1); }

void helper_relieve(struct lane *l)
{
    struct bell *b = peer_bell();
    /* Not while other threads sleep by it. A ring that is on its way wakes the helper for nothing. */
    if (!l->sleepers) atomic_store_explicit(&b->asleep, BELL_AWAKE, memory_order_relaxed);
}

static TERN_COLD void kick(void)
{
    set_awake(true);
    atomic_fetch_add_explicit(&helper.kicks, 1, memory_order_release); /* pairs with the acquire in run */
    futex_wake_all(&helper.kicks);
    if (atomic_load_explicit(&helper.polls, memory_order_relaxed)) bell_rouse(peer_bell()); /* written in the lane */
}

/* Is there something that this process may have brought about itself? Nobody rings for that. */
static bool has_own_work(const struct lane *l) { return l->large || !list_empty(&l->pending); }

/* The helper's sleep. In poll it is one that it has announced itself; what a waiter left behind is not. */
static bool is_announced(const struct bell *b)
{
    bool sleeps_by_it = !bell_has_pipe(b) || atomic_load_explicit(&helper.polls, memory_order_relaxed);
    return sleeps_by_it && atomic_load_explicit(&b->asleep, memory_order_relaxed);
}

/* Makes the announcement in the helper's place, if there is none, and looks. False: the helper was awake meanwhile, withdrew
 * what was announced, and made way for our look, on leaving which it relies. */
static bool call(struct lane *l, struct bell *b, bool announced)
{
    if (!announced) bell_announce_helper(b);
    lane_enter(l);
    bool idle = lane_idle(l);
    lane_out(l);
    atomic_signal_fence(memory_order_seq_cst); /* as in lane_leave */
    if (!is_announced(b)) return false;
    if (!idle) bell_ring(b);
    return true;
}

void lane_call_helper(struct lane *l)
{
    struct bell *b = peer_bell();
    bool done = false;
    while (!done && !lane_helping && lane_helped(l) && !lane_wanted(l) && !is_awake()) {
        bool announced = is_announced(b);
        if (announced && !has_own_work(l)) return;
        done = true;
        if (!announced && bell_has_pipe(b)) kick();
        else done = call(l, b, announced);
    }
}

/* ---- the thread ---- */

/* Announces the sleep: true if there is indeed nothing to do. Lane held. */
static bool announce(struct lane *l, struct bell *b)
{
    atomic_store_explicit(&helper.polls, bell_has_pipe(b), memory_order_relaxed);
    bell_announce_helper(b);
    if (lane_idle(l)) return true;
    atomic_store_explicit(&helper.polls, false, memory_order_relaxed);
    bell_stay(b);
    return false;
}

/* A look found nothing: shall it be followed by another? */
static bool look_on(uint64_t *since)
{
    if (!helper.look_ns) return false;
    uint64_t now = clock_ns();
    if (!*since) *since = now;
    cpu_relax();
    return now - *since < helper.look_ns;
}

/* Works until there is nothing more to do, and the sleep is announced (true), or until somebody else wants the lane or
 * nothing is in the background (false). Lane held. */
static bool work(struct lane *l, struct bell *b)
{
    uint64_t since = 0;
    for (;;) {
        int n = lane_short_turn(l);
        if (lane_wanted(l) || !atomic_load_explicit(&l->background, memory_order_relaxed)) return false;
        if (n) {
            since = 0;
            if (lane_threaded(l)) return false; /* nobody sees who waits for the lock */
        } else if (!look_on(&since) && announce(l, b)) {
            return true;
        }
    }
}

/* One stay in the lane. True: a sleep is announced. */
static bool visit(struct lane *l, struct bell *b)
{
    if (!lane_claim(l)) return false;
    bell_stay(b); /* what was announced is not true any more; nobody else sleeps by it: that would be a waiter */
    bool announced = work(l, b);
    if (announced) set_awake(false); /* before others may come in: they rely on the announcement */
    lane_release(l);
    return announced;
}

/* Nobody is inside; who will be, calls. */
static bool unattended(struct lane *l)
{
    if (lane_wanted(l)) return false;
    if (!lane_threaded(l)) return true;
    if (pthread_mutex_trylock(&l->lock)) return false;
    pthread_mutex_unlock(&l->lock);
    return true;
}

/* What is in the background needs the helper: it was left after the last visit. See helper.h. */
static bool needed_after_all(struct lane *l)
{
    set_awake(false);
    sleep_membarrier_threads();
    return atomic_load_explicit(&l->background, memory_order_relaxed) && unattended(l);
}

static void learn(void)
{
    uint64_t slept = clock_ns() - helper.asleep_since;
    helper.nap_ns = slept < helper.nap_ns ? NAP_MIN_NS : 2 * helper.nap_ns;
    if (helper.nap_ns > NAP_MAX_NS) helper.nap_ns = NAP_MAX_NS;
    if (slept < 2 * helper.look_max_ns) helper.look_ns = 2 * helper.look_ns + 1000;
    else helper.look_ns -= helper.look_ns / 4;
    if (helper.look_ns > helper.look_max_ns) helper.look_ns = helper.look_max_ns;
}

static void nap(struct bell *b, bool announced, uint32_t ticket, uint32_t kicks)
{
    helper.asleep_since = clock_ns();
    if (!bell_has_pipe(b)) bell_wait_helper(b, ticket, helper.nap_ns);
    else if (announced) peer_sleep(b, ticket, NULL, 0);
    else futex_sleep(&helper.kicks, kicks, 0);
    atomic_store_explicit(&helper.polls, false, memory_order_relaxed);
    learn();
}

static void *run(void *arg)
{
    struct lane *l = helper.lane;
    struct bell *b = peer_bell();
    (void)arg;
    for (;;) {
        /* Before all looks: what changes after them changes these. acquire: pairs with the release of who wakes us */
        uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_acquire);
        uint32_t kicks = atomic_load_explicit(&helper.kicks, memory_order_acquire);
        if (atomic_load_explicit(&helper.stop, memory_order_acquire)) return NULL;
        set_awake(true);
        bool announced = atomic_load_explicit(&l->background, memory_order_relaxed) && visit(l, b);
        if (announced || !needed_after_all(l)) nap(b, announced, ticket, kicks);
        else sched_yield();
    }
}

/* ---- life ---- */

static void set_helped(struct lane *l, bool on) { atomic_store_explicit(&l->helped, on, memory_order_relaxed); }

/* In a child of fork there is no helper, and no library. */
static void forget(void)
{
    set_helped(&lane0, false);
    atomic_store_explicit(&lane0.background, 0, memory_order_relaxed);
    atomic_fetch_and_explicit(&lane0.mode, ~(uint32_t)(LANE_HELPER | LANE_AWAITED), memory_order_relaxed);
}

/* The way in without the lock, and short sends that are seen. The caller is the owner. */
static int open_lane(struct lane *l)
{
    int rc = peer_short_prepare();
    if (rc) return rc;
    if (!sleep_membarrier_threads_open()) lane_share(l); /* an old kernel: the helper and the program take the lock */
    atomic_store_explicit(&l->sending, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < peer_count; i++)
        if (peer_table[i]) peer_table[i]->short_send = lane_guarded_send;
    return 0;
}

/* No signal of the program's is handled in the helper. */
static int create(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&helper.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) return err_set(TERN_ERR_SYSTEM, "the helper thread cannot be made: %s", strerror(rc));
    pthread_setname_np(helper.thread, "tern-helper");
    return 0;
}

int helper_start(void)
{
    static bool watched;
    struct lane *l = &lane0;
    cpu_set_t cpus;
    if (lane_helped(l)) return 0;
    int rc = helper_cpus(&cpus);
    if (!rc && !lane_threaded(l)) rc = open_lane(l);
    if (rc) return rc;
    if (!watched) watched = !pthread_atfork(NULL, NULL, forget);
    helper.lane = l;
    helper_shares_cores = proc_self()->usable_cpus < 2 * proc_self()->local_size;
    helper.look_max_ns = helper_shares_cores ? 0 : LOOK_MAX_NS;
    helper.look_ns = helper.look_max_ns;
    helper.nap_ns = NAP_MIN_NS;
    atomic_store_explicit(&helper.stop, false, memory_order_relaxed);
    handle_set_threaded(true);
    request_share();
    set_helped(l, true);
    rc = create();
    if (rc) set_helped(l, false);
    else if (CPU_COUNT(&cpus)) pthread_setaffinity_np(helper.thread, sizeof cpus, &cpus);
    return rc;
}

void helper_stop(void)
{
    if (!lane_helped(&lane0)) return;
    atomic_store_explicit(&helper.stop, true, memory_order_release); /* pairs with the acquire in run */
    kick();
    bell_rouse(peer_bell());
    pthread_join(helper.thread, NULL);
    set_helped(&lane0, false);
    helper_shares_cores = false;
}

/* ---- for the layers above ---- */

int pt_help(void) { return helper_start(); }
void pt_help_no_more(void) { helper_stop(); }

/* The helper has its own way into a lane that is not shared: it is out meanwhile. */
void pt_share(void)
{
    bool helped = lane_helped(&lane0);
    helper_stop();
    lane_share(&lane0);
    if (helped) (void)helper_start(); /* if it cannot be made again, callers make all the progress */
}
