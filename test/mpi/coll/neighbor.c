/*
 * neighbor.c - neighbourhood collectives (MPI-5.0 sections 8.6 to 8.8) in all their forms on random grids, graphs and
 * distributed graphs: every block comes from where the order of the neighbours says, in grids from the opposite direction,
 * also where two neighbours are the same process; gaps and what lies between the blocks stay as they were.
 */
#include "../check.h"

enum { DEGREE = 40, ROUNDS = 40, MAXRANKS = 16, MAXCOUNT = 300 };
enum kind { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
enum form { NOW, NOW_C, START, START_C, INIT, INIT_C, FORMS };

static const char *const kind_name[KINDS] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};
static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */

struct hood { /* a topology, and everybody's lists of destinations */
    MPI_Comm comm;
    int grid, in, out, source[DEGREE], destination[DEGREE];
    int outs[MAXRANKS], all[MAXRANKS][DEGREE];
};

struct job {
    enum kind kind;
    int count, stride, salt; /* blocks have `count` elements, or up to that many */
    MPI_Datatype type, pair[DEGREE + 1];
    unsigned *send, *recv, *want;
    int sn[DEGREE], sat[DEGREE], rn[DEGREE], rat[DEGREE];
    MPI_Count wide_sn[DEGREE], wide_rn[DEGREE];
    MPI_Aint wide_sat[DEGREE], wide_rat[DEGREE], sbyte[DEGREE], rbyte[DEGREE];
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* ---- topologies ---- */

static void make_grid(struct hood *h)
{
    int ndims = 1 + draw(3), dims[3] = {0}, periods[3];
    for (int d = 0; d < 3; d++) periods[d] = draw(2);
    MPI_Dims_create(check_size, ndims, dims);
    if (draw(2)) { /* the ones first */
        int x = dims[0];
        dims[0] = dims[ndims - 1];
        dims[ndims - 1] = x;
    }
    MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &h->comm);
    h->grid = 1;
    h->in = h->out = 2 * ndims;
    for (int d = 0; d < ndims; d++) MPI_Cart_shift(h->comm, d, 1, &h->source[2 * d], &h->source[2 * d + 1]);
    memcpy(h->destination, h->source, sizeof h->source);
}

/* Both ends of an edge have it in their lists; a pair of ranks may have several. */
static void make_graph(struct hood *h)
{
    int list[MAXRANKS][DEGREE], n[MAXRANKS] = {0}, index[MAXRANKS], edges[MAXRANKS * DEGREE], total = 0;
    for (int e = draw(3 * check_size); e > 0; e--) {
        int a = draw(check_size), b = draw(check_size);
        if (n[a] == DEGREE || n[b] == DEGREE) continue;
        list[a][n[a]++] = b;
        if (a != b) list[b][n[b]++] = a;
    }
    for (int r = 0; r < check_size; r++) {
        for (int i = 0; i < n[r]; i++) edges[total++] = list[r][i];
        index[r] = total;
    }
    MPI_Graph_create(MPI_COMM_WORLD, check_size, index, edges, 0, &h->comm);
    h->in = h->out = n[check_rank];
    memcpy(h->source, list[check_rank], sizeof h->source);
    memcpy(h->destination, list[check_rank], sizeof h->source);
}

static void make_dist_graph(struct hood *h)
{
    int in[MAXRANKS] = {0}, out[MAXRANKS] = {0};
    for (int e = draw(4 * check_size), a = 0, b = 0; e > 0; e--) {
        if (draw(3)) a = draw(check_size), b = draw(check_size);
        if (out[a] == DEGREE || in[b] == DEGREE) continue;
        if (a == check_rank) h->destination[out[a]] = b;
        if (b == check_rank) h->source[in[b]] = a;
        out[a]++, in[b]++;
    }
    h->in = in[check_rank];
    h->out = out[check_rank];
    for (int i = 0; i < h->in; i++) { /* in an order of this rank's own */
        int k = i + (int)(check_random(&own) % (unsigned)(h->in - i)), x = h->source[i];
        h->source[i] = h->source[k];
        h->source[k] = x;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h->in, h->source, MPI_UNWEIGHTED, h->out, h->destination, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &h->comm);
}

