/*
 * wait_policy.h - what a wait does between two looks, and when it sleeps: see wait.c. For the two loops that wait, wait.c and
 * wait_threads.c.
 *
 * Threads: wait_meets and wait_parts by any thread; what compares cores or watches processes under a lane's lock; the rest is
 * read without it.
 */
#ifndef TERN_PT2PT_WAIT_POLICY_H
#define TERN_PT2PT_WAIT_POLICY_H

#include "base/clock.h"
#include "pt2pt/cores.h"
#include "pt2pt/helper.h"

extern TERN_HIDDEN struct wait_policy {
    _Atomic uint32_t polls;  /* looks before the clock is read or the core is given up */
    _Atomic uint32_t stride; /* looks between two readings of the clock after that */
    _Atomic bool yield;      /* give up the core after each look: another rank needs it */
} wait_policy;

static inline uint32_t wait_polls(void) { return atomic_load_explicit(&wait_policy.polls, memory_order_relaxed); }
static inline uint32_t wait_stride(void) { return atomic_load_explicit(&wait_policy.stride, memory_order_relaxed); }
static inline bool wait_yields(void) { return atomic_load_explicit(&wait_policy.yield, memory_order_relaxed); }
/* Of the calling thread (lane_wait_so). */
extern TERN_HIDDEN _Thread_local enum lane_manner wait_manner __attribute__((tls_model("initial-exec")));

/* How long polling pays, as waits have taught. */
static inline uint64_t wait_spin_ns(void) { return atomic_load_explicit(&waits.spin_ns, memory_order_relaxed); }

/* The wait has found nothing since `idle_since`: is it to poll on, rather than to sleep? */
static inline bool wait_polls_on(uint64_t idle_since, uint64_t now)
{
    return now - idle_since < wait_spin_ns() && wait_manner != LANE_SLEEPS;
}

/* A look at `now` found nothing, nor has any since `idle_since`: shall the core be given up for a moment? *last: when it was, for
 * the helper's sake. */
bool wait_gives_way_to_helper(uint64_t *last, uint64_t idle_since, uint64_t now) TERN_COLD;
static inline bool wait_gives_way(uint64_t *last, uint64_t idle_since, uint64_t now)
{
    if (unlikely(wait_manner == LANE_YIELDS)) return true;
    return likely(!helper_is_on_shared_cores()) ? wait_yields() : wait_gives_way_to_helper(last, idle_since, now);
}

/* The time in ns that a wait polls before it compares cores, unless it gives up the core anyway: about what it costs to
 * be woken. It compares again when it has lasted twice as long. */
#define PATIENCE_NS 4000u

/* Of one wait: when cores are compared next, and whether a peer has been found on this one. */
struct core_looks {
    uint64_t due;
    bool shared;
};
void wait_compare_cores(uint64_t now, bool gate) TERN_COLD;

/* The wait has found nothing since `idle_since`: shall it compare cores now? */
static inline bool wait_should_compare(struct core_looks *c, uint64_t idle_since, uint64_t now)
{
    uint64_t idle = now - idle_since;
    bool yields = wait_yields() || helper_is_on_shared_cores(); /* and so lets a peer run before it has waited for long */
    if (now < c->due || !cores_compared() || (idle < PATIENCE_NS && !yields)) return false;
    c->due = now + (idle > PATIENCE_NS ? idle : PATIENCE_NS);
    return true;
}

/* A peer is connected; it is lost or closed. If it is of another job and needs the same cores, it counts meanwhile as the ranks of
 * the own node do when it is asked whether there are enough. */
void wait_meets(struct peer *);
void wait_parts(struct peer *);

/* When a wait gives rise to doubts, ns after its beginning, and how much later again at most. */
#define DOUBT_NS 500000000u
#define DOUBT_MAX_NS 8000000000u

/* The wait has lasted from `start` until `now`; `due`: when it is doubted next, 0: not set yet. */
void wait_doubts(void (*doubt)(void *), void *arg, uint64_t start, uint64_t now, uint64_t *due);

/* The same, and no more: is it doubted now? */
bool wait_is_doubted(uint64_t start, uint64_t now, uint64_t *due);

/* Something has been waited for since `start`: watches the processes of the node from time to time (death.md). Where
 * wires_unwatched. */
void wait_watches(uint64_t start, uint64_t now) TERN_COLD;

/* How long a wait may sleep that is doubted at `due`. */
uint64_t wait_longest_nap(uint64_t now, uint64_t due);

/* The helper may have to run on a core where a rank waits from now on, or no more (helper_shares_cores). */
void wait_knows_helper(void);

/* The wait is over that began at `start`, asleep at its end or not. */
void wait_teaches(uint64_t start, bool slept);

#endif
