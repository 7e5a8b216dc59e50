/*
 * transfer.h - data on their way from the memory of one process to that of another one of the node: a description that both have mapped,
 * and that whoever is free works on.
 *
 *     line 1   from: address, place, bytes, said | to: address, place, bytes, said      each side writes its own end
 *     line 2   next | done | chunk, first | error | life                                the work
 *
 * Each side writes down its end, and says so with a number that both know. When both ends are said the transfer is *met*, and the work
 * begins. It is claimed chunk by chunk: by sender or receiver, by the caller or the helper, whoever is inside the library. Nobody waits
 * for anybody while chunks are left.
 *
 *     one end said ---> both said: met ---> a chunk is claimed (next + 1) ---> copied ---> done + 1 ---> all are done: over
 *                                              ^                                |
 *                                              +--------------------------------+
 *
 * Who adds the last one to `done` tells the other side. A copy that fails makes `error`, and claims and counts all chunks that are left,
 * so a transfer is over in any case. A process that cannot reach the other one's memory says that it is helpless, and leaves the work to
 * the other; when both are, the error is TERN_ERR_UNSUPPORTED, and the caller takes another way.
 *
 * The memory: a transfer of a collective lies in a block of the ranks', and is used again under another number. One that a process makes
 * for a message has a life. Its maker is the sender, or a receiver that is early (pt2pt/rndv/ready.h):
 *
 *     OPEN ---(the other side may take it)--------> TAKEN ---+
 *      | |  <---(and give it back, not begun)---------'      |
 *      | |                                                   +---(the other side looks no more)---> CLOSED: the memory is the maker's again
 *      | +----(the maker takes it back)-------> WITHDRAWN ---+
 *      +-----------------------------------------------------+
 *
 * OPEN to TAKEN or WITHDRAWN is one exchange, so only one of the two happens. It is needed where both may want it at the same time.
 *
 * A process that dies leaves chunks that were claimed and not copied. Who hears of that stops the work (no chunk is claimed any more), and
 * ends what it has to do with the dead process by an error.
 *
 * In a collective, the death of a third process ends the operation at all others, each when it hears of it. A process that ends before
 * its transfers are over *retracts* its ends: no chunk is claimed any more, even if the other side says its end only later. Its memory is
 * its own again when those that were claimed are done.
 *
 * Both ends may be in one process. Then that process copies, and any other one that can reach its memory carries chunks.
 *
 * test/sim/transfer_sim_test runs this code in all orders of its steps.
 *
 * Threads: any may work on a transfer; `life`, by the two sides.
 */
#ifndef TERN_TRANSFER_TRANSFER_H
#define TERN_TRANSFER_TRANSFER_H

#include "base/compiler.h"
#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct tp_ep;

enum transfer_side { TRANSFER_FROM, TRANSFER_TO };

struct transfer_end {
    uint64_t at;    /* address in the process of this end */
    uint64_t place; /* where that is in its arena (transport/arena.h); 0: not there */
    uint64_t bytes;
    _Atomic uint32_t said;     /* the number of the transfer, when the words above are of it */
    _Atomic uint32_t helpless; /* 1: this process cannot reach the memory of the other; all is for the other to do */
};

enum transfer_life { TRANSFER_OPEN, TRANSFER_TAKEN, TRANSFER_WITHDRAWN, TRANSFER_CLOSED };

struct transfer {
    struct transfer_end end[2];
    _Atomic uint32_t next, done; /* chunks claimed, and copied; `next` may go beyond their number */
    uint32_t chunk;              /* bytes of one; the sender writes it down */
    uint32_t first;              /* that is copied first, modulo their number */
    _Atomic int32_t error;       /* of a copy, enum tern_err; the same at both sides when it is over */
    _Atomic uint32_t life;       /* enum transfer_life */
};
static_assert(sizeof(struct transfer) == 88 && offsetof(struct transfer, next) == 64, "shared layout");

/* ---- both sides ---- */

