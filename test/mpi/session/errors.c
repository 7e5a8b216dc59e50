/*
 * errors.c - the error handlers of sessions (MPI-5.0 sections 9.3, 11.3): each session calls its own, with its handle; wrong
 * arguments have the right class; what concerns no object goes to the initial handler, which mpiexec is told to be
 * MPI_ERRORS_RETURN, until MPI_COMM_SELF is there.
 */
#include "alone.h"

static int called[2], last_code[2];
static MPI_Session last_session[2];

static void note(int which, MPI_Session *s, int code)
{
    called[which]++;
    last_session[which] = *s;
    last_code[which] = code;
}
static void note_a(MPI_Session *s, int *code, ...) { note(0, s, *code); }
static void note_b(MPI_Session *s, int *code, ...) { note(1, s, *code); }
static void of_comm(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void own_handlers(void)
{
    MPI_Errhandler h[2], got;
    MPI_Session s[2];
    MPI_Group g;
    CHECK_OK(MPI_Session_create_errhandler(note_a, &h[0]));
    CHECK_OK(MPI_Session_create_errhandler(note_b, &h[1]));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(MPI_Session_init(MPI_INFO_NULL, h[i], &s[i]));
        CHECK_OK(MPI_Session_get_errhandler(s[i], &got));
        CHECK(got == h[i], "session %d has another handler", i);
        CHECK_OK(MPI_Errhandler_free(&got));
        CHECK_OK(MPI_Errhandler_free(&h[i])); /* the session still has it */
    }
    for (int i = 0; i < 2; i++) {
        CHECK_CLASS(MPI_Group_from_session_pset(s[i], "none", &g), MPI_ERR_ARG);
        CHECK(called[i] == 1 && called[!i] == i && last_session[i] == s[i], "session %d: handlers called %d and %d times", i, called[0], called[1]);
    }
    CHECK_OK(MPI_Session_call_errhandler(s[1], 4242));
    CHECK(called[1] == 2 && last_code[1] == 4242, "called by hand: %d times, code %d", called[1], last_code[1]);
    CHECK_OK(MPI_Session_set_errhandler(s[0], MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_Group_from_session_pset(s[0], "none", &g), MPI_ERR_ARG);
    CHECK(called[0] == 1, "a handler that was replaced is called");
    for (int i = 0; i < 2; i++) CHECK_OK(MPI_Session_finalize(&s[i]));
}

/* A session that is not made: the handler given for it is called, and gets the null handle. */
static void handler_of_init(void)
{
    MPI_Errhandler h;
    MPI_Info info;
    MPI_Session s;
    called[0] = 0;
    CHECK_OK(MPI_Session_create_errhandler(note_a, &h));
    CHECK_OK(MPI_Info_create(&info));
    CHECK_OK(MPI_Info_set(info, "thread_level", "NO"));
    CHECK_CLASS(MPI_Session_init(info, h, &s), MPI_ERR_INFO_VALUE);
    CHECK_OK(MPI_Info_delete(info, "thread_level"));
    CHECK_OK(MPI_Info_set(info, "tern_progress", "NO"));
    CHECK_CLASS(MPI_Session_init(info, h, &s), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPI_Session_init((MPI_Info)(void *)h, h, &s), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, h, NULL), MPI_ERR_ARG);
    CHECK(called[0] == 4 && last_session[0] == MPI_SESSION_NULL, "called %d times", called[0]);
    CHECK(s == MPI_SESSION_NULL, "a session that was not made");
    CHECK_OK(MPI_Info_free(&info));
    CHECK_OK(MPI_Errhandler_free(&h));
}

static void says(int rc, const char *a, const char *b)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    CHECK_OK(MPI_Error_string(rc, text, &len));
    CHECK(strstr(text, a) && strstr(text, b), "'%s' lacks '%s' or '%s'", text, a, b);
}

