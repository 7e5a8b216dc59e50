/* environment.c - MPI_INFO_ENV and MPI_Info_create_env: how the process was started (MPI-5.0 section 10.1). */
#include "../check.h"
#include <sys/utsname.h>
#include <unistd.h>

static int flag;

/* The value of a key, "" if there is none. */
static const char *value(MPI_Info info, const char *key)
{
    static char text[MPI_MAX_INFO_VAL];
    int len = sizeof text;
    CHECK_OK(MPI_Info_get_string(info, key, &len, text, &flag));
    return flag ? text : "";
}

static void facts(MPI_Info info, const char *program)
{
    struct utsname u;
    char path[4096];
    uname(&u);
    CHECK(!strcmp(value(info, "command"), program), "command: %s", value(info, "command"));
    CHECK(atoi(value(info, "maxprocs")) == check_size, "maxprocs: %s", value(info, "maxprocs"));
    CHECK(!strcmp(value(info, "host"), u.nodename), "host: %s", value(info, "host"));
    CHECK(!strcmp(value(info, "arch"), u.machine), "arch: %s", value(info, "arch"));
    CHECK(!strcmp(value(info, "wdir"), getcwd(path, sizeof path)), "wdir: %s", value(info, "wdir"));
    CHECK(!strcmp(value(info, "mpi_memory_alloc_kinds"), "mpi,system"), "kinds: %s", value(info, "mpi_memory_alloc_kinds"));
}

/* What the predefined object says cannot be changed. */
static void read_only(void)
{
    MPI_Info env = MPI_INFO_ENV;
    CHECK_CLASS(MPI_Info_set(env, "k", "v"), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Info_delete(env, "host"), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Info_free(&env), MPI_ERR_INFO);
    CHECK(env == MPI_INFO_ENV, "the handle was changed");
    CHECK_OK(MPI_Info_dup(MPI_INFO_ENV, &env));
    CHECK_OK(MPI_Info_set(env, "host", "other"));
    CHECK(strcmp(value(MPI_INFO_ENV, "host"), "other"), "the copy is the original");
    CHECK_OK(MPI_Info_free(&env));
}

static void made_from_arguments(void)
{
    static char one[] = "prog", two[] = "-x", three[] = "a b", many[3000];
    char *args[] = {one, two, three, NULL}, *large[] = {one, many, two, NULL};
    MPI_Info info;
    CHECK_OK(MPI_Info_create_env(3, args, &info));
    facts(info, "prog");
    CHECK(!strcmp(value(info, "argv"), "-x a b"), "argv: %s", value(info, "argv"));
    CHECK_OK(MPI_Info_set(info, "argv", "mine")); /* this one may be changed */
    CHECK_OK(MPI_Info_free(&info));
    memset(many, 'y', sizeof many - 1);
    CHECK_OK(MPI_Info_create_env(3, large, &info));
    CHECK(strlen(value(info, "argv")) == MPI_MAX_INFO_VAL - 1, "a long argv is cut to %zu", strlen(value(info, "argv")));
    CHECK_OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    facts(MPI_INFO_ENV, argv[0]);
    CHECK(!*value(MPI_INFO_ENV, "argv"), "a program without arguments has argv: %s", value(MPI_INFO_ENV, "argv"));
    read_only();
    made_from_arguments();
    return check_done();
}
