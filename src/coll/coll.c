/*
 * coll.c - from the arguments of a collective to a run: the program (from the communicator's
 * cache), a frame of it, and the two ways to run that: now, or started and ended by whoever
 * makes progress.
 */
#include "coll/coll.h"

#include "base/err.h"
#include "base/var.h"
#include "coll/cache.h"
#include "coll/call.h"
#include "coll/node/node.h"
#include "coll/places.h"
#include "coll/port_pt2pt.h"
#include "coll/select.h"
#include "obj/hints.h"
#include "obj/request.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include <stdlib.h>
#include <string.h>

enum { CACHED_PROGRAMS = 64 }; /* of a communicator */

/* ---- the communicator's state ------------------------------------------------- */

/*
 * The lowest bit of peer_settings is not compared: a rank that has it shares cores with others, or never spins. Rank 0 of a
 * communicator decides by its own one for all how they wait for each other inside the node, and all that follows from that: ranks
 * may differ in TERN_SPIN.
 */
#define SHARES_CORES UINT64_C(1)

static uint64_t own_settings(void)
{
    bool shares = proc_self()->oversubscribed || !strcmp(var_text(VAR_SPIN), "never");
    return (coll_select_digest() & ~SHARES_CORES) | (shares ? SHARES_CORES : 0);
}

/* Ranks whose programs come from different tables would wait for each other for ever: all compare with rank 0, whose settings these
 * are. */
static int compare_settings(const struct comm *c, const struct rankmap *group, uint64_t *first)
{
    uint32_t index = rankmap_at(group, 0);
    *first = peer_settings;
    int rc = index == proc_self()->rank ? 0 : peer_settings_of(index, first);
    if (rc || (*first | SHARES_CORES) == (peer_settings | SHARES_CORES)) return rc;
    return err_set(TERN_ERR_ARG,
                   "rank %d of '%s' (%s) has other settings than %s: what "
                   "TERN_COLL_TABLE says and the variables that tern_info marks as equal on all ranks must be the same",
                   c->rank, comm_name(c), jobs_long_words(proc_self()->rank), jobs_long_words(index));
}

/* What the hints say, all or nothing of it. */
static bool read_hints(const struct comm *c, struct coll_comm *cc)
{
    free(cc->wanted);
    cc->wanted = c->info ? malloc(COLL_KINDS * sizeof *cc->wanted) : NULL;
    if (cc->wanted) coll_select_hints(c->info, cc->wanted);
    cc->forced = c->inter || cc->far ? UINT32_MAX : coll_select_forced(cc->wanted);
    for (int i = 0; i < 2; i++) cc->asked[i] = cc->forced | coll_select_asked(cc->wanted, i == 0);
    return cc->wanted || !c->info;
}

TERN_COLD static struct coll_comm *coll_comm_new(struct comm *c)
{
    uint64_t first, other;
    if (pt_reaches_all(c) || compare_settings(c, c->local, &first) || (c->inter && compare_settings(c, c->map, &other))) return NULL;
    struct coll_comm *cc = calloc(1, sizeof *cc);
    if (cc) cc->cache = coll_cache_open(CACHED_PROGRAMS, coll_frame_free);
    if (!cc || !cc->cache || !coll_places_find(c, cc) || !read_hints(c, cc)) {
        if (cc) coll_cache_close(cc->cache);
        if (cc) coll_places_drop(cc);
        free(cc);
        err_set(TERN_ERR_NOMEM, "no memory for the collectives of a communicator");
        return NULL;
    }
    cc->oversubscribed = !cc->far && !c->inter && first & SHARES_CORES;
    cc->slot_max = node_slot_max(c);
    __atomic_store_n(&c->call_log, &cc->call_log, __ATOMIC_RELEASE); /* pairs with the acquire in comm_of_word (call_log.c) */
    atomic_store_explicit(&c->collective, !c->inter, memory_order_relaxed);
    c->coll = cc;
    pt_lost_calls(c);
    return cc;
}

struct coll_comm *coll_comm(struct comm *c) { return likely(c->coll != NULL) ? c->coll : coll_comm_new(c); }

static void comm_gone(struct comm *c)
{
    struct coll_comm *cc = c->coll;
    if (!cc) return;
    if (cc->node) cc->node_free(cc->node);
    /* From here on no thread that delivers a question about its calls finds them. */
    lane_enter(c->lane);
    pt_call_log_gone(c);
    c->call_log = NULL;
    lane_leave(c->lane);
    coll_cache_close(cc->cache);
    free(cc->schedules);
    coll_places_drop(cc);
    free(cc->numbers);
    free(cc->wanted);
    free(cc);
    atomic_store_explicit(&c->collective, false, memory_order_relaxed);
    c->coll = NULL;
}

void coll_forget(struct comm *c)
{
    if (!c->coll) return;
    lane_enter(c->lane);
    coll_cache_clear(c->coll->cache);
    lane_leave(c->lane);
}

