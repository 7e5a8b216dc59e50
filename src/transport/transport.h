/*
 * transport.h - THE contract between the protocols and the transports.
 *
 *     transport  a way of communicating, and its implementation (struct tp_ops): shm, tcp
 *     domain     one adapter of a transport, or its only one, opened by this process (struct tp_dom)
 *     wire       a domain that is open here, as peers are told of it: with a name on the card (struct wire, wires.h).
 *                "Over a wire" means through an open transport, whichever it is
 *
 * A transport delivers active messages: reliable, in order between two processes.
 * A message is an id (which handler), two 64-bit header words, and a payload.
 *
 * Every transport has name, cost, open, close, card, reach, ep_open, ep_close and
 * am_short; and progress and idle, unless every message is delivered by the send. A member
 * with "Needs TP_CAP_X" has a flag in tp_ep.caps that is set if and only if the member
 * is there and usable towards that peer (test/unit/transport/conform_test.c). All
 * others may be NULL.
 *
 * A transport is added by a folder beside shm/, a declaration at the end of this file, a row in find.c and build rules;
 * or as a module, without any change of the library (env.h, test/wire/unix.c).
 *
 * Rules for all members, unless said otherwise there:
 *   who      called by one thread at a time: by the protocol layer with the lane's lock held; once threads share the
 *            transports (wires_share), under locks that the library has for each wire (wire_lock.h), or by any thread,
 *            as tp_ops.threads says
 *   block    never; TERN_AGAIN means "not now": nothing was reserved, nothing sent,
 *            and the caller queues the operation in the peer's pending list (pending_park, pt2pt/pending.h)
 *   memory   arguments are the caller's and are not kept after return
 *   errors   0, TERN_AGAIN, or a fatal code with words (the peer is then lost). The codes are in base/err.h
 *
 * Up-calls: incoming messages through the table tp_handlers, which layers fill before the
 * transports open (am.h); where their payload goes, through tp_sinks; the end of a peer, through tp_lost and tp_left;
 * and completion through op->done(op, rc). None of them blocks or calls progress; they may send. `data` is valid during
 * the call, and beyond it for a handler that keeps it (keep.h).
 *
 * Only processes of this job, and of jobs that it is connected with, can send here. Still every transport checks ids
 * and lengths of what it receives, and handlers check what they are given: a message that breaks the protocol ends the
 * connection (tp_lost), and never damages memory.
 */
#ifndef TERN_TRANSPORT_TRANSPORT_H
#define TERN_TRANSPORT_TRANSPORT_H

#include "base/compiler.h"
#include "base/list.h"
#include "base/sleep.h"
#include "transport/am.h"
#include "transport/env.h"
#include "transport/keep.h"
#include <sched.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tp_dom; /* an open domain; each transport defines its own, and only it looks inside */
struct peer;
struct tp_remote;

/* Transports and their domains that a process opens, at most. */
#define WIRES_MAX 8

enum tp_cap {
    TP_CAP_BCOPY = 1 << 0,  /* am_bcopy */
    TP_CAP_GETPUT = 1 << 1, /* get, put: the peer's private memory can be read and written */
    TP_CAP_MAP = 1 << 2,    /* map: a shared segment of the peer's can be looked into */
    TP_CAP_ARENA = 1 << 3, /* map_arena: so can memory that the peer has allocated for it */
    TP_CAP_ZCOPY = 1 << 4,  /* am_zcopy */
    TP_CAP_REMOTE = 1 << 5, /* remote: registered memory of the peer's is reached without its help */
    TP_CAP_KEEP = 1 << 6,   /* keep: what the peer sends can be held in place beyond its handler */
    TP_CAP_BULK = 1 << 7,   /* bulk_send, bulk_recv: the wire has a protocol of its own for much data */
};

/* The connection to a peer has ended for good, with `code` and words in err_words, and the peer has not taken its
 * leave. Called once for a peer, from progress only. Its ep stays, and every send to it fails with that code and those
 * words. A transport calls tp_lost and tp_left; the layer above sets them while it is open. */
extern TERN_HIDDEN void (*tp_lost)(struct peer *, int code);

/* The peer has taken its leave in order, and all that it sent has been delivered; otherwise as tp_lost. Called by
 * transports that hear of a leave by themselves; the others are asked (tp_ops.left). */
extern TERN_HIDDEN void (*tp_left)(struct peer *);

/* A message whose payload is taken from where it lies (am_zcopy), a bulk transfer, or an operation on remote memory.
 * Memory of the caller's, which stays until `done` is called. */
struct tp_op {
    struct link link;                         /* the transport's */
    void (*done)(struct tp_op *, int rc);     /* once; rc 0: the memory may change again; else the peer is lost */
};

/* Writes up to max bytes of payload to `to`; returns how many. Called once, with max at least the n that am_bcopy was
 * given. */
