/*
 * second.c - MPI_THREAD_MULTIPLE: one thread of each rank calls MPI for a while, as if it were the only one, and then a
 * second one comes. SECOND says where the first one is then:
 *
 *     computes    in no call
 *     sends       in MPI_Send, most of the time, again and again
 *     receives    in MPI_Recv, asleep or not, for a message that a second thread sends, of this rank or another one
 *     collective  in a collective operation that cannot end before second threads have come
 *     callback    in a function of the program's that the library calls, where it waits for the second thread
 *     session     as `computes`; all is done in a session of the first thread's
 *     other       as `computes`; the first thread is not the one that main runs in
 *
 * The second thread's first call is any that a thread may begin with: each rank takes another one, from SECOND_CALL on,
 * by default any. Then both threads do the same things on communicators of their own and on shared ones, and a third
 * one comes.
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

/* ---- checks, by any thread ---- */

static pthread_mutex_t checks = PTHREAD_MUTEX_INITIALIZER;

static void right_value(int line, bool is)
{
    pthread_mutex_lock(&checks);
    CHECK(is, "in line %d", line);
    pthread_mutex_unlock(&checks);
}

static void right_code(int line, int code) { right_value(line, code == MPI_SUCCESS); }

static void right_class(int line, int code, int class)
{
    int is = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &is);
    right_value(line, is == class);
}

/* ---- first calls: each has done what it should when it returns ---- */

static int word_in, word_out;

