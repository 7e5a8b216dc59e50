/*
 * inter_jobs.h - random collectives between two groups (MPI-5.0 6.2.3): every kind, each to be done in its blocking,
 * nonblocking or persistent form with plain or large counts; and what each shall give, evaluated directly as the
 * standard says. What is drawn from `common` is alike at all ranks of both groups.
 */
#ifndef TERN_TEST_INTER_JOBS_H
#define TERN_TEST_INTER_JOBS_H

#include "../check.h"

enum { KINDS = 15, MAXRANKS = 16, HOLE = 1 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV,
       ALLTOALLW, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK };
enum form { BLOCKING, START, START_LARGE, INIT, INIT_LARGE, FORMS };

static const char *const kind_name[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv",
                                             "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter",
                                             "reduce_scatter_block"};

static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */
static MPI_Comm comms[2];    /* intercommunicators */
static int group, me, size[2], place[2][MAXRANKS]; /* my group and rank in it; of both groups; world ranks */

struct blocks { /* one a rank of the other group (reduce_scatter: of the own one) */
    int n[MAXRANKS], at[MAXRANKS], bytes_at[MAXRANKS];
    MPI_Count wide_n[MAXRANKS];
    MPI_Aint wide_at[MAXRANKS], wide_bytes_at[MAXRANKS];
};

struct job {
    int kind, root_group, root, stride, composes;
    int count[2];  /* elements of the buffer, or of a block that leaves this group */
    uint64_t seed;
    MPI_Comm comm;
    MPI_Datatype type, types[MAXRANKS];
    MPI_Op op;
    struct blocks out, in;
    int outs, ins; /* elements in the buffers */
    size_t words;                        /* in each of: */
    unsigned *send, *recv, *want, *fresh; /* fresh: the receive buffer before */
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }
static int has_root(int kind) { return kind == BCAST || kind == REDUCE || (kind >= GATHER && kind <= SCATTERV); }
static int reduces(int kind) { return kind == REDUCE || kind == ALLREDUCE || kind >= REDUCE_SCATTER; }
static int for_each(int kind) { return kind == SCATTER || kind == SCATTERV || (kind >= ALLTOALL && kind <= ALLTOALLW); }
static int varies(int kind) { return kind == GATHERV || kind == SCATTERV || kind == ALLGATHERV || kind == ALLTOALLV || kind == ALLTOALLW; }
static int is_member(const struct job *j) { return group != j->root_group; }
static int is_root(const struct job *j) { return !is_member(j) && me == j->root; }

/* ---- contents: an element is a pair of words ---- */

static void value(const struct job *j, int from, int to, int i, unsigned *out)
{
    uint64_t state = j->seed ^ (uint64_t)from << 48 ^ (uint64_t)to << 40 ^ (uint64_t)i, x = check_random(&state);
    memcpy(out, &x, 8);
}

/* Composition of x -> a x + b: associative, not commutative. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    (void)type;
    for (int i = 0; i < *len; i++, f += 2, g += 2) {
        unsigned a = g[0] * f[0], b = g[0] * f[1] + g[1];
        g[0] = a, g[1] = b;
    }
}

static void combine(const struct job *j, const unsigned *left, unsigned *right)
{
    int one = 1;
    unsigned copy[2] = {left[0], left[1]};
    uint64_t a, b;
    if (j->composes) {
        compose(copy, right, &one, NULL);
        return;
    }
    memcpy(&a, left, 8);
    memcpy(&b, right, 8);
    a += b;
    memcpy(right, &a, 8);
}

/* Element i of the inputs of a group, combined in the order of its ranks. */
static void fold(const struct job *j, int of, int i, unsigned *out)
{
    unsigned acc[2];
    value(j, place[of][0], 0, i, acc);
    for (int r = 1; r < size[of]; r++) {
        unsigned x[2];
        value(j, place[of][r], 0, i, x);
        combine(j, acc, x);
        memcpy(acc, x, 8);
    }
    memcpy(out, acc, 8);
}

static int random_length(const struct job *j, int of, int from, int to)
{
    uint64_t state = j->seed + (uint64_t)from * 64 + (uint64_t)to, x = check_random(&state);
    return x % 4 ? (int)(x % (unsigned)(j->count[of] + 1)) : 0;
}

/* Elements from one rank of a group to one of the other. World ranks. */
static int length(const struct job *j, int of, int from, int to)
{
    switch (j->kind) {
    case GATHERV: case ALLGATHERV: return random_length(j, of, from, 0);
    case SCATTERV: return random_length(j, of, 0, to);
    case ALLTOALLV: case ALLTOALLW: return random_length(j, of, from, to);
    default: return j->count[of];
    }
}