static void wrong(void)
{
    MPI_Session s = alone_session(), over = alone_session(), null = MPI_SESSION_NULL, freed = over;
    MPI_Errhandler h, e;
    int n, *stray = (int *)(uintptr_t)0x123456789abcdef0u;
    char name[8], *buffer;
    MPI_Info info;
    MPI_Group g;
    MPI_Request r;
    MPI_Count size;
    CHECK_OK(MPI_Session_finalize(&over));
    MPI_Session bad[] = {MPI_SESSION_NULL, freed, (MPI_Session)(void *)stray, (MPI_Session)(void *)MPI_INT};
    for (int i = 0; i < 4; i++) {
        MPI_Session b = bad[i];
        CHECK_CLASS(MPI_Session_get_num_psets(b, MPI_INFO_NULL, &n), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_get_nth_pset(b, MPI_INFO_NULL, 0, &n, name), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_get_pset_info(b, "mpi://SELF", &info), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_get_info(b, &info), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Group_from_session_pset(b, "mpi://SELF", &g), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_get_errhandler(b, &h), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_set_errhandler(b, MPI_ERRORS_RETURN), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_call_errhandler(b, 1), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_attach_buffer(b, name, 8), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_attach_buffer_c(b, name, 8), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_detach_buffer(b, &buffer, &n), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_detach_buffer_c(b, &buffer, &size), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_flush_buffer(b), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_iflush_buffer(b, &r), MPI_ERR_SESSION);
        CHECK_CLASS(MPI_Session_finalize(&b), MPI_ERR_SESSION);
    }
    CHECK_CLASS(MPI_Session_finalize(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &null), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Session_init((MPI_Info)(void *)s, MPI_ERRORS_RETURN, &null), MPI_ERR_INFO);
    CHECK_OK(MPI_Comm_create_errhandler(of_comm, &h));
    CHECK_CLASS(MPI_Session_init(MPI_INFO_NULL, h, &null), MPI_ERR_ERRHANDLER); /* for another kind of object */
    CHECK_CLASS(MPI_Session_set_errhandler(s, h), MPI_ERR_ERRHANDLER);
    e = h;
    CHECK_OK(MPI_Errhandler_free(&h));
    CHECK_CLASS(MPI_Session_set_errhandler(s, e), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Session_create_errhandler(NULL, &h), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_create_errhandler(note_a, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_errhandler(s, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_info(s, NULL), MPI_ERR_ARG);
    CHECK(null == MPI_SESSION_NULL, "a failed MPI_Session_init gave something");
    says(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", "MPI_COMM_WORLD, which exists between MPI_Init");
    says(MPI_Group_from_session_pset(s, "no such", &g), "MPI_Group_from_session_pset", "\"no such\"");
    CHECK_OK(MPI_Session_finalize(&s));
}

static void buffers(void)
{
    MPI_Session s = alone_session();
    static char room[10000];
    char *back = NULL;
    int size = 0;
    MPI_Count large = 0;
    MPI_Request r;
    CHECK_CLASS(MPI_Session_detach_buffer(s, &back, &size), MPI_ERR_BUFFER); /* none is there */
    CHECK_CLASS(MPI_Session_flush_buffer(s), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Session_iflush_buffer(s, &r), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Session_attach_buffer(s, room, -1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_attach_buffer(s, NULL, 5), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Session_attach_buffer(s, room, sizeof room));
    CHECK_CLASS(MPI_Session_attach_buffer(s, room, sizeof room), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Session_flush_buffer(s));
    CHECK_OK(MPI_Session_iflush_buffer(s, &r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Session_detach_buffer(s, &back, &size));
    CHECK(back == room && size == sizeof room, "%p of %d bytes came back", (void *)back, size);
    CHECK_OK(MPI_Session_attach_buffer_c(s, MPI_BUFFER_AUTOMATIC, 0));
    CHECK_OK(MPI_Session_detach_buffer_c(s, &back, &large));
    CHECK(back == MPI_BUFFER_AUTOMATIC && large == 0, "%p of %lld bytes came back", (void *)back, (long long)large);
    CHECK_OK(MPI_Session_attach_buffer(s, room, sizeof room)); /* and goes with the session */
    CHECK_OK(MPI_Session_finalize(&s));
}

/* What a session was asked for, and what it gives (11.3.1). */
static void levels(void)
{
    static const char *const names[] = {NULL, "MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
    MPI_Info asked, used = MPI_INFO_NULL;
    MPI_Session s = MPI_SESSION_NULL;
    char value[MPI_MAX_INFO_VAL];
    CHECK_OK(MPI_Info_create(&asked));
    for (int i = 0; i < 5; i++) {
        int flag = 0, len = sizeof value;
        if (names[i]) MPI_Info_set(asked, "thread_level", names[i]);
        CHECK_OK(MPI_Session_init(asked, MPI_ERRORS_RETURN, &s));
        CHECK_OK(MPI_Session_get_info(s, &used));
        CHECK_OK(MPI_Info_get_string(used, "thread_level", &len, value, &flag));
        CHECK(flag && !strcmp(value, names[i] ? names[i] : "MPI_THREAD_MULTIPLE"), "asked for %s, got '%s'", names[i] ? names[i] : "nothing", value);
        len = sizeof value;
        CHECK_OK(MPI_Info_get_string(used, "mpi_memory_alloc_kinds", &len, value, &flag));
        CHECK(flag && strstr(value, "system") && strstr(value, "mpi"), "kinds of memory: '%s'", value);
        MPI_Info_free(&used);
        CHECK_OK(MPI_Session_finalize(&s));
    }
    MPI_Info_set(asked, "thread_level", "MPI_THREAD_PLENTY");
    CHECK_CLASS(MPI_Session_init(asked, MPI_ERRORS_RETURN, &s), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&asked);
}

/* A communicator of a session: buffered sends go through the session's buffer, and fail where that is too small. */
static void buffered_messages(void)
{
    MPI_Session s = alone_session();
    MPI_Group g;
    MPI_Comm c;
    static char room[200 + MPI_BSEND_OVERHEAD], large[sizeof room];
    char *back, in[100], out[100] = "through the session's buffer";
    int size;
    MPI_Group_from_session_pset(s, "mpi://SELF", &g);
    CHECK_OK(MPI_Comm_create_from_group(g, "buffered", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    CHECK_CLASS(MPI_Bsend(out, 100, MPI_CHAR, 0, 0, c), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Session_attach_buffer(s, room, sizeof room));
    CHECK_CLASS(MPI_Bsend(large, sizeof large, MPI_CHAR, 0, 0, c), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Bsend(out, 100, MPI_CHAR, 0, 0, c));
    CHECK_OK(MPI_Recv(in, 100, MPI_CHAR, 0, 0, c, MPI_STATUS_IGNORE));
    CHECK(!memcmp(in, out, 100), "'%.30s' came", in);
    CHECK_OK(MPI_Session_detach_buffer(s, &back, &size));
    CHECK(back == room, "another buffer came back");
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    CHECK_OK(MPI_Session_finalize(&s));
}

int main(void)
{
    alone_start();
    own_handlers();
    handler_of_init();
    wrong();
    buffers();
    levels();
    buffered_messages();
    return alone_done();
}
