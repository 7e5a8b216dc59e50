/* lanes.c - see lanes.h. */
#include "pt2pt/lanes.h"
#include "base/err.h"
#include "base/var.h"
#include "obj/hints.h"
#include "proc/proc.h"
#include "pt2pt/check.h"
#include "pt2pt/lane.h"
#include "pt2pt/share.h"
#include "transport/wire_lock.h"

#include <stdlib.h>
#include <string.h>

static struct lane first;
static struct lane *by_number[LANES_MAX]; /* the first one in place of those that have not been made */
static _Atomic(struct lane *) made[LANES_MAX]; /* in the order in which they were made */
static _Atomic uint32_t made_count;
static _Atomic uint32_t most;             /* lanes that there may be. Relaxed: any value that it has had will do */
static struct lock making;                /* a leaf */

struct lane *lanes_first(void) { return &first; }

/* acquire: pairs with the release in enter */
struct lane *lanes_at(uint32_t i)
{
    return i < LANES_MAX ? atomic_load_explicit(&made[i], memory_order_acquire) : NULL;
}

bool lanes_are_several(void) { return atomic_load_explicit(&made_count, memory_order_relaxed) > 1; }

struct lane *lanes_of_id(uint64_t id)
{
    return __atomic_load_n(&by_number[ids_lane(id)], __ATOMIC_RELAXED); /* the id says that the lane was there before */
}

/* ---- one more ---- */

/* In each lane, a step that looks at the steps of the others. It is on while there are others. */
static int look_at_others(struct step *s)
{
    static bool looking; /* its own step is among those of another lane */
    struct lane *mine = container_of(s, struct lane, others), *l;
    int n = 0;
    if (looking) return 0;
    looking = true;
    for (uint32_t i = 0; (l = lanes_at(i)); i++)
        if (l != mine) n += progress_turn(&l->steps);
    looking = false;
    return n;
}

static const struct step_ops others_ops = {.name = "steps of other lanes", .poll = look_at_others};

static void know_others(struct lane *l)
{
    l->others = (struct step){.ops = &others_ops};
    step_on(&l->steps, &l->others);
}

static void enter(struct lane *l)
{
    uint32_t n = atomic_load_explicit(&made_count, memory_order_relaxed);
    atomic_store_explicit(&made[n], l, memory_order_release);
    atomic_store_explicit(&made_count, n + 1, memory_order_relaxed);
}

static struct lane *make(uint32_t number)
{
    struct lane *l = aligned_alloc(CACHE_LINE, round_up(sizeof *l, CACHE_LINE));
    if (!l) return &first;
    lane_open(l, number);
    if (!lane_threaded()) { /* threads look at all of them outside (lanes_turn) */
        if (!lanes_are_several()) know_others(&first);
        know_others(l);
    }
    enter(l);
    __atomic_store_n(&by_number[number], l, __ATOMIC_RELEASE);
    return l;
}

/* Until the transports are shared the thread is inside meanwhile, so that another one which begins to share the lanes finds this one,
 * and the lock is not one that is taken before and given back behind that. */
static struct lane *with_number(uint32_t number)
{
    bool alone = !wires_are_shared();
    if (alone) lane_enter(&first);
    leaf_take(&making);
    struct lane *l = by_number[number];
    if (number && l == &first) l = make(number);
    leaf_give(&making);
    if (alone) lane_out(&first);
    return l;
}

/* ---- the choice ---- */

static uint32_t times_chosen(uint32_t number)
{
    const struct lane *l = __atomic_load_n(&by_number[number], __ATOMIC_ACQUIRE);
    return number && l == &first ? 0 : atomic_load_explicit(&l->chosen, memory_order_relaxed);
}

static uint32_t least_chosen(void)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < most; i++)
        if (times_chosen(i) <= times_chosen(best)) best = i; /* of several the last: contexts begin with the first */
    return best;
}

/* By the hint, which obj/hints.c has checked; else by the context. */
static uint32_t number_for(const char *hint, uint64_t ctx)
{
    if (!hint) return (uint32_t)((ctx >> 1) % most);
    if (!strcmp(hint, "shared")) return 0;
    if (!strcmp(hint, "own")) return least_chosen();
    return (uint32_t)strtoul(hint, NULL, 10) % most;
}

static TERN_COLD struct lane *choose(const struct comm *c)
{
    const struct comm *whole = c->around ? c->around : c;
    if (pt_checking || comm_has_others(whole)) return &first; /* checking: a signature precedes its message */
    if (c->predefined == (uintptr_t)MPI_COMM_SELF) return &first; /* it is made before it is known whether threads call */
    if (c->within) return c->within->lane;
    struct lane *l = with_number(number_for(whole->info ? info_get(whole->info, "tern_lane") : NULL, c->ctx));
    atomic_fetch_add_explicit(&l->chosen, 1, memory_order_relaxed);
    return l;
}

