/*
 * lane.h - a lane: one lock, and under it everything that sending and receiving on
 * the communicators mapped to it needs (lanes.h). Data only; any thread of
 * this process that holds the lock can work on it: a caller, or the helper thread (helper.h).
 *
 * A section is what a thread does between lane_enter and lane_leave (share.c). While one thread at a time uses the library and
 * lanes_mode is 0, sections do not take the lock:
 * one predictable branch, and a count (lane_inside) that says that the thread is in a lane, for whoever
 * makes the lanes shared meanwhile (share.c). The program orders the calls of different threads
 * (MPI_THREAD_SERIALIZED).
 *
 * A thread that leaves its outermost section with operations in the background, for which there is a helper,
 * sets LANE_LOCKED. From then on all sections, of whatever lane, take the lock of the first lane, and so does the helper,
 * which is in all lanes then. The same thread, not the helper, takes LANE_LOCKED away when it leaves with nothing in the
 * background:
 *
 *     caller                                  helper
 *     inside--
 *     mode |= LOCKED (release)
 *                                             lock_try, or not now
 *                                             mode is 0 (acquire): gives the lock back
 *                                             ... in the lane, until done or wanted ...
 *     takes the lock; found held: asks for    gives the lock back
 *       it (lock_note), looks, then sleeps
 *     mode &= ~LOCKED, if nothing is left
 *     gives the lock back
 *
 * The mode changes between sections only, so each is either counted or has the lock. Calls that
 * leave nothing to the helper pay nothing for it. A short send is no section. While lanes_mode is LANE_LOCKED alone it finds its
 * peer in neither table (peer_short_table, peer_shared_table), and goes the long way.
 */
#ifndef TERN_PT2PT_LANE_H
#define TERN_PT2PT_LANE_H

#include "base/list.h"
#include "base/lock.h"
#include "base/sanitizer.h"
#include "obj/comm.h"
#include "obj/request.h"
#include "proc/proc.h"
#include "pt2pt/background.h"
#include "pt2pt/contexts.h"
#include "pt2pt/credit.h"
#include "pt2pt/deliver.h"
#include "pt2pt/ids.h"
#include "pt2pt/match/match.h"
#include "pt2pt/match/body.h"
#include "pt2pt/rndv/rndv.h"
#include "pt2pt/waits.h"
#include "pt2pt/worklist.h"
#include "transport/peer.h"
#include "transport/progress.h"
#include "transport/wires.h"
#include <pthread.h>

enum lane_mode {
    LANE_THREADED = 1, /* never goes away; relaxed, ordered by the quiet that share_await waits for */
    LANE_LOCKED = 2    /* the helper may come in */
};

struct lane {
    /* line 0: written by each holder */
    struct lock lock;             /* handed to a sleeper that has lost it twice, so that no thread starves */
    _Atomic(const void *) holder; /* the thread that is inside with the lock (share.c) */
    int32_t depth;                /* sections that the holder is in */
    bool changed;                 /* what threads wait for may have come about in this section (lane_changed) */
    struct tally tally;           /* of the peer that eager messages came from last, once threads share the transports */

    /* line 1: what other threads look at, without the lock; seldom written */
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t tries; /* of threads that wanted to look at the steps, and found another one inside */
    struct inbox inbox;      /* what threads without the lock have left for the holder (deliver.h) */
    _Atomic bool working;    /* steps are on, as the last holder has left it */
    _Atomic bool waited_in;  /* threads wait for something in the lane, as the last holder has left it */
    _Atomic bool to_ring;    /* `ring` is in the inbox */

    /* line 2: the same for `news` */
    TERN_ALIGNED(CACHE_LINE) struct progress steps; /* what is looked at besides messages */

    TERN_ALIGNED(CACHE_LINE) struct link contexts; /* struct pt_comm.in_lane: of the communicators that are in this lane */
    struct match_pool pool; /* bodies of unexpected messages */
    int64_t eager_now;      /* bytes of eager messages at this moment, see lane_going */

    struct ids ids;      /* requests that peers know of */