/* ---- jobs ---- */

/* Places of n blocks, those that vary last first and with holes. Returns the elements of the buffer. */
static int lay_out(const struct job *j, struct blocks *b, int n)
{
    int end = 0, v = varies(j->kind);
    for (int k = 0; k < n; k++) {
        int i = v ? n - 1 - k : k;
        b->at[i] = end;
        end += b->n[i] + (v ? HOLE : 0);
    }
    for (int i = 0; i < n; i++) {
        b->bytes_at[i] = b->at[i] * 8 * j->stride;
        b->wide_n[i] = b->n[i], b->wide_at[i] = b->at[i], b->wide_bytes_at[i] = b->bytes_at[i];
    }
    return end;
}

static unsigned *at(const struct job *j, unsigned *buf, int elem) { return buf + (size_t)elem * 2 * (size_t)j->stride; }

static void lengths(struct job *j)
{
    int here = place[group][me], other = !group;
    for (int i = 0; i < size[other]; i++) {
        j->out.n[i] = length(j, group, here, for_each(j->kind) ? place[other][i] : 0);
        j->in.n[i] = length(j, other, place[other][i], for_each(j->kind) ? here : 0);
    }
    if (j->kind < REDUCE_SCATTER) return;
    int all = j->count[0] * size[0] * size[1], left = all;
    for (int r = 0; r < size[group]; r++) { /* the own group's shares of the result */
        int n = all / size[group];
        if (j->kind == REDUCE_SCATTER) n = r + 1 == size[group] ? left : random_length(j, 0, place[group][r], 0) * size[other];
        j->in.n[r] = n < left ? n : left;
        left -= j->in.n[r];
    }
}

/* What is in the send buffer. */
static void give(struct job *j)
{
    int here = place[group][me], other = !group, n = for_each(j->kind) ? size[other] : 1;
    int each = reduces(j->kind) ? j->outs : j->out.n[0];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < (for_each(j->kind) ? j->out.n[i] : each); k++)
            value(j, here, for_each(j->kind) ? place[other][i] : 0, k, at(j, j->send, (for_each(j->kind) ? j->out.at[i] : 0) + k));
}

/* What shall be in the receive buffer. */
static void expect(struct job *j)
{
    int here = place[group][me], other = !group, root = place[j->root_group][j->root];
    if (j->kind == BCAST) {
        for (int k = 0; k < j->count[0] && (is_root(j) || is_member(j)); k++) {
            value(j, root, 0, k, at(j, j->want, k));
            if (is_root(j)) value(j, root, 0, k, at(j, j->recv, k));
        }
    } else if (j->kind == SCATTER || j->kind == SCATTERV) {
        for (int k = 0; k < j->in.n[j->root] && is_member(j); k++) value(j, root, here, k, at(j, j->want, k));
    } else if (reduces(j->kind)) {
        int first = 0, n = j->count[0];
        if (j->kind >= REDUCE_SCATTER) first = j->in.at[me], n = j->in.n[me];
        for (int k = 0; k < n && (j->kind != REDUCE || is_root(j)); k++) fold(j, other, first + k, at(j, j->want, k));
    } else if (j->kind != BARRIER && (!has_root(j->kind) || is_root(j))) {
        for (int i = 0; i < size[other]; i++)
            for (int k = 0; k < j->in.n[i]; k++)
                value(j, place[other][i], for_each(j->kind) ? here : 0, k, at(j, j->want, j->in.at[i] + k));
    }
}

static int larger(int a, int b) { return a > b ? a : b; }

static void make_buffers(struct job *j)
{
    int other = !group;
    lengths(j);
    j->outs = lay_out(j, &j->out, size[other]);
    j->ins = lay_out(j, &j->in, j->kind < REDUCE_SCATTER ? size[other] : size[group]);
    if (reduces(j->kind)) j->outs = j->kind < REDUCE_SCATTER ? j->count[0] : j->ins;
    j->words = (size_t)(larger(larger(j->outs, j->ins), j->count[0]) + 1) * 2 * (size_t)j->stride;
    j->send = malloc(j->words * 4);
    j->recv = malloc(j->words * 4);
    j->want = malloc(j->words * 4);
    j->fresh = malloc(j->words * 4);
    for (size_t i = 0; i < j->words; i++) j->send[i] = j->recv[i] = j->want[i] = (unsigned)check_random(&own);
    give(j);
    expect(j);
    memcpy(j->fresh, j->recv, j->words * 4);
}

