/* keep.c - what an operation in the background keeps: types, arrays, and messages; see background.h. */
#include "coll/node/background.h"

#include "base/err.h"
#include "coll/node/v.h"
#include "coll/port_pt2pt.h"
#include "pt2pt/api.h"
#include "type/op.h"

#include <stdlib.h>
#include <string.h>

void node_hold(const struct coll_call *a, int ranks)
{
    for (int r = 0; r < ranks && a->stypes; r++) type_ref(a->stypes[r]);
    for (int r = 0; r < ranks && a->rtypes; r++) type_ref(a->rtypes[r]);
    if (a->stype) type_ref(a->stype);
    if (a->rtype) type_ref(a->rtype);
    if (a->op) op_ref((struct op *)(uintptr_t)a->op);
}

void node_let_go(const struct coll_call *a, int ranks)
{
    for (int r = 0; r < ranks && a->stypes; r++) type_unref(a->stypes[r]);
    for (int r = 0; r < ranks && a->rtypes; r++) type_unref(a->rtypes[r]);
    if (a->stype) type_unref(a->stype);
    if (a->rtype) type_unref(a->rtype);
    if (a->op) op_unref((struct op *)(uintptr_t)a->op);
}

static void *put_aside(const void *from, size_t bytes, char **at)
{
    if (!from) return NULL;
    char *to = *at;
    memcpy(to, from, bytes);
    *at += bytes;
    return to;
}

bool node_keep_arrays(struct node_background *f)
{
    struct coll_call *a = &f->call;
    size_t ranks = (size_t)f->wait.n->size, counts = ranks * sizeof(int64_t), types = ranks * sizeof(struct type *);
    char *at = f->arrays = malloc(4 * counts + 2 * types);
    if (!at) return false;
    a->scounts = put_aside(a->scounts, counts, &at);
    a->sdispls = put_aside(a->sdispls, counts, &at);
    a->rcounts = put_aside(a->rcounts, counts, &at);
    a->rdispls = put_aside(a->rdispls, counts, &at);
    a->stypes = put_aside(a->stypes, types, &at);
    a->rtypes = put_aside(a->rtypes, types, &at);
    return true;
}

void node_let_go_of(struct node_background *f) { node_let_go(&f->call, f->wait.n->size); }

void node_drop_arrays(struct node_background *f)
{
    free(f->arrays);
    f->arrays = NULL;
    f->call = (struct coll_call){.kind = f->call.kind};
}

/* ---- what has no room in the slots ---- */

int node_no_memory(enum coll_kind kind)
{
    return err_set(TERN_ERR_NOMEM, "no memory to start a %s", coll_kind_name(kind));
}

static void rest_over(struct request *r)
{
    struct node_background *f = r->owner;
    if (!f->rc) f->rc = r->result.error;
    f->rest = NULL; /* the next look at the operation goes on */
    request_free(r);
}

static int prepare_pairs(struct node_background *f)
{
    struct lane *l = f->wait.n->comm->lane;
    lane_enter(l); /* others that are pending may be looked at meanwhile */
    f->pairs = node_pairs_new(f->wait.n, &f->call, f->blocking, f->wait.seq);
    lane_leave(l);
    return f->pairs ? 0 : node_no_memory(f->call.kind);
}

static int prepare_messages(struct node_background *f)
{
    struct coll_call rest;
    int64_t *mem;
    node_v_rest(f->wait.n, &f->call, &rest, &mem);
    struct request *r = mem ? request_new(REQ_COLL) : NULL;
    if (r) r->comm = f->wait.n->comm;
    int rc = r ? coll_by_messages(r, &rest, f->number) : node_no_memory(f->call.kind);
    free(mem);
    if (!rc) {
        r->done = rest_over;
        r->owner = f;
        r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
        f->rest = r;
    } else if (r) {
        request_free(r);
    }
    return rc;
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

int node_prepare_rest(struct node_background *f)
{
    if (f->way == NODE_BY_PAIRS) return prepare_pairs(f);
    if (!node_v_is(f->call.kind) || !node_v_long(f->wait.n, &f->call)) return 0;
    return needs_messages(f) ? prepare_messages(f) : prepare_pairs(f);
}

void node_use_messages(struct node_background *f)
{
    node_pairs_free(f->pairs);
    f->pairs = NULL;
    if (f->way == NODE_BY_PAIRS) return; /* all of it, when it has ended here */
    int rc = prepare_messages(f);
    if (!rc)
        coll_go(f->rest);
    else if (!f->rc)
        f->rc = rc;
}

/* They have not been started: there is no block. */
void node_drop_rest(struct node_background *f)
{
    coll_frame_let_go(f->rest->xfer);
    coll_frame_give(f->rest->xfer);
    request_free(f->rest);
    f->rest = NULL;
}

static void stray_over(struct request *r) { request_free(r); }

/* A message that does not fit is received for its sender's sake. */
static void receive_stray(struct node *n, int rank, uint32_t number)
{
    struct request *r = request_new(REQ_RECV);
    if (!r) return;
    pt_prepare(r, REQ_RECV, n->comm, PT_COLL, NULL, 0, type_of(MPI_BYTE), rank, coll_frame_tag(number), PT_STANDARD);
    r->done = stray_over;
    r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
    pt_recv_start(r);
}

void node_background_straighten(struct node_background *f)
{
    struct node *n = f->wait.n;
    for (int r = 0; r < n->size && node_v_is(f->call.kind); r++) {
        int d = node_v_disagrees(n, f->wait.seq, &f->call, r);
        if (d && node_v_by_pairs(n, f->blocking) && node_all(n, NODE_REACHES) == NODE_YES) {
            if (d > 0) node_pairs_refuse(n, f->wait.seq, r);
            if (d < 0 && f->pairs) node_pairs_expect_none(f->pairs, r);
        } else {
            if (d > 0) receive_stray(n, r, f->number);
            if (d < 0 && f->rest) coll_frame_give_up(f->rest->xfer, r);
        }
    }
}

void node_straighten(struct node *n, uint32_t seq, const struct coll_call *a, bool blocking, uint32_t number)
{
    struct node_background f = {.call = *a, .blocking = blocking, .number = number, .wait = {.n = n, .seq = seq}};
    lane_enter(n->comm->lane);
    node_background_straighten(&f);
    lane_leave(n->comm->lane);
}
