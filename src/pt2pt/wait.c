/*
 * wait.c - the one place where the library waits.
 *
 * Poll while that pays, then sleep in the kernel until a doorbell rings. How long
 * polling pays is learnt: a wait that ended while polling keeps the budget near
 * twice its length; one that slept a short time says that polling longer would have
 * paid; one that slept long says that polling was wasted. On two cores of a virtual
 * machine a round trip costs 0.3 us polling and about 10 us asleep; on one shared
 * core polling costs a scheduler's slice.
 */
#include "base/clock.h"
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"

#include <sched.h>
#include <string.h>

#define POLLS_FREE 64       /* polls before the clock is looked at: about 1 us */
#define POLLS_A_LOOK 16     /* and between two looks */
#define SPIN_OVERSUB_NS 10000u /* budget's bound when ranks share cores: about the cost of a sleep and wake-up */

void wait_open(struct lane *l)
{
    const char *spin = var_text(VAR_SPIN);
    l->spin_max_ns = (uint64_t)var_int(VAR_SPIN_MAX) * 1000u;
    if (proc_self()->oversubscribed && l->spin_max_ns > SPIN_OVERSUB_NS) l->spin_max_ns = SPIN_OVERSUB_NS;
    if (!strcmp(spin, "never")) l->spin_max_ns = 0;
    if (!strcmp(spin, "always")) l->spin_max_ns = UINT64_MAX;
    l->spin_ns = l->spin_max_ns; /* until waits teach otherwise */
}

/* What a wait of `waited` ns, asleep at its end or not, teaches. */
static void learn(struct lane *l, uint64_t waited, bool slept)
{
    if (l->spin_max_ns == UINT64_MAX || !l->spin_max_ns) return;
    if (!slept) {
        uint64_t want = 2 * waited + 1000;
        l->spin_ns += want > l->spin_ns ? (want - l->spin_ns) / 4 : 0;
    } else if (waited < l->spin_max_ns) {
        l->spin_ns = 2 * l->spin_ns + 1000;
    } else {
        l->spin_ns -= l->spin_ns / 4;
    }
    if (l->spin_ns > l->spin_max_ns) l->spin_ns = l->spin_max_ns;
}

/* Sleeps unless there is something to do. */
static void nap(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate)
{
    struct bell *bell = peer_bell();
    uint32_t seen = 0;
    if (gate) {
        seen = atomic_load_explicit(&gate->ring, memory_order_relaxed);
        atomic_fetch_add_explicit(&gate->sleepers, 1, memory_order_relaxed); /* ordered by bell_announce */
    }
    uint32_t ticket = bell_announce(bell);
    if (ready(arg) || !lane_idle(l)) {
        bell_stay(bell);
    } else {
        l->sleepers++;
        lane_leave(l);
        bell_wait(bell, ticket, gate ? &gate->ring : NULL, seen);
        lane_enter(l);
        l->sleepers--;
    }
    if (gate) atomic_fetch_sub_explicit(&gate->sleepers, 1, memory_order_relaxed);
}

/* Other threads may wait for this lane: they have the lock for a moment. */
static TERN_COLD void share(struct lane *l)
{
    lane_leave(l);
    sched_yield();
    lane_enter(l);
}

void lane_wait(struct lane *l, bool (*ready)(void *), void *arg, struct gate *gate)
{
    uint64_t start = 0, idle_since = 0;
    uint32_t polls = 0;
    bool slept = false;
    while (!ready(arg)) {
        int n = lane_progress(l);
        if (unlikely(l->threaded)) share(l);
        if (n) {
            polls = 0;
            idle_since = 0;
            continue;
        }
        if (++polls < POLLS_FREE && l->spin_ns) {
            cpu_relax();
            continue;
        }
        if (polls % POLLS_A_LOOK && l->spin_ns) continue;
        uint64_t now = clock_ns();
        if (!start) start = now;
        if (!idle_since) idle_since = now;
        if (now - idle_since < l->spin_ns) continue;
        nap(l, ready, arg, gate);
        slept = true;
        idle_since = 0;
        polls = 0;
    }
    if (start) learn(l, clock_ns() - start, slept);
}
