/*
 * node_v.c - collectives with blocks of varying size inside a node, whose lengths only sender and receiver know: short
 * ones go through slots, long ones by messages of the same operation. Blocking and nonblocking ones mixed at random
 * with others of known lengths, every root, in place, empty blocks, datatypes with gaps; arrays are spoilt when the
 * call has returned. What must come out is known by formula, and holes stay untouched. Then sides that do not agree
 * about a length: an error where too much comes, and nobody waits for ever.
 */
#include "../check.h"
#include <stdbool.h>
#include <unistd.h>

enum { BATCHES = 40, IN_FLIGHT = 14, COMMS = 2, MAXRANKS = 16, LONG = 3000, UNTOUCHED = 0xee };
enum { GATHERV, SCATTERV, ALLTOALLV, ALLTOALLW, ALLGATHERV, SUMS, BARRIER, ALLREDUCE, KINDS };

/* One side: blocks of 8-byte elements, `gap` words from one to the next, with a hole behind each block. */
struct side {
    uint64_t *buf;
    size_t words;
    int counts[MAXRANKS], displs[MAXRANKS], gap[MAXRANKS];
    MPI_Datatype types[MAXRANKS];
    size_t at[MAXRANKS]; /* of each block, in words */
};

struct job {
    int kind, root, variant;
    unsigned tag;
    bool in_place, mine_in_place;
    struct side send, recv;
    uint64_t one, sum;
    MPI_Comm comm;
};

static uint64_t common, own;
static MPI_Datatype wide; /* an element, and a word left out */
static MPI_Comm comms[COMMS];

static int draw(uint64_t *state, int n) { return (int)(check_random(state) % (unsigned)n); }

static uint64_t value(const struct job *j, int from, int to, int i)
{
    return (uint64_t)j->tag * 1000003u + (uint64_t)from * 7919u + (uint64_t)to * 104729u + (uint64_t)i;
}

/* Elements from one rank to another. */
static int length(const struct job *j, int from, int to)
{
    if (j->kind == ALLGATHERV || j->kind == GATHERV) to = 0;
    if (j->kind == SUMS || j->kind == SCATTERV) from = 0;
    bool both = j->in_place && (j->kind == ALLTOALLV || j->kind == ALLTOALLW);
    uint64_t a = (uint64_t)(both && from > to ? to : from), b = (uint64_t)(both && from > to ? from : to);
    uint64_t state = (uint64_t)j->tag * 31 + a * 977 + b * 131071 + 1;
    check_random(&state);
    switch (draw(&state, j->variant ? 6 : 4)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return 1 + draw(&state, 6);
    case 3:
        return draw(&state, 60);
    case 4:
        return draw(&state, 1100); /* about the size of a slot */
    default:
        return draw(&state, LONG);
    }
}

static void lay_out(const struct job *j, struct side *s, const int *lengths, int n, bool by_byte, int gaps)
{
    size_t at = 0;
    for (int r = 0; r < n; r++) {
        s->gap[r] = by_byte ? 1 + (r + gaps) % 2 : 1 + gaps % 2;
        s->types[r] = s->gap[r] == 2 ? wide : MPI_UINT64_T;
        s->counts[r] = lengths[r];
        s->displs[r] = by_byte ? (int)(at * 8) : (int)(at / (size_t)s->gap[r]);
        s->at[r] = at;
        at += ((size_t)lengths[r] + (j->kind != SUMS)) * (size_t)s->gap[r];
    }
    s->words = at + 2;
    s->buf = malloc(s->words * 8);
    memset(s->buf, UNTOUCHED, s->words * 8);
}

static void fill(const struct job *j, struct side *s, int block, int from, int to)
{
    for (int i = 0; i < s->counts[block]; i++)
        s->buf[s->at[block] + (size_t)i * (size_t)s->gap[block]] = value(j, from, to, i);
}

static int *lengths_of(const struct job *j, bool in, int *n)
{
    static int len[MAXRANKS];
    int me = check_rank,
        one = in ? j->kind == SCATTERV || j->kind == SUMS : j->kind == GATHERV || j->kind == ALLGATHERV;
    *n = one ? 1 : check_size;
    for (int r = 0; r < *n; r++) len[r] = in ? length(j, one ? j->root : r, me) : length(j, me, one ? j->root : r);
    return len;
}

