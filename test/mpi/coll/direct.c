/*
 * direct.c - large blocking collectives inside a node copy from memory to memory, or go in pieces. Random ones of every
 * kind, with gaps in the types, in place, with operators that do not commute, nonblocking small ones pending: each
 * must leave the same bytes in the whole receive buffer as its nonblocking form, which goes by messages.
 */
#include "../check.h"

enum { ROUNDS = 60, MOST = 15000, FIRST = 1000, GAP_WORDS = 3, MOST_RANKS = 64 };
enum {
    BCAST,
    GATHER,
    SCATTER,
    ALLGATHER,
    ALLTOALL,
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    BLOCKS,
    VARYING,
    ALLGATHERV,
    KINDS
};

static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */

struct job {
    int kind, root, count, in_place;
    int counts[MOST_RANKS], displs[MOST_RANKS]; /* of ALLGATHERV and VARYING, at most `count` */
    MPI_Datatype stype, rtype;                  /* elements of two words */
    MPI_Op op;
    unsigned *send, *recv, *want;
    size_t words;
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* Composition of x -> a x + b: associative, not commutative. An element is a pair. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    (void)type;
    for (int i = 0; i < *len; i++, f += 2, g += 2) {
        unsigned a = g[0] * f[0], b = g[0] * f[1] + g[1];
        g[0] = a, g[1] = b;
    }
}

/* Two words, and with a gap before, between and behind them. */
static MPI_Datatype make_type(int gap)
{
    MPI_Datatype two, t;
    if (gap)
        MPI_Type_vector(2, 1, 2, MPI_UNSIGNED, &two);
    else
        MPI_Type_contiguous(2, MPI_UNSIGNED, &two);
    MPI_Type_create_resized(two, 0, gap ? 4 * GAP_WORDS : 8, &t);
    MPI_Type_commit(&t);
    MPI_Type_free(&two);
    return t;
}

static int run(const struct job *j, unsigned *recv, MPI_Request *q)
{
    void *s = j->in_place ? MPI_IN_PLACE : j->send, *r = recv, *put = j->in_place ? MPI_IN_PLACE : recv;
    int n = j->count, root = j->root;
    MPI_Datatype st = j->stype, rt = j->rtype;
    MPI_Comm c = MPI_COMM_WORLD;
    switch (j->kind) {
    case BCAST:
        return q ? MPI_Ibcast(r, n, rt, root, c, q) : MPI_Bcast(r, n, rt, root, c);
    case GATHER:
        return q ? MPI_Igather(s, n, st, r, n, rt, root, c, q) : MPI_Gather(s, n, st, r, n, rt, root, c);
    case SCATTER:
        return q ? MPI_Iscatter(j->send, n, st, put, n, rt, root, c, q)
                 : MPI_Scatter(j->send, n, st, put, n, rt, root, c);
    case ALLGATHER:
        return q ? MPI_Iallgather(s, n, st, r, n, rt, c, q) : MPI_Allgather(s, n, st, r, n, rt, c);
    case ALLTOALL:
        return q ? MPI_Ialltoall(s, n, st, r, n, rt, c, q) : MPI_Alltoall(s, n, st, r, n, rt, c);
    case REDUCE:
        return q ? MPI_Ireduce(s, r, n, rt, j->op, root, c, q) : MPI_Reduce(s, r, n, rt, j->op, root, c);
    case ALLREDUCE:
        return q ? MPI_Iallreduce(s, r, n, rt, j->op, c, q) : MPI_Allreduce(s, r, n, rt, j->op, c);
    case SCAN:
        return q ? MPI_Iscan(s, r, n, rt, j->op, c, q) : MPI_Scan(s, r, n, rt, j->op, c);
    case EXSCAN:
        return q ? MPI_Iexscan(s, r, n, rt, j->op, c, q) : MPI_Exscan(s, r, n, rt, j->op, c);
    case VARYING:
        return q ? MPI_Ireduce_scatter(s, r, j->counts, rt, j->op, c, q)
                 : MPI_Reduce_scatter(s, r, j->counts, rt, j->op, c);
    case ALLGATHERV:
        n = j->counts[check_rank];
        return q ? MPI_Iallgatherv(s, n, st, r, j->counts, j->displs, rt, c, q)
                 : MPI_Allgatherv(s, n, st, r, j->counts, j->displs, rt, c);
    default:
        return q ? MPI_Ireduce_scatter_block(s, r, n, rt, j->op, c, q)
                 : MPI_Reduce_scatter_block(s, r, n, rt, j->op, c);
    }
}

/* Some blocks are empty; between blocks there may be room. */
static void draw_blocks(struct job *j)
{
    for (int r = 0; r < check_size; r++) {
        j->counts[r] = draw(4) ? draw(j->count + 1) : 0;
        j->displs[r] = r * j->count + draw(j->count + 1 - j->counts[r]);
    }
}

