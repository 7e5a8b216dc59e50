/*
 * background.c - node-local operations in the background. Each has a record, struct node_background:
 *
 *     prepared -> launched: waits for the block and its slots -> put: waits for the others [-> completed, carries for others] -> ended
 *
 * One with transfers may go on behind the end of its request, as long as other ranks have something left that it can carry (pairs.h).
 *
 * They are looked at by the lane's progress, as one step for each node. What can be
 * done at the start is: the contribution lies there when the call returns, unless slots
 * are not free yet or the block is being made.
 */
#include "base/err.h"
#include "coll/node/node.h"
#include "coll/node/background.h"
#include "coll/node/v.h"
#include "pt2pt/api.h"

#include <stdlib.h>

/* ---- one of them ---- */

/* Does it have blocks that do not go through the slots, here or at another rank? */
static bool needs_reach(const struct node_background *f) { return f->way == NODE_BY_PAIRS || node_v_is(f->call.kind); }

/* What this rank leaves in its slot. */
static void put_slot(struct node_background *f)
{
    struct node *n = f->wait.n;
    int rc = node_put(n, f->wait.seq, &f->call);
    f->wait.rank = node_needs(n, &f->call);
    f->awaits = !rc && f->wait.rank != NODE_NOBODY;
    f->rc = rc < 0 ? rc : 0;
}

/* The slot has nothing but a flag. If all ranks wait and share cores, the last one wakes them. */
static void put_flag(struct node_background *f)
{
    if (f->blocking)
        node_contribute(f->wait.n, f->wait.seq);
    else
        node_signal(f->wait.n, f->wait.seq, f->wait.n->rank);
}

/* Its own contribution, and what goes along with it. */
static void put(struct node_background *f)
{
    struct node *n = f->wait.n;
    if (needs_reach(f)) node_tell_reach(n);
    f->wait.flag = node_take_sign(n, f->wait.seq, f->sign);
    if (f->way == NODE_BY_PAIRS)
        put_flag(f);
    else
        put_slot(f);
    f->put = true;
    if (unlikely(f->rest)) coll_go(f->rest);
    if (unlikely(f->pairs)) node_pairs_wake(f->pairs);
}

/* In place of transfers. Lock held. */
static TERN_COLD void use_messages(struct node_background *f)
{
    node_pairs_free(f->pairs);
    f->pairs = NULL;
    if (f->way == NODE_BY_PAIRS) return; /* all of it, when it has ended here */
    int rc = node_prepare_messages(f);
    if (!rc)
        coll_go(f->rest);
    else if (!f->rc)
        f->rc = rc;
}

/* Which way do blocks take that do not go through the slots? False: that is not known yet, so nothing is copied, nor taken. */
static bool knows_way(struct node_background *f)
{
    enum node_word all = node_all(f->wait.n, NODE_REACHES);
    if (unlikely(all == NODE_NO && f->pairs)) {
        f->lost = f->way == NODE_BY_PAIRS;
        use_messages(f);
    }
    return all != NODE_UNKNOWN;
}

/* True when all that is to be had from the slots has been taken. */
static bool take_slots(struct node_background *f)
{
    if (f->taken) return true;
    if (f->awaits) {
        if (!node_ready(&f->wait)) return false;
        node_background_take(f);
    }
    return f->taken = true;
}

/* One step; true when it is over. */
static bool advance(struct node_background *f)
{
    struct node *n = f->wait.n;
    if (!f->put) {
        if (!node_free_slots(n, f->wait.seq, f->big) || (f->pairs && !node_pairs_begin(f->pairs))) return false;
        put(f);
        if (f->pairs && !f->blocking) return false; /* a start does not copy */
    }
    if (needs_reach(f) && !knows_way(f)) return false;
    if (!f->finished) {
        bool copied = !f->pairs || node_pairs_go_on(f->pairs, &f->rc);
        if (!take_slots(f) || !copied) return false;
        f->finished = true;
        f->carries = f->pairs && node_pairs_may_carry(f->pairs);
        if (!f->carries) node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
    }
    return !f->rest;
}

/* Its request has ended; chunks of other ranks may be left. */
static bool carry(struct node_background *f)
{
    if (!node_pairs_carry(f->pairs)) return false;
    node_finish(f->wait.n, f->wait.seq, f->wait.rank == NODE_ALL);
    return true;
}

void node_let_go(struct node_background *f) { coll_call_let_go(&f->call, f->wait.n->size); }

void node_drop_arrays(struct node_background *f)
{
    free(f->arrays);
    f->arrays = NULL;
    f->call = (struct coll_call){.kind = f->call.kind};
}

static void drop_record(struct node_background *f)
{
    free(f->arrays);
    node_pairs_free(f->pairs);
    free(f);
}

/* No others are left: a request that is not over holds the communicator. */
void node_end_carrying(struct node *n)
{
    for (struct link *a; (a = list_pop(&n->background));) {
        struct node_background *f = container_of(a, struct node_background, link);
        node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
        drop_record(f);
    }
}

