/*
 * second.c - MPI_THREAD_MULTIPLE: one thread of each rank calls MPI for a while, as if it were the only one, and then a second
 * one comes. SECOND says where the first one is then:
 *
 *     computes    in no call
 *     sends       in MPI_Send, most of the time, again and again
 *     receives    in MPI_Recv, asleep or not, for a message that a second thread sends, of this rank or another one
 *     collective  in a collective operation that cannot end before second threads have come
 *     callback    in a function of the program's that the library calls, where it waits for the second thread
 *     session     as `computes`; all is done in a session of the first thread's
 *     other       as `computes`; the first thread is not the one that main runs in
 *
 * The second thread's first call is any that a thread may begin with: each rank takes another one, from SECOND_CALL on, by
 * default any. Then both threads do the same things on communicators of their own and on shared ones, and a third one comes.
 */
#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { TAG = 5, LARGE = 200000, ROUNDS = 20, THREADS = 3 };

static uint64_t seed;
static int left, right;
static MPI_Comm world;        /* MPI_COMM_WORLD, or the session's: shared by all threads */
static MPI_Comm own[THREADS]; /* a duplicate for each thread */
static MPI_Request early;     /* a receive that the first thread has posted */
static int early_in;
static char attached[1 << 16];

/* ---- first calls: each has done what it should when it returns ---- */

static int word_in, word_out;