/* Programs chosen by the old hints are forgotten. Without memory for the new ones there are none. */
static void hints_changed(struct comm *c)
{
    coll_forget(c);
    if (c->coll) read_hints(c, c->coll);
}

int coll_choose_open(void)
{
    int rc = coll_places_open();
    if (!rc) rc = coll_select_open();
    peer_settings = own_settings();
    coll_cache_bound((size_t)var_int(VAR_COLL_MEMORY));
    return rc;
}

void coll_choose_close(void) { coll_select_close(); }

int coll_open(void)
{
    static const struct comm_hooks hooks = {.gone = comm_gone};
    comm_set_hooks(1, &hooks);
    coll_call_open();
    comm_hints_extend(coll_select_hint, hints_changed);
    return 0;
}

void coll_settle(void) { node_settle(); }

void coll_close(void)
{
    node_forget_retired();
    comm_hints_extend(NULL, NULL);
    comm_set_hooks(1, NULL);
}

/* ---- frames ----------------------------------------------------------------------- */

static int no_memory(enum coll_kind kind)
{
    return err_set(TERN_ERR_NOMEM, "no memory to run a %s", coll_kind_name(kind));
}

/* The program that is not in the cache: chosen, made and kept. */
static int make_program(struct comm *c, const struct coll_key *k, const struct coll_given *v, struct goal_prog **prog_p)
{
    struct coll_shape s = *k->shape;
    int rc = coll_select(&s, c->coll->wanted);
    if (!rc) rc = coll_compile(&s, v, prog_p);
    if (rc) return rc;
    lane_enter(c->lane);
    coll_cache_add(c->coll->cache, k, *prog_p);
    lane_leave(c->lane);
    return 0;
}

/* The lock: a collective started earlier may hand in its frame while another thread makes progress. */
static int cached_frame(struct comm *c, const struct coll_key *k, const struct coll_given *v,
                        struct coll_frame **frame_p)
{
    struct goal_prog *prog;
    void *frame = NULL;
    lane_enter(c->lane);
    bool found = coll_cache_find(c->coll->cache, k, &prog, &frame);
    lane_leave(c->lane);
    *frame_p = frame;
    if (likely(frame)) return 0;
    int rc = found ? 0 : make_program(c, k, v, &prog);
    if (rc) return rc;
    *frame_p = coll_frame_new(c, prog, true);
    goal_unref(prog);
    return *frame_p ? 0 : no_memory((enum coll_kind)k->shape->kind);
}

/* An idle frame with the program of this call, to be given back by coll_frame_give. */
static int take_frame(struct comm *c, const struct coll_call *a, struct coll_frame **frame_p)
{
    struct coll_shape s;
    struct coll_given v;
    struct coll_key k = {&s, NULL, 0};
    int64_t *blocks = NULL;
    coll_call_shape(c, a, &s);
    coll_call_given(c, a, &v);
    if (coll_call_has_arrays(a)) {
        k.blocks = blocks = coll_call_blocks(c, a, &v, &k.n);
        if (!blocks) return no_memory(a->kind);
    }
    int rc = cached_frame(c, &k, &v, frame_p);
    free(blocks);
    return rc;
}

/* Has this kind a meaning between two groups? */
static bool between_groups(enum coll_kind k) { return k < COLL_SCAN; }

/* The first one on a communicator, those on an intercommunicator, and where they have failed. */
static TERN_COLD int check_comm(struct comm *c, const struct coll_call *a)
{
    if (c->inter && !between_groups(a->kind))
        return err_set(TERN_ERR_COMM, "there is no %s on an intercommunicator", coll_kind_name(a->kind));
    return coll_comm(c) && (!c->inter || coll_comm(c->within)) ? pt_call_log_error(c) : err_code();
}

/* The fast way in: one group, which has called collectives before, and can go on doing so. */
static inline bool is_open(const struct comm *c) { return atomic_load_explicit(&c->collective, memory_order_relaxed); }

static inline int check(struct comm *c, const struct coll_call *a)
{
    int rc = unlikely(!is_open(c)) ? check_comm(c, a) : 0;
    return unlikely(rc) ? rc : coll_call_check(c, a);
}

/* ---- doing it now ------------------------------------------------------------------ */

static int run(struct comm *c, const struct coll_call *a)
{
    struct coll_frame *frame;
    int rc = take_frame(c, a, &frame);
    if (rc) return rc;
    rc = coll_call_bind(coll_frame_goal(frame), c, a);
    if (!rc) rc = pt_call_log_outcome(c, coll_frame_run(frame, coll_number(c->coll)));
    lane_enter(c->lane);
    coll_frame_give(frame);
    lane_leave(c->lane);
    return rc;
}

/* Does a hint, a variable or the user's table have something to say of its way? All ranks know alike. */
static inline bool is_asked(const struct comm *c, const struct coll_call *a, bool blocking)
{
    return unlikely(c->coll->asked[!blocking] >> a->kind & 1);
}

