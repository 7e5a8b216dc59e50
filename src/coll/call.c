/* call.c - see call.h. */
#include "coll/call.h"

#include "base/err.h"
#include "pt2pt/api.h"
#include "type/op.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- notes ----------------------------------------------------------------------- */

#define SAME(kind) [kind] = kind
const uint8_t coll_noted_kind[COLL_KINDS] = {
    SAME(COLL_BARRIER), SAME(COLL_BCAST), SAME(COLL_REDUCE), SAME(COLL_ALLREDUCE),
    SAME(COLL_GATHER), SAME(COLL_GATHERV), SAME(COLL_SCATTER), SAME(COLL_SCATTERV),
    SAME(COLL_ALLGATHER), SAME(COLL_ALLGATHERV), SAME(COLL_ALLTOALL), SAME(COLL_ALLTOALLV), SAME(COLL_ALLTOALLW),
    SAME(COLL_REDUCE_SCATTER), SAME(COLL_REDUCE_SCATTER_BLOCK), SAME(COLL_SCAN), SAME(COLL_EXSCAN),
    [COLL_NEIGHBOR_ALLGATHER] = COLL_NEIGHBOR_ALLGATHER, [COLL_NEIGHBOR_ALLGATHERV] = COLL_NEIGHBOR_ALLGATHER,
    [COLL_NEIGHBOR_ALLTOALL] = COLL_NEIGHBOR_ALLTOALL, [COLL_NEIGHBOR_ALLTOALLV] = COLL_NEIGHBOR_ALLTOALL,
    SAME(COLL_NEIGHBOR_ALLTOALLW),
};
#undef SAME

static bool has_root(enum coll_kind k)
{
    return k == COLL_BCAST || k == COLL_REDUCE || (k >= COLL_GATHER && k <= COLL_SCATTERV);
}

static void call_words(uint64_t what, int64_t bytes, char *text, size_t n)
{
    unsigned kind = (unsigned)(what & 0xff) - 1, op = what >> 8 & 0xff;
    int root = (int)(what >> 32), len;
    char amount[40] = "", from[40] = "";
    const char *by = kind < COLL_KINDS && coll_reduces(kind) ? op_name_of(op) : NULL;
    if (kind == COLL_BARRIER && root == COLL_LAST_BARRIER) {
        snprintf(text, n, "MPI_Finalize");
        return;
    }
    if (!what) {
        snprintf(text, n, "MPI_Comm_free");
        return;
    }
    if (kind >= COLL_KINDS) {
        snprintf(text, n, "something unknown");
        return;
    }
    if (bytes > 0) snprintf(amount, sizeof amount, " of %lld bytes", (long long)bytes);
    if (has_root(kind)) snprintf(from, sizeof from, " with root %d", root);
    const char *name = coll_kind_name(kind);
    len = snprintf(text, n, "%s %s%s%s", *name == 'a' || *name == 'e' ? "an" : "a", name, amount, from);
    if (by && len > 0 && (size_t)len < n) snprintf(text + len, n - (size_t)len, " by %s", by);
}

static int64_t same_bytes(uint64_t what, int64_t bytes)
{
    enum { SAME = COLL_BY_RECV | 1u << COLL_GATHER | 1u << COLL_SCATTER };
    unsigned kind = (unsigned)(what & 0xff) - 1;
    return kind < COLL_KINDS && SAME >> kind & 1 ? bytes : -1;
}

void coll_call_open(void)
{
    pt_call_words = call_words;
    pt_call_bytes = same_bytes;
}

void coll_call_note_any(const struct comm *c, const struct coll_call *a)
{
    if (c->inter)
        pt_call_log_note(c->call_log, (uint64_t)coll_noted_kind[a->kind] + 1, -1);
    else
        coll_call_note(c->call_log, a, coll_call_bytes(c, a));
}

/* ---- shapes --------------------------------------------------------------------- */

static int64_t packed(int64_t count, const struct type *t) { return t ? count * t->size : 0; }

/* Packed bytes of one rank's block of a v-collective. */
static int64_t packed_send(const struct coll_call *a, int i)
{
    return packed(a->scounts[i], a->stypes ? a->stypes[i] : a->stype);
}
static int64_t packed_recv(const struct coll_call *a, int i)
{
    return packed(a->rcounts[i], a->rtypes ? a->rtypes[i] : a->rtype);
}

static bool in_place(const struct coll_call *a, bool root)
{
    if (a->kind == COLL_BARRIER || a->kind == COLL_BCAST) return false;
    if (a->kind == COLL_SCATTER || a->kind == COLL_SCATTERV) return root && a->recvbuf == MPI_IN_PLACE;
    return a->sendbuf == MPI_IN_PLACE;
}