/* All is there of the own end. release: pairs with transfer_is_said */
static inline void transfer_say(struct transfer *t, enum transfer_side side, uint32_t number, const void *at, uint64_t place,
                                uint64_t bytes)
{
    struct transfer_end *e = &t->end[side];
    e->at = (uintptr_t)at;
    e->place = place;
    e->bytes = bytes;
    atomic_store_explicit(&e->said, number, memory_order_release);
}

static inline bool transfer_is_said(const struct transfer *t, enum transfer_side side, uint32_t number)
{
    return atomic_load_explicit(&t->end[side].said, memory_order_acquire) == number;
}

/* The work begins anew: memory that is used again. By the sender, before it says its end. */
void transfer_renew(struct transfer *);

/* Bytes of a chunk, for so many bytes and at most so many: several, so that both sides get some; small ones in two. */
static inline uint32_t transfer_chunk(uint64_t bytes, uint64_t most)
{
    uint64_t half = (bytes / 2 + 4095) & ~(uint64_t)4095, many = bytes >> 30; /* so that their number has room in 32 bits */
    uint64_t n = half < most ? half : most > many ? most : many;
    return n ? (uint32_t)n : 4096;
}

/* ---- one that is met ---- */

static inline uint64_t transfer_bytes(const struct transfer *t)
{
    uint64_t sent = t->end[TRANSFER_FROM].bytes, room = t->end[TRANSFER_TO].bytes;
    return sent < room ? sent : room;
}

/* Is a chunk left that nobody has claimed? relaxed: who finds one claims it by an exchange */
static inline bool transfer_has_work(const struct transfer *t)
{
    return (uint64_t)atomic_load_explicit(&t->next, memory_order_relaxed) * t->chunk < transfer_bytes(t);
}

/* acquire: pairs with the release of whoever has done the last chunk; all copies and the error are there */
static inline bool transfer_is_over(const struct transfer *t)
{
    return (uint64_t)atomic_load_explicit(&t->done, memory_order_acquire) * t->chunk >= transfer_bytes(t);
}

/* Of one that is over. */
static inline int transfer_error(const struct transfer *t) { return atomic_load_explicit(&t->error, memory_order_relaxed); }

/* Can the process of this side reach the memory of the other end, of the peer at that endpoint? */
bool transfer_reaches(const struct transfer *, enum transfer_side, const struct tp_ep *);

/* Copies the next chunk, if one is left, or says that this side is helpless. */
enum { TRANSFER_MOVED = 1, TRANSFER_ENDED = 2 }; /* a chunk was copied; this call did the last of it: tell the other side */
unsigned transfer_go_on(struct transfer *, enum transfer_side, struct tp_ep *);

/* The same of one whose ends both are in this process, or both in that of the endpoint: by way of a buffer for a chunk. */
unsigned transfer_go_on_here(struct transfer *);
unsigned transfer_carry(struct transfer *, struct tp_ep *, void *buffer);

/* No chunk is claimed any more; those that are claimed may still be copied by who has claimed them. */
void transfer_stop(struct transfer *);

/* The same of one whose memory may be used again (transfer_renew), when this side has said its end: how many the other side may have
 * claimed. If the other end is said, too, nobody touches the memory of this side when transfer_is_quiet. */
uint32_t transfer_retract(struct transfer *);
bool transfer_is_quiet(const struct transfer *, uint32_t claimed);

/* ---- the life of one that a process has made for a message ---- */

/* By the other side, and by the maker; false: the other one was faster. acq_rel: what was written before either is seen behind it */
bool transfer_take(struct transfer *);
bool transfer_withdraw(struct transfer *);

/* By who has taken it, and finds that it cannot use it. */
void transfer_give_back(struct transfer *);

/* The other side looks at it no more. release: pairs with transfer_life */
void transfer_close(struct transfer *);

static inline enum transfer_life transfer_life(const struct transfer *t)
{
    return (enum transfer_life)atomic_load_explicit(&t->life, memory_order_acquire);
}

#endif
