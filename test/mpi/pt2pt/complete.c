/*
 * complete.c - the calls that complete requests (MPI-5.0 section 3.7): any, some, all of them, tests and waits, with
 * null and inactive requests in between, statuses given or ignored; MPI_Request_get_status leaves the request.
 */
#include "../check.h"

enum { N = 12 };

static int out[N], in[N];

/* Receives from oneself posted, nothing sent: slots 3 and 7 null, slot 5 an inactive persistent request. */
static void post(MPI_Request r[N])
{
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        out[i] = 100 + i;
        if (i == 3 || i == 7) r[i] = MPI_REQUEST_NULL;
        else if (i == 5) MPI_Recv_init(&in[i], 1, MPI_INT, check_rank, i, MPI_COMM_WORLD, &r[i]);
        else MPI_Irecv(&in[i], 1, MPI_INT, check_rank, i, MPI_COMM_WORLD, &r[i]);
    }
}

static int idle(int i) { return i == 3 || i == 5 || i == 7; }

static void send(int i) { MPI_Send(&out[i], 1, MPI_INT, check_rank, i, MPI_COMM_WORLD); }

static void check_one(int i, const MPI_Status *st)
{
    CHECK(in[i] == 100 + i, "receive %d got %d", i, in[i]);
    if (st) CHECK(st->MPI_SOURCE == check_rank && st->MPI_TAG == i, "status of %d: from %d, tag %d", i, st->MPI_SOURCE, st->MPI_TAG);
}

static void check_empty(const MPI_Status *st)
{
    int n = -1, cancelled = -1;
    MPI_Get_count(st, MPI_INT, &n);
    MPI_Test_cancelled(st, &cancelled);
    CHECK(st->MPI_SOURCE == MPI_ANY_SOURCE && st->MPI_TAG == MPI_ANY_TAG && n == 0 && !cancelled,
          "not the empty status: from %d, tag %d, count %d, cancelled %d", st->MPI_SOURCE, st->MPI_TAG, n, cancelled);
}

static void all_gone(MPI_Request r[N])
{
    for (int i = 0; i < N; i++) CHECK((r[i] == MPI_REQUEST_NULL) == (i != 5), "request %d", i);
    MPI_Request_free(&r[5]);
}

static void single(void)
{
    MPI_Request r[N];
    MPI_Status st;
    int flag = -1;
    post(r);
    CHECK_OK(MPI_Wait(&r[3], &st));
    check_empty(&st);
    CHECK_OK(MPI_Test(&r[5], &flag, &st));
    CHECK(flag == 1, "an inactive request is not complete");
    check_empty(&st);
    CHECK_OK(MPI_Test(&r[0], &flag, &st));
    CHECK(flag == 0 && r[0] != MPI_REQUEST_NULL, "a receive is complete without a message");
    send(0);
    CHECK_OK(MPI_Request_get_status(r[0], &flag, &st));
    CHECK(flag == 1 && r[0] != MPI_REQUEST_NULL, "get_status: flag %d", flag);
    check_one(0, &st);
    CHECK_OK(MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 1, "get_status for the second time");
    CHECK_OK(MPI_Test(&r[0], &flag, &st));
    CHECK(flag == 1 && r[0] == MPI_REQUEST_NULL, "the test after get_status");
    for (int i = 1; i < N; i++) {
        if (idle(i)) continue;
        send(i);
        CHECK_OK(MPI_Wait(&r[i], i % 2 ? MPI_STATUS_IGNORE : &st));
        check_one(i, i % 2 ? NULL : &st);
    }
    all_gone(r);
    CHECK_OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &st));
    CHECK(flag == 1, "get_status of the null request");
    check_empty(&st);
}

static void all_of_them(int test)
{
    MPI_Request r[N];
    MPI_Status st[N];
    int flag = -1;
    post(r);
    if (test) {
        for (int i = 0; i < N - 1; i++)
            if (!idle(i)) send(i);
        CHECK_OK(MPI_Testall(N, r, &flag, st));
        CHECK(flag == 0, "testall with one receive missing");
        for (int i = 0; i < N; i++) CHECK((r[i] == MPI_REQUEST_NULL) == (i == 3 || i == 7), "testall took request %d", i);
        send(N - 1);
        while (!flag) CHECK_OK(MPI_Testall(N, r, &flag, st));
    } else {
        for (int i = N; i-- > 0;)
            if (!idle(i)) send(i);
        CHECK_OK(MPI_Waitall(N, r, st));
    }
    for (int i = 0; i < N; i++) {
        if (idle(i)) check_empty(&st[i]);
        else check_one(i, &st[i]);
    }
    all_gone(r);
    CHECK_OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
}

static void any_of_them(int test)
{
    MPI_Request r[N];
    MPI_Status st;
    int index = -1, flag = -1;
    post(r);
    if (test) {
        CHECK_OK(MPI_Testany(N, r, &index, &flag, &st));
        CHECK(flag == 0, "testany found something");
    }
    for (int i = N; i-- > 0;) {
        if (idle(i)) continue;
        send(i);
        flag = 0;
        if (!test) CHECK_OK(MPI_Waitany(N, r, &index, &st));
        while (test && !flag) CHECK_OK(MPI_Testany(N, r, &index, &flag, &st));
        CHECK(index == i, "index %d instead of %d", index, i);
        check_one(i, &st);
    }
    flag = 0;
    if (test) CHECK_OK(MPI_Testany(N, r, &index, &flag, &st));
    else CHECK_OK(MPI_Waitany(N, r, &index, &st));
    CHECK(index == MPI_UNDEFINED && (!test || flag), "with nothing active: index %d, flag %d", index, flag);
    check_empty(&st);
    all_gone(r);
}