static void by_send(void)
{
    CHECK_OK(MPI_Send(&word_out, 1, MPI_INT, right, TAG, own[1]));
    CHECK_OK(MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
}
static void by_isend(void)
{
    MPI_Request r;
    CHECK_OK(MPI_Isend(&word_out, 1, MPI_INT, right, TAG, own[1], &r));
    CHECK_OK(MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}
static void by_irecv(void)
{
    MPI_Request r;
    CHECK_OK(MPI_Irecv(&word_in, 1, MPI_INT, left, TAG, own[1], &r));
    CHECK_OK(MPI_Send(&word_out, 1, MPI_INT, right, TAG, own[1]));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}
static void by_sendrecv(void)
{
    CHECK_OK(MPI_Sendrecv(&word_out, 1, MPI_INT, right, TAG, &word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
}
static void by_test(void)
{
    int done = 1;
    CHECK_OK(MPI_Test(&early, &done, MPI_STATUS_IGNORE));
    CHECK(!done, "a receive of a message that nobody has sent is complete");
    by_send();
}
static void by_testall(void)
{
    int done = 1;
    CHECK_OK(MPI_Testall(1, &early, &done, MPI_STATUSES_IGNORE));
    CHECK(!done, "a receive of a message that nobody has sent is complete");
    by_send();
}
static void by_nothing(void)
{
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    CHECK_OK(MPI_Waitall(2, none, MPI_STATUSES_IGNORE));
    by_send();
}
static void by_iprobe(void)
{
    int found;
    CHECK_OK(MPI_Iprobe(left, TAG, own[1], &found, MPI_STATUS_IGNORE));
    by_send();
}
static void by_proc_null(void)
{
    CHECK_OK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, TAG, own[1]));
    by_send();
}
static void by_size(void)
{
    int size;
    CHECK_OK(MPI_Type_size(MPI_DOUBLE, &size));
    CHECK(size == 8, "MPI_DOUBLE has %d bytes", size);
    by_send();
}
static void by_info(void)
{
    MPI_Info info;
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "key", "value"));
    CHECK_OK(MPI_Info_free(&info));
    by_send();
}
static void by_keyval(void)
{
    int key;
    CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    CHECK_OK(MPI_Comm_free_keyval(&key));
    by_send();
}
static void by_buffer(void)
{
    void *was;
    int size;
    CHECK_OK(MPI_Buffer_attach(attached, sizeof attached));
    CHECK_OK(MPI_Bsend(&word_out, 1, MPI_INT, right, TAG, own[1]));
    CHECK_OK(MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Buffer_detach(&was, &size));
    CHECK(size == (int)sizeof attached, "the buffer had %d bytes", size);
}
static void by_memory(void)
{
    char *p;
    CHECK_OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &p));
    memset(p, 1, 100000);
    CHECK_OK(MPI_Free_mem(p));
    by_send();
}
static void by_mistake(void)
{
    CHECK_CLASS(MPI_Send(&word_out, -1, MPI_INT, right, TAG, own[1]), MPI_ERR_COUNT);
    by_send();
}
static void by_stray_handle(void)
{
    MPI_Request r = (MPI_Request)(void *)&r;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    by_send();
}
static void by_op(void)
{
    MPI_Op op;
    CHECK_OK(MPI_Op_create((MPI_User_function *)(void *)by_send, 1, &op)); /* never called */
    CHECK_OK(MPI_Op_free(&op));
    by_send();
}
static void by_level(void)
{
    int level, is_main = 1;
    if (world == MPI_COMM_WORLD) {
        CHECK_OK(MPI_Query_thread(&level));
        CHECK(level == MPI_THREAD_MULTIPLE, "the level is %d", level);
        CHECK_OK(MPI_Is_thread_main(&is_main));
        CHECK(!is_main, "the second thread is the main thread");
    }
    by_send();
}
static void by_grequest(void)
{
    MPI_Request r;
    CHECK_OK(MPI_Grequest_start(NULL, NULL, NULL, NULL, &r));
    CHECK_OK(MPI_Grequest_complete(r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    by_send();
}
static void by_session(void)
{
    MPI_Session s;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    CHECK_OK(MPI_Session_finalize(&s));
    by_send();
}

static void (*const first_calls[])(void) = {
    by_send,   by_isend,  by_irecv, by_sendrecv, by_test,    by_testall,      by_nothing, by_iprobe, by_proc_null, by_size,
    by_info,   by_keyval, by_buffer, by_memory,   by_mistake, by_stray_handle, by_op,      by_level,  by_grequest,  by_session,
};
enum { FIRST_CALLS = sizeof first_calls / sizeof *first_calls };

static void first_call(void)
{
    const char *wish = getenv("SECOND_CALL");
    unsigned from = wish ? (unsigned)atoi(wish) : (unsigned)(seed % FIRST_CALLS);
    unsigned which = (from + (unsigned)check_rank) % FIRST_CALLS;
    if (first_calls[which] == by_stray_handle && world != MPI_COMM_WORLD) which = 0; /* its error goes to MPI_COMM_SELF */
    word_out = 4711 + check_rank;
    first_calls[which]();
    CHECK(word_in == 4711 + left, "by first call %u: %d", which, word_in);
}

/* ---- what all threads do ---- */

static long wrong(const char *what, int round, bool is)
{
    if (is) fprintf(stderr, "rank %d: %s: round %d: wrong\n", check_rank, what, round);
    return is;
}

/* Number `me` of the threads, in a ring with those of the other ranks. How much was wrong. */
static long work(int me)
{
    static const int lengths[] = {0, 8, 3000, 40000, LARGE};
    char *in = malloc(LARGE), *out = malloc(LARGE);
    long bad = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request r[4];
        MPI_Comm made;
        long mine = check_rank + i, sum = -1, total = 0;
        int n = lengths[i % 5], tag = 100 + me;
        check_fill(out, (size_t)n, (uint64_t)(check_rank * 10 + me));
        MPI_Irecv(in, n, MPI_BYTE, left, tag, world, &r[0]);
        MPI_Isend(out, n, MPI_BYTE, right, tag, world, &r[1]);
        MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, own[me], &r[2]);
        MPI_Ibarrier(own[me], &r[3]);
        bad += wrong("MPI_Waitall", i, MPI_Waitall(4, r, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
        for (int k = 0; k < check_size; k++) total += k + i;
        bad += wrong("MPI_Iallreduce", i, sum != total);
        bad += wrong("messages", i, check_differ(in, (size_t)n, (uint64_t)(left * 10 + me)));
        MPI_Send(&mine, 1, MPI_LONG, right, tag, own[me]);
        MPI_Recv(&sum, 1, MPI_LONG, left, tag, own[me], MPI_STATUS_IGNORE);
        bad += wrong("MPI_Recv", i, sum != left + i);
        MPI_Comm_dup(own[me], &made);
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, made);
        bad += wrong("MPI_Allreduce", i, sum != total);
        MPI_Comm_free(&made);
    }
    free(in);
    free(out);
    return bad;
}

static void *third(void *bad)
{
    *(long *)bad = work(2);
    return NULL;
}

/* ---- the second thread ---- */

static pthread_t second_id;
static atomic_int second_came;
static int nap_us;
static void (*errand)(void); /* of the second thread, once it has come */
static long second_bad;

static void *come(void *nothing)
{
    if (nap_us) nanosleep(&(struct timespec){.tv_nsec = nap_us * 1000L}, NULL);
    first_call();
    if (errand) errand();
    atomic_store(&second_came, 1);
    return nothing;
}

/* The thread that came first may end, and another one go on for it. */
static void *go_on(void *nothing)
{
    second_bad = work(1);
    return nothing;
}

static void begin_second(void) { pthread_create(&second_id, NULL, come, NULL); }
static void end_second(void) { pthread_join(second_id, NULL); }

/* ---- where the first one is ---- */

static void computes(void)
{
    begin_second();
    while (!atomic_load(&second_came)) continue;
    end_second();
}

/* Messages to the next rank, whose first thread receives them when its second one has come. */
static void sends(void)
{
    long n = 0, got = -1;
    int most = 3000;
    begin_second();
    for (; !atomic_load(&second_came) && n < most; n++) CHECK_OK(MPI_Send(&n, 1, MPI_LONG, right, TAG + 2, world));
    end_second();
    long last = -1;
    CHECK_OK(MPI_Send(&last, 1, MPI_LONG, right, TAG + 2, world));
    for (n = 0;; n++) {
        CHECK_OK(MPI_Recv(&got, 1, MPI_LONG, left, TAG + 2, world, MPI_STATUS_IGNORE));
        if (got != n) break;
    }
    CHECK(got == -1, "message %ld is %ld", n, got);
}

static void send_to_all(void)
{
    for (int r = 0; r < check_size; r++) CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, r, TAG + 1, world));
}

