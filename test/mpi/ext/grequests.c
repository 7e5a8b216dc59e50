/*
 * grequests.c - generalized requests (MPI-5.0 section 13.2): the callbacks run when the standard says and as often, in every
 * call that completes, looks, frees or cancels; mixed with messages; what callbacks return is what the call returns.
 */
#include "../check.h"

struct state {
    int queried, freed, cancelled; /* calls */
    int complete;                  /* as the cancel function was told */
    int bytes, query_error, free_error;
    int cancel_error, say_cancelled;
};

static int query(void *extra, MPI_Status *status)
{
    struct state *s = extra;
    s->queried++;
    MPI_Status_set_elements(status, MPI_BYTE, s->bytes);
    MPI_Status_set_cancelled(status, s->say_cancelled);
    status->MPI_SOURCE = 5;
    status->MPI_TAG = 6;
    return s->query_error;
}

static int forget(void *extra)
{
    struct state *s = extra;
    s->freed++;
    return s->free_error;
}

static int cancel(void *extra, int complete)
{
    struct state *s = extra;
    s->cancelled++;
    s->complete = complete;
    return s->cancel_error;
}

static MPI_Request begin(struct state *s)
{
    MPI_Request r = MPI_REQUEST_NULL;
    *s = (struct state){.bytes = 11, .complete = -1};
    CHECK_OK(MPI_Grequest_start(query, forget, cancel, s, &r));
    CHECK(r != MPI_REQUEST_NULL, "no request");
    return r;
}

static void check_status(const char *call, const MPI_Status *status)
{
    int n = -1, cancelled = -1;
    MPI_Get_count(status, MPI_BYTE, &n);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(n == 11 && status->MPI_SOURCE == 5 && status->MPI_TAG == 6 && !cancelled, "%s: %d bytes, source %d, tag %d, cancelled %d",
          call, n, status->MPI_SOURCE, status->MPI_TAG, cancelled);
}

static void check_over(const char *call, const struct state *s, MPI_Request r, int queries)
{
    CHECK(r == MPI_REQUEST_NULL, "%s left the request", call);
    CHECK(s->queried == queries && s->freed == 1, "%s: %d times queried, %d times freed", call, s->queried, s->freed);
}

/* Each call that completes one: query, then free, once. */
static void one_by_one(void)
{
    struct state s;
    MPI_Status status;
    int flag = -1, index = -1, n = -1;

    MPI_Request r = begin(&s);
    CHECK_OK(MPI_Test(&r, &flag, &status));
    CHECK(!flag && !s.queried && r != MPI_REQUEST_NULL, "MPI_Test: complete before MPI_Grequest_complete");
    CHECK_OK(MPI_Grequest_complete(r));
    CHECK(!s.queried && !s.freed, "MPI_Grequest_complete called back");
    CHECK_OK(MPI_Wait(&r, &status));
    check_status("MPI_Wait", &status);
    check_over("MPI_Wait", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE)); /* the query function gets a status all the same */
    check_over("MPI_Wait without a status", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Test(&r, &flag, &status));
    CHECK(flag, "MPI_Test: not complete");
    check_status("MPI_Test", &status);
    check_over("MPI_Test", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Waitany(1, &r, &index, &status));
    CHECK(index == 0, "MPI_Waitany: index %d", index);
    check_status("MPI_Waitany", &status);
    check_over("MPI_Waitany", &s, r, 1);

    r = begin(&s);
    CHECK_OK(MPI_Testany(1, &r, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED, "MPI_Testany: complete too early");
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Testany(1, &r, &index, &flag, &status));
    check_status("MPI_Testany", &status);
    check_over("MPI_Testany", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Waitsome(1, &r, &n, &index, &status));
    check_status("MPI_Waitsome", &status);
    check_over("MPI_Waitsome", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Testsome(1, &r, &n, &index, &status));
    check_status("MPI_Testsome", &status);
    check_over("MPI_Testsome", &s, r, 1);

    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Waitall(1, &r, &status));
    check_status("MPI_Waitall", &status);
    check_over("MPI_Waitall", &s, r, 1);

    r = begin(&s);
    CHECK_OK(MPI_Testall(1, &r, &flag, &status));
    CHECK(!flag && !s.queried, "MPI_Testall: complete too early");
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Testall(1, &r, &flag, &status));
    check_status("MPI_Testall", &status);
    check_over("MPI_Testall", &s, r, 1);
}

/* Looking queries and does not free. */
static void looking(void)
{
    struct state s;
    MPI_Status status;
    int flag = -1, index = -1, n = -1;
    MPI_Request r = begin(&s);
    CHECK_OK(MPI_Request_get_status(r, &flag, &status));
    CHECK(!flag && !s.queried, "MPI_Request_get_status: complete too early");
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Request_get_status(r, &flag, &status));
    CHECK(flag, "MPI_Request_get_status: not complete");
    check_status("MPI_Request_get_status", &status);
    CHECK_OK(MPI_Request_get_status_any(1, &r, &index, &flag, &status));
    check_status("MPI_Request_get_status_any", &status);
    CHECK_OK(MPI_Request_get_status_some(1, &r, &n, &index, &status));
    check_status("MPI_Request_get_status_some", &status);
    CHECK_OK(MPI_Request_get_status_all(1, &r, &flag, &status));
    check_status("MPI_Request_get_status_all", &status);
    CHECK(s.queried == 4 && !s.freed, "looked 4 times: %d queries, %d freed", s.queried, s.freed);
    CHECK_OK(MPI_Wait(&r, &status));
    check_over("MPI_Wait", &s, r, 5);
}

