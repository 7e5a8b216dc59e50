/* wait_policy.c - see wait_policy.h, and wait.c for why it is so. */
#include "pt2pt/wait_policy.h"
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/background.h"
#include "pt2pt/lanes.h"

#include <string.h>

struct wait_policy wait_policy;
_Thread_local bool wait_sleeps_soon;

void lane_sleep_soon(bool soon) { wait_sleeps_soon = soon; }

/* Where the launcher does not tell of deaths, the processes of the node are watched from the first wait on that lasts so
 * long; most waits are over by then. Those that are not known then are tried after twice the time, and so on. */
#define WATCH_NS 20000000u
#define WATCH_MAX_NS 1000000000u

/* When that was tried last, and how long a wait lasts until it is tried. With the lock. */
static uint64_t watch_tried, watch_after = WATCH_NS;

static void set_policy(bool shared)
{
    atomic_store_explicit(&wait_policy.yield, shared, memory_order_relaxed);
    atomic_store_explicit(&wait_policy.polls, shared ? 8 : 64, memory_order_relaxed); /* about 0.2 us, 1 us */
    atomic_store_explicit(&wait_policy.stride, shared ? 1 : 16, memory_order_relaxed);
}

/* Threads of a rank that wait do so on its cores, not on those of other ranks. */
static int32_t share_of_cores(void)
{
    uint32_t ranks = proc_self()->local_size, cores = (uint32_t)proc_self()->usable_cpus;
    return ranks && cores > ranks ? (int32_t)(cores / ranks) : 1;
}

void wait_open(bool threaded)
{
    const char *spin = var_text(VAR_SPIN);
    bool shared = proc_self()->oversubscribed;
    set_policy(shared);
    int64_t max_us = var_int(shared ? VAR_YIELD_MAX : VAR_SPIN_MAX);
    waits_open(threaded);
    waits.share = share_of_cores();
    waits.spin_max_ns = max_us > 0 ? (uint64_t)max_us * 1000u : 0;
    if (!strcmp(spin, "never")) waits.spin_max_ns = 0;
    if (!strcmp(spin, "always")) waits.spin_max_ns = UINT64_MAX;
    atomic_store_explicit(&waits.spin_ns, waits.spin_max_ns, memory_order_relaxed); /* until waits teach otherwise */
    watch_after = WATCH_NS;
    cores_open(!shared && waits.spin_max_ns && waits.spin_max_ns != UINT64_MAX && proc_self()->local_size > 1);
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

/* Of threads that end at the same time one teaches nothing. */
void wait_teaches(uint64_t start, bool slept)
{
    if (wait_sleeps_soon) return;
    uint64_t spin = wait_learn(wait_spin_ns(), waits.spin_max_ns, clock_ns() - start, slept);
    atomic_store_explicit(&waits.spin_ns, spin, memory_order_relaxed);
}

/* How often who waits lets helper threads run that may have to run here. */
#define COURTESY_NS 4000u

/* What helpers do at any time for others (background_stands_by) is waited for by a call that lasts longer than this. */
#define SERVICE_NS 30000u

bool wait_gives_way_to_helper(uint64_t *last, uint64_t idle_since, uint64_t now)
{
    bool services = background_any() && background_only_stands_by(); /* so it is, as far as is known here, with other ranks */
    if (!wait_yields() && (now - *last < COURTESY_NS || (services && now - idle_since < SERVICE_NS))) return false;
    *last = now;
    return true;
}

void wait_compare_cores(uint64_t now, bool gate)
{
    bool shared = cores_find_peer(now, gate);
    if (shared != wait_yields()) set_policy(shared);
}

bool wait_is_doubted(uint64_t start, uint64_t now, uint64_t *due)
{
    if (likely(now < *due)) return false;
    bool first = !*due;
    uint64_t lasted = now - start;
    *due = now + (lasted < DOUBT_NS ? DOUBT_NS : lasted < DOUBT_MAX_NS ? lasted : DOUBT_MAX_NS);
    return !first;
}

void wait_doubts(void (*doubt)(void *), void *arg, uint64_t start, uint64_t now, uint64_t *due)
{
    if (likely(!wait_is_doubted(start, now, due))) return;
    wires_wait_lasts();
    lanes_doubt();
    if (doubt) doubt(arg);
}

void wait_watches(uint64_t start, uint64_t now)
{
    if (now - (start > watch_tried ? start : watch_tried) < watch_after) return;
    watch_tried = now;
    wires_watch();
    watch_after = min_size(2 * watch_after, WATCH_MAX_NS);
}

uint64_t wait_longest_nap(uint64_t now, uint64_t due)
{
    uint64_t most = due > now ? due - now : DOUBT_NS;
    return unlikely(wires_unwatched) && most > watch_after ? watch_after : most;
}
