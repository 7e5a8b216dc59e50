/*
 * sleep.h - sleeping in the kernel and being woken, across processes.
 *
 * A doorbell is two words in memory that sleeper and wakers share. The race
 * between "I go to sleep" and "there is work" is Dekker's:
 *
 *     sleeper                          waker
 *     asleep = 1                       publish the work
 *     (A) full barrier                 (B) full barrier
 *     look for work; none: futex wait  if asleep: ring
 *
 * (B) would stand on every message. Where ranks rarely sleep, (A) is done by
 * membarrier(GLOBAL_EXPEDITED), which forces the barrier on all other processes
 * that registered, and (B) is only a compiler barrier; where ranks sleep all the
 * time (more ranks than cores), (B) is a real fence. The sleeper says in
 * bell->fenced which of the two it relies on.
 *
 * A process that also waits for descriptors (sockets) sleeps in poll instead, with a
 * datagram socket of its own among them (bell_open_socket): `asleep` then says so, and
 * whoever rings sends a byte to it. The socket has an abstract name, which the bell says:
 * no right to look at the process is needed. Anybody on the host may send to it, which
 * ends a sleep early and does nothing else.
 *
 * A helper thread (pt2pt/helper.h) sleeps by the same bell while no other thread does, in
 * another set of the futex (BELL_HELPER): it hears only what was announced for it, and only
 * from wakers that mean it (bell_check_again): most messages wake threads that wait, and no helper. Any
 * thread of the process may announce that sleep, even one that stays awake itself, and
 * does so at each call that leaves something behind: its (A) is a fence, as membarrier
 * would stop the others each time. So the wakers' (B) has to be one as well, for what
 * a helper is needed for (bell_check_again); most messages are nothing of that kind.
 */
#ifndef TERN_BASE_SLEEP_H
#define TERN_BASE_SLEEP_H

#include "base/compiler.h"
#include <stdatomic.h>

enum bell_sleep { BELL_AWAKE, BELL_FUTEX, BELL_SOCKET, BELL_HELPER, BELL_HELPER_SOCKET };
static inline bool bell_sleep_is_helper(uint32_t how) { return how >= BELL_HELPER; }

struct bell {
    _Atomic uint32_t ring;   /* futex word: counts rings */
    _Atomic uint32_t asleep; /* enum bell_sleep: how the owner sleeps or is about to */
    _Atomic uint32_t fenced; /* 1: wakers must put a fence between work and the look at `asleep` */
    _Atomic uint32_t helped; /* the owner has a helper thread: bell_check_again */
    int32_t socket;          /* the owner's descriptor */
    _Atomic uint32_t core;   /* a hint: the cpu that the owner waited on last, + 1 (0: not known), and the two bits below */
    _Atomic uint64_t name;   /* of the socket, random; 0: no socket. Written by the owner */
};
#define BELL_AT_GATE 0x80000000u /* the owner sleeps at a gate, too: its opening does not end `asleep` */
#define BELL_CROWDED 0x40000000u /* the owner knows of more processes than there are cores for them */
#define BELL_CORE (~(BELL_AT_GATE | BELL_CROWDED))
static_assert(sizeof(struct bell) == 32, "a bell lies in shared memory");

/* Registers the process for membarrier; false when the kernel will not (then bells are fenced). Idempotent. */
bool sleep_membarrier_open(void);

/* Chooses the barrier side: fenced = wakers pay. Without membarrier it is always fenced. */
void bell_open(struct bell *, bool fenced);

/* From now on the owner sleeps in bell_poll, and after bell_close no more. When threads of the owner may sleep by the bell,
 * bell_wake_all follows the first and goes before the second: they announce their sleep again. 0, or a code with words. */
int bell_open_socket(struct bell *);
void bell_close(struct bell *);
static inline bool bell_has_socket(const struct bell *b) { return atomic_load_explicit(&b->name, memory_order_relaxed); }

/* Announces the sleep and does barrier (A). Returns the ticket for bell_wait. */
uint32_t bell_announce(struct bell *);

/* The same for the helper thread, which sleeps in bell_wait_helper (with a socket: in bell_poll) or is just about to.
 * The caller looks for work then, whichever thread it is. (A) is a fence: pairs with (B) in bell_check_again. */
void bell_announce_helper(struct bell *);

/* Before the first such announcement, and after the last. */
void bell_set_helped(struct bell *, bool helped);

/* The helper's sleep on a bell without a socket: until it rings for the helper after `ticket`, is woken, or `most_ns`
 * are over. */
void bell_wait_helper(struct bell *, uint32_t ticket, uint64_t most_ns);

/* Wakes all threads that sleep by this bell, whatever was announced. By a thread of the owner, or by a process that has
 * mapped the bell. */
void bell_wake_all(struct bell *) TERN_COLD;

/* Words that a thread sleeps on besides its bell: those of gates, each with the value that it had when the thread began
 * to look for work. */
#define SLEEP_WORDS_MAX 31
struct sleep_words {
    uint32_t n;
    struct {
        _Atomic uint32_t *word;
        uint32_t value;
    } at[SLEEP_WORDS_MAX];
};