/* Letting go before and after the end: freed once, when both are over, never queried. */
static void letting_go(void)
{
    struct state s;
    MPI_Request r = begin(&s), copy = r;
    CHECK_OK(MPI_Request_free(&r));
    CHECK(!s.freed && r == MPI_REQUEST_NULL, "freed before it is complete");
    CHECK_OK(MPI_Grequest_complete(copy));
    check_over("MPI_Grequest_complete", &s, r, 0);
    r = begin(&s);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Request_free(&r));
    check_over("MPI_Request_free", &s, r, 0);
}

static void cancelling(void)
{
    struct state s;
    MPI_Status status;
    int flag = -1;
    MPI_Request r = begin(&s);
    s.say_cancelled = 1;
    CHECK_OK(MPI_Cancel(&r));
    CHECK(s.cancelled == 1 && s.complete == 0, "%d times cancelled, complete %d", s.cancelled, s.complete);
    MPI_Grequest_complete(r);
    CHECK_OK(MPI_Cancel(&r));
    CHECK(s.cancelled == 2 && s.complete == 1, "%d times cancelled, complete %d", s.cancelled, s.complete);
    s.cancel_error = MPI_ERR_OTHER;
    CHECK_CLASS(MPI_Cancel(&r), MPI_ERR_OTHER);
    CHECK_OK(MPI_Wait(&r, &status));
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 1, "the status does not say cancelled");
    check_over("MPI_Wait", &s, r, 1);
}

/* Among messages. */
static void mixed(void)
{
    enum { N = 40 };
    MPI_Request r[N];
    MPI_Status status[N];
    struct state s[N];
    int in[N], out[N], peer = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < N; i++) {
        out[i] = 100 * check_rank + i;
        in[i] = -1;
        if (i % 4 == 0) r[i] = begin(&s[i]);
        else if (i % 4 == 1) MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &r[i]);
        else if (i % 4 == 2) MPI_Isend(&out[i - 1], 1, MPI_INT, peer, i - 1, MPI_COMM_WORLD, &r[i]);
        else r[i] = MPI_REQUEST_NULL;
    }
    for (int i = N - 4; i >= 0; i -= 4) MPI_Grequest_complete(r[i]);
    CHECK_OK(MPI_Waitall(N, r, status));
    for (int i = 0; i < N; i++) {
        CHECK(r[i] == MPI_REQUEST_NULL, "request %d is left", i);
        if (i % 4 == 0) check_status("MPI_Waitall among messages", &status[i]);
        if (i % 4 == 1) CHECK(in[i] == 100 * left + i, "message %d has %d", i, in[i]);
    }
}

/* A callback's error is the call's; with several statuses it is in the status. When both fail, free_fn's counts. */
static void failures(void)
{
    struct state s;
    MPI_Status status[2];
    int flag;
    MPI_Request r = begin(&s);
    s.query_error = MPI_ERR_NAME;
    MPI_Grequest_complete(r);
    CHECK_CLASS(MPI_Request_get_status(r, &flag, status), MPI_ERR_NAME);
    CHECK_CLASS(MPI_Wait(&r, status), MPI_ERR_NAME);
    check_over("MPI_Wait", &s, r, 2);
    r = begin(&s);
    s.query_error = MPI_ERR_NAME;
    s.free_error = MPI_ERR_PORT;
    MPI_Grequest_complete(r);
    CHECK_CLASS(MPI_Wait(&r, status), MPI_ERR_PORT);
    MPI_Request two[2] = {begin(&s), MPI_REQUEST_NULL};
    s.free_error = MPI_ERR_PORT;
    MPI_Grequest_complete(two[0]);
    CHECK_CLASS(MPI_Waitall(2, two, status), MPI_ERR_IN_STATUS);
    CHECK(status[0].MPI_ERROR == MPI_ERR_PORT && status[1].MPI_ERROR == MPI_SUCCESS, "statuses say %d and %d", status[0].MPI_ERROR,
          status[1].MPI_ERROR);
    check_over("MPI_Waitall", &s, two[0], 1);
    MPI_Request copy = r = begin(&s);
    s.free_error = MPI_ERR_PORT;
    MPI_Request_free(&r);
    CHECK_CLASS(MPI_Grequest_complete(copy), MPI_ERR_PORT);
    r = begin(&s);
    s.free_error = MPI_ERR_PORT;
    MPI_Grequest_complete(r);
    CHECK_CLASS(MPI_Grequest_complete(r), MPI_ERR_REQUEST); /* twice */
    CHECK_CLASS(MPI_Request_free(&r), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Grequest_start(query, forget, cancel, &s, NULL), MPI_ERR_ARG);
    int x = 0;
    MPI_Irecv(&x, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &r);
    CHECK_CLASS(MPI_Grequest_complete(r), MPI_ERR_REQUEST); /* no generalized one */
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    r = begin(&s);
    CHECK_CLASS(MPI_Start(&r), MPI_ERR_REQUEST);
    MPI_Grequest_complete(r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    one_by_one();
    looking();
    letting_go();
    cancelling();
    mixed();
    failures();
    return check_done();
}
