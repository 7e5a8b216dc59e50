/* win_lock.c - see win_lock.h. */
#include "rma/win_lock.h"

#include <sched.h>
#include <time.h>

static enum win_seat state_of(uint64_t seat) { return (enum win_seat)(seat & 0xff); }

static enum win_seat look(const struct win_locking *l, uint32_t seat)
{
    /* acquire: pairs with the release in set: who sees a grant has the lock */
    return state_of(atomic_load_explicit(&l->seats[seat], memory_order_acquire));
}

static void set(const struct win_locking *l, uint32_t seat, enum win_seat state, uint64_t ticket)
{
    atomic_store_explicit(&l->seats[seat], ticket << 8 | state, memory_order_release);
}

/* ---- the guard ---- */

/* One who has it is not in the middle of anything that lasts, unless it has lost its core. */
static void step_back(unsigned looks)
{
    const struct timespec nap = {.tv_nsec = 50000};
    if (looks < 64) cpu_relax();
    else if (looks < 256) sched_yield();
    else nanosleep(&nap, NULL);
}

static void take_guard(const struct win_locking *l)
{
    for (unsigned looks = 0;; looks++) {
        uint32_t holder = 0;
        if (atomic_compare_exchange_strong_explicit(&l->lock->guard, &holder, l->own + 1, memory_order_acquire, memory_order_relaxed))
            return;
        /* of a dead process: whoever comes first has it now */
        if (looks >= 64 && l->ops->is_dead(l->arg, holder - 1) &&
            atomic_compare_exchange_strong_explicit(&l->lock->guard, &holder, l->own + 1, memory_order_acquire, memory_order_relaxed))
            return;
        step_back(looks);
    }
}

static void give_guard(const struct win_locking *l) { atomic_store_explicit(&l->lock->guard, 0, memory_order_release); }

/* ---- grants: with the guard ---- */

static bool is_waiting(enum win_seat s) { return s == SEAT_WAITS_SHARED || s == SEAT_WAITS_EXCLUSIVE; }

/* The seat with the lowest ticket; l->n: nobody waits. */
static uint32_t first_waiting(const struct win_locking *l)
{
    uint32_t first = l->n;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < l->n; i++) {
        uint64_t seat = atomic_load_explicit(&l->seats[i], memory_order_acquire);
        if (!is_waiting(state_of(seat)) || seat >> 8 >= lowest) continue;
        lowest = seat >> 8;
        first = i;
    }
    return first;
}

/* The word first, then the seat: a process that dies in between has counted one too many, which is counted again. */
static void grant(const struct win_locking *l, uint32_t seat, bool exclusive)
{
    uint64_t add = exclusive ? (uint64_t)(seat + 1) << WIN_LOCK_HOLDER_SHIFT : 1;
    atomic_fetch_add_explicit(&l->lock->word, add, memory_order_acq_rel);
    set(l, seat, exclusive ? SEAT_GRANTED : SEAT_HOLDS, 0);
    l->ops->wake(l->arg, seat);
}

/* To all who can have it now. While QUEUED is set nobody else takes the lock. */
static void grant_all(const struct win_locking *l)
{
    for (uint32_t seat; (seat = first_waiting(l)) < l->n;) {
        bool exclusive = look(l, seat) == SEAT_WAITS_EXCLUSIVE;
        uint64_t word = atomic_load_explicit(&l->lock->word, memory_order_acquire);
        if (word & (exclusive ? WIN_LOCK_HOLDER | WIN_LOCK_COUNT : WIN_LOCK_HOLDER)) return;
        grant(l, seat, exclusive);
    }
    atomic_fetch_and_explicit(&l->lock->word, ~WIN_LOCK_QUEUED, memory_order_acq_rel);
}

void win_lock_pass_on(const struct win_locking *l)
{
    take_guard(l);
    grant_all(l);
    give_guard(l);
}

/* ---- taking and giving ---- */

bool win_lock_try_shared(const struct win_locking *l)
{
    uint64_t word = atomic_load_explicit(&l->lock->word, memory_order_relaxed);
    set(l, l->own, SEAT_TAKES, 0);
    while (!(word & ~WIN_LOCK_COUNT))
        if (atomic_compare_exchange_weak_explicit(&l->lock->word, &word, word + 1, memory_order_acq_rel, memory_order_relaxed)) {
            set(l, l->own, SEAT_HOLDS, 0);
            return true;
        }
    set(l, l->own, SEAT_FREE, 0);
    return false;
}

