/* waits.c - see waits.h. */
#include "pt2pt/waits.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdlib.h>

struct waits waits;

/* ---- waiters ---- */

#define BLOCK 64
#define BLOCKS 1024 /* more threads than a process has */

static struct {
    pthread_mutex_t lock;
    _Atomic(struct waiter *) block[BLOCKS];
    _Atomic uint32_t count; /* that were ever made: their numbers are below it */
    struct link free;       /* by in_lane: of threads that have ended */
    pthread_key_t at_exit;
    bool have_key;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .free = LIST_INIT(all.free)};

static _Thread_local struct waiter *mine __attribute__((tls_model("initial-exec")));

static struct waiter *waiter_at(uint32_t number)
{
    /* acquire: pairs with the release in make, for a thread that has the number from `count` */
    return atomic_load_explicit(&all.block[number / BLOCK], memory_order_acquire) + number % BLOCK;
}

/* The thread ends: the next one that comes has its memory, and its number. If it waits once more, in a destructor of the program's, it
 * gets another one. */
static void give_back(void *waiter)
{
    struct waiter *w = waiter;
    if (!list_empty(&w->asleep) || !list_empty(&w->in_lane)) return; /* it was cancelled while it waited */
    mine = NULL;
    pthread_mutex_lock(&all.lock);
    list_push(&all.free, &w->in_lane);
    pthread_mutex_unlock(&all.lock);
}

/* With the lock; NULL when memory is out. */
static struct waiter *make(void)
{
    struct link *l = list_pop(&all.free);
    if (l) return container_of(l, struct waiter, in_lane);
    uint32_t n = atomic_load_explicit(&all.count, memory_order_relaxed);
    if (n == BLOCK * BLOCKS) return NULL;
    struct waiter *block = atomic_load_explicit(&all.block[n / BLOCK], memory_order_relaxed);
    if (!block) block = calloc(BLOCK, sizeof *block);
    if (!block) return NULL;
    struct waiter *w = &block[n % BLOCK];
    w->number = n;
    list_init(&w->asleep);
    list_init(&w->in_lane);
    atomic_store_explicit(&all.block[n / BLOCK], block, memory_order_release);
    atomic_store_explicit(&all.count, n + 1, memory_order_release); /* pairs with the acquire in tell_everybody */
    return w;
}

static TERN_COLD struct waiter *first_time(void)
{
    pthread_mutex_lock(&all.lock);
    if (!all.have_key) all.have_key = !pthread_key_create(&all.at_exit, give_back);
    mine = make();
    if (mine && all.have_key) pthread_setspecific(all.at_exit, mine); /* if it fails the memory is not used again */
    pthread_mutex_unlock(&all.lock);
    if (!mine) proc_abort(1, "no memory for a thread that waits. The job is ended.");
    return mine;
}

struct waiter *waits_mine(void) { return likely(mine != NULL) ? mine : first_time(); }

/* The library is unloaded: threads that end later call nothing of it. */
static __attribute__((destructor)) void forget_key(void)
{
    if (all.have_key) pthread_key_delete(all.at_exit);
    all.have_key = false;
}

void waits_open(bool threaded)
{
    waits = (struct waits){.lock = LOCK_INIT, .share = 1};
    atomic_store_explicit(&waits.threaded, threaded, memory_order_relaxed);
    list_init(&waits.asleep);
}

/* ---- telling ---- */

void waits_tell_one(struct waiter *w, uint32_t what)
{
    /* acq_rel: the waiter sees what was done before; acquire pairs with the release in sleep_by_bell (wait_threads.c) */
    uint32_t was = atomic_fetch_or_explicit(&w->state, what, memory_order_acq_rel);
    if (was == WAITER_AT_BELL) bell_ring(wires_bell());
    if (was != WAITER_ASLEEP) return;
    atomic_fetch_add_explicit(&waits.woken, 1, memory_order_relaxed);
    futex_wake_one(&w->state);
}

static TERN_COLD void tell_everybody(void)
{
    uint32_t n = atomic_load_explicit(&all.count, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) waits_tell_one(waiter_at(i), WAITER_TOLD);
}

/* request.complete of one that threads wait for: the number of the thread behind the last of these. */
enum { BY_SEVERAL = REQUEST_COMPLETE + 1, BY_ONE };

