/*
 * handles.c - handles as ints and back, statuses in other languages' forms (MPI-5.0 sections 18.2.4, 18.2.5, 20.3): a
 * constant is its own number; an object has one number >= 4096 as long as it lives, its own; a number that stands for
 * nothing becomes a handle that calls refuse.
 */
#include "../check.h"

/* The functions of each kind. */
#define COMM       MPI_Comm_toint, MPI_Comm_fromint, MPI_Comm_c2f, MPI_Comm_f2c, MPI_Comm
#define TYPE       MPI_Type_toint, MPI_Type_fromint, MPI_Type_c2f, MPI_Type_f2c, MPI_Datatype
#define GROUP      MPI_Group_toint, MPI_Group_fromint, MPI_Group_c2f, MPI_Group_f2c, MPI_Group
#define OP         MPI_Op_toint, MPI_Op_fromint, MPI_Op_c2f, MPI_Op_f2c, MPI_Op
#define REQUEST    MPI_Request_toint, MPI_Request_fromint, MPI_Request_c2f, MPI_Request_f2c, MPI_Request
#define INFO       MPI_Info_toint, MPI_Info_fromint, MPI_Info_c2f, MPI_Info_f2c, MPI_Info
#define ERRHANDLER MPI_Errhandler_toint, MPI_Errhandler_fromint, MPI_Errhandler_c2f, MPI_Errhandler_f2c, MPI_Errhandler
#define MESSAGE    MPI_Message_toint, MPI_Message_fromint, MPI_Message_c2f, MPI_Message_f2c, MPI_Message
#define SESSION    MPI_Session_toint, MPI_Session_fromint, MPI_Session_c2f, MPI_Session_f2c, MPI_Session
#define WIN        MPI_Win_toint, MPI_Win_fromint, MPI_Win_c2f, MPI_Win_f2c, MPI_Win
#define FILE       MPI_File_toint, MPI_File_fromint, MPI_File_c2f, MPI_File_f2c, MPI_File

