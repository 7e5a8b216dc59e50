/*
 * api.h - point-to-point communication: all that the layers above may use.
 *
 * Two kinds of functions:
 *   pt_send, pt_isend, pt_recv, ...: what entry points call. They take the lane's
 *   lock themselves. Arguments have been checked; MPI_PROC_NULL is allowed.
 *   pt_*_start, pt_cancel_locked, ...: for code that runs inside the lane (schedules):
 *   the caller holds the lock (lane_enter), and the request is the caller's.
 *
 * Every function returns 0 or a code with words. A request that fails later
 * carries the code in result.error.
 *
 * Source: MPI-5.0 chapter 3; LHS for matching; OMX-2, PRO-18 for the large protocol.
 */
#ifndef TERN_PT2PT_API_H
#define TERN_PT2PT_API_H

#include "obj/comm.h"
#include "obj/request.h"
#include "type/type.h"

/* TERN_CHECK=types: the types of a send and its receive are compared (check.h). Layers above then say the user's types
 * rather than bytes, where they can. */
extern TERN_HIDDEN bool pt_checking;

enum pt_mode { PT_STANDARD, PT_SYNC, PT_READY };

/* Contexts of a communicator: users' messages, and the library's own (collectives). */
enum pt_half { PT_USER = 0, PT_COLL = 1 };

/* Tags in the collective half that messages between two processes have: they need nobody else (lost.h). */
enum { PT_FOR_TWO = 4 << 28, PT_FOR_TWO_END = 5 << 28 };
static inline bool pt_tag_is_for_two(int tag) { return tag >= PT_FOR_TWO && tag < PT_FOR_TWO_END; }

/* ---- life ---- */
int pt_register(void); /* its messages (transport/am.h): before peers_open */
void pt_unregister(void);
/* After comm.h's objects are possible, before comm_open. `threaded` is for tests: the library opens for one thread, and calls pt_share. */
int pt_open(bool threaded);
void pt_close(void);

/* Threads use the library at the same time from now on; until then one at a time does, and their calls are ordered. Called
 * once, by any thread that is not inside. `others`: another one may be, which is waited for. 0, or a code with words: then
 * threads must not. pt_share_prepare: does before all of it that can fail. */
int pt_share(bool others);
int pt_share_prepare(void);
bool pt_may_share(void); /* they do, or may begin to: pt_share_prepare was called */

/* A thread that makes progress while the callers compute (helper.h): from now on, if it is not there yet; and no more.
 * Not by a thread that is inside of the layer; others may be. pt_help: 0, or a code with words. */
int pt_help(void);
void pt_help_no_more(void);

/* Is there a core for such a thread in each rank of this node, beside those that compute? */
bool pt_help_has_core(void);

/* The ways that large messages can go over a transport (ways.h), in words: "bulk, packed". In `text`, which is returned. */
struct tp_ops;
const char *pt_ways(const struct tp_ops *, char *text, size_t room);

/* progress_open and progress_close (transport/progress.h), by threads that are outside of the layer. */
struct step;
int pt_progress_open(struct step *);
void pt_progress_close(struct step *);

/* Until nothing that this process has to send waits for room, goes out in fragments or is still with a transport: before
 * the last barrier. */
void pt_drain(void);

/* The last barrier of MPI_Finalize begins, and the call ends: in between other processes may leave (lost.h). `alone`: no session
 * goes on, and peers that wait for something of this process that it has not begun are told that it never will
 * (doubt.h). Processes that have ended meanwhile, nobody knows how, are lost from the end of the call on. */
void pt_finalize_begin(bool alone);
void pt_finalize_end(void);

/*
 * Sends a message of a layer above to the process with this index, n <= PT_MESSAGE_LARGEST bytes at `data`, which are
 * copied. `id` is the layer's (transport/am.h), and its handler there is called once, with all of the message. Messages
 * to one process go out in order with each other and with sends to it; without room, they wait here. One that waits when
 * the connection is closed (closing.h) goes out by the next one; one that waits when the process is lost is dropped.
 *
 * 0; TERN_ERR_PEER in words: the process is lost, or cannot be reached; TERN_ERR_NOMEM; TERN_ERR_ARG: n is too large.
 *
 * Threads: takes the lock of the first lane; handlers may call it as well.
 */
/*
 * pt_message_in: the same to a member of a communicator, whose lane is held; its context is h0, and h1 is 0. In order with what
 * is sent to that process in the lane.
 */
#define PT_MESSAGE_LARGEST (1 << 20)
int pt_message(uint32_t index, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n);
int pt_message_in(struct comm *, int32_t rank, unsigned id, const void *data, size_t n);

/* 0, or TERN_ERR_ABSENT in words: some member is out of reach of all transports. Costs a look where that cannot be. */
int pt_reaches_all(const struct comm *);

/* The communicator can do collectives from now on (comm.calls): or cannot, for a member has died before. */
void pt_lost_calls(struct comm *);

/* 0, or TERN_ERR_PEER in words: one of the members, which are in the communicator as well, has died. */
int pt_all_live(const struct comm *, const struct rankmap *members);

/*
 * ---- the short way, for entry points ----
 * A standard or ready send to a rank (not MPI_PROC_NULL; the type may be uncommitted): 0 when the message is out and the buffer free; anything else
 * is for the *_long functions, which do it however it has to be done.
 */
