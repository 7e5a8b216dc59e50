/*
 * mistakes.c - what is wrong with a schedule is refused, by the right class and with words that name it (GOAL-2 to 4).
 */
#include "../check.h"

#include <goal.h>

static int64_t word[4];

/* The call fails with this class, and its words contain that. */
static void refused(int code, int class, const char *words, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int is = MPI_SUCCESS, n;
    MPI_Error_class(code, &is);
    if (code) MPI_Error_string(code, text, &n);
    CHECK(is == class, "line %d: class %d instead of %d (%s)", line, is, class, text);
    CHECK(strstr(text, words) != NULL, "line %d: no '%s' in: %s", line, words, text);
}
#define REFUSED(call, class, words) refused(call, class, words, __LINE__)

static GOAL_Schedule fresh(MPI_Count pad)
{
    GOAL_Schedule s;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, pad, &s));
    return s;
}

static void arguments(void)
{
    GOAL_Schedule s = fresh(16), none = GOAL_SCHEDULE_NULL;
    GOAL_Op a, b;
    REFUSED(GOAL_Create(MPI_COMM_NULL, 0, &none), MPI_ERR_COMM, "MPI_COMM_NULL");
    REFUSED(GOAL_Create(MPI_COMM_WORLD, -1, &none), MPI_ERR_COUNT, "-1");
    REFUSED(GOAL_Create(MPI_COMM_WORLD, 0, NULL), MPI_ERR_ARG, "schedule");
    REFUSED(GOAL_Join(none, &a), MPI_ERR_ARG, "GOAL_SCHEDULE_NULL");
    REFUSED(GOAL_Join((GOAL_Schedule)(void *)word, &a), MPI_ERR_ARG, "not a schedule");
    REFUSED(GOAL_Send(s, word, GOAL_USERSPACE, 8, check_size, 0, &a), MPI_ERR_RANK, "ranks 0 to");
    REFUSED(GOAL_Recv(s, word, GOAL_USERSPACE, 8, MPI_ANY_SOURCE, 0, &a), MPI_ERR_RANK, "-1");
    REFUSED(GOAL_Send(s, word, GOAL_USERSPACE, 8, 0, GOAL_TAG_MAX + 1, &a), MPI_ERR_TAG, "65536");
    REFUSED(GOAL_Send(s, word, GOAL_USERSPACE, -8, 0, 0, &a), MPI_ERR_COUNT, "-8");
    REFUSED(GOAL_Send(s, NULL, GOAL_USERSPACE, 8, 0, 0, &a), MPI_ERR_BUFFER, "NULL");
    REFUSED(GOAL_Send(s, word, -1, 8, 0, 0, &a), MPI_ERR_ARG, "place -1");
    REFUSED(GOAL_Send(s, word, GOAL_BUFFER(GOAL_BUFFERS_MAX), 8, 0, 0, &a), MPI_ERR_ARG, "place");
    REFUSED(GOAL_Send(s, GOAL_AT(9), GOAL_SCRATCHPAD, 8, 0, 0, &a), MPI_ERR_ARG, "scratchpad of 16");
    REFUSED(GOAL_Send(s, GOAL_AT(-1), GOAL_SCRATCHPAD, 8, 0, 0, &a), MPI_ERR_ARG, "scratchpad of 16");
    REFUSED(GOAL_Send(s, GOAL_AT(-1), GOAL_BUFFER(0), 8, 0, 0, &a), MPI_ERR_ARG, "offset -1");
    REFUSED(GOAL_Sendv(s, 1, NULL, 0, 0, &a), MPI_ERR_BUFFER, "NULL");
    REFUSED(GOAL_Recvv(s, -1, NULL, 0, 0, &a), MPI_ERR_COUNT, "-1");
    REFUSED(GOAL_Timestamp(s, GOAL_AT(12), GOAL_SCRATCHPAD, &a), MPI_ERR_ARG, "8 bytes at offset 12");
    REFUSED(GOAL_Add(s, GOAL_TYPES, 1, word, 0, word + 1, 0, &a), MPI_ERR_TYPE, "type");
    REFUSED(GOAL_Add(s, GOAL_INT1, 7, word, 0, word + 1, 0, &a), MPI_ERR_COUNT, "multiples of 8");
    REFUSED(GOAL_Add(s, GOAL_INT64, -1, word, 0, word + 1, 0, &a), MPI_ERR_COUNT, "negative");
    REFUSED(GOAL_And(s, GOAL_FLOAT32, 1, word, 0, word + 1, 0, &a), MPI_ERR_OP, "no operator");
    REFUSED(GOAL_Arith(s, GOAL_OPERATORS, GOAL_INT8, 1, word, 0, word + 1, 0, &a), MPI_ERR_OP, "operation");
    GOAL_Piece three = {word, GOAL_USERSPACE, 3}, four = {word + 1, GOAL_USERSPACE, 4};
    REFUSED(GOAL_Copyv(s, 1, &three, 1, &four, &a), MPI_ERR_COUNT, "3 bytes are read and 4 written");
    REFUSED(GOAL_Arithv(s, GOAL_ADD, GOAL_INT16, 1, &three, 1, &three, &a), MPI_ERR_COUNT, "whole numbers of int16");
    CHECK_OK(GOAL_Join(s, &a));
    CHECK_OK(GOAL_Join(s, &b));
    REFUSED(GOAL_Requires(s, a, 7), MPI_ERR_ARG, "operation 7 is not one of the 2");
    REFUSED(GOAL_Requires_start(s, -1, b), MPI_ERR_ARG, "operation -1");
    CHECK_OK(GOAL_Compile(s)); /* none of that has spoilt it */
    REFUSED(GOAL_Join(s, &a), MPI_ERR_REQUEST, "compiled");
    REFUSED(GOAL_Compile(s), MPI_ERR_REQUEST, "compiled");
    CHECK_OK(GOAL_Free(&s));
    REFUSED(GOAL_Free(&s), MPI_ERR_ARG, "GOAL_SCHEDULE_NULL");
}

