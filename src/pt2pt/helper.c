/* helper.c - see helper.h. */
#include "pt2pt/helper.h"
#include "base/clock.h"
#include "base/err.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/helper_cpus.h"
#include "pt2pt/helper_sleep.h"
#include "pt2pt/limits.h"
#include "transport/progress.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

/* How long the helper goes on looking after it found something, at most: about what it costs to be woken. */
#define LOOK_MAX_NS 20000u

/* It gets up by itself, after twice the time as before as long as that was for nothing, should anything have been missed. */
#define NAP_MIN_NS 50000000u
#define NAP_MAX_NS 1000000000u

/* Messages that a caller takes before it arms the helper. */
#define GREETINGS 8

static struct {
    pthread_t thread;
    struct lane *lane;
    cpu_set_t cpus; /* where it runs; empty: where its process does */
    _Atomic bool stop;
    uint64_t look_ns, look_max_ns; /* learnt, as in wait.c; 0: there is no core to spare for it */
    uint64_t nap_ns;
} helper;

bool helper_shares_cores, helper_apart;

/* ---- called by others ---- */

static void add_background(struct lane *l, int by)
{
    uint32_t n = atomic_load_explicit(&l->background, memory_order_relaxed) + (uint32_t)by;
    atomic_store_explicit(&l->background, n, memory_order_relaxed);
}

void lane_is_going(struct lane *l)
{
    if (helper_apart && !lane_helping) l->eager_now = limits_eager_least();
}

/* What nobody needs the helper for. Small messages come to their receives as well when the caller is back: they are over
 * for their sender. So are the deposits of a node's collectives. */
static bool can_wait(const struct request *r)
{
    if (r->kind == REQ_COLL) return !r->xfer && !(r->flags & REQ_DRIVEN);
    return r->kind == REQ_RECV && r->bytes <= limits_eager_least();
}

void lane_left_behind(struct lane *l, struct request *r)
{
    l->eager_now = INT64_MAX;
    if (lane_helping || request_is_complete(r) || r->flags & REQ_BACKGROUND || can_wait(r)) return;
    r->flags |= REQ_BACKGROUND;
    add_background(l, 1);
}

/* The request keeps its flag: a waiter may be looking at the others, without the lock. */
void lane_come_back(struct lane *l) { add_background(l, -1); }

bool lane_left_work(struct lane *l)
{
    l->eager_now = INT64_MAX;
    if (lane_helping || !lane_helped(l)) return false;
    add_background(l, 1);
    return true;
}

void lane_work_over(struct lane *l) { add_background(l, -1); }

void helper_relieve(struct lane *l)
{
    /* Not while other threads sleep by the bell. A ring that is on its way wakes the helper for nothing. */
    if (l->sleepers) return;
    helper_disarm(wires_bell());
    l->may_be_armed = false;
}

static void arm_now(struct lane *l, struct bell *b)
{
    l->may_be_armed = true;
    helper_arm(b);
}

/* Is there something that this process may have brought about itself? Nobody rings for that. */
static bool has_own_work(const struct lane *l) { return l->large || !list_empty(&l->pending); }

/* Arms the helper, unless that has been done: from now on it is woken by what comes. True: something has come already,
 * or can be done now. Lock held. */
static bool arm(struct lane *l, struct bell *b)
{
    bool armed = helper_is_armed(b);
    if (armed && !has_own_work(l)) return false;
    /* What only has to be answered needs no other thread, nor that it is armed for that. What lies in a socket wakes the
     * helper when it is armed: on a core of its own that is no dearer than reading it here. */
    int n = helper_apart ? wires_progress_cheap(GREETINGS) : wires_progress(GREETINGS);
    bool ours = false;
    if (!armed) {
        arm_now(l, b);
        ours = lane_pollers_armed(l);
    }
    bool to_do = !list_empty(&l->streams) || !list_empty(&l->bulks) || !list_empty(&l->pending) || !list_empty(&l->chores);
    return ours || (n && to_do) || !lane_still(l);
}