/* Is this rank the root, of operations that have one? */
static bool is_root(const struct comm *c, const struct coll_call *a) { return a->root == (c->inter ? MPI_ROOT : c->rank); }

/* In the group of the root, but not the root: no argument means anything here. */
static bool is_idle(const struct comm *c, const struct coll_call *a)
{
    return c->inter && a->root == MPI_PROC_NULL && has_root(a->kind);
}

/* Between two groups, allgather and alltoall: the amounts in the two directions have nothing to do with each other. */
static void two_directions(const struct coll_call *a, struct coll_shape *s)
{
    bool gather = a->kind == COLL_ALLGATHER || a->kind == COLL_ALLGATHERV, all = gather || a->kind == COLL_ALLTOALL;
    if (all) s->bytes = packed(a->scount, a->stype);
    if (all && !a->rcounts) s->from = packed(a->rcount, a->rtype);
}

int64_t coll_call_bytes_long(const struct comm *c, const struct coll_call *a)
{
    bool root = is_root(c, a);
    if (is_idle(c, a)) return 0;
    switch (a->kind) {
    case COLL_GATHER:
        return root ? packed(a->rcount, a->rtype) : packed(a->scount, a->stype);
    case COLL_GATHERV:
        return a->sendbuf == MPI_IN_PLACE ? 0 : packed(a->scount, a->stype);
    case COLL_SCATTER:
        return root ? packed(a->scount, a->stype) : packed(a->rcount, a->rtype);
    case COLL_SCATTERV:
        return a->recvbuf == MPI_IN_PLACE ? 0 : packed(a->rcount, a->rtype);
    case COLL_ALLGATHERV:
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
    case COLL_REDUCE_SCATTER:
        return 0;
    case COLL_NEIGHBOR_ALLTOALLV:
    case COLL_NEIGHBOR_ALLTOALLW:
        return 0;
    case COLL_NEIGHBOR_ALLGATHER:
    case COLL_NEIGHBOR_ALLTOALL: /* both sides are the same, or one has no neighbours */
        return a->out ? packed(a->scount, a->stype) : packed(a->rcount, a->rtype);
    case COLL_NEIGHBOR_ALLGATHERV:
        return packed(a->scount, a->stype);
    default:
        return packed(a->rcount, a->rtype);
    }
}

void coll_call_shape(const struct comm *c, const struct coll_call *a, struct coll_shape *s)
{
    bool idle = is_idle(c, a);
    *s = (struct coll_shape){.kind = (uint8_t)a->kind, .rank = c->rank, .size = c->size, .root = a->root, .grain = 1};
    s->bytes = coll_call_bytes(c, a);
    if (!c->inter && in_place(a, is_root(c, a))) s->flags |= COLL_IN_PLACE;
    if (c->inter) {
        s->remote = c->map->size;
        two_directions(a, s);
    }
    s->nodes = c->coll->nodes;
    s->domains = c->coll->domains;
    if (c->coll->mixed) s->flags |= COLL_MIXED;
    if (c->coll->shuffled) s->flags |= COLL_SHUFFLED;
    if (c->coll->far) s->flags |= COLL_FAR;
    if (c->coll->oversubscribed) s->flags |= COLL_OVERSUBSCRIBED;
    if (a->kind == COLL_BCAST && !idle && !a->rtype->contig) s->flags |= COLL_STAGED;
    if (coll_reduces(a->kind) && !idle) {
        if (a->rtype->size > 0) s->grain = a->rtype->size;
        if (!a->op->commute)
            s->flags |= COLL_ORDERED;
        else if (a->op->predefined &&
                 (a->rtype->klass & (CLASS_CINT | CLASS_FINT | CLASS_LOGICAL | CLASS_BYTE | CLASS_MULTI)))
            s->flags |= COLL_EXACT;
    }
}

int coll_call_check_own(const struct comm *c, const struct coll_call *a)
{
    bool root = is_root(c, a);
    int64_t send, recv;
    if (c->inter || in_place(a, root)) return 0; /* nobody sends itself anything between two groups */
    switch (a->kind) {
    case COLL_GATHER:
    case COLL_GATHERV:
    case COLL_SCATTER:
    case COLL_SCATTERV:
        if (!root) return 0; /* fallthrough */
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
        send = a->scounts ? packed_send(a, c->rank) : packed(a->scount, a->stype);
        recv = a->rcounts ? packed_recv(a, c->rank) : packed(a->rcount, a->rtype);
        break;
    default:
        return 0;
    }
    if (send == recv) return 0;
    return err_set(TERN_ERR_TRUNCATE, "rank %d sends itself %lld bytes but expects %lld", c->rank, (long long)send,
                   (long long)recv);
}

