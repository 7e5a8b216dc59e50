/*
 * psets.c - process sets (MPI-5.0 11.3.2): those that are always there, those of mpiexec --pset, and what is wrong. The
 * sets that are expected stand in the environment, EXPECT_PSETS="name=first+count,...".
 */
#include "alone.h"

static int find(MPI_Session s, const char *name)
{
    int n = 0;
    char got[MPI_MAX_PSET_NAME_LEN];
    CHECK_OK(MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n));
    for (int i = 0; i < n; i++) {
        int len = 0, need, room = MPI_MAX_PSET_NAME_LEN;
        CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &len, NULL)); /* asks for the length */
        need = len;
        CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &room, got));
        CHECK(need == (int)strlen(got) + 1 && room == need, "set %d, '%s': length %d, then %d", i, got, need, room);
        char cut[8] = "#######";
        int little = 4;
        CHECK_OK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, i, &little, cut));
        CHECK(little == need && !strncmp(cut, got, 3) && !cut[3] && cut[4] == '#', "cut to 4: '%s', length %d", cut, little);
        if (!strcmp(got, name)) return i;
    }
    return -1;
}

/* The set is there, once, and holds the ranks first ... first + count - 1 of the job. */
static void holds(MPI_Session s, const char *name, int first, int count)
{
    MPI_Group g, world;
    int size = -1;
    CHECK(find(s, name) >= 0, "there is no set %s", name);
    CHECK_OK(MPI_Group_from_session_pset(s, name, &g));
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    MPI_Group_size(g, &size);
    CHECK(size == count, "%s has %d processes instead of %d", name, size, count);
    for (int i = 0; i < size; i++) {
        int in_world = -1;
        MPI_Group_translate_ranks(g, 1, &i, world, &in_world);
        CHECK(in_world == first + i, "rank %d of %s is %d of the job", i, name, in_world);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&g);
    MPI_Info info = MPI_INFO_NULL;
    char value[16] = "";
    int len = sizeof value, flag = 0;
    CHECK_OK(MPI_Session_get_pset_info(s, name, &info));
    CHECK_OK(MPI_Info_get_string(info, "mpi_size", &len, value, &flag));
    CHECK(flag && atoi(value) == count, "mpi_size of %s is '%s' instead of %d", name, value, count);
    MPI_Info_free(&info);
}

/* The processes of this node are a set: those that MPI_Comm_split_type finds, whose ranks follow each other here. */
static void holds_node(MPI_Session s)
{
    MPI_Group world, node;
    MPI_Comm all, near;
    int zero = 0, first = -1, count = 0;
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    CHECK_OK(MPI_Comm_create_from_group(world, "psets", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    CHECK_OK(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    CHECK_OK(MPI_Comm_group(near, &node));
    MPI_Group_size(node, &count);
    MPI_Group_translate_ranks(node, 1, &zero, world, &first);
    holds(s, "tern://node", first, count);
    MPI_Group_free(&node);
    MPI_Group_free(&world);
    MPI_Comm_free(&near);
    MPI_Comm_free(&all);
}

static void wrong(MPI_Session s)
{
    int n = 0, len = 10;
    char name[16];
    MPI_Group g = MPI_GROUP_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, n, &len, name), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, -1, &len, name), MPI_ERR_ARG);
    len = -1;
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, name), MPI_ERR_ARG);
    len = 5;
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, NULL, name), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_num_psets(s, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(s, "no://such", &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(s, "", &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(s, NULL, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_from_session_pset(s, "mpi://SELF", NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_pset_info(s, "no://such", &info), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Session_get_pset_info(s, "mpi://SELF", NULL), MPI_ERR_ARG);
    CHECK(g == MPI_GROUP_NULL && info == MPI_INFO_NULL, "a failed call gave something");
}

int main(void)
{
    alone_start();
    MPI_Session s = alone_session();
    MPI_Group world;
    int size = 0;
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &world));
    MPI_Group_size(world, &size);
    MPI_Group_free(&world);
    holds(s, "mpi://WORLD", 0, size);
    holds(s, "mpi://SELF", check_rank, 1);
    holds_node(s);
    const char *expect = getenv("EXPECT_PSETS");
    char name[100];
    for (int first, count; expect && sscanf(expect, "%99[^=]=%d+%d", name, &first, &count) == 3;) {
        holds(s, name, first, count);
        expect = strchr(expect, ',');
        if (expect) expect++;
    }
    wrong(s);
    CHECK_OK(MPI_Session_finalize(&s));
    return alone_done();
}