static void make_hood(struct hood *h)
{
    *h = (struct hood){.grid = 0};
    int what = draw(3);
    if (what == 0) make_grid(h);
    else if (what == 1) make_graph(h);
    else make_dist_graph(h);
    MPI_Allgather(&h->out, 1, MPI_INT, h->outs, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(h->destination, DEGREE, MPI_INT, h->all, DEGREE, MPI_INT, MPI_COMM_WORLD);
    if (draw(2)) { /* a duplicate has the topology as well */
        MPI_Comm dup;
        MPI_Comm_dup(h->comm, &dup);
        MPI_Comm_free(&h->comm);
        h->comm = dup;
    }
}

/* What comes to slot i is its sender's block number ... */
static int sent_as(const struct hood *h, int i)
{
    int p = h->source[i], nth = 0;
    if (h->grid) return i ^ 1;
    for (int k = 0; k < i; k++) nth += h->source[k] == p;
    for (int k = 0; k < h->outs[p]; k++)
        if (h->all[p][k] == check_rank && nth-- == 0) return k;
    CHECK(0, "source %d does not send to this rank", p);
    return 0;
}

/* ---- blocks ---- */

static int gathers(const struct job *j) { return j->kind == ALLGATHER || j->kind == ALLGATHERV; }

static int length(const struct job *j, int from, int k)
{
    if (j->kind == ALLGATHER || j->kind == ALLTOALL) return j->count;
    if (j->kind == ALLGATHERV) k = 0;
    uint64_t x = (uint64_t)(j->salt + from * 97 + k);
    return check_random(&x) % 4 ? (int)(x >> 16 & 0xffff) % (j->count + 1) : 0;
}

static unsigned word(const struct job *j, int from, int k, int i)
{
    uint64_t x = (uint64_t)j->salt << 32 | (uint64_t)from << 24 | (uint64_t)(gathers(j) ? 0 : k) << 16 | (uint64_t)i;
    return (unsigned)check_random(&x);
}

/* Words from the start of a buffer to word i of the block at element `at`. */
static size_t where(const struct job *j, int at, int i) { return ((size_t)at + (size_t)i / 2) * 2 * (size_t)j->stride + (size_t)i % 2; }
static size_t room(const struct job *j) { return (size_t)(j->count + 1) * 2 * (size_t)j->stride * DEGREE; }

static void put_block(const struct job *j, unsigned *buf, int at, int from, int k)
{
    for (int i = 0; i < 2 * length(j, from, k); i++) buf[where(j, at, i)] = word(j, from, k, i);
}

static void fill(struct job *j, const struct hood *h)
{
    for (size_t i = 0; i < room(j); i++) j->send[i] = j->recv[i] = j->want[i] = 0xdeadbeef;
    for (int k = 0; k < h->out; k++) put_block(j, j->send, gathers(j) ? 0 : j->sat[k], check_rank, k);
    for (int i = 0; i < h->in; i++)
        if (h->source[i] >= 0) put_block(j, j->want, j->rat[i], h->source[i], sent_as(h, i));
}

/* Regular blocks lie one behind the other, others in a turned order with room between them. */
static void make_places(struct job *j, const struct hood *h)
{
    int v = j->kind == ALLGATHERV || j->kind == ALLTOALLV || j->kind == ALLTOALLW, turn = (int)(check_random(&own) % DEGREE);
    for (int i = 0; i < DEGREE; i++) {
        j->sat[i] = v ? (i + turn) % DEGREE * (j->count + 1) : i * j->count;
        j->rat[i] = j->sat[i];
        j->sn[i] = i < h->out ? length(j, check_rank, i) : 0;
        j->rn[i] = i < h->in && h->source[i] >= 0 ? length(j, h->source[i], sent_as(h, i)) : 0;
        j->wide_sn[i] = j->sn[i], j->wide_rn[i] = j->rn[i];
        j->wide_sat[i] = j->sat[i], j->wide_rat[i] = j->rat[i];
        j->sbyte[i] = j->rbyte[i] = (MPI_Aint)j->sat[i] * 8 * j->stride;
    }
}

static void make_types(struct job *j)
{
    MPI_Datatype two, other;
    MPI_Type_vector(1, 2, 2, MPI_UNSIGNED, &two);
    MPI_Type_create_resized(two, 0, 8 * j->stride, &j->type);
    MPI_Type_commit(&j->type);
    MPI_Type_free(&two);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &two);
    MPI_Type_create_resized(two, 0, 8 * j->stride, &other);
    MPI_Type_commit(&other);
    MPI_Type_free(&two);
    for (int i = 0; i <= DEGREE; i++) MPI_Type_dup(i % 2 ? j->type : other, &j->pair[i]);
    MPI_Type_free(&other);
}