static void make_job(struct job *j, unsigned tag)
{
    int me = check_rank, n;
    *j = (struct job){.kind = draw(&common, KINDS), .root = draw(&common, check_size), .tag = tag};
    j->variant = !draw(&common, 3);
    j->in_place = !draw(&common, 4) && j->kind != SUMS;
    j->comm = comms[draw(&common, COMMS)];
    bool rooted = j->kind == GATHERV || j->kind == SCATTERV;
    j->mine_in_place = j->in_place && (!rooted || me == j->root);
    int gaps = j->kind == SUMS ? 0 : draw(&common, 4);
    int *len = lengths_of(j, false, &n);
    lay_out(j, &j->send, len, n, j->kind == ALLTOALLW, gaps);
    for (int r = 0; r < n; r++) fill(j, &j->send, r, me, n == 1 ? 0 : r);
    len = lengths_of(j, true, &n);
    lay_out(j, &j->recv, len, n, j->kind == ALLTOALLW, gaps / 2);
    bool whole = j->kind == ALLTOALLV || j->kind == ALLTOALLW;
    for (int r = 0; r < n && j->mine_in_place && j->kind != SCATTERV; r++)
        if (whole || r == me) fill(j, &j->recv, r, me, whole ? r : 0);
    j->one = value(j, me, 0, 0);
}

static int call(struct job *j, MPI_Request *q)
{
    struct side *s = &j->send, *r = &j->recv;
    const void *from = j->mine_in_place ? MPI_IN_PLACE : s->buf;
    void *to = j->mine_in_place ? MPI_IN_PLACE : r->buf;
    MPI_Comm c = j->comm;
    switch (j->kind) {
    case GATHERV:
        if (!q)
            return MPI_Gatherv(from, s->counts[0], s->types[0], r->buf, r->counts, r->displs, r->types[0], j->root, c);
        return MPI_Igatherv(from, s->counts[0], s->types[0], r->buf, r->counts, r->displs, r->types[0], j->root, c, q);
    case SCATTERV:
        if (!q)
            return MPI_Scatterv(s->buf, s->counts, s->displs, s->types[0], to, r->counts[0], r->types[0], j->root, c);
        return MPI_Iscatterv(s->buf, s->counts, s->displs, s->types[0], to, r->counts[0], r->types[0], j->root, c, q);
    case ALLTOALLV:
        if (!q)
            return MPI_Alltoallv(from, s->counts, s->displs, s->types[0], r->buf, r->counts, r->displs, r->types[0], c);
        return MPI_Ialltoallv(from, s->counts, s->displs, s->types[0], r->buf, r->counts, r->displs, r->types[0], c, q);
    case ALLTOALLW:
        if (!q) return MPI_Alltoallw(from, s->counts, s->displs, s->types, r->buf, r->counts, r->displs, r->types, c);
        return MPI_Ialltoallw(from, s->counts, s->displs, s->types, r->buf, r->counts, r->displs, r->types, c, q);
    case ALLGATHERV:
        if (!q) return MPI_Allgatherv(from, s->counts[0], s->types[0], r->buf, r->counts, r->displs, r->types[0], c);
        return MPI_Iallgatherv(from, s->counts[0], s->types[0], r->buf, r->counts, r->displs, r->types[0], c, q);
    case SUMS:
        if (!q) return MPI_Reduce_scatter(s->buf, r->buf, s->counts, MPI_UINT64_T, MPI_SUM, c);
        return MPI_Ireduce_scatter(s->buf, r->buf, s->counts, MPI_UINT64_T, MPI_SUM, c, q);
    case BARRIER:
        return q ? MPI_Ibarrier(c, q) : MPI_Barrier(c);
    default:
        if (!q) return MPI_Allreduce(&j->one, &j->sum, 1, MPI_UINT64_T, MPI_SUM, c);
        return MPI_Iallreduce(&j->one, &j->sum, 1, MPI_UINT64_T, MPI_SUM, c, q);
    }
}

/* The arrays of a call that has returned are the caller's again. */
static void spoil(struct job *j)
{
    struct side *sides[] = {&j->send, &j->recv};
    for (int k = 0; k < 2; k++)
        for (int r = 0; r < MAXRANKS; r++) {
            sides[k]->counts[r] = sides[k]->displs[r] = -1;
            sides[k]->types[r] = MPI_DATATYPE_NULL;
        }
}

static uint64_t sum(const struct job *j, int to, int i)
{
    uint64_t s = 0;
    for (int r = 0; r < check_size; r++) s += value(j, r, to, i);
    return s;
}

static uint64_t expected(const struct job *j, int r, int i)
{
    if (j->kind == SUMS) return sum(j, check_rank, i);
    if (j->kind == SCATTERV) return value(j, j->root, check_rank, i);
    return value(j, r, j->kind == ALLTOALLV || j->kind == ALLTOALLW ? check_rank : 0, i);
}

