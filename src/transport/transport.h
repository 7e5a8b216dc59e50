/*
 * transport.h - THE contract between the protocols and the wires.
 *
 * A transport delivers active messages: reliable, in order between two processes.
 * A message is an id (which handler), two 64-bit header words, and a payload.
 * Everything else a wire can do is a capability: a member of tp_ops that may be
 * NULL, with a flag in tp_ep.caps that is set if and only if the member is there
 * and usable towards that peer (test/unit/transport/conform_test.c).
 *
 * Rules for all members, unless said otherwise there:
 *   who      called by the protocol layer with the lane's lock held
 *   block    never; TERN_AGAIN means "not now": nothing was reserved, nothing sent,
 *            and the caller parks the operation on the peer's pending list
 *   memory   arguments are the caller's and are not kept after return
 *   errors   0, TERN_AGAIN, or a fatal code with words (the peer is then lost)
 *
 * Up-calls: incoming messages through the table tp_handlers, filled at start; where
 * their payload goes, through tp_sinks; the end of a peer, through tp_lost and tp_left; and
 * completion through op->done(op, rc). None of them blocks or calls progress; they may
 * send. `data` is valid only during the call.
 *
 * What a peer sends has been made by a process of the job, but a transport over a wire
 * checks ids and lengths all the same, and handlers check what they are given: a message
 * that cannot be is the end of the connection (tp_lost), never of memory.
 */
#ifndef TERN_TRANSPORT_TRANSPORT_H
#define TERN_TRANSPORT_TRANSPORT_H

#include "base/compiler.h"
#include "base/list.h"
#include "base/sleep.h"
#include <sched.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tp_dom; /* a transport opened by this process; its first member is struct tp_dom_head */
struct peer;

enum tp_cap {
    TP_CAP_BCOPY = 1 << 0,  /* am_bcopy */
    TP_CAP_GETPUT = 1 << 1, /* get, put: the peer's private memory can be read and written */
    TP_CAP_MAP = 1 << 2,    /* map: a shared segment of the peer's can be looked into */
    TP_CAP_WINDOW = 1 << 3, /* window: so can memory that the peer has allocated for it */
    TP_CAP_ZCOPY = 1 << 4,  /* am_zcopy */
};

/* Ids of active messages: a small closed set, so that the table is an array. */
enum tp_am {
    AM_NONE, /* 0 is not an id: rings use it for "empty" */
    AM_EAGER,
    AM_EAGER_SYNC,
    AM_RTS,
    AM_CTS,
    AM_FRAG,
    AM_ACK,
    AM_CREDIT,
    AM_CANCEL,
    AM_CANCELLED,
    AM_SIGNATURE,
    AM_ASK,
    AM_OVER,
    AM_CALL,
    AM_CLASH,
    AM_PAD, /* reserved for the transports: a filler that is not delivered */
    AM_COUNT = 16
};

/* Delivery of one message from `from`. n bytes at data; h0, h1 as sent. */
typedef void (*tp_handler_fn)(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);
extern TERN_HIDDEN tp_handler_fn tp_handlers[AM_COUNT];

/* Where the payload of a message that is just coming in is to go: n bytes of writable memory, which stay so until the
 * handler is called with data == that memory, or tp_lost with this peer, or its ep is severed. NULL: into memory of the
 * transport's own, of which there is no more than max_short: the sender of a longer message may be given up. A transport
 * that reads from a stream asks, for messages longer than what it has read already; others never do. */
typedef void *(*tp_sink_fn)(struct peer *from, uint64_t h0, uint64_t h1, size_t n);
extern TERN_HIDDEN tp_sink_fn tp_sinks[AM_COUNT]; /* NULL: no sink for that id */

/* The way to a peer is gone for good (`code`, with words in err_words), other than by its own leave-taking. Called once
 * for a peer, from progress only. Its ep stays, and every send to it fails with that code and those words. */
extern TERN_HIDDEN void (*tp_lost)(struct peer *, int code);

/* The peer has taken its leave in order, and all that it sent has been delivered; words in err_words. As tp_lost
 * otherwise. From transports that hear of it by themselves; the others are asked (tp_ops.left). */
extern TERN_HIDDEN void (*tp_left)(struct peer *);

/* A message whose payload is taken from where it lies (am_zcopy). The caller's, until done. */
struct tp_op {
    struct link link;                         /* the transport's */
    void (*done)(struct tp_op *, int rc);     /* once; rc 0: the memory may change again; else the peer is lost */
};

/* Writes up to max bytes of payload to `to`; returns how many. Called once, with room for what am_bcopy was told. */
typedef size_t (*tp_pack_fn)(void *arg, void *to, size_t max);