/* All ranks make the same mistake: with TERN_GOAL_CHECK they wait for each other. */
static void graphs(void)
{
    GOAL_Schedule s = fresh(0);
    GOAL_Op a, b;
    CHECK_OK(GOAL_Join(s, &a));
    CHECK_OK(GOAL_Join(s, &b));
    CHECK_OK(GOAL_Requires(s, a, b));
    CHECK_OK(GOAL_Requires_start(s, b, a));
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "cycle");
    CHECK_OK(GOAL_Free(&s));

    s = fresh(64);
    CHECK_OK(GOAL_Copy(s, GOAL_AT(0), GOAL_SCRATCHPAD, GOAL_AT(4), GOAL_SCRATCHPAD, 8, NULL));
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "overlaps");
    CHECK_OK(GOAL_Free(&s));

    s = fresh(64);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, check_rank, 5, NULL));
        CHECK_OK(GOAL_Recv(s, word + 1 + i, GOAL_USERSPACE, 8, check_rank, 5 + i, NULL));
    }
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "under tag 5");
    CHECK_OK(GOAL_Free(&s));
}

static void running(void)
{
    GOAL_Schedule s = fresh(0);
    GOAL_Request r = GOAL_REQUEST_INIT;
    int flag = 0;
    CHECK_OK(GOAL_Test(&r, &flag));
    CHECK(flag == 1, "a request of nothing");
    REFUSED(GOAL_Run(s, &r), MPI_ERR_REQUEST, "not compiled");
    REFUSED(GOAL_Wait(&(GOAL_Request){7, 0, word}), MPI_ERR_REQUEST, "not of a run");
    REFUSED(GOAL_Test(&(GOAL_Request){GOAL_RUNNING, 0, NULL}, &flag), MPI_ERR_REQUEST, "not of a run");
    REFUSED(GOAL_Export(s, NULL, 0, &(MPI_Count){0}), MPI_ERR_REQUEST, "not compiled");
    REFUSED(GOAL_Bind(s, GOAL_USERSPACE, word, 8), MPI_ERR_ARG, "compiled");
    CHECK_OK(GOAL_Copy(s, GOAL_AT(8), GOAL_BUFFER(1), word, GOAL_USERSPACE, 8, NULL));
    CHECK_OK(GOAL_Compile(s));
    REFUSED(GOAL_Run(s, NULL), MPI_ERR_ARG, "request");
    REFUSED(GOAL_Run(s, &r), MPI_ERR_BUFFER, "nothing is bound to buffer 1");
    REFUSED(GOAL_Bind(s, GOAL_SCRATCHPAD, word, 8), MPI_ERR_ARG, "place");
    CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(1), word, 8));
    REFUSED(GOAL_Run(s, &r), MPI_ERR_BUFFER, "8 bytes are bound to buffer 1");
    CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(1), word + 1, 16));
    word[2] = 5;
    CHECK_OK(GOAL_Run(s, &r));
    CHECK(GOAL_Finished(&r), "a run without messages is over at once");
    CHECK_OK(GOAL_Wait(&r));
    CHECK(word[0] == 5, "copied %lld", (long long)word[0]);
    REFUSED(GOAL_Test(&r, NULL), MPI_ERR_ARG, "flag");
    REFUSED(GOAL_Wait(NULL), MPI_ERR_ARG, "request");
    char small[8];
    MPI_Count n;
    REFUSED(GOAL_Export(s, small, sizeof small, &n), MPI_ERR_TRUNCATE, "room is 8");
    REFUSED(GOAL_Print(s, small, sizeof small, &n), MPI_ERR_TRUNCATE, "room is 8");
    CHECK_OK(GOAL_Free(&s));
}