static void receives(void)
{
    errand = send_to_all;
    begin_second();
    for (int r = 0; r < check_size; r++) {
        int from = -1;
        CHECK_OK(MPI_Recv(&from, 1, MPI_INT, r, TAG + 1, world, MPI_STATUS_IGNORE));
        CHECK(from == r, "%d from rank %d", from, r);
    }
    end_second();
}

static void send_to_first(void) { CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, 0, TAG + 1, world)); }

/* The first rank comes to the operation when it has heard of all second threads. */
static void collective(void)
{
    static long many[LARGE / 8];
    long mine = check_rank, sum = -1;
    MPI_Comm made = MPI_COMM_NULL;
    errand = send_to_first;
    begin_second();
    for (int r = 0, from; r < check_size && check_rank == 0; r++)
        CHECK_OK(MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 1, world, MPI_STATUS_IGNORE));
    switch (seed % 5) {
    case 0: CHECK_OK(MPI_Barrier(own[0])); break;
    case 1:
        CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, own[0]));
        CHECK(sum == (long)check_size * (check_size - 1) / 2, "MPI_Allreduce: %ld", sum);
        break;
    case 2:
        for (int i = 0; i < LARGE / 8; i++) many[i] = check_rank ? 0 : i;
        CHECK_OK(MPI_Bcast(many, LARGE / 8, MPI_LONG, 0, own[0]));
        CHECK(many[LARGE / 8 - 1] == LARGE / 8 - 1, "MPI_Bcast: %ld", many[LARGE / 8 - 1]);
        break;
    case 3:
        CHECK_OK(MPI_Comm_dup(own[0], &made));
        CHECK_OK(MPI_Comm_free(&made));
        break;
    case 4: {
        MPI_Request r;
        CHECK_OK(MPI_Ibarrier(own[0], &r));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        break;
    }
    }
    end_second();
}

/* ---- in a callback ---- */

static void meet_second(void)
{
    begin_second();
    end_second();
}

static int copy(MPI_Comm c, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)c, (void)key, (void)extra;
    *(void **)copied = value;
    *flag = 1;
    meet_second();
    return MPI_SUCCESS;
}
static int delete(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)extra, (void)value;
    meet_second();
    return MPI_SUCCESS;
}
static int keep(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)extra, (void)value;
    return MPI_SUCCESS;
}
static void handle_error(MPI_Comm *c, int *code, ...)
{
    (void)c, (void)code;
    meet_second();
}
static int query(void *extra, MPI_Status *st)
{
    (void)extra;
    MPI_Status_set_cancelled(st, 0);
    meet_second();
    return MPI_SUCCESS;
}
static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}
static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void attribute(MPI_Comm_copy_attr_function *copy_fn, MPI_Comm_delete_attr_function *delete_fn)
{
    MPI_Comm with, made = MPI_COMM_NULL;
    int key;
    CHECK_OK(MPI_Comm_dup(world, &with));
    CHECK_OK(MPI_Comm_create_keyval(copy_fn, delete_fn, &key, NULL));
    CHECK_OK(MPI_Comm_set_attr(with, key, NULL));
    CHECK_OK(MPI_Comm_dup(with, &made));
    CHECK_OK(MPI_Comm_free(&made));
    CHECK_OK(MPI_Comm_free(&with));
    CHECK_OK(MPI_Comm_free_keyval(&key));
}