/* The way to one peer. Lies in the peer's first cache line, filled by ep_open. */
struct tp_ep {
    const struct tp_ops *ops; /* NULL until connected */
    /* Hot copy of ops->am_short: contiguous payload of at most max_short bytes; copied on return. */
    int (*am_short)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
    void *priv;         /* the transport's own, e.g. the ring */
    uint32_t max_short; /* bytes, also the limit of am_bcopy */
    uint32_t caps;      /* enum tp_cap */
};

struct tp_ops {
    const char *name;

    /* Opens the transport in this process. TERN_ERR_NOT_FOUND: not here (no device, ...), never fatal. */
    int (*open)(struct tp_dom **);
    void (*close)(struct tp_dom *);

    /* Writes the wire-up address, at most cap bytes; returns its length. */
    int (*card)(struct tp_dom *, void *buf, size_t cap);

    /* 0: the process with this card cannot be reached, else the cost (small = near). Symmetric. */
    int (*reach)(struct tp_dom *, const void *card, size_t n);

    /* Makes the way to `peer`; called at the first message to it. May do a few system calls, never waits for the peer. */
    int (*ep_open)(struct tp_dom *, struct peer *, const void *card, size_t n, struct tp_ep *);
    void (*ep_close)(struct tp_dom *, struct tp_ep *);

    /* The peer is to be closed alone (peer_close), and nothing is under way: says so to the other side, as the last message
     * to it. 0: the other side has said so as well, or will never, and nothing of it is left here but what ep_close gives
     * back. TERN_AGAIN: not yet; called again after progress. Also for peers that there is no way to, which may have one to
     * us. NULL: there is nothing to say. */
    int (*part)(struct tp_dom *, struct peer *);

    int (*am_short)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);

    /* The protocol has given the peer up (it sent what cannot be): the way is cut, nothing more is delivered from it. What
     * is under way ends by done with a code, from progress; tp_lost is not called. May be called by a handler that this
     * very transport has called. NULL: there is nothing to cut. */
    void (*sever)(struct tp_ep *);

    /* As am_short, the payload of n bytes written in place by pack(arg, to, n). Needs TP_CAP_BCOPY. */
    int (*am_bcopy)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n);

    /* As am_short for n bytes (at most 2 GB) that must not change until op->done, which may be called during the call.
     * 0: the message is on its way, in order with all others. Needs TP_CAP_ZCOPY. */
    int (*am_zcopy)(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op);

    /* Copies from (get) or to (put) the peer's private memory, complete on return. The sums of the lengths agree.
     * Needs TP_CAP_GETPUT; the flag may be withdrawn (TERN_ERR_UNSUPPORTED) when the system refuses. */
    int (*get)(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);
    int (*put)(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);

    /* The memory at `offset` of the peer's shared segment. Needs TP_CAP_MAP; valid until ep_close. */
    void *(*map)(struct tp_ep *, uint64_t offset, size_t n);

    /* The n bytes at `place` of the peer's arena (transport/arena.h), readable and writable; valid until the next call or
     * ep_close. Needs TP_CAP_WINDOW; NULL, and the flag withdrawn, when the system refuses. */
    void *(*window)(struct tp_ep *, uint64_t place, size_t n);

    /* Wakes the peer if it sleeps: something changed in mapped memory that it looks at. NULL without TP_CAP_MAP. */
    void (*nudge)(struct tp_ep *);

    /* Has the peer taken its leave in order? Then what it has sent is there for progress. NULL: tp_left says so. */
    bool (*left)(struct tp_ep *);

    /* Has the peer a helper thread (pt2pt/helper.h), which a nudge wakes? NULL: not to be known. */
    bool (*helped)(struct tp_ep *);

    /* Delivers at most about `budget` messages; returns how many. */
    int (*progress)(struct tp_dom *, int budget);

    /* The doorbell that senders ring, NULL if this transport cannot wake a futex sleeper. */
    struct bell *(*bell)(struct tp_dom *);

    /* Called between bell_announce and the sleep: true if the transport has nothing to deliver and its senders
     * know that they must ring. `want_room`: also be woken when a full ring has room again. */
    bool (*idle)(struct tp_dom *, bool want_room);

    /* Adds the cores that connected peers have published, unless they sleep or have ended (bell_core). `gates`: see there.
     * NULL: not to be known. */
    void (*cores)(struct tp_dom *, bool gates, cpu_set_t *);

    /* This process waits, and has done so for a while: gives memory back that connections hold since they were busy.
     * NULL: they hold none. */
    void (*trim)(struct tp_dom *);

    /* A descriptor that is readable while progress has something to do (an epoll, say), for transports whose events come
     * by descriptors; a sleeper polls it together with its doorbell. NULL: none. It already watches for room where
     * something waits to be sent. */
    int (*wait_fd)(struct tp_dom *);

    /* Until true, some of what has been accepted still needs progress to get to its receivers: asked when the process
     * takes its leave, and perhaps looks no more. NULL: nothing ever does. */
    bool (*drained)(struct tp_dom *);
};

extern const struct tp_ops tp_self, tp_shm, tp_tcp, tp_mock;

#endif