/* Others may come in now. Ends with a full barrier. */
static void open_lane(struct lane *l)
{
    bool lend = !lane_threaded(l);
    lane_out(l);
    if (lend) lane_lend(l);
    else atomic_thread_fence(memory_order_seq_cst); /* as in lane_lend */
}

void lane_leave_behind(struct lane *l)
{
    struct bell *b = wires_bell();
    bool others = atomic_load_explicit(&l->waiters, memory_order_relaxed); /* they do it */
    if (lane_helping || others || !lane_helped(l) || !lane_is_outermost(l)) {
        lane_out(l);
        return;
    }
    bool now = arm(l, b);
    open_lane(l);
    if (lane_mode(l) & LANE_HELPER) return;
    if (!helper_is_armed(b)) helper_wake(b); /* it was woken since we armed it, and perhaps before it could come in */
    else if (now) bell_ring(b);
}

/* ---- the thread ---- */

/* The helper arms itself, before it sleeps: true if there is indeed nothing to do. Lock held. */
static bool announce(struct lane *l, struct bell *b)
{
    arm_now(l, b);
    if (lane_idle(l)) return true;
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

/* Works until there is nothing more to do, and the helper has armed itself; until somebody else wants the lane, who will
 * arm it on leaving; or until nothing is in the background. True: it only makes way for others, who may not have seen that
 * it was inside. Lock held. */
static bool work(struct lane *l, struct bell *b)
{
    uint64_t since = 0;
    for (;;) {
        int n = lane_short_turn(l);
        if (lane_wanted(l) || !atomic_load_explicit(&l->background, memory_order_relaxed)) return false;
        if (n) {
            since = 0;
            if (lane_threaded(l)) return true; /* nobody sees who waits for the lock */
        } else if (!look_on(&since) && announce(l, b)) {
            return false;
        }
    }
}

/* One stay in the lane; who is inside instead will arm it again. True: there is more to do. */
static bool visit(struct lane *l, struct bell *b)
{
    if (!lane_claim(l)) return false;
    bell_stay(b); /* what was announced is not true any more; nobody else sleeps by it: that would be a waiter */
    bool more = work(l, b);
    lane_release(l);
    return more;
}

/* What a sleep of `slept` ns teaches. */
static void learn(uint64_t slept)
{
    helper.nap_ns = slept < helper.nap_ns ? NAP_MIN_NS : 2 * helper.nap_ns;
    if (helper.nap_ns > NAP_MAX_NS) helper.nap_ns = NAP_MAX_NS;
    if (slept < 2 * helper.look_max_ns) helper.look_ns = 2 * helper.look_ns + 1000;
    else helper.look_ns -= helper.look_ns / 4;
    if (helper.look_ns > helper.look_max_ns) helper.look_ns = helper.look_max_ns;
}

static void nap(struct bell *b, uint32_t ticket)
{
    uint64_t since = clock_ns();
    helper_sleep(b, ticket, helper.nap_ns);
    learn(clock_ns() - since);
}

static void *run(void *arg)
{
    struct lane *l = helper.lane;
    struct bell *b = wires_bell();
    (void)arg;
    for (;;) {
        /* Before all looks: what comes after them rings. acquire: pairs with the release in bell_ring */
        uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_acquire);
        if (atomic_load_explicit(&helper.stop, memory_order_acquire)) return NULL;
        if (atomic_load_explicit(&l->background, memory_order_relaxed) && visit(l, b)) sched_yield();
        else nap(b, ticket);
    }
}

/* ---- life ---- */

/* Is there a core for it where its process does not run? */
static bool runs_apart(void)
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own)) return false;
    if (!CPU_COUNT(&helper.cpus)) return !helper_shares_cores && CPU_COUNT(&own) > 1;
    CPU_AND(&own, &own, &helper.cpus);
    return !CPU_COUNT(&own);
}