static void callback(void)
{
    MPI_Errhandler handler;
    MPI_Request r;
    switch (seed % 4) {
    case 0: attribute(copy, keep); break;
    case 1: attribute(MPI_COMM_NULL_COPY_FN, delete); break;
    case 2:
        CHECK_OK(MPI_Comm_create_errhandler(handle_error, &handler));
        CHECK_OK(MPI_Comm_set_errhandler(own[0], handler));
        CHECK_OK(MPI_Errhandler_free(&handler));
        CHECK_CLASS(MPI_Send(&check_rank, -1, MPI_INT, right, TAG, own[0]), MPI_ERR_COUNT);
        break;
    case 3:
        CHECK_OK(MPI_Grequest_start(query, release, cancel, NULL, &r));
        CHECK_OK(MPI_Grequest_complete(r));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        break;
    }
    CHECK(atomic_load(&second_came), "the callback was not called");
}

/* ---- */

static MPI_Session session;

static void open_world(bool by_session)
{
    MPI_Group group;
    world = MPI_COMM_WORLD;
    if (!by_session) return;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    CHECK_OK(MPI_Comm_create_from_group(group, "second", MPI_INFO_NULL, MPI_ERRORS_RETURN, &world));
    CHECK_OK(MPI_Group_free(&group));
}

static void alone(void)
{
    for (int i = 0; i < 3; i++) {
        long bad = work(0);
        CHECK(!bad, "one thread: %ld failures", bad);
    }
}

static void meet(const char *where)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } places[] = {{"computes", computes}, {"sends", sends},       {"receives", receives}, {"collective", collective},
                  {"callback", callback}, {"session", computes}, {"other", computes}};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(where, places[i].name)) places[i].run();
    CHECK(atomic_load(&second_came), "no second thread has come: SECOND=%s", where);
}

static void together(void)
{
    long mine, of_third = -1;
    pthread_t id;
    pthread_create(&second_id, NULL, go_on, NULL);
    pthread_create(&id, NULL, third, &of_third);
    mine = work(0);
    end_second();
    pthread_join(id, NULL);
    CHECK(!mine && !second_bad && !of_third, "%ld, %ld and %ld failures", mine, second_bad, of_third);
}

static int run(int argc, char **argv, const char *where)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    seed = check_seed();
    nap_us = seed % 3 ? (int)(seed % 50000) : 0;
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    open_world(!strcmp(where, "session"));
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(world, &own[i]);
        MPI_Comm_set_errhandler(own[i], MPI_ERRORS_RETURN);
    }
    CHECK_OK(MPI_Irecv(&early_in, 1, MPI_INT, left, TAG + 3, own[1], &early));
    alone();
    meet(where);
    together();
    CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, right, TAG + 3, own[1]));
    CHECK_OK(MPI_Wait(&early, MPI_STATUS_IGNORE));
    CHECK(early_in == left, "%d of rank %d", early_in, left);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&own[i]);
    if (!strcmp(where, "session")) {
        MPI_Comm_free(&world);
        CHECK_OK(MPI_Session_finalize(&session));
    }
    return check_done();
}

struct program {
    int argc;
    char **argv;
    int code;
};

static void *run_apart(void *arg)
{
    struct program *p = arg;
    p->code = run(p->argc, p->argv, "other");
    return NULL;
}

int main(int argc, char **argv)
{
    const char *where = getenv("SECOND");
    struct program p = {argc, argv, 1};
    pthread_t id;
    if (!where || strcmp(where, "other")) return run(argc, argv, where ? where : "computes");
    pthread_create(&id, NULL, run_apart, &p);
    pthread_join(id, NULL);
    return p.code;
}