static void free_types(struct job *j)
{
    MPI_Type_free(&j->type);
    for (int i = 0; i <= DEGREE; i++) MPI_Type_free(&j->pair[i]);
}

static void make_job(struct job *j, const struct hood *h, enum kind kind)
{
    *j = (struct job){.kind = kind, .stride = 1 + draw(2), .salt = draw(1 << 30)};
    j->count = draw(4) == 0 ? 0 : draw(3) ? draw(20) : draw(MAXCOUNT);
    j->send = malloc(room(j) * 4);
    j->recv = malloc(room(j) * 4);
    j->want = malloc(room(j) * 4);
    make_places(j, h);
    make_types(j);
    fill(j, h);
}

static void free_job(struct job *j)
{
    free(j->send);
    free(j->recv);
    free(j->want);
}

/* ---- calls ---- */

static int regular(struct job *j, enum form form, MPI_Comm c, MPI_Request *req)
{
    const unsigned *s = j->send;
    unsigned *r = j->recv;
    int n = j->count;
    MPI_Datatype t = j->type, u = j->pair[0];
    switch (j->kind * FORMS + (int)form) {
    case ALLGATHER * FORMS + NOW: return MPI_Neighbor_allgather(s, n, t, r, n, u, c);
    case ALLGATHER * FORMS + NOW_C: return MPI_Neighbor_allgather_c(s, n, t, r, n, u, c);
    case ALLGATHER * FORMS + START: return MPI_Ineighbor_allgather(s, n, t, r, n, u, c, req);
    case ALLGATHER * FORMS + START_C: return MPI_Ineighbor_allgather_c(s, n, t, r, n, u, c, req);
    case ALLGATHER * FORMS + INIT: return MPI_Neighbor_allgather_init(s, n, t, r, n, u, c, MPI_INFO_NULL, req);
    case ALLGATHER * FORMS + INIT_C: return MPI_Neighbor_allgather_init_c(s, n, t, r, n, u, c, MPI_INFO_NULL, req);
    case ALLTOALL * FORMS + NOW: return MPI_Neighbor_alltoall(s, n, t, r, n, u, c);
    case ALLTOALL * FORMS + NOW_C: return MPI_Neighbor_alltoall_c(s, n, t, r, n, u, c);
    case ALLTOALL * FORMS + START: return MPI_Ineighbor_alltoall(s, n, t, r, n, u, c, req);
    case ALLTOALL * FORMS + START_C: return MPI_Ineighbor_alltoall_c(s, n, t, r, n, u, c, req);
    case ALLTOALL * FORMS + INIT: return MPI_Neighbor_alltoall_init(s, n, t, r, n, u, c, MPI_INFO_NULL, req);
    case ALLTOALL * FORMS + INIT_C: return MPI_Neighbor_alltoall_init_c(s, n, t, r, n, u, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

static int varying(struct job *j, enum form form, MPI_Comm c, MPI_Request *req)
{
    const unsigned *s = j->send;
    unsigned *r = j->recv;
    int n = length(j, check_rank, 0);
    const int *sn = j->sn, *sat = j->sat, *rn = j->rn, *rat = j->rat;
    const MPI_Count *Sn = j->wide_sn, *Rn = j->wide_rn;
    const MPI_Aint *Sat = j->wide_sat, *Rat = j->wide_rat, *Sby = j->sbyte, *Rby = j->rbyte;
    MPI_Datatype t = j->type, u = j->pair[0], *w = j->pair, *x = j->pair + 1; /* the same but in turn */
    switch (j->kind * FORMS + (int)form) {
    case ALLGATHERV * FORMS + NOW: return MPI_Neighbor_allgatherv(s, n, t, r, rn, rat, u, c);
    case ALLGATHERV * FORMS + NOW_C: return MPI_Neighbor_allgatherv_c(s, n, t, r, Rn, Rat, u, c);
    case ALLGATHERV * FORMS + START: return MPI_Ineighbor_allgatherv(s, n, t, r, rn, rat, u, c, req);
    case ALLGATHERV * FORMS + START_C: return MPI_Ineighbor_allgatherv_c(s, n, t, r, Rn, Rat, u, c, req);
    case ALLGATHERV * FORMS + INIT: return MPI_Neighbor_allgatherv_init(s, n, t, r, rn, rat, u, c, MPI_INFO_NULL, req);
    case ALLGATHERV * FORMS + INIT_C: return MPI_Neighbor_allgatherv_init_c(s, n, t, r, Rn, Rat, u, c, MPI_INFO_NULL, req);
    case ALLTOALLV * FORMS + NOW: return MPI_Neighbor_alltoallv(s, sn, sat, t, r, rn, rat, u, c);
    case ALLTOALLV * FORMS + NOW_C: return MPI_Neighbor_alltoallv_c(s, Sn, Sat, t, r, Rn, Rat, u, c);
    case ALLTOALLV * FORMS + START: return MPI_Ineighbor_alltoallv(s, sn, sat, t, r, rn, rat, u, c, req);
    case ALLTOALLV * FORMS + START_C: return MPI_Ineighbor_alltoallv_c(s, Sn, Sat, t, r, Rn, Rat, u, c, req);
    case ALLTOALLV * FORMS + INIT: return MPI_Neighbor_alltoallv_init(s, sn, sat, t, r, rn, rat, u, c, MPI_INFO_NULL, req);
    case ALLTOALLV * FORMS + INIT_C: return MPI_Neighbor_alltoallv_init_c(s, Sn, Sat, t, r, Rn, Rat, u, c, MPI_INFO_NULL, req);
    case ALLTOALLW * FORMS + NOW: return MPI_Neighbor_alltoallw(s, sn, Sby, w, r, rn, Rby, x, c);
    case ALLTOALLW * FORMS + NOW_C: return MPI_Neighbor_alltoallw_c(s, Sn, Sby, w, r, Rn, Rby, x, c);
    case ALLTOALLW * FORMS + START: return MPI_Ineighbor_alltoallw(s, sn, Sby, w, r, rn, Rby, x, c, req);
    case ALLTOALLW * FORMS + START_C: return MPI_Ineighbor_alltoallw_c(s, Sn, Sby, w, r, Rn, Rby, x, c, req);
    case ALLTOALLW * FORMS + INIT: return MPI_Neighbor_alltoallw_init(s, sn, Sby, w, r, rn, Rby, x, c, MPI_INFO_NULL, req);
    case ALLTOALLW * FORMS + INIT_C: return MPI_Neighbor_alltoallw_init_c(s, Sn, Sby, w, r, Rn, Rby, x, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

static void call(struct job *j, enum form form, MPI_Comm c, MPI_Request *req)
{
    int is_regular = j->kind == ALLGATHER || j->kind == ALLTOALL;
    CHECK_OK(is_regular ? regular(j, form, c, req) : varying(j, form, c, req));
}

static void check_job(const struct job *j, const struct hood *h, enum form form)
{
    size_t bad = 0;
    for (size_t i = 0; i < room(j); i++) bad += j->recv[i] != j->want[i];
    CHECK(bad == 0, "%s of %d, form %d, %s with %d sources and %d destinations: %zu words differ", kind_name[j->kind], j->count,
          (int)form, h->grid ? "grid" : "graph", h->in, h->out, bad);
}

/* All kinds in a form drawn for each, those that can be pending together; types and communicator go before the end. */
static void round_of(void)
{
    struct hood h;
    struct job *jobs = calloc(KINDS, sizeof *jobs);
    MPI_Request req[KINDS];
    enum form form[KINDS];
    make_hood(&h);
    for (int k = 0; k < KINDS; k++) {
        req[k] = MPI_REQUEST_NULL;
        form[k] = (enum form)draw(FORMS);
        make_job(&jobs[k], &h, (enum kind)k);
        call(&jobs[k], form[k], h.comm, &req[k]);
        free_types(&jobs[k]);
    }
    MPI_Comm_free(&h.comm);
    for (int turn = 0; turn < 2; turn++) {
        for (int k = KINDS; k-- > 0;)
            if (form[k] >= INIT) CHECK_OK(MPI_Start(&req[k]));
        CHECK_OK(MPI_Waitall(KINDS, req, MPI_STATUSES_IGNORE));
        for (int k = 0; k < KINDS; k++) {
            check_job(&jobs[k], &h, form[k]);
            if (form[k] < INIT) continue;
            jobs[k].salt++; /* other data for the next start; lengths depend on the salt where they vary */
            if (k == ALLGATHER || k == ALLTOALL) fill(&jobs[k], &h);
            else jobs[k].salt--;
        }
    }
    for (int k = 0; k < KINDS; k++) {
        if (form[k] >= INIT) CHECK_OK(MPI_Request_free(&req[k]));
        free_job(&jobs[k]);
    }
    free(jobs);
}

/* ---- single cases ---- */

/* One process, or two, around a ring: the block sent down comes to the slot of the neighbour above. */
static void short_rings(void)
{
    MPI_Comm ring, some;
    int period = 1, size = check_size < 2 ? 1 : 2, out[2] = {10 * check_rank + 1, 10 * check_rank + 2}, in[2] = {0, 0};
    MPI_Comm_split(MPI_COMM_WORLD, check_rank < size ? 0 : MPI_UNDEFINED, 0, &some);
    if (some == MPI_COMM_NULL) return;
    MPI_Cart_create(some, 1, &size, &period, 0, &ring);
    int other = size - 1 - check_rank;
    CHECK_OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring));
    CHECK(in[0] == 10 * other + 2 && in[1] == 10 * other + 1, "got %d from below and %d from above", in[0], in[1]);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&some);
}

/* Nobody to talk to: no argument but the types matters. */
static void alone(void)
{
    MPI_Comm c;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
    CHECK_OK(MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    CHECK_OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, c));
    CHECK_OK(MPI_Neighbor_allgatherv(NULL, 1, MPI_INT, NULL, NULL, NULL, MPI_INT, c));
    CHECK_OK(MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL, MPI_INT, c));
    CHECK_OK(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, c));
    MPI_Comm_free(&c);
}