typedef size_t (*tp_pack_fn)(void *arg, void *to, size_t max);

/* The way to one peer. Lies in the peer's first cache line, filled by ep_open. */
struct tp_ep {
    const struct tp_ops *ops; /* NULL until connected; the first member (peer.c) */
    /* Hot copy of ops->am_short: contiguous payload of at most max_short bytes; copied on return. */
    int (*am_short)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
    void *priv;         /* the transport's own, e.g. the ring */
    uint32_t max_short; /* bytes, also the limit of am_bcopy */
    uint32_t caps;      /* enum tp_cap */
    struct tp_dom *dom; /* the domain that it belongs to; NULL: the only one of the transport */
};

/* Which processes a transport reaches at most: this one, those of the node, those of other hosts as well. */
enum tp_locality { TP_PROCESS, TP_NODE, TP_NETWORK };

/* Members that any thread may be in at any time, once `share` has been called. Card, reach and cost_to, which read what
 * `open` and `others` have set, nudge and wait_fd are such members of every transport. All others exclude each other. */
enum tp_threads {
    TP_THREADS_SEND = 1 << 0, /* am_short, am_bcopy: each thread's messages arrive in the order that it sent them */
    TP_THREADS_COPY = 1 << 1, /* get, put */
    TP_THREADS_LOOK = 1 << 2, /* map, left, helped, sees */

    /* progress, idle, keep and peer_close exclude each other only, and may run beside all other members but ep_close. The
     * other members call nothing of the layers above but pack. */
    TP_THREADS_POLL = 1 << 3,
};

/* Bytes of the name of a domain, the zero included. */
#define TP_DOMAIN_NAME 16

/* A call that costs so many nanoseconds or more is taken for a system call, one that costs less for loads and stores.
 */
#define TP_SYSTEM_CALL_NS 200

/*
 * What a transport costs: orders of magnitude, as bench/ measures on a machine of today. Read when it is open, so
 * `open` may still set it. These figures, and not the transport's name, decide three things: the path to a peer (the
 * one with the least latency to it, see cost_to), how often progress looks at a transport (wires.c), and what a caller
 * leaves to a helper thread.
 */
struct tp_cost {
    enum tp_locality locality;
    uint32_t latency_ns; /* of a small message, from the call to the handler of a process that looks for it */
    uint32_t send_ns;    /* of that, the sender's own time */
    uint32_t poll_ns;    /* a call of progress that finds nothing; 0: there is none */
    uint32_t mb_per_s;   /* of a large message */

    /* Bytes of the largest message that is sent without asking (pt2pt/limits.h), and the variable of the library that says
     * so in its place; NULL: none does. */
    int64_t eager_max;
    const char *eager_variable;
    const char *ahead_variable; /* the same of the largest whose data follow at once, while nobody has asked; NULL: there are none */

    /* Bytes of the smallest message that costs less by bulk_send than in fragments. 0: there is no bulk_send. */
    int64_t bulk_min;
};

/* Of a process that has ended. */
enum tp_end {
    TP_END_UNKNOWN,
    TP_END_LEFT, /* it had taken its leave in order */
    TP_END_DIED,
};

struct tp_ops {
    const char *name;
    struct tp_cost cost;

    /* The domains that this process can open, such as its network adapters: their names, at most `max`, of letters,
     * digits, '_', '-' and '.'. How many, or a code with words. 0, or NULL: there is one, which has no name. */
    int (*domains)(const struct tp_env *env, char (*names)[TP_DOMAIN_NAME], int max);

    /* Opens the domain of this name in this process; NULL: the one without a name. `env` is all that the transport gets
     * of the library. TERN_ERR_NOT_FOUND, with words: it cannot be used here (no device, ...), and the process goes on
     * without it. Any other code ends the start of the process. */
    int (*open)(struct tp_dom **, const struct tp_env *env, const char *domain);
    void (*close)(struct tp_dom *);

    /* Writes the domain's part of the card, by which other processes reach it, at most cap bytes; returns its length,
     * or a code with words. */
    int (*card)(struct tp_dom *, void *buf, size_t cap);

    /* Can this domain reach the domain that has written this part of a card? The two processes find the same. */
    bool (*reach)(struct tp_dom *, const void *card, size_t n);

    /* What it costs to reach the process with this card: *c is `cost`, and this function changes the figures that are
     * different for that process, such as the latency. The two processes find the same. NULL: all cost the same. */
    void (*cost_to)(struct tp_dom *, const void *card, size_t n, struct tp_cost *c);

    /* Fills *ep for messages to `peer`; called at the first one. May make a few system calls, never waits for the peer.
     * 0, or a code with words, and there is no ep. */
    int (*ep_open)(struct tp_dom *, struct peer *, const void *card, size_t n, struct tp_ep *);
    void (*ep_close)(struct tp_dom *, struct tp_ep *); /* gives back what ep_open made; the peer may be freed after it */

