/*
 * cores.h - ranks of this node that run on the same core, though there are enough cores.
 *
 * The scheduler does not know which thread waits for which. It may leave two ranks on one
 * core although another core is idle or less loaded: it often places a woken thread on the
 * core of its waker, and its load balancer looks at averages over a long time. A rank that
 * polls then keeps the rank that it waits for from running, for a slice of some milliseconds.
 *
 * So each rank publishes the core that it waits on, beside its doorbell (bell.core). A wait
 * that has lasted some microseconds compares its own core with those of the connected peers
 * that are awake. If a peer has the same one, the rank moves to a core of its affinity mask
 * that no peer has. If there is none, or the rank has moved just now, the wait gives up the
 * core after each look (wait.c).
 *
 * A published core is a hint: the peer may have been moved since, or is not connected. A
 * wrong hint costs a move or some calls of sched_yield, a missing one what a wait polls at
 * most.
 *
 * Threads: cores_compare and cores_say_crowded by one thread at a time; the rest under the lane's lock. The thread that calls is the one
 * that moves.
 */
#ifndef TERN_PT2PT_CORES_H
#define TERN_PT2PT_CORES_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdint.h>

void cores_open(void);

/* Cores are compared. Not if there are fewer cores than processes, or TERN_SPIN says otherwise. By any thread. */
extern TERN_HIDDEN _Atomic bool cores_are_compared;
void cores_compare(bool);
static inline bool cores_compared(void) { return atomic_load_explicit(&cores_are_compared, memory_order_relaxed); }

/* A wait at `now` (ns): is a connected peer that is awake on this core, and stays there, or does a peer know of too many for the
 * cores? `gate`: the wait ends by the opening of a gate. */
bool cores_find_peer(uint64_t now, bool gate) TERN_COLD;

/* What this process knows itself, for its peers: there are more processes than cores. */
void cores_say_crowded(bool);

/* This thread is going to sleep, at a gate or not. Before bell_announce. */
void cores_before_sleep(bool gate);

/* How often a rank tries to move. Each move that soon follows another one doubles the time to the next, and a move that
 * took long is not soon followed by another one. */
struct cores_pace {
    uint64_t due;   /* ns: when it may try next */
    uint64_t pause; /* ns: between the last try and that */
};
void cores_pace_open(struct cores_pace *);

/* It has tried at `begun` (ns), which is not before `due`, and gone on at `ended`; `moved`: there was a core to move
 * to. */
void cores_count_move(struct cores_pace *, uint64_t begun, uint64_t ended, bool moved);

#endif
