/*
 * coll.c - from the arguments of a collective to a run: the program (from the communicator's
 * cache, unless it depends on arrays), a frame of it, and the two ways to run that: now, or
 * started and ended by whoever makes progress.
 */
#include "coll/coll.h"

#include "base/err.h"
#include "base/var.h"
#include "coll/cache.h"
#include "coll/call.h"
#include "coll/node.h"
#include "coll/port_pt2pt.h"
#include "obj/request.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include <stdlib.h>
#include <string.h>

enum { CACHED_PROGRAMS = 64 }; /* of a communicator */

/* ---- the communicator's state ------------------------------------------------- */

/* The node of a rank of this group. */
static uint32_t comm_node(const struct comm *c, int rank) { return proc_node_of(rankmap_at(c->local, rank)); }

/* Between two groups: is one of the others elsewhere than the first of this one? */
static bool others_far(const struct comm *c, uint32_t first)
{
    bool far = false;
    for (int r = 0; c->inter && r < c->map->size; r++) far |= proc_node_of(comm_index(c, r)) != first;
    return far;
}

/*
 * Where the ranks are: numbers of nodes in the order of their first ranks. The same at all ranks: it follows from where
 * the job's processes are and which transports there may be.
 */
static bool find_places(const struct comm *c, struct coll_comm *cc)
{
    uint32_t first = comm_node(c, 0), top = 0;
    bool one = true;
    for (int r = 0; r < c->size; r++) {
        uint32_t node = comm_node(c, r);
        one &= node == first;
        if (node > top) top = node;
    }
    cc->nodes = 1;
    cc->far = !one || others_far(c, first) || ((c->size > 1 || c->inter) && !strstr(var_text(VAR_TRANSPORTS), "shm"));
    if (one) return true;
    int32_t *number = calloc((size_t)top + 1, sizeof *number); /* of a node, plus 1 */
    cc->node_of = malloc((size_t)c->size * sizeof *cc->node_of);
    cc->nodes = 0;
    for (int r = 0; r < c->size && number && cc->node_of; r++) {
        int32_t *n = &number[comm_node(c, r)];
        if (!*n) *n = ++cc->nodes;
        cc->node_of[r] = *n - 1;
    }
    free(number);
    return cc->nodes > 0;
}

TERN_COLD static struct coll_comm *coll_comm_new(struct comm *c)
{
    struct coll_comm *cc = calloc(1, sizeof *cc);
    if (cc) cc->cache = coll_cache_open(CACHED_PROGRAMS, coll_frame_free);
    if (!cc || !cc->cache || !find_places(c, cc)) {
        if (cc) coll_cache_close(cc->cache);
        if (cc) free(cc->node_of);
        free(cc);
        err_set(TERN_ERR_NOMEM, "no memory for the collectives of a communicator");
        return NULL;
    }
    c->coll = cc;
    return cc;
}

struct coll_comm *coll_comm(struct comm *c) { return likely(c->coll != NULL) ? c->coll : coll_comm_new(c); }

static void comm_gone(struct comm *c)
{
    struct coll_comm *cc = c->coll;
    if (!cc) return;
    if (cc->node) cc->node_free(cc->node);
    coll_cache_close(cc->cache);
    free(cc->schedules);
    free(cc->node_of);
    free(cc);
    c->coll = NULL;
}

int coll_open(void)
{
    static const struct comm_hooks hooks = {.gone = comm_gone};
    comm_set_hooks(1, &hooks);
    return 0;
}

void coll_settle(void) { node_settle(); }

void coll_close(void)
{
    node_forget_retired();
    comm_set_hooks(1, NULL);
}

/* ---- frames ----------------------------------------------------------------------- */

static int no_memory(enum coll_kind kind)
{
    return err_set(TERN_ERR_NOMEM, "no memory to run a %s", coll_kind_name(kind));
}

/* For an operation whose program depends on arrays: made for this once. */
static int make_frame(struct comm *c, const struct coll_call *a, const struct coll_shape *s,
                      struct coll_frame **frame_p)
{
    struct coll_given v;
    struct goal_prog *prog = NULL;
    coll_call_given(c, a, &v);
    int64_t *mem = coll_call_blocks(c, a, &v);
    int rc = mem ? coll_compile(s, &v, &prog) : no_memory(a->kind);
    *frame_p = rc ? NULL : coll_frame_new(c, prog, NULL);
    if (!rc && !*frame_p) rc = no_memory(a->kind);
    goal_unref(prog);
    free(mem);
    return rc;
}