struct lane *lanes_choose(const struct comm *c) { return likely(most == 1) ? &first : choose(c); }

/* ---- all of them ---- */

void lanes_look(void)
{
    if (unlikely(lane_mode())) {
        lane_poll_outside(&first);
        return;
    }
    lane_enter_alone();
    lane_poll(&first);
    lane_leave(&first);
}

bool lanes_idle(void)
{
    struct lane *l;
    bool idle = true; /* in this order: a look may have ended something */
    for (uint32_t i = 0; (l = lanes_at(i)); i++) idle &= progress_idle(&l->steps);
    return idle && lanes_still();
}

bool lanes_still(void)
{
    struct lane *l;
    bool still = true;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) still &= progress_still(&l->steps);
    return still;
}

static bool any(bool (*question)(const struct progress *))
{
    struct lane *l;
    bool some = false;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) some |= question(&l->steps);
    return some;
}

bool lanes_wait_for_room(void) { return any(progress_waits); }
bool lanes_have_own(void) { return any(progress_has_own); }
bool lanes_follow(void) { return any(progress_follows); }

bool lanes_armed(void)
{
    struct lane *l;
    bool now = false;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) now |= progress_armed(&l->steps);
    return now;
}

void lanes_sleep(struct sleep_words *words)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) progress_sleep(&l->steps, words);
}

void lanes_wake(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) progress_wake(&l->steps);
}

void lanes_doubt(void)
{
    struct lane *l;
    progress_doubt(&progress_process);
    for (uint32_t i = 0; (l = lanes_at(i)); i++) progress_doubt(&l->steps);
}

/* ---- life ---- */

/* For threads: 2 lanes a core, so that two of their communicators seldom share one; more would not be used at a time. */
static uint32_t for_threads(void)
{
    uint32_t n = 2 * proc_self()->usable_cpus;
    return n < 4 ? 4 : n > 16 ? 16 : n;
}

/* TERN_LANES as a number; 0: auto. */
static int read_variable(uint32_t *n_p)
{
    const char *text = var_text(VAR_LANES);
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    bool is_auto = !strcmp(text, "auto");
    if (!is_auto && (*text < '0' || *text > '9' || *end || n < 1 || n > LANES_MAX))
        return err_set(TERN_ERR_ARG, "variable TERN_LANES: '%s' is neither auto nor a number from 1 to %d", text, LANES_MAX);
    *n_p = is_auto ? 0 : (uint32_t)n;
    return 0;
}

static void set_most(uint32_t wanted, bool threaded)
{
    most = wanted ? wanted : threaded ? for_threads() : 1;
}

int lanes_prepare(void)
{
    uint32_t wanted = 0;
    int rc = read_variable(&wanted);
    if (!rc) set_most(wanted, true);
    return rc;
}

/* Each lane looks at its own steps, once threads look at all lanes. */
static void come_into(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct lane *l = lanes_at(i);
        lane_was_shared(l);
        step_off(&l->others);
    }
}

/* Other threads may make more lanes meanwhile, which this one is not in. */
static void leave(uint32_t n)
{
    while (n-- > 0) lane_out(lanes_at(n));
}

/* Of the lanes from this one on; how many there are. Nobody has the lock of a lane that is not shared, so it is taken before
 * anybody may look for it. Where a helper has been, the thread that is inside may have the first one, and gives it back when it
 * leaves, or waits. */
static uint32_t take_locks(uint32_t from)
{
    struct lane *l;
    bool mine[LANES_MAX];
    uint32_t n = from;
    for (; (l = lanes_at(n)); n++) mine[n] = lock_try(&l->lock);
    share_begin();
    for (uint32_t i = from; i < n; i++)
        if (!mine[i]) lock_take(&lanes_at(i)->lock);
    return n;
}

int lanes_share(struct quiet *others)
{
    uint32_t n = 0;
    int rc = lanes_prepare();
    if (rc) return rc;
    while (lanes_at(n)) { /* a thread that is still inside may be making one more */
        n = take_locks(n);
        share_await(others);
    }
    come_into(n);
    share_wires();
    leave(n);
    return 0;
}

int lanes_open(bool threaded)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < LANES_MAX; i++) by_number[i] = &first;
    most = 1;
    atomic_store_explicit(&lanes_mode, threaded ? LANE_THREADED : 0, memory_order_relaxed);
    lane_open(&first, 0);
    enter(&first);
    int rc = read_variable(&wanted);
    if (rc) return rc;
    set_most(wanted, threaded);
    return 0;
}

void lanes_close(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) {
        lane_close(l);
        if (l != &first) free(l);
        atomic_store_explicit(&made[i], NULL, memory_order_relaxed);
    }
    atomic_store_explicit(&made_count, 0, memory_order_relaxed);
}
