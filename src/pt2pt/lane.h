/*
 * lane.h - a lane: one lock, and under it everything that sending and receiving on
 * the communicators mapped to it needs. Data only; any thread of
 * this process that holds the lock can work on it: a caller, or the helper thread (helper.h).
 *
 * While one thread only uses the library (its owner) nobody touches the lock: one
 * predictable branch, and a count that says that the owner is inside, for whoever makes
 * the lane shared meanwhile (share.c).
 *
 * The lane is the owner's until it lends it: on leaving with operations in the background,
 * for which there is a helper. `mode` is then a lock of two:
 *
 *     owner, leaves                       helper
 *     inside--                            mode: LENT -> LENT | HELPER, or not now
 *     mode |= LENT (release)              ... in the lane, until done or inside ...
 *     owner, comes back                   mode &= ~HELPER (release), wake who waits
 *     inside++
 *     mode &= ~LENT (acquire); was
 *       HELPER set: wait until it is not
 *
 * So all calls pay for the helper that leave something to it, and no others: whatever is
 * not lent is the owner's alone, and its own word `mode` tells it so without a barrier. A
 * short send is no section, and does not look at `mode`: while the lane is lent it finds
 * no peer (peer_short_table), and goes the long way.
 */
#ifndef TERN_PT2PT_LANE_H
#define TERN_PT2PT_LANE_H

#include "base/list.h"
#include "obj/comm.h"
#include "obj/request.h"
#include "proc/proc.h"
#include "pt2pt/ids.h"
#include "pt2pt/match/match.h"
#include "pt2pt/match/body.h"
#include "transport/peer.h"
#include "transport/wires.h"
#include <pthread.h>

/* Matching state of one communicator: its two contexts. */
struct pt_comm {
    TERN_ALIGNED(CACHE_LINE) struct match match[2]; /* by enum pt_half */
    uint64_t ctx;                                   /* even */
    struct comm *comm; /* NULL: messages came before the communicator was made here */
    struct pt_comm *next; /* in the same bucket */
    struct peer *lost;    /* a member that was lost last, NULL: none (lost.h) */
    uint8_t gone;         /* enum pt_gone: what receives have to look at */
};

enum pt_gone {
    PT_GONE_LOST = 1,   /* a member was lost */
    PT_GONE_BEYOND = 2, /* no transport may reach some of them */
    PT_GONE_SOURCE = 4  /* one of those that messages come from was lost */
};

/*
 * Something that is looked at in every turn of progress besides messages: memory shared with other processes, which open
 * one of `gate` when they have changed it. In the list of the lane while there is something to look for.
 */
struct lane_poller {
    struct link link;
    int (*poll)(struct lane_poller *); /* one look; returns how much happened. May take itself out of the list. By the helper
                                        * too: see lane_is_no_caller, and gates do not wake it */
    /* The helper has just been armed, by a caller that does not look itself: wakes the others who can go on instead.
     * True: there is something that only this process's helper may do. May be NULL: nobody has to */
    bool (*armed)(struct lane_poller *);
    void (*doubt)(struct lane_poller *); /* a wait lasts: asks the processes that it waits for (call_log.h). May be NULL */
    struct gate *gate[2];              /* where sleepers are counted; NULL: one less */
    uint32_t counted[2]; /* as what in each of them, see gate_enter; 0: no thread of this process sleeps */
};

enum lane_mode {
    LANE_THREADED = 1, /* never goes away; relaxed, ordered by the quiet that lane_share waits for */
    LANE_HELPER = 2,   /* the helper is in the lane; not with LANE_THREADED: then it takes the lock */
    LANE_AWAITED = 4,  /* the owner sleeps until the helper is out */
    LANE_LENT = 8      /* the owner is out, and the helper may be in */
};

struct lane {
    _Atomic uint32_t mode;   /* enum lane_mode; a futex word */
    _Atomic int32_t inside;  /* sections that the owner is in without the lock; written by it alone */
    _Atomic int32_t waiters; /* threads in lane_wait, asleep or not: who waits makes the progress. Written with the lock */
    _Atomic uint32_t background; /* operations that a caller has left to go on by themselves (lane_leave_to_itself); as above */
    _Atomic bool helped;     /* there is a helper thread (helper.h) */
    bool may_be_armed;       /* it has been armed, and not disarmed since (helper_relieve). With the lock */
    pthread_t owner;         /* the one thread, as long as the lane is not threaded */
    pthread_mutex_t lock;
    int32_t depth;           /* sections that who has the lock is in */