/* The lock: a collective started earlier may hand in its frame while another thread makes progress. */
static int cached_frame(struct comm *c, const struct coll_call *a, const struct coll_shape *s,
                        struct coll_frame **frame_p)
{
    struct coll_given v;
    struct goal_prog *prog;
    void *frame;
    coll_call_given(c, a, &v);
    lane_enter(c->lane);
    int rc = coll_cache_get(c->coll->cache, s, &v, &prog, &frame);
    lane_leave(c->lane);
    if (rc) return rc;
    *frame_p = frame ? frame : coll_frame_new(c, prog, s);
    goal_unref(prog);
    return *frame_p ? 0 : no_memory((enum coll_kind)s->kind);
}

/* An idle frame with the program of this call, to be given back by coll_frame_give. */
static int take_frame(struct comm *c, const struct coll_call *a, struct coll_frame **frame_p)
{
    struct coll_shape s;
    coll_call_shape(c, a, &s);
    return coll_call_has_arrays(a) ? make_frame(c, a, &s, frame_p) : cached_frame(c, a, &s, frame_p);
}

/* Has this kind a meaning between two groups? */
static bool between_groups(enum coll_kind k) { return k < COLL_SCAN; }

static int check(struct comm *c, const struct coll_call *a)
{
    if (unlikely(c->inter && !between_groups(a->kind)))
        return err_set(TERN_ERR_COMM, "there is no %s on an intercommunicator", coll_kind_name(a->kind));
    if (unlikely(!coll_comm(c) || (c->inter && !coll_comm(c->within)))) return TERN_ERR_NOMEM;
    return coll_call_check(c, a);
}

/* ---- doing it now ------------------------------------------------------------------ */

static int run(struct comm *c, const struct coll_call *a)
{
    struct coll_frame *frame;
    int rc = take_frame(c, a, &frame);
    if (rc) return rc;
    rc = coll_call_bind(coll_frame_goal(frame), c, a);
    if (!rc) rc = coll_frame_run(frame, c->coll->seq++);
    lane_enter(c->lane);
    coll_frame_give(frame);
    lane_leave(c->lane);
    return rc;
}

int coll_run(struct comm *c, const struct coll_call *a)
{
    int rc = check(c, a);
    if (unlikely(rc)) return rc;
    return !c->inter && node_run(c, a, coll_call_bytes(c, a), &rc) ? rc : run(c, a);
}

/* ---- starting it -------------------------------------------------------------------- */

/* The run is over: the request is, too. Lock held, by whoever made progress. */
static void ended(struct goal_frame *f)
{
    struct request *r = f->owner;
    struct coll_frame *frame = f->ctx;
    int status = f->status;
    coll_frame_let_go(frame);
    coll_frame_give(frame);
    lane_finish(r, status);
}

static struct request *new_request(struct comm *c, struct coll_frame *frame)
{
    struct request *r = request_new(REQ_COLL);
    if (!r) return NULL;
    r->comm = comm_ref(c);
    r->type = type_of(MPI_BYTE); /* the types are the frame's */
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    r->xfer = frame;
    return r;
}

int coll_prepare(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    struct coll_frame *frame = NULL;
    int rc = check(c, a);
    if (!rc) rc = take_frame(c, a, &frame);
    if (rc) return rc;
    coll_frame_forget(frame);
    rc = coll_call_bind(coll_frame_goal(frame), c, a);
    struct request *r = rc ? NULL : new_request(c, frame);
    if (!r) {
        coll_frame_free(frame);
        return rc ? rc : TERN_ERR_NOMEM;
    }
    coll_frame_hold(frame);
    coll_frame_number(frame, c->coll->seq++);
    *req_p = r;
    return 0;
}

void coll_go(struct request *r)
{
    struct goal_frame *f = coll_frame_goal(r->xfer);
    f->done = ended;
    f->owner = r;
    goal_start(f);
}

int coll_start(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = coll_prepare(c, a, req_p);
    if (rc) return rc;
    lane_enter(c->lane);
    coll_go(*req_p);
    lane_leave(c->lane);
    return 0;
}
