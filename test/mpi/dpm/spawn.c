/*
 * spawn.c - spawning: one and several programs, from any root, in a loop, from parts of a job, nested three deep; communicators of processes
 * that did not spawn each other; arguments, directories and variables of the children; what cannot be started is said. The program spawns
 * itself: its first argument says what a child does.
 */
#include "../check.h"

#include <stdbool.h>
#include <unistd.h>

static const char *own; /* this program */

/* ---- children ---- */

static MPI_Comm parent;

static void part_from_parent(void)
{
    CHECK_OK(MPI_Comm_disconnect(&parent));
    CHECK_OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL, "there is a parent behind MPI_Comm_disconnect");
}

/* Says "rank + 100 * size" to the rank 0 of the parents, and gets it back. */
static void child_echo(void)
{
    int word = check_rank + 100 * check_size, back = -1;
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 1, parent));
    CHECK_OK(MPI_Recv(&back, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE));
    CHECK(back == word, "%d came back", back);
    part_from_parent();
}

/* Its arguments, its directory and a variable, to the parent. */
static void child_facts(int argc, char **argv)
{
    char text[2000] = "";
    for (int i = 2; i < argc; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "[%s]", argv[i]);
    char *cwd = getcwd(NULL, 0);
    snprintf(text + strlen(text), sizeof text - strlen(text), " in %s with %s", cwd, getenv("TERN_TEST_WORD") ? getenv("TERN_TEST_WORD") : "nothing");
    free(cwd);
    if (check_rank == 0) CHECK_OK(MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, 1, parent));
    part_from_parent();
}

/* Spawns another one, until `depth` is 0; the depths come back. */
static int deeper(int depth)
{
    char number[20], *argv[] = {"deep", number, NULL};
    MPI_Comm inter;
    int below = 0;
    if (!depth) return 1;
    snprintf(number, sizeof number, "%d", depth - 1);
    CHECK_OK(MPI_Comm_spawn(own, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Recv(&below, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    return below + 1;
}

static void child_deep(int depth)
{
    int n = deeper(depth);
    CHECK_OK(MPI_Send(&n, 1, MPI_INT, 0, 3, parent));
    part_from_parent();
}

/* ---- communicators with processes that had nothing to do with the spawning ---- */

/* Two groups that both have processes of all the jobs. */
static void halves_talk(MPI_Comm both)
{
    int rank, size, sum = 0, want = 0;
    MPI_Comm half, inter;
    MPI_Comm_rank(both, &rank);
    MPI_Comm_size(both, &size);
    CHECK_OK(MPI_Comm_split(both, rank % 2, -rank, &half));
    CHECK_OK(MPI_Intercomm_create(half, 0, both, size - 1 - (size - 1 + !(rank % 2)) % 2, 9, &inter));
    CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    for (int i = !(rank % 2); i < size; i += 2) want += i;
    CHECK(sum == want, "the ranks of the other half are %d in all, not %d", sum, want);
    CHECK_OK(MPI_Comm_free(&inter));
    CHECK_OK(MPI_Comm_free(&half));
}

/* All of each group send to all of the other one, and receive; then the groups are one. */
static void all_talk(MPI_Comm inter)
{
    int here, there, sum = 0;
    MPI_Comm both;
    MPI_Comm_size(inter, &here);
    MPI_Comm_remote_size(inter, &there);
    MPI_Request *q = malloc((size_t)there * sizeof *q);
    int rank, *word = malloc((size_t)there * sizeof *word);
    MPI_Comm_rank(inter, &rank);
    for (int i = 0; i < there; i++) CHECK_OK(MPI_Irecv(&word[i], 1, MPI_INT, i, 5, inter, &q[i]));
    for (int i = 0; i < there; i++) CHECK_OK(MPI_Send(&(int){100 * rank + i}, 1, MPI_INT, i, 5, inter));
    CHECK_OK(MPI_Waitall(there, q, MPI_STATUSES_IGNORE));
    for (int i = 0; i < there; i++) CHECK(word[i] == 100 * i + rank, "%d from rank %d", word[i], i);
    CHECK_OK(MPI_Barrier(inter));
    CHECK_OK(MPI_Intercomm_merge(inter, 0, &both));
    CHECK_OK(MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK(sum == here + there, "%d processes of %d and %d", sum, here, there);
    halves_talk(both);
    CHECK_OK(MPI_Comm_free(&both));
    free(q);
    free(word);
}

/* A child of rank 0 alone gets to know all of its parents' job; of two such jobs, the second one gets to know the first one, too. */
static void child_meets(int second)
{
    MPI_Comm inter, merged = MPI_COMM_NULL, more;
    CHECK_OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, parent, 0, 7, &inter));
    all_talk(inter);
    if (second) {
        CHECK_OK(MPI_Intercomm_create(MPI_COMM_WORLD, check_size - 1, parent, 0, 8, &more));
    } else {
        CHECK_OK(MPI_Intercomm_merge(inter, 1, &merged));
        CHECK_OK(MPI_Intercomm_create(merged, 0, MPI_COMM_NULL, 0, 8, &more));
    }
    all_talk(more);
    CHECK_OK(MPI_Comm_disconnect(&more));
    if (!second) CHECK_OK(MPI_Comm_disconnect(&merged));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    part_from_parent();
}

/* The world ends, and with it what the process has of its parents; a session goes on. */
static int child_outlives(void)
{
    MPI_Session session;
    MPI_Comm after = MPI_COMM_WORLD;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, 0, 1, parent));
    MPI_Finalize();
    CHECK_OK(MPI_Comm_get_parent(&after));
    CHECK(after == MPI_COMM_NULL, "there is a parent behind MPI_Finalize");
    CHECK_OK(MPI_Session_finalize(&session));
    return check_failures != 0;
}

