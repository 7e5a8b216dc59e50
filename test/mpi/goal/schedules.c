/*
 * schedules.c - schedules of users: what they compute, their order, runs again and at once, next to MPI's own
 * messages, and as blocks and texts (GOAL-2, 3, 9, 10, 12, 16). Where their buffers are: memory.c.
 */
#include "../check.h"

#include <goal.h>

enum { N = 50 };

static int left(void) { return (check_rank + check_size - 1) % check_size; }
static int right(void) { return (check_rank + 1) % check_size; }

static void run_once(GOAL_Schedule s)
{
    GOAL_Request r = GOAL_REQUEST_INIT;
    CHECK_OK(GOAL_Run(s, &r));
    CHECK_OK(GOAL_Wait(&r));
    CHECK_OK(GOAL_Wait(&r)); /* of nothing: at once */
}

/* To the right goes mine, from the left comes another to the pad, and is added to mine when that has gone. */
static GOAL_Schedule ring(int64_t *mine, int place)
{
    GOAL_Schedule s;
    GOAL_Op send, recv, add;
    void *to = place == GOAL_USERSPACE ? (void *)mine : GOAL_AT(0);
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, N * 8, &s));
    CHECK_OK(GOAL_Send(s, to, place, N * 8, right(), 7, &send));
    CHECK_OK(GOAL_Recv(s, GOAL_AT(0), GOAL_SCRATCHPAD, N * 8, left(), 7, &recv));
    CHECK_OK(GOAL_Add(s, GOAL_INT64, N, GOAL_AT(0), GOAL_SCRATCHPAD, to, place, &add));
    CHECK_OK(GOAL_Requires(s, add, send));
    CHECK_OK(GOAL_Requires(s, add, recv));
    CHECK_OK(GOAL_Compile(s));
    return s;
}

static void fill(int64_t *v, int rank)
{
    for (int i = 0; i < N; i++) v[i] = rank * 1000 + i;
}

static void check_sum(const int64_t *v, const char *what)
{
    for (int i = 0; i < N; i++)
        CHECK(v[i] == check_rank * 1000 + left() * 1000 + 2 * i, "%s: element %d is %lld", what, i, (long long)v[i]);
}

/* GOAL-16: again and again, and again at once with a pad and a buffer for each. */
static void again(void)
{
    int64_t v[N];
    GOAL_Schedule s = ring(v, GOAL_USERSPACE);
    int times = check_size == 1 ? 100000 : check_size == 2 ? 20000 : 1000;
    memset(v, 0, sizeof v);
    for (int t = 0; t < times; t++) {
        GOAL_Request r;
        int flag = 0;
        v[0] = t + check_rank;
        GOAL_Run(s, &r);
        while (t % 2 && !flag) GOAL_Test(&r, &flag);
        GOAL_Wait(&r);
        if (v[0] != 2 * t + check_rank + left()) break;
    }
    CHECK(v[0] == 2 * (times - 1) + check_rank + left(), "a run among %d: %lld", times, (long long)v[0]);
    CHECK_OK(GOAL_Free(&s));
}

static void at_once(void)
{
    enum { RUNS = 8 };
    static int64_t v[RUNS][N];
    GOAL_Schedule s = ring(NULL, GOAL_BUFFER(3));
    GOAL_Request r[RUNS];
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < RUNS; k++) {
            for (int i = 0; i < N; i++) v[k][i] = check_rank * 100 + k;
            CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(3), v[k], sizeof v[k]));
            CHECK_OK(GOAL_Run(s, &r[k]));
        }
        for (int k = RUNS - 1; k >= 0; k--) CHECK_OK(GOAL_Wait(&r[k]));
        for (int k = 0; k < RUNS; k++)
            CHECK(v[k][N - 1] == (check_rank + left()) * 100 + 2 * k, "run %d: %lld", k, (long long)v[k][N - 1]);
    }
    CHECK_OK(GOAL_Free(&s));
}