static void set_helped(struct lane *l, bool on) { atomic_store_explicit(&l->helped, on, memory_order_relaxed); }

/* In a child of fork there is no helper, and no library. */
static void forget(void)
{
    set_helped(&lane0, false);
    lane0.may_be_armed = false;
    atomic_store_explicit(&lane0.background, 0, memory_order_relaxed);
    atomic_fetch_and_explicit(&lane0.mode, ~(uint32_t)(LANE_HELPER | LANE_AWAITED | LANE_LENT), memory_order_relaxed);
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
    if (CPU_COUNT(&helper.cpus)) pthread_setaffinity_np(helper.thread, sizeof helper.cpus, &helper.cpus);
    return 0;
}

static void end_thread(void)
{
    atomic_store_explicit(&helper.stop, true, memory_order_release); /* pairs with the acquire in run */
    helper_wake(wires_bell());
    pthread_join(helper.thread, NULL);
    atomic_store_explicit(&helper.stop, false, memory_order_relaxed); /* ordered by the next pthread_create */
}

static void give_up(struct lane *l)
{
    set_helped(l, false);
    bell_set_helped(wires_bell(), false);
    helper_sleep_close();
    helper_shares_cores = helper_apart = false;
}

int helper_start(void)
{
    static bool watched;
    struct lane *l = &lane0;
    if (lane_helped(l)) return 0;
    int rc = helper_cpus(&helper.cpus);
    if (!rc) rc = peer_short_prepare();
    if (!rc) rc = helper_sleep_open(wires_bell());
    if (rc) return rc;
    if (!watched) watched = !pthread_atfork(NULL, NULL, forget);
    helper.lane = l;
    helper_shares_cores = proc_self()->usable_cpus < 2 * proc_self()->local_size;
    helper_apart = runs_apart();
    helper.look_max_ns = helper_shares_cores ? 0 : LOOK_MAX_NS;
    helper.look_ns = helper.look_max_ns;
    helper.nap_ns = NAP_MIN_NS;
    handle_set_threaded(true);
    request_share();
    set_helped(l, true);
    bell_set_helped(wires_bell(), true);
    rc = create();
    if (rc) give_up(l);
    return rc;
}

void helper_stop(void)
{
    if (!lane_helped(&lane0)) return;
    end_thread();
    give_up(&lane0);
    lane0.may_be_armed = false;
}

/* ---- for the layers above ---- */

int pt_help(void) { return helper_start(); }
void pt_help_no_more(void) { helper_stop(); }

/* The helper knows what it sleeps on from its start: it is out while that changes. */
int pt_progress_open(struct progress_source *s)
{
    bool helped = lane_helped(&lane0);
    helper_stop();
    lane_enter(&lane0);
    int rc = progress_open(s);
    lane_leave(&lane0);
    if (helped) (void)helper_start(); /* as in pt_share */
    return rc;
}

void pt_progress_close(struct progress_source *s)
{
    bool helped = lane_helped(&lane0);
    helper_stop();
    lane_enter(&lane0);
    progress_close(s);
    lane_leave(&lane0);
    if (helped) (void)helper_start();
}

/* Another thread takes the place of the one that has ended; if none can be made, callers make all the progress. The wake-up
 * is for what came in between. */
static void resume(struct lane *l)
{
    lane_enter(l);
    if (create()) give_up(l);
    else helper_wake(wires_bell());
    lane_leave(l);
}

/* The helper has its own way into a lane that is not shared: its thread is out meanwhile. What callers know of the helper
 * stays as it is, since the owner, who takes no lock yet, may be reading it. */
int pt_share(void)
{
    bool helped = lane_helped(&lane0);
    if (helped) end_thread();
    int rc = lane_share(&lane0); /* with a helper it cannot fail: what it allocates is there */
    if (helped) resume(&lane0);
    return rc;
}
