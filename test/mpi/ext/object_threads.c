/*
 * object_threads.c - the state of one object, set and read by several threads at the same time (MPI-5.0
 * section 11.6.1): error handlers, names, info objects, hints, attributes, error codes, the commit of a type, an
 * attached buffer. Whatever is read was set by somebody, whole; and nothing is released twice, or never.
 */
#include "../rounds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 4, TURNS = 500 };

static _Atomic long bad; /* in the threads: CHECK is the main thread's */
static MPI_Comm comm;    /* a duplicate of MPI_COMM_SELF, for calls that are collective */

/* Thread 0 does `other`, the rest `work`. */
static void start(void *(*work)(void *), void *(*other)(void *))
{
    pthread_t id[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&id[i], NULL, i ? work : other, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(id[i], NULL);
}

static void all_do(const char *what, void *(*work)(void *), void *(*other)(void *))
{
    start(work, other);
    CHECK(bad == 0, "%s: %ld times wrong", what, (long)bad);
    bad = 0;
}

/* ---- error handlers ---- */

static MPI_Errhandler mine[2], for_session[2];
static MPI_Session session;
static _Atomic long called;

static void on_comm(MPI_Comm *c, int *code, ...)
{
    called++;
    bad += *c != comm || *code != MPI_ERR_RANK;
}

static void on_session(MPI_Session *s, int *code, ...)
{
    called++;
    bad += *s != session || *code != MPI_ERR_ARG;
}

static void *set_handlers(void *number)
{
    for (long i = 0, me = (long)number; i < TURNS; i++) {
        MPI_Errhandler got;
        bad += MPI_Comm_set_errhandler(comm, mine[(i + me) & 1]) != MPI_SUCCESS;
        bad += MPI_Session_set_errhandler(session, for_session[(i + me) & 1]) != MPI_SUCCESS;
        bad += MPI_Comm_get_errhandler(comm, &got) || (got != mine[0] && got != mine[1]) || MPI_Errhandler_free(&got);
        bad += MPI_Session_get_errhandler(session, &got) || (got != for_session[0] && got != for_session[1]) ||
               MPI_Errhandler_free(&got);
    }
    return NULL;
}

/* Calls that fail, while others change what is called then. */
static void *fail(void *number)
{
    MPI_Group g;
    for (int i = 0; i < TURNS; i++) {
        bad += MPI_Send(&i, 1, MPI_INT, 77, 0, comm) != MPI_ERR_RANK;
        bad += MPI_Group_from_session_pset(session, "no://such", &g) != MPI_ERR_ARG;
    }
    return number;
}

/* Freed once more than it is referred to: it is no handler any more. */
static void is_gone(MPI_Errhandler e)
{
    MPI_Errhandler again = e;
    CHECK_OK(MPI_Errhandler_free(&e));
    CHECK_CLASS(MPI_Errhandler_free(&again), MPI_ERR_ERRHANDLER);
}

static void handlers(void)
{
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_create_errhandler(on_comm, &mine[i]);
        MPI_Session_create_errhandler(on_session, &for_session[i]);
    }
    MPI_Comm_set_errhandler(comm, mine[0]);
    MPI_Session_set_errhandler(session, for_session[0]);
    all_do("error handlers", set_handlers, fail);
    CHECK(called == 2 * TURNS, "%ld calls of handlers", (long)called);
    called = 0;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        is_gone(mine[i]);
        is_gone(for_session[i]);
    }
    CHECK_OK(MPI_Session_finalize(&session));
}

/* ---- names ---- */

static MPI_Datatype type, uncommitted;
static const char *const names[2] = {"a name of many letters, which would be torn", "short"};

static int is_name(const char *s, int n)
{
    return (!strcmp(s, names[0]) || !strcmp(s, names[1])) && n == (int)strlen(s);
}

static void *set_names(void *number)
{
    char got[MPI_MAX_OBJECT_NAME];
    int n = -1;
    for (long i = 0, me = (long)number; i < TURNS; i++) {
        MPI_Comm_set_name(comm, names[(i + me) & 1]);
        MPI_Type_set_name(type, names[(i + me) & 1]);
        MPI_Type_set_name(uncommitted, names[(i + me) & 1]);
        bad += MPI_Comm_get_name(comm, got, &n) || !is_name(got, n);
        bad += MPI_Type_get_name(type, got, &n) || !is_name(got, n);
    }
    return NULL;
}