    struct link pending;   /* struct peer_lane.in_lane: operations wait for room */
    struct step retry;     /* of `pending` (pending.c) */
    struct rndv rndv;
    struct worklist chores;   /* local work put off, which `done` does (lane_puts_off) */
    struct worklist deferred; /* what has ended but for `done`, which would run what the helper must not */

    struct link waiters;     /* struct waiter.in_lane: threads that wait for something in the lane (waits.h) */
    struct link *slept_with; /* the last step that was on when the listener, or the helper, went to sleep */
    bool left_more;          /* in the background, since a thread left the lane (lane_leaves_more) */
    bool put_off;            /* a send, since then (lane_puts_off_send) */
    struct mail ring;        /* the holder rings the bell when it leaves (listen.c) */

    struct step losses, over, doubts; /* lost.c, call_log.c, doubt.c */
    uint32_t losses_seen;             /* peers lost up to this number are known in this lane: mail of them is dropped */
    uint32_t losses_ended;            /* and up to this one the operations of the peer have been ended */

    struct step others;         /* on while there are several lanes and one thread at a time calls: looks at their steps (lanes.c) */
    uint32_t number;            /* 0: the first lane */
    _Atomic uint32_t chosen;         /* how often: communicators that have been made in it */
};

static_assert(offsetof(struct lane, tries) == CACHE_LINE && offsetof(struct lane, steps) == (size_t)2 * CACHE_LINE,
              "who looks at a lane takes no line from the holder");

/* That of a request, and of a step of a lane. */
static inline struct lane *lane_of(const struct request *r) { return r->comm->lane; }
static inline struct lane *lane_of_step(const struct step *s) { return container_of(s->of, struct lane, steps); }

/* Of all lanes: enum lane_mode; not 0: sections take a lock. */
extern TERN_HIDDEN _Atomic uint32_t lanes_mode;
static inline uint32_t lane_mode(void) { return atomic_load_explicit(&lanes_mode, memory_order_relaxed); }
static inline bool lane_threaded(void) { return lane_mode() & LANE_THREADED; }

/* Sections that the one thread is in, in whatever lanes, while threads do not share them; written by it alone. */
extern TERN_HIDDEN _Atomic int32_t lane_inside;

/* This thread is the helper. */
extern TERN_HIDDEN _Thread_local bool this_is_the_helper __attribute__((tls_model("initial-exec")));

void lane_lock(struct lane *) TERN_COLD;
void lane_unlock(struct lane *) TERN_COLD;
void lane_leave_to_helper(struct lane *) TERN_COLD; /* lane_leave with something in the background, see helper.h */

/*
 * The program hears of the end of a send whose request it has freed (REQ_DETACHED) by messages of other processes, and writes
 * to the buffer then, which another thread, or the helper, has read. The thread sanitizer does not see that order (sanitizer.h).
 * The thread that has read such a buffer, in the lane of the request, says so before the other side is told; a thread that ends
 * a section has learnt of it.
 */
extern TERN_HIDDEN char lanes_detached;
static inline void lane_has_read(const struct request *r)
{
    if (unlikely(r->course & REQ_DETACHED)) sanitizer_released(&lanes_detached);
}