/* ---- blocks ---------------------------------------------------------------------- */

void coll_call_given(const struct comm *c, const struct coll_call *a, struct coll_given *v)
{
    *v = (struct coll_given){.node = c->coll->node_of,
                             .domain = c->coll->domain_of,
                             .in = a->in,
                             .out = a->out,
                             .sources = a->sources,
                             .destinations = a->destinations,
                             .grid = a->grid};
}

/* How many blocks this rank sends and gets. */
static int blocks_of(const struct comm *c, const struct coll_call *a, bool recv)
{
    if (coll_has_neighbors(a->kind)) return recv ? a->in : a->out;
    return c->inter && a->kind != COLL_REDUCE_SCATTER ? c->map->size : c->size;
}

int64_t *coll_call_blocks(const struct comm *c, const struct coll_call *a, struct coll_given *v, size_t *n_p)
{
    int n = blocks_of(c, a, false), m = blocks_of(c, a, true);
    *n_p = 2 * ((size_t)n + (size_t)m);
    int64_t *mem = calloc(*n_p + 1, sizeof *mem), at = 0;
    if (!mem) return NULL;
    int64_t *sl = mem, *so = sl + n, *rl = so + n, *ro = rl + m;
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
    }
    for (int i = 0; recv && i < m; i++) {
        rl[i] = packed_recv(a, i);
        ro[i] = a->rtype ? packed(a->rdispls[i], a->rtype) : 0;
    }
    if (send || rs) v->send_len = sl, v->send_off = so;
    if (recv) v->recv_len = rl, v->recv_off = ro;
    return mem;
}

/* ---- slots ------------------------------------------------------------------------ */

/* A user's buffer: plain bytes if elements lie gap-free, elements otherwise. */
static void bind_buffer(struct goal_frame *f, unsigned slot, const void *buf, struct type *t, bool reduces)
{
    if (!t || t->size <= 0 || buf == MPI_IN_PLACE) return;
    if (t->contig && !(reduces && t->true_lb) && !pt_checking)
        goal_bind(f, slot, (const char *)buf + t->true_lb);
    else
        goal_bind_typed(f, slot, buf, t, t->size, t->extent);
}

static void bind_w(struct goal_frame *f, const struct comm *c, const struct coll_call *a)
{
    int out = blocks_of(c, a, false), in = blocks_of(c, a, true);
    for (int i = 0; i < out && a->sendbuf != MPI_IN_PLACE; i++)
        bind_buffer(f, (unsigned)coll_slot_w(i, false), (const char *)a->sendbuf + a->sdispls[i], a->stypes[i], false);
    for (int i = 0; i < in; i++) {
        bind_buffer(f, (unsigned)coll_slot_w(i, true), (char *)a->recvbuf + a->rdispls[i], a->rtypes[i], false);
    }
}

int coll_call_bind(struct goal_frame *f, const struct comm *c, const struct coll_call *a)
{
    bool reduces = coll_reduces(a->kind);
    struct type *t = a->rtype;
    if (is_idle(c, a)) return 0;
    if (coll_has_types(a->kind)) {
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

/* ---- keeping it --------------------------------------------------------------- */

void coll_call_hold(const struct coll_call *a, int ranks)
{
    for (int r = 0; r < ranks && a->stypes; r++) type_ref(a->stypes[r]);
    for (int r = 0; r < ranks && a->rtypes; r++) type_ref(a->rtypes[r]);
    if (a->stype) type_ref(a->stype);
    if (a->rtype) type_ref(a->rtype);
    if (a->op) op_ref((struct op *)(uintptr_t)a->op);
}

void coll_call_let_go(const struct coll_call *a, int ranks)
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

bool coll_call_keep_arrays(struct coll_call *a, int ranks, void **mem_p)
{
    size_t counts = (size_t)ranks * sizeof(int64_t), types = (size_t)ranks * sizeof(struct type *);
    char *at = *mem_p = malloc(4 * counts + 2 * types);
    if (!at) return false;
    a->scounts = put_aside(a->scounts, counts, &at);
    a->sdispls = put_aside(a->sdispls, counts, &at);
    a->rcounts = put_aside(a->rcounts, counts, &at);
    a->rdispls = put_aside(a->rdispls, counts, &at);
    a->stypes = put_aside(a->stypes, types, &at);
    a->rtypes = put_aside(a->rtypes, types, &at);
    return true;
}
