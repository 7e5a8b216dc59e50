/*
 * wait.c - the one place where the library waits.
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
#include "base/clock.h"
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/cores.h"
#include "pt2pt/doubt.h"
#include "pt2pt/helper.h"

#include <sched.h>
#include <string.h>

static struct {
    uint32_t polls;  /* looks before the clock is read or the core is given up */
    uint32_t stride; /* looks between two readings of the clock after that */
    bool yield;      /* give up the core after each look: another rank needs it */
} policy;

/* Where the launcher does not tell of deaths, the processes of the node are watched from the first wait on that lasts so
 * long; most waits are over by then. Those that are not known then are tried after twice the time, and so on. */
#define WATCH_NS 20000000u
#define WATCH_MAX_NS 1000000000u

/* When that was tried last, and how long a wait lasts until it is tried. With the lock. */
static uint64_t watch_tried, watch_after = WATCH_NS;

static void set_policy(bool shared)
{
    policy.yield = shared;
    policy.polls = shared ? 8 : 64; /* about 0.2 us, 1 us */
    policy.stride = shared ? 1 : 16;
}

void wait_open(struct lane *l)
{
    const char *spin = var_text(VAR_SPIN);
    bool shared = proc_self()->oversubscribed;
    set_policy(shared);
    int64_t max_us = var_int(shared ? VAR_YIELD_MAX : VAR_SPIN_MAX);
    l->spin_max_ns = max_us > 0 ? (uint64_t)max_us * 1000u : 0;
    if (!strcmp(spin, "never")) l->spin_max_ns = 0;
    if (!strcmp(spin, "always")) l->spin_max_ns = UINT64_MAX;
    l->spin_ns = l->spin_max_ns; /* until waits teach otherwise */
    watch_after = WATCH_NS;
    cores_open(!shared && l->spin_max_ns && l->spin_max_ns != UINT64_MAX && proc_self()->local_size > 1);
}

uint64_t wait_learn(uint64_t spin, uint64_t most, uint64_t waited, bool slept)
{
    if (most == UINT64_MAX || !most) return spin;
    if (!slept) {
        uint64_t want = 2 * waited + 1000;
        spin += want > spin ? (want - spin) / 4 : 0;
    } else if (waited < most) {
        spin = 2 * spin + 1000;
    } else {
        spin -= spin / 4;
    }
    return spin < most ? spin : most;
}

/* Sleeps unless there is something to do. The last thread to get up withdraws the announcement that all sleep by. True:
 * the wait is over, for `ready` has said so, and the lock has not been given up since. */
static bool nap(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, uint64_t most_ns)
{
    struct bell *bell = wires_bell();
    struct sleep_words words;
    words.n = 0; /* the rest is not read */
    uint32_t counted = gate ? gate_enter(gate, bell, 0, &words) : 0;
    lane_pollers_sleep(l, &words);
    cores_before_sleep(gate);
    uint32_t ticket = bell_announce(bell);
    bool over = ready(arg);
    if (!over && lane_idle(l)) {
        l->sleepers++;
        lane_leave(l);
        wires_sleep(bell, ticket, &words, most_ns);
        lane_enter(l);
        l->sleepers--;
    }
    if (!l->sleepers) {
        bell_stay(bell);
        lane_pollers_wake(l);
    }
    if (gate) gate_leave(gate, counted);
    return over;
}

/* Other threads may wait for this lane: they have the lock for a moment. */
static TERN_COLD void share(struct lane *l)
{
    if (lane_catch_up(l)) return;
    lane_leave(l);
    sched_yield();
    lane_enter(l);
}

/* How often who waits lets helper threads run that may have to run here. */
#define COURTESY_NS 4000u

/* A look at `now` found nothing: shall the core be given up for a moment? */
static bool give_way(uint64_t *last, uint64_t now)
{
    if (likely(!helper_shares_cores)) return policy.yield;
    if (!policy.yield && now - *last < COURTESY_NS) return false;
    *last = now;
    return true;
}

/* The time in ns that a wait polls before it compares cores, unless it gives up the core anyway: about what it costs to
 * be woken. It compares again when it has lasted twice as long. */
#define PATIENCE_NS 4000u

/* Of one wait: when cores are compared next, and whether a peer has been found on this one. */
struct core_looks {
    uint64_t due;
    bool shared;
};

static TERN_COLD void compare_cores(uint64_t now, bool gate)
{
    bool shared = cores_find_peer(now, gate);
    if (shared != policy.yield) set_policy(shared);
}

