/*
 * peer.h - the table of peers: one struct peer for each process that this one has
 * talked to, made at first use. The table itself costs a pointer for each process of
 * the own job; for those of other jobs it has address space, of which the system
 * gives memory where there are peers.
 *
 * A process is known by its index (proc/jobs.h): for the processes of this job it is
 * the rank in the job, those of other jobs have indices behind them. Indices never leave
 * the process: what others are told is a struct proc_name.
 *
 * A peer can be closed alone, while the process goes on with others. The layer above decides
 * when (pt2pt/closing.h). Each side sends a last message. A side that has sent its own and has
 * seen the other's, or whose peer is lost, forgets the peer. It may then connect anew: the other
 * side reads the new connection when it has closed the old one.
 *
 * Functions that can fail return a code with words, unless something else is said.
 *
 * Threads: peer_get, peer_connect, peer_of_sender, peer_learn_quota and peer_wake by any thread, once threads share the
 * transports (wire_lock.h): a peer that two of them need is made once, and connected once. Before that, and all others,
 * under the lane's lock; peers_open and peers_close by one thread, while there is no other.
 */
#ifndef TERN_TRANSPORT_PEER_H
#define TERN_TRANSPORT_PEER_H

#include "base/list.h"
#include "proc/jobs.h"
#include "transport/transport.h"

/* What is known of a peer besides (pt2pt/lost.h, pt2pt/doubt.h). */
enum peer_flag {
    PEER_LEFT = 1,         /* with `lost`: the peer took its leave in order */
    PEER_ASKED = 2,        /* this process has sent AM_ASK, and the peer has not answered that it is over */
    PEER_ASKS = 4,         /* the peer has sent AM_ASK: it is told when this process is over */
    PEER_OVER = 8,         /* the peer has said that it is in MPI_Finalize, and starts nothing more */
    PEER_QUOTA_KNOWN = 16, /* the first quota of this process at the peer is in `credit` and `quota_there` */
    PEER_CLOSING = 32,     /* peer_close has been called, or will be: nothing more is sent to the peer */
    PEER_SAID_LAST = 64,   /* the transport has seen the peer's last message: more of it is of a new connection */
    PEER_UNCUT = 8192,     /* with `lost`: the transport has not been told yet (tp_ops.sever) */
    PEER_NEIGHBOUR = 16384, /* it is counted among those that need the same cores (pt2pt/wait_policy.h) */
    PEER_ENDED = 4096,     /* its process has ended during MPI_Finalize here, and it is not known how (pt2pt/lost.h) */
    /* pt2pt/closing.h */
    PEER_IDLE = 128,            /* this side has said IDLE */
    PEER_RESUMING = 256,        /* and after that RESUME, which is not answered yet */
    PEER_IDLE_THERE = 512,      /* the peer has said IDLE */
    PEER_AWAITS_RESUMED = 1024, /* and after that RESUME, which this side has not answered yet */
    PEER_CLOSE_AWAITED = 2048,  /* a thread of this process waits until the peer is closed (pt_await_closed) */
};

/* What one lane has to send to a peer and cannot yet (pt2pt/pending.h). */
struct peer_lane {
    struct link ops;             /* operations that wait for room */
    struct link in_lane;         /* in the lane's list, while `waits` */
    struct link streams_waiting; /* large sends that may go out in fragments after others (pt2pt/rndv/stream.c) */
    struct peer *peer;
    struct peer_lane *next;      /* the same of another lane; NULL: there is none */
    uint32_t lane;               /* its number */
    uint32_t streams;            /* large sends that go out in fragments now */
    bool waits;                  /* `ops` is attempted in each turn; counted in peer.waiting */
};

struct peer {
    /* line 0: all that a small send reads */
    struct tp_ep ep;
    int64_t credit;    /* eager bytes that may still go out before the peer gives some back (pt2pt/credit.h) */
    _Atomic int64_t waiting; /* lanes in which operations wait for room, and one more while the peer is held (pt2pt/pending.h) */
    int64_t short_max; /* eager messages up to this go straight out; -1: not connected, or `waiting` */

    /* line 1: what the others and received messages read besides */
    TERN_ALIGNED(CACHE_LINE) uint32_t index;
    _Atomic uint32_t flags; /* enum peer_flag */
    int64_t due;            /* eager bytes of the peer still to be consumed here until it is given credit */
    char *_Atomic lost;     /* not NULL: nothing goes to or comes from it any more, and why in words (pt2pt/lost.h) */
    void *arriving;         /* the receive that the message just coming in goes to (tp_sinks), else NULL */
    const struct limits *limits; /* of its transport (pt2pt/limits.h), NULL: not connected yet */
    int64_t stored;         /* eager bytes of the peer that lie here unreceived */
    int64_t quota;          /* what it may have sent us and we have not consumed (pt2pt/credit.c) */
    uint32_t ways;          /* that large messages can go (pt2pt/ways.h), once `limits` is known */
    uint32_t loss;          /* with `lost`: its number (pt2pt/lost.h) */

