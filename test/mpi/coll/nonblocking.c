/*
 * nonblocking.c - nonblocking collectives (MPI-5.0 section 6.12): random operations of every kind are started, several
 * pending on two communicators with blocking ones in between, and completed in an order of each rank's own. Each must give
 * what the blocking form gives. Types and operators are freed as soon as the operation is started.
 */
#include "jobs.h"

enum { BATCHES = 40, PENDING = 12 };

/* ---- completion, in an order of this rank's own ---- */

static void complete_by_tests(MPI_Request *req)
{
    for (int left = PENDING; left;) {
        int i = (int)(check_random(&own) % PENDING), flag = 0;
        if (req[i] == MPI_REQUEST_NULL) continue;
        MPI_Status status;
        CHECK_OK(MPI_Test(&req[i], &flag, &status));
        if (flag) left--;
    }
}

static void complete_some(MPI_Request *req)
{
    int index[PENDING], n, done = 0;
    while (done < PENDING) {
        CHECK_OK(MPI_Waitsome(PENDING, req, &n, index, MPI_STATUSES_IGNORE));
        if (n == MPI_UNDEFINED) break;
        done += n;
    }
}

static void complete(MPI_Request *req)
{
    int flag = 0, index;
    switch (check_random(&own) % 5) {
    case 0: CHECK_OK(MPI_Waitall(PENDING, req, MPI_STATUSES_IGNORE)); break;
    case 1: complete_by_tests(req); break;
    case 2: complete_some(req); break;
    case 3:
        for (int i = 0; i < PENDING; i++) CHECK_OK(MPI_Waitany(PENDING, req, &index, MPI_STATUS_IGNORE));
        break;
    default:
        while (!flag) CHECK_OK(MPI_Testall(PENDING, req, &flag, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < PENDING; i++) CHECK(req[i] == MPI_REQUEST_NULL, "request %d is left", i);
}

static void batch(void)
{
    struct job *jobs = calloc(PENDING, sizeof *jobs);
    MPI_Request req[PENDING];
    for (int i = 0; i < PENDING; i++) {
        struct job *j = &jobs[i];
        make_job(j);
        MPI_Op_create(compose, 0, &j->op);
        int sooner = draw(2), how = 1 + draw(2);
        if (sooner) do_job(j, BLOCKING, j->want, NULL); /* between those pending, or after all of them */
        do_job(j, (enum how)how, j->recv, &req[i]);
        if (!sooner) do_job(j, BLOCKING, j->want, NULL);
        MPI_Type_free(&j->type);
        MPI_Op_free(&j->op);
    }
    complete(req);
    for (int i = 0; i < PENDING; i++) {
        check_job(&jobs[i]);
        free_job(&jobs[i]);
    }
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

/* Completed by progress in other calls; the communicator may be freed while it is pending. */
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
