/*
 * persist.c - persistent collectives: a request that keeps its frame, with the buffers, types and operator bound,
 * and starts it again and again; and the numbers that keep their messages apart.
 *
 * Ranks may start their persistent operations in different orders (MPI-5.0 6.13), so the sequence that numbers the
 * other collectives does not tell them apart. Each has a number for life, which makes its tags (port_pt2pt.c). All
 * ranks make theirs in the same order, so they count alike, without a message, until the numbers are used up; then they
 * agree on which are free again, by an allreduce over "in use here", and count through those:
 *
 *     used    a bit for every number that a request of this rank has
 *     taken   a bit for every number not to be given: in use somewhere at the last agreement, or given since
 *
 * A number is free here only when its last run has ended here, so all its messages have been received.
 *
 * Threads: `used` is under the lane's lock (requests end anywhere); `taken` and `next` belong to the one thread that
 * calls collectives on the communicator.
 */
#include "coll/coll.h"

#include "base/err.h"
#include "coll/call.h"
#include "coll/port_pt2pt.h"
#include "obj/request.h"
#include "pt2pt/lane.h"
#include <stdlib.h>
#include <string.h>

enum { LAST = 0x7ffe, WORDS = (LAST + 64) / 64 }; /* numbers are 1 to LAST: see port_pt2pt.c */

struct coll_numbers {
    uint64_t used[WORDS], taken[WORDS];
    uint32_t next; /* numbers below this one are taken */
};

static bool has(const uint64_t *set, uint32_t n) { return set[n / 64] >> n % 64 & 1; }
static void put(uint64_t *set, uint32_t n) { set[n / 64] |= UINT64_C(1) << n % 64; }
static void take_out(uint64_t *set, uint32_t n) { set[n / 64] &= ~(UINT64_C(1) << n % 64); }

/* ---- numbers --------------------------------------------------------------------- */

static int allreduce_or(struct comm *c, const uint64_t *in, uint64_t *out)
{
    struct type *t = type_of(MPI_UINT64_T);
    struct op *op = op_of(MPI_BOR);
    struct coll_call a = {.kind = COLL_ALLREDUCE, .sendbuf = in, .recvbuf = out, .rcount = WORDS, .rtype = t, .op = op};
    return coll_run(c, &a);
}

/* What is in use anywhere. Between two groups each learns of the other, then hears of itself. */
static int agree(struct comm *c, struct coll_numbers *n)
{
    uint64_t seen[WORDS];
    lane_enter(c->lane);
    memcpy(seen, n->used, sizeof seen);
    lane_leave(c->lane);
    int rc = allreduce_or(c, seen, n->taken);
    for (int i = 0; i < WORDS && c->inter && !rc; i++) seen[i] |= n->taken[i];
    if (c->inter && !rc) rc = allreduce_or(c, seen, n->taken);
    if (!rc) n->next = 1;
    return rc;
}

static bool find_free(struct coll_numbers *n)
{
    while (n->next <= LAST && has(n->taken, n->next)) n->next++;
    return n->next <= LAST;
}

/* A number that no rank uses, the same at all; 0: a code in *rc. */
static uint32_t take_number(struct comm *c, int *rc)
{
    struct coll_numbers *n = c->coll->numbers;
    if (!find_free(n) && (*rc = agree(c, n))) return 0;
    if (!find_free(n)) {
        *rc = err_set(TERN_ERR_NOMEM, "a communicator can have %d persistent collectives, and has them", LAST);
        return 0;
    }
    put(n->taken, n->next);
    lane_enter(c->lane);
    put(n->used, n->next);
    lane_leave(c->lane);
    return n->next;
}

static int open_numbers(struct comm *c)
{
    struct coll_comm *cc = coll_comm(c);
    if (!cc) return err_code();
    if (!cc->numbers) cc->numbers = calloc(1, sizeof *cc->numbers);
    if (!cc->numbers) return err_set(TERN_ERR_NOMEM, "no memory for the persistent collectives of a communicator");
    if (!cc->numbers->next) cc->numbers->next = 1;
    return 0;
}

/* ---- requests --------------------------------------------------------------------- */

/* The run is over. Lock held, by whoever made progress. A request that the user let go goes now, and the frame with it.
 */
static void ended(struct goal_frame *f)
{
    struct request *r = f->owner;
    lane_finish(r, pt_call_log_outcome(r->comm, coll_frame_status(f, r)));
}

static int start(struct request *r)
{
    struct lane *lane = r->comm->lane; /* the run may end, and another thread let the request go, before we are back */
    struct goal_frame *f = coll_frame_goal(r->xfer);
    r->flags |= REQ_ACTIVE;
    r->result.error = 0;
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
    lane_enter(lane);
    lane_going(lane);
    goal_start(f);
    lane_leave_to_itself(lane, r);
    lane_leave(lane);
    return 0;
}

static void drop(struct request *r)
{
    struct coll_frame *frame = r->xfer;
    take_out(r->comm->coll->numbers->used, coll_frame_number_of(frame));
    coll_frame_let_go(frame);
    coll_frame_give(frame);
}

static const struct request_hooks hooks = {.start = start, .drop = drop};

/* What coll_prepare_messages made, before it was started, becomes persistent. */
static void make_persistent(struct request *r, uint32_t number)
{
    struct goal_frame *f = coll_frame_goal(r->xfer);
    coll_frame_keep_number(r->xfer, number);
    f->done = ended;
    f->owner = r;
    r->flags |= REQ_PERSISTENT | REQ_HOOKED;
    r->hooks = &hooks;
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed); /* inactive: complete, with an empty status */
}

int coll_persist(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    struct request *r;
    int rc = open_numbers(c);
    uint32_t number = rc ? 0 : take_number(c, &rc);
    if (!rc) coll_call_note_any(c, a);
    if (!rc) rc = coll_prepare_messages(c, a, &r);
    if (!rc) {
        make_persistent(r, number);
        *req_p = r;
    } else if (number) {
        lane_enter(c->lane);
        take_out(c->coll->numbers->used, number);
        lane_leave(c->lane);
    }
    return rc;
}