    /* line 2 */
    int64_t quota_there;   /* of ours, at the peer: `credit` is never more */
    void *sunk;             /* as `arriving`, once threads share the transports: with the lock of the peer's wire */
    struct link in_lost;    /* in the list of peers whose operations are to be ended (pt2pt/lost.h) */
    struct peer_lane first; /* of the first lane; those of others follow as they are needed */
    int32_t comms;               /* communicators that it is a member of, for one of another job; -1: not counted yet */
    bool held;                   /* nothing goes out in whatever lane (pending_hold) */
    struct link in_closing;      /* in the list of peers that are to be closed, or that have been (pt2pt/closing.h) */
    void *gather;                /* a long message that is coming in parts (pt2pt/gather.c), freed with the peer; NULL: none */
    struct ahead_msg *ahead;     /* large messages that come without having been asked for (pt2pt/rndv/ahead.c) */
    void *unplaced;              /* data of one that come before it has been handled (the same); freed with the peer; NULL: none */
    struct ready *ready;         /* receives that are ready (pt2pt/rndv/ready.c), freed with the peer; NULL: none has been */
    struct emulate_state *emulate; /* operations on remote memory by messages (transport/emulate/emulate.h), NULL: none so far */
};
static_assert(offsetof(struct peer, quota_there) == 2 * CACHE_LINE, "what messages touch is in two lines");
static_assert(offsetof(struct peer, index) == CACHE_LINE, "a small send touches one line of the peer");

extern TERN_HIDDEN struct peer **peer_table; /* by index, of any job that is known; NULL where there is no peer */
extern uint32_t peer_count; /* see peers_end; at least the size of the own job */
extern TERN_HIDDEN int64_t peer_other_quotas; /* first quotas of the peers of other jobs, in all */

/* What sends without the lock look their peer up in while one thread at a time sends: peer_table, or one that has none: for
 * a while, or once threads share the peers. Acquire: pairs with peer_short_open. */
extern TERN_HIDDEN struct peer **_Atomic peer_short_table;
void peer_short_open(bool open); /* false: no new send finds a peer. Needs peer_short_prepare */
int peer_short_prepare(void);

/* The same for threads that send at the same time: peer_table from wires_share on, before that NULL. The transports that
 * they find there are those for threads. Acquire: pairs with the release in wires_share. */
extern TERN_HIDDEN struct peer **_Atomic peer_shared_table;

/* Do threads share the transports? For a thread in no lane, perhaps while another one is in wires_share. */
static inline bool wires_are_shared(void) { return atomic_load_explicit(&peer_shared_table, memory_order_acquire); }

/* The quota of a new peer here: its share of half of TERN_EAGER_STORE, at most TERN_EAGER_CREDIT. The card says it,
 * since the variables of the peer may be other ones. */
int64_t peer_first_quota(void);

/* Our first quota at a peer, from its card, unless it is known: peer_connect knows it, but a transport may also take a
 * connection that the peer has made. Without a card there is none, and messages are offered. May wait for the card. */
void peer_learn_quota(struct peer *) TERN_COLD;

/*
 * A number that stands for settings of the layers above that processes want to compare: it is on the card, and is set
 * before peers_open. peer_settings_of gets that of the process with this index, and waits until its card is there.
 * TERN_ERR_ABSENT: the card does not have it; or the codes of jobs_card_get.
 */
extern TERN_HIDDEN uint64_t peer_settings;
int peer_settings_of(uint32_t index, uint64_t *settings);

/* Opens the transports named by TERN_TRANSPORTS, makes the table, and puts the card where others find it. 0, or a code
 * with words; then peers_close gives back what is open. peers_close gives back all peers and closes the transports. */
int peers_open(void);
void peers_close(void);

/* The card of this process as it is now. How many bytes, or a code with words. */
#define PEER_CARD_MAX 496
int peer_card(void *card, size_t cap);

/*
 * By each process that is going to be connected with another job, before it tells its card to that job. What the
 * launcher tells is the card of the start, on which transports are missing that the own job does not need. 0, or a code
 * with words. Takes no time when it has been called before.
 */
int peers_meet_others(void) TERN_COLD;

/* A process of another job becomes known with its card: its index. 0, or a code with words. */
int peer_add(struct job_entry *, uint32_t rank, const void *card, size_t n, uint32_t *index);

/*
 * Closes one peer: what it has of memory, descriptors, mappings and rings is given back, here and at the other side, and
 * its index may mean another process once its job is unknown (job_unref). 0: there is no such peer any more. TERN_AGAIN:
 * the other side has not closed it yet; what it still sends is delivered, and the call is to be repeated after progress;
 * or the calling thread is in a transport (wire_lock.h).
 * TERN_ERR_PENDING with words: something is under way to or from it.
 */
int peer_close(uint32_t index) TERN_COLD;

/* Set by the layer above, or NULL. Called when a peer has been connected (peer_connect), by any thread, perhaps more than once. */
extern TERN_HIDDEN void (*peer_connected)(struct peer *);

/* Set by the layer above, or NULL. Called when a peer has been closed, before its struct is freed. True: the layer
 * keeps the struct, which stands for no connection any more, until it calls peer_free. */
