/*
 * clash.c - ranks that do not call the same collectives, with MPI_ERRORS_RETURN: nobody waits for ever, no contribution
 * is taken for another one, and every rank hears of it, in words that name both calls: at once or at its next
 * collective on the communicator. TEST_FINALIZE=1: rank 0 leaves out a barrier and goes to MPI_Finalize.
 */
#include "../check.h"

enum { LARGE = 1 << 20 };
static int *out, *in;
static const char words[] = "do not call the same collectives in the same order";

/* In each of these one rank does something else. */
static int another_root(MPI_Comm comm) { return MPI_Bcast(in, 4, MPI_INT, check_rank % 2, comm); }
static int another_root_large(MPI_Comm comm) { return MPI_Bcast(in, LARGE, MPI_INT, check_rank % 2, comm); }
static int another_operator(MPI_Comm comm)
{
    return MPI_Allreduce(out, in, 4, MPI_INT, check_rank ? MPI_MAX : MPI_SUM, comm);
}

static int bcast_and_allreduce(MPI_Comm comm)
{
    return check_rank ? MPI_Bcast(in, 1, MPI_INT, 0, comm) : MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm);
}

static int barrier_and_allreduce(MPI_Comm comm)
{
    return check_rank ? MPI_Barrier(comm) : MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm);
}

static int scatter_and_gather(MPI_Comm comm)
{
    return check_rank ? MPI_Scatter(out, 10, MPI_INT, in, 10, MPI_INT, 0, comm)
                      : MPI_Gather(out, 10, MPI_INT, in, 10, MPI_INT, 0, comm);
}

static int barrier_left_out(MPI_Comm comm)
{
    if (check_rank) return MPI_Barrier(comm);
    return MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm);
}

static int later(MPI_Comm comm)
{
    MPI_Request req;
    int rc = check_rank ? MPI_Ibarrier(comm, &req) : MPI_Iallreduce(out, in, 100, MPI_INT, MPI_SUM, comm, &req);
    return rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static int later_large(MPI_Comm comm)
{
    MPI_Request req;
    int rc = MPI_Ibcast(in, LARGE, MPI_INT, check_rank % 2, comm, &req);
    return rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* A few bytes and many take different ways. */
static int allreduce_of_few_and_many(MPI_Comm comm)
{
    return MPI_Allreduce(out, in, check_rank ? 1 : LARGE, MPI_INT, MPI_SUM, comm);
}
static int allreduce_of_many_and_more(MPI_Comm comm)
{
    return MPI_Allreduce(out, in, check_rank ? LARGE / 4 : LARGE, MPI_INT, MPI_SUM, comm);
}
static int bcast_of_few_and_many(MPI_Comm comm) { return MPI_Bcast(in, check_rank ? 8 : LARGE, MPI_INT, 0, comm); }
static int alltoall_of_few_and_many(MPI_Comm comm)
{
    int n = (check_rank ? 256 : LARGE) / check_size;
    return MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, comm);
}

static const struct {
    int (*call)(MPI_Comm);
    const char *name, *one, *other; /* two calls that the words name */
    int by_length; /* who gets too much may be told so at once; that is no reason for the others to fail */
} cases[] = {
    {another_root, "another root", "root 0", "root 1", 0},
    {another_root_large, "another root, large", "root 0", "root 1", 0},
    {another_operator, "another operator", "MPI_SUM", "MPI_MAX", 0},
    {bcast_and_allreduce, "bcast and allreduce", "a bcast", "an allreduce", 0},
    {barrier_and_allreduce, "barrier and allreduce", "a barrier", "an allreduce", 0},
    {scatter_and_gather, "scatter and gather", "a scatter", "a gather", 0},
    {barrier_left_out, "a barrier left out", "a barrier", "an allreduce", 0},
    {later, "ibarrier and iallreduce", "a barrier", "an allreduce", 0},
    {later_large, "ibcast, large, another root", "root 0", "root 1", 0},
    {allreduce_of_few_and_many, "allreduce of few and many", "of 4 bytes", "of 4194304 bytes", 1},
    {allreduce_of_many_and_more, "allreduce of many and more", "of 1048576 bytes", "of 4194304 bytes", 1},
    {bcast_of_few_and_many, "bcast of few and many", "of 32 bytes", "of 4194304 bytes", 1},
    {alltoall_of_few_and_many, "alltoall of few and many", "alltoall", "bytes", 1},
};

/* The words of a code, "" for 0. */
static const char *text_of(int rc)
{
    static char text[MPI_MAX_ERROR_STRING];
    int n;
    text[0] = 0;
    if (rc) MPI_Error_string(rc, text, &n);
    return text;
}

static int names(int i, int rc)
{
    const char *text = text_of(rc);
    return strstr(text, words) && strstr(text, cases[i].one) && strstr(text, cases[i].other);
}

static void clash(int i)
{
    MPI_Comm comm;
    int class = MPI_SUCCESS;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int rc = cases[i].call(comm);
    if (rc) MPI_Error_class(rc, &class);
    if (cases[i].by_length) {
        CHECK(!rc || class == MPI_ERR_TRUNCATE || names(i, rc), "%s: class %d, '%s'", cases[i].name, class,
              text_of(rc));
    } else {
        CHECK(!rc || names(i, rc), "%s: '%s'", cases[i].name, text_of(rc));
        rc = MPI_Barrier(comm);
        CHECK(rc && names(i, rc), "%s, then a barrier: '%s'", cases[i].name, text_of(rc));
        CHECK(MPI_Barrier(comm) == rc, "%s: the second barrier differs", cases[i].name);
    }
    MPI_Comm_free(&comm);
}

static int finalize(void)
{
    if (check_rank) CHECK_WORDS(MPI_Barrier(MPI_COMM_WORLD), MPI_ERR_OTHER, "has called MPI_Finalize");
    int rc = MPI_Finalize();
    CHECK(rc, "MPI_Finalize does not say that the others are elsewhere");
    if (!check_rank) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    return check_failures != 0;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    out = calloc(LARGE, sizeof *out);
    in = calloc(LARGE, sizeof *in);
    if (getenv("TEST_FINALIZE")) return finalize();
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) clash(i);
    free(out);
    free(in);
    return check_done();
}
