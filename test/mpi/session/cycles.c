/*
 * cycles.c - sessions without the world model: many one after another, the library going down and up again between them
 * (MPI-5.0 11.3), and several at once. Prints nothing under valgrind (test/fault/valgrind.test runs it).
 */
#include "alone.h"

static void one(int i)
{
    MPI_Session s = MPI_SESSION_NULL;
    MPI_Group world, self;
    int size = -1, rank = -1, n = 0, flag = 1;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    CHECK(s != MPI_SESSION_NULL, "cycle %d: a null session", i);
    CHECK_OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    CHECK(n >= 2, "cycle %d: %d process sets", i, n);
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://SELF", &self));
    MPI_Group_size(world, &size);
    MPI_Group_rank(world, &rank);
    CHECK(size >= 1 && rank == check_rank, "cycle %d: rank %d of %d", i, rank, size);
    MPI_Group_size(self, &size);
    CHECK(size == 1, "cycle %d: %d processes in mpi://SELF", i, size);
    CHECK_OK(MPI_Initialized(&flag)); /* speaks of the world model */
    CHECK(!flag, "cycle %d: a session says that MPI_Init was called", i);
    MPI_Group_free(&world);
    MPI_Group_free(&self);
    CHECK_OK(MPI_Session_finalize(&s));
    CHECK(s == MPI_SESSION_NULL, "cycle %d: a finalised session is not null", i);
}

static void several(void)
{
    MPI_Session s[5];
    MPI_Group g;
    for (int i = 0; i < 5; i++) CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s[i]));
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++) CHECK(s[i] != s[k], "sessions %d and %d have one handle", i, k);
    for (int i = 4; i >= 0; i--) {
        CHECK_OK(MPI_Group_from_session_pset(s[i], "mpi://world", &g)); /* names of mpi:// in any case */
        CHECK_OK(MPI_Group_free(&g));
        CHECK_OK(MPI_Session_finalize(&s[i]));
    }
}

int main(void)
{
    alone_start();
    for (int i = 0; i < 100; i++) one(i);
    several();
    one(100);
    return alone_done();
}