/* Sleeps until the bell rings after `ticket`, one of `words` (NULL: none) has another value, or most_ns are over.
 * Spurious returns are possible. The announcement stands until a ring or bell_stay ends it: other threads may sleep by
 * it. */
void bell_wait(struct bell *, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns);

/* With a socket: sleeps until the bell rings after `ticket`, one of the descriptors is readable, or most_ns are over.
 * Spurious returns are possible, at least once a second. A thread that goes on sleeping while another one got up
 * returns at once. */
#define BELL_FDS_MAX 13
void bell_poll(struct bell *, uint32_t ticket, const int *fds, int n, uint64_t most_ns);

/* Takes what was sent to the socket. */
void bell_empty_socket(struct bell *) TERN_COLD;

/* The cpu that the owner runs on, or is to run on; -1: it sleeps, or its cpu is not known. `gates`: an owner that
 * sleeps at a gate may have been woken, and counts. */
static inline int bell_core(const struct bell *b, bool gates)
{
    uint32_t core = atomic_load_explicit(&b->core, memory_order_relaxed);
    bool asleep = atomic_load_explicit(&b->asleep, memory_order_relaxed);
    return asleep && !(gates && core & BELL_AT_GATE) ? -1 : (int)(core & BELL_CORE) - 1;
}

static inline bool bell_is_crowded(const struct bell *b) { return atomic_load_explicit(&b->core, memory_order_relaxed) & BELL_CROWDED; }

/* Nobody sleeps here any more: withdraws the announcement. Where threads share a bell, the last of them does it. */
static inline void bell_stay(struct bell *b)
{
    atomic_store_explicit(&b->asleep, BELL_AWAKE, memory_order_relaxed);
    if (bell_has_socket(b)) bell_empty_socket(b);
}

/* Wakes the owner. bell_ring_waiter: unless only its helper sleeps; the slow half of bell_check. */
void bell_ring(struct bell *) TERN_COLD;
void bell_ring_waiter(struct bell *) TERN_COLD;

/* Wakes the owner of the socket with this name (bell.name), whether it sleeps or not: by a process that cannot see the
 * bell. */
void bell_ring_name(uint64_t name) TERN_COLD;

/* Waker's side, after publishing work with release: wakes a thread that waits. `fence`: what the bell's owner asked for (bell->fenced,
 * cached by the caller at connect). */
static inline void bell_check(struct bell *b, bool fence)
{
    if (fence) atomic_thread_fence(memory_order_seq_cst);    /* (B), pairs with (A) in bell_announce */
    else atomic_signal_fence(memory_order_seq_cst);          /* the sleeper's membarrier does the rest */
    if (unlikely(atomic_load_explicit(&b->asleep, memory_order_relaxed))) bell_ring_waiter(b);
}

/* A second look, behind bell_check, for work that the owner's helper would have to do: wakes it as well. Costs nothing where
 * there is none. */
static inline void bell_check_again(struct bell *b)
{
    if (likely(!atomic_load_explicit(&b->helped, memory_order_relaxed))) return;
    atomic_thread_fence(memory_order_seq_cst); /* (B), pairs with (A) in bell_announce_helper */
    if (atomic_load_explicit(&b->asleep, memory_order_relaxed)) bell_ring(b);
}

/*
 * A gate is a doorbell of many: sleepers wait for something that one process brings about for all of them at once,
 * and are woken by one system call, whether the opener is connected to them or not. The handshake is the same; a
 * sleeper counts itself in `sleepers` before (A) (gate_enter), and sleeps on the gate's word besides its bell.
 *
 * A sleeper that cannot do so counts in the upper half of `sleepers`, and the opener has to ring its bell: one that
 * sleeps in bell_poll, one with more gates than SLEEP_WORDS_MAX, and any on a kernel without futex_waitv (before 5.16).
 */
#define GATE_POLLER 0x10000u

struct gate {
    _Atomic uint32_t ring; /* futex word: counts openings that somebody slept for */
    _Atomic uint32_t sleepers;
};

/* Before bell_announce: notes the gate's word in `words`, and counts the owner of the bell among the sleepers;
 * `counted`: as what another of its threads has counted it, or 0. Returns as what it is counted now, for gate_leave. */
uint32_t gate_enter(struct gate *, const struct bell *, uint32_t counted, struct sleep_words *words);
void gate_leave(struct gate *, uint32_t counted);

/* Wakes all sleepers: the slow half of gate_check. True if the bells of some have to be rung. */
bool gate_open(struct gate *) TERN_COLD;

/* Waker's side, after publishing with release. `fence`: wakers pay for barrier (B), as in bell_check. True: the bells
 * of all who may wait have to be checked as well. */
static inline bool gate_check(struct gate *g, bool fence)
{
    if (fence) atomic_thread_fence(memory_order_seq_cst);
    else atomic_signal_fence(memory_order_seq_cst);
    return unlikely(atomic_load_explicit(&g->sleepers, memory_order_relaxed)) && gate_open(g);
}

/* Plain futex on a shared word: sleep while it has `value` (timeout 0 = without end), wake all sleepers, or the one that
 * has slept longest. */
void futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void futex_wake_one(_Atomic uint32_t *word);
void futex_wake_all(_Atomic uint32_t *word);

#endif
