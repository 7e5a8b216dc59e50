/* helper.c - see helper.h. */
#include "pt2pt/helper.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/quiet.h"
#include "base/signals.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/helper_cpus.h"
#include "pt2pt/helper_habit.h"
#include "pt2pt/helper_pace.h"
#include "pt2pt/helper_sleep.h"
#include "pt2pt/helper_threads.h"
#include "pt2pt/helper_watch.h"
#include "pt2pt/lanes.h"
#include "pt2pt/limits.h"
#include "pt2pt/wait_policy.h"
#include "transport/progress.h"
#include "transport/wire_lock.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

/* Messages that a caller takes before it arms the helper. */
#define GREETINGS 8

#define TIMER_SLACK_NS 5000ul

static struct {
    pthread_t thread;
    cpu_set_t cpus; /* where it runs; empty: where its process does */
    _Atomic bool stop;
} helper;

_Atomic bool helper_shares_cores, helper_apart;

static struct helper_watch watch;

/* ---- called by others ---- */

static void set_left(bool on) { atomic_store_explicit(&background.left, on, memory_order_relaxed); }

void helper_relieve(void)
{
    /* Not while other threads sleep by the bell. A ring that is on its way wakes the helper for nothing. */
    if (waits_sleepers()) return;
    helper_disarm(wires_bell());
    set_left(false);
}

void helper_waits(void)
{
    habit_waits();
    if (background_is_left()) helper_relieve();
}

void helper_need_not_wait(void)
{
    if (!lane_threaded()) habit_waits();
}

static uint64_t armed_ns; /* when it was armed last. Inside */

/* When the caller leaves, which it does now. */
static uint64_t leaving_ns(void) { return habit.left_ns ? habit.left_ns : clock_ns(); }

static void arm_now(struct bell *b, uint64_t now)
{
    armed_ns = now;
    set_left(true);
    helper_arm(b);
}

/* Arms the helper, unless that has been done: from now on it is woken by what comes. True: something has come already,
 * or can be done now. Inside. */
static bool arm(struct bell *b)
{
    bool armed = helper_is_armed(b);
    if (armed && !lanes_have_own()) return false; /* nobody rings for what this process brings about itself */
    /* What only has to be answered needs no other thread, nor that it is armed for that. What lies in a socket wakes the
     * helper when it is armed: on a core of its own that is no dearer than reading it here. */
    int code = err_code(); /* of the call that returns, perhaps: its words are to stay the last ones */
    if (code) err_keep(b, code);
    int n = helper_is_apart() ? wires_progress_cheap(GREETINGS) : wires_progress(GREETINGS);
    if (code) err_recall(b, code);
    bool ours = false;
    if (!armed) {
        arm_now(b, leaving_ns());
        ours = lanes_armed();
    }
    return ours || (n && lanes_follow()) || !lane_still();
}

/* What is left may be heard of later: the helper gets up by itself. */
static bool can_be_late(void)
{
    return background_only_stands_by() && background_can_be_late(leaving_ns(), armed_ns);
}

/* Leaves the lane so that the helper may come in. */
static void let_in(struct lane *l)
{
    if (lane_mode()) lane_out(l);
    else lane_leave_and_let_helper_in();
}

/* The same, before a look whether it is armed. */
static void open_lane(struct lane *l)
{
    let_in(l);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in come_in, see helper.h */
}

/* The calling thread comes back soon. Not where only services stand by: to arm the helper now and then costs less than its naps, which
 * made a put of 8 bytes over TCP to an idle target 1.05 times as long. */
static void leave_to_watch(struct lane *l, struct bell *b)
{
    if (helper_is_armed(b)) helper_disarm(b);
    set_left(true);
    watch_leave(&watch);
    let_in(l);
    if (watch_calls(&watch)) helper_wake(b);
}

/* There is something to do that nothing will ring for. The helper arms itself behind it. */
static void leave_and_call(struct lane *l, struct bell *b)
{
    watch_stop(&watch);
    set_left(true);
    let_in(l);
    helper_wake(b);
}

static void leave_armed(struct lane *l, struct bell *b)
{
    watch_stop(&watch);
    bool now = arm(b);
    open_lane(l);
    if (lanes_have_helper()) return; /* it has come since, and sees what is left */
    /* not armed: it was woken since we armed it, and perhaps before it could come in */
    if (now || !helper_is_armed(b)) helper_wake(b);
}

static void leave_alone(struct lane *l)
{
    struct bell *b = wires_bell();
    bool waits_itself = atomic_load_explicit(&waits.waiting, memory_order_relaxed); /* it is going to sleep by the bell */
    if (this_is_the_helper || waits_itself || !background_is_helped() || !lane_is_outermost(l)) {
        lane_out(l);
        return;
    }
    bool comes_back = !habit_leaves();
    if (can_be_late()) let_in(l);
    else if (comes_back && !background_only_stands_by()) leave_to_watch(l, b);
    else if (lane_has_put_off(l)) leave_and_call(l, b);
    else leave_armed(l, b);
}

