/* hints.c - hints of communicators: what is kept, what is ignored, what a copy has (MPI-5.0 section 7.4.4). */
#include "../check.h"

static const char *const assertions[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                         "mpi_assert_allow_overtaking", "mpi_assert_strict_persistent_collective_ordering"};

/* The value of a hint of a communicator, "" if it is not returned. */
static const char *hint(MPI_Comm comm, const char *key)
{
    static char text[MPI_MAX_INFO_VAL];
    MPI_Info used = MPI_INFO_NULL;
    int len = sizeof text, flag = 0;
    CHECK_OK(MPI_Comm_get_info(comm, &used));
    CHECK_OK(MPI_Info_get_string(used, key, &len, text, &flag));
    CHECK_OK(MPI_Info_free(&used));
    return flag ? text : "";
}

static void set(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    CHECK_OK(MPI_Comm_set_info(comm, info));
    MPI_Info_free(&info);
}

/* Supported hints have their defaults where nothing was said. */
static void defaults(MPI_Comm comm)
{
    for (int i = 0; i < 5; i++) CHECK(!strcmp(hint(comm, assertions[i]), "false"), "%s: %s", assertions[i], hint(comm, assertions[i]));
    CHECK(!strcmp(hint(comm, "mpi_memory_alloc_kinds"), "mpi,system"), "kinds: %s", hint(comm, "mpi_memory_alloc_kinds"));
    CHECK(!*hint(comm, "mpi_assert_memory_alloc_kinds"), "a promise about memory that nobody gave");
}

static void kept_and_ignored(MPI_Comm comm)
{
    set(comm, assertions[0], "true");
    set(comm, assertions[2], "TRUE");
    CHECK(!strcmp(hint(comm, assertions[0]), "true"), "set by an earlier call");
    CHECK(!strcmp(hint(comm, assertions[1]), "false"), "not mentioned");
    CHECK(!strcmp(hint(comm, assertions[2]), "TRUE"), "the value as it was given");
    set(comm, assertions[0], "perhaps");
    CHECK(!strcmp(hint(comm, assertions[0]), "true"), "a value without sense is ignored");
    set(comm, assertions[0], "false");
    CHECK(!strcmp(hint(comm, assertions[0]), "false"), "taken back");
    set(comm, "nobody_knows_me", "true");
    CHECK(!*hint(comm, "nobody_knows_me"), "an unknown hint was returned");
    set(comm, "mpi_memory_alloc_kinds", "gold");
    CHECK(!strcmp(hint(comm, "mpi_memory_alloc_kinds"), "mpi,system"), "the library's own was changed");
}

static void memory_kinds(MPI_Comm comm)
{
    static const char *const good[] = {"system", "mpi", "system,mpi:alloc_mem", "mpi:win_allocate:alloc_mem,system"};
    static const char *const bad[] = {"cuda", "system,cuda", "", "mpi:", "mpi:gold", "system:x", "mpi,", "mpix"};
    for (int i = 0; i < 4; i++) {
        set(comm, "mpi_assert_memory_alloc_kinds", good[i]);
        CHECK(!strcmp(hint(comm, "mpi_assert_memory_alloc_kinds"), good[i]), "%s became %s", good[i],
              hint(comm, "mpi_assert_memory_alloc_kinds"));
    }
    for (int i = 0; i < 8; i++) {
        set(comm, "mpi_assert_memory_alloc_kinds", bad[i]);
        CHECK(!strcmp(hint(comm, "mpi_assert_memory_alloc_kinds"), good[3]), "%s was taken", bad[i]);
    }
}

/* The makings of communicators do not pass hints on (MPI_Comm_dup did before MPI 4.0), but take those given. */
static void copies(MPI_Comm comm)
{
    MPI_Comm made;
    MPI_Request req;
    MPI_Info info;
    set(comm, assertions[3], "true");
    CHECK_OK(MPI_Comm_dup(comm, &made));
    CHECK(!strcmp(hint(made, assertions[3]), "false"), "the copy has: %s", hint(made, assertions[3]));
    MPI_Comm_free(&made);
    CHECK_OK(MPI_Comm_split(comm, 0, 0, &made));
    CHECK(!strcmp(hint(made, assertions[3]), "false"), "a part has: %s", hint(made, assertions[3]));
    MPI_Comm_free(&made);
    MPI_Info_create(&info);
    MPI_Info_set(info, assertions[2], "true");
    CHECK_OK(MPI_Comm_dup_with_info(comm, info, &made));
    CHECK(!strcmp(hint(made, assertions[2]), "true"), "with hints: %s", hint(made, assertions[2]));
    CHECK(!strcmp(hint(made, assertions[3]), "false"), "with other hints: %s", hint(made, assertions[3]));
    MPI_Comm_free(&made);
    CHECK_OK(MPI_Comm_idup_with_info(comm, info, &made, &req));
    MPI_Info_free(&info); /* read at the call */
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(!strcmp(hint(made, assertions[2]), "true"), "started with hints: %s", hint(made, assertions[2]));
    MPI_Comm_free(&made);
}

static void wrong_arguments(MPI_Comm comm)
{
    MPI_Info info = MPI_INFO_NULL;
    CHECK_CLASS(MPI_Comm_set_info(MPI_COMM_NULL, MPI_INFO_NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_get_info(MPI_COMM_NULL, &info), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_set_info(comm, MPI_INFO_NULL), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_set_info(comm, (MPI_Info)MPI_INT), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_get_info(comm, NULL), MPI_ERR_ARG);
    CHECK(info == MPI_INFO_NULL, "a failing call gave a handle");
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    defaults(MPI_COMM_WORLD);
    defaults(comm);
    kept_and_ignored(comm);
    memory_kinds(comm);
    copies(comm);
    wrong_arguments(comm);
    MPI_Comm_free(&comm);
    return check_done();
}