/* A message that is too long ends the run of who receives it, which says so; the schedule can run again. */
static void too_long(void)
{
    GOAL_Schedule s = fresh(0);
    GOAL_Request r;
    int checked = getenv("TERN_GOAL_CHECK") != NULL;
    CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 16, check_rank, 0, NULL));
    CHECK_OK(GOAL_Recv(s, word + 2, GOAL_USERSPACE, 8, check_rank, 0, NULL));
    if (checked) REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "sends 16 bytes");
    for (int i = 0; i < 20 && !checked; i++) {
        if (!i) CHECK_OK(GOAL_Compile(s));
        CHECK_OK(GOAL_Run(s, &r));
        REFUSED(GOAL_Wait(&r), MPI_ERR_TRUNCATE, "");
    }
    CHECK_OK(GOAL_Free(&s));
}

static void bad_data(void)
{
    GOAL_Schedule s = fresh(8), t = GOAL_SCHEDULE_NULL;
    char block[1000], text[1000];
    MPI_Count bytes, n;
    CHECK_OK(GOAL_Copy(s, GOAL_AT(0), GOAL_SCRATCHPAD, word, GOAL_USERSPACE, 8, NULL));
    CHECK_OK(GOAL_Compile(s));
    CHECK_OK(GOAL_Export(s, block, sizeof block, &bytes));
    CHECK_OK(GOAL_Print(s, text, sizeof text, &n));
    REFUSED(GOAL_Import(MPI_COMM_WORLD, block, bytes - 8, &t), MPI_ERR_ARG, "bytes");
    REFUSED(GOAL_Import(MPI_COMM_WORLD, NULL, bytes, &t), MPI_ERR_ARG, "block");
    REFUSED(GOAL_Import(MPI_COMM_WORLD, block, -1, &t), MPI_ERR_COUNT, "-1");
    block[0] ^= 1;
    REFUSED(GOAL_Import(MPI_COMM_WORLD, block, bytes, &t), MPI_ERR_ARG, "magic");
    REFUSED(GOAL_Parse(MPI_COMM_WORLD, "nonsense", &t), MPI_ERR_ARG, "line 1");
    char *copy = strstr(text, "copy ");
    memcpy(copy, "cpoy", 4);
    REFUSED(GOAL_Parse(MPI_COMM_WORLD, text, &t), MPI_ERR_ARG, "unknown operation at 'cpoy");
    memcpy(copy, "reduce", 6); /* of MPI's operators, which a user cannot give */
    REFUSED(GOAL_Parse(MPI_COMM_WORLD, text, &t), MPI_ERR_ARG, "");
    if (check_size > 1) {
        sprintf(text, "schedule v2: rank %d of %d, 0 operations, 0 independent, scratchpad 0 bytes, 0 slots, 48 bytes\n",
                (check_rank + 1) % check_size, check_size);
        REFUSED(GOAL_Parse(MPI_COMM_WORLD, text, &t), MPI_ERR_ARG, "and this is rank");
    }
    CHECK(t == GOAL_SCHEDULE_NULL, "nothing was made");
    CHECK_OK(GOAL_Free(&s));
}

/* What the ranks' schedules have among each other is found when they are compiled, at every rank. */
static void between_ranks(void)
{
    int next = (check_rank + 1) % check_size, last = (check_rank + check_size - 1) % check_size;
    GOAL_Op send, recv;
    GOAL_Schedule s;
    if (!getenv("TERN_GOAL_CHECK") || check_size < 2) return;
    s = fresh(0);
    CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, next, check_rank == 0 ? 4 : 3, NULL));
    CHECK_OK(GOAL_Recv(s, word + 1, GOAL_USERSPACE, 8, last, 3, NULL));
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "rank 0");
    CHECK_OK(GOAL_Free(&s));
    s = fresh(0);
    CHECK_OK(GOAL_Send(s, word, GOAL_USERSPACE, 8, next, 3, &send));
    CHECK_OK(GOAL_Recv(s, word + 1, GOAL_USERSPACE, 8, last, 3, &recv));
    CHECK_OK(GOAL_Requires(s, send, recv)); /* everybody first receives */
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, "deadlock");
    CHECK_OK(GOAL_Free(&s));
    s = fresh(0);
    if (check_rank == 1) { /* one has a mistake of its own, and the others do not wait for it for ever */
        CHECK_OK(GOAL_Join(s, &send));
        CHECK_OK(GOAL_Requires(s, send, send));
    }
    REFUSED(GOAL_Compile(s), MPI_ERR_ARG, check_rank == 1 ? "cycle" : "rank 1");
    CHECK_OK(GOAL_Free(&s));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    arguments();
    graphs();
    running();
    too_long();
    bad_data();
    between_ranks();
    return check_done();
}
