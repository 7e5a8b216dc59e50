/*
 * beside.c - sessions before, beside and after the world model (MPI-5.0 11.1, 11.3), which lives once; what is told of it
 * at each time; two sessions whose lives cross MPI_Init and MPI_Finalize.
 */
#include "alone.h"

static void world_is(int initialized, int finalized, const char *when)
{
    int i = -1, f = -1;
    CHECK_OK(MPI_Initialized(&i));
    CHECK_OK(MPI_Finalized(&f));
    CHECK(i == initialized && f == finalized, "%s: initialized %d, finalized %d", when, i, f);
}

static void use(MPI_Session s, const char *when)
{
    MPI_Group g;
    int size = -1;
    CHECK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g) == MPI_SUCCESS, "%s: no group", when);
    MPI_Group_size(g, &size);
    CHECK(size >= 1, "%s: %d processes", when, size);
    MPI_Group_free(&g);
}

static void ring(int value)
{
    int size, rank, got = -1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_OK(MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == value, "%d came instead of %d", got, value);
    int sum = 0;
    CHECK_OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * value, "sum %d", sum);
}

static int order[4], deleted;
static int note_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    int flag = -1, one = 1, sum = 0;
    (void)comm, (void)key, (void)extra;
    MPI_Finalized(&flag); /* callbacks use MPI as if nothing ended (11.2.4) */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(!flag && sum >= 1, "in a callback of MPI_Finalize: finalized %d, sum %d", flag, sum);
    if (deleted < 4) order[deleted] = (int)(intptr_t)value;
    deleted++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int provided = -1, main_thread = 0, key[3];
    alone_start();
    MPI_Session before = alone_session(), across = alone_session(), inside, late;
    world_is(0, 0, "before MPI_Init");
    use(before, "before MPI_Init");
    CHECK_OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided));
    world_is(1, 0, "after MPI_Init");
    CHECK_OK(MPI_Query_thread(&provided)); /* the world's level, not that of the library */
    CHECK(provided == MPI_THREAD_SERIALIZED, "level %d", provided);
    CHECK_OK(MPI_Is_thread_main(&main_thread));
    CHECK(main_thread, "this is not the main thread");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Init(NULL, NULL), MPI_ERR_OTHER);
    ring(1);
    CHECK_OK(MPI_Session_finalize(&before));
    inside = alone_session();
    use(inside, "beside the world");
    CHECK_OK(MPI_Session_finalize(&inside));
    ring(2);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &key[i], NULL));
        CHECK_OK(MPI_Comm_set_attr(MPI_COMM_SELF, key[i], (void *)(intptr_t)(i + 1)));
    }
    CHECK_OK(MPI_Finalize());
    CHECK(deleted == 3 && order[0] == 3 && order[1] == 2 && order[2] == 1, "%d attributes, in the order %d %d %d", deleted,
          order[0], order[1], order[2]);
    world_is(1, 1, "after MPI_Finalize");
    use(across, "after MPI_Finalize");
    late = alone_session();
    use(late, "begun after MPI_Finalize");
    CHECK_OK(MPI_Session_finalize(&across));
    CHECK_OK(MPI_Session_finalize(&late));
    late = alone_session(); /* the library comes up again */
    use(late, "alone after MPI_Finalize");
    CHECK_OK(MPI_Session_finalize(&late));
    return alone_done();
}