static void by_send(void)
{
    right_code(__LINE__, MPI_Send(&word_out, 1, MPI_INT, right, TAG, own[1]));
    right_code(__LINE__, MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
}
static void by_isend(void)
{
    MPI_Request r;
    right_code(__LINE__, MPI_Isend(&word_out, 1, MPI_INT, right, TAG, own[1], &r));
    right_code(__LINE__, MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
    right_code(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE));
}
static void by_irecv(void)
{
    MPI_Request r;
    right_code(__LINE__, MPI_Irecv(&word_in, 1, MPI_INT, left, TAG, own[1], &r));
    right_code(__LINE__, MPI_Send(&word_out, 1, MPI_INT, right, TAG, own[1]));
    right_code(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE));
}
static void by_sendrecv(void)
{
    right_code(__LINE__, MPI_Sendrecv(&word_out, 1, MPI_INT, right, TAG, &word_in, 1, MPI_INT, left, TAG, own[1],
                                      MPI_STATUS_IGNORE));
}
static void by_test(void)
{
    int done = 1;
    right_code(__LINE__, MPI_Test(&early, &done, MPI_STATUS_IGNORE));
    right_value(__LINE__, !done);
    by_send();
}
static void by_testall(void)
{
    int done = 1;
    right_code(__LINE__, MPI_Testall(1, &early, &done, MPI_STATUSES_IGNORE));
    right_value(__LINE__, !done);
    by_send();
}
static void by_nothing(void)
{
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    right_code(__LINE__, MPI_Waitall(2, none, MPI_STATUSES_IGNORE));
    by_send();
}
static void by_iprobe(void)
{
    int found;
    right_code(__LINE__, MPI_Iprobe(left, TAG, own[1], &found, MPI_STATUS_IGNORE));
    by_send();
}
static void by_proc_null(void)
{
    right_code(__LINE__, MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, TAG, own[1]));
    by_send();
}
static void by_size(void)
{
    int size;
    right_code(__LINE__, MPI_Type_size(MPI_DOUBLE, &size));
    right_value(__LINE__, size == 8);
    by_send();
}
static void by_info(void)
{
    MPI_Info info;
    right_code(__LINE__, MPI_Info_create(&info));
    right_code(__LINE__, MPI_Info_set(info, "key", "value"));
    right_code(__LINE__, MPI_Info_free(&info));
    by_send();
}
static void by_keyval(void)
{
    int key;
    right_code(__LINE__, MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    right_code(__LINE__, MPI_Comm_free_keyval(&key));
    by_send();
}
static void by_buffer(void)
{
    void *was;
    int size;
    right_code(__LINE__, MPI_Buffer_attach(attached, sizeof attached));
    right_code(__LINE__, MPI_Bsend(&word_out, 1, MPI_INT, right, TAG, own[1]));
    right_code(__LINE__, MPI_Recv(&word_in, 1, MPI_INT, left, TAG, own[1], MPI_STATUS_IGNORE));
    right_code(__LINE__, MPI_Buffer_detach(&was, &size));
    right_value(__LINE__, size == (int)sizeof attached);
}
static void by_memory(void)
{
    char *p;
    right_code(__LINE__, MPI_Alloc_mem(100000, MPI_INFO_NULL, &p));
    memset(p, 1, 100000);
    right_code(__LINE__, MPI_Free_mem(p));
    by_send();
}
static void by_mistake(void)
{
    right_class(__LINE__, MPI_Send(&word_out, -1, MPI_INT, right, TAG, own[1]), MPI_ERR_COUNT);
    by_send();
}
static void by_stray_handle(void)
{
    MPI_Request r = (MPI_Request)(void *)&r;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    right_class(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    by_send();
}
static void by_op(void)
{
    MPI_Op op;
    right_code(__LINE__, MPI_Op_create((MPI_User_function *)(void *)by_send, 1, &op)); /* never called */
    right_code(__LINE__, MPI_Op_free(&op));
    by_send();
}
static void by_level(void)
{
    int level, is_main = 1;
    if (world == MPI_COMM_WORLD) {
        right_code(__LINE__, MPI_Query_thread(&level));
        right_value(__LINE__, level == MPI_THREAD_MULTIPLE);
        right_code(__LINE__, MPI_Is_thread_main(&is_main));
        right_value(__LINE__, !is_main);
    }
    by_send();
}
static void by_grequest(void)
{
    MPI_Request r;
    right_code(__LINE__, MPI_Grequest_start(NULL, NULL, NULL, NULL, &r));
    right_code(__LINE__, MPI_Grequest_complete(r));
    right_code(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE));
    by_send();
}
static void by_session(void)
{
    MPI_Session s;
    right_code(__LINE__, MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    right_code(__LINE__, MPI_Session_finalize(&s));
    by_send();
}

static void (*const first_calls[])(void) = {
    by_send,    by_isend,        by_irecv, by_sendrecv, by_test,     by_testall, by_nothing,
    by_iprobe,  by_proc_null,    by_size,  by_info,     by_keyval,   by_buffer,  by_memory,
    by_mistake, by_stray_handle, by_op,    by_level,    by_grequest, by_session,
};
enum { FIRST_CALLS = sizeof first_calls / sizeof *first_calls };

static void first_call(void)
{
    const char *wish = getenv("SECOND_CALL");
    unsigned from = wish ? (unsigned)atoi(wish) : (unsigned)(seed % FIRST_CALLS);
    unsigned which = (from + (unsigned)check_rank) % FIRST_CALLS;
    if (first_calls[which] == by_stray_handle && world != MPI_COMM_WORLD)
        which = 0; /* its error goes to MPI_COMM_SELF */
    word_out = 4711 + check_rank;
    first_calls[which]();
    right_value(__LINE__, word_in == 4711 + left);
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
    for (; !atomic_load(&second_came) && n < most; n++)
        right_code(__LINE__, MPI_Send(&n, 1, MPI_LONG, right, TAG + 2, world));
    end_second();
    long last = -1;
    right_code(__LINE__, MPI_Send(&last, 1, MPI_LONG, right, TAG + 2, world));
    for (n = 0;; n++) {
        right_code(__LINE__, MPI_Recv(&got, 1, MPI_LONG, left, TAG + 2, world, MPI_STATUS_IGNORE));
        if (got != n) break;
    }
    right_value(__LINE__, got == -1);
}

static void send_to_all(void)
{
    for (int r = 0; r < check_size; r++) right_code(__LINE__, MPI_Send(&check_rank, 1, MPI_INT, r, TAG + 1, world));
}

static void receives(void)
{
    errand = send_to_all;
    begin_second();
    for (int r = 0; r < check_size; r++) {
        int from = -1;
        right_code(__LINE__, MPI_Recv(&from, 1, MPI_INT, r, TAG + 1, world, MPI_STATUS_IGNORE));
        right_value(__LINE__, from == r);
    }
    end_second();
}

static void send_to_first(void) { right_code(__LINE__, MPI_Send(&check_rank, 1, MPI_INT, 0, TAG + 1, world)); }

/* The first rank comes to the operation when it has heard of all second threads. */
static void collective(void)
{
    static long many[LARGE / 8];
    long mine = check_rank, sum = -1;
    MPI_Comm made = MPI_COMM_NULL;
    errand = send_to_first;
    begin_second();
    for (int r = 0, from; r < check_size && check_rank == 0; r++)
        right_code(__LINE__, MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 1, world, MPI_STATUS_IGNORE));
    switch (seed % 5) {
    case 0:
        right_code(__LINE__, MPI_Barrier(own[0]));
        break;
    case 1:
        right_code(__LINE__, MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, own[0]));
        right_value(__LINE__, sum == (long)check_size * (check_size - 1) / 2);
        break;
    case 2:
        for (int i = 0; i < LARGE / 8; i++) many[i] = check_rank ? 0 : i;
        right_code(__LINE__, MPI_Bcast(many, LARGE / 8, MPI_LONG, 0, own[0]));
        right_value(__LINE__, many[LARGE / 8 - 1] == LARGE / 8 - 1);
        break;
    case 3:
        right_code(__LINE__, MPI_Comm_dup(own[0], &made));
        right_code(__LINE__, MPI_Comm_free(&made));
        break;
    case 4: {
        MPI_Request r;
        right_code(__LINE__, MPI_Ibarrier(own[0], &r));
        right_code(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE));
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
static int delete (MPI_Comm c, int key, void *value, void *extra)
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
    right_code(__LINE__, MPI_Comm_dup(world, &with));
    right_code(__LINE__, MPI_Comm_create_keyval(copy_fn, delete_fn, &key, NULL));
    right_code(__LINE__, MPI_Comm_set_attr(with, key, NULL));
    right_code(__LINE__, MPI_Comm_dup(with, &made));
    right_code(__LINE__, MPI_Comm_free(&made));
    right_code(__LINE__, MPI_Comm_free(&with));
    right_code(__LINE__, MPI_Comm_free_keyval(&key));
}

static void callback(void)
{
    MPI_Errhandler handler;
    MPI_Request r;
    switch (seed % 4) {
    case 0:
        attribute(copy, keep);
        break;
    case 1:
        attribute(MPI_COMM_NULL_COPY_FN, delete);
        break;
    case 2:
        right_code(__LINE__, MPI_Comm_create_errhandler(handle_error, &handler));
        right_code(__LINE__, MPI_Comm_set_errhandler(own[0], handler));
        right_code(__LINE__, MPI_Errhandler_free(&handler));
        right_class(__LINE__, MPI_Send(&check_rank, -1, MPI_INT, right, TAG, own[0]), MPI_ERR_COUNT);
        break;
    case 3:
        right_code(__LINE__, MPI_Grequest_start(query, release, cancel, NULL, &r));
        right_code(__LINE__, MPI_Grequest_complete(r));
        right_code(__LINE__, MPI_Wait(&r, MPI_STATUS_IGNORE));
        break;
    }
    right_value(__LINE__, atomic_load(&second_came));
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
    } places[] = {{"computes", computes}, {"sends", sends},      {"receives", receives}, {"collective", collective},
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
