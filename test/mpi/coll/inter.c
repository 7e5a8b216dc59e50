/*
 * inter.c - collectives on intercommunicators (MPI-5.0 6.2.3): the jobs of inter_jobs.h between groups of all kinds of
 * sizes, several pending on two communicators among blocking ones. Types and operators are freed as soon as the
 * operation is started. Then what a barrier promises, copies and merges in between, and what is refused.
 */
#include "inter_jobs.h"

enum { BATCHES = 16, IN_FLIGHT = 10 };

/* Words of the receive buffer that are not what they shall be; where nothing is received, nothing has changed. */
static void check_job(const struct job *j, const char *when)
{
    size_t wrong = 0;
    for (size_t i = 0; i < j->words; i++) wrong += j->recv[i] != j->want[i];
    CHECK(!wrong, "%s %s between %d and %d ranks: %zu wrong words (root %d of group %d, %d and %d elements, stride %d%s)",
          kind_name[j->kind], when, size[0], size[1], wrong, j->root, j->root_group, j->count[0], j->count[1], j->stride,
          j->composes ? ", ordered" : "");
}

/* A persistent one is run a second time. */
static void end_job(struct job *j, MPI_Request *req)
{
    CHECK_OK(MPI_Wait(req, MPI_STATUS_IGNORE));
    check_job(j, "done");
    if (*req != MPI_REQUEST_NULL) {
        memcpy(j->recv, j->fresh, j->words * 4);
        CHECK_OK(MPI_Start(req));
        CHECK_OK(MPI_Wait(req, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Request_free(req));
        check_job(j, "done again");
    }
    free(j->send);
    free(j->recv);
    free(j->want);
    free(j->fresh);
}

/* All are pending, and tested in an order of each rank's own, before they are waited for. */
static void batch(void)
{
    static struct job job[IN_FLIGHT];
    MPI_Request req[IN_FLIGHT];
    int done;
    for (int i = 0; i < IN_FLIGHT; i++) {
        req[i] = MPI_REQUEST_NULL;
        make_job(&job[i]);
        do_job(&job[i], (enum form)draw(FORMS), &req[i]);
        MPI_Type_free(&job[i].type);
        MPI_Op_free(&job[i].op);
    }
    for (int i = 0; i < IN_FLIGHT; i++) CHECK_OK(MPI_Test(&req[check_random(&own) % IN_FLIGHT], &done, MPI_STATUS_IGNORE));
    for (int i = 0; i < IN_FLIGHT; i++) end_job(&job[i], &req[i]);
}

/* ---- nobody leaves a barrier before the other group has come: by the clock that all processes of a machine share ---- */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void barrier_holds(int nonblocking)
{
    MPI_Comm c = comms[0];
    int late = draw(check_size);
    int64_t came, left, others[MAXRANKS];
    MPI_Request req;
    if (check_rank == late)
        for (int64_t end = now() + 2000000; now() < end;) continue;
    came = now();
    if (nonblocking) {
        CHECK_OK(MPI_Ibarrier(c, &req));
        CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else {
        CHECK_OK(MPI_Barrier(c));
    }
    left = now();
    CHECK_OK(MPI_Allgather(&came, 1, MPI_INT64_T, others, 1, MPI_INT64_T, c));
    for (int r = 0; r < size[!group]; r++) CHECK(others[r] <= left, "rank %d of the other group came after I had left", r);
}

/* ---- what is refused, by each rank alone ---- */

static void refused(void)
{
    MPI_Comm c = comms[0];
    int x[4 * MAXRANKS] = {0}, y[4 * MAXRANKS] = {0}, n[MAXRANKS] = {0}, other = !group;
    MPI_Request req;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Scan(x, y, 1, MPI_INT, MPI_SUM, c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Exscan(x, y, 1, MPI_INT, MPI_SUM, c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Iscan(x, y, 1, MPI_INT, MPI_SUM, c, &req), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Bcast(x, 1, MPI_INT, size[other], c), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Bcast(x, 1, MPI_INT, -1, c), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, MPI_ANY_SOURCE, c), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Bcast(x, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Reduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, 0, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Iallreduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, c, &req), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_scatter(MPI_IN_PLACE, y, n, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_scatter_block(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, 0, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Gatherv(MPI_IN_PLACE, 1, MPI_INT, y, n, n, MPI_INT, 0, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Scatter(x, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Scatterv(x, n, n, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allgatherv(MPI_IN_PLACE, 1, MPI_INT, y, n, n, MPI_INT, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, c), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Alltoallv(MPI_IN_PLACE, n, n, MPI_INT, y, n, n, MPI_INT, c), MPI_ERR_BUFFER);
    n[size[other] - 1] = -1; /* the last entry of an array for the other group */
    CHECK_CLASS(MPI_Allgatherv(x, 1, MPI_INT, y, n, n, MPI_INT, c), MPI_ERR_COUNT);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* ---- groups ---- */

/* The ranks below `first`, or (first 0) the even ones, against the others. */
static void make_groups(int first)
{
    MPI_Comm local;
    size[0] = size[1] = 0;
    for (int r = 0; r < check_size; r++) {
        int g = first ? r >= first : r % 2;
        if (r == check_rank) group = g, me = size[g];
        place[g][size[g]++] = r;
    }
    MPI_Comm_split(MPI_COMM_WORLD, group, 0, &local);
    CHECK_OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, place[!group][0], 1, &comms[0]));
    CHECK_OK(MPI_Comm_dup(comms[0], &comms[1]));
    MPI_Comm_free(&local);
}

/*
 * A persistent bcast and, when the numbers of collectives have gone around once, a started one: the leader of the group
 * that gets them begins them in one order, the others in the other. The messages within the group must not meet.
 */
static void numbers_come_around(void)
{
    MPI_Comm c = comms[0];
    MPI_Request kept, once;
    int x = group ? 1 : 0, y = group ? 2 : 0, root = group == 0 ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    CHECK_OK(MPI_Bcast_init(&x, 1, MPI_INT, root, c, MPI_INFO_NULL, &kept));
    for (int i = 1; i < 1 << 14; i++) MPI_Bcast(&x, 0, MPI_INT, root, c);
    if (me == 0) MPI_Start(&kept);
    CHECK_OK(MPI_Ibcast(&y, 1, MPI_INT, root, c, &once));
    if (me != 0) MPI_Start(&kept);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);
    MPI_Wait(&once, MPI_STATUS_IGNORE);
    MPI_Request_free(&kept);
    if (group == 0) CHECK(x == 1 && y == 2, "the persistent bcast brought %d, the other %d", x, y);
}

/* Copies and merges go their way between the collectives. */
static void copies(void)
{
    MPI_Comm copy, whole;
    MPI_Request req[2];
    int one = 1, sum = 0;
    CHECK_OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[0], &req[0]));
    CHECK_OK(MPI_Comm_idup(comms[0], &copy, &req[1]));
    CHECK_OK(MPI_Barrier(comms[0]));
    CHECK_OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
    CHECK(sum == size[!group], "the other group has %d ranks, not %d", size[!group], sum);
    CHECK_OK(MPI_Intercomm_merge(copy, group, &whole));
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, whole));
    CHECK(sum == check_size, "%d ranks are together, not %d", check_size, sum);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&whole);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size < 2 || check_size > MAXRANKS) return check_skip("needs 2 to 16 ranks");
    common = check_seed();
    own = common + (uint64_t)check_rank + 1;
    int first[] = {1, check_size - 1, check_size / 2, 0};
    for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) {
        make_groups(first[k]);
        for (int i = 0; i < BATCHES; i++) batch();
        for (int i = 0; i < 4; i++) barrier_holds(i % 2);
        copies();
        numbers_come_around();
        if (k == 0) refused();
        for (int i = 0; i < 2; i++) MPI_Comm_free(&comms[i]);
    }
    return check_done();
}