static void make_type(struct job *j)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_create_resized(pair, 0, 8 * j->stride, &j->type);
    MPI_Type_commit(&j->type);
    MPI_Type_free(&pair);
    for (int i = 0; i < MAXRANKS; i++) j->types[i] = j->type;
    MPI_Op_create(compose, 0, &j->op);
}

static void make_job(struct job *j)
{
    *j = (struct job){.kind = draw(KINDS), .root_group = draw(2), .stride = draw(3) ? 1 : 2, .composes = draw(2)};
    j->root = draw(size[j->root_group]);
    j->seed = check_random(&common);
    j->comm = comms[draw(2)];
    for (int g = 0; g < 2; g++) j->count[g] = draw(4) ? draw(20) : draw(j->kind < REDUCE_SCATTER && has_root(j->kind) ? 20000 : 1500);
    if (reduces(j->kind)) j->stride = 1;
    make_type(j);
    make_buffers(j);
}

/* ---- doing them ---- */

static int moving(struct job *j, enum form form, MPI_Request *req)
{
    int root = is_root(j) ? MPI_ROOT : is_member(j) ? j->root : MPI_PROC_NULL;
    int n = j->count[0], out = j->out.n[0], in = has_root(j->kind) ? j->in.n[is_root(j) ? 0 : j->root] : j->in.n[0];
    void *send = j->send, *recv = j->recv;
    MPI_Datatype t = j->type;
    MPI_Comm c = j->comm;
    switch (j->kind * FORMS + (int)form) {
    case BARRIER * FORMS + BLOCKING: return MPI_Barrier(c);
    case BARRIER * FORMS + START: case BARRIER * FORMS + START_LARGE: return MPI_Ibarrier(c, req);
    case BARRIER * FORMS + INIT: case BARRIER * FORMS + INIT_LARGE: return MPI_Barrier_init(c, MPI_INFO_NULL, req);
    case BCAST * FORMS + BLOCKING: return MPI_Bcast(recv, n, t, root, c);
    case BCAST * FORMS + START: return MPI_Ibcast(recv, n, t, root, c, req);
    case BCAST * FORMS + START_LARGE: return MPI_Ibcast_c(recv, n, t, root, c, req);
    case BCAST * FORMS + INIT: return MPI_Bcast_init(recv, n, t, root, c, MPI_INFO_NULL, req);
    case BCAST * FORMS + INIT_LARGE: return MPI_Bcast_init_c(recv, n, t, root, c, MPI_INFO_NULL, req);
    case GATHER * FORMS + BLOCKING: return MPI_Gather(send, out, t, recv, in, t, root, c);
    case GATHER * FORMS + START: return MPI_Igather(send, out, t, recv, in, t, root, c, req);
    case GATHER * FORMS + START_LARGE: return MPI_Igather_c(send, out, t, recv, in, t, root, c, req);
    case GATHER * FORMS + INIT: return MPI_Gather_init(send, out, t, recv, in, t, root, c, MPI_INFO_NULL, req);
    case GATHER * FORMS + INIT_LARGE: return MPI_Gather_init_c(send, out, t, recv, in, t, root, c, MPI_INFO_NULL, req);
    case SCATTER * FORMS + BLOCKING: return MPI_Scatter(send, out, t, recv, in, t, root, c);
    case SCATTER * FORMS + START: return MPI_Iscatter(send, out, t, recv, in, t, root, c, req);
    case SCATTER * FORMS + START_LARGE: return MPI_Iscatter_c(send, out, t, recv, in, t, root, c, req);
    case SCATTER * FORMS + INIT: return MPI_Scatter_init(send, out, t, recv, in, t, root, c, MPI_INFO_NULL, req);
    case SCATTER * FORMS + INIT_LARGE: return MPI_Scatter_init_c(send, out, t, recv, in, t, root, c, MPI_INFO_NULL, req);
    case ALLGATHER * FORMS + BLOCKING: return MPI_Allgather(send, out, t, recv, in, t, c);
    case ALLGATHER * FORMS + START: return MPI_Iallgather(send, out, t, recv, in, t, c, req);
    case ALLGATHER * FORMS + START_LARGE: return MPI_Iallgather_c(send, out, t, recv, in, t, c, req);
    case ALLGATHER * FORMS + INIT: return MPI_Allgather_init(send, out, t, recv, in, t, c, MPI_INFO_NULL, req);
    case ALLGATHER * FORMS + INIT_LARGE: return MPI_Allgather_init_c(send, out, t, recv, in, t, c, MPI_INFO_NULL, req);
    case ALLTOALL * FORMS + BLOCKING: return MPI_Alltoall(send, out, t, recv, in, t, c);
    case ALLTOALL * FORMS + START: return MPI_Ialltoall(send, out, t, recv, in, t, c, req);
    case ALLTOALL * FORMS + START_LARGE: return MPI_Ialltoall_c(send, out, t, recv, in, t, c, req);
    case ALLTOALL * FORMS + INIT: return MPI_Alltoall_init(send, out, t, recv, in, t, c, MPI_INFO_NULL, req);
    case ALLTOALL * FORMS + INIT_LARGE: return MPI_Alltoall_init_c(send, out, t, recv, in, t, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

static int varying(struct job *j, enum form form, MPI_Request *req)
{
    int root = is_root(j) ? MPI_ROOT : is_member(j) ? j->root : MPI_PROC_NULL, out = j->out.n[0], in = j->in.n[j->root];
    int *on = j->out.n, *oa = j->out.at, *ob = j->out.bytes_at, *rn = j->in.n, *ra = j->in.at, *rb = j->in.bytes_at;
    MPI_Count *On = j->out.wide_n, *Rn = j->in.wide_n;
    MPI_Aint *Oa = j->out.wide_at, *Ob = j->out.wide_bytes_at, *Ra = j->in.wide_at, *Rb = j->in.wide_bytes_at;
    void *send = j->send, *recv = j->recv;
    MPI_Datatype t = j->type, *w = j->types;
    MPI_Comm c = j->comm;
    MPI_Info i = MPI_INFO_NULL;
    switch (j->kind * FORMS + (int)form) {
    case GATHERV * FORMS + BLOCKING: return MPI_Gatherv(send, out, t, recv, rn, ra, t, root, c);
    case GATHERV * FORMS + START: return MPI_Igatherv(send, out, t, recv, rn, ra, t, root, c, req);
    case GATHERV * FORMS + START_LARGE: return MPI_Igatherv_c(send, out, t, recv, Rn, Ra, t, root, c, req);
    case GATHERV * FORMS + INIT: return MPI_Gatherv_init(send, out, t, recv, rn, ra, t, root, c, i, req);
    case GATHERV * FORMS + INIT_LARGE: return MPI_Gatherv_init_c(send, out, t, recv, Rn, Ra, t, root, c, i, req);
    case SCATTERV * FORMS + BLOCKING: return MPI_Scatterv(send, on, oa, t, recv, in, t, root, c);
    case SCATTERV * FORMS + START: return MPI_Iscatterv(send, on, oa, t, recv, in, t, root, c, req);
    case SCATTERV * FORMS + START_LARGE: return MPI_Iscatterv_c(send, On, Oa, t, recv, in, t, root, c, req);
    case SCATTERV * FORMS + INIT: return MPI_Scatterv_init(send, on, oa, t, recv, in, t, root, c, i, req);
    case SCATTERV * FORMS + INIT_LARGE: return MPI_Scatterv_init_c(send, On, Oa, t, recv, in, t, root, c, i, req);
    case ALLGATHERV * FORMS + BLOCKING: return MPI_Allgatherv(send, out, t, recv, rn, ra, t, c);
    case ALLGATHERV * FORMS + START: return MPI_Iallgatherv(send, out, t, recv, rn, ra, t, c, req);
    case ALLGATHERV * FORMS + START_LARGE: return MPI_Iallgatherv_c(send, out, t, recv, Rn, Ra, t, c, req);
    case ALLGATHERV * FORMS + INIT: return MPI_Allgatherv_init(send, out, t, recv, rn, ra, t, c, i, req);
    case ALLGATHERV * FORMS + INIT_LARGE: return MPI_Allgatherv_init_c(send, out, t, recv, Rn, Ra, t, c, i, req);
    case ALLTOALLV * FORMS + BLOCKING: return MPI_Alltoallv(send, on, oa, t, recv, rn, ra, t, c);
    case ALLTOALLV * FORMS + START: return MPI_Ialltoallv(send, on, oa, t, recv, rn, ra, t, c, req);
    case ALLTOALLV * FORMS + START_LARGE: return MPI_Ialltoallv_c(send, On, Oa, t, recv, Rn, Ra, t, c, req);
    case ALLTOALLV * FORMS + INIT: return MPI_Alltoallv_init(send, on, oa, t, recv, rn, ra, t, c, i, req);
    case ALLTOALLV * FORMS + INIT_LARGE: return MPI_Alltoallv_init_c(send, On, Oa, t, recv, Rn, Ra, t, c, i, req);
    case ALLTOALLW * FORMS + BLOCKING: return MPI_Alltoallw(send, on, ob, w, recv, rn, rb, w, c);
    case ALLTOALLW * FORMS + START: return MPI_Ialltoallw(send, on, ob, w, recv, rn, rb, w, c, req);
    case ALLTOALLW * FORMS + START_LARGE: return MPI_Ialltoallw_c(send, On, Ob, w, recv, Rn, Rb, w, c, req);
    case ALLTOALLW * FORMS + INIT: return MPI_Alltoallw_init(send, on, ob, w, recv, rn, rb, w, c, i, req);
    case ALLTOALLW * FORMS + INIT_LARGE: return MPI_Alltoallw_init_c(send, On, Ob, w, recv, Rn, Rb, w, c, i, req);
    default: return -1;
    }
}

static int reducing(struct job *j, enum form form, MPI_Request *req)
{
    int root = is_root(j) ? MPI_ROOT : is_member(j) ? j->root : MPI_PROC_NULL, n = j->count[0], in = j->in.n[me], *rn = j->in.n;
    MPI_Count *Rn = j->in.wide_n;
    void *send = j->send, *recv = j->recv;
    MPI_Datatype t = j->composes ? j->type : MPI_UINT64_T;
    MPI_Op op = j->composes ? j->op : MPI_SUM;
    MPI_Comm c = j->comm;
    MPI_Info i = MPI_INFO_NULL;
    switch (j->kind * FORMS + (int)form) {
    case REDUCE * FORMS + BLOCKING: return MPI_Reduce(send, recv, n, t, op, root, c);
    case REDUCE * FORMS + START: return MPI_Ireduce(send, recv, n, t, op, root, c, req);
    case REDUCE * FORMS + START_LARGE: return MPI_Ireduce_c(send, recv, n, t, op, root, c, req);
    case REDUCE * FORMS + INIT: return MPI_Reduce_init(send, recv, n, t, op, root, c, i, req);
    case REDUCE * FORMS + INIT_LARGE: return MPI_Reduce_init_c(send, recv, n, t, op, root, c, i, req);
    case ALLREDUCE * FORMS + BLOCKING: return MPI_Allreduce(send, recv, n, t, op, c);
    case ALLREDUCE * FORMS + START: return MPI_Iallreduce(send, recv, n, t, op, c, req);
    case ALLREDUCE * FORMS + START_LARGE: return MPI_Iallreduce_c(send, recv, n, t, op, c, req);
    case ALLREDUCE * FORMS + INIT: return MPI_Allreduce_init(send, recv, n, t, op, c, i, req);
    case ALLREDUCE * FORMS + INIT_LARGE: return MPI_Allreduce_init_c(send, recv, n, t, op, c, i, req);
    case REDUCE_SCATTER * FORMS + BLOCKING: return MPI_Reduce_scatter(send, recv, rn, t, op, c);
    case REDUCE_SCATTER * FORMS + START: return MPI_Ireduce_scatter(send, recv, rn, t, op, c, req);
    case REDUCE_SCATTER * FORMS + START_LARGE: return MPI_Ireduce_scatter_c(send, recv, Rn, t, op, c, req);
    case REDUCE_SCATTER * FORMS + INIT: return MPI_Reduce_scatter_init(send, recv, rn, t, op, c, i, req);
    case REDUCE_SCATTER * FORMS + INIT_LARGE: return MPI_Reduce_scatter_init_c(send, recv, Rn, t, op, c, i, req);
    case REDUCE_SCATTER_BLOCK * FORMS + BLOCKING: return MPI_Reduce_scatter_block(send, recv, in, t, op, c);
    case REDUCE_SCATTER_BLOCK * FORMS + START: return MPI_Ireduce_scatter_block(send, recv, in, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * FORMS + START_LARGE: return MPI_Ireduce_scatter_block_c(send, recv, in, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * FORMS + INIT: return MPI_Reduce_scatter_block_init(send, recv, in, t, op, c, i, req);
    case REDUCE_SCATTER_BLOCK * FORMS + INIT_LARGE: return MPI_Reduce_scatter_block_init_c(send, recv, in, t, op, c, i, req);
    default: return -1;
    }
}

static void do_job(struct job *j, enum form form, MPI_Request *req)
{
    if (reduces(j->kind)) CHECK_OK(reducing(j, form, req));
    else if (varies(j->kind)) CHECK_OK(varying(j, form, req));
    else CHECK_OK(moving(j, form, req));
    if (form >= INIT && *req != MPI_REQUEST_NULL) CHECK_OK(MPI_Start(req));
}

#endif