/* Such calls come in numbers, and to look at the clock costs more than they do: 45 of 90 ns of a small put. So only one in some looks
 * whether the helper is to be armed. */
#define NOTES_A_LOOK 32

void lane_leave_noted_to_helper(struct lane *l)
{
    static unsigned notes;
    bool as_before = !lane_threaded() && !this_is_the_helper && background_only_stands_by() && !background_is_left();
    bool waits_itself = atomic_load_explicit(&waits.waiting, memory_order_relaxed);
    if (as_before && !waits_itself && lane_is_outermost(l) && ++notes % NOTES_A_LOOK) let_in(l);
    else lane_leave_to_helper(l);
}

void lane_leave_to_helper(struct lane *l)
{
    if (lane_threaded()) helper_leave_among_threads(l);
    else leave_alone(l);
}

/* ---- the thread ---- */

/* The helper arms itself, before it sleeps: true if there is indeed nothing to do. Lock held. */
static bool announce(struct bell *b)
{
    arm_now(b, clock_ns());
    if (lane_idle()) return true;
    bell_stay(b);
    return false;
}

/* Works until there is nothing more to do, and the helper has armed itself; until somebody else wants the lane, who will
 * arm it on leaving; or until nothing is in the background. Inside. */
static void work(struct lane *first, struct bell *b)
{
    uint64_t since = 0;
    for (;;) {
        int n = lane_short_turn(first);
        if (lane_wanted(first) || !background_any()) return;
        if (n) since = 0;
        else if (!helper_looks_on(&since) && announce(b)) return;
    }
}

/* Not while a thread waits: it makes the progress. */
static bool come_in(struct lane *first)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in open_lane */
    if (!lane_try(first)) return false;
    if (!lane_wanted(first)) return true;
    lane_out(first);
    return false;
}

/* One stay inside; the thread that is inside instead arms it again. */
static void stay(struct lane *first, struct bell *b)
{
    bell_stay(b); /* what was announced is not true any more; nobody else sleeps by it: that would be a waiter */
    work(first, b);
    lane_out(first);
}

static void visit(struct bell *b)
{
    struct lane *first = lanes_first();
    if (!come_in(first)) return;
    if (watch_is_on(&watch)) lane_out(first); /* a caller has left since the helper was woken, and comes back */
    else stay(first, b);
}

/* The calling thread was expected to come back from where it left last, and has not. */
static void visit_unexpected(struct bell *b)
{
    struct lane *first = lanes_first();
    if (!come_in(first)) return;
    watch_stop(&watch);
    habit_stayed();
    stay(first, b);
}

/* One nap, and what follows from whether threads have left the library in the meantime. */
static void watch_once(struct bell *b, uint32_t ticket)
{
    uint32_t left = watch_left(&watch);
    bool longest = helper_watch_nap(b, ticket);
    if (!watch_is_on(&watch) || watch_left(&watch) != left) return;
    if (background_any()) visit_unexpected(b);
    if (longest) watch_end(&watch, left);
    if (!watch_is_on(&watch)) helper_watch_over();
}

static void run_alone(void)
{
    struct bell *b = wires_bell();
    for (;;) {
        /* Before all looks: what comes after them rings. acquire: pairs with the release in bell_ring */
        uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_acquire);
        if (atomic_load_explicit(&helper.stop, memory_order_acquire)) return;
        if (watch_is_on(&watch)) {
            watch_once(b, ticket);
            continue;
        }
        if (background_any()) visit(b);
        helper_nap(b, ticket);
    }
}

/* It is not there while threads begin to share the lanes (pt_share). */
static void *run(void *arg)
{
    this_is_the_helper = true;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* else its short naps are twice as long */
    handle_thread_is_own();
    if (lane_threaded()) helper_run_among_threads(&helper.stop);
    else run_alone();
    return arg;
}

/* ---- life ---- */

static bool has_core(const cpu_set_t *cpus)
{
    return proc_self()->usable_cpus >= 2 * proc_self()->local_size && helper_cpus_are_more(cpus);
}

/* A list of cpus that is wrong does not keep the helper from being started, which says so. */
bool pt_help_has_core(void)
{
    cpu_set_t cpus;
    return helper_cpus(&cpus) || has_core(&cpus);
}

/* Is there a core for it where its process does not run? */
static bool runs_apart(bool shares)
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own)) return false;
    if (!CPU_COUNT(&helper.cpus)) return !shares && CPU_COUNT(&own) > 1;
    CPU_AND(&own, &own, &helper.cpus);
    return !CPU_COUNT(&own);
}

static void set_helped(bool on) { atomic_store_explicit(&background.helped, on, memory_order_relaxed); }

/* In a child of fork there is no helper, and no library. */
static void forget(void)
{
    set_helped(false);
    set_left(false);
    watch_stop(&watch);
    atomic_store_explicit(&background.count, 0, memory_order_relaxed);
    lanes_forget_helper();
}