/* Two neighbours may send each other different amounts; what is too long for its receiver is an error there. */
static void two_of_different_size(void)
{
    MPI_Comm some, pair;
    int me = check_rank, other = 1 - me, out[2] = {me, me + 10}, in[3] = {-1, -1, -1}, mine = 1 + me, its = 2 - me;
    MPI_Comm_split(MPI_COMM_WORLD, me < 2 ? 0 : MPI_UNDEFINED, 0, &some);
    if (some == MPI_COMM_NULL) return;
    MPI_Dist_graph_create_adjacent(some, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &pair);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Neighbor_alltoall(out, mine, MPI_INT, in, its, MPI_INT, pair));
    CHECK(in[0] == other && in[1] == (its == 2 ? other + 10 : -1) && in[2] == -1, "got %d %d %d", in[0], in[1], in[2]);
    in[0] = in[1] = -1;
    CHECK_OK(MPI_Neighbor_allgather(out, mine, MPI_INT, in, its, MPI_INT, pair));
    CHECK(in[0] == other && in[1] == (its == 2 ? other + 10 : -1) && in[2] == -1, "got %d %d %d", in[0], in[1], in[2]);
    MPI_Comm_free(&pair);
    MPI_Dist_graph_create_adjacent(some, me == 0, &other, MPI_UNWEIGHTED, me == 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &pair);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    int rc = MPI_Neighbor_alltoall(out, mine, MPI_INT, in, 1, MPI_INT, pair);
    CHECK_CLASS(rc, me == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    CHECK(in[2] == -1, "a message went beyond its buffer");
    MPI_Comm_free(&pair);
    MPI_Comm_free(&some);
}