/* A check that the four conversions of one kind agree about handle `h`. */
#define ROUND_TRIP(...) ROUND_TRIP_OF(__VA_ARGS__)
#define ROUND_TRIP_OF(toint, fromint, c2f, f2c, type, h, predefined)                                                  \
    do {                                                                                                              \
        type h_ = (h);                                                                                                \
        int i_ = toint(h_);                                                                                           \
        CHECK(fromint(i_) == h_, #toint ": %p became %d and that %p", (void *)h_, i_, (void *)fromint(i_));           \
        CHECK(i_ == toint(h_), #toint ": another number the second time");                                            \
        CHECK(c2f(h_) == i_ && f2c(i_) == h_, #c2f ": Fortran's number is another");                                  \
        CHECK((predefined) ? i_ == (int)(intptr_t)h_ : i_ >= 4096, #toint ": %p is %d", (void *)h_, i_);              \
    } while (0)

static void constants(void)
{
    ROUND_TRIP(COMM, MPI_COMM_NULL, 1);
    ROUND_TRIP(COMM, MPI_COMM_WORLD, 1);
    ROUND_TRIP(COMM, MPI_COMM_SELF, 1);
    ROUND_TRIP(TYPE, MPI_DATATYPE_NULL, 1);
    ROUND_TRIP(TYPE, MPI_INT, 1);
    ROUND_TRIP(TYPE, MPI_LOGICAL16, 1);
    ROUND_TRIP(GROUP, MPI_GROUP_EMPTY, 1);
    ROUND_TRIP(OP, MPI_SUM, 1);
    ROUND_TRIP(REQUEST, MPI_REQUEST_NULL, 1);
    ROUND_TRIP(INFO, MPI_INFO_NULL, 1);
    ROUND_TRIP(INFO, MPI_INFO_ENV, 1);
    ROUND_TRIP(ERRHANDLER, MPI_ERRORS_RETURN, 1);
    ROUND_TRIP(MESSAGE, MPI_MESSAGE_NULL, 1);
    ROUND_TRIP(MESSAGE, MPI_MESSAGE_NO_PROC, 1);
    ROUND_TRIP(SESSION, MPI_SESSION_NULL, 1);
    ROUND_TRIP(WIN, MPI_WIN_NULL, 1);
    ROUND_TRIP(FILE, MPI_FILE_NULL, 1);
    CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 257, "MPI_COMM_WORLD is %d", MPI_Comm_toint(MPI_COMM_WORLD));
}

static void ignore_errors(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }
static void add(void *in, void *inout, int *n, MPI_Datatype *t) { (void)in, (void)inout, (void)n, (void)t; }

static void objects(void)
{
    MPI_Comm c;
    MPI_Datatype t;
    MPI_Group g;
    MPI_Op o;
    MPI_Request r;
    MPI_Errhandler e;
    MPI_Message m;
    int x = 1, flag = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Comm_group(c, &g);
    MPI_Op_create(add, 1, &o);
    MPI_Comm_create_errhandler(ignore_errors, &e);
    MPI_Irecv(&x, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &r);
    ROUND_TRIP(COMM, c, 0);
    ROUND_TRIP(TYPE, t, 0);
    ROUND_TRIP(GROUP, g, 0);
    ROUND_TRIP(OP, o, 0);
    ROUND_TRIP(ERRHANDLER, e, 0);
    ROUND_TRIP(REQUEST, r, 0);
    CHECK_OK(MPI_Barrier(MPI_Comm_fromint(MPI_Comm_toint(c)))); /* it is the communicator */
    MPI_Send(&x, 1, MPI_INT, 0, 9, MPI_COMM_SELF);
    MPI_Request again = MPI_Request_f2c(MPI_Request_c2f(r));
    CHECK_OK(MPI_Wait(&again, MPI_STATUS_IGNORE));
    MPI_Send(&x, 1, MPI_INT, 0, 10, MPI_COMM_SELF);
    while (!flag) MPI_Improbe(0, 10, MPI_COMM_SELF, &flag, &m, MPI_STATUS_IGNORE);
    ROUND_TRIP(MESSAGE, m, 0);
    MPI_Mrecv(&x, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    MPI_Comm_free(&c);
    MPI_Type_free(&t);
    MPI_Group_free(&g);
    MPI_Op_free(&o);
    MPI_Errhandler_free(&e);
}

/* Objects that live at the same time have different numbers. */
static void differ(void)
{
    enum { N = 1000 };
    static MPI_Datatype t[N];
    static int seen[N];
    for (int i = 0; i < N; i++) {
        MPI_Type_contiguous(i + 1, MPI_CHAR, &t[i]);
        seen[i] = MPI_Type_toint(t[i]);
    }
    for (int i = 0; i < N; i++) {
        CHECK(MPI_Type_toint(t[i]) == seen[i] && MPI_Type_fromint(seen[i]) == t[i], "type %d changed its number", i);
        for (int k = 0; k < i; k++)
            if (seen[k] == seen[i]) CHECK(seen[k] != seen[i], "types %d and %d have one number %d", k, i, seen[i]);
    }
    for (int i = 0; i < N; i++) MPI_Type_free(&t[i]);
}

/* No number leads to a crash; what is no live object of the kind is refused. */
static void bad_numbers(void)
{
    static const int bad[] = {-1, INT32_MIN, INT32_MAX, 4095, 0, 1, 100000000, 700};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int size;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        MPI_Request r = MPI_Request_fromint(bad[i]);
        MPI_Group g = MPI_Group_fromint(bad[i]);
        CHECK_CLASS(MPI_Comm_size(MPI_Comm_fromint(bad[i]), &size), MPI_ERR_COMM);
        CHECK_CLASS(MPI_Type_size(MPI_Type_fromint(bad[i]), &size), MPI_ERR_TYPE);
        CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
        CHECK_CLASS(MPI_Group_size(g, &size), MPI_ERR_GROUP);
    }
    MPI_Datatype t;
    MPI_Type_contiguous(3, MPI_INT, &t);
    int number = MPI_Type_toint(t);
    CHECK_CLASS(MPI_Comm_size(MPI_Comm_fromint(number), &size), MPI_ERR_COMM); /* another kind */
    MPI_Type_free(&t);
    CHECK_CLASS(MPI_Type_size(MPI_Type_fromint(number), &size), MPI_ERR_TYPE); /* freed */
    for (int i = number; i < number + 64; i++) { /* slots, inner lines of slots, the end of the arena */
        MPI_Comm c = MPI_Comm_fromint(i);
        if (MPI_Comm_size(c, &size) == MPI_SUCCESS) CHECK(MPI_Comm_toint(c) == i, "%d is a communicator with another number", i);
    }
    CHECK(MPI_Comm_toint((MPI_Comm)&size) == -1, "the address of a variable has a number");
}

static int same_counts(const MPI_Status *a, const MPI_Status *b)
{
    int na = -1, nb = -2, ca = -1, cb = -2;
    MPI_Get_count(a, MPI_CHAR, &na);
    MPI_Get_count(b, MPI_CHAR, &nb);
    MPI_Test_cancelled(a, &ca);
    MPI_Test_cancelled(b, &cb);
    return na == nb && ca == cb && na == 5;
}

/* Every way from C to the two Fortran forms and back loses nothing. */
static void statuses(void)
{
    MPI_Status s, back;
    MPI_Fint f[MPI_F_STATUS_SIZE], f2[MPI_F_STATUS_SIZE];
    MPI_F08_status f08, f08b;
    MPI_Sendrecv("four", 5, MPI_CHAR, 0, 77, f, 5, MPI_CHAR, 0, 77, MPI_COMM_SELF, &s);
    s.MPI_ERROR = MPI_ERR_OTHER;
    memset(&back, 0, sizeof back);
    CHECK_OK(MPI_Status_c2f(&s, f));
    CHECK(f[MPI_F_SOURCE] == 0 && f[MPI_F_TAG] == 77 && f[MPI_F_ERROR] == MPI_ERR_OTHER, "source %d, tag %d, error %d",
          f[MPI_F_SOURCE], f[MPI_F_TAG], f[MPI_F_ERROR]);
    CHECK_OK(MPI_Status_f2f08(f, &f08));
    CHECK(f08.MPI_TAG == 77 && f08.MPI_SOURCE == 0 && f08.MPI_ERROR == MPI_ERR_OTHER, "tag %d", f08.MPI_TAG);
    CHECK_OK(MPI_Status_f082c(&f08, &back));
    CHECK(back.MPI_TAG == 77 && same_counts(&s, &back), "C to f to f08 to C");
    memset(&back, 0, sizeof back);
    CHECK_OK(MPI_Status_c2f08(&s, &f08b));
    CHECK_OK(MPI_Status_f082f(&f08b, f2));
    CHECK_OK(MPI_Status_f2c(f2, &back));
    CHECK(back.MPI_SOURCE == 0 && back.MPI_ERROR == MPI_ERR_OTHER && same_counts(&s, &back), "C to f08 to f to C");
    CHECK_CLASS(MPI_Status_c2f(MPI_STATUS_IGNORE, f), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &s), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &s), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_f082c(MPI_F08_STATUS_IGNORE, &s), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_f082f(MPI_F08_STATUSES_IGNORE, f), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_f2f08(f, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_c2f08(&s, NULL), MPI_ERR_ARG);
    CHECK(s.MPI_TAG == 77, "a call that failed changed its result");
}

int main(int argc, char **argv)
{
    constants(); /* at any time */
    check_start(&argc, &argv);
    constants();
    objects();
    differ();
    bad_numbers();
    statuses();
    int rc = check_done();
    constants();
    return rc || check_failures;
}