/* MPI_Init fails as there is no such port; nothing is left of it. */
static void init_without_parent(void)
{
    char *name = strdup(getenv("TERN_PARENT_PORT"));
    int is = -1;
    CHECK(name && setenv("TERN_PARENT_PORT", "no port", 1) == 0, "there is no name of a port");
    CHECK_CLASS(MPI_Init(NULL, NULL), MPI_ERR_PORT);
    CHECK(MPI_Initialized(&is) == MPI_SUCCESS && !is, "MPI_Init has failed, and MPI is initialised");
    setenv("TERN_PARENT_PORT", name, 1);
    free(name);
}

static int child(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "echo") || !strcmp(what, "again")) child_echo();
    else if (!strcmp(what, "facts")) child_facts(argc, argv);
    else if (!strcmp(what, "deep")) child_deep(atoi(argv[2]));
    else if (!strcmp(what, "first")) child_meets(0);
    else if (!strcmp(what, "second")) child_meets(1);
    else if (!strcmp(what, "outlives")) return child_outlives();
    else CHECK(false, "a child is to do '%s'", what);
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}

/* ---- parents ---- */

/* Serves n children that echo, at the rank 0 of comm. */
static void serve_echo(MPI_Comm comm, MPI_Comm inter, int n)
{
    int rank, remote = -1;
    MPI_Comm_rank(comm, &rank);
    CHECK_OK(MPI_Comm_remote_size(inter, &remote));
    CHECK(remote == n, "%d children of %d", remote, n);
    for (int i = 0; i < n && rank == 0; i++) {
        int word = -1;
        MPI_Status s;
        CHECK_OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter, &s));
        CHECK(word == s.MPI_SOURCE + 100 * n, "child %d says %d", s.MPI_SOURCE, word);
        CHECK_OK(MPI_Send(&word, 1, MPI_INT, s.MPI_SOURCE, 2, inter));
    }
}