    struct pt_comm *last_ctx; /* the context found last */
    struct pt_comm **ctx_table; /* by hash of the context; chains */
    uint32_t ctx_mask, ctx_count;
    uint32_t ctx_early; /* without a communicator */
    struct pt_comm *ctx_spare; /* one that was freed, or NULL */

    struct match_pool pool; /* bodies of unexpected messages */
    int64_t credit, store;  /* TERN_EAGER_CREDIT, TERN_EAGER_STORE */
    int64_t spare;          /* bytes of `store` that are in no peer's quota (credit.c) */
    int64_t eager_now;      /* bytes of eager messages at this moment, see lane_going */
    int64_t chunk;          /* bytes of a large transfer claimed at a time */
    int64_t chunk_stream;   /* bytes of a fragment that goes out from where it lies, at most */

    struct ids ids;      /* requests that peers know of */
    struct link lost;    /* struct peer.in_lost: given up, their operations are to be ended */
    uint32_t lost_count; /* peers given up so far */
    struct proc_deaths deaths; /* those that this process is told of, */
    uint32_t deaths_heard;     /* and how many of them it knows */
    _Atomic uint32_t ends; /* not 0: there are peers in `lost`, or communicators whose collectives are over and whose messages
                            * may have to be ended for that (call_log.h), or processes that have ended (proc/watcher.h) */

    struct link pending;  /* struct peer.in_pending: operations wait for room */
    struct link closing;  /* struct peer.in_closing: progress looks at them (closing.h) */
    struct link closed;   /* the same: what messages came from that are still unreceived */
    struct link incoming; /* requests: large receives being copied here */
    struct link outgoing; /* requests: large sends offered to their receivers */
    struct link streams;  /* requests: large sends going out in fragments; more wait in peer.streams_waiting */
    struct link bulks;    /* requests: large sends and receives that the wire has no room for yet (rndv/bulk.c) */
    uint32_t large;       /* entries of the last four lists */
    uint32_t bulks_under_way; /* such requests that the wire works on; in no list */
    struct link pollers;  /* struct lane_poller */
    bool looking;         /* one is being looked at: what it does may come back to lane_pollers_look */
    struct link chores;   /* requests: local work put off, which `done` does (lane_puts_off) */
    bool over;            /* in MPI_Finalize: whoever asks is told that nothing more comes (doubt.h) */
    bool leaving;         /* in MPI_Finalize, from the last barrier on: others may have left (lost.h) */
    struct link deferred; /* requests that have ended but for `done`, which would run what the helper must not */

    uint64_t spin_ns;     /* learnt: how long polling pays before a sleep (wait.c) */
    uint64_t spin_max_ns;
    uint32_t sleepers;    /* threads of this process asleep in this lane */
    uint32_t probers;     /* threads that wait in a probe, asleep or not */
    uint32_t fruitless;   /* looks without waiting, since one found something */
};

extern TERN_HIDDEN struct lane lane0; /* the lane of every communicator, so far */

static inline uint32_t lane_mode(const struct lane *l) { return atomic_load_explicit(&l->mode, memory_order_relaxed); }
static inline bool lane_helped(const struct lane *l) { return atomic_load_explicit(&l->helped, memory_order_relaxed); }
static inline bool lane_threaded(const struct lane *l) { return lane_mode(l) & LANE_THREADED; }

/* This thread is the helper, and in the lane. */
extern TERN_HIDDEN _Thread_local bool lane_helping __attribute__((tls_model("initial-exec")));

void lane_lock(struct lane *) TERN_COLD;
void lane_unlock(struct lane *) TERN_COLD;
void lane_leave_behind(struct lane *) TERN_COLD; /* lane_leave with something in the background, see helper.h */

