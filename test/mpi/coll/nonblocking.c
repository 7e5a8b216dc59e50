/*
 * nonblocking.c - nonblocking collectives (MPI-5.0 section 6.12): random operations of every kind are started, several in
 * flight on two communicators with blocking ones in between, and completed in an order of each rank's own. Each must give
 * what the blocking form gives. Types and operators are freed as soon as the operation is started.
 */
#include "../check.h"

enum { KINDS = 17, BATCHES = 40, IN_FLIGHT = 12, MAXCOUNT = 2000, MAXRANKS = 16 };

static const char *const kind_name[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv",
                                             "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter",
                                             "reduce_scatter_block", "scan", "exscan"};
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
       REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN };
enum how { BLOCKING, START, START_LARGE };

static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */
static MPI_Comm comms[2];

struct job {
    int kind, root, count, in_place, stride, user_op;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    unsigned *send, *recv, *want; /* room for blocks of all ranks */
    int n[MAXRANKS], at[MAXRANKS], bytes_at[MAXRANKS];
    MPI_Count wide_n[MAXRANKS];
    MPI_Aint wide_at[MAXRANKS], wide_bytes_at[MAXRANKS];
    MPI_Datatype types[MAXRANKS];
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* Composition of x -> a x + b: associative, not commutative. An element is a pair. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *len * bytes / 8; i++, f += 2, g += 2) {
        unsigned a = g[0] * f[0], b = g[0] * f[1] + g[1];
        g[0] = a, g[1] = b;
    }
}

/* Words of a buffer with a block for every rank, holes included. */
static size_t room(const struct job *j) { return (size_t)(j->count + 1) * 2 * (size_t)j->stride * (size_t)check_size + 64; }

static int reduces(int kind) { return kind == REDUCE || kind == ALLREDUCE || kind >= REDUCE_SCATTER; }

static int may_be_in_place(const struct job *j)
{
    switch (j->kind) {
    case BARRIER: case BCAST: return 0;
    case REDUCE: case GATHER: case GATHERV: case SCATTER: case SCATTERV: return check_rank == j->root;
    default: return 1;
    }
}

static void make_type(struct job *j)
{
    MPI_Datatype vector;
    MPI_Type_vector(1, 2, 2, MPI_UNSIGNED, &vector);
    MPI_Type_create_resized(vector, 0, 8 * j->stride, &j->type);
    MPI_Type_commit(&j->type);
    MPI_Type_free(&vector);
}

static void make_job(struct job *j)
{
    *j = (struct job){.kind = draw(KINDS), .root = draw(check_size), .stride = draw(3) ? 1 : 2};
    j->count = draw(3) ? draw(20) : draw(MAXCOUNT);
    int place = draw(4) == 0;
    j->in_place = place && may_be_in_place(j);
    j->comm = comms[draw(2)];
    j->user_op = draw(2);
    if (reduces(j->kind)) j->stride = 1; /* gaps of reductions: reductions.c */
    make_type(j);
    int shift = draw(check_size), at = 0;
    for (int k = 0; k < check_size; k++) {
        int r = (k + shift) % check_size;
        j->n[r] = j->count ? (r * 7 + j->count) % (j->count + 1) : 0;
        j->at[r] = at;
        j->bytes_at[r] = at * 8 * j->stride;
        at += j->count;
        j->types[r] = j->type;
        j->wide_n[r] = j->n[r], j->wide_at[r] = j->at[r], j->wide_bytes_at[r] = j->bytes_at[r];
    }
    j->send = malloc(room(j) * 4);
    j->recv = malloc(room(j) * 4);
    j->want = malloc(room(j) * 4);
    for (size_t i = 0; i < room(j); i++) {
        j->send[i] = (unsigned)check_random(&own);
        j->recv[i] = j->want[i] = (unsigned)check_random(&own);
    }
}

/* What this rank receives of a v-collective with regular sends, and sends with regular receives. */
static int mine(const struct job *j) { return j->n[check_rank]; }

