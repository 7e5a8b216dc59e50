/* listen.c - see listen.h. */
#include "pt2pt/listen.h"
#include "pt2pt/cores.h"
#include "pt2pt/helper_sleep.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

/* ---- looking ---- */

/* What waiters of a lane wait for may come about without a message (gates). A lane that another thread is in is looked at by that. */
static void look_for_gates(struct lane *l)
{
    if (!atomic_load_explicit(&l->waited_in, memory_order_relaxed) || !lane_try(l)) return;
    l->changed = true;
    lane_leave(l);
}

int listen_look(void)
{
    struct lane *l;
    int n = lanes_turn(LANES_BUDGET);
    for (uint32_t i = 0; (l = lanes_at(i)); i++) look_for_gates(l);
    return n;
}

void listen_doubt(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) {
        lane_enter(l);
        if (!i) wires_wait_lasts();
        if (!i) progress_doubt(&progress_process);
        progress_doubt(&l->steps);
        l->changed = true; /* doubts may have ended what its waiters wait for */
        lane_leave(l);
    }
}

/* ---- a lane that another thread is in ---- */

static void ring(struct lane *l, struct mail *m)
{
    (void)m;
    atomic_store_explicit(&l->to_ring, false, memory_order_release); /* the mail is out: pairs with leave_word */
    bell_ring(wires_bell());
}

/* The listener has not looked at this lane: whoever is inside rings on leaving. Rings at once if nobody is. */
static void leave_word(struct lane *l)
{
    if (!atomic_exchange_explicit(&l->to_ring, true, memory_order_acq_rel)) lane_post(l, &l->ring);
}

void listen_open(struct lane *l) { l->ring.open = ring; }

/* ---- gates: lane held ---- */

/* Counts this process in the gates that threads wait at, asleep or not, and in those of steps; true if threads wait at some. */
static bool enter_gates(struct lane *l, struct bell *b, struct sleep_words *words)
{
    bool some = false;
    list_each(a, next, &l->waiters)
    {
        struct waiter *w = container_of(a, struct waiter, in_lane);
        if (w->gate) w->counted = gate_enter(w->gate, b, w->counted, words);
        some |= w->gate != NULL;
    }
    progress_sleep(&l->steps, words);
    return some;
}

/* No gate has come since. */
static bool is_counted(const struct lane *l)
{
    bool all = progress_is_counted(&l->steps);
    list_each(a, next, &l->waiters)
    {
        const struct waiter *w = container_of(a, struct waiter, in_lane);
        all &= !w->gate || w->counted;
    }
    return all;
}

static void leave_gates(struct lane *l)
{
    list_each(a, next, &l->waiters)
    {
        struct waiter *w = container_of(a, struct waiter, in_lane);
        if (w->counted) gate_leave(w->gate, w->counted);
        w->counted = 0;
    }
    progress_wake(&l->steps);
}

/* ---- the sleep ---- */

/* In all lanes that nobody is in, besides the first, which is held. A busy one is seen to by look_last, and may stay counted when
 * the listener gets up: that costs who opens the gate a system call. */
static bool enter_others(struct bell *b, struct sleep_words *words)
{
    struct lane *l;
    bool gates = false;
    for (uint32_t i = 1; (l = lanes_at(i)); i++) {
        if (!lane_try(l)) continue;
        gates |= enter_gates(l, b, words);
        lane_out(l);
    }
    return gates;
}

static void leave_others(void)
{
    struct lane *l;
    for (uint32_t i = 1; (l = lanes_at(i)); i++) {
        if (!lane_try(l)) continue;
        leave_gates(l);
        lane_out(l);
    }
}

/* Behind the announcement: nothing can be done in the lane, as far as the calling thread can see; *room: a step waits for room. Its
 * waiters look once more when it is left. Lane held. */
static bool look_last(struct lane *l, bool *room)
{
    bool idle = (this_is_the_helper || is_counted(l)) && progress_idle(&l->steps); /* gates do not wake the helper */
    *room |= progress_waits(&l->steps);
    l->slept_with = l->steps.active.prev;
    l->changed = true;
    return idle;
}

/* At all lanes; the first one is held. */
static bool look_last_at_all(bool *room)
{
    struct lane *l;
    bool idle = look_last(lanes_first(), room);
    for (uint32_t i = 1; (l = lanes_at(i)); i++) {
        if (!lane_try(l)) {
            leave_word(l);
            continue;
        }
        idle &= look_last(l, room);
        lane_out(l);
    }
    return idle;
}

/* Relaxed: ordered by the locks of the lanes, see 4. in waits.h. */
static void set_at_bell(enum at_bell who) { atomic_store_explicit(&waits.at_bell, who, memory_order_relaxed); }

bool listen_announce(struct waiter *self, struct sleep_words *words, uint32_t *ticket_p)
{
    struct lane *first = lanes_first();
    struct bell *b = wires_bell();
    uint32_t none = 0;
    bool room = false;
    lane_enter(first);
    bool gates = enter_gates(first, b, words);
    gates |= enter_others(b, words);
    cores_before_sleep(gates);
    *ticket_p = bell_announce(b);
    set_at_bell(AT_BELL_LISTENER);
    /* release: see 3. in waits.h */
    bool alone = atomic_compare_exchange_strong_explicit(&self->state, &none, WAITER_AT_BELL, memory_order_acq_rel,
                                                         memory_order_acquire);
    bool idle = look_last_at_all(&room);
    idle = alone && idle && wires_idle(room);
    lane_leave(first);
    return idle && atomic_load_explicit(&self->state, memory_order_acquire) == WAITER_AT_BELL;
}

void listen_get_up(struct waiter *self)
{
    struct lane *first = lanes_first();
    struct bell *b = wires_bell();
    lane_enter(first);
    set_at_bell(AT_BELL_NOBODY);
    bell_stay(b);
    leave_gates(first);
    leave_others();
    lane_leave(first);
    atomic_fetch_and_explicit(&self->state, WAITER_READY, memory_order_acquire);
}

/* ---- the helper ---- */

static bool nobody_waits(void) { return !atomic_load_explicit(&waits.waiting, memory_order_relaxed); }

/* Threads that begin to wait are counted first, and then look who is at the bell: 2. in helper_threads.h. */
bool listen_arm(void)
{
    struct lane *first = lanes_first();
    bool room = false;
    lane_enter(first);
    bool armed = nobody_waits();
    if (armed) {
        set_at_bell(AT_BELL_HELPER);
        helper_arm(wires_bell()); /* with a full barrier */
        armed = nobody_waits() && look_last_at_all(&room) && wires_idle(room);
        if (!armed) listen_disarm();
    }
    lane_out(first);
    return armed;
}

void listen_disarm(void)
{
    if (waits_at_bell() != AT_BELL_HELPER) return;
    set_at_bell(AT_BELL_NOBODY);
    helper_disarm(wires_bell());
    bell_stay(wires_bell());
}