static inline void lane_enter(struct lane *l)
{
    if (unlikely(lane_mode(l))) {
        lane_lock(l);
        return;
    }
    atomic_store_explicit(&l->inside, atomic_load_explicit(&l->inside, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* lane_leave without its look at what is left behind. */
static inline void lane_out(struct lane *l)
{
    if (unlikely(lane_mode(l))) lane_unlock(l);
    else /* release: pairs with the acquire of whoever waits for the owner to be out */
        atomic_store_explicit(&l->inside, atomic_load_explicit(&l->inside, memory_order_relaxed) - 1, memory_order_release);
}

static inline void lane_leave(struct lane *l)
{
    if (unlikely(atomic_load_explicit(&l->background, memory_order_relaxed))) lane_leave_behind(l);
    else lane_out(l);
}

bool lane_is_outermost(const struct lane *); /* this section lies in no other. Lock held */

/* The owner, outside: the helper may come in, until the owner does. Ends with a full barrier. */
void lane_lend(struct lane *) TERN_COLD;

/* The helper's way in and out. lane_claim fails when the lane is not lent, or another thread is inside or waits there; it
 * begins with a full barrier. */
bool lane_claim(struct lane *);
void lane_release(struct lane *);

/* Somebody else wants the lane that the helper holds. */
static inline bool lane_wanted(const struct lane *l)
{
    return atomic_load_explicit(&l->inside, memory_order_relaxed) || atomic_load_explicit(&l->waiters, memory_order_relaxed);
}

/*
 * Around the start of an operation that is left to itself. The caller will go away: data that a helper can take to the
 * system on another core are offered rather than sent by the caller. Then: it goes away from an operation that has not
 * ended, which may need somebody to go on with it. Lock held.
 */
void lane_is_going(struct lane *) TERN_COLD;
void lane_left_behind(struct lane *, struct request *) TERN_COLD;
static inline void lane_going(struct lane *l)
{
    if (unlikely(lane_helped(l))) lane_is_going(l);
}
static inline void lane_leave_to_itself(struct lane *l, struct request *r)
{
    if (unlikely(lane_helped(l))) lane_left_behind(l, r);
}

/* Should local work on so many bytes be left to the helper, which has a core of its own, as such data are? It is done behind
 * the messages of a later turn; nobody is woken for that. Lock held. */
static inline bool lane_puts_off(const struct lane *l, int64_t bytes) { return bytes > l->eager_now; }
static inline void lane_do_later(struct lane *l, struct request *r) { list_push(&l->chores, &r->link); }

/* The same for work that has no request: true if it is counted, and then lane_work_over follows it. Lock held. */
bool lane_left_work(struct lane *);
void lane_work_over(struct lane *) TERN_COLD;

/* This thread must not run the user's code: it is the helper, and the program has said that it has no threads. A `done`
 * that would do so hands its request (REQ_LAST_WORD) to lane_defer: it is called again, by a caller. */
static inline bool lane_is_no_caller(const struct lane *l) { return unlikely(lane_helping) && !lane_threaded(l); }
static inline void lane_defer(struct lane *l, struct request *r) { list_push(&l->deferred, &r->link); }

/* The thread that alone uses the library from now on; `tid` is the system's number of it. Nobody is inside. */
void lane_own(struct lane *, int tid);

/* From now on threads share the lane: returns when the owner is out, or takes the lock as others do. 0, or
 * TERN_ERR_NOMEM, and nothing has changed. */
int lane_share(struct lane *);

/* In lane_wait, when the lane has become shared: the owner takes the lock that it has gone without so far. True if so. */
bool lane_catch_up(struct lane *);

/* The matching state of a context; made when it is not known yet. NULL when memory is out. Lock held. */
struct pt_comm *lane_find_ctx(struct lane *, uint64_t ctx) TERN_COLD;
static inline struct pt_comm *lane_ctx(struct lane *l, uint64_t ctx)
{
    struct pt_comm *p = l->last_ctx;
    return likely(p && p->ctx == (ctx & ~CTX_COLL)) ? p : lane_find_ctx(l, ctx & ~CTX_COLL);
}
void lane_drop_ctx(struct lane *, struct pt_comm *);
int contexts_open(struct lane *); /* the table of them, and the hooks of communicators (contexts.c) */
void contexts_close(struct lane *);
struct pt_comm *lane_known_ctx(struct lane *, uint64_t ctx); /* the same, not made: NULL */

/* A process has died that this one does not know of yet. Relaxed: pt_hear_deaths reads it with acquire. */
static inline bool lane_has_deaths(const struct lane *l)
{
    return atomic_load_explicit(l->deaths.count, memory_order_relaxed) != l->deaths_heard;
}

/* There is something for `ends`. Any thread; the release pairs with end_all. */
static inline void lane_note_end(struct lane *l) { atomic_fetch_add_explicit(&l->ends, 1, memory_order_release); }

/* One turn: deliver messages, retry what waits for room, move large data. Returns how much happened. Lock held. */
int lane_progress(struct lane *);
int lane_short_turn(struct lane *); /* the same for the helper: less at a time, and over when somebody wants the lane */

/* True if there is nothing that this process could do by itself; lane_still: but for what is looked at by pollers, which
 * may do something at once. */
bool lane_idle(struct lane *);
bool lane_still(struct lane *);

/*
 * The one place where the library waits (wait.c): until ready(arg), polling as long as that pays and then asleep.
 * The lock is held on entry and on return, and given up in between when threads share the lane. `gate`, if not NULL,
 * is one whose opening also ends a sleep.
 *
 * `ready` is called with the lock held, any number of times until it says true and never after that; the lock is not
 * given up between that call and the return. So it may take what it has found (MPI_Mprobe), or remember a place that
 * is valid under the lock. It may run before any progress was made, and must not wait itself.
 *
 * A thread asleep is woken by what comes from other processes, as they ring the bell. What another thread of this
 * process brings about wakes it only if that thread rings: the end of a request (lane_finish), a message that is kept
 * for a later receive (lane_stored), a peer lost (pt_end_lost_peers). Whoever adds a `ready` that looks at something else rings
 * when that changes and `sleepers` is not 0.
 *
 * `doubt`, if not NULL, is called with `arg` when the wait lasts (half a second, then twice the time before, at most 8
 * s apart): what can never happen may be ended by it (doubt.h).
 */
void lane_wait(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate);
/* Both: at a gate, doubting. */
void lane_wait_at(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *arg));
void lane_wait_doubting(struct lane *, bool (*ready)(void *), void *arg, void (*doubt)(void *arg));
void wait_open(struct lane *);

/*
 * How long polling pays (ns, at most `most`) after a wait of `waited` ns, asleep at its end or not, that began with `spin`.
 * most 0 or UINT64_MAX: nothing is to be learnt.
 */
uint64_t wait_learn(uint64_t spin, uint64_t most, uint64_t waited, bool slept);

/* Into and out of the list of what is looked at. Lock held. */
void lane_poller_add(struct lane *, struct lane_poller *);
void lane_poller_remove(struct lane *, struct lane_poller *);

int lane_pollers_look(struct lane *); /* one look at each; how much happened */
bool lane_pollers_armed(struct lane *) TERN_COLD; /* true: the helper has something to do */

/* Counts this process in the gates of what is looked at, before bell_announce, and notes their words; and no more
 * (wait.c). Lock held. */
void lane_pollers_sleep(struct lane *, struct sleep_words *) TERN_COLD;
void lane_pollers_wake(struct lane *) TERN_COLD;

/* One turn of progress for a call that looks without waiting (MPI_Test, MPI_Iprobe). Programs call those in loops: where
 * ranks share cores, every few that find nothing give up the core. Lock held. */
void lane_poll(struct lane *);

/* Ends an operation: result.error is set to `error`, done is called, waiters see it. Lock held. */
void lane_finish(struct request *, int error);

/* The same for a request without `done` that no peer knows of. */
static inline void lane_finish_plain(struct request *r, int error)
{
    if (unlikely(r->flags & (REQ_DETACHED | REQ_BACKGROUND) || lane0.sleepers)) {
        lane_finish(r, error);
        return;
    }
    r->result.error = error;
    atomic_store_explicit(&r->complete, 1, memory_order_release); /* as in lane_finish */
}

/* A message has come that no receive waits for: a thread asleep in a probe may. It would not notice by itself if
 * another thread took the message from the wire, or sent it (transport self). Lock held. */
static inline void lane_stored(const struct lane *l)
{
    if (unlikely(l->probers && l->sleepers)) bell_ring(wires_bell());
}

/* Sends a small message of the library's own (n <= PT_MESSAGE_MAX), parked if there is no room. */
void lane_control(struct peer *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);

/* The peer is connected and nothing waits: small messages may go straight out (peer.short_max), without the lock, if
 * no threads share the lane. */
void lane_open_short(struct lane *, struct peer *);

/* Queues an operation behind others for the same peer; lane_progress tries it again in order. */
void lane_park(struct lane *, struct peer *, struct request *);

/* The one way to report that the library cannot go on (memory is out in a handler): words on stderr, the job ends. */
_Noreturn void lane_fatal(const char *what) TERN_COLD;

#endif
