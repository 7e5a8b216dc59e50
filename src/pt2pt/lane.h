/*
 * lane.h - a lane: one lock, and under it everything that sending and receiving on
 * the communicators mapped to it needs. Data only; any engine that holds the lock
 * can drive it: the caller, later a helper thread or an onload daemon.
 *
 * Single-threaded processes never touch the lock (one predictable branch).
 */
#ifndef TERN_PT2PT_LANE_H
#define TERN_PT2PT_LANE_H

#include "base/list.h"
#include "obj/comm.h"
#include "obj/request.h"
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
};

struct lane {
    bool threaded;
    pthread_mutex_t lock;

    struct pt_comm *last_ctx; /* the context found last */
    struct pt_comm **ctx_table; /* by hash of the context; chains */
    uint32_t ctx_mask, ctx_count;

    struct match_pool pool; /* bodies of unexpected messages */
    int64_t credit;         /* TERN_EAGER_CREDIT */
    int64_t eager_max;      /* bytes; a peer's max_short may be less */
    int64_t chunk;          /* bytes of a large transfer claimed at a time */

    struct link pending;  /* struct peer.in_pending: operations wait for room */
    struct link incoming; /* requests: large receives being copied here */
    struct link outgoing; /* requests: large sends offered to their receivers */
    struct link streams;  /* requests: large sends going out in fragments */
    uint32_t large;       /* entries of the last three lists */

    uint64_t spin_ns;     /* learnt: how long polling pays before a sleep (wait.c) */
    uint64_t spin_max_ns;
    uint32_t sleepers;    /* threads of this process asleep in this lane */
    uint32_t fruitless;   /* looks without waiting, since one found something */
};

extern TERN_HIDDEN struct lane lane0; /* the lane of every communicator, so far */

static inline void lane_enter(struct lane *l)
{
    if (unlikely(l->threaded)) pthread_mutex_lock(&l->lock);
}
static inline void lane_leave(struct lane *l)
{
    if (unlikely(l->threaded)) pthread_mutex_unlock(&l->lock);
}

/* The matching state of a context; made when it is not known yet. NULL when memory is out. Lock held. */
struct pt_comm *lane_find_ctx(struct lane *, uint64_t ctx) TERN_COLD;
static inline struct pt_comm *lane_ctx(struct lane *l, uint64_t ctx)
{
    struct pt_comm *p = l->last_ctx;
    return likely(p && p->ctx == (ctx & ~CTX_COLL)) ? p : lane_find_ctx(l, ctx & ~CTX_COLL);
}
void lane_drop_ctx(struct lane *, struct pt_comm *);

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
