/*
 * goal_calls_fuzz.c - the entry points of goal.h with wrong handles and arguments, in any order: each call succeeds, or
 * fails with a class and words and changes nothing. What compiles is run in memory of exactly the bound size; since the
 * check between ranks is on, it ends without an error. A job of this process alone, so that one case can do it all.
 */
#include "fuzz.h"

#include <goal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 64, PLACE = 2 * HALF, BUFFERS = 3, OPS = 24, RUNS = 3, SENTINEL = -77 };

static char user[PLACE], *buffer[BUFFERS]; /* the buffers: malloc'ed anew for each case */
static GOAL_Schedule schedule;             /* the one of this case */
static bool wild;                          /* it names memory that is not ours: it is not run */
static uint64_t compiled, ran, refused;

/* Any number, often a small one. */
static int64_t any(void)
{
    static const int64_t few[] = {-1, 0, 1, 2, 7, 8, 16, 64, 127, 128, 129, 1023, 65535, 65536, 1 << 24};
    switch (fuzz_below(12)) {
    case 0: return (int64_t)fuzz_random();
    case 1: return (int64_t)((UINT64_C(1) << fuzz_below(64)) - fuzz_below(2));
    default: return few[fuzz_below(sizeof few / sizeof *few)];
    }
}

static int any_int(void) { return (int)any(); }

/* Mostly what is right. */
static int mostly(int right) { return fuzz_below(10) ? right : any_int(); }

static GOAL_Schedule handle(void)
{
    static GOAL_Schedule stale;
    if (fuzz_below(12)) return schedule;
    switch (fuzz_below(6)) {
    case 0: return GOAL_SCHEDULE_NULL;
    case 1: return (GOAL_Schedule)(uintptr_t)fuzz_random();
    case 2: return (GOAL_Schedule)(void *)MPI_COMM_WORLD;
    case 3: return (GOAL_Schedule)(void *)user;
    case 4: return (GOAL_Schedule)((uintptr_t)schedule + 64 * fuzz_below(4));
    default: {
        GOAL_Schedule last = stale;
        stale = schedule;
        return last;
    }
    }
}

/* What a call has come to. */
static bool judged(int code)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int class = -1, n = 0;
    if (!code) return true;
    refused++;
    FUZZ_RULE(MPI_Error_class(code, &class) == MPI_SUCCESS && class > MPI_SUCCESS && class <= MPI_ERR_LASTCODE, "an error has a class");
    FUZZ_RULE(MPI_Error_string(code, words, &n) == MPI_SUCCESS && n > 0, "... and words");
    return false;
}

/* ---- memory ------------------------------------------------------------------------ */

/*
 * Some memory: what messages send is in the first half of a place and what they receive in the second one, as
 * memory that is in use by both would be the user's mistake.
 */
static GOAL_Piece piece(int half, int64_t bytes)
{
    int place = (int)fuzz_below(2 + BUFFERS);
    int64_t low = half == 1 ? HALF : 0, high = half == 0 ? HALF : PLACE, at = low;
    if (bytes < 0 || bytes > high - low || !fuzz_below(40)) bytes = any(), at = any(), wild = true;
    else at += (int64_t)fuzz_below((uint64_t)(high - low - bytes) + 1);
    if (!fuzz_below(60)) place = any_int(), wild = true;
    if (place == GOAL_USERSPACE && !wild) return (GOAL_Piece){user + at, place, bytes};
    return (GOAL_Piece){GOAL_AT(at), place, bytes};
}

/* n pieces of so many bytes each. */
static void pieces(GOAL_Piece *p, int n, int half, int64_t bytes)
{
    for (int i = 0; i < n; i++) p[i] = piece(half, bytes);
}

/* ---- calls --------------------------------------------------------------------------- */

static int message(int tag, GOAL_Op *op)
{
    GOAL_Piece out[4], in[4];
    GOAL_Op send = 0;
    int n = (int)fuzz_below(5), rc;
    int64_t bytes = (int64_t)fuzz_below(17);
    pieces(out, n, 0, bytes);
    pieces(in, n, 1, bytes);
    if (!fuzz_below(30)) return GOAL_Sendv(handle(), any_int() % 5 - 3, fuzz_below(3) ? out : NULL, 0, tag, op);
    if (n == 1) rc = GOAL_Send(handle(), out->buf, out->place, out->bytes, mostly(0), mostly(tag), &send);
    else rc = GOAL_Sendv(handle(), n, out, mostly(0), mostly(tag), &send);
    if (rc || !fuzz_below(30)) return rc; /* sometimes nobody receives it */
    if (n == 1) return GOAL_Recv(handle(), in->buf, in->place, in->bytes, mostly(0), mostly(tag), op);
    return GOAL_Recvv(handle(), n, in, mostly(0), mostly(tag), op);
}

