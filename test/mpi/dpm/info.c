/*
 * info.c - what info keys of MPI_Comm_spawn do: soft, file, env, arch, wdir, path, and the phases that a communicator tells. The program spawns
 * itself; a child tells its parent what it sees.
 */
#include "../check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static char *own; /* this program */

/* ---- children ---- */

static int child(MPI_Comm parent, int argc, char **argv)
{
    char text[2000] = "";
    for (int i = 1; i < argc; i++) {
        const char *value = getenv(argv[i]);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%s;", argv[i], value ? value : "(none)");
    }
    char *cwd = getcwd(NULL, 0);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", cwd);
    free(cwd);
    if (check_rank == 0) CHECK_OK(MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, 1, parent));
    CHECK_OK(MPI_Comm_disconnect(&parent));
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}

/* ---- parents ---- */

static MPI_Info info_with(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* Spawns one process that prints these variables, with that info. */
static void sees(const char *command, MPI_Info info, char **variables, const char *expected)
{
    MPI_Comm inter;
    char text[2000] = "";
    CHECK_OK(MPI_Comm_spawn(command, variables, 1, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Recv(text, sizeof text, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK(!strcmp(text, expected), "the child sees '%s', not '%s'", text, expected);
    CHECK_OK(MPI_Comm_disconnect(&inter));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

static void softly(const char *set, int most, int expected)
{
    MPI_Info info = info_with("soft", set);
    MPI_Comm inter;
    int codes[8], n, sum = 0;
    char text[2000];
    CHECK_OK(MPI_Comm_spawn(own, MPI_ARGV_NULL, most, info, 0, MPI_COMM_SELF, &inter, codes));
    CHECK_OK(MPI_Comm_remote_size(inter, &n));
    for (int i = 0; i < most; i++) sum += codes[i] == MPI_SUCCESS;
    CHECK(n == expected && sum == expected, "soft %s of %d: %d processes, %d codes", set, most, n, sum);
    CHECK_OK(MPI_Recv(text, sizeof text, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&info);
}

static void refused(const char *key, const char *value, int klass)
{
    MPI_Info info = info_with(key, value);
    MPI_Comm inter;
    int codes[2] = {0, 0};
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_spawn(own, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_SELF, &inter, codes), klass);
    CHECK(inter == MPI_COMM_NULL && codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN, "%s=%s: codes %d, %d", key, value, codes[0], codes[1]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

static void from_file(const char *here)
{
    char name[] = "/tmp/tern-info-XXXXXX", text[600], expected[5000];
    char *variables[] = {"TERN_TEST_FILE", NULL};
    int fd = mkstemp(name), n = snprintf(text, sizeof text, "# what a file says\n\n  wdir = / \nenv=TERN_TEST_FILE=from the file\n");
    CHECK(fd >= 0 && write(fd, text, (size_t)n) == n, "%s cannot be written", name);
    close(fd);
    sees(own, info_with("file", name), variables, "TERN_TEST_FILE=from the file;/");
    MPI_Info both = info_with("file", name);
    MPI_Info_set(both, "wdir", here); /* goes first */
    snprintf(expected, sizeof expected, "TERN_TEST_FILE=from the file;%s", here);
    sees(own, both, variables, expected);
    unlink(name);
    refused("file", name, MPI_ERR_OTHER);
}

/* Names that do not begin with a slash: from the directory in which this process is now. */
static void relative(const char *here)
{
    char dir[] = "/tmp/tern-info-XXXXXX";
    CHECK(mkdtemp(dir) && !chdir(dir) && !mkdir("sub", 0700), "no directory %s", dir);
    FILE *hosts = fopen("hosts", "w");
    CHECK(hosts && fputs("localhost\n", hosts) >= 0 && !fclose(hosts), "no file in %s", dir);
    char *now = getcwd(NULL, 0), expected[5000];
    sees(own, info_with("hostfile", "hosts"), MPI_ARGV_NULL, now);
    snprintf(expected, sizeof expected, "%s/sub", now);
    sees(own, info_with("wdir", "sub"), MPI_ARGV_NULL, expected);
    CHECK(!unlink("hosts") && !rmdir("sub") && !chdir(here) && !rmdir(dir), "%s is not empty", dir);
    free(now);
}

static void phases(void)
{
    static const char *const keys[] = {"tern_spawn_scheduling", "tern_spawn_start", "tern_spawn_connect"};
    MPI_Comm inter;
    MPI_Info info;
    char text[2000];
    double before = MPI_Wtime(), sum = 0;
    CHECK_OK(MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    double whole = MPI_Wtime() - before;
    CHECK_OK(MPI_Comm_get_info(inter, &info));
    for (int i = 0; i < 3; i++) {
        int there = 0;
        MPI_Info_get(info, keys[i], 100, text, &there);
        CHECK(there && atof(text) >= 0, "%s is %s", keys[i], there ? text : "not there");
        sum += there ? atof(text) : 0;
    }
    CHECK(sum > 0 && sum <= whole + 1e-5, "phases of %g s in a call of %g s", sum, whole);
    CHECK_OK(MPI_Recv(text, sizeof text, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    struct utsname host;
    char expected[5000];
    own = realpath(argv[0], NULL);
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent, argc, argv);
    char *here = getcwd(NULL, 0), *variables[] = {"TERN_TEST_A", "TERN_TEST_B", NULL};
    snprintf(expected, sizeof expected, "TERN_TEST_A=1;TERN_TEST_B=two words;%s", here);
    sees(own, info_with("env", "TERN_TEST_A=1\nTERN_TEST_B=two words\n"), variables, expected);
    setenv("TERN_TEST_A", "changed", 1); /* behind the start of the program */
    snprintf(expected, sizeof expected, "TERN_TEST_A=changed;TERN_TEST_B=(none);%s", here);
    sees(own, info_with("unknown key", "any value"), variables, expected);
    char *paths[] = {"PATH", "TERN_TEST_A", NULL}, *path = strdup(getenv("PATH"));
    unsetenv("PATH"); /* the launcher has it */
    unsetenv("TERN_TEST_A");
    snprintf(expected, sizeof expected, "PATH=(none);TERN_TEST_A=(none);%s", here);
    sees(own, MPI_INFO_NULL, paths, expected);
    setenv("PATH", path, 1);
    free(path);
    char *likely[] = {"MPI_LOCAL_SCRATCH", "PMIX_MCA_tern_test", NULL}; /* the user's, though a launcher's are named alike */
    setenv(likely[0], "/tmp", 1);
    setenv(likely[1], "1", 1);
    snprintf(expected, sizeof expected, "MPI_LOCAL_SCRATCH=/tmp;PMIX_MCA_tern_test=1;%s", here);
    sees(own, MPI_INFO_NULL, likely, expected);
    from_file(here);
    uname(&host);
    snprintf(expected, sizeof expected, "%s", here);
    sees(own, info_with("arch", host.machine), MPI_ARGV_NULL, expected);
    relative(here);
    char *name = strrchr(own, '/'), *folder = strndup(own, (size_t)(name - own));
    sees(name + 1, info_with("path", folder), MPI_ARGV_NULL, expected);
    free(folder);
    softly("1:8", 3, 3);
    softly("1,2,16", 4, 2);
    softly("0:7:2", 5, 4);
    softly("7:1:-3", 5, 4);
    refused("soft", "5:9", MPI_ERR_INFO);
    refused("soft", "many", MPI_ERR_INFO);
    refused("env", "NO_VALUE", MPI_ERR_INFO);
    refused("arch", "pdp11", MPI_ERR_SPAWN);
    refused("wdir", "/no/such/directory", MPI_ERR_SPAWN);
    refused("tern_placement", "best", MPI_ERR_ARG);
    phases();
    free(here);
    free(own);
    return check_done();
}
