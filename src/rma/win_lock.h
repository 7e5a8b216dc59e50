/*
 * win_lock.h - the lock of one target in one window (MPI_Win_lock, MPI-5.0 section 12.5.3): words in memory that all
 * processes of the target's node have mapped. An origin takes it without the target.
 *
 *     word    0 ... 15         16 ... 31               32       33
 *           | shared holders | exclusive holder + 1 | QUEUED | FROZEN |
 *
 *     seats   one for each process of the node that is in the window, and one for the origins of other nodes, for which
 *             the target itself takes the lock (serve.h):
 *             0 ... 7   8 ... 63
 *           | state   | ticket |
 *
 * Taking it, and giving it back, is one atomic read-modify-write of the word as long as nobody waits. An origin that finds
 * it held takes a ticket and sets QUEUED. From then on nobody takes the lock by himself: whoever gives it back grants it to
 * the lowest ticket, and to the next ones as long as all of them want it shared. So the order is that of the requests, and
 * no kind of request starves the other.
 *
 *     FREE --> TAKES --> HOLDS --> GIVES --> FREE           shared, nobody waits
 *     FREE --> WAITS_SHARED --> HOLDS --> GIVES --> FREE    shared, granted
 *     FREE                                                  exclusive, nobody waits: the word says whose it is
 *     FREE --> WAITS_EXCLUSIVE --> GRANTED --> FREE         exclusive, granted
 *     any  --> DEAD                                         the process has died (win_lock_forget)
 *
 * Tickets and grants are made under the guard, which is held for some instructions. Its word says who has it, so that it can
 * be taken away from a process that has died there.
 *
 * A process that dies may hold the lock, wait for it, or be anywhere in between. What it had is taken back by any other
 * process that hears of it. An exclusive holder is in the word. Shared holders are counted again: FROZEN keeps others from
 * taking the lock meanwhile, and a seat that TAKES or GIVES is waited for, as its process is about to go on.
 *
 * Order: taking the lock, granted or not, is an acquire; giving it back is a release. All changes of the word are
 * read-modify-writes with acquire and release, so a process that finds the word changed finds the seat that was written
 * before.
 *
 * Threads: a seat belongs to one thread at a time.
 */
#ifndef TERN_RMA_WIN_LOCK_H
#define TERN_RMA_WIN_LOCK_H

#include "base/compiler.h"

#include <stdatomic.h>

#define WIN_SEATS_MAX 1024

enum win_lock_mode { WIN_LOCK_SHARED, WIN_LOCK_EXCLUSIVE };

/* Shared memory, zero at first. */
struct win_lock {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint64_t word;
    _Atomic uint32_t guard;   /* seat + 1 of the process that has it */
    uint32_t pad;
    _Atomic uint64_t tickets; /* given out so far; changed under the guard */
    uint64_t pad2;
};
static_assert(sizeof(struct win_lock) == CACHE_LINE, "shared layout");

/* What a process knows of a lock. Two functions of the layer above, for the process that a seat belongs to: */
struct win_lock_ops {
    void (*wake)(void *arg, uint32_t seat); /* it may sleep, and has been granted the lock */

    /* It has died. Without progress of the calling process: it may wait for a process that has died at this moment. */
    bool (*is_dead)(void *arg, uint32_t seat);
};
struct win_locking {
    struct win_lock *lock;
    _Atomic uint64_t *seats;
    uint32_t n, own; /* seats, and the one that this process acts for */
    const struct win_lock_ops *ops;
    void *arg;
};

#define WIN_LOCK_HOLDER_SHIFT 16
#define WIN_LOCK_COUNT ((uint64_t)0xffff)
#define WIN_LOCK_HOLDER ((uint64_t)0xffff << WIN_LOCK_HOLDER_SHIFT)
#define WIN_LOCK_QUEUED ((uint64_t)1 << 32)
#define WIN_LOCK_FROZEN ((uint64_t)1 << 33)

enum win_seat { SEAT_FREE, SEAT_TAKES, SEAT_HOLDS, SEAT_GIVES, SEAT_WAITS_SHARED, SEAT_WAITS_EXCLUSIVE, SEAT_GRANTED, SEAT_DEAD };

static inline bool win_lock_try_exclusive(const struct win_locking *l)
{
    uint64_t free = 0;
    return atomic_compare_exchange_strong_explicit(&l->lock->word, &free, (uint64_t)(l->own + 1) << WIN_LOCK_HOLDER_SHIFT,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* True: the lock is the caller's. */
bool win_lock_try_shared(const struct win_locking *);

/* The same, or the request is queued: then the seat is asked (win_lock_is_granted) whenever this process has been woken. */
bool win_lock_request(const struct win_locking *, enum win_lock_mode) TERN_COLD;
bool win_lock_is_granted(const struct win_locking *); /* may be asked by any thread */
void win_lock_granted(const struct win_locking *);    /* the owner of the seat has seen that */

/* The request that was queued is withdrawn; a lock that was granted meanwhile is given back. */
void win_lock_withdraw(const struct win_locking *, enum win_lock_mode) TERN_COLD;

void win_lock_pass_on(const struct win_locking *) TERN_COLD; /* it was given back, and others wait */
void win_lock_give_shared(const struct win_locking *);
static inline void win_lock_give_exclusive(const struct win_locking *l)
{
    uint64_t word = atomic_fetch_and_explicit(&l->lock->word, ~WIN_LOCK_HOLDER, memory_order_acq_rel);
    if (unlikely(word & WIN_LOCK_QUEUED)) win_lock_pass_on(l);
}

/* The process of this seat has died: it holds nothing, and waits for nothing. Any number of processes may say so, at the same
 * time. */
void win_lock_forget(const struct win_locking *, uint32_t seat) TERN_COLD;

#endif
