/*
 * request.h - one operation pending, and what is said of it when it is over.
 *
 * The fields up to `done` are common; the rest belongs to the layer whose kind the
 * request has. Blocking calls use a request on their stack.
 *
 * Threads: everything but `complete` is under the lane's lock. complete is stored
 * with release after all other fields are final and loaded with acquire by waiters.
 */
#ifndef TERN_OBJ_REQUEST_H
#define TERN_OBJ_REQUEST_H

#include "base/handle.h"
#include "base/list.h"
#include <mpi.h>

struct comm;
struct type;
struct peer;

enum request_kind { REQ_NONE, REQ_SEND, REQ_RECV, REQ_COLL, REQ_BSEND, REQ_FLUSH, REQ_PAIR, REQ_GENERAL, REQ_WIN };

/* What it is. Written before it is started and after its end, by the thread whose it is then; read by any. */
enum request_flag {
    REQ_PERSISTENT = 1, /* survives completion, to be started again */
    REQ_ACTIVE = 2,     /* persistent: started and not yet waited for */
    REQ_HEAP = 4,       /* came from request_new (a stack request is never freed) */
    REQ_SHARED = 8,     /* the shared, always complete request */
    REQ_INTERNAL = 16,  /* not seen by users */
    REQ_LAST_WORD = 32, /* done, if set, is the last that sees it: it may free it, and `complete` is not set */
    REQ_HOOKED = 64,    /* has hooks */
    REQ_KEPT = 128      /* hooks->look and hooks->keep are there */
};

/* What becomes of it while it is under way: with the lock of its lane, by any thread. */
enum request_course {
    REQ_DETACHED = 1,   /* MPI_Request_free was called: freed at completion */
    REQ_CANCELLING = 2, /* a cancel is under way */
    REQ_ANNOUNCED = 4,  /* a send whose signature has gone out (pt2pt/check.h) */
    REQ_BACKGROUND = 8, /* counted in background.count (pt2pt/background.h) until its end */
    REQ_READY = 32,     /* a posted receive that has said so to its sender (pt2pt/rndv/ready.h) */
    REQ_AHEAD = 64,     /* a send that goes before it is asked for (pt2pt/rndv/ahead.h) */
    REQ_DRIVEN = 16     /* a collective without a frame that a helper thread can go on with all the same */
};

struct request;

/* What is done otherwise than for a persistent send or receive; of the layer that made the request. */
struct request_hooks {
    int (*start)(struct request *); /* it is persistent and inactive; without the lane's lock. 0 or a code with words */
    void (*look)(struct request *); /* REQ_KEPT: somebody waits: it may be at its end, for which no turn of progress is needed,
                                     * or over. Takes the lane's lock itself */
    void (*drop)(struct request *); /* it is over, and the user has let go: frees what hangs on it. Lock held; may be NULL */
    void (*keep)(struct request *); /* REQ_KEPT: in place of giving back its memory, dead until it is started anew; the
                                     * reference to its communicator is still there */
};

/* An operation that waits for room at a peer, which is in one list of them at a time (pt2pt/pending.h). */
struct pending_ops;
struct pending {
    struct link link;
    const struct pending_ops *ops; /* what is done with it */
};

struct request_result {
    int32_t source, tag;
    int64_t bytes; /* received */
    int32_t error; /* enum tern_err */
    bool cancelled; /* with success */
};

enum { REQUEST_COMPLETE = 1 };

struct request {
    struct handle h;
    _Atomic uint32_t complete; /* 0, REQUEST_COMPLETE, or more: threads wait for the end (pt2pt/waits.h) */
    uint8_t kind;
    uint8_t mode; /* enum pt_mode of a send */
    uint8_t flags;  /* enum request_flag */
    uint8_t course; /* enum request_course */
    struct request_result result;
    struct comm *comm;                 /* holds a reference while pending */
    void (*done)(struct request *);    /* called once at completion, before `complete` is set; may be NULL */
    void *owner;                       /* of whoever set `done` */

    /* send and receive */
    struct type *type;
    void *buf;
    int64_t count;
    int64_t bytes;   /* packed size of count x type */
    int32_t rank;    /* the other side, or MPI_ANY_SOURCE; in comm */
    int32_t tag;
    struct peer *peer;
    union {
        struct pending pending; /* while it waits for room: its ops lie where cookie[0] does. None waits that has hooks */
        struct {
            struct link link; /* in whatever list the operation waits */
            union {
                uint64_t cookie[5];                /* the protocol's own */
                const struct request_hooks *hooks; /* REQ_HOOKED */
            };
        };
    };
    uint64_t id;          /* by which the peer names it (pt2pt/ids.h), 0: it does not */
    void *xfer;           /* a large transfer in progress; of a collective: its frame */
    uint64_t ctx;         /* context it was started in */
};

static_assert(sizeof(struct request) == 192, "three lines");
static_assert(offsetof(struct request, link) == offsetof(struct request, pending.link), "one link, by two names");

static inline struct request *request_of(MPI_Request r) { return handle_get(r, HANDLE_REQUEST); }

struct request *request_new(uint8_t kind); /* on the heap; NULL with words when memory is out */
void request_free(struct request *);       /* gives the memory back (heap requests), or lets its owner keep it */

/* The request that is always complete: what a send that needs no waiting returns. One for all, never freed; an object
 * of the handle arena like any other, so that users' values are checked alike. */
extern TERN_HIDDEN struct request *request_done;
int request_open(void);

/* Threads take turns (MPI_THREAD_SERIALIZED): requests are given back by others than those that take them, so what each keeps
 * for reuse is bounded as with handle_set_threaded. */
void request_of_threads(void);
void request_close(void); /* before the arena of handles goes: requests that threads keep for reuse go with it */

static inline bool request_is_complete(const struct request *r)
{
    return atomic_load_explicit(&r->complete, memory_order_acquire) == REQUEST_COMPLETE; /* pairs with the release in lane_finish */
}

#endif