/* GOAL-2, GOAL-9: a chain of stamps and copies; an operation that is to start after another has started. */
static void order(void)
{
    enum { LINKS = 40 };
    int64_t stamp[LINKS], word[2] = {1, 0}, late = 0;
    GOAL_Op op, before = -1, first;
    GOAL_Schedule s;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 8, &s));
    for (int i = LINKS - 1; i >= 0; i--) { /* made in the other order than they shall run */
        CHECK_OK(GOAL_Timestamp(s, &stamp[i], GOAL_USERSPACE, &op));
        if (before >= 0) CHECK_OK(GOAL_Requires(s, before, op));
        before = op;
    }
    first = before;
    CHECK_OK(GOAL_Copy(s, &word[0], GOAL_USERSPACE, &word[1], GOAL_USERSPACE, 8, &op));
    CHECK_OK(GOAL_Requires_start(s, first, op));
    CHECK_OK(GOAL_Recv(s, GOAL_AT(0), GOAL_SCRATCHPAD, 8, left(), 1, &before));
    CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, right(), 1, NULL));
    CHECK_OK(GOAL_Timestamp(s, &late, GOAL_USERSPACE, &op));
    CHECK_OK(GOAL_Requires(s, op, before));
    CHECK_OK(GOAL_Join(s, &before));
    CHECK_OK(GOAL_Requires(s, before, op));
    CHECK_OK(GOAL_Compile(s));
    run_once(s);
    CHECK(word[1] == 1, "copied word is %lld", (long long)word[1]);
    for (int i = 1; i < LINKS; i++) CHECK(stamp[i] >= stamp[i - 1] && stamp[0] > 0, "stamp %d of a chain", i);
    CHECK(stamp[LINKS - 1] - stamp[0] < INT64_C(60000000000) && late > 0, "stamps are nanoseconds");
    CHECK_OK(GOAL_Free(&s));
}

/* Messages of schedules meet neither each other nor MPI's, with wildcards and collectives about. */
static void apart(void)
{
    int64_t a[N], b[N], got = 0, sum = 0, one = 1;
    GOAL_Schedule s = ring(a, GOAL_USERSPACE), t = ring(b, GOAL_USERSPACE);
    GOAL_Request r, q;
    MPI_Request any, all;
    for (int round = 0; round < 50; round++) {
        fill(a, check_rank);
        fill(b, check_rank);
        CHECK_OK(MPI_Irecv(&got, 8, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any));
        CHECK_OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &all));
        if (check_rank % 2) { /* started in another order than by the others */
            CHECK_OK(GOAL_Run(s, &r));
            CHECK_OK(GOAL_Run(t, &q));
        } else {
            CHECK_OK(GOAL_Run(t, &q));
            CHECK_OK(GOAL_Run(s, &r));
        }
        CHECK_OK(GOAL_Wait(&r));
        CHECK_OK(GOAL_Wait(&q));
        check_sum(a, "first schedule");
        check_sum(b, "second schedule");
        int64_t word = check_rank + 77 * round;
        CHECK_OK(MPI_Send(&word, 8, MPI_BYTE, right(), 7, MPI_COMM_WORLD));
        CHECK_OK(MPI_Wait(&any, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Wait(&all, MPI_STATUS_IGNORE));
        CHECK(got == left() + 77 * round && sum == check_size, "MPI's own messages: %lld", (long long)got);
    }
    CHECK_OK(GOAL_Free(&s));
    CHECK_OK(GOAL_Free(&t));
}

/* As a block and as a text, and back: the same text, and the same result where the user space is another one. */
static void as_data(void)
{
    int64_t v[N], w[N];
    char block[2000], text[4000], again[4000];
    MPI_Count bytes, size, size_again;
    GOAL_Schedule s = ring(v, GOAL_USERSPACE), from_block, from_text;
    CHECK_OK(GOAL_Export(s, NULL, 0, &bytes));
    CHECK(bytes > 0 && bytes < (MPI_Count)sizeof block, "%lld bytes", (long long)bytes);
    CHECK_OK(GOAL_Export(s, block, sizeof block, &bytes));
    CHECK_OK(GOAL_Print(s, text, sizeof text, &size));
    CHECK(size == (MPI_Count)strlen(text) + 1 && strstr(text, "add      int64:"), "text:\n%s", text);
    CHECK_OK(GOAL_Free(&s));
    CHECK_OK(GOAL_Import(MPI_COMM_WORLD, block, bytes, &from_block));
    CHECK_OK(GOAL_Parse(MPI_COMM_WORLD, text, &from_text));
    CHECK_OK(GOAL_Print(from_text, again, sizeof again, &size_again));
    CHECK(size == size_again && !strcmp(text, again), "text again:\n%s", again);
    GOAL_Schedule made[2] = {from_block, from_text};
    for (int i = 0; i < 2; i++) {
        fill(w, check_rank);
        CHECK_OK(GOAL_Bind(made[i], GOAL_USERSPACE, w, sizeof w));
        run_once(made[i]);
        check_sum(w, i ? "from a text" : "from a block");
        CHECK_OK(GOAL_Free(&made[i]));
    }
}