#define PT_LONG_WAY 1
int pt_send_short(const void *buf, int64_t count, const struct type *, int dest, int tag, struct comm *); /* MPI's order */
int pt_send_long(struct comm *, const void *buf, int64_t count, struct type *, int dest, int tag, enum pt_mode, int tried);
int pt_isend_long(struct comm *, const void *buf, int64_t count, struct type *, int dest, int tag, enum pt_mode, int tried,
                  struct request **req_p);

/* ---- blocking ---- */
int pt_send(struct comm *, const void *buf, int64_t count, struct type *, int dest, int tag, enum pt_mode);
int pt_recv(struct comm *, void *buf, int64_t count, struct type *, int source, int tag, struct request_result *);

/* ---- nonblocking: *req_p gets a request of the caller's (or the shared request_done) ---- */
int pt_isend(struct comm *, const void *buf, int64_t count, struct type *, int dest, int tag, enum pt_mode,
             struct request **req_p);
int pt_irecv(struct comm *, void *buf, int64_t count, struct type *, int source, int tag, struct request **req_p);

/* ---- persistent: made inactive; each pt_start runs it once ---- */
int pt_send_init(struct comm *, const void *buf, int64_t count, struct type *, int dest, int tag, enum pt_mode,
                 struct request **req_p);
int pt_recv_init(struct comm *, void *buf, int64_t count, struct type *, int source, int tag, struct request **req_p);
int pt_start(struct request *);

/* ---- inside the lane: the caller owns the request's memory and sets r->done, r->owner if it wants to know ----
 * pt_prepare fills the request (comm, type and so on are borrowed until completion); pt_*_start begin it. It may be
 * complete on return, r->done having been called. */
static inline void pt_prepare(struct request *r, uint8_t kind, struct comm *c, enum pt_half half, const void *buf,
                              int64_t count, struct type *t, int rank, int tag, enum pt_mode mode)
{
    r->h.kind = HANDLE_REQUEST;
    r->kind = kind;
    r->mode = (uint8_t)mode;
    r->comm = c;
    r->ctx = c->ctx | half;
    r->buf = (void *)(uintptr_t)buf;
    r->count = count;
    r->type = t;
    r->rank = rank;
    r->tag = tag;
    r->peer = NULL;
    r->xfer = NULL;
    r->id = 0;
    r->course &= (uint8_t)~REQ_CANCELLING;
    r->result.cancelled = false;
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
}
void pt_send_start(struct request *);
void pt_recv_start(struct request *);

/*
 * n plain bytes in the collective context, without a request: 0 when the message is out and the
 * buffer free; PT_LONG_WAY: nothing has happened, use pt_send_start.
 */
int pt_send_quick(struct comm *, const void *buf, size_t n, int dest, int tag);

/* Behind such a message of an operation in the background: the receiver's helper may be asleep (sleep.h, bell_check_again). */
void pt_look_again(struct comm *, int dest);

/* ---- completion ---- */
int pt_wait(struct request *);                 /* until complete; returns result.error */
void pt_recall(const struct request *);        /* it has failed: its words become those of this thread's last failure */
void pt_recall_member(const struct comm *);    /* the same for an operation of all members, whoever of them was lost last */
void pt_progress_once(struct comm *);          /* one turn of progress for a test that found nothing */
/* Waits until one (all = false) or all of the n requests are complete; NULL entries are skipped. */
bool pt_waits_among_threads(void); /* a thread that waits may sleep while another one looks at the wires (waits.h) */
void pt_wait_many(int n, struct request *const req[], bool all);
void pt_finish_all(struct comm *);             /* until all that was started on the communicator is complete */
void pt_release(struct request *);             /* the user lets go: freed now or at completion */
void pt_retire(struct request *);              /* the same for one that is complete and not the shared one */

/* References to a communicator that were those of retired requests, to be given back together. `n` is 0 at first; pt_give_refs
 * follows. */
struct pt_refs {
    struct comm *comm;
    int32_t n;
};
void pt_retire_counting(struct request *, struct pt_refs *);
void pt_give_refs(struct pt_refs *);

/* The caller, who has a reference, is going to let the communicator go: references to it that were taken ahead for receives are
 * given back (context_ref). Its references are those that are needed, until a receive is posted again. */
void pt_give_back_ahead(struct comm *) TERN_COLD;
static inline void pt_let_go(struct comm *c)
{
    if (unlikely(handle_is_threaded())) pt_give_back_ahead(c);
}

/* ---- generalized requests (REQ_GENERAL): what the library does not do itself ---- */
bool pt_general_complete(struct request *); /* it is over; true if the user has let go: the caller disposes of it */
bool pt_general_release(struct request *);  /* the user lets go; true if it is over: the caller disposes of it */

/* ---- probe: *found_p false if nothing is there (blocking: waits until something is) ---- */
int pt_probe(struct comm *, int source, int tag, bool blocking, bool *found_p, struct request_result *);

/* Matched probe: takes the message out of matching. */
struct pt_message {
    struct handle h; /* HANDLE_MESSAGE */
    struct comm *comm;
    void *body;
    int32_t source, tag;
};
int pt_mprobe(struct comm *, int source, int tag, bool blocking, bool *found_p, struct pt_message **,
              struct request_result *);
int pt_imrecv(struct pt_message *, void *buf, int64_t count, struct type *, struct request **req_p); /* eats the message */

/* ---- cancel: marks the request; completion tells whether it succeeded (result.cancelled) ---- */
int pt_cancel(struct request *);
void pt_cancel_locked(struct request *);

#endif