/* The name of the type is in the words of what fails. */
static void *fail_by_name(void *number)
{
    char words[MPI_MAX_ERROR_STRING];
    int n;
    for (int i = 0; i < TURNS; i++) {
        int code = MPI_Send(&i, 1, uncommitted, 0, 0, comm);
        MPI_Error_string(code, words, &n);
        bad += code != MPI_ERR_TYPE || (!strstr(words, names[0]) && !strstr(words, names[1]));
    }
    return number;
}

static void naming(void)
{
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_contiguous(3, MPI_INT, &uncommitted);
    set_names(0);
    all_do("names", set_names, fail_by_name);
    MPI_Type_free(&type);
    MPI_Type_free(&uncommitted);
}

/* ---- an info object, and the hints of a communicator ---- */

static MPI_Info info;

static void *set_info(void *number)
{
    char own[16], key[MPI_MAX_INFO_KEY], value[64];
    for (int i = 0, flag, n = -1, room; i < TURNS; i++) {
        MPI_Info copy;
        snprintf(own, sizeof own, "key%ld", (long)number);
        bad += MPI_Info_set(info, "all", names[i & 1]) || MPI_Info_set(info, own, names[0]);
        room = sizeof value;
        bad += MPI_Info_get_string(info, "all", &room, value, &flag) || !flag || !is_name(value, room - 1);
        bad += MPI_Info_dup(info, &copy) || MPI_Info_get_nkeys(copy, &n) || n < 2 || n > THREADS + 1;
        for (int k = 0; k < n; k++) {
            room = sizeof value;
            bad += MPI_Info_get_nthkey(copy, k, key) || MPI_Info_get_string(copy, key, &room, value, &flag) || !flag;
        }
        bad += MPI_Info_get_nkeys(info, &n) || n < 2 || MPI_Info_get_nthkey(info, 0, key) || strcmp(key, "all");
        bad += MPI_Info_delete(info, own) || MPI_Info_free(&copy);
    }
    return NULL;
}

static const char *const hint[2] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source"};

static void *set_hints(void *number)
{
    for (int i = 0; i < TURNS; i++) {
        MPI_Info set;
        MPI_Info_create(&set);
        for (int k = 0; k < 2; k++) MPI_Info_set(set, hint[k], i & 1 ? "true" : "false");
        bad += MPI_Comm_set_info(comm, set) != MPI_SUCCESS;
        MPI_Info_free(&set);
    }
    return number;
}

/* Both hints were set together. */
static void *get_hints(void *number)
{
    for (int i = 0; i < TURNS; i++) {
        char value[2][8];
        MPI_Info used;
        bad += MPI_Comm_get_info(comm, &used) != MPI_SUCCESS;
        for (int k = 0, flag; k < 2; k++) {
            int room = sizeof value[k];
            bad += MPI_Info_get_string(used, hint[k], &room, value[k], &flag) || !flag;
        }
        bad += strcmp(value[0], value[1]) != 0;
        MPI_Info_free(&used);
    }
    return number;
}

static void infos(void)
{
    MPI_Info_create(&info);
    MPI_Info_set(info, "all", names[0]);
    all_do("info object", set_info, set_info);
    MPI_Info_free(&info);
    all_do("hints", get_hints, set_hints);
}

/* ---- attributes: each value is deleted once ---- */

struct value {
    _Atomic int deleted;
};
static struct value values[2 * THREADS * TURNS + 1];
static _Atomic int used;
static int comm_key, type_key;

static struct value *new_value(void) { return &values[used++]; }

static int delete_value(MPI_Comm c, int key, void *value, void *extra)
{
    struct value *v = value;
    (void)c, (void)key, (void)extra;
    bad += v < values || v >= values + used || v->deleted++;
    return MPI_SUCCESS;
}

static int delete_of_type(MPI_Datatype t, int key, void *value, void *extra)
{
    (void)t;
    return delete_value(MPI_COMM_NULL, key, value, extra);
}

/* Not the value, which may be deleted meanwhile. */
static int copy_of_type(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)key, (void)extra, (void)in;
    *(struct value **)out = new_value();
    *flag = 1;
    return MPI_SUCCESS;
}