bool win_lock_request(const struct win_locking *l, enum win_lock_mode mode)
{
    bool exclusive = mode == WIN_LOCK_EXCLUSIVE;
    if (exclusive ? win_lock_try_exclusive(l) : win_lock_try_shared(l)) return true;
    take_guard(l);
    uint64_t ticket = atomic_fetch_add_explicit(&l->lock->tickets, 1, memory_order_relaxed);
    set(l, l->own, exclusive ? SEAT_WAITS_EXCLUSIVE : SEAT_WAITS_SHARED, ticket);
    atomic_fetch_or_explicit(&l->lock->word, WIN_LOCK_QUEUED, memory_order_acq_rel);
    grant_all(l); /* it may have been given back before QUEUED was set */
    give_guard(l);
    if (!win_lock_is_granted(l)) return false;
    win_lock_granted(l);
    return true;
}

bool win_lock_is_granted(const struct win_locking *l) { return !is_waiting(look(l, l->own)); }

void win_lock_granted(const struct win_locking *l)
{
    if (look(l, l->own) == SEAT_GRANTED) set(l, l->own, SEAT_FREE, 0);
}

void win_lock_give_shared(const struct win_locking *l)
{
    set(l, l->own, SEAT_GIVES, 0);
    uint64_t word = atomic_fetch_sub_explicit(&l->lock->word, 1, memory_order_acq_rel);
    set(l, l->own, SEAT_FREE, 0);
    if (unlikely(word & WIN_LOCK_QUEUED)) win_lock_pass_on(l);
}

void win_lock_withdraw(const struct win_locking *l, enum win_lock_mode mode)
{
    take_guard(l);
    bool waits = is_waiting(look(l, l->own));
    if (waits) set(l, l->own, SEAT_FREE, 0);
    grant_all(l);
    give_guard(l);
    if (waits) return;
    win_lock_granted(l);
    if (mode == WIN_LOCK_EXCLUSIVE) win_lock_give_exclusive(l);
    else win_lock_give_shared(l);
}

/* ---- after a death: with the guard ---- */

/* How many seats hold the lock; false: one is just taking or giving it. */
static bool count_holders(const struct win_locking *l, uint64_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        enum win_seat s = look(l, i);
        if ((s == SEAT_TAKES || s == SEAT_GIVES) && !l->ops->is_dead(l->arg, i)) return false;
        *count += s == SEAT_HOLDS;
    }
    return true;
}

/* A word that changes meanwhile was changed by a seat that gives: it is read, and the seats are counted, anew. */
static void count_again(const struct win_locking *l)
{
    atomic_fetch_or_explicit(&l->lock->word, WIN_LOCK_FROZEN, memory_order_acq_rel);
    for (unsigned looks = 0;; step_back(looks++)) {
        uint64_t word = atomic_load_explicit(&l->lock->word, memory_order_acquire), count;
        if (!count_holders(l, &count)) continue;
        uint64_t right = (word & ~(WIN_LOCK_COUNT | WIN_LOCK_FROZEN)) | count;
        if (atomic_compare_exchange_strong_explicit(&l->lock->word, &word, right, memory_order_acq_rel, memory_order_relaxed)) return;
    }
}

/* What was granted to a live process by one that died before it could say so in the seat. */
static void complete_grant(const struct win_locking *l)
{
    uint64_t holder = (atomic_load_explicit(&l->lock->word, memory_order_acquire) & WIN_LOCK_HOLDER) >> WIN_LOCK_HOLDER_SHIFT;
    if (!holder || holder > l->n || look(l, (uint32_t)holder - 1) != SEAT_WAITS_EXCLUSIVE) return;
    set(l, (uint32_t)holder - 1, SEAT_GRANTED, 0);
    l->ops->wake(l->arg, (uint32_t)holder - 1);
}

void win_lock_forget(const struct win_locking *l, uint32_t seat)
{
    take_guard(l);
    if (look(l, seat) != SEAT_DEAD) {
        set(l, seat, SEAT_DEAD, 0);
        uint64_t word = atomic_load_explicit(&l->lock->word, memory_order_acquire);
        if ((word & WIN_LOCK_HOLDER) >> WIN_LOCK_HOLDER_SHIFT == seat + 1)
            atomic_fetch_and_explicit(&l->lock->word, ~WIN_LOCK_HOLDER, memory_order_acq_rel);
        complete_grant(l);
        count_again(l);
        grant_all(l);
    }
    give_guard(l);
}