/* acquire: what was done to a request that is complete is seen */
bool waits_mark(struct request *r, const struct waiter *w)
{
    uint32_t mark = BY_ONE + w->number, now = atomic_load_explicit(&r->complete, memory_order_acquire);
    if (now == REQUEST_COMPLETE) return true;
    /* relaxed: read by threads in the lane; others look for REQUEST_COMPLETE only */
    atomic_store_explicit(&r->complete, now && now != mark ? (uint32_t)BY_SEVERAL : mark, memory_order_relaxed);
    return false;
}

void waits_tell_marked(uint32_t was)
{
    if (was >= BY_ONE) waits_tell_one(waiter_at(was - BY_ONE), WAITER_TOLD);
    else if (was == BY_SEVERAL) tell_everybody();
}

/* ---- the listener ---- */

bool waits_listen(void)
{
    uint32_t now = atomic_load_explicit(&waits.listened, memory_order_relaxed);
    while (!(now & WAITS_LISTENER))
        if (atomic_compare_exchange_weak_explicit(&waits.listened, &now, now | WAITS_LISTENER, memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* The sleeper that came first and is not up already; NULL if somebody is on the way who sees to it. With the lock. */
static struct waiter *choose(void)
{
    list_each(a, next, &waits.asleep)
    {
        struct waiter *w = container_of(a, struct waiter, asleep);
        uint32_t state = atomic_load_explicit(&w->state, memory_order_relaxed);
        if (state & WAITER_CALLED) return NULL;
        if (!(state & (WAITER_TOLD | WAITER_READY))) return w;
    }
    return NULL;
}

/* One that is told something else at the same time gets up, and sees to it all the same: it has been called. */
void waits_pass_on(void)
{
    uint32_t now = atomic_load_explicit(&waits.listened, memory_order_acquire);
    if (now & WAITS_LISTENER || now < WAITS_SLEEPER) return;
    lock_take(&waits.lock);
    bool none = !(atomic_load_explicit(&waits.listened, memory_order_relaxed) & WAITS_LISTENER);
    struct waiter *w = none ? choose() : NULL;
    uint32_t was = w ? atomic_fetch_or_explicit(&w->state, WAITER_CALLED, memory_order_acq_rel) : 0;
    lock_give(&waits.lock);
    if (was != WAITER_ASLEEP) return;
    atomic_fetch_add_explicit(&waits.woken, 1, memory_order_relaxed);
    futex_wake_one(&w->state); /* its memory stays */
}

void waits_leave(void)
{
    /* acq_rel: see 2. in waits.h; the next listener sees what this one did */
    uint32_t was = atomic_fetch_and_explicit(&waits.listened, ~(uint32_t)WAITS_LISTENER, memory_order_acq_rel);
    if (unlikely(was >= WAITS_SLEEPER)) waits_pass_on();
}

static void take_out(struct waiter *w)
{
    list_remove(&w->asleep);
    atomic_fetch_sub_explicit(&waits.listened, WAITS_SLEEPER, memory_order_relaxed);
}

bool waits_enrol(struct waiter *w)
{
    lock_take(&waits.lock);
    list_push(&waits.asleep, &w->asleep);
    bool listened = atomic_fetch_add_explicit(&waits.listened, WAITS_SLEEPER, memory_order_acq_rel) & WAITS_LISTENER;
    if (!listened) take_out(w);
    lock_give(&waits.lock);
    return listened;
}

uint32_t waits_withdraw(struct waiter *w)
{
    lock_take(&waits.lock);
    take_out(w);
    lock_give(&waits.lock);
    /* What it was told, but that its wait is over, is heard by this. */
    return atomic_fetch_and_explicit(&w->state, WAITER_READY, memory_order_acquire);
}

void waits_sleep(struct waiter *w, uint64_t most_ns)
{
    uint32_t told = 0;
    atomic_fetch_add_explicit(&waits.sleepers, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&w->state, &told, WAITER_ASLEEP, memory_order_acq_rel, memory_order_acquire))
        futex_sleep(&w->state, WAITER_ASLEEP, most_ns);
    atomic_fetch_sub_explicit(&waits.sleepers, 1, memory_order_relaxed);
}

/* ---- in a lane ---- */

void waits_look(struct link *waiters, struct link *over)
{
    list_each(a, next, waiters)
    {
        struct waiter *w = container_of(a, struct waiter, in_lane);
        if (!w->ready(w->arg)) continue;
        if (w->counted) gate_leave(w->gate, w->counted);
        w->counted = 0;
        list_remove(a);
        list_push(over, a);
    }
}

void waits_tell_all(struct link *over)
{
    for (struct link *a; (a = list_pop(over));) waits_tell_one(container_of(a, struct waiter, in_lane), WAITER_READY);
}