static void some_of_them(int test)
{
    MPI_Request r[N];
    MPI_Status st[N];
    int n = -1, indices[N], seen[N] = {0};
    post(r);
    if (test) {
        CHECK_OK(MPI_Testsome(N, r, &n, indices, st));
        CHECK(n == 0, "testsome found %d", n);
    }
    send(1), send(2), send(9);
    for (int left = 3; left > 0; left -= n) {
        if (test) CHECK_OK(MPI_Testsome(N, r, &n, indices, st));
        else CHECK_OK(MPI_Waitsome(N, r, &n, indices, st));
        for (int k = 0; k < n; k++) {
            check_one(indices[k], &st[k]);
            seen[indices[k]]++;
        }
        if (n == MPI_UNDEFINED) break;
    }
    CHECK(seen[1] == 1 && seen[2] == 1 && seen[9] == 1, "seen %d %d %d", seen[1], seen[2], seen[9]);
    for (int i = 0; i < N; i++)
        if (!idle(i) && !seen[i]) {
            send(i);
            CHECK_OK(MPI_Waitsome(N, r, &n, indices, MPI_STATUSES_IGNORE));
            CHECK(n == 1 && indices[0] == i, "%d complete, the first is %d", n, indices[0]);
        }
    if (test) CHECK_OK(MPI_Testsome(N, r, &n, indices, st));
    else CHECK_OK(MPI_Waitsome(N, r, &n, indices, st));
    CHECK(n == MPI_UNDEFINED, "with nothing active: %d", n);
    all_gone(r);
}

/* Looking leaves the requests as they are. */
static void looking(void)
{
    MPI_Request r[N];
    MPI_Status st[N];
    int flag = -1, index = -1, n = -1, indices[N];
    post(r);
    CHECK_OK(MPI_Request_get_status_all(N, r, &flag, st));
    CHECK(flag == 0, "all complete, but nothing was sent");
    CHECK_OK(MPI_Request_get_status_any(N, r, &index, &flag, st));
    CHECK(flag == 0 && index == MPI_UNDEFINED, "any: flag %d, index %d", flag, index);
    CHECK_OK(MPI_Request_get_status_some(N, r, &n, indices, st));
    CHECK(n == 0, "some: %d", n);
    send(4), send(9);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(MPI_Request_get_status_any(N, r, &index, &flag, st));
        CHECK(flag == 1 && index == 4, "any: flag %d, index %d", flag, index);
        check_one(4, &st[0]);
        CHECK_OK(MPI_Request_get_status_some(N, r, &n, indices, st));
        CHECK(n == 2 && indices[0] == 4 && indices[1] == 9, "some: %d, %d, %d", n, indices[0], indices[1]);
        check_one(9, &st[1]);
        CHECK_OK(MPI_Request_get_status_all(N, r, &flag, st));
        CHECK(flag == 0, "all complete, but two were sent");
    }
    for (int i = 0; i < N; i++)
        if (!idle(i) && i != 4 && i != 9) send(i);
    CHECK_OK(MPI_Request_get_status_all(N, r, &flag, st));
    CHECK(flag == 1, "all were sent, but not all are complete");
    for (int i = 0; i < N; i++) {
        if (idle(i)) check_empty(&st[i]);
        else check_one(i, &st[i]);
    }
    CHECK_OK(MPI_Waitall(N, r, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Request_get_status_any(N, r, &index, &flag, st));
    CHECK(flag == 1 && index == MPI_UNDEFINED, "nothing active: flag %d, index %d", flag, index);
    CHECK_OK(MPI_Request_get_status_some(N, r, &n, indices, MPI_STATUSES_IGNORE));
    CHECK(n == MPI_UNDEFINED, "nothing active: %d", n);
    all_gone(r);
}

/* Four ranks and more: each waits for messages of all others at once, in whatever order they come. */
static void crowd(void)
{
    MPI_Request r[64], s[64];
    int from[64], index;
    for (int i = 0; i < check_size; i++) MPI_Irecv(&from[i], 1, MPI_INT, i, 77, MPI_COMM_WORLD, &r[i]);
    for (int i = 0; i < check_size; i++) MPI_Isend(&check_rank, 1, MPI_INT, (check_rank + i) % check_size, 77, MPI_COMM_WORLD, &s[i]);
    for (int i = 0; i < check_size; i++) {
        CHECK_OK(MPI_Waitany(check_size, r, &index, MPI_STATUS_IGNORE));
        CHECK(index >= 0 && index < check_size && from[index] == index, "message %d of the crowd", index);
    }
    CHECK_OK(MPI_Waitall(check_size, s, MPI_STATUSES_IGNORE));
}

/* A freed send still arrives. */
static void freed(void)
{
    static char big[500000], got[500000];
    MPI_Request r;
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    check_fill(big, sizeof big, 9);
    MPI_Isend(big, sizeof big, MPI_BYTE, right, 78, MPI_COMM_WORLD, &r);
    CHECK_OK(MPI_Request_free(&r));
    CHECK(r == MPI_REQUEST_NULL, "a freed request is not null");
    CHECK_OK(MPI_Recv(got, sizeof got, MPI_BYTE, left, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(check_differ(got, sizeof got, 9) == 0, "the data of a freed send differ");
    MPI_Barrier(MPI_COMM_WORLD); /* nobody ends while its memory is read */
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    single();
    looking();
    for (int test = 0; test < 2; test++) {
        all_of_them(test);
        any_of_them(test);
        some_of_them(test);
    }
    for (int i = 0; i < 50; i++) crowd();
    freed();
    return check_done();
}