static bool is_forced(const struct comm *c, const struct coll_call *a) { return c->coll->forced >> a->kind & 1; }

static TERN_COLD int run_between(struct comm *c, const struct coll_call *a)
{
    coll_call_note_any(c, a);
    return run(c, a);
}

static int run_as_asked(struct comm *c, const struct coll_call *a, int64_t bytes)
{
    int rc = 0;
    return !is_forced(c, a) && node_run_by_rules(c, a, bytes, &rc) ? pt_call_log_outcome(c, rc) : run(c, a);
}

int coll_run(struct comm *c, const struct coll_call *a)
{
    int rc = check(c, a);
    if (unlikely(rc)) return rc;
    if (unlikely(c->inter)) return run_between(c, a);
    int64_t bytes = coll_call_bytes_within(c, a);
    coll_call_note(c->call_log, a, bytes);
    if (is_asked(c, a, true)) return run_as_asked(c, a, bytes);
    return node_run(c, a, bytes, &rc) ? pt_call_log_outcome(c, rc) : run(c, a);
}

/* ---- starting it -------------------------------------------------------------------- */

/* The run is over: the request is, too. Lock held, by whoever made progress. */
static void ended(struct goal_frame *f)
{
    struct request *r = f->owner;
    struct coll_frame *frame = f->ctx;
    int status = pt_call_log_outcome(r->comm, coll_frame_status(f, r));
    coll_frame_let_go(frame);
    coll_frame_give(frame);
    lane_finish(r, status);
}

struct request *coll_request(struct comm *c)
{
    struct request *r = request_new(REQ_COLL);
    if (!r) return NULL;
    r->comm = comm_ref(c);
    r->type = type_of(MPI_BYTE); /* the types are the frame's */
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    r->xfer = NULL; /* no frame: the node's */
    return r;
}

static void drop_request(struct request *r)
{
    comm_unref(r->comm);
    request_free(r);
}

int coll_by_messages(struct request *r, const struct coll_call *a, uint32_t number)
{
    struct comm *c = r->comm;
    struct coll_frame *frame;
    int rc = take_frame(c, a, &frame);
    if (rc) return rc;
    coll_frame_forget(frame);
    rc = coll_call_bind(coll_frame_goal(frame), c, a);
    if (rc) {
        coll_frame_free(frame);
        return rc;
    }
    coll_frame_hold(frame);
    coll_frame_number(frame, number);
    r->xfer = frame;
    return 0;
}

/* The end of preparing: the request is the caller's, or goes. */
static int prepared(struct request *r, int rc, struct request **req_p)
{
    if (!rc)
        *req_p = r;
    else
        drop_request(r);
    return rc;
}

int coll_prepare_messages(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = check(c, a);
    struct request *r = rc ? NULL : coll_request(c);
    if (!r) return rc ? rc : TERN_ERR_NOMEM;
    return prepared(r, coll_by_messages(r, a, coll_number(c->coll)), req_p);
}

/* The call has been checked and noted. */
static int prepare(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = 0;
    if (is_forced(c, a)) return coll_prepare_messages(c, a, req_p);
    struct request *r = coll_request(c);
    if (!r) return TERN_ERR_NOMEM;
    if (!node_prepare(c, a, coll_call_bytes(c, a), r, is_asked(c, a, false), &rc) && !rc) rc = coll_by_messages(r, a, coll_number(c->coll));
    return prepared(r, rc, req_p);
}

int coll_prepare(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = check(c, a);
    if (rc) return rc;
    coll_call_note_any(c, a);
    return prepare(c, a, req_p);
}

void coll_go(struct request *r)
{
    if (!r->xfer) {
        node_go(r);
        return;
    }
    struct goal_frame *f = coll_frame_goal(r->xfer);
    f->done = ended;
    f->owner = r;
    goal_start(f);
}

static int start_long(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = prepare(c, a, req_p);
    if (rc) return rc;
    lane_enter(c->lane);
    lane_going(c->lane);
    coll_go(*req_p);
    lane_leave_to_itself(c->lane, *req_p);
    lane_leave(c->lane);
    return 0;
}

static TERN_COLD int start_first(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    int rc = check(c, a);
    if (rc) return rc;
    coll_call_note_any(c, a);
    return start_long(c, a, req_p);
}

int coll_start(struct comm *c, const struct coll_call *a, struct request **req_p)
{
    if (unlikely(!is_open(c))) return start_first(c, a, req_p);
    int rc = coll_call_check(c, a);
    if (unlikely(rc)) return rc;
    int64_t bytes = coll_call_bytes_within(c, a);
    coll_call_note(c->call_log, a, bytes);
    if (!is_asked(c, a, false) && node_start(c, a, bytes, req_p)) return 0;
    return start_long(c, a, req_p);
}