/* No block: by messages. */
static TERN_COLD void detour(struct node_background *f)
{
    struct request *r = f->req;
    r->course |= REQ_DRIVEN;
    lane_leave_to_itself(r->comm->lane, r); /* before it goes: another thread may see its end */
    f->rc = coll_by_messages(r, &f->call, f->number);
    coll_call_let_go(&f->call, f->wait.n->size);
    if (f->rc)
        lane_finish(r, f->rc);
    else
        coll_go(r);
    drop_record(f);
}

/* The operation is over: whoever wants to know is told. The last that sees the node, which may go with its
 * communicator. */
static void end(struct node_background *f)
{
    struct request *r = f->req;
    if (unlikely(f->rest)) node_drop_messages(f);
    if (unlikely(f->completed)) {
        drop_record(f);
    } else if (!r) {
        f->ended = true;
        lane_changed(f->wait.n->comm->lane); /* a thread waits for it */
    } else if (unlikely(f->lost)) {
        detour(f);
    } else if (likely(f->kept)) {
        node_end_kept(f);
    } else {
        int rc = f->rc;
        coll_call_let_go(&f->call, f->wait.n->size);
        drop_record(f);
        lane_finish(r, rc);
    }
}

static void launch(struct node_background *f)
{
    if (likely(f->wait.n->state == NODE_READY) && advance(f))
        end(f);
    else
        node_background_add(f);
}

/* The helper leaves to a caller what may run users' operators, and makes way for it as soon as it has copied something.
 */
static bool leave_alone(const struct node_background *f, uint32_t moved)
{
    const struct lane *l = f->wait.n->comm->lane;
    return lane_is_no_caller() && (!f->pairs || (f->wait.n->moved != moved && lane_wanted(l)));
}

/* Messages that go along with it have to be over before it may go. */
static bool may_fail(const struct node_background *f) { return !f->put || !f->rest; }

/* Nothing is left of it; a request ends before its record carries for others. */
static bool is_over(struct node_background *f) { return f->completed ? carry(f) : advance(f) && !f->carries; }

/* It ends by an error. False: not yet, others have begun to copy from or to its buffers. */
static TERN_COLD bool has_left(struct node_background *f, int error)
{
    f->rc = error;
    return !f->pairs || node_pairs_leave(f->pairs);
}

/* Moves the operations that are at their end. */
static int collect(struct node *n, struct link *ended)
{
    uint32_t moved = n->moved;
    int count = 0, error = n->error ? n->error : node_failed(n);
    list_each(a, next, &n->background)
    {
        struct node_background *f = container_of(a, struct node_background, link);
        if (leave_alone(f, moved)) continue;
        f->lost = n->state == NODE_NONE && !error;
        if (unlikely(error && may_fail(f))) {
            if (!has_left(f, error)) {
                count++; /* so that nobody sleeps: nobody tells when it has */
                continue;
            }
        } else if (!f->lost && !is_over(f)) {
            continue;
        }
        list_remove(a);
        list_push(ended, a);
        count++;
    }
    return count + (int)(n->moved - moved); /* a look that copied has found something */
}

/* Ends the requests of those that stay to carry for others: how many. The node stays as long as it has them. */
static int complete_carriers(struct node *n)
{
    int count = 0;
    list_each(a, next, &n->background)
    {
        struct node_background *f = container_of(a, struct node_background, link);
        if (likely(!f->carries) || f->completed || f->rest) continue;
        f->completed = true;
        coll_call_let_go(&f->call, n->size);
        lane_finish(f->req, f->rc);
        count++;
    }
    return count;
}

/* The gates are known only now. */
static TERN_COLD bool finish_making(struct node *n)
{
    if (!node_told(n)) return false;
    step_off(&n->step);
    node_make(n);
    lane_step_on(n->comm->lane, &n->step);
    return true;
}

/* The turn that finds nothing pending turns the step off: another operation may come before it. */
static int look(struct step *s)
{
    struct node *n = container_of(s, struct node, step);
    struct link ended = LIST_INIT(ended);
    if (unlikely(n->state == NODE_MAKING) && !finish_making(n)) return 0;
    int count = collect(n, &ended) + complete_carriers(n);
    if (list_empty(&n->background)) {
        step_off(s);
        node_background_none(n);
    }
    for (struct link *a; (a = list_pop(&ended));) end(container_of(a, struct node_background, link));
    return count;
}

/* A wait lasts, perhaps for something else. For an operation that still needs contributions, only the ranks whose
 * contribution has not come are asked; for any other, the ranks that have not finished all operations. */
static void doubt(struct step *s)
{
    struct node *n = container_of(s, struct node, step);
    bool all = n->state != NODE_READY;
    list_each(a, next, &n->background)
    {
        const struct node_background *f = container_of(a, struct node_background, link);
        if (f->awaits && !f->taken)
            node_doubt(&f->wait);
        else
            all |= n->state == NODE_READY;
    }
    if (all && n->state == NODE_READY) node_doubt_all(n);
}