/* A ring in which some ranks send as much as they receive, and others not: all have called the same. */
static void ring_of_different_sizes(void)
{
    static const int sends[] = {1, 2, 1};
    MPI_Comm some, ring;
    int me = check_rank, next = (me + 1) % 3, before = (me + 2) % 3;
    MPI_Comm_split(MPI_COMM_WORLD, me < 3 ? 0 : MPI_UNDEFINED, 0, &some);
    if (some == MPI_COMM_NULL) return;
    int out[2] = {me, me + 10}, in[2], n = sends[before];
    MPI_Dist_graph_create_adjacent(some, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        in[0] = in[1] = -1;
        if (i) CHECK_OK(MPI_Neighbor_alltoall(out, sends[me], MPI_INT, in, n, MPI_INT, ring));
        else CHECK_OK(MPI_Neighbor_allgather(out, sends[me], MPI_INT, in, n, MPI_INT, ring));
        CHECK(in[0] == before && in[1] == (n == 2 ? before + 10 : -1), "got %d %d", in[0], in[1]);
        CHECK_OK(MPI_Barrier(ring));
    }
    MPI_Comm_free(&ring);
    MPI_Comm_free(&some);
}

static void wrong_arguments(void)
{
    int one = 1, zero = 0, word = 0, sum = 0, negative = -1;
    MPI_Comm c, inter;
    MPI_Request req = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Neighbor_allgather(&one, 1, MPI_INT, &word, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
    CHECK_CLASS(MPI_Ineighbor_alltoall(&one, 1, MPI_INT, &word, 1, MPI_INT, MPI_COMM_WORLD, &req), MPI_ERR_TOPOLOGY);
    CHECK_CLASS(MPI_Neighbor_allgather(&one, 1, MPI_INT, &word, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM);
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
    CHECK_CLASS(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, &word, 1, MPI_INT, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Neighbor_allgather(&one, -1, MPI_INT, &word, 1, MPI_INT, c), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Neighbor_alltoall(&one, 1, MPI_INT, &word, 1, MPI_DATATYPE_NULL, c), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Neighbor_alltoallv(&one, &negative, &zero, MPI_INT, &word, &one, &zero, MPI_INT, c), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Neighbor_alltoallv(&one, NULL, &zero, MPI_INT, &word, &one, &zero, MPI_INT, c), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Ineighbor_allgather(&one, 1, MPI_INT, &word, 1, MPI_INT, c, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Neighbor_allgather_init(&one, 1, MPI_INT, &word, 1, MPI_INT, c, (MPI_Info)c, &req), MPI_ERR_INFO);
    CHECK(req == MPI_REQUEST_NULL && word == 0, "a call that failed left a result");
    CHECK_OK(MPI_Neighbor_allgather(&one, 1, MPI_INT, &sum, 1, MPI_INT, c)); /* to itself */
    CHECK(sum == 1, "got %d", sum);
    MPI_Comm_free(&c);
    if (check_size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank > 0, 0, &c);
    MPI_Intercomm_create(c, 0, MPI_COMM_WORLD, check_rank > 0 ? 0 : 1, 3, &inter);
    CHECK_CLASS(MPI_Neighbor_allgather(&one, 1, MPI_INT, &word, 1, MPI_INT, inter), MPI_ERR_COMM);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank + 1;
    for (int i = 0; i < ROUNDS; i++) round_of();
    short_rings();
    alone();
    if (check_size > 1) two_of_different_size();
    if (check_size > 2) ring_of_different_sizes();
    wrong_arguments();
    return check_done();
}