static void *set_attributes(void *number)
{
    for (int i = 0, flag; i < TURNS / 2; i++) {
        void *got;
        bad += MPI_Comm_set_attr(comm, comm_key, new_value()) != MPI_SUCCESS;
        bad += MPI_Comm_get_attr(comm, comm_key, &got, &flag) ||
               (flag && ((struct value *)got < values || (struct value *)got >= values + used));
        int code = i % 3 ? MPI_SUCCESS : MPI_Comm_delete_attr(comm, comm_key);
        bad += code != MPI_SUCCESS && code != MPI_ERR_KEYVAL; /* another thread was faster */
        bad += MPI_Type_set_attr(type, type_key, new_value()) != MPI_SUCCESS;
    }
    return number;
}

static void *dup_types(void *number)
{
    for (int i = 0; i < TURNS; i++) {
        MPI_Datatype dup;
        bad += MPI_Type_dup(type, &dup) || MPI_Type_free(&dup);
    }
    return number;
}

static void attributes(void)
{
    memset(values, 0, sizeof values);
    used = 0;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_value, &comm_key, NULL);
    MPI_Type_create_keyval(copy_of_type, delete_of_type, &type_key, NULL);
    MPI_Comm_set_attr(comm, comm_key, new_value());
    all_do("attributes", set_attributes, dup_types);
    MPI_Comm_set_attr(comm, comm_key, new_value());
    CHECK_OK(MPI_Comm_delete_attr(comm, comm_key));
    CHECK_OK(MPI_Type_free(&type));
    int left = 0;
    for (int i = 0; i < used; i++) left += values[i].deleted != 1;
    CHECK(left == 0, "%d values of %d were not deleted", left, used);
    MPI_Comm_free_keyval(&comm_key);
    MPI_Type_free_keyval(&type_key);
}

/* ---- keys, error codes, groups and operators come and go ---- */

static void sum(void *in, void *inout, int *n, MPI_Datatype *t)
{
    (void)t;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void *come_and_go(void *number)
{
    char words[MPI_MAX_ERROR_STRING];
    for (int i = 0, class, code, key, n; i < TURNS / 2; i++) {
        int a = 2, b = 3;
        MPI_Op op;
        MPI_Group world, one;
        bad += MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL) ||
               MPI_Comm_free_keyval(&key);
        bad +=
            MPI_Add_error_class(&class) || MPI_Add_error_code(class, &code) || MPI_Add_error_string(code, names[i & 1]);
        bad += MPI_Error_string(code, words, &n) || strcmp(words, names[i & 1]);
        bad += MPI_Remove_error_string(code) || MPI_Remove_error_code(code) || MPI_Remove_error_class(class);
        bad += MPI_Op_create(sum, 1, &op) || MPI_Reduce_local(&a, &b, 1, MPI_INT, op) || b != 5 || MPI_Op_free(&op);
        bad += MPI_Comm_group(MPI_COMM_WORLD, &world) || MPI_Group_incl(world, 1, &check_rank, &one) ||
               MPI_Group_free(&world) || MPI_Group_rank(one, &n) || n != 0 || MPI_Group_free(&one);
    }
    return number;
}

/* ---- one type is committed, and others are made of it ---- */