static long wrong(const struct job *j)
{
    int n;
    const int *len = lengths_of(j, true, &n);
    const struct side *s = &j->recv;
    bool idle = (j->kind == GATHERV && check_rank != j->root) || (j->kind == SCATTERV && j->mine_in_place);
    long bad = 0, data = 0;
    if (j->kind == ALLREDUCE) return j->sum != sum(j, 0, 0);
    if (j->kind == BARRIER) return 0;
    for (int r = 0; r < n && !idle; r++) {
        for (int i = 0; i < len[r]; i++) bad += s->buf[s->at[r] + (size_t)i * (size_t)s->gap[r]] != expected(j, r, i);
        data += len[r];
    }
    uint64_t untouched;
    memset(&untouched, UNTOUCHED, sizeof untouched);
    for (size_t i = 0; i < s->words; i++) data -= s->buf[i] != untouched;
    return bad + labs(data);
}

static void end_job(struct job *j, bool blocking)
{
    long bad = wrong(j);
    CHECK(!bad, "%s operation %u of kind %d%s, root %d: %ld elements are wrong", blocking ? "blocking" : "nonblocking",
          j->tag, j->kind, j->in_place ? " in place" : "", j->root, bad);
    free(j->send.buf);
    free(j->recv.buf);
    j->send.buf = NULL;
}

static void dawdle(void)
{
    if (!draw(&own, 40)) usleep((useconds_t)draw(&own, 2000));
}

static void one(struct job *j, MPI_Request *q, unsigned tag)
{
    bool blocking = draw(&common, 3) == 0;
    make_job(j, tag);
    *q = MPI_REQUEST_NULL;
    dawdle();
    CHECK_OK(call(j, blocking ? NULL : q));
    if (blocking)
        end_job(j, true);
    else
        spoil(j);
}

static void complete(struct job *jobs, MPI_Request *q, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) left += jobs[i].send.buf != NULL;
    while (left) {
        int i = draw(&own, n), done = 1;
        if (!jobs[i].send.buf) continue;
        dawdle();
        if (draw(&own, 2))
            MPI_Wait(&q[i], MPI_STATUS_IGNORE);
        else
            MPI_Test(&q[i], &done, MPI_STATUS_IGNORE);
        if (!done) continue;
        end_job(&jobs[i], false);
        left--;
    }
}

static void mixed(void)
{
    static struct job jobs[IN_FLIGHT];
    MPI_Request q[IN_FLIGHT];
    for (unsigned b = 0; b < BATCHES; b++) {
        int n = 1 + draw(&common, IN_FLIGHT);
        for (int i = 0; i < n; i++) one(&jobs[i], &q[i], b * IN_FLIGHT + (unsigned)i);
        complete(jobs, q, n);
    }
}

/* Rank 1 sends rank 0 `sent` bytes, of which `room` are expected. */
static void disagree(int sent, int room, bool blocking)
{
    static char out[40000], in[MAXRANKS][40000];
    int counts[MAXRANKS], displs[MAXRANKS], rc;
    MPI_Comm c = comms[0];
    MPI_Request q;
    for (int r = 0; r < check_size; r++) {
        counts[r] = r == 1 ? room : 8;
        displs[r] = r * (int)sizeof in[0];
    }
    int n = check_rank == 1 ? sent : 8;
    if (blocking) {
        rc = MPI_Gatherv(out, n, MPI_BYTE, in, counts, displs, MPI_BYTE, 0, c);
    } else {
        CHECK_OK(MPI_Igatherv(out, n, MPI_BYTE, in, counts, displs, MPI_BYTE, 0, c, &q));
        rc = MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    if (check_rank)
        CHECK_OK(rc);
    else if (sent > room && room)
        CHECK_CLASS(rc, MPI_ERR_TRUNCATE);
    else
        CHECK(rc == MPI_SUCCESS || rc == MPI_ERR_TRUNCATE, "%d bytes where %d are expected: %d", sent, room, rc);
    CHECK_OK(MPI_Barrier(c));
}

static void disagreements(void)
{
    static const int sizes[][2] = {{24, 8},    {700, 40},      {8, 0},       {30000, 100},
                                   {30000, 0}, {30000, 20000}, {100, 30000}, {8, 16}};
    MPI_Comm_set_errhandler(comms[0], MPI_ERRORS_RETURN);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes && check_size > 1; k++) {
        disagree(sizes[k][0], sizes[k][1], true);
        disagree(sizes[k][0], sizes[k][1], false);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size > MAXRANKS) return check_skip("made for at most 16 ranks");
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank;
    MPI_Type_create_resized(MPI_UINT64_T, 0, 16, &wide);
    MPI_Type_commit(&wide);
    for (int i = 0; i < COMMS; i++) CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    mixed();
    disagreements();
    for (int i = 0; i < COMMS; i++) CHECK_OK(MPI_Comm_free(&comms[i]));
    MPI_Type_free(&wide);
    return check_done();
}