/*
 * If every rank computes, some helper thread has to copy. A rank that posted its transfers before the others fell
 * asleep has woken none of them. So each rank wakes the sleepers again when it arms its helper; the last rank to do so
 * wakes a helper. A rank that is awake arms its helper later, or waits and copies itself. A rank without a helper may
 * do neither: it may just compute.
 */
static bool wake_others(struct step *s)
{
    struct node *n = container_of(s, struct node, step);
    bool copies = false, ours = false;
    list_each(a, next, &n->background)
    {
        const struct node_background *f = container_of(a, struct node_background, link);
        copies |= f->pairs && !f->completed;
        ours |= f->pairs && !f->completed && node_pairs_are_ours(f->pairs);
    }
    for (int r = 0; r < n->size && copies; r++)
        if (r != n->rank) peer_wake(comm_index(n->comm, r));
    return ours;
}

const struct step_ops node_background_ops = {.name = "collectives inside a node", .poll = look, .armed = wake_others, .doubt = doubt};

/* ---- starting them ---- */

int node_no_memory(enum coll_kind kind) { return err_set(TERN_ERR_NOMEM, "no memory to start a %s", coll_kind_name(kind)); }

static int prepare_pairs(struct node_background *f)
{
    struct lane *l = f->wait.n->comm->lane;
    lane_enter(l); /* others that are pending may be looked at meanwhile */
    f->pairs = node_pairs_new(f->wait.n, &f->call, f->blocking, f->wait.seq);
    lane_leave(l);
    return f->pairs ? 0 : node_no_memory(f->call.kind);
}

/* Messages it is for certain. While the block is being made nothing is known. */
static bool needs_messages(struct node_background *f)
{
    struct node *n = f->wait.n;
    struct lane *l = n->comm->lane;
    lane_enter(l);
    bool needs = !node_v_by_pairs(n, f->blocking) || (n->state == NODE_READY && node_all(n, NODE_REACHES) == NODE_NO);
    lane_leave(l);
    return needs;
}

/* What does not go through the slots: of a large one, or blocks that have no room there (v.h). Transfers or, if it is known that not all
 * ranks reach all others, messages. */
static int prepare(struct node_background *f)
{
    if (f->way == NODE_BY_PAIRS) return prepare_pairs(f);
    if (!node_v_is(f->call.kind) || !node_v_long(f->wait.n, &f->call)) return 0;
    return needs_messages(f) ? node_prepare_messages(f) : prepare_pairs(f);
}

bool node_enlist(struct node *n, const struct coll_call *a, enum node_way way, bool big, struct request *r, int *rc_p)
{
    if (n->settled && n->state == NODE_NONE && !n->error) return false;
    struct node_background *f = malloc(sizeof *f);
    if (!f) {
        *rc_p = node_no_memory(a->kind);
        return false;
    }
    *f = (struct node_background){
        .call = *a, .req = r, .way = way, .big = big, .sign = node_sign(n, way), .wait = {.n = n, .seq = n->seq + 1}};
    /* for a large one in any case: not all ranks know at the same time whether it will be needed */
    if (!n->settled || way == NODE_BY_PAIRS || node_v_is(a->kind)) f->number = coll_number(n->comm->coll);
    bool kept = !coll_call_has_arrays(a) || coll_call_keep_arrays(&f->call, n->size, &f->arrays);
    *rc_p = kept ? prepare(f) : node_no_memory(a->kind);
    if (unlikely(*rc_p)) {
        free(f->arrays);
        free(f);
        return false;
    }
    if (f->pairs || f->rest) r->course |= REQ_DRIVEN;
    n->seq++;
    coll_call_hold(&f->call, n->size);
    r->buf = f;
    return true;
}

void node_go(struct request *r) { launch(r->buf); }

static bool has_ended(void *record) { return ((struct node_background *)record)->ended; }

bool node_run_and_wait(struct node *n, const struct coll_call *a, enum node_way way, bool big, uint32_t number, int *rc_p)
{
    struct node_background f = {
        .call = *a, .blocking = true, .way = way, .big = big, .number = number, .sign = node_sign(n, way),
        .wait = {.n = n, .seq = n->seq + 1}};
    struct lane *l = n->comm->lane;
    *rc_p = prepare(&f);
    if (*rc_p) return false;
    n->seq++;
    lane_enter(l);
    launch(&f);
    lane_wait(l, has_ended, &f, NULL);
    lane_leave(l);
    node_pairs_free(f.pairs);
    *rc_p = f.rc;
    return !f.lost;
}

static bool none_pending(void *node) { return list_empty(&((struct node *)node)->background); }

void node_await(struct node *n)
{
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait(l, none_pending, n, NULL);
    lane_leave(l);
}
