/*
 * coll.c - from the arguments of a collective to a run: the shape, the algorithm, the program
 * (from the communicator's cache, unless it depends on arrays), the frame and its slots.
 */
#include "coll/coll.h"

#include "base/err.h"
#include "coll/cache.h"
#include "coll/node.h"
#include "coll/port_pt2pt.h"
#include "coll/select.h"
#include <stdlib.h>
#include <string.h>

enum { CACHED_PROGRAMS = 64 }; /* of a communicator */

/* ---- the communicator's state ------------------------------------------------- */

TERN_COLD static struct coll_comm *coll_comm_new(struct comm *c)
{
    struct coll_comm *cc = calloc(1, sizeof *cc);
    if (cc) cc->cache = coll_cache_open(CACHED_PROGRAMS, coll_frame_free);
    if (!cc || !cc->cache) {
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
    free(cc);
    c->coll = NULL;
}

int coll_open(void)
{
    static const struct comm_hooks hooks = {.gone = comm_gone};
    comm_set_hooks(1, &hooks);
    return 0;
}

void coll_close(void)
{
    node_forget_retired();
    comm_set_hooks(1, NULL);
}

/* ---- shapes --------------------------------------------------------------------- */

static int64_t packed(int64_t count, const struct type *t) { return t ? count * t->size : 0; }

/* Packed bytes of one rank's block of a v-collective. */
static int64_t packed_send(const struct coll_call *a, int i) { return packed(a->scounts[i], a->stypes ? a->stypes[i] : a->stype); }
static int64_t packed_recv(const struct coll_call *a, int i) { return packed(a->rcounts[i], a->rtypes ? a->rtypes[i] : a->rtype); }

static bool in_place(const struct coll_call *a, bool root)
{
    if (a->kind == COLL_BARRIER || a->kind == COLL_BCAST) return false;
    if (a->kind == COLL_SCATTER || a->kind == COLL_SCATTERV) return root && a->recvbuf == MPI_IN_PLACE;
    return a->sendbuf == MPI_IN_PLACE;
}

/* coll_shape.bytes of this call: see there. */
static int64_t shape_bytes(const struct coll_call *a, bool root)
{
    switch (a->kind) {
    case COLL_GATHER: return root ? packed(a->rcount, a->rtype) : packed(a->scount, a->stype);
    case COLL_GATHERV: return a->sendbuf == MPI_IN_PLACE ? 0 : packed(a->scount, a->stype);
    case COLL_SCATTER: return root ? packed(a->scount, a->stype) : packed(a->rcount, a->rtype);
    case COLL_SCATTERV: return a->recvbuf == MPI_IN_PLACE ? 0 : packed(a->rcount, a->rtype);
    case COLL_ALLGATHERV: case COLL_ALLTOALLV: case COLL_ALLTOALLW: case COLL_REDUCE_SCATTER: return 0;
    default: return packed(a->rcount, a->rtype);
    }
}

static void make_shape(const struct comm *c, const struct coll_call *a, struct coll_shape *s)
{
    bool root = c->rank == a->root;
    *s = (struct coll_shape){.kind = (uint8_t)a->kind, .rank = c->rank, .size = c->size, .root = a->root, .grain = 1};
    s->bytes = shape_bytes(a, root);
    if (in_place(a, root)) s->flags |= COLL_IN_PLACE;
    if (a->kind == COLL_BCAST && !a->rtype->contig) s->flags |= COLL_STAGED;
    if (coll_reduces(a->kind)) {
        if (a->rtype->size > 0) s->grain = a->rtype->size;
        if (!a->op->commute) s->flags |= COLL_ORDERED;
        else if (a->op->predefined && (a->rtype->klass & (CLASS_CINT | CLASS_FINT | CLASS_LOGICAL | CLASS_BYTE | CLASS_MULTI)))
            s->flags |= COLL_EXACT;
    }
    coll_select(s);
}

/* What this rank sends itself must be what it receives from itself: everything else is found out by messages. */
static int check_own(const struct comm *c, const struct coll_call *a)
{
    bool root = c->rank == a->root;
    int64_t send, recv;
    if (in_place(a, root)) return 0;
    switch (a->kind) {
    case COLL_GATHER: case COLL_GATHERV: case COLL_SCATTER: case COLL_SCATTERV:
        if (!root) return 0; /* fallthrough */
    case COLL_ALLGATHER: case COLL_ALLGATHERV: case COLL_ALLTOALL: case COLL_ALLTOALLV: case COLL_ALLTOALLW:
        send = a->scounts ? packed_send(a, c->rank) : packed(a->scount, a->stype);
        recv = a->rcounts ? packed_recv(a, c->rank) : packed(a->rcount, a->rtype);
        break;
    default: return 0;
    }
    if (send == recv) return 0;
    return err_set(TERN_ERR_TRUNCATE, "rank %d sends itself %lld bytes but expects %lld", c->rank, (long long)send,
                   (long long)recv);
}

/* ---- blocks ---------------------------------------------------------------------- */

/* Four columns of c->size entries in one allocation; NULL columns where the call has none. */
static int64_t *make_blocks(const struct comm *c, const struct coll_call *a, struct coll_blocks *v)
{
    int n = c->size;
    int64_t *mem = malloc(4 * (size_t)n * sizeof *mem), at = 0;
    if (!mem) return NULL;
    int64_t *sl = mem, *so = mem + n, *rl = mem + 2 * n, *ro = mem + 3 * n;
    bool rs = a->kind == COLL_REDUCE_SCATTER, send = a->scounts && a->sendbuf != MPI_IN_PLACE, recv = a->rcounts && !rs;
    for (int i = 0; i < n; i++) {
        if (send) {
            sl[i] = packed_send(a, i);
            so[i] = a->stype ? packed(a->sdispls[i], a->stype) : 0;
        } else if (rs) {
            sl[i] = packed_recv(a, i);
            so[i] = at;
            at += sl[i];
        }
        if (recv) {
            rl[i] = packed_recv(a, i);
            ro[i] = a->rtype ? packed(a->rdispls[i], a->rtype) : 0;
        }
    }
    *v = (struct coll_blocks){send || rs ? sl : NULL, send || rs ? so : NULL, recv ? rl : NULL, recv ? ro : NULL};
    return mem;
}

/* ---- slots ------------------------------------------------------------------------ */

/* A user's buffer: plain bytes if elements lie gap-free, elements otherwise. */
static void bind_buffer(struct goal_frame *f, unsigned slot, const void *buf, struct type *t, bool reduces)
{
    if (!t || t->size <= 0 || buf == MPI_IN_PLACE) return;
    if (t->contig && !(reduces && t->true_lb)) goal_bind(f, slot, (const char *)buf + t->true_lb);
    else goal_bind_typed(f, slot, buf, t, t->size, t->extent);
}

static void bind_w(struct goal_frame *f, const struct comm *c, const struct coll_call *a)
{
    for (int i = 0; i < c->size; i++) {
        if (a->sendbuf != MPI_IN_PLACE)
            bind_buffer(f, (unsigned)coll_slot_w(i, false), (const char *)a->sendbuf + a->sdispls[i], a->stypes[i], false);
        bind_buffer(f, (unsigned)coll_slot_w(i, true), (char *)a->recvbuf + a->rdispls[i], a->rtypes[i], false);
    }
}

static int bind(struct goal_frame *f, const struct comm *c, const struct coll_call *a)
{
    bool reduces = coll_reduces(a->kind);
    struct type *t = a->rtype;
    if (a->kind == COLL_ALLTOALLW) {
        bind_w(f, c, a);
        return 0;
    }
    bind_buffer(f, GOAL_SEND_BUF, a->sendbuf, reduces ? t : a->stype, reduces);
    bind_buffer(f, GOAL_RECV_BUF, a->recvbuf, t, reduces);
    if (!reduces) return 0;
    f->op = a->op;
    f->type = t;
    if (t->size <= 0) return 0;
    if (t->contig && !t->true_lb) return goal_bind_scratch(f, NULL, 1, 1, 0, 1);
    return goal_bind_scratch(f, t, t->size, t->extent, t->true_lb, t->true_extent);
}

/* ---- runs ------------------------------------------------------------------------- */

static int run(struct comm *c, struct coll_frame *frame, const struct coll_call *a)
{
    int rc = bind(coll_frame_goal(frame), c, a);
    return rc ? rc : coll_frame_run(frame, c->coll->seq++);
}

static int no_memory(enum coll_kind kind) { return err_set(TERN_ERR_NOMEM, "no memory to run a %s", coll_kind_name(kind)); }

/* Operations whose program depends on arrays: made for this once. */
static int run_once(struct comm *c, const struct coll_call *a, const struct coll_shape *s)
{
    struct coll_blocks v;
    struct goal_prog *prog = NULL;
    int64_t *mem = make_blocks(c, a, &v);
    int rc = mem ? coll_compile(s, &v, &prog) : no_memory(a->kind);
    if (!rc) {
        struct coll_frame *frame = coll_frame_new(c, prog);
        rc = frame ? run(c, frame, a) : no_memory(a->kind);
        coll_frame_free(frame);
    }
    goal_unref(prog);
    free(mem);
    return rc;
}

static int run_cached(struct comm *c, const struct coll_call *a, const struct coll_shape *s)
{
    struct goal_prog *prog;
    void *frame;
    int rc = coll_cache_get(c->coll->cache, s, &prog, &frame);
    if (rc) return rc;
    if (!frame) frame = coll_frame_new(c, prog);
    goal_unref(prog);
    if (!frame) return no_memory(a->kind);
    rc = run(c, frame, a);
    coll_cache_put(c->coll->cache, s, frame);
    return rc;
}

int coll_run(struct comm *c, const struct coll_call *a)
{
    struct coll_shape s;
    if (unlikely(c->inter)) return err_set(TERN_ERR_COMM, "collectives on intercommunicators are not supported in this version");
    if (unlikely(!coll_comm(c))) return TERN_ERR_NOMEM;
    bool root = c->rank == a->root;
    int rc = check_own(c, a);
    if (rc) return rc;
    if (node_run(c, a, shape_bytes(a, root), &rc)) return rc;
    make_shape(c, a, &s);
    return a->scounts || a->rcounts ? run_once(c, a, &s) : run_cached(c, a, &s);
}