/* Two numbers of at most 8 bytes, or 64 of one bit. */
static int arithmetic(int sign, int type, const GOAL_Piece p[2], GOAL_Op *op)
{
    int fits = type == GOAL_INT1 || type == GOAL_UINT1 ? 64 : 2, count = mostly(fits);
    wild |= count != fits;
    return GOAL_Arith(handle(), sign, type, count, p[0].buf, p[0].place, p[1].buf, p[1].place, op);
}

static int local(GOAL_Op *op)
{
    GOAL_Piece in[4], out[4];
    int n = (int)fuzz_below(5), type = mostly((int)fuzz_below(GOAL_TYPES)), sign = mostly((int)fuzz_below(GOAL_OPERATORS));
    pieces(in, n, 2, 8);
    pieces(out, n, 2, 8);
    switch (fuzz_below(6)) {
    case 0: return GOAL_Copyv(handle(), n, in, n, out, op);
    case 1: return GOAL_Arithv(handle(), sign, type, n, in, n, out, op);
    case 2: return GOAL_Arithv(handle(), sign, type, n, in, mostly(n) % 5, out, op);
    case 3: in[0] = piece(2, 8); return GOAL_Timestamp(handle(), in[0].buf, in[0].place, op);
    default:
        pieces(in, 2, 2, 16);
        if (fuzz_below(2)) return GOAL_Copy(handle(), in[0].buf, in[0].place, in[1].buf, in[1].place, in[0].bytes, op);
        return arithmetic(sign, type, in, op);
    }
}

static int order(int ops)
{
    int first = ops > 1 ? (int)fuzz_below((uint64_t)ops) : 0;
    GOAL_Op before = mostly(first), op = mostly(first + 1 + (int)fuzz_below(4));
    return fuzz_below(2) ? GOAL_Requires(handle(), op, before) : GOAL_Requires_start(handle(), op, before);
}

static void build(void)
{
    for (int i = 0, n = (int)fuzz_below(OPS); i < n; i++) {
        GOAL_Op op = SENTINEL;
        int rc;
        switch (fuzz_below(8)) {
        case 0:
        case 1: rc = message(i, &op); break;
        case 2:
        case 3: rc = local(&op); break;
        case 4: rc = GOAL_Join(handle(), fuzz_below(2) ? &op : NULL); break;
        default: rc = order(i);
        }
        if (!judged(rc)) FUZZ_RULE(op == SENTINEL, "a call that fails gives nothing back");
    }
}

/* Places of the right size, too small ones, and none. */
static void bind(void)
{
    for (int i = 0; i < BUFFERS; i++)
        if (fuzz_below(12)) judged(GOAL_Bind(handle(), GOAL_BUFFER(i), buffer[i], fuzz_below(20) ? PLACE : (MPI_Count)fuzz_below(PLACE)));
    if (!fuzz_below(10)) judged(GOAL_Bind(handle(), GOAL_BUFFER(any_int() % 2000), fuzz_below(2) ? user : NULL, 0));
    if (!fuzz_below(10)) judged(GOAL_Bind(handle(), any_int(), NULL, any()));
}

static bool ends(GOAL_Request *r)
{
    int flag = 0, rc = 0;
    for (int i = 0; i < 10000 && !flag; i++) rc = GOAL_Test(r, &flag);
    FUZZ_RULE(flag, "what was checked ends");
    FUZZ_RULE(!flag || judged(rc), "... without an error");
    return flag;
}

static void run(void)
{
    GOAL_Request r[RUNS] = {GOAL_REQUEST_INIT, GOAL_REQUEST_INIT, GOAL_REQUEST_INIT};
    int n = 1 + (int)fuzz_below(RUNS);
    bool started = false;
    for (int i = 0; i < n; i++) started |= judged(GOAL_Run(schedule, &r[i]));
    if (started) ran++;
    for (int i = 0; i < n; i++) ends(&r[i]);
}

