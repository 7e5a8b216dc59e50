/*
 * inter.c - schedules between two groups: ranks are those of the other one, as in MPI; what they compute, again and at
 * once, beside MPI's own messages and collectives, as data; and mistakes, also between the groups (MPI-5.0 7.6, GOAL-2).
 */
#include "../check.h"

#include <goal.h>

enum { RUNS = 8 }; /* at once */

static MPI_Comm comm, inside; /* the two groups, and the own one */
static int first, me, others; /* am I of the first group; my rank there; ranks of the other one */

/* Two groups: the first `n` ranks of the world, and the rest. */
static void split(int n)
{
    first = check_rank < n;
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, first, 0, &inside));
    CHECK_OK(MPI_Intercomm_create(inside, 0, MPI_COMM_WORLD, first ? n : 0, 9, &comm));
    CHECK_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    CHECK_OK(MPI_Comm_rank(comm, &me));
    CHECK_OK(MPI_Comm_remote_size(comm, &others));
}

static void refused(int code, int class, const char *words, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int is = MPI_SUCCESS, n;
    MPI_Error_class(code, &is);
    if (code) MPI_Error_string(code, text, &n);
    CHECK(is == class && strstr(text, words), "line %d: class %d instead of %d, or no '%s' in: %s", line, is, class, words, text);
}
#define REFUSED(call, class, words) refused(call, class, words, __LINE__)

static int64_t value(int group, int rank, int i) { return 1000 * (2 * rank + group) + i; }

/* Everyone's n numbers go to everyone of the other group, and are added up there; `mine` and `sum` are buffers 0 and 1. */
static GOAL_Schedule sum_of_others(int n)
{
    GOAL_Schedule s;
    GOAL_Op last = -1, recv, add;
    CHECK_OK(GOAL_Create(comm, (MPI_Count)8 * n * others, &s));
    for (int r = 0; r < others; r++) {
        void *part = GOAL_AT((MPI_Aint)8 * n * r);
        CHECK_OK(GOAL_Send(s, GOAL_AT(0), GOAL_BUFFER(0), 8 * n, r, 5, NULL));
        CHECK_OK(GOAL_Recv(s, part, GOAL_SCRATCHPAD, 8 * n, r, 5, &recv));
        CHECK_OK(GOAL_Add(s, GOAL_INT64, n, part, GOAL_SCRATCHPAD, GOAL_AT(0), GOAL_BUFFER(1), &add));
        CHECK_OK(GOAL_Requires(s, add, recv));
        if (last >= 0) CHECK_OK(GOAL_Requires(s, add, last));
        last = add;
    }
    CHECK_OK(GOAL_Compile(s));
    return s;
}

static void check_sum(const int64_t *sum, int n, int shift, const char *what)
{
    for (int i = 0; i < n; i++) {
        int64_t want = 0;
        for (int r = 0; r < others; r++) want += value(first, r, i) + shift;
        if (sum[i] != want) {
            CHECK(0, "%s: number %d is %lld instead of %lld", what, i, (long long)sum[i], (long long)want);
            return;
        }
    }
}

/* Several runs at once, among MPI's own messages and collectives between the same groups. */
static void sums(int n)
{
    int64_t *mine = malloc((size_t)n * RUNS * 8), *sum = malloc((size_t)n * RUNS * 8), word = 7 + me, got = -1, total = -1;
    GOAL_Schedule s = sum_of_others(n);
    GOAL_Request run[RUNS];
    MPI_Request req[2];
    memset(sum, 0, (size_t)n * RUNS * 8);
    CHECK_OK(MPI_Irecv(&got, 8, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &req[0]));
    for (int k = 0; k < RUNS; k++) {
        for (int i = 0; i < n; i++) mine[k * n + i] = value(!first, me, i) + k;
        CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(0), mine + (size_t)k * (size_t)n, 8 * n));
        CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(1), sum + (size_t)k * (size_t)n, 8 * n));
        CHECK_OK(GOAL_Run(s, &run[k]));
        if (k == RUNS / 2) CHECK_OK(MPI_Iallreduce(&word, &total, 1, MPI_INT64_T, MPI_SUM, comm, &req[1]));
    }
    for (int k = RUNS - 1; k >= 0; k--) CHECK_OK(GOAL_Wait(&run[k]));
    for (int k = 0; k < RUNS; k++) check_sum(sum + (size_t)k * (size_t)n, n, k, "sum of the other group");
    for (int r = me; r < others; r += check_size - others) CHECK_OK(MPI_Send(&word, 8, MPI_BYTE, r, 3, comm));
    CHECK_OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
    CHECK(total == 7 * others + others * (others - 1) / 2, "collective beside it: %lld", (long long)total);
    CHECK(got >= 7 && got < 7 + others, "message beside it: %lld", (long long)got);
    CHECK_OK(GOAL_Free(&s));
    free(mine);
    free(sum);
}