/* The wait has found nothing since `idle_since`. */
static inline void watch_core(struct core_looks *c, uint64_t idle_since, uint64_t now, bool gate)
{
    uint64_t idle = now - idle_since;
    bool yields = policy.yield || helper_shares_cores; /* and so lets a peer run before it has waited for long */
    if (now < c->due || !cores_compared || (idle < PATIENCE_NS && !yields)) return;
    c->due = now + (idle > PATIENCE_NS ? idle : PATIENCE_NS);
    compare_cores(now, gate);
    c->shared |= policy.yield;
}

/* When a wait gives rise to doubts, ns after its beginning, and how much later again at most. */
#define DOUBT_NS 500000000u
#define DOUBT_MAX_NS 8000000000u

/* The wait has lasted until `now`; `due`: when it is doubted next, 0: not set yet. */
static void doubts(struct lane *l, void (*doubt)(void *), void *arg, uint64_t start, uint64_t now, uint64_t *due)
{
    if (likely(now < *due)) return;
    if (*due) {
        wires_wait_lasts();
        pt_doubt(l);
        if (doubt) doubt(arg);
    }
    uint64_t lasted = now - start;
    *due = now + (lasted < DOUBT_NS ? DOUBT_NS : lasted < DOUBT_MAX_NS ? lasted : DOUBT_MAX_NS);
}

/* Something has been waited for since `start`. */
static TERN_COLD void watch_in_time(uint64_t start, uint64_t now)
{
    if (now - (start > watch_tried ? start : watch_tried) < watch_after) return;
    watch_tried = now;
    wires_watch();
    watch_after = min_size(2 * watch_after, WATCH_MAX_NS);
}

/* How long a wait may sleep that is doubted at `due`. */
static uint64_t longest_nap(uint64_t now, uint64_t due)
{
    uint64_t most = due > now ? due - now : DOUBT_NS;
    return unlikely(wires_unwatched) && most > watch_after ? watch_after : most;
}

static inline void wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *))
{
    uint64_t start = 0, idle_since = 0, yielded = 0, due = 0;
    uint32_t polls = 0;
    bool slept = false;
    struct core_looks looks = {0};
    while (!ready(arg)) {
        int n = lane_progress(l);
        if (unlikely(lane_threaded(l))) share(l);
        if (n) {
            polls = 0;
            idle_since = 0;
            continue;
        }
        if (++polls < policy.polls || polls % policy.stride) {
            cpu_relax();
            continue;
        }
        uint64_t now = clock_ns();
        if (!start) start = now;
        if (!idle_since) idle_since = now;
        doubts(l, doubt, arg, start, now, &due);
        if (unlikely(wires_unwatched)) watch_in_time(start, now);
        watch_core(&looks, idle_since, now, gate);
        if (now - idle_since < l->spin_ns) {
            if (give_way(&yielded, now)) sched_yield();
            continue;
        }
        slept = true;
        if (nap(l, ready, arg, gate, longest_nap(now, due))) break;
        idle_since = 0;
        polls = 0;
    }
    /* The time that a rank waits on a shared core does not say how long polling pays. */
    if (start && !looks.shared) l->spin_ns = wait_learn(l->spin_ns, l->spin_max_ns, clock_ns() - start, slept);
}

static void count_waiter(struct lane *l, int by)
{
    int32_t n = atomic_load_explicit(&l->waiters, memory_order_relaxed) + by;
    atomic_store_explicit(&l->waiters, n, memory_order_relaxed);
}

static inline void begin(struct lane *l)
{
    count_waiter(l, 1);
    if (unlikely(l->may_be_armed)) helper_relieve(l);
}

void lane_wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate)
{
    if (ready(arg)) return;
    begin(l);
    wait(l, ready, arg, gate, NULL);
    count_waiter(l, -1);
}

void lane_wait_at(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *arg))
{
    begin(l);
    wait(l, ready, arg, gate, doubt);
    count_waiter(l, -1);
}

void lane_wait_doubting(struct lane *l, bool (*ready)(void *), void *arg, void (*doubt)(void *arg))
{
    if (ready(arg)) return;
    begin(l);
    wait(l, ready, arg, NULL, doubt);
    count_waiter(l, -1);
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
    watch_in_time(since, now);
}

/* To other ranks that need the core, or other threads of this one. */
static TERN_COLD void give_way_to_others(const struct lane *l)
{
    if (unlikely(wires_unwatched)) watch_while_looking();
    if (cores_compared && l->fruitless % LOOKS_A_CORE == 0) compare_cores(clock_ns(), false);
    if (policy.yield || lane_threaded(l)) sched_yield();
}

void lane_poll(struct lane *l)
{
    if (lane_progress(l)) l->fruitless = 0;
    else if (++l->fruitless % LOOKS_A_YIELD == 0) give_way_to_others(l);
}