static void make_job(struct job *j, MPI_Op op)
{
    *j = (struct job){.kind = draw(KINDS), .root = draw(check_size), .count = FIRST + draw(MOST)};
    draw_blocks(j);
    int reduces = j->kind >= REDUCE && j->kind != ALLGATHERV, place = draw(3) == 0;
    int rooted = j->kind == GATHER || j->kind == SCATTER || j->kind == REDUCE;
    j->in_place = place && j->kind != BCAST && (!rooted || check_rank == j->root);
    /* gaps: each rank as it likes */
    j->stype = make_type(!reduces && check_random(&own) % 2);
    j->rtype = make_type(!reduces && check_random(&own) % 2);
    j->op = op;
    j->words = (size_t)j->count * GAP_WORDS * (size_t)check_size;
    j->send = malloc(j->words * 4);
    j->recv = malloc(j->words * 4);
    j->want = malloc(j->words * 4);
    for (size_t i = 0; i < j->words; i++) {
        j->send[i] = (unsigned)check_random(&own);
        j->recv[i] = j->want[i] = (unsigned)check_random(&own);
    }
}

/* Small ones are pending on the same communicator meanwhile, now and then. */
static void one(MPI_Op op)
{
    struct job j;
    MPI_Request q, small[3];
    int ones[3] = {0, 0, 0}, in = 1, n = draw(4);
    make_job(&j, op);
    for (int i = 0; i < n; i++) MPI_Iallreduce(&in, &ones[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &small[i]);
    CHECK_OK(run(&j, j.recv, NULL));
    CHECK_OK(run(&j, j.want, &q));
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Waitall(n, small, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) CHECK(ones[i] == check_size, "the small one gave %d", ones[i]);
    size_t bad = 0;
    for (size_t i = 0; i < j.words; i++) bad += j.recv[i] != j.want[i];
    if (j.in_place && (j.kind == BLOCKS || j.kind == VARYING)) { /* MPI leaves open what is behind the result */
        int count = j.kind == BLOCKS ? j.count : j.counts[check_rank];
        bad = 0;
        for (size_t i = 0; i < (size_t)count * 2; i++) bad += j.recv[i] != j.want[i];
    }
    CHECK(!bad, "kind %d, %d elements, root %d%s: %zu words differ", j.kind, j.count, j.root,
          j.in_place ? ", in place" : "", bad);
    MPI_Type_free(&j.stype);
    MPI_Type_free(&j.rtype);
    free(j.send);
    free(j.recv);
    free(j.want);
}

/* More communicators than there is memory of their own for, twice: those without go another way. */
static void many(void)
{
    enum { COMMS = 40, LONG = 3000 };
    static MPI_Comm c[COMMS];
    static double in[LONG], sum[LONG];
    for (int round = 0; round < 2; round++) {
        int bad = 0;
        for (int i = 0; i < COMMS; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &c[i]);
            for (int k = 0; k < LONG; k++) in[k] = i + k + check_rank, sum[k] = -1;
            CHECK_OK(MPI_Allreduce(in, sum, LONG, MPI_DOUBLE, MPI_SUM, c[i]));
            for (int k = 0; k < LONG; k++) bad += sum[k] != (i + k) * check_size + check_size * (check_size - 1) / 2;
        }
        for (int i = 0; i < COMMS; i++) MPI_Comm_free(&c[i]);
        CHECK(!bad, "round %d: %d sums are wrong", round, bad);
    }
}

/* The last rank and the root do not agree on the length of a block: who has less room hears of it, and nothing is written
 * behind its buffer. */
static void disagree(void)
{
    enum { FEW = 100000, MANY = 150000 };
    int last = check_size - 1, rc, class = 0;
    char *in = calloc(1, MANY), *out = malloc((size_t)check_size * FEW + MANY);
    memset(out, 7, (size_t)check_size * FEW + MANY);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Gather(in, check_rank == last ? MANY : FEW, MPI_BYTE, out, FEW, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rc) MPI_Error_class(rc, &class);
    CHECK(check_rank != 0 || class == MPI_ERR_TRUNCATE, "the root hears of class %d", class);
    for (int i = 0; i < MANY && check_rank == 0; i++)
        if (out[(size_t)check_size * FEW + (size_t)i] != 7) CHECK(0, "written behind the buffer, at %d", i);
    class = 0; /* the root sends more than there is room for */
    rc = MPI_Bcast(out, check_rank == last ? FEW : MANY, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rc) MPI_Error_class(rc, &class);
    CHECK(check_rank != last || class == MPI_ERR_TRUNCATE, "the last rank hears of class %d", class);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    MPI_Op op;
    check_start(&argc, &argv);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank;
    MPI_Op_create(compose, 0, &op);
    for (int i = 0; i < ROUNDS; i++) one(op);
    MPI_Op_free(&op);
    many();
    if (getenv("TEST_DISAGREE")) disagree();
    return check_done();
}
