/*
 * wait.c - waiting while one thread at a time calls. Where threads share the library, wait_threads.c does it.
 *
 * Poll while that pays, then sleep in the kernel until a doorbell rings. How long
 * polling pays is learnt: a wait that ended while polling keeps the budget near
 * twice its length; one that slept a short time says that polling longer would have
 * paid; one that slept long says that polling was wasted. On two cores of a virtual
 * machine a round trip costs 0.15 us polling and about 10 us asleep.
 *
 * Where ranks share cores, polling keeps the very rank from running that is waited
 * for: there each look is followed by giving up the core (sched_yield), which costs
 * a switch that was due anyway, and no system call at whoever is waited for.
 * 16 ranks on 2 cores, 8-byte allreduce: 90 us asleep at once, 20 us yielding.
 *
 * Where each rank could have a core of its own, the scheduler may still leave two ranks on
 * one. A wait that lasts looks for that (cores.h), and yields as long as it is so.
 */
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lanes.h"
#include "pt2pt/wait_policy.h"
#include "pt2pt/wait_threads.h"
#include "transport/wire_lock.h"

#include <sched.h>

/* Sleeps unless there is something to do. True: the wait is over, for `ready` has said so, and the lane has not been left
 * since. Threads may come to share the lane meanwhile: then what this one has announced is taken back already (share.c). */
static bool nap(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, uint64_t most_ns)
{
    struct bell *bell = wires_bell();
    struct sleep_words words;
    words.n = 0; /* the rest is not read */
    uint32_t counted = gate ? gate_enter(gate, bell, 0, &words) : 0;
    lanes_sleep(&words);
    cores_before_sleep(gate);
    uint32_t ticket = bell_announce(bell);
    bool over = ready(arg);
    if (!over && lane_idle()) {
        atomic_fetch_add_explicit(&waits.sleepers, 1, memory_order_relaxed);
        lane_leave(l);
        wires_sleep(bell, ticket, &words, most_ns);
        lane_enter(l);
        atomic_fetch_sub_explicit(&waits.sleepers, 1, memory_order_relaxed);
    }
    if (likely(!lane_threaded())) {
        bell_stay(bell);
        lanes_wake();
    }
    if (gate) gate_leave(gate, counted);
    return over;
}

/* False: threads share the lane now, and the wait has not ended. */
static inline bool wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *))
{
    uint64_t start = 0, idle_since = 0, yielded = 0, due = 0;
    uint32_t polls = 0;
    bool slept = false;
    struct core_looks looks = {0};
    while (!ready(arg)) {
        if (unlikely(lane_threaded())) return false;
        int n = lane_progress(l);
        if (n) {
            polls = 0;
            idle_since = 0;
            continue;
        }
        if (++polls < wait_polls() || polls % wait_stride()) {
            cpu_relax();
            continue;
        }
        uint64_t now = clock_ns();
        if (!start) start = now;
        if (!idle_since) idle_since = now;
        wait_doubts(doubt, arg, start, now, &due);
        if (unlikely(wires_unwatched)) wait_watches(start, now);
        if (wait_should_compare(&looks, idle_since, now)) {
            wait_compare_cores(now, gate);
            looks.shared |= wait_yields();
        }
        if (wait_polls_on(idle_since, now)) {
            if (wait_gives_way(&yielded, idle_since, now)) sched_yield();
            continue;
        }
        slept = true;
        if (nap(l, ready, arg, gate, wait_longest_nap(now, due))) break;
        idle_since = 0;
        polls = 0;
    }
    /* The time that a rank waits on a shared core does not say how long polling pays. */
    if (start && !looks.shared) wait_teaches(start, slept);
    return true;
}

/* By one thread at a time, until others may count themselves. */
static void count_waiter(int by, bool threaded)
{
    if (unlikely(threaded)) {
        atomic_fetch_add_explicit(&waits.waiting, by, memory_order_relaxed);
        return;
    }
    int32_t n = atomic_load_explicit(&waits.waiting, memory_order_relaxed) + by;
    atomic_store_explicit(&waits.waiting, n, memory_order_relaxed);
}