/* lane_enter while lanes_mode is 0. */
static inline void lane_enter_alone(void)
{
    atomic_store_explicit(&lane_inside, atomic_load_explicit(&lane_inside, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void lane_enter(struct lane *l)
{
    if (unlikely(lane_mode())) lane_lock(l);
    else lane_enter_alone();
}

/* lane_leave without its look at what is left behind. */
static inline void lane_out(struct lane *l)
{
    sanitizer_acquired(&lanes_detached);
    if (unlikely(lane_mode())) lane_unlock(l);
    else /* release: pairs with the acquire of the thread that waits until this one is out */
        atomic_store_explicit(&lane_inside, atomic_load_explicit(&lane_inside, memory_order_relaxed) - 1, memory_order_release);
}

static inline void lane_leave(struct lane *l)
{
    if (unlikely(background_any())) lane_leave_to_helper(l);
    else lane_out(l);
}

/* lane_leave behind a call that has only written something down here: it has started nothing and heard of nothing. */
void lane_leave_noted_to_helper(struct lane *) TERN_COLD;
static inline void lane_leave_noted(struct lane *l)
{
    if (unlikely(background_any())) lane_leave_noted_to_helper(l);
    else lane_out(l);
}

bool lane_is_outermost(const struct lane *); /* this section lies in no other. Lock held */

/* Leaves the outermost section, and lets the helper in: from then on sections take the lock. */
void lane_leave_and_let_helper_in(void) TERN_COLD;

/* Enters the lane unless another thread is inside, and opens its inbox. Not where sections go without the lock: then it is
 * false, too. Not by a thread that is inside. Ended by lane_out. */
bool lane_try(struct lane *);

/* Something is in the inbox. True: nobody was inside, so the calling thread is now, and has opened it. */
bool lane_note(struct lane *);

/* This thread is inside. lane_here: the lane that it entered first, with the lock; NULL: none. A thread in a lane does not wait for
 * another one: it tries. */
bool lane_is_mine(struct lane *);
struct lane *lane_here(void);

/* While threads do not share the lanes: the helper is inside. By a thread that is not. A hint, ordered by the caller's fence. */
bool lanes_have_helper(void);

/* Another thread wants the lane that the helper is in, or waits and makes the progress itself. */
bool lane_wanted(const struct lane *);

/* After fork, in the child, which has no helper: no lane is held by it. */
void lanes_forget_helper(void);

/* This thread is the helper, and should make way for another one that wants the lane. */
static inline bool lane_in_the_way(const struct lane *l) { return unlikely(this_is_the_helper) && lane_wanted(l); }

/* Should work on so many bytes be left to the helper, which has a core of its own? Local work is done behind the messages of a later
 * turn; nobody is woken for that. Lock held. */
static inline bool lane_puts_off(const struct lane *l, int64_t bytes) { return bytes > l->eager_now; }
void lane_do_later(struct lane *, struct request *); /* `done` is called in a turn, by a thread that is in no wire */

/* This thread must not run the user's code: it is the helper, and the program has said that it has no threads. A `done`
 * that would do so hands its request (REQ_LAST_WORD) to lane_defer: it is called again, by a caller. */
static inline bool lane_is_no_caller(void) { return unlikely(this_is_the_helper) && !lane_threaded(); }
void lane_defer(struct lane *, struct request *);
void chores_open(struct lane *);

/* In lane_wait, when the lane has become shared: the caller takes the lock that it has gone without so far. */
void lane_catch_up(struct lane *);

/* One turn: deliver messages, and look at the steps. Returns how much happened. Lock held. Once threads share the transports
 * that is for threads that need all of it within the section: others look at the wires outside (lanes_turn). */
int lane_progress(struct lane *);
int lane_steps(struct lane *); /* the second half of it, once threads share the transports */
int lane_short_turn(struct lane *); /* the same for the helper: less at a time, and over when somebody wants the lane */

/* True if there is nothing that this process could do by itself; lane_still: but for steps that only a look could tell of
 * (progress_still). */
bool lane_idle(void);
bool lane_still(void);

/*
 * The one place where the library waits (wait.c, wait_threads.c): until ready(arg), polling as long as that pays and then
 * asleep. The lane is held on entry and on return, by this section alone, and left in between when threads share it. `gate`,
 * if not NULL, is one whose opening also ends a sleep.
 *
 * `ready` is called with the lane held, any number of times until it says true and never after that. Where threads share
 * the lane another thread may call it, and may come into the lane between that call and the return. So it may take what it
 * has found out of the reach of others (MPI_Mprobe), or copy it (MPI_Probe). It sets no words (err.h), and must not wait
 * itself. It may run before any progress was made.
 *
 * A thread asleep is woken by what comes from other processes, as they ring the bell. What another thread of this process
 * brings about in the lane wakes it only if that thread says that the lane has changed (lane_changed): the end of a request
 * (lane_finish), a message that is kept for a later receive (lane_stored), a peer lost (lost.c). Whoever adds a `ready` that
 * looks at something else does so where that changes.
 *
 * `doubt`, if not NULL, is called with `arg` and the lane held, by the thread that waits, when the wait lasts (half a second,
 * then twice the time before, at most 8 s apart): what can never happen may be ended by it (doubt.h).
 */
void lane_wait(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate);
/* lane_wait_at: with a gate and a doubt; the caller has found that `ready` is false. lane_wait_doubting: lane_wait with a doubt. */
void lane_wait_at(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *arg));
void lane_wait_doubting(struct lane *, bool (*ready)(void *), void *arg, void (*doubt)(void *arg));

/*
 * The same for the end of requests, which may be in several lanes. `ready` is read without a lane, by the thread that waits.
 * `mark` marks requests for a thread that is going to sleep (waits_mark), so that it is told at the latest when `ready` has
 * become true. It returns true if the thread must look again instead, as a request is complete. lane_await: the lane, which is
 * held, is left. lane_await_outside:
 * no lane is held. The lane is that of one of the requests.
 */
struct awaiting {
    bool (*ready)(void *arg);
    bool (*mark)(void *arg, const struct waiter *);
    void (*doubt)(void *arg); /* takes the lanes that it needs */
};
void lane_await(struct lane *, const struct awaiting *, void *arg);
void lane_await_outside(struct lane *, const struct awaiting *, void *arg);

/*
 * What the calling thread waits for from here on may need its core, and nothing is learnt from these waits:
 *
 *     LANE_SLEEPS   they are expected to last for milliseconds: they poll for about a microsecond, then sleep
 *     LANE_YIELDS   they are expected to be short: they give up the core every few looks
 *     LANE_POLLS    as before
 */
enum lane_manner { LANE_POLLS, LANE_YIELDS, LANE_SLEEPS };
void lane_wait_so(enum lane_manner);

void wait_open(bool threaded); /* reads the variables */

/*
 * How long polling pays (ns, at most `most`) after a wait of `waited` ns, asleep at its end or not, that began with `spin`.
 * most 0 or UINT64_MAX: nothing is to be learnt.
 */
uint64_t wait_learn(uint64_t spin, uint64_t most, uint64_t waited, bool slept);

/* step_on, and rings the bell if the listener or the helper sleeps: for a step whose gates, or whose wish for room, that sleeper has
 * not announced. The helper polls it too: see lane_is_no_caller, and gates do not wake the helper. Lock held. */
void lane_step_on(struct lane *, struct step *);

/* A step that is on has more to do. The thread asleep at the bell has looked at it before, and is woken when the lane is left. Lock
 * held. */
static inline void lane_adds_work(struct lane *l) { l->slept_with = NULL; }

/* One turn of progress for a call that looks without waiting (MPI_Test, MPI_Iprobe). Programs call those in loops: where
 * ranks share cores, every few that find nothing give up the core. Lock held. */
void lane_poll(struct lane *);
/* The same by a thread in no lane, where sections take the lock: a turn in all lanes. */
void lane_poll_outside(struct lane *) TERN_COLD;

/* Ends an operation: result.error is set to `error`, done is called, waiters see it. Lock held. */
void lane_finish(struct request *, int error);

/* The same for a request without `done` that no peer knows of. */
static inline void lane_finish_plain(struct request *r, int error)
{
    if (unlikely(r->course & (REQ_DETACHED | REQ_BACKGROUND) || waits_threaded())) {
        lane_finish(r, error);
        return;
    }
    r->result.error = error;
    atomic_store_explicit(&r->complete, REQUEST_COMPLETE, memory_order_release); /* as in lane_finish */
}

/* Threads that wait for something in the lane look whether it has come about, before the lane is left (waits.h). Lane held. */
static inline void lane_changed(struct lane *l)
{
    if (unlikely(waits_threaded())) l->changed = true;
}

/* A message has come that no receive waits for: a thread in a probe may. Lane held. */
static inline void lane_stored(struct lane *l) { lane_changed(l); }

/* The peer is connected and nothing waits: small messages may go straight out (peer.short_max), without the lock. Not by
 * threads to a peer whose messages are delivered by the send, as the handler needs the lane. */
void lane_open_short(struct peer *);

void pending_open(struct lane *);

void lane_open(struct lane *, uint32_t number);
void lane_close(struct lane *);

/* The one way to report that the library cannot go on (memory is out in a handler): words on stderr, the job ends. */
_Noreturn void lane_fatal(const char *what) TERN_COLD;

#endif
