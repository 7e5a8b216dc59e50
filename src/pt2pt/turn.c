/*
 * turn.c - progress, one turn at a time: of a lane by the thread that is inside, and, once threads share the transports, of
 * all wires and lanes by a thread that is in none.
 */
#include "pt2pt/lane.h"
#include "pt2pt/api.h"
#include "pt2pt/lanes.h"
#include "transport/wire_lock.h"

/* Messages delivered from one ring before the others have their turn. */
#define BUDGET LANES_BUDGET
#define SHORT_BUDGET 8

static inline int turn(struct lane *l, int budget)
{
    int n = wires_progress(budget);
    return n + progress_turn(&l->steps);
}

void lane_step_on(struct lane *l, struct step *s)
{
    step_on(&l->steps, s);
    if (unlikely(waits_at_bell())) bell_ring(wires_bell()); /* the listener does not look at this one yet */
}

static __attribute__((noinline)) int turn_among_threads(struct lane *l)
{
    int n = wires_poll(BUDGET, true);
    return n + lane_steps(l);
}

int lane_progress(struct lane *l) { return unlikely(wires_threaded) ? turn_among_threads(l) : turn(l, BUDGET); }
int lane_short_turn(struct lane *l) { return turn(l, SHORT_BUDGET); }

/* ---- once threads share the transports ---- */

/* The steps of the process are the first lane's. */
int lane_steps(struct lane *l)
{
    int n = l == lanes_first() ? wires_steps(true) : 0;
    return n + progress_turn(&l->steps);
}

/* Wires are not polled while some lane has too much mail: its holder is busy, or does not run. */
static bool is_full(void)
{
    struct lane *l;
    bool full = false;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) full |= deliver_is_full(l);
    return full;
}

static int wires_turn(int budget)
{
    return unlikely(is_full()) ? 0 : wires_poll(budget, true);
}

/* Turns of a thread between two looks at the first lane without an indication: the steps of the process give none. */
#define FIRST_EVERY 8

static bool has_work(struct lane *l)
{
    static _Thread_local uint32_t looks __attribute__((tls_model("initial-exec")));
    return atomic_load_explicit(&l->working, memory_order_relaxed) ||
           atomic_load_explicit(&l->steps.news, memory_order_relaxed) || (l == lanes_first() && ++looks % FIRST_EVERY == 0);
}

/* How often a lane with something to look at is found busy before it is waited for: threads that always come back would keep
 * those out that look. */
#define TRIES 16

static bool is_kept_out(struct lane *l)
{
    uint32_t n = atomic_load_explicit(&l->tries, memory_order_relaxed) + 1;
    atomic_store_explicit(&l->tries, n, memory_order_relaxed); /* a mere hint */
    return n % TRIES == 0;
}

/* `wait`: for the thread that is inside, which may have looked before there was work, and leave it. */
static int look_at(struct lane *l, bool wait)
{
    if (lane_is_mine(l)) return lane_steps(l);
    if (!lane_try(l)) {
        if (!wait && !is_kept_out(l)) return 0;
        lane_enter(l);
    }
    int n = lane_steps(l);
    lane_leave(l);
    return n;
}

static int all_steps(bool wait)
{
    struct lane *l;
    int n = 0;
    for (uint32_t i = 0; (l = lanes_at(i)); i++)
        if (has_work(l)) n += look_at(l, wait);
    return n;
}

/* Types are compared by what came before a message (check.h): so all that comes is handled at once. And lanes become shared a
 * moment before the transports (pt_share). */
static bool turns_are_inside(void) { return unlikely(pt_checking || !wires_are_shared()); }

static int turn_inside(int budget)
{
    struct lane *l = lanes_first();
    lane_enter(l);
    int n = turn(l, budget);
    lane_out(l);
    return n;
}

int lanes_turn(int budget)
{
    if (turns_are_inside()) return turn_inside(budget);
    int n = wires_turn(budget);
    return n + all_steps(false);
}

int lanes_look_around(void)
{
    if (turns_are_inside()) return turn_inside(LANES_BUDGET);
    int n = wires_turn(LANES_BUDGET);
    return n + all_steps(true);
}

/* ---- before a sleep ---- */

bool lane_still(void) { return lanes_still() && wires_idle(lanes_wait_for_room()); }

bool lane_idle(void) { return lanes_idle() && wires_idle(lanes_wait_for_room()); }
