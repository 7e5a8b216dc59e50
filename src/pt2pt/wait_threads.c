/*
 * wait_threads.c - waiting where threads share the library. The hand-shakes are in waits.h.
 *
 * The listener looks, gives up the core or sleeps as a thread that waits alone (wait.c). How long a look pays is learnt in the
 * same way. The others look at what they wait for, which costs a few loads, and then sleep. Where more threads of the rank
 * wait than it has cores, each of them gives up the core after a look, as a thread that polls keeps from running whoever would
 * end its wait; and those that do not listen sleep soon, since each of them that is awake delays the others.
 */
#include "pt2pt/wait_threads.h"
#include "pt2pt/helper_threads.h"
#include "pt2pt/lanes.h"
#include "pt2pt/listen.h"
#include "pt2pt/wait_policy.h"

#include <sched.h>

/* One wait of a thread. */
struct wait {
    struct lane *lane;
    const struct awaiting *requests; /* NULL: for a state of the lane; `ready` is in the waiter */
    void *arg;
    void (*doubt)(void *);
    struct waiter *self;
    bool listens, called, slept, crowded;
    uint32_t polls;
    uint64_t start, idle_since, yielded, due;
    struct core_looks looks;
};

/* Looks of the listener that find nothing, before it gives up the core to other threads of the rank. */
#define POLLS_CROWDED 3

/* Looks of the others between two readings of the clock. */
#define POLLS_STRIDE 16

/* How long a thread that does not listen gives up the core, and looks whether its wait is over, before it sleeps: about what it
 * costs to be woken. */
#define YIELD_NS 20000u

/* More threads of this rank wait than it has cores. How long such a wait lasts does not say how long polling pays. */
static bool is_crowded(struct wait *t)
{
    bool crowded = atomic_load_explicit(&waits.waiting, memory_order_relaxed) > waits.share;
    t->crowded |= crowded;
    return crowded;
}

static bool is_over(struct wait *t)
{
    if (t->requests) return t->requests->ready(t->arg);
    /* acquire: pairs with the release of the thread that has seen it (waits_tell_one) */
    return atomic_load_explicit(&t->self->state, memory_order_acquire) & WAITER_READY;
}

/* ---- the listener ---- */

static void sleep_by_bell(struct wait *t, uint64_t most_ns)
{
    struct bell *b = wires_bell();
    struct sleep_words words;
    uint32_t ticket;
    words.n = 0; /* the rest is not read */
    atomic_fetch_and_explicit(&t->self->state, WAITER_READY, memory_order_acquire);
    if (t->requests && t->requests->mark(t->arg, t->self)) return;
    t->slept = true;
    atomic_fetch_add_explicit(&waits.sleepers, 1, memory_order_relaxed);
    if (listen_announce(t->self, &words, &ticket)) wires_sleep(b, ticket, &words, most_ns);
    atomic_fetch_sub_explicit(&waits.sleepers, 1, memory_order_relaxed);
    listen_get_up(t->self);
}

/* ---- waits that last ---- */

/* For a state of a lane: doubted with the lane, unless it has come about. */
static void doubt_state(struct wait *t)
{
    lane_enter(t->lane);
    if (t->doubt && !is_over(t)) t->doubt(t->arg);
    t->lane->changed = true;
    lane_leave(t->lane);
}

static TERN_COLD void lasts(struct wait *t, uint64_t now)
{
    if (is_over(t)) return;
    if (wait_is_doubted(t->start, now, &t->due)) {
        listen_doubt();
        if (!t->requests) doubt_state(t);
        else if (t->doubt) t->doubt(t->arg);
    }
    if (!wires_unwatched) return;
    lane_enter(lanes_first());
    wait_watches(t->start, now);
    lane_leave(lanes_first());
}

/* It has found nothing until `now`. */
static void count_time(struct wait *t, uint64_t now)
{
    if (!t->start) t->start = now;
    if (!t->idle_since) t->idle_since = now;
    if (!t->due) t->due = now + DOUBT_NS;
    if (unlikely(now >= t->due || wires_unwatched)) lasts(t, now);
}

static TERN_COLD void compare_cores(struct wait *t, uint64_t now)
{
    lane_enter(lanes_first());
    wait_compare_cores(now, t->self->gate);
    t->looks.shared |= wait_yields();
    lane_leave(lanes_first());
}

/* ---- the two ways to wait ---- */