static int moving(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    void *put = j->in_place ? MPI_IN_PLACE : recv; /* of scatters */
    int n = j->count, root = j->root;
    MPI_Datatype t = j->type;
    MPI_Comm c = j->comm;
    switch (j->kind * 3 + (int)how) {
    case BARRIER * 3: return MPI_Barrier(c);
    case BARRIER * 3 + 1: case BARRIER * 3 + 2: return MPI_Ibarrier(c, req);
    case BCAST * 3: return MPI_Bcast(recv, n, t, root, c);
    case BCAST * 3 + 1: return MPI_Ibcast(recv, n, t, root, c, req);
    case BCAST * 3 + 2: return MPI_Ibcast_c(recv, n, t, root, c, req);
    case GATHER * 3: return MPI_Gather(send, n, t, recv, n, t, root, c);
    case GATHER * 3 + 1: return MPI_Igather(send, n, t, recv, n, t, root, c, req);
    case GATHER * 3 + 2: return MPI_Igather_c(send, n, t, recv, n, t, root, c, req);
    case SCATTER * 3: return MPI_Scatter(j->send, n, t, put, n, t, root, c);
    case SCATTER * 3 + 1: return MPI_Iscatter(j->send, n, t, put, n, t, root, c, req);
    case SCATTER * 3 + 2: return MPI_Iscatter_c(j->send, n, t, put, n, t, root, c, req);
    case ALLGATHER * 3: return MPI_Allgather(send, n, t, recv, n, t, c);
    case ALLGATHER * 3 + 1: return MPI_Iallgather(send, n, t, recv, n, t, c, req);
    case ALLGATHER * 3 + 2: return MPI_Iallgather_c(send, n, t, recv, n, t, c, req);
    case ALLTOALL * 3: return MPI_Alltoall(send, n, t, recv, n, t, c);
    case ALLTOALL * 3 + 1: return MPI_Ialltoall(send, n, t, recv, n, t, c, req);
    case ALLTOALL * 3 + 2: return MPI_Ialltoall_c(send, n, t, recv, n, t, c, req);
    case GATHERV * 3: return MPI_Gatherv(send, mine(j), t, recv, j->n, j->at, t, root, c);
    case GATHERV * 3 + 1: return MPI_Igatherv(send, mine(j), t, recv, j->n, j->at, t, root, c, req);
    case GATHERV * 3 + 2: return MPI_Igatherv_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, root, c, req);
    case SCATTERV * 3: return MPI_Scatterv(j->send, j->n, j->at, t, put, mine(j), t, root, c);
    case SCATTERV * 3 + 1: return MPI_Iscatterv(j->send, j->n, j->at, t, put, mine(j), t, root, c, req);
    case SCATTERV * 3 + 2: return MPI_Iscatterv_c(j->send, j->wide_n, j->wide_at, t, put, mine(j), t, root, c, req);
    case ALLGATHERV * 3: return MPI_Allgatherv(send, mine(j), t, recv, j->n, j->at, t, c);
    case ALLGATHERV * 3 + 1: return MPI_Iallgatherv(send, mine(j), t, recv, j->n, j->at, t, c, req);
    case ALLGATHERV * 3 + 2: return MPI_Iallgatherv_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, c, req);
    default: return -1;
    }
}

/* alltoallv, alltoallw: every pair of ranks moves j->count elements, so that both sides agree. */
static int exchanging(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    MPI_Datatype t = j->type, *w = j->types;
    MPI_Comm c = j->comm;
    int *n = j->n, *at = j->at, *by = j->bytes_at;
    MPI_Count *N = j->wide_n;
    MPI_Aint *At = j->wide_at, *By = j->wide_bytes_at;
    for (int r = 0; r < check_size; r++) n[r] = j->count, N[r] = j->count;
    switch (j->kind * 3 + (int)how) {
    case ALLTOALLV * 3: return MPI_Alltoallv(send, n, at, t, recv, n, at, t, c);
    case ALLTOALLV * 3 + 1: return MPI_Ialltoallv(send, n, at, t, recv, n, at, t, c, req);
    case ALLTOALLV * 3 + 2: return MPI_Ialltoallv_c(send, N, At, t, recv, N, At, t, c, req);
    case ALLTOALLW * 3: return MPI_Alltoallw(send, n, by, w, recv, n, by, w, c);
    case ALLTOALLW * 3 + 1: return MPI_Ialltoallw(send, n, by, w, recv, n, by, w, c, req);
    case ALLTOALLW * 3 + 2: return MPI_Ialltoallw_c(send, N, By, w, recv, N, By, w, c, req);
    default: return -1;
    }
}

