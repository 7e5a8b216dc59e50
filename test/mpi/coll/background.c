/*
 * background.c - the helper thread (TERN_PROGRESS=helper): what was started, users' schedules too, ends while no rank
 * calls MPI; what it finds to be wrong is told to the rank that waits, by its own thread; users' operators run in the
 * program's thread; a session's info key starts it, and it goes with the last user of the library.
 */
#include "../check.h"

#include <goal.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { LARGE = 1 << 20, PART = 65536, ROUNDS = 20 };

static pthread_t program;
static int rank, size;
static unsigned char *in, *out;

/* ---- looking without a call of MPI ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* True as soon as all n bytes are `value`; a rank that does not call MPI gives up after a while. It looks at what another
 * thread writes, on purpose. */
__attribute__((no_sanitize_thread)) static int arrives(const volatile unsigned char *p, size_t n, unsigned char value)
{
    double end = now() + 5;
    for (size_t i = 0; i < n; i++)
        while (p[i] != value) {
            if (now() > end) return 0;
            usleep(100);
        }
    return 1;
}

/* The program on one core, its helper on another (TEST_APART). */
static int go_apart(void)
{
    cpu_set_t all, one;
    char other[16];
    int n = 0, cpu[2] = {0, 0};
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &all)) cpu[n++] = i;
    if (n < 2) return 0;
    CPU_ZERO(&one);
    CPU_SET(cpu[0], &one);
    snprintf(other, sizeof other, "%d", cpu[1]);
    setenv("TERN_HELPER_CPUS", other, 1);
    return !sched_setaffinity(0, sizeof one, &one);
}

static int threads_named(const char *name)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], text[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        if (fgets(text, sizeof text, f)) text[strcspn(text, "\n")] = 0;
        n += !strcmp(text, name);
        fclose(f);
    }
    if (d) closedir(d);
    return n;
}

/* ---- operations that end by themselves ---- */

static void start(int kind, int round, MPI_Request *q)
{
    MPI_Comm c = MPI_COMM_WORLD;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    q[1] = MPI_REQUEST_NULL;
    switch (kind) {
    case 0:
        CHECK_OK(MPI_Irecv(in, LARGE, MPI_BYTE, before, round, c, &q[0]));
        CHECK_OK(MPI_Isend(out, LARGE, MPI_BYTE, next, round, c, &q[1]));
        break;
    case 1: CHECK_OK(MPI_Ialltoall(out, PART, MPI_BYTE, in, PART, MPI_BYTE, c, &q[0])); break;
    case 2: CHECK_OK(MPI_Ibcast(rank ? in : out, LARGE, MPI_BYTE, 0, c, &q[0])); break;
    default: CHECK_OK(MPI_Iallreduce(out, in, LARGE, MPI_UNSIGNED_CHAR, MPI_MAX, c, &q[0])); break;
    }
}

/* Each kind again and again, with and without a blocking call before, which takes the helper out of its sleep. */
static void ends_by_itself(void)
{
    static const char *const name[] = {"a message", "an alltoall", "a bcast", "an allreduce"};
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < 4; kind++) {
            unsigned char value = (unsigned char)(1 + round * 4 + kind);
            size_t n = kind == 1 ? (size_t)PART * (size_t)size : LARGE;
            MPI_Request q[2];
            memset(in, 0, n);
            memset(out, value, n);
            if (round % 2) CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
            start(kind, round, q);
            if (kind != 2 || rank) CHECK(arrives(in, n, value), "%s does not end while nobody calls MPI", name[kind]);
            CHECK_OK(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
        }
}

/* A token goes around twice, which takes a turn of everybody's. */
static GOAL_Schedule token(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    GOAL_Schedule s;
    GOAL_Op op[4];
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 16, &s));
    for (int lap = 0; lap < 2; lap++) {
        GOAL_Op *send = &op[2 * lap + !!rank], *recv = &op[2 * lap + !rank];
        CHECK_OK(GOAL_Send(s, GOAL_AT(0), GOAL_SCRATCHPAD, 8, next, lap, send));
        CHECK_OK(GOAL_Recv(s, GOAL_AT(8 * !rank), GOAL_SCRATCHPAD, 8, before, lap, recv));
    }
    for (int i = 1; i < 4; i++) CHECK_OK(GOAL_Requires(s, op[i], op[i - 1])); /* rank 0 sends first */
    CHECK_OK(GOAL_Compile(s));
    return s;
}