    /* This peer alone is to be closed (peer_close), and nothing is under way: tells the other side, as the last message
     * to it. 0: the other side has told this one as well, or never will, and nothing of the peer is left here but what
     * ep_close gives back. TERN_AGAIN: not yet; called again after progress. Also called for peers without an ep, since
     * the other side may have one to this process. NULL: nothing has to be told. */
    int (*peer_close)(struct tp_dom *, struct peer *);

    int (*am_short)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);

    /* enum tp_threads. 0: one thread at a time is in the domain, progress and handlers included. */
    uint32_t threads;

    /* Threads use the transport from now on, as `threads` says. Called once, while no thread is in it: with wires_share, or
     * behind `open` if threads share the others then. Changes tp_ep.am_short of its endpoints if threads send by another
     * function; ep_open fills in that one from then on. Cannot fail. NULL: nothing has to be done. */
    void (*share)(struct tp_dom *);

    /* The layer above has lost the peer (pt_lose): the transport cuts the connection, and delivers nothing more from
     * the peer. Operations under way end by done with a code, from progress; tp_lost is not called. May be called by a
     * handler that this very transport has called. NULL: there is nothing to cut. */
    void (*sever)(struct tp_ep *);

    /* As am_short, the payload of n bytes written in place by pack(arg, to, n). Needs TP_CAP_BCOPY. */
    int (*am_bcopy)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n);

    /* As am_short for n bytes (at most 2 GB) that must not change until op->done, which may be called during the call.
     * 0: the message is on its way, in order with all others. Needs TP_CAP_ZCOPY. */
    int (*am_zcopy)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op);

    /* About n bytes are going to come from the peer, and perhaps no progress is made for a while: the transport makes room for them where
     * it can, so that the peer does not wait. They may come otherwise, or never. NULL: it does nothing. */
    void (*expect)(struct tp_ep *, uint64_t n);

    /*
     * Bulk transfers: bulk_send sends the n bytes at p to the peer; bulk_recv receives n bytes from it to p. A transfer
     * is a bulk_send and a bulk_recv with the same tag. The tag has no other meaning: the receiver chooses it, and the
     * layers above agree on it and on n by messages. No two transfers in one direction between two processes have the
     * same tag while either of them has begun at one side and not ended at both.
     *
     *   result   0: op->done(op, rc) is called once, later or during the call. TERN_DONE: complete on return, and
     *            op->done is not called. TERN_AGAIN, or a code: nothing was started, and op->done is not called
     *   room     a send does not wait for receives to end, nor a receive for sends of the same process
     *   memory   the wire's, until the end of the operation
     *   start    either side may be first. Data that is sent before its receive begins takes no memory of the
     *            receiver's that grows with n
     *   order    none: not among transfers, and not with messages
     *   length   a receive that is sent more bytes than n, or fewer, ends with TERN_ERR_PEER in words; nothing is
     *            written outside of its memory. The send ends with 0 or a code. The connection to the peer stays
     *   end      a send that has ended with 0 reaches its receive, also if the sender then leaves. When the peer is
     *            lost, has left, or was severed, all other transfers end with a code and its words, by done, from
     *            progress, and not before tp_lost or tp_left. ep_close drops transfers without done
     *
     * Any n, 0 included: a wire whose own protocol has a limit divides what is longer. Needs TP_CAP_BULK, as long as
     * the way is open.
     */
    int (*bulk_send)(struct tp_ep *, uint64_t tag, const void *p, size_t n, struct tp_op *op);
    int (*bulk_recv)(struct tp_ep *, uint64_t tag, void *p, size_t n, struct tp_op *op);

    /* sent: a number that grows with each message to the peer, from 0. handled: what that was just after the last
     * message whose handler has returned at the peer; UINT64_MAX: that is not known. NULL, all three: it never is. */
    uint64_t (*sent)(struct tp_ep *);
    uint64_t (*handled)(struct tp_ep *);
    /* The peer is to wake this process when it has handled more. False: it is only now asked, so look again. As `idle`, between the
     * announcement of a sleep and the sleep. */
    bool (*await_handled)(struct tp_ep *);

    /* Copies from (get) or to (put) the peer's private memory, complete on return. The sums of the lengths agree.
     * Needs TP_CAP_GETPUT; the flag may be withdrawn (TERN_ERR_UNSUPPORTED) when the system refuses. */
    int (*get)(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);
    int (*put)(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);

    /* The memory at `offset` of the peer's shared segment. Needs TP_CAP_MAP; valid until ep_close. */
    void *(*map)(struct tp_ep *, uint64_t offset, size_t n);

    /* The n bytes at `place` of the peer's arena (transport/arena.h), readable and writable; valid until ep_close.
     * Needs TP_CAP_ARENA; NULL, and the flag withdrawn, when the system refuses. */
    void *(*map_arena)(struct tp_ep *, uint64_t place, size_t n);

    /* Reading, writing and atomic operations on registered memory of the peer (transport/remote.h). Needs
     * TP_CAP_REMOTE. NULL, or without the flag: those operations go by messages. */
    const struct tp_remote *remote;

    /* A handler that this transport has called keeps the n bytes at data (keep.h). 0: they are part of what that handler
     * was given, and stay as they are until k->end(k), which this sets and any thread may call. TERN_AGAIN: they are not,
     * or cannot be held now or for that time, and are copied. Needs TP_CAP_KEEP. */
    int (*keep)(struct tp_dom *, const void *data, size_t n, enum tp_keep_time, struct tp_kept *k);

    /* Wakes a thread of the peer that sleeps in a wait: something changed in mapped memory that it looks at. `helper`: or
     * its helper, if that sleeps instead, and has to go on with it. NULL without TP_CAP_MAP. */
    void (*nudge)(struct tp_ep *, bool helper);

    /* Has the peer taken its leave in order? Then progress can deliver all that it has sent. NULL: the transport calls
     * tp_left. */
    bool (*left)(struct tp_ep *);

    /* Has the peer a helper thread (pt2pt/helper.h), which a nudge wakes? sees: and nobody of it sleeps, so that what has been
     * sent to it is seen without a nudge. NULL: that is not known. */
    bool (*helped)(struct tp_ep *);
    bool (*sees)(struct tp_ep *);

    /* Delivers at most about `budget` messages; returns how many. */
    int (*progress)(struct tp_dom *, int budget);

    /* The doorbell of this process that senders ring (base/sleep.h). NULL: this transport cannot wake a thread that
     * sleeps on a futex. A transport that has one is opened at the start of the process, or not at all. */
    struct bell *(*bell)(struct tp_dom *);

    /* Called between bell_announce and the sleep: true if the transport has nothing to deliver and its senders
     * know that they must ring. `want_room`: this process is also to be woken when it can send again what found no
     * room before bell_announce. A thread whose send finds none while another one sleeps rings the bell of this process,
     * so that the sleeper announces its sleep again. */
    bool (*idle)(struct tp_dom *, bool want_room);

    /* Adds the cores that connected peers have published, unless they sleep or have ended (bell_core, also for
     * `gates`). True: a peer of the own job, or one that
     * may run on this process's cores, says that there are more processes than cores (bell_is_crowded). NULL: it is not known. */
    bool (*cores)(struct tp_dom *, bool gates, cpu_set_t *);

    /* May the peer run on a core that this process may run on, now? NULL: it is not known. */
    bool (*shares_cores)(const struct tp_ep *);

    /* A thread of this process has waited for half a second: gives memory back that connections hold since they were
     * busy. NULL: there is none. */
    void (*wait_lasts)(struct tp_dom *);

    /* Hands the processes of the own job on this node to the watcher (proc/watcher.h), connected or not. Called in a
     * job whose launcher does not tell of deaths, when a wait lasts, until it returns true. False: the cards of some of
     * them are not there yet. NULL: connections of this transport break when a process dies. */
    bool (*watch)(struct tp_dom *);

    /* The watcher has told of the end of the process with this index. NULL: how it ended is not known. */
    enum tp_end (*how_ended)(struct tp_dom *, uint32_t index);

    /* A descriptor that is readable while progress has something to do (an epoll, say), for transports whose events come
     * by descriptors; a sleeper polls it together with its doorbell. NULL: none. The same one from open to close. It already
     * watches for room where something waits to be sent. A transport with neither this nor a bell cannot wake a sleeper. */
    int (*wait_fd)(struct tp_dom *);

    /* Have all accepted messages left this process, so that they need no more progress here to reach their receivers?
     * Asked until it is true, before the process takes its leave. NULL: always true. */
    bool (*drained)(struct tp_dom *);

    /* Processes of other jobs, which may be on any host, are going to be connected: from now on the card says what they
     * need to know. 0, or a code with words. NULL: the card says it from the start. */
    int (*others)(struct tp_dom *);
};

extern const struct tp_ops tp_self, tp_shm, tp_tcp, tp_mock;

/* What the module of a transport exports (find.h). */
#define TP_MODULE_PREFIX "tern_tp_"
#define TP_MODULE_SYMBOL "tern_transport"
struct tp_module {
    uint32_t contract;             /* TP_CONTRACT, ... */
    uint32_t ops_bytes, env_bytes; /* ... and the sizes of the two structures, as the module was built */
    const struct tp_ops *ops;
};

#endif
