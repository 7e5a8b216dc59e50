/* lock.c - see lock.h. */
#include "base/lock.h"
#include "base/clock.h"
#include "base/sleep.h"

/* About a microsecond: most holders are out before. */
uint32_t lock_looks = 64;

/* Races that a sleeper loses before it asks for its turn. */
#define LOSSES 2

static uint32_t look(const struct lock *l) { return atomic_load_explicit(&l->word, memory_order_relaxed); }

static bool change(struct lock *l, uint32_t *from, uint32_t to, memory_order order)
{
    return atomic_compare_exchange_weak_explicit(&l->word, from, to, order, memory_order_relaxed);
}

static bool take_while_awake(struct lock *l)
{
    for (uint32_t i = 0; i < lock_looks; i++) {
        if (lock_try(l)) return true;
        cpu_relax();
    }
    return false;
}

/* One look of a sleeper that is awake: true if it has the lock, and counts as a sleeper no more. Else *word is what it may
 * sleep on. */
static bool take_as_sleeper(struct lock *l, bool turn, uint32_t *word)
{
    uint32_t w = look(l);
    for (;;) {
        uint32_t rest = w & ~(uint32_t)LOCK_WOKEN;
        if (w & LOCK_HANDED || !(w & LOCK_HELD)) {
            uint32_t mine = ((rest & ~(uint32_t)LOCK_HANDED) | LOCK_HELD) - LOCK_SLEEPER;
            if (change(l, &w, mine, memory_order_acquire)) return true;
            continue;
        }
        if (turn) rest |= LOCK_TURN;
        *word = rest;
        if (rest == w || change(l, &w, rest, memory_order_relaxed)) return false;
    }
}

static void sleep_for(struct lock *l)
{
    uint32_t word;
    atomic_fetch_add_explicit(&l->word, LOCK_SLEEPER, memory_order_relaxed);
    for (int losses = 0; !take_as_sleeper(l, losses >= LOSSES, &word); losses++) futex_sleep(&l->word, word, 0);
}

void lock_wait(struct lock *l)
{
    uint64_t since = clock_ns();
    if (!take_while_awake(l)) sleep_for(l);
    l->waits++;
    l->waited_ns += clock_ns() - since;
}

bool lock_give_on(struct lock *l)
{
    for (uint32_t w = look(l);;) {
        bool asleep = w >= LOCK_SLEEPER, hand = asleep && w & LOCK_TURN;
        if (w & LOCK_MAIL) {
            if (change(l, &w, w & ~(uint32_t)LOCK_MAIL, memory_order_acquire)) return false;
            continue;
        }
        uint32_t next = w & ~(uint32_t)(LOCK_TURN | LOCK_HELD);
        if (hand) next |= LOCK_HELD | LOCK_HANDED;
        bool wake = asleep && !(w & LOCK_WOKEN);
        if (wake) next |= LOCK_WOKEN;
        if (!change(l, &w, next, memory_order_release)) continue;
        if (wake) futex_wake_one(&l->word);
        return true;
    }
}

bool lock_note(struct lock *l)
{
    for (uint32_t w = look(l);;) {
        if (!(w & LOCK_HELD)) {
            if (change(l, &w, w | LOCK_HELD, memory_order_acquire)) return true;
        } else if (change(l, &w, w | LOCK_MAIL, memory_order_release)) {
            return false;
        }
    }
}