static void listen(struct wait *t)
{
    if (listen_look()) {
        t->polls = 0;
        t->idle_since = 0;
        return;
    }
    bool crowded = is_crowded(t);
    if (++t->polls < (crowded ? POLLS_CROWDED : wait_polls()) || (!crowded && t->polls % wait_stride())) {
        cpu_relax();
        return;
    }
    uint64_t now = clock_ns();
    count_time(t, now);
    if (!crowded && wait_should_compare(&t->looks, t->idle_since, now)) compare_cores(t, now);
    if (wait_polls_on(t->idle_since, now)) {
        if (wait_gives_way(&t->yielded, t->idle_since, now) || crowded) sched_yield();
        return;
    }
    sleep_by_bell(t, wait_longest_nap(now, t->due));
    t->idle_since = 0;
    t->polls = 0;
}

/* Sleeps on a word of its own, while there is a listener. */
static void sleep_alone(struct wait *t, uint64_t most_ns)
{
    struct waiter *w = t->self;
    atomic_fetch_and_explicit(&w->state, WAITER_READY, memory_order_acquire);
    if (t->requests && t->requests->mark(t->arg, w)) return;
    if (!waits_enrol(w)) return;
    t->slept = true;
    waits_sleep(w, most_ns);
    if (waits_withdraw(w) & WAITER_CALLED) t->called = true;
}

/* What a gate opens for is in memory that other processes write: no thread of this one tells of it, but the listener. */
static void look_at_gate(struct lane *l)
{
    if (!lane_try(l)) return;
    l->changed = true;
    lane_leave(l);
}

/* Another thread listens. */
static void stand_by(struct wait *t)
{
    bool crowded = is_crowded(t);
    if (t->self->gate) look_at_gate(t->lane);
    if (!crowded && ++t->polls % POLLS_STRIDE) {
        cpu_relax();
        return;
    }
    uint64_t now = clock_ns();
    count_time(t, now);
    uint64_t most = wait_manner == LANE_SLEEPS ? 0 : wait_spin_ns();
    if (now - t->idle_since < (crowded && most > YIELD_NS ? YIELD_NS : most)) {
        if (crowded || wait_manner == LANE_YIELDS) sched_yield();
        return;
    }
    sleep_alone(t, wait_longest_nap(now, t->due));
    t->idle_since = 0;
}

static void wait(struct wait *t)
{
    while (!is_over(t)) {
        if (t->listens || (t->listens = waits_listen())) listen(t);
        else stand_by(t);
    }
    if (t->listens) waits_leave();
    else if (t->called) waits_pass_on();
    if (t->start && !t->looks.shared && !t->crowded) wait_teaches(t->start, t->slept);
}

static void count_waiter(int by) { atomic_fetch_add_explicit(&waits.waiting, by, memory_order_seq_cst); }

/* It makes the progress now. Behind count_waiter: 2. in helper_threads.h. */
static inline void relieve(void)
{
    if (unlikely(waits_at_bell() == AT_BELL_HELPER)) helper_relieve_among_threads();
}

/* ---- for wait.c ---- */

void threads_wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *))
{
    count_waiter(1);
    if (!ready(arg)) {
        struct wait t = {.lane = l, .arg = arg, .doubt = doubt, .self = waits_mine()};
        t.self->ready = ready;
        t.self->arg = arg;
        t.self->gate = gate;
        atomic_store_explicit(&t.self->state, 0, memory_order_relaxed); /* ordered by the lane's lock */
        list_push(&l->waiters, &t.self->in_lane);
        if (unlikely(waits_at_bell())) bell_ring(wires_bell()); /* the listener looks for this one, too */
        lane_leave(l);
        relieve();
        wait(&t);
        lane_enter(l);
    }
    count_waiter(-1);
}

/* Operations that are left behind are the helper's when no thread waits any more: whoever leaves the lane wakes it
 * (helper_leave_among_threads). */
static TERN_COLD void wake_helper_for_the_rest(struct lane *l)
{
    lane_enter(l);
    lane_leave(l);
}

void threads_await(struct lane *l, const struct awaiting *what, void *arg)
{
    struct wait t = {.lane = l, .requests = what, .arg = arg, .doubt = what->doubt, .self = waits_mine()};
    t.self->gate = NULL;
    atomic_store_explicit(&t.self->state, 0, memory_order_relaxed); /* ordered by the first mark */
    count_waiter(1);
    relieve();
    wait(&t);
    count_waiter(-1);
    if (unlikely(background_any())) wake_helper_for_the_rest(l);
}
