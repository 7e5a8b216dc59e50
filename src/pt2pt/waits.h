/*
 * waits.h - the threads of this process that wait: who of them looks at the wires, and how the others are woken.
 *
 * While one thread at a time calls (waits.threaded is false), the thread that waits looks at the wires and the steps, and
 * sleeps by the process's bell (wait.c). Where threads share the library, one of those that wait does so: the listener. The
 * others sleep, each on a word of its own (waiter.state), and each is woken alone, by the thread that completes what it waits
 * for (wait_threads.c). A listener whose wait is over wakes a sleeper to become the listener.
 *
 * What a thread waits for is one of two things:
 *
 *     requests            the end of a request is read without a lock. A thread that goes to sleep leaves its number in
 *                         request.complete (waits_mark); the thread that ends the request finds it there (waits_finish)
 *     a lane's state      probes, a collective's progress: `ready` is called under the lane. Whoever has changed the lane
 *                         (lane.changed) calls it for all that wait in it (lane.waiters), in the order in which they came,
 *                         before it gives the lane back; so does the listener after each look
 *
 * Wake-ups are not lost, since in each pair one side sees what the other did:
 *
 *  1. A request ends while a thread goes to sleep for it. Both have the request's lane when they change request.complete:
 *
 *         waiter                                            the thread that ends it
 *         state = 0
 *         in the lane: complete: 0 -> own number            in the lane: complete = 1 (release)
 *         found 1: it is over                               it was a number: state |= TOLD
 *         state: 0 -> ASLEEP; found TOLD: looks again         found ASLEEP: futex_wake
 *
 *     The one that has the lane first is seen by the second. `state` is changed by read-modify-writes. A mark that was left
 *     by an earlier wait tells for nothing, which costs a look. The end of a request that no thread sleeps for, which is
 *     nearly each, takes no atomic operation.
 *
 *  2. The listener leaves while a thread goes to sleep. Both change waits.listened by a read-modify-write, in which the
 *     sleepers are counted:
 *
 *         waiter, under waits.lock                          listener
 *         is in waits.asleep                                listened &= ~LISTENER
 *         listened += SLEEPER                                 found sleepers: takes waits.lock, and tells one of
 *         found no LISTENER: does not sleep, but listens      waits.asleep that it is CALLED
 *
 *     The thread that is called hands that on when its wait is over, too. So a sleeper that was not told anything always has
 *     a listener, or a thread that is about to become one.
 *
 *  3. A thread of this process tells the listener that is about to sleep by the bell:
 *
 *         listener                                          the thread that tells it
 *         bell.asleep = 1 (bell_announce)
 *         state: 0 -> AT_BELL (release)                     state |= TOLD (acquire)
 *         found TOLD: does not sleep                        found AT_BELL: bell_ring
 *
 *     Who finds AT_BELL sees the announcement, too, or that another thread has taken it away to ring.
 *
 *  4. A thread turns on a step that the listener does not know, or begins to wait for something that only the listener can
 *     see (lane.waiters), while the listener is about to sleep. Both do it under the lane:
 *
 *         listener, after the announcement                  the thread
 *         waits.at_bell = LISTENER                          takes the lane, changes it
 *         takes the lane, looks at steps and waiters        looks at waits.at_bell: rings
 *         gives the lane back, sleeps                       gives the lane back
 *
 *     The listener does so in each lane in turn. Where another thread is in the lane, it leaves mail for that thread, which rings
 *     when it gives the lane back (listen.c).
 *
 * Other processes wake the listener by the bell and by gates, as sleep.h says.
 *
 * Memory of waiters is never given back: a thread may tell a waiter whose wait is over, or whose thread has ended. The next
 * thread has the number then. It is told something that does not concern it, and looks once more.
 */
#ifndef TERN_PT2PT_WAITS_H
#define TERN_PT2PT_WAITS_H

#include "base/list.h"
#include "base/lock.h"
#include "obj/request.h"
#include "transport/wires.h"

enum waiter_state {
    WAITER_ASLEEP = 1,  /* on `state` */
    WAITER_AT_BELL = 2, /* the listener, by the bell of the process */
    WAITER_TOLD = 4,    /* look again */
    WAITER_READY = 8,   /* `ready` has said true: the wait is over */
    WAITER_CALLED = 16  /* nobody listens: become the listener, or see that somebody does */
};

/* Written under the first lane. */
enum at_bell { AT_BELL_NOBODY, AT_BELL_LISTENER, AT_BELL_HELPER };

