/*
 * handlers.c - error handlers (MPI-5.0 section 9.3): which one is called, with what, how they are inherited and freed; and what is said:
 * function, argument and value.
 */
#include "../check.h"

static int called, last_class;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...)
{
    called++;
    last_comm = *comm;
    MPI_Error_class(*code, &last_class);
}

/* A call that must fail through `note`, on this communicator. */
static void fails_on(MPI_Comm comm, MPI_Comm seen, const char *what)
{
    int before = called, x = 0, rc = MPI_Send(&x, 1, MPI_INT, 12345, 0, comm), class = -1;
    MPI_Error_class(rc, &class);
    CHECK(called == before + 1 && last_comm == seen && last_class == MPI_ERR_RANK && class == MPI_ERR_RANK,
          "%s: called %d times, class %d, returned %d", what, called - before, last_class, class);
}

static void users(void)
{
    MPI_Errhandler mine, got;
    MPI_Comm dup, of_dup;
    CHECK_OK(MPI_Comm_create_errhandler(note, &mine));
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    CHECK_OK(MPI_Comm_set_errhandler(dup, mine));
    fails_on(dup, dup, "set");
    CHECK_OK(MPI_Comm_get_errhandler(dup, &got));
    CHECK(got == mine, "another handler came back");
    CHECK_OK(MPI_Errhandler_free(&got));
    CHECK_OK(MPI_Errhandler_free(&mine)); /* the communicator still has it */
    CHECK(mine == MPI_ERRHANDLER_NULL, "a freed handler is not null");
    fails_on(dup, dup, "freed by its maker");
    MPI_Comm_dup(dup, &of_dup);
    fails_on(of_dup, of_dup, "inherited");
    int before = called;
    CHECK_OK(MPI_Comm_call_errhandler(dup, MPI_ERR_TOPOLOGY));
    CHECK(called == before + 1 && last_comm == dup && last_class == MPI_ERR_TOPOLOGY, "called by hand: class %d", last_class);
    MPI_Comm_free(&of_dup);
    MPI_Comm_free(&dup);
}

/* The functions of MPI 1, which MPI 3 removed, do the same. */
static void first_names(void)
{
    MPI_Errhandler mine, got;
    MPI_Comm dup;
    CHECK_OK(MPI_Errhandler_create(note, &mine));
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    CHECK_OK(MPI_Errhandler_set(dup, mine));
    fails_on(dup, dup, "set by MPI_Errhandler_set");
    CHECK_OK(MPI_Errhandler_get(dup, &got));
    CHECK(got == mine, "another handler came back");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&dup);
}

/* ... but to MPI_COMM_WORLD's where MPI_COMM_SELF's was never set, as before MPI 4. */
static void of_world_alone(void)
{
    MPI_Errhandler mine;
    MPI_Datatype t = MPI_DATATYPE_NULL;
    int before = called;
    MPI_Comm_create_errhandler(note, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    MPI_Type_commit(&t);
    CHECK(called == before + 1 && last_comm == MPI_COMM_WORLD, "called %d times", called - before);
    MPI_Errhandler_free(&mine);
}

/* Errors of no communicator go to the handler of MPI_COMM_SELF (9.3). */
static void of_self(void)
{
    MPI_Errhandler mine;
    MPI_Datatype t = MPI_DATATYPE_NULL;
    int before = called, class = -1;
    MPI_Comm_create_errhandler(note, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, mine);
    MPI_Error_class(MPI_Type_commit(&t), &class);
    CHECK(called == before + 1 && last_comm == MPI_COMM_SELF && class == MPI_ERR_TYPE, "called %d times, class %d", called - before, class);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&mine);
    MPI_Errhandler got;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &got);
    CHECK(got == MPI_ERRORS_RETURN, "a predefined handler has another value");
    CHECK_OK(MPI_Errhandler_free(&got));
}

/* What MPI_Error_string says of the last failure of this class. */
static void says(int rc, const char *a, const char *b, const char *c)
{
    char text[MPI_MAX_ERROR_STRING];
    int len = -1;
    CHECK_OK(MPI_Error_string(rc, text, &len));
    CHECK(len == (int)strlen(text) && strstr(text, a) && strstr(text, b) && strstr(text, c), "'%s' lacks one of '%s', '%s', '%s'", text, a, b, c);
}

static void words(void)
{
    int x = 0, n;
    MPI_Request r;
    MPI_Group world, g;
    MPI_Datatype t;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    says(MPI_Send(&x, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD), "MPI_Send:", "dest", "4711");
    says(MPI_Irecv(&x, -5, MPI_INT, 0, 0, MPI_COMM_WORLD, &r), "MPI_Irecv:", "count", "-5");
    says(MPI_Bsend(&x, 1, MPI_INT, 0, -3, MPI_COMM_WORLD), "MPI_Bsend:", "tag", "-3");
    says(MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &n, -8, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Sendrecv:", "recvcount", "-8");
    says(MPI_Bcast(&x, 1, MPI_INT, 99, MPI_COMM_WORLD), "MPI_Bcast:", "root", "99");
    says(MPI_Allreduce(&x, &n, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), "MPI_Allreduce:", "MPI_BAND", "MPI_DOUBLE");
    says(MPI_Gather(&x, 1, MPI_INT, NULL, 1, MPI_INT, check_rank, MPI_COMM_WORLD), "MPI_Gather:", "recvbuf", "NULL");
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    says(MPI_Group_incl(world, 1, (int[]){77}, &g), "MPI_Group_incl:", "ranks", "77");
    MPI_Group_free(&world);
    says(MPI_Type_vector(-6, 1, 1, MPI_INT, &t), "MPI_Type_vector:", "count", "-6");
    says(MPI_Comm_split(MPI_COMM_WORLD, -9, 0, &(MPI_Comm){MPI_COMM_NULL}), "MPI_Comm_split:", "color", "-9");
    char text[MPI_MAX_ERROR_STRING];
    for (int class = MPI_SUCCESS; class <= MPI_ERR_ABI; class++) { /* every class has words */
        CHECK_OK(MPI_Error_string(class, text, &n));
        CHECK(n > 5 && n < MPI_MAX_ERROR_STRING, "class %d: '%s'", class, text);
        int c = -1;
        CHECK_OK(MPI_Error_class(class, &c));
        CHECK(c == class, "the class of %d is %d", class, c);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    of_world_alone();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    users();
    first_names();
    of_self();
    words();
    return check_done();
}