/* Requests that are none. */
static void test_nothing(void)
{
    GOAL_Request none = GOAL_REQUEST_INIT, bad = {fuzz_below(2) ? GOAL_RUNNING : any_int() | 4, any_int(), NULL};
    int flag = SENTINEL;
    FUZZ_RULE(judged(GOAL_Test(&none, &flag)) && flag == 1, "a request of nothing is over");
    FUZZ_RULE(judged(GOAL_Wait(&none)), "... and can be waited for");
    FUZZ_RULE(!judged(GOAL_Test(fuzz_below(2) ? &bad : NULL, &flag)), "a wrong request is refused");
    FUZZ_RULE(!judged(GOAL_Wait(fuzz_below(2) ? &bad : NULL)), "... to wait for, too");
}

/* As a block and as a text, whole or spoilt. */
static void as_data(void)
{
    static char block[1 << 16], text[1 << 18];
    MPI_Count bytes = SENTINEL, size = SENTINEL;
    GOAL_Schedule made = GOAL_SCHEDULE_NULL;
    if (!judged(GOAL_Export(handle(), block, mostly(sizeof block), fuzz_below(20) ? &bytes : NULL)) || bytes <= 0) return;
    if (!judged(GOAL_Print(schedule, text, sizeof text, &size))) return;
    if (bytes > (MPI_Count)sizeof block || fuzz_below(4)) return;
    char *exact = malloc((size_t)bytes);
    if (!exact) abort();
    memcpy(exact, block, (size_t)bytes);
    if (fuzz_below(2)) fuzz_mutate((uint8_t *)exact, (size_t)bytes);
    else if (fuzz_below(2)) fuzz_mutate((uint8_t *)text, strlen(text));
    if (fuzz_below(2)) judged(GOAL_Import(MPI_COMM_SELF, exact, fuzz_below(8) ? bytes : (MPI_Count)fuzz_below((uint64_t)bytes), &made));
    else judged(GOAL_Parse(MPI_COMM_SELF, text, &made));
    if (made) judged(GOAL_Free(&made));
    free(exact);
}

static void wrong_comms(void)
{
    static const MPI_Comm comm[] = {MPI_COMM_NULL, (MPI_Comm)MPI_INFO_NULL, (MPI_Comm)MPI_INT, (MPI_Comm)(void *)user};
    GOAL_Schedule made = GOAL_SCHEDULE_NULL;
    MPI_Comm c = comm[fuzz_below(4)];
    FUZZ_RULE(!judged(GOAL_Create(c, any(), &made)) && !made, "what is no communicator has no schedules");
    FUZZ_RULE(!judged(GOAL_Import(c, user, 0, &made)) && !made, "... from a block");
    FUZZ_RULE(!judged(GOAL_Parse(c, "schedule", &made)) && !made, "... from a text");
    FUZZ_RULE(!judged(GOAL_Create(MPI_COMM_SELF, 0, NULL)), "where there is nowhere to give it");
}

static void calls(void)
{
    wild = false;
    if (!fuzz_below(10)) wrong_comms();
    if (!fuzz_below(10)) test_nothing();
    if (!judged(GOAL_Create(MPI_COMM_SELF, fuzz_below(20) ? PLACE : any(), &schedule))) return;
    for (int i = 0; i < BUFFERS; i++)
        if (!(buffer[i] = calloc(1, PLACE))) abort();
    build();
    bind();
    if (judged(GOAL_Compile(schedule))) {
        compiled++;
        if (!wild) run();
        as_data();
    }
    FUZZ_RULE(judged(GOAL_Free(&schedule)) && !schedule, "a schedule can be freed");
    FUZZ_RULE(!judged(GOAL_Free(&schedule)), "... once");
    for (int i = 0; i < BUFFERS; i++) free(buffer[i]);
}

int main(int argc, char **argv)
{
    static const struct fuzz_part parts[] = {{"wrong calls are refused or harmless", calls, 1}};
    setenv("TERN_GOAL_CHECK", "all", 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 100; i++) calls(); /* what the library keeps from its first use on is no leak */
    int rc = fuzz_main(parts, 1, 10000);
    printf("# %llu schedules compiled, %llu of them ran, %llu calls were refused\n", (unsigned long long)compiled,
           (unsigned long long)ran, (unsigned long long)refused);
    if (!compiled || !ran || !refused) rc = 1;
    MPI_Finalize();
    return rc;
}