static void spawn_echo(MPI_Comm comm, int root, int n)
{
    char *argv[] = {"echo", NULL};
    int codes[16], rank;
    MPI_Comm inter = MPI_COMM_NULL;
    for (int i = 0; i < 16; i++) codes[i] = -1;
    MPI_Comm_rank(comm, &rank);
    CHECK_OK(MPI_Comm_spawn(rank == root ? own : NULL, rank == root ? argv : NULL, rank == root ? n : 0, MPI_INFO_NULL, root, comm, &inter, codes));
    for (int i = 0; i < n; i++) CHECK(codes[i] == MPI_SUCCESS, "code %d is %d", i, codes[i]);
    CHECK(codes[n] == -1, "more codes than children");
    serve_echo(comm, inter, n);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

static void spawn_outliving(void)
{
    char *argv[] = {"outlives", NULL};
    MPI_Comm inter;
    CHECK_OK(MPI_Comm_spawn(own, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    for (int i = 0, rank = -1; i < 2; i++) {
        CHECK_OK(MPI_Recv(&rank, 1, MPI_INT, i, 1, inter, MPI_STATUS_IGNORE));
        CHECK(rank == i, "child %d says that it is %d", i, rank);
    }
    CHECK_OK(MPI_Comm_free(&inter));
}

static void facts(void)
{
    char *argv[] = {"facts", "one", "", "two words", NULL}, text[2000] = "";
    MPI_Comm inter;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", "/");
    CHECK_OK(MPI_Comm_spawn(own, argv, 2, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Recv(text, sizeof text, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK(!strcmp(text, "[one][][two words] in / with a word"), "the child was given: %s", text);
    CHECK_OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&info);
}

/* Spawned by rank 0, and met by all. */
static MPI_Comm spawn_and_meet(const char *what, int n, MPI_Comm *spawned)
{
    char *argv[] = {(char *)(uintptr_t)what, NULL};
    MPI_Comm inter;
    *spawned = MPI_COMM_NULL;
    if (check_rank == 0) CHECK_OK(MPI_Comm_spawn(own, argv, n, MPI_INFO_NULL, 0, MPI_COMM_SELF, spawned, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, *spawned, 0, 7, &inter));
    all_talk(inter);
    return inter;
}

/* Two jobs that only rank 0 has spawned, with all, and with each other: that job's leader is its last rank, which rank 0 knows too. */
static void strangers_meet(void)
{
    MPI_Comm one, two, first = spawn_and_meet("first", 2, &one), second = spawn_and_meet("second", 3, &two), merged, more;
    CHECK_OK(MPI_Intercomm_merge(first, 0, &merged));
    CHECK_OK(MPI_Intercomm_create(merged, 0, two, 2, 8, &more));
    all_talk(more);
    CHECK_OK(MPI_Comm_disconnect(&more));
    CHECK_OK(MPI_Comm_disconnect(&merged));
    CHECK_OK(MPI_Comm_disconnect(&second));
    CHECK_OK(MPI_Comm_disconnect(&first));
    if (check_rank > 0) return;
    CHECK_OK(MPI_Comm_disconnect(&one));
    CHECK_OK(MPI_Comm_disconnect(&two));
}

static void several_programs(void)
{
    char *commands[] = {(char *)own, (char *)own}, *echo[] = {"echo", NULL}, **argvs[] = {echo, echo};
    int n[] = {1, 3}, codes[4] = {-1, -1, -1, -1}, rank;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_OK(MPI_Comm_spawn_multiple(2, commands, argvs, n, infos, 0, MPI_COMM_WORLD, &inter, codes));
    for (int i = 0; i < 4; i++) CHECK(codes[i] == MPI_SUCCESS, "code %d is %d", i, codes[i]);
    serve_echo(MPI_COMM_WORLD, inter, 4);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

static void failures(void)
{
    MPI_Comm inter = MPI_COMM_SELF;
    int codes[2] = {0, 0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL && codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN, "codes %d, %d", codes[0], codes[1]);
    CHECK_CLASS(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator with /bin/true");
    if (check_rank == 0) CHECK_CLASS(MPI_Comm_spawn(own, MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_ARG);
    else CHECK_CLASS(MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static int spawn_with_errors(const char *what, MPI_Comm *inter)
{
    char *argv[] = {(char *)(uintptr_t)what, NULL};
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_initial_errhandler", "mpi_errors_return");
    int code = MPI_Comm_spawn(own, argv, 2, info, 0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return code;
}

/* Children whose MPI_Init fails: they call it again; or they end, in order, as processes that have not begun with MPI. */
static void failed_inits(void)
{
    MPI_Comm inter;
    CHECK_OK(spawn_with_errors("again", &inter));
    serve_echo(MPI_COMM_WORLD, inter, 2);
    CHECK_OK(MPI_Comm_disconnect(&inter));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_WORDS(spawn_with_errors("end", &inter), MPI_ERR_SPAWN, check_rank ? "" : "all processes of the spawned job have ended");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void names(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Lookup_name("spawn.test nobody", MPI_INFO_NULL, found), MPI_ERR_NAME);
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_OK(MPI_Publish_name("spawn.test", MPI_INFO_NULL, port));
    CHECK_OK(MPI_Lookup_name("spawn.test", MPI_INFO_NULL, found));
    CHECK(!strcmp(port, found), "found '%s'", found);
    CHECK_CLASS(MPI_Publish_name("spawn.test", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    CHECK_OK(MPI_Unpublish_name("spawn.test", MPI_INFO_NULL, port));
    CHECK_CLASS(MPI_Unpublish_name("spawn.test", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    CHECK_OK(MPI_Close_port(port));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    own = realpath(argv[0], NULL);
    setenv("TERN_TEST_WORD", "a word", 1); /* the children have it from this process */
    if (argc > 1 && (!strcmp(argv[1], "again") || !strcmp(argv[1], "end"))) init_without_parent();
    if (argc > 1 && !strcmp(argv[1], "end")) return check_failures ? 1 : 0;
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(argc, argv);
    for (int n = 1; n <= 4; n++) spawn_echo(MPI_COMM_WORLD, n % check_size, n);
    for (int i = 0; i < 5; i++) spawn_echo(MPI_COMM_WORLD, 0, 1);
    spawn_echo(MPI_COMM_SELF, 0, 2); /* all at the same time */
    if (check_rank == 0) {
        facts();
        spawn_outliving();
        CHECK(deeper(3) == 4, "not three deep");
        names();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    several_programs();
    strangers_meet();
    failures();
    failed_inits();
    return check_done();
}