/* Nobody there: a border of a grid. And messages to oneself. */
static void ends(void)
{
    int64_t from = -1, to = check_rank, self = -1;
    GOAL_Schedule s;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Send(s, &to, GOAL_USERSPACE, 8, check_rank + 1 < check_size ? check_rank + 1 : MPI_PROC_NULL, 1, NULL));
    CHECK_OK(GOAL_Recv(s, &from, GOAL_USERSPACE, 8, check_rank ? check_rank - 1 : MPI_PROC_NULL, 1, NULL));
    CHECK_OK(GOAL_Send(s, &to, GOAL_USERSPACE, 8, check_rank, 2, NULL));
    CHECK_OK(GOAL_Recv(s, &self, GOAL_USERSPACE, 8, check_rank, 2, NULL));
    CHECK_OK(GOAL_Send(s, NULL, GOAL_USERSPACE, 0, right(), GOAL_TAG_MAX, NULL));
    CHECK_OK(GOAL_Recv(s, NULL, GOAL_USERSPACE, 0, left(), GOAL_TAG_MAX, NULL));
    CHECK_OK(GOAL_Compile(s));
    run_once(s);
    CHECK(from == check_rank - 1 && self == check_rank, "from below %lld, from myself %lld", (long long)from, (long long)self);
    CHECK_OK(GOAL_Free(&s));
}

/* More than is sent at once, in pieces, and to many. */
static void large(void)
{
    enum { BYTES = 1 << 20 };
    unsigned char *out = malloc(BYTES), *in = malloc((size_t)BYTES * (size_t)check_size);
    GOAL_Schedule s;
    check_fill(out, BYTES, (uint64_t)check_rank);
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    for (int i = 0; i < check_size; i++) {
        GOAL_Piece half[2] = {{out, GOAL_USERSPACE, BYTES / 2}, {out + BYTES / 2, GOAL_USERSPACE, BYTES / 2}};
        if (i % 2) CHECK_OK(GOAL_Sendv(s, 2, half, i, 0, NULL));
        else CHECK_OK(GOAL_Send(s, out, GOAL_USERSPACE, BYTES, i, 0, NULL));
        CHECK_OK(GOAL_Recv(s, in + (size_t)BYTES * (size_t)i, GOAL_USERSPACE, BYTES, i, 0, NULL));
    }
    CHECK_OK(GOAL_Compile(s));
    for (int t = 0; t < 3; t++) {
        memset(in, 0, (size_t)BYTES * (size_t)check_size);
        run_once(s);
        for (int i = 0; i < check_size; i++)
            CHECK(!check_differ(in + (size_t)BYTES * (size_t)i, BYTES, (uint64_t)i), "bytes from rank %d", i);
    }
    CHECK_OK(GOAL_Free(&s));
    free(in);
    free(out);
}

/* The number of a schedule that was freed is used again, and a schedule keeps its communicator. */
static void many(void)
{
    MPI_Comm comm;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 2100; i++) {
        int64_t out = i, in = -1;
        GOAL_Schedule s;
        GOAL_Create(comm, 0, &s);
        GOAL_Send(s, &out, GOAL_USERSPACE, 8, right(), 3, NULL);
        GOAL_Recv(s, &in, GOAL_USERSPACE, 8, left(), 3, NULL);
        GOAL_Compile(s);
        if (i == 2099) CHECK_OK(MPI_Comm_free(&comm));
        GOAL_Request r;
        GOAL_Run(s, &r);
        GOAL_Wait(&r);
        if (in != i || i == 2099) CHECK(in == i, "schedule %d received %lld", i, (long long)in);
        GOAL_Free(&s);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    again();
    at_once();
    order();
    apart();
    as_data();
    ends();
    large();
    many();
    return check_done();
}
