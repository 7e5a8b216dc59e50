/* wait_policy.c - see wait_policy.h, and wait.c for why it is so. */
#include "pt2pt/wait_policy.h"
#include "base/affinity.h"
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/background.h"
#include "pt2pt/lanes.h"

#include <string.h>

struct wait_policy wait_policy;

/* Processes that have this node's cores in common with the ranks of the own job. */
static struct {
    struct lock lock;    /* a leaf: of what follows, and of the policy where it may be compared by core */
    uint32_t neighbours; /* of other jobs, connected */
    bool too_many;       /* more processes than cores */
    uint64_t learnt;     /* waits.spin_ns as it was when that was otherwise */
} crowd;

_Thread_local enum lane_manner wait_manner;

void lane_wait_so(enum lane_manner manner) { wait_manner = manner; }

/* About what a look at wires in shared memory costs. */
#define LOOK_NS 100u

static uint32_t at_least_one(uint32_t n, uint32_t part) { return part > 1 ? (n / part ? n / part : 1) : n; }

/* Where the launcher does not tell of deaths, the processes of the node are watched from the first wait on that lasts so
 * long; most waits are over by then. Those that are not known then are tried after twice the time, and so on. */
#define WATCH_NS 20000000u
#define WATCH_MAX_NS 1000000000u

/* When that was tried last, and how long a wait lasts until it is tried. With the lock. */
static uint64_t watch_tried, watch_after = WATCH_NS;

/* Where a helper may need this core, looks that are system calls count as what they cost: 64 of them are 20 us. */
static void set_policy(bool shared)
{
    uint32_t dear = helper_is_on_shared_cores() ? wires_look_ns() / LOOK_NS : 1;
    uint32_t polls = shared ? 8 : 64, stride = shared ? 1 : 16; /* about 0.2 us, 1 us */
    atomic_store_explicit(&wait_policy.yield, shared, memory_order_relaxed);
    atomic_store_explicit(&wait_policy.polls, at_least_one(polls, dear), memory_order_relaxed);
    atomic_store_explicit(&wait_policy.stride, at_least_one(stride, dear), memory_order_relaxed);
}

void wait_knows_helper(void)
{
    leaf_take(&crowd.lock);
    set_policy(wait_yields());
    leaf_give(&crowd.lock);
}

/* Threads of a rank that wait do so on its cores, not on those of other ranks: on its share of the node's, of which it may be bound to
 * fewer. */
static int32_t share_of_cores(void)
{
    uint32_t ranks = proc_self()->local_size, cores = proc_self()->usable_cpus, own = affinity_count(0);
    uint32_t share = ranks && cores > ranks ? cores / ranks : 1;
    return (int32_t)(own && own < share ? own : share);
}

static uint64_t longest_spin(bool shared)
{
    const char *spin = var_text(VAR_SPIN);
    int64_t max_us = var_int(shared ? VAR_YIELD_MAX : VAR_SPIN_MAX);
    if (!strcmp(spin, "never")) return 0;
    if (!strcmp(spin, "always")) return UINT64_MAX;
    return max_us > 0 ? (uint64_t)max_us * 1000u : 0;
}

/* Where a core is shared waits teach something else than where it is not; and until they do, polling pays for as long as it may. */
static void use_what_was_learnt(bool shared, uint64_t most)
{
    if (shared != crowd.too_many) {
        uint64_t now = wait_spin_ns();
        atomic_store_explicit(&waits.spin_ns, crowd.learnt, memory_order_relaxed);
        crowd.learnt = now;
    }
    atomic_store_explicit(&waits.spin_max_ns, most, memory_order_relaxed);
}

/* What follows from how many processes there are for the cores of the ranks of this node. With crowd.lock, or at the start. */
static void choose_policy(void)
{
    const struct proc_info *me = proc_self();
    bool shared = me->local_size + crowd.neighbours > me->usable_cpus;
    uint64_t most = longest_spin(shared);
    use_what_was_learnt(shared, most);
    crowd.too_many = shared;
    set_policy(shared);
    cores_say_crowded(shared);
    cores_compare(!shared && most && most != UINT64_MAX && me->local_size + crowd.neighbours > 1);
}

void wait_open(bool threaded)
{
    waits_open(threaded);
    waits.share = share_of_cores();
    watch_after = WATCH_NS;
    cores_open();
    crowd.neighbours = 0;
    crowd.too_many = proc_self()->oversubscribed;
    crowd.learnt = longest_spin(!crowd.too_many);
    atomic_store_explicit(&waits.spin_ns, longest_spin(crowd.too_many), memory_order_relaxed);
    choose_policy();
}

static void count_neighbour(uint32_t by)
{
    leaf_take(&crowd.lock);
    crowd.neighbours += by;
    choose_policy();
    leaf_give(&crowd.lock);
}

void wait_meets(struct peer *p)
{
    if (jobs_is_own(p->index) || p->lost || !p->ep.ops->shares_cores || !p->ep.ops->shares_cores(&p->ep)) return;
    uint32_t was = atomic_fetch_or_explicit(&p->flags, PEER_NEIGHBOUR, memory_order_relaxed);
    if (!(was & PEER_NEIGHBOUR)) count_neighbour(1);
}

void wait_parts(struct peer *p)
{
    uint32_t was = atomic_fetch_and_explicit(&p->flags, ~(uint32_t)PEER_NEIGHBOUR, memory_order_relaxed);
    if (was & PEER_NEIGHBOUR) count_neighbour(-1u);
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
    if (wait_manner) return;
    uint64_t most = atomic_load_explicit(&waits.spin_max_ns, memory_order_relaxed);
    uint64_t spin = wait_learn(wait_spin_ns(), most, clock_ns() - start, slept);
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
    if (shared == wait_yields()) return;
    leaf_take(&crowd.lock);
    if (!crowd.too_many && cores_compared()) set_policy(shared);
    leaf_give(&crowd.lock);
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