/* A thread that waits. One for each thread, from its first wait on. */
struct waiter {
    _Atomic uint32_t state; /* enum waiter_state; a futex word */
    uint32_t number;        /* from 0 */
    struct link asleep;     /* in waits.asleep. waits.lock */
    struct link in_lane;    /* in lane.waiters, or in the list of those that are to be told. The lane's lock */
    bool (*ready)(void *);  /* what the thread waits for in the lane */
    void *arg;
    struct gate *gate;      /* whose opening may make it ready, or NULL */
    uint32_t counted;       /* as what the sleeping listener is counted in the gate for it, or 0 */
};

extern TERN_HIDDEN struct waits {
    /* line 0: what each end of a request and of a section looks at; seldom written */
    TERN_ALIGNED(CACHE_LINE) _Atomic bool threaded; /* threads share the library. Set once */
    int32_t share;              /* cores for each rank of the node, at least 1 */
    _Atomic uint32_t at_bell;   /* enum at_bell: who sleeps by the bell of the process, or is about to */
    _Atomic uint64_t spin_max_ns;

    /* line 1: written by each wait */
    TERN_ALIGNED(CACHE_LINE) _Atomic int32_t waiting; /* threads that wait, asleep or not: they make the progress */
    _Atomic uint32_t sleepers;  /* those of them that are asleep, or about to be */
    _Atomic uint32_t listened;  /* WAITS_LISTENER, and WAITS_SLEEPER for each thread in `asleep` */
    _Atomic uint32_t woken;     /* how often a thread was woken by its own word: for tests */
    struct lock lock;
    struct link asleep;         /* struct waiter, in the order in which they went to sleep */
    _Atomic uint32_t fruitless; /* looks without waiting, since one found something */
    _Atomic uint64_t spin_ns;   /* learnt: how long polling pays before a sleep (wait.c) */
} waits;

enum { WAITS_LISTENER = 1, WAITS_SLEEPER = 2 };

/* Nobody waits. */
void waits_open(bool threaded);

static inline bool waits_threaded(void) { return atomic_load_explicit(&waits.threaded, memory_order_relaxed); }
static inline uint32_t waits_sleepers(void) { return atomic_load_explicit(&waits.sleepers, memory_order_relaxed); }
static inline enum at_bell waits_at_bell(void) { return (enum at_bell)atomic_load_explicit(&waits.at_bell, memory_order_relaxed); }

/* That of the calling thread, for as long as the thread lives. When memory is out the job ends. */
struct waiter *waits_mine(void);

/* Tells the waiter: one of TOLD, READY, CALLED. It is woken if it sleeps, and only the first time. Any thread. */
void waits_tell_one(struct waiter *, uint32_t what);

/* The calling thread is going to sleep for the request: true if it is complete, and the thread is not told of that. Else it
 * is told at the end. state is 0 before. Requests that another thread waits for as well tell all threads. The request's lane is
 * held. */
bool waits_mark(struct request *, const struct waiter *);

/* Ends a request where threads share the library: sets `complete`, and tells who waits for that. The request may be gone on
 * return. Its lane is held. */
void waits_tell_marked(uint32_t was) TERN_COLD; /* what `complete` was: threads that sleep for the request are told */
static inline void waits_finish(struct request *r)
{
    uint32_t was = atomic_load_explicit(&r->complete, memory_order_relaxed); /* of who had the lane before */
    /* release: everything done to the request is seen by who finds it complete */
    atomic_store_explicit(&r->complete, REQUEST_COMPLETE, memory_order_release);
    if (unlikely(was)) waits_tell_marked(was);
}

/* ---- the listener ---- */

/* True: the calling thread is the listener now. */
bool waits_listen(void);

/* The listener is none any more. Wakes a sleeper that becomes the listener, if there is one. */
void waits_leave(void);

/* A thread that was called does not wait any more: wakes another sleeper, unless there is a listener. */
void waits_pass_on(void);

/* Enters the thread as one that sleeps. False: there is no listener, and it is not entered. waits_withdraw: it does not sleep
 * any more; returns what it has been told. */
bool waits_enrol(struct waiter *);
uint32_t waits_withdraw(struct waiter *);

/* Sleeps until it is told something, at most for most_ns. state was 0 when the thread looked last. */
void waits_sleep(struct waiter *, uint64_t most_ns);

/* ---- in a lane ---- */

/* Calls `ready` of all waiters in the list, in their order. Those for which it says true are moved to `over`, to be told by
 * waits_tell_all when the lane's lock has been given back. Lane held. */
void waits_look(struct link *waiters, struct link *over);
void waits_tell_all(struct link *over);

#endif