static void schedules_end_by_themselves(void)
{
    GOAL_Schedule s = token();
    for (int round = 0; round < 5 * ROUNDS; round++) {
        GOAL_Request r = GOAL_REQUEST_INIT;
        double end = now() + 5;
        if (round % 2) CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK_OK(GOAL_Run(s, &r));
        while (!GOAL_Finished(&r) && now() < end) usleep(100);
        CHECK(GOAL_Finished(&r), "a schedule does not end while nobody calls MPI");
        CHECK_OK(GOAL_Wait(&r));
    }
    CHECK_OK(GOAL_Free(&s));
}

/* ---- whose thread ---- */

static int foreign_calls;

static void add(void *a, void *b, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)b)[i] += ((int *)a)[i];
    foreign_calls += !pthread_equal(program, pthread_self());
}

/* Only where the program has not said that threads call at the same time (PMPI: `make check-multiple` says so for it). */
static void users_operator_runs_here(void)
{
    MPI_Op op;
    int level;
    int *a = (int *)(void *)out, *b = (int *)(void *)in, n = PART / (int)sizeof(int);
    CHECK_OK(MPI_Op_create(add, 1, &op));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request q;
        for (int i = 0; i < n; i++) a[i] = rank + i;
        CHECK_OK(MPI_Iallreduce(a, b, n, MPI_INT, op, MPI_COMM_WORLD, &q));
        usleep(500);
        CHECK_OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++)
            if (b[i] != size * (size - 1) / 2 + size * i) CHECK(0, "element %d is %d", i, b[i]);
    }
    CHECK_OK(PMPI_Query_thread(&level));
    CHECK(!foreign_calls || level == MPI_THREAD_MULTIPLE, "%d calls of the operator by another thread", foreign_calls);
    CHECK_OK(MPI_Op_free(&op));
}

static int handled, handled_elsewhere;

static void handler(MPI_Comm *c, int *code, ...)
{
    (void)c, (void)code;
    handled++;
    handled_elsewhere += !pthread_equal(program, pthread_self());
}

/* A message too long for its receive: found by the helper, told by MPI_Wait. */
static void errors_are_told_here(void)
{
    MPI_Errhandler e;
    MPI_Comm c;
    MPI_Request q[2];
    MPI_Status s[2];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    CHECK_OK(MPI_Comm_create_errhandler(handler, &e));
    CHECK_OK(MPI_Comm_set_errhandler(c, e));
    CHECK_OK(MPI_Irecv(in, LARGE / 2, MPI_BYTE, before, 1, c, &q[0]));
    CHECK_OK(MPI_Isend(out, LARGE, MPI_BYTE, next, 1, c, &q[1]));
    usleep(20000);
    CHECK(!handled, "the error handler was called before the wait");
    CHECK(MPI_Wait(&q[0], &s[0]) == MPI_ERR_TRUNCATE, "no error for a message that is too long");
    CHECK(handled == 1 && !handled_elsewhere, "%d calls of the error handler, %d of another thread", handled, handled_elsewhere);
    CHECK_OK(MPI_Wait(&q[1], &s[1]));
    CHECK_OK(MPI_Errhandler_free(&e));
    CHECK_OK(MPI_Comm_free(&c));
}

/* ---- asking for it ---- */

static void session_with(const char *value, int code)
{
    MPI_Info info;
    MPI_Session s;
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE"));
    CHECK_OK(MPI_Info_set(info, "tern_progress", value));
    int rc = MPI_Session_init(info, MPI_ERRORS_RETURN, &s);
    CHECK(rc == code, "a session with tern_progress %s: code %d", value, rc);
    CHECK_OK(MPI_Info_free(&info));
    if (rc) return;
    CHECK(threads_named("tern-helper") == 1, "%d helpers in a session", threads_named("tern-helper"));
    CHECK_OK(MPI_Session_finalize(&s));
    for (int i = 0; i < 1000 && threads_named("tern-helper"); i++) usleep(1000); /* the system shows it a little longer */
    CHECK(threads_named("tern-helper") == 0, "a helper after the last session");
}

int main(int argc, char **argv)
{
    int placed = !getenv("TEST_APART") || go_apart();
    program = pthread_self();
    for (int i = 0; i < 50; i++) session_with("helper", MPI_SUCCESS);
    session_with("onload", MPI_ERR_INFO_VALUE);
    check_start(&argc, &argv);
    if (!placed) return check_skip("the helper needs a core of its own");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t room = (size_t)PART * (size_t)size > LARGE ? (size_t)PART * (size_t)size : LARGE;
    in = malloc(room);
    out = malloc(room);
    CHECK(threads_named("tern-helper") == 1, "%d helpers", threads_named("tern-helper"));
    ends_by_itself();
    schedules_end_by_themselves();
    users_operator_runs_here();
    errors_are_told_here();
    free(in);
    free(out);
    return check_done();
}