static void *commit(void *number)
{
    MPI_Datatype t = type, pair, dup;
    int size = -1;
    bad += MPI_Type_contiguous(2, type, &pair) || MPI_Type_dup(type, &dup);
    bad += MPI_Type_commit(&t) || t != type || MPI_Type_commit(&pair) || MPI_Type_commit(&dup);
    bad += MPI_Type_size(pair, &size) || size != 2 * 40 * (int)sizeof(int);
    int in[160] = {0}, out[160], tag = (int)(long)number;
    for (int i = 0; i < 160; i++) out[i] = i;
    bad += MPI_Sendrecv(out, 1, pair, 0, tag, in, 1, dup, 0, tag + THREADS, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    bad += MPI_Type_free(&pair) || MPI_Type_free(&dup);
    return number;
}

/* Each thread sends two elements, and receives one. */
static void commits(void)
{
    static int sent[THREADS][40], got[THREADS][80];
    for (int i = 0; i < 20; i++) {
        MPI_Request r[2 * THREADS];
        MPI_Type_vector(20, 2, 3, MPI_INT, &type);
        for (int t = 0; t < THREADS; t++) {
            MPI_Irecv(got[t], 80, MPI_INT, 0, t, comm, &r[t]);
            MPI_Isend(sent[t], 40, MPI_INT, 0, t + THREADS, comm, &r[THREADS + t]);
        }
        start(commit, commit);
        MPI_Waitall(2 * THREADS, r, MPI_STATUSES_IGNORE);
        for (int t = 0; t < THREADS; t++) bad += got[t][0] != 0 || got[t][1] != 1 || got[t][2] != 3 || got[t][39] != 58;
        CHECK_OK(MPI_Type_free(&type));
    }
    CHECK(bad == 0, "commit: %ld times wrong", (long)bad);
    bad = 0;
}

/* ---- a buffer is attached and detached ---- */

/* Memory is attached again only when the call that has detached it has returned: until then a message may lie in it. So it
 * belongs to the thread of that call, which may not be the one that has attached it. */
static char buffer[THREADS][2 * (1000 + MPI_BSEND_OVERHEAD)];

static bool is_buffer(const void *p)
{
    bool is = false;
    for (int i = 0; i < THREADS; i++) is |= p == buffer[i];
    return is;
}

static void *attach(void *number)
{
    void *own[THREADS] = {buffer[(long)number]}, *was;
    for (int i = 0, n = 1, size; i < TURNS / 2; i++) {
        int code = n ? MPI_Comm_attach_buffer(comm, own[n - 1], sizeof buffer[0]) : MPI_ERR_BUFFER;
        bad += code != MPI_SUCCESS && code != MPI_ERR_BUFFER; /* another thread's is there */
        n -= !code;
        code = MPI_Comm_detach_buffer(comm, &was, &size);
        bad += code ? code != MPI_ERR_BUFFER : !is_buffer(was) || size != (int)sizeof buffer[0];
        if (!code) own[n++] = was;
    }
    return number;
}

static void *send_buffered(void *number)
{
    char out[1000], in[1000];
    for (int i = 0; i < TURNS; i++) {
        memset(out, i, sizeof out);
        int code = MPI_Bsend(out, sizeof out, MPI_CHAR, 0, 9, comm);
        bad += code != MPI_SUCCESS && code != MPI_ERR_BUFFER;
        if (code) continue;
        MPI_Recv(in, sizeof in, MPI_CHAR, 0, 9, comm, MPI_STATUS_IGNORE);
        bad += memcmp(in, out, sizeof in) != 0;
    }
    return number;
}

static char large[(1 << 20) + 4 * MPI_BSEND_OVERHEAD];

static void *detach(void *size)
{
    void *was;
    if (MPI_Comm_detach_buffer(comm, &was, size) || was != large) bad++;
    return NULL;
}

/* The memory is the library's until MPI_Comm_detach_buffer returns. */
static void attached_anew_while_it_is_detached(void)
{
    static char in[1 << 20];
    int size = 0, code;
    pthread_t other;
    CHECK(MPI_Comm_attach_buffer(comm, large, sizeof large) == MPI_SUCCESS, "attached");
    CHECK(MPI_Bsend(in, sizeof in, MPI_CHAR, 0, 10, comm) == MPI_SUCCESS, "a large message is sent");
    pthread_create(&other, NULL, detach, &size);
    while ((code = MPI_Bsend(in, 1, MPI_CHAR, 0, 11, comm)) == MPI_SUCCESS)
        MPI_Recv(in, 1, MPI_CHAR, 0, 11, comm, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_BUFFER, "code %d", code); /* the other thread detaches */
    code = MPI_Comm_attach_buffer(comm, large, sizeof large);
    CHECK(code == MPI_ERR_BUFFER, "attached in between: code %d", code);
    MPI_Recv(in, sizeof in, MPI_CHAR, 0, 10, comm, MPI_STATUS_IGNORE);
    pthread_join(other, NULL);
    CHECK(bad == 0 && size == (int)sizeof large, "detached, %d bytes", size);
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double end = rounds_end(argc, argv);
    do {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        handlers();
        naming();
        infos();
        attributes();
        all_do("what comes and goes", come_and_go, come_and_go);
        commits();
        all_do("attached buffer", attach, send_buffered);
        attached_anew_while_it_is_detached();
        CHECK_OK(MPI_Comm_free(&comm));
    } while (rounds_more(end));
    return check_done();
}
