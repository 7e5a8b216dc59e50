/* cores.c - see cores.h. */
#include "pt2pt/cores.h"
#include "base/clock.h"
#include "base/var.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <sched.h>
#include <string.h>

/* Between two moves, ns, and in times of what the last move took. A move to an idle core takes 30 us. On a busy core
 * the thread waits for a slice, some milliseconds; there two ranks that yield on one core are about as quick as two
 * that each have to wait for slices, so it moves rarely. */
#define PAUSE_MIN UINT64_C(2000000)
#define PAUSE_MAX UINT64_C(256000000)
#define PAUSE_RATIO 16u

_Atomic bool cores_are_compared;
static bool moves, polls;
static struct cores_pace pace;

void cores_pace_open(struct cores_pace *p) { *p = (struct cores_pace){.pause = PAUSE_MIN}; }

void cores_compare(bool compare) { atomic_store_explicit(&cores_are_compared, compare, memory_order_relaxed); }

void cores_open(void)
{
    const char *how = var_text(VAR_SHARED_CORE);
    polls = !strcmp(how, "poll");
    moves = !strcmp(how, "move");
    cores_pace_open(&pace);
}

void cores_count_move(struct cores_pace *p, uint64_t begun, uint64_t ended, bool moved)
{
    bool soon = begun - p->due < 2 * p->pause;
    uint64_t pause = moved && soon ? 2 * p->pause : PAUSE_MIN, least = PAUSE_RATIO * (ended - begun);
    if (pause < least) pause = least;
    p->pause = pause < PAUSE_MAX ? pause : PAUSE_MAX;
    p->due = ended + p->pause;
}

/* Peers read the line at each message, so it is written only when it changes. relaxed: nothing else is published by it.
 */
static void publish(uint32_t core)
{
    _Atomic uint32_t *p = &wires_bell()->core;
    uint32_t was = atomic_load_explicit(p, memory_order_relaxed), now;
    do {
        now = core | (was & BELL_CROWDED);
    } while (was != now && !atomic_compare_exchange_weak_explicit(p, &was, now, memory_order_relaxed, memory_order_relaxed));
}

void cores_say_crowded(bool crowded)
{
    _Atomic uint32_t *p = &wires_bell()->core;
    if (crowded) atomic_fetch_or_explicit(p, BELL_CROWDED, memory_order_relaxed);
    else atomic_fetch_and_explicit(p, ~BELL_CROWDED, memory_order_relaxed);
}

static int publish_own(void)
{
    int cpu = sched_getcpu();
    publish(cpu < 0 ? 0 : (uint32_t)cpu + 1);
    return cpu;
}

void cores_before_sleep(bool gate)
{
    int cpu = cores_compared() ? sched_getcpu() : -1;
    if (cpu >= 0) publish(((uint32_t)cpu + 1) | (gate ? BELL_AT_GATE : 0));
}

/*
 * Moves this thread to a core of its mask that is not taken; false if there is none. The kernel moves a thread whose
 * mask excludes its core; after that the mask is set back. The old core is withdrawn before, so that of two ranks only
 * one moves.
 */
static bool move(const cpu_set_t *taken)
{
    cpu_set_t mask, free;
    if (sched_getaffinity(0, sizeof mask, &mask)) return false;
    CPU_AND(&free, &mask, taken);
    CPU_XOR(&free, &free, &mask);
    if (!CPU_COUNT(&free)) return false;
    publish(0);
    bool moved = !sched_setaffinity(0, sizeof free, &free);
    if (moved) (void)sched_setaffinity(0, sizeof mask, &mask);
    publish_own();
    return moved;
}

static bool move_if_due(const cpu_set_t *taken, uint64_t now)
{
    if (!moves || now < pace.due) return false;
    bool moved = move(taken);
    cores_count_move(&pace, now, clock_ns(), moved);
    return moved;
}

bool cores_find_peer(uint64_t now, bool gate)
{
    cpu_set_t taken;
    int cpu = publish_own();
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    CPU_ZERO(&taken);
    if (wires_cores(gate, &taken)) return true;
    return !polls && CPU_ISSET((size_t)cpu, &taken) && !move_if_due(&taken, now);
}