static int reducing(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    MPI_Datatype t = j->user_op ? j->type : MPI_UNSIGNED;
    MPI_Op op = j->user_op ? j->op : MPI_SUM;
    MPI_Comm c = j->comm;
    int n = j->count, root = j->root;
    switch (j->kind * 3 + (int)how) {
    case REDUCE * 3: return MPI_Reduce(send, recv, n, t, op, root, c);
    case REDUCE * 3 + 1: return MPI_Ireduce(send, recv, n, t, op, root, c, req);
    case REDUCE * 3 + 2: return MPI_Ireduce_c(send, recv, n, t, op, root, c, req);
    case ALLREDUCE * 3: return MPI_Allreduce(send, recv, n, t, op, c);
    case ALLREDUCE * 3 + 1: return MPI_Iallreduce(send, recv, n, t, op, c, req);
    case ALLREDUCE * 3 + 2: return MPI_Iallreduce_c(send, recv, n, t, op, c, req);
    case REDUCE_SCATTER * 3: return MPI_Reduce_scatter(send, recv, j->n, t, op, c);
    case REDUCE_SCATTER * 3 + 1: return MPI_Ireduce_scatter(send, recv, j->n, t, op, c, req);
    case REDUCE_SCATTER * 3 + 2: return MPI_Ireduce_scatter_c(send, recv, j->wide_n, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * 3: return MPI_Reduce_scatter_block(send, recv, n, t, op, c);
    case REDUCE_SCATTER_BLOCK * 3 + 1: return MPI_Ireduce_scatter_block(send, recv, n, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * 3 + 2: return MPI_Ireduce_scatter_block_c(send, recv, n, t, op, c, req);
    case SCAN * 3: return MPI_Scan(send, recv, n, t, op, c);
    case SCAN * 3 + 1: return MPI_Iscan(send, recv, n, t, op, c, req);
    case SCAN * 3 + 2: return MPI_Iscan_c(send, recv, n, t, op, c, req);
    case EXSCAN * 3: return MPI_Exscan(send, recv, n, t, op, c);
    case EXSCAN * 3 + 1: return MPI_Iexscan(send, recv, n, t, op, c, req);
    case EXSCAN * 3 + 2: return MPI_Iexscan_c(send, recv, n, t, op, c, req);
    default: return -1;
    }
}

static void do_job(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    if (reduces(j->kind)) CHECK_OK(reducing(j, how, recv, req));
    else if (j->kind == ALLTOALLV || j->kind == ALLTOALLW) CHECK_OK(exchanging(j, how, recv, req));
    else CHECK_OK(moving(j, how, recv, req));
}

/* The significant result is compared with what the blocking form left. */
static void check_job(struct job *j)
{
    /* A scatter in place leaves the receive buffer alone, a reduction's operand buffers are scratch where they are not
     * the result: in place, a reduce_scatter leaves no meaning behind its block. */
    size_t words = room(j);
    if (j->kind == REDUCE && check_rank != j->root) words = 0;
    if (j->kind == EXSCAN && check_rank == 0) words = 0;
    if (j->kind == REDUCE_SCATTER && j->in_place) words = (size_t)mine(j) * (j->user_op ? 2 : 1);
    if (j->kind == REDUCE_SCATTER_BLOCK && j->in_place) words = (size_t)j->count * (j->user_op ? 2 : 1);
    size_t bad = 0;
    for (size_t i = 0; i < words; i++) bad += j->recv[i] != j->want[i];
    CHECK(bad == 0, "%s of %d, root %d, in place %d: %zu words differ from the blocking result", kind_name[j->kind], j->count, j->root,
          j->in_place, bad);
    free(j->send);
    free(j->recv);
    free(j->want);
}

/* ---- completion, in an order of this rank's own ---- */

static void complete_by_tests(MPI_Request *req)
{
    for (int left = IN_FLIGHT; left;) {
        int i = (int)(check_random(&own) % IN_FLIGHT), flag = 0;
        if (req[i] == MPI_REQUEST_NULL) continue;
        MPI_Status status;
        CHECK_OK(MPI_Test(&req[i], &flag, &status));
        if (flag) left--;
    }
}

static void complete_some(MPI_Request *req)
{
    int index[IN_FLIGHT], n, done = 0;
    while (done < IN_FLIGHT) {
        CHECK_OK(MPI_Waitsome(IN_FLIGHT, req, &n, index, MPI_STATUSES_IGNORE));
        if (n == MPI_UNDEFINED) break;
        done += n;
    }
}

static void complete(MPI_Request *req)
{
    int flag = 0, index;
    switch (check_random(&own) % 5) {
    case 0: CHECK_OK(MPI_Waitall(IN_FLIGHT, req, MPI_STATUSES_IGNORE)); break;
    case 1: complete_by_tests(req); break;
    case 2: complete_some(req); break;
    case 3:
        for (int i = 0; i < IN_FLIGHT; i++) CHECK_OK(MPI_Waitany(IN_FLIGHT, req, &index, MPI_STATUS_IGNORE));
        break;
    default:
        while (!flag) CHECK_OK(MPI_Testall(IN_FLIGHT, req, &flag, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < IN_FLIGHT; i++) CHECK(req[i] == MPI_REQUEST_NULL, "request %d is left", i);
}

static void batch(void)
{
    struct job *jobs = calloc(IN_FLIGHT, sizeof *jobs);
    MPI_Request req[IN_FLIGHT];
    for (int i = 0; i < IN_FLIGHT; i++) {
        struct job *j = &jobs[i];
        make_job(j);
        MPI_Op_create(compose, 0, &j->op);
        int sooner = draw(2), how = 1 + draw(2);
        if (sooner) do_job(j, BLOCKING, j->want, NULL); /* between those in flight, or after all of them */
        do_job(j, (enum how)how, j->recv, &req[i]);
        if (!sooner) do_job(j, BLOCKING, j->want, NULL);
        MPI_Type_free(&j->type);
        MPI_Op_free(&j->op);
    }
    complete(req);
    for (int i = 0; i < IN_FLIGHT; i++) check_job(&jobs[i]);
    free(jobs);
}

/* Nothing is waited for at the start, and the end waits for all: a barrier that one rank has not entered does not end. */
static void barrier_waits(void)
{
    MPI_Request req;
    int flag = 0, token = 0, last = check_size - 1;
    if (check_size == 1) return;
    if (check_rank == last) { /* enters only when told that nobody has passed */
        for (int r = 0; r < last; r++) MPI_Recv(&token, 1, MPI_INT, r, 1, comms[0], MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Ibarrier(comms[0], &req));
    } else {
        CHECK_OK(MPI_Ibarrier(comms[0], &req));
        for (int i = 0; i < 100 && !flag; i++) CHECK_OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "a barrier ended without rank %d", last);
        MPI_Request same = req;
        CHECK_CLASS(MPI_Request_free(&req), MPI_ERR_REQUEST);
        CHECK_CLASS(MPI_Cancel(&req), MPI_ERR_REQUEST);
        CHECK(req == same, "a call that failed changed the request");
        MPI_Send(&token, 1, MPI_INT, last, 1, comms[0]);
    }
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* Completed by progress in other calls; the communicator may be freed while it is in flight. */
static void others_progress(void)
{
    MPI_Comm dup;
    MPI_Request req;
    int sum = 0, one = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    CHECK_OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup, &req));
    CHECK_OK(MPI_Comm_free(&dup));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(sum == check_size, "the sum is %d", sum);
}

static void wrong_arguments(void)
{
    MPI_Request req = MPI_REQUEST_NULL;
    int word = 1, sum = 0;
    CHECK_CLASS(MPI_Ibarrier(MPI_COMM_NULL, &req), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Ibarrier(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Ibcast(&word, 1, MPI_INT, check_size, MPI_COMM_WORLD, &req), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Ibcast(&word, -1, MPI_INT, 0, MPI_COMM_WORLD, &req), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Iallreduce(&word, &sum, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD, &req), MPI_ERR_OP);
    CHECK_CLASS(MPI_Iallgather(&word, 1, MPI_DATATYPE_NULL, &sum, 1, MPI_INT, MPI_COMM_WORLD, &req), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Iallgather(&word, 1, MPI_INT, &sum, 2, MPI_INT, MPI_COMM_WORLD, &req), MPI_ERR_TRUNCATE);
    CHECK(req == MPI_REQUEST_NULL, "a call that failed set its request");
    CHECK_OK(MPI_Iallreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req));
    for (int flag = 0; !flag;) CHECK_OK(MPI_Request_get_status(req, &flag, MPI_STATUS_IGNORE));
    CHECK(sum == check_size, "the sum is %d", sum);
    CHECK_OK(MPI_Request_free(&req)); /* it is over (3.7.6) */
    CHECK(req == MPI_REQUEST_NULL, "a freed request is left");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank + 1;
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    barrier_waits();
    for (int i = 0; i < BATCHES; i++) batch();
    barrier_waits();
    others_progress();
    wrong_arguments();
    MPI_Comm_free(&comms[1]);
    return check_done();
}