extern TERN_HIDDEN bool (*peer_forgotten)(struct peer *);
void peer_free(struct peer *);

/* The peer with this index, connected by the path with the least latency (wires_best). Waits until the process's card
 * is there, if it is of the own job. NULL with words when it cannot be reached, is being closed, or memory is out; or, with
 * TERN_ERR_PENDING, in a handler of one wire while another thread is in the one that it would be connected by. */
struct peer *peer_connect(uint32_t index) TERN_COLD;

/* The peer that a message came from: its struct is made if there is none, and is not connected. NULL with words: no
 * process with this index is known, or memory is out. */
struct peer *peer_of_sender(uint32_t index);

/*
 * Is a process out of reach of all transports of this process?
 *   peer_beyond          0: it is not; or TERN_ERR_ABSENT in words, or a code of jobs_card_get. Costs a comparison if
 *                        all processes have the memory of one node, or a transport goes beyond the node; else it waits
 *                        until the process's card is there
 *   peer_may_be_beyond   false: it is not. Never waits
 *   peer_local_only      false: no process is
 */
bool peer_local_only(void);
bool peer_may_be_beyond(uint32_t index);
int peer_beyond(uint32_t index) TERN_COLD;

/* Can memory of this process be mapped by that one (TP_CAP_MAP), once they are connected? Waits for its card. */
bool peer_is_mappable(uint32_t index);

/* acquire: a thread that finds a connection finds all of `ep` (peer.c, tcp.c) */
static inline bool peer_is_connected(const struct peer *p) { return __atomic_load_n(&p->ep.ops, __ATOMIC_ACQUIRE); }

/* The send itself runs the handler, in the sender's thread. */
static inline bool peer_delivers_at_once(const struct peer *p) { return !p->ep.ops->progress; }

/* Sets peer.short_max. release: a thread that may send finds the endpoint, and what has gone out before; pairs with
 * send_short_shared. */
static inline void peer_set_short(struct peer *p, int64_t most) { __atomic_store_n(&p->short_max, most, __ATOMIC_RELEASE); }

/* Relaxed: a lane knows itself whether it is counted. */
static inline int64_t peer_waiting(const struct peer *p) { return atomic_load_explicit(&p->waiting, memory_order_relaxed); }

/* What the lane with this number has waiting for the peer; NULL: nothing so far. peer_lane_add makes the entry of a lane
 * that has none, which stays as long as the peer; NULL with words: memory is out. By a thread that has the lane. */
struct peer_lane *peer_lane_add(struct peer *, uint32_t lane) TERN_COLD;
static inline struct peer_lane *peer_lane_of(struct peer *p, uint32_t lane)
{
    struct peer_lane *w = &p->first;
    while (unlikely(w && w->lane != lane)) w = __atomic_load_n(&w->next, __ATOMIC_ACQUIRE); /* pairs with peer_lane_add */
    return w;
}

/* All peers have indices below this, but for those that other threads add meanwhile. */
static inline uint32_t peers_end(void) { return __atomic_load_n(&peer_count, __ATOMIC_RELAXED); }

/* The peer with this index, connected or not; NULL: there is none. By any thread: it finds the peer complete. */
static inline struct peer *peer_known(uint32_t index)
{
    if (index >= peers_end()) return NULL;
    return __atomic_load_n(&peer_table[index], __ATOMIC_ACQUIRE); /* pairs with the release in enter (peer.c) */
}

/* Is there no way to the process with this index any more? One that has died does nothing more. */
static inline bool peer_is_lost(uint32_t index)
{
    const struct peer *p = peer_known(index);
    return p && p->lost;
}

/* Is the connection to the process with this index being closed here? */
static inline bool peer_is_closing(uint32_t index)
{
    const struct peer *p = peer_known(index);
    return p && p->flags & PEER_CLOSING;
}

static inline struct peer *peer_get(uint32_t index)
{
    /* acquire: a thread that finds a peer finds it complete */
    struct peer *p = __atomic_load_n(&peer_table[index], __ATOMIC_ACQUIRE);
    return likely(p && peer_is_connected(p)) ? p : peer_connect(index);
}

/* After a message for which the peer's helper thread may be needed: looks again whether that sleeps (sleep.h,
 * bell_check_again), and wakes it. */
static inline void peer_look_again(struct peer *p)
{
    if (p->ep.ops->nudge) p->ep.ops->nudge(&p->ep, true);
}

/* Wakes the process with this index by its bell, if it sleeps: something has changed in memory that it looks at. For
 * processes that no gate wakes (sleep.h). Connects the peer if it is not connected. Nothing happens, and the words of
 * the last failure stay, if it has left or cannot be connected. */
void peer_wake(uint32_t index);

/* Has that process, which shares memory with us, a helper thread? */
bool peer_is_helped(uint32_t index) TERN_COLD;

/* Shared memory of this process that peers on the node can map (tp_ops.map): bytes at an offset, zeroed. NULL: none left. */
void *peer_shared_alloc(size_t bytes, uint64_t *offset);
void peer_shared_free(void *, size_t bytes);
bool peer_shared_public(void); /* can peers map it at all? */

#endif
