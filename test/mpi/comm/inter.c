/* inter.c - intercommunicators: made from two halves, talked over, duplicated, split, cut to a subgroup, merged. */
#include "../check.h"

static int half, me, mine, theirs; /* my half, my rank in it, sizes of both */

static MPI_Comm make(MPI_Comm *local_p)
{
    MPI_Comm inter;
    half = check_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, half, check_rank, local_p);
    MPI_Comm_rank(*local_p, &me);
    MPI_Comm_size(*local_p, &mine);
    theirs = check_size - mine;
    int leader = mine - 1, other = half ? 2 * (theirs - 1) : 2 * theirs - 1; /* the last of each half; world ranks */
    CHECK_OK(MPI_Intercomm_create(*local_p, leader, MPI_COMM_WORLD, other, 17, &inter));
    return inter;
}

static void check_shape(MPI_Comm c, int local_size, int remote_size)
{
    int flag = 0, n = -1, m = -1;
    MPI_Comm_test_inter(c, &flag);
    MPI_Comm_size(c, &n);
    MPI_Comm_remote_size(c, &m);
    CHECK(flag && n == local_size && m == remote_size, "inter %d, sizes %d and %d, not %d and %d", flag, n, m, local_size,
          remote_size);
}

/* Everybody sends its world rank to everybody on the other side and checks what comes, also by probe and wildcard. */
static void talk(MPI_Comm c, const int *worlds, int n, int tag)
{
    MPI_Request q[64];
    for (int r = 0; r < n; r++) MPI_Isend(&check_rank, 1, MPI_INT, r, tag, c, &q[r]);
    for (int i = 0; i < n; i++) {
        MPI_Status s;
        int got = -1;
        MPI_Probe(MPI_ANY_SOURCE, tag, c, &s);
        CHECK_OK(MPI_Recv(&got, 1, MPI_INT, s.MPI_SOURCE, tag, c, MPI_STATUS_IGNORE));
        CHECK(got == worlds[s.MPI_SOURCE], "rank %d of the other side is %d, not %d", s.MPI_SOURCE, got, worlds[s.MPI_SOURCE]);
    }
    MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

static void split(MPI_Comm inter)
{
    MPI_Comm c;
    int worlds[64], n = 0, here = 0;
    /* colors by thirds, keys backwards */
    for (int r = theirs - 1; r >= 0; r--)
        if (r % 3 == me % 3) worlds[n++] = 2 * r + !half;
    for (int r = 0; r < mine; r++) here += r % 3 == me % 3;
    CHECK_OK(MPI_Comm_split(inter, me % 3, -me, &c));
    if (!n) {
        CHECK(c == MPI_COMM_NULL, "a communicator with nobody on the other side");
        return;
    }
    check_shape(c, here, n);
    talk(c, worlds, n, 5);
    MPI_Comm_free(&c);
}

static void subgroup(MPI_Comm inter)
{
    MPI_Group g, first;
    MPI_Comm c;
    int zero = 0, world = !half;
    MPI_Comm_group(inter, &g);
    MPI_Group_incl(g, 1, &zero, &first);
    CHECK_OK(MPI_Comm_create(inter, first, &c));
    CHECK((c != MPI_COMM_NULL) == (me == 0), "member where none should be, or none where one should");
    if (c != MPI_COMM_NULL) {
        check_shape(c, 1, 1);
        talk(c, &world, 1, 6);
        MPI_Comm_free(&c);
    }
    MPI_Group_free(&first);
    MPI_Group_free(&g);
}

static void merge(MPI_Comm inter)
{
    for (int high = 0; high < 2; high++) { /* the odd half is high, then the even one */
        MPI_Comm all;
        int rank, sum = 0, expect = check_size * (check_size - 1) / 2;
        CHECK_OK(MPI_Intercomm_merge(inter, half != high, &all));
        MPI_Comm_rank(all, &rank);
        CHECK(rank == me + (half != high ? theirs : 0), "rank %d in the merged one", rank);
        MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == expect, "sum %d, not %d", sum, expect);
        MPI_Comm_free(&all);
    }
}

static MPI_Comm pair_of(int first, int second)
{
    MPI_Group world, g;
    MPI_Comm c;
    int ranks[2] = {first, second};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &g);
    CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, g, 0, &c));
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Group_free(&g);
    MPI_Group_free(&world);
    return c;
}

/* Groups have to be disjoint (7.6.2). Here rank 1 is in both. */
static void overlap(void)
{
    MPI_Comm a = MPI_COMM_NULL, b = MPI_COMM_NULL, c;
    if (check_rank < 2) a = pair_of(0, 1);
    if (check_rank == 1 || check_rank == 2) b = pair_of(2, 1);
    if (check_rank < 2) CHECK_CLASS(MPI_Intercomm_create(a, 0, MPI_COMM_WORLD, 2, 9, &c), MPI_ERR_COMM);
    if (check_rank == 1 || check_rank == 2) CHECK_CLASS(MPI_Intercomm_create(b, 0, MPI_COMM_WORLD, 0, 9, &c), MPI_ERR_COMM);
    if (a != MPI_COMM_NULL) MPI_Comm_free(&a);
    if (b != MPI_COMM_NULL) MPI_Comm_free(&b);
}

/* A leader who is wrong about the other one tells its group, rather than to leave it waiting. */
static void wrong_leaders(MPI_Comm local)
{
    MPI_Comm c;
    MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Intercomm_create(local, 0, MPI_COMM_NULL, 0, 1, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, check_size, 1, &c), me == 0 ? MPI_ERR_RANK : MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(local, mine, MPI_COMM_WORLD, 0, 1, &c), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 0, -1, &c), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Intercomm_merge(local, 0, &c), MPI_ERR_COMM);
}

/* Only one side has members: no communicator for anybody (7.4.2). */
static void one_sided(MPI_Comm inter)
{
    MPI_Group g;
    MPI_Comm c;
    MPI_Comm_group(inter, &g);
    CHECK_OK(MPI_Comm_create(inter, half ? g : MPI_GROUP_EMPTY, &c));
    CHECK(c == MPI_COMM_NULL, "a communicator with an empty group");
    MPI_Group_free(&g);
}

int main(int argc, char **argv)
{
    MPI_Comm local, inter, dup;
    int worlds[64], result;
    check_start(&argc, &argv);
    if (check_size < 2) return check_skip("needs two halves");
    inter = make(&local);
    for (int r = 0; r < theirs; r++) worlds[r] = 2 * r + !half;
    check_shape(inter, mine, theirs);
    talk(inter, worlds, theirs, 3);
    CHECK_OK(MPI_Comm_dup(inter, &dup));
    MPI_Comm_compare(inter, dup, &result);
    CHECK(result == MPI_CONGRUENT, "a duplicate compares as %d", result);
    talk(dup, worlds, theirs, 4);
    split(inter);
    subgroup(dup);
    merge(dup);
    one_sided(dup);
    wrong_leaders(local);
    if (check_size > 2) overlap();
    MPI_Comm_free(&dup);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return check_done();
}