/* As a block and as a text. In both, the ranks of the own group come first. */
static void as_data(void)
{
    char block[8000], text[8000], name[32];
    MPI_Count bytes, size;
    int64_t mine[3], sum[3];
    GOAL_Schedule s = sum_of_others(3), made[2];
    CHECK_OK(GOAL_Export(s, block, sizeof block, &bytes));
    CHECK_OK(GOAL_Print(s, text, sizeof text, &size));
    CHECK_OK(GOAL_Free(&s));
    snprintf(name, sizeof name, "rank %d of %d,", me, check_size);
    CHECK(strstr(text, name) != NULL, "no '%s' in:\n%s", name, text);
    snprintf(name, sizeof name, "to %d tag 5:", check_size - others);
    CHECK(strstr(text, name) != NULL, "no '%s' in:\n%s", name, text);
    CHECK_OK(GOAL_Import(comm, block, bytes, &made[0]));
    CHECK_OK(GOAL_Parse(comm, text, &made[1]));
    for (int k = 0; k < 2; k++) {
        GOAL_Request r;
        for (int i = 0; i < 3; i++) mine[i] = value(!first, me, i), sum[i] = 0;
        CHECK_OK(GOAL_Bind(made[k], GOAL_BUFFER(0), mine, sizeof mine));
        CHECK_OK(GOAL_Bind(made[k], GOAL_BUFFER(1), sum, sizeof sum));
        CHECK_OK(GOAL_Run(made[k], &r));
        CHECK_OK(GOAL_Wait(&r));
        check_sum(sum, 3, 0, k ? "from a text" : "from a block");
        CHECK_OK(GOAL_Free(&made[k]));
    }
}

static void mistakes(void)
{
    int64_t word[2] = {0, 0};
    char text[400];
    GOAL_Schedule s, t = GOAL_SCHEDULE_NULL;
    CHECK_OK(GOAL_Create(comm, 0, &s));
    REFUSED(GOAL_Send(s, word, GOAL_USERSPACE, 8, others, 0, NULL), MPI_ERR_RANK, "other group has ranks 0 to");
    REFUSED(GOAL_Recv(s, word, GOAL_USERSPACE, 8, MPI_ROOT, 0, NULL), MPI_ERR_RANK, "other group");
    CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, MPI_PROC_NULL, 0, NULL));
    CHECK_OK(GOAL_Compile(s));
    CHECK_OK(GOAL_Free(&s));
    snprintf(text, sizeof text,
             "schedule v2: rank %d of %d, 1 operations, 1 independent, scratchpad 0 bytes, 0 slots, 80 bytes\n"
             "  0 send to 0 tag 1: nothing\n", me, check_size);
    REFUSED(GOAL_Parse(comm, text, &t), MPI_ERR_ARG, "");
    CHECK(t == GOAL_SCHEDULE_NULL, "nothing was made");
    if (!getenv("TERN_GOAL_CHECK")) {
        REFUSED(GOAL_Parse(comm, text, &t), MPI_ERR_ARG, "which is of the own group");
        return;
    }
    GOAL_Op send, recv; /* everybody receives first */
    CHECK_OK(GOAL_Create(comm, 0, &s));
    for (int r = 0; r < others; r++) {
        CHECK_OK(GOAL_Recv(s, word, GOAL_USERSPACE, 8, r, 2, &recv));
        CHECK_OK(GOAL_Send(s, word + 1, GOAL_USERSPACE, 8, r, 2, &send));
        CHECK_OK(GOAL_Requires(s, send, recv));
    }
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "deadlock: rank 0 of the first group receives from rank 0 of the second group");
    CHECK_OK(GOAL_Free(&s));
    CHECK_OK(GOAL_Create(comm, 0, &s)); /* only the first group's rank 0 sends */
    if (first && !me) CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, 0, 2, &recv));
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, first ? "rank 0 of the first group sends to rank 0 of the second"
                                                : "rank 0 of the second group sends to rank 0 of the first");
    CHECK_OK(GOAL_Free(&s));
    CHECK_OK(GOAL_Create(comm, 0, &s)); /* one has a mistake of its own */
    if (first && !me) {
        CHECK_OK(GOAL_Join(s, &send));
        CHECK_OK(GOAL_Requires(s, send, send));
    }
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, first && !me ? "cycle" : first ? "rank 0 of the own group" : "rank 0 of the other group");
    CHECK_OK(GOAL_Free(&s));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (int n = 1; n < check_size; n++) {
        split(n);
        sums(1);
        sums(20000);
        as_data();
        mistakes();
        CHECK_OK(MPI_Comm_free(&comm));
        CHECK_OK(MPI_Comm_free(&inside));
    }
    return check_done();
}