/* No signal of the program's is handled in the helper. */
static int create(void)
{
    sigset_t before;
    signals_block(&before);
    int rc = pthread_create(&helper.thread, NULL, run, NULL);
    signals_restore(&before);
    if (rc) return err_set(TERN_ERR_SYSTEM, "the helper thread cannot be made: %s", strerror(rc));
    pthread_setname_np(helper.thread, "tern-helper");
    if (CPU_COUNT(&helper.cpus)) pthread_setaffinity_np(helper.thread, sizeof helper.cpus, &helper.cpus);
    return 0;
}

static void end_thread(void)
{
    /* release: pairs with the acquires in run_alone and helper_run_among_threads */
    atomic_store_explicit(&helper.stop, true, memory_order_release);
    helper_wake(wires_bell());
    pthread_join(helper.thread, NULL);
    atomic_store_explicit(&helper.stop, false, memory_order_relaxed); /* ordered by the next pthread_create */
}

static void set_places(bool shares, bool apart)
{
    atomic_store_explicit(&helper_shares_cores, shares, memory_order_relaxed);
    atomic_store_explicit(&helper_apart, apart, memory_order_relaxed);
    wait_knows_helper();
}

static void give_up(void)
{
    set_helped(false);
    bell_set_helped(wires_bell(), false);
    helper_sleep_close();
    set_places(false, false);
}

static int start(void)
{
    static bool watched;
    if (background_is_helped()) return 0;
    int rc = helper_cpus(&helper.cpus);
    if (!rc) rc = peer_short_prepare();
    if (!rc) rc = helper_sleep_open(wires_bell());
    if (rc) return rc;
    if (!watched) watched = !pthread_atfork(NULL, NULL, forget);
    bool shares = !has_core(&helper.cpus);
    set_places(shares, runs_apart(shares));
    helper_pace_open(!shares);
    habit_open();
    watch_stop(&watch);
    handle_set_threaded(true);
    set_helped(true);
    bell_set_helped(wires_bell(), true);
    rc = create();
    if (rc) give_up();
    return rc;
}

static void pause_it(void)
{
    end_thread();
    if (!lane_threaded()) helper_relieve(); /* else it has disarmed itself */
}

static void stop(void)
{
    if (!background_is_helped()) return;
    pause_it();
    give_up();
}

/* ---- for the layers above ---- */

/* Of whoever starts, stops or replaces the helper; taken outside of sections. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void begin_change(void) { pthread_mutex_lock(&changing); }
static void end_change(void) { pthread_mutex_unlock(&changing); }

int pt_help(void)
{
    begin_change();
    int rc = start();
    end_change();
    return rc;
}

void pt_help_no_more(void)
{
    begin_change();
    stop();
    end_change();
}

static int open_or_close(struct step *s, bool open)
{
    int rc = 0;
    lane_enter(lanes_first());
    if (open) rc = progress_open(s);
    else progress_close(s);
    lane_out(lanes_first()); /* there is nobody to arm */
    return rc;
}

/* Another thread takes the place of the one that has ended; if none can be made, callers make all the progress. The wake-up
 * is for what came in between. */
static void resume(struct lane *l)
{
    lane_enter(l);
    if (create()) give_up();
    else helper_wake(wires_bell());
    lane_leave(l);
}

static void go_on(void)
{
    if (helper_sleep_open(wires_bell())) give_up();
    else resume(lanes_first());
}

/* The helper knows what it sleeps on from its start: its thread is out while that changes. Callers know of a helper all the time: what
 * they leave meanwhile is for the next one. */
static int change_steps(struct step *s, bool open)
{
    begin_change();
    bool helped = background_is_helped();
    if (helped) pause_it();
    int rc = err_keep(s, open_or_close(s, open));
    if (helped) go_on();
    err_recall(s, rc);
    end_change();
    return rc;
}

int pt_progress_open(struct step *s) { return change_steps(s, true); }
void pt_progress_close(struct step *s) { (void)change_steps(s, false); }

/* For the wait until other threads are out. */
static struct quiet *others_quiet;

int pt_share_prepare(void)
{
    int rc = peer_short_prepare();
    if (!rc) rc = lanes_prepare();
    return rc || others_quiet ? rc : quiet_open(&others_quiet);
}

bool pt_may_share(void) { return lane_threaded() || others_quiet; }

void helper_close(void)
{
    pt_help_no_more();
    helper_sleep_end();
    if (others_quiet) quiet_close(others_quiet);
    others_quiet = NULL;
}

/* The helper has its own way into a lane that is not shared: its thread is out meanwhile. What callers know of the helper
 * stays as it is, since a caller that takes no lock yet may be reading it. */
int pt_share(bool others)
{
    int rc = others ? pt_share_prepare() : peer_short_prepare();
    if (rc) return rc;
    begin_change();
    bool helped = background_is_helped();
    if (helped) end_thread();
    rc = lanes_share(others ? others_quiet : NULL);
    if (helped) resume(lanes_first());
    end_change();
    if (others_quiet) quiet_close(others_quiet);
    others_quiet = NULL;
    return rc;
}