/* False: threads share the lane now, and the wait has not ended. */
static inline bool wait_alone(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *))
{
    count_waiter(1, false);
    if (unlikely(background_is_helped())) helper_waits();
    bool over = wait(l, ready, arg, gate, doubt);
    count_waiter(-1, lane_threaded());
    return over;
}

void lane_wait_at(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *arg))
{
    if (unlikely(lane_threaded())) {
        threads_wait(l, ready, arg, gate, doubt);
        return;
    }
    if (likely(wait_alone(l, ready, arg, gate, doubt))) return;
    lane_catch_up(l);
    threads_wait(l, ready, arg, gate, doubt);
}

void lane_wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate)
{
    if (!ready(arg)) lane_wait_at(l, ready, arg, gate, NULL);
    else if (unlikely(background_is_helped())) helper_need_not_wait();
}

void lane_wait_doubting(struct lane *l, bool (*ready)(void *), void *arg, void (*doubt)(void *arg))
{
    if (!ready(arg)) lane_wait_at(l, ready, arg, NULL, doubt);
    else if (unlikely(background_is_helped())) helper_need_not_wait();
}

void lane_await(struct lane *l, const struct awaiting *what, void *arg)
{
    bool over = likely(!lane_threaded()) && likely(wait_alone(l, what->ready, arg, NULL, what->doubt));
    if (unlikely(!over)) lane_catch_up(l);
    lane_leave(l);
    if (unlikely(!over)) threads_await(l, what, arg);
}

void lane_await_outside(struct lane *l, const struct awaiting *what, void *arg)
{
    if (unlikely(lane_threaded())) {
        threads_await(l, what, arg);
        return;
    }
    lane_enter(l);
    lane_await(l, what, arg);
}

/* Looks without success before the core is given up: about a microsecond. */
#define LOOKS_A_YIELD 16

/* Looks without success before cores are compared: about PATIENCE_NS. */
#define LOOKS_A_CORE 64

/* A program looks again and again. */
static TERN_COLD void watch_while_looking(void)
{
    static uint64_t since; /* with the lock */
    uint64_t now = clock_ns();
    if (!since) since = now;
    wait_watches(since, now);
}

/* To other ranks that need the core, or other threads of this one, which need the lane as well. */
static TERN_COLD void give_way_to_others(struct lane *l, uint32_t fruitless)
{
    if (!lane_threaded() || l == lanes_first()) { /* it is about the process */
        if (unlikely(wires_unwatched)) watch_while_looking();
        if (unlikely(jobs_others())) pt_doubt_looks();
        if (cores_compared() && fruitless % LOOKS_A_CORE == 0) wait_compare_cores(clock_ns(), false);
    }
    if (lane_threaded() && lane_is_outermost(l)) {
        lane_leave(l);
        sched_yield();
        lane_enter(l);
    } else if (wait_yields()) {
        sched_yield();
    }
}

static TERN_COLD void yield_outside(void)
{
    if (jobs_others()) {
        lane_enter(lanes_first());
        pt_doubt_looks();
        lane_leave(lanes_first());
    }
    sched_yield();
}

void lane_poll_outside(struct lane *l)
{
    static _Thread_local uint32_t fruitless __attribute__((tls_model("initial-exec")));
    if (!wires_are_shared()) {
        lane_enter(l);
        lane_poll(l);
        lane_leave(l);
        return;
    }
    if (lanes_look_around()) fruitless = 0;
    else if (++fruitless % LOOKS_A_YIELD == 0) yield_outside();
    if (unlikely(wires_unwatched)) {
        lane_enter(lanes_first());
        watch_while_looking();
        lane_leave(lanes_first());
    }
}

void lane_poll(struct lane *l)
{
    uint32_t fruitless = lane_progress(l) ? 0 : atomic_load_explicit(&waits.fruitless, memory_order_relaxed) + 1;
    atomic_store_explicit(&waits.fruitless, fruitless, memory_order_relaxed);
    if (!fruitless) lane_changed(l);
    else if (fruitless % LOOKS_A_YIELD == 0) give_way_to_others(l, fruitless);
}
