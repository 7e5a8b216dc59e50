/*
 * lane.h - a lane: one lock, and under it everything that sending and receiving on
 * the communicators mapped to it needs. Data only; any engine that holds the lock
 * can drive it: the caller, later a helper thread or an onload daemon.
 *
 * While one thread only uses the library (its owner) nobody touches the lock: one
 * predictable branch, and a count that says that the owner is inside, for whoever makes
 * the lane shared meanwhile (share.c).
 */
#ifndef TERN_PT2PT_LANE_H
#define TERN_PT2PT_LANE_H

#include "base/list.h"
#include "obj/comm.h"
#include "obj/request.h"
#include "pt2pt/ids.h"
#include "pt2pt/match.h"
#include "pt2pt/match_body.h"
#include "transport/peer.h"
#include <pthread.h>

/* Matching state of one communicator: its two contexts. */
struct pt_comm {
    TERN_ALIGNED(CACHE_LINE) struct match match[2]; /* by enum pt_half */
    uint64_t ctx;                                   /* even */
    struct comm *comm; /* NULL: messages came before the communicator was made here */
    struct pt_comm *next; /* in the same bucket */
    struct peer *lost;    /* a member that was lost last, NULL: none (lost.h) */
    bool untold;          /* no receive from any source has heard of that yet */
};

/*
 * Something that is looked at in every turn of progress besides messages: memory shared with other processes, which open
 * one of `gate` when they have changed it. In the list of the lane while there is something to look for.
 */
struct lane_poller {
    struct link link;
    int (*poll)(struct lane_poller *); /* one look; returns how much happened. May take itself out of the list */
    struct gate *gate[2];              /* where sleepers are counted; NULL: one less */
    bool counted;                      /* in the gates: somebody of this process sleeps */
};

struct lane {
    _Atomic bool threaded;  /* never goes back to false; relaxed, ordered by the quiet that lane_share waits for */
    _Atomic int32_t inside; /* sections that the owner is in without the lock; written by it alone */
    pthread_t owner;        /* the one thread, as long as the lane is not threaded */
    pthread_mutex_t lock;

    struct pt_comm *last_ctx; /* the context found last */
    struct pt_comm **ctx_table; /* by hash of the context; chains */
    uint32_t ctx_mask, ctx_count;
    uint32_t ctx_early; /* without a communicator */

    struct match_pool pool; /* bodies of unexpected messages */
    int64_t credit;         /* TERN_EAGER_CREDIT */
    int64_t chunk;          /* bytes of a large transfer claimed at a time */
    int64_t chunk_stream;   /* bytes of a fragment that goes out from where it lies, at most */

    struct ids ids;      /* requests that peers know of */
    struct link lost;    /* struct peer.in_lost: given up, their operations are to be ended */
    uint32_t lost_count; /* peers given up so far */

    struct link pending;  /* struct peer.in_pending: operations wait for room */
    struct link incoming; /* requests: large receives being copied here */
    struct link outgoing; /* requests: large sends offered to their receivers */
    struct link streams;  /* requests: large sends going out in fragments */
    uint32_t large;       /* entries of the last three lists */
    struct link pollers;  /* struct lane_poller */

    uint64_t spin_ns;     /* learnt: how long polling pays before a sleep (wait.c) */
    uint64_t spin_max_ns;
    uint32_t sleepers;    /* threads of this process asleep in this lane */
    uint32_t fruitless;   /* looks without waiting, since one found something */
};

extern TERN_HIDDEN struct lane lane0; /* the lane of every communicator, so far */

static inline bool lane_threaded(const struct lane *l) { return atomic_load_explicit(&l->threaded, memory_order_relaxed); }

void lane_lock(struct lane *) TERN_COLD;
void lane_unlock(struct lane *) TERN_COLD;

static inline void lane_enter(struct lane *l)
{
    if (unlikely(lane_threaded(l))) lane_lock(l);
    else atomic_store_explicit(&l->inside, atomic_load_explicit(&l->inside, memory_order_relaxed) + 1, memory_order_relaxed);
}
static inline void lane_leave(struct lane *l)
{
    if (unlikely(lane_threaded(l))) lane_unlock(l);
    else /* release: pairs with the acquire of whoever waits for the owner to be out */
        atomic_store_explicit(&l->inside, atomic_load_explicit(&l->inside, memory_order_relaxed) - 1, memory_order_release);
}

/* The thread that alone uses the library from now on; `tid` is the system's number of it. Nobody is inside. */
void lane_own(struct lane *, int tid);

/* From now on threads share the lane: returns when the owner is out, or takes the lock as others do. */
void lane_share(struct lane *);

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
struct pt_comm *lane_known_ctx(struct lane *, uint64_t ctx); /* the same, not made: NULL */

/* One turn: deliver messages, retry what waits for room, move large data. Returns how much happened. Lock held. */
int lane_progress(struct lane *);

/* True if there is nothing that this process could do by itself. */
bool lane_idle(struct lane *);

/*
 * The one place where the library waits (wait.c): until ready(arg), polling as long as that pays and then asleep.
 * The lock is held on entry and on return, and given up in between when threads share the lane. `gate`, if not NULL,
 * is one whose opening also ends a sleep.
 */
void lane_wait(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate);
void wait_open(struct lane *);

/* Into and out of the list of what is looked at. Lock held. */
void lane_poller_add(struct lane *, struct lane_poller *);
void lane_poller_remove(struct lane *, struct lane_poller *);

int lane_pollers_look(struct lane *); /* one look at each; how much happened */

/* Counts this process in the gates of what is looked at, before bell_announce, and no more (wait.c). Lock held. */
void lane_pollers_sleep(struct lane *) TERN_COLD;
void lane_pollers_wake(struct lane *) TERN_COLD;

/* One turn of progress for a call that looks without waiting (MPI_Test, MPI_Iprobe). Programs call those in loops: where
 * ranks share cores, every few that find nothing give up the core. Lock held. */
void lane_poll(struct lane *);

/* Ends an operation: result.error is set to `error`, done is called, waiters see it. Lock held. */
void lane_finish(struct request *, int error);

/* Sends a small message of the library's own (n <= 32), parked if there is no room. */
void lane_control(struct peer *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);

/* The peer is connected and nothing waits: small messages may go straight out (peer.short_max), without the lock, if
 * no threads share the lane. */
void lane_open_short(struct lane *, struct peer *);

/* Queues an operation behind others for the same peer; lane_progress tries it again in order. */
void lane_park(struct lane *, struct peer *, struct request *);

/* The one way to report that the library cannot go on (memory is out in a handler): words on stderr, the job ends. */
_Noreturn void lane_fatal(const char *what) TERN_COLD;

#endif
