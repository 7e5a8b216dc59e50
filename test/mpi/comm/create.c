/*
 * create.c - making communicators (MPI-5.0 section 7.4): who is in, in which order; messages and collectives stay inside; thousands
 * can be made and freed; names and comparison.
 */
#include "../check.h"

/* Works as a communicator of this many, where this process has this rank: a sum and a ring. */
static void works(MPI_Comm c, int rank, int size, const char *what)
{
    int r = -1, n = -1, sum = 0, one = 1, from = -1;
    CHECK_OK(MPI_Comm_rank(c, &r));
    CHECK_OK(MPI_Comm_size(c, &n));
    CHECK(r == rank && n == size, "%s: rank %d of %d instead of %d of %d", what, r, n, rank, size);
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == size, "%s: the sum of %d ones is %d", what, size, sum);
    CHECK_OK(MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 0, &from, 1, MPI_INT, (r + n - 1) % n, 0, c, MPI_STATUS_IGNORE));
    CHECK(from == (r + n - 1) % n, "%s: the left neighbour says it is %d", what, from);
}

static void compares(MPI_Comm a, MPI_Comm b, int want, const char *what)
{
    int result = -1;
    CHECK_OK(MPI_Comm_compare(a, b, &result));
    CHECK(result == want, "%s: compared as %d instead of %d", what, result, want);
}

static void dup(void)
{
    MPI_Comm c, d;
    int x = -1, flag = -1;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    CHECK_OK(MPI_Comm_dup(c, &d));
    works(d, check_rank, check_size, "dup of a dup");
    compares(MPI_COMM_WORLD, c, MPI_CONGRUENT, "dup");
    compares(c, c, MPI_IDENT, "itself");
    CHECK_OK(MPI_Comm_test_inter(c, &flag));
    CHECK(flag == 0, "a dup is an intercommunicator");
    /* the same tag on three communicators: each receive gets the message of its own */
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Comm in_turn[3] = {d, MPI_COMM_WORLD, c};
    MPI_Request r[3];
    int out[3] = {30, 10, 20};
    for (int i = 0; i < 3; i++) MPI_Isend(&out[i], 1, MPI_INT, right, 5, in_turn[i], &r[i]);
    CHECK_OK(MPI_Recv(&x, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(x == 10, "the world got the message %d", x);
    CHECK_OK(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE));
    CHECK(x == 20, "the dup got the message %d", x);
    CHECK_OK(MPI_Recv(&x, 1, MPI_INT, left, 5, d, MPI_STATUS_IGNORE));
    CHECK(x == 30, "the dup of the dup got the message %d", x);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    CHECK_OK(MPI_Comm_free(&c));
    CHECK(c == MPI_COMM_NULL, "a freed communicator is not null");
    works(d, check_rank, check_size, "after its parent has gone");
    MPI_Comm_free(&d);
}

static void split(void)
{
    MPI_Comm c, sub;
    int color = check_rank % 3, n = 0, before = 0;
    for (int r = color; r < check_size; r += 3) n++, before += r > check_rank;
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, color, -check_rank, &c)); /* in reverse order */
    works(c, before, n, "split");
    compares(MPI_COMM_WORLD, c, n == check_size ? (n == 1 ? MPI_CONGRUENT : MPI_SIMILAR) : MPI_UNEQUAL, "split");
    CHECK_OK(MPI_Comm_split(c, 0, 7, &sub)); /* equal keys: the order stays */
    works(sub, before, n, "split of a split");
    compares(c, sub, MPI_CONGRUENT, "split of a split");
    MPI_Comm_free(&sub);
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, check_rank == 0 ? MPI_UNDEFINED : 1, 0, &sub));
    CHECK((sub == MPI_COMM_NULL) == (check_rank == 0), "an undefined color");
    if (sub != MPI_COMM_NULL) {
        works(sub, check_rank - 1, check_size - 1, "all but one");
        MPI_Comm_free(&sub);
    }
    MPI_Comm_free(&c);
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
    const char *here = getenv("MPI_LOCALNRANKS"), *me = getenv("MPI_LOCALRANKID"); /* by our launcher; else all are here */
    works(c, me ? atoi(me) : check_rank, here ? atoi(here) : check_size, "one machine");
    MPI_Comm_free(&c);
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, check_rank ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
    CHECK((c == MPI_COMM_NULL) == (check_rank != 0), "an undefined type");
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
}

/* Several disjoint groups at once; those outside get the null communicator. */
static void from_groups(void)
{
    MPI_Group world, g;
    MPI_Comm c;
    int half = check_size / 2, low = check_rank < half;
    int range[1][3] = {{low ? 0 : half, low ? half - 1 : check_size - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (half) {
        MPI_Group_range_incl(world, 1, range, &g);
        CHECK_OK(MPI_Comm_create(MPI_COMM_WORLD, g, &c));
        works(c, low ? check_rank : check_rank - half, low ? half : check_size - half, "create");
        MPI_Comm_free(&c);
        if (low) { /* only the members call */
            CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, g, 17, &c));
            works(c, check_rank, half, "create_group");
            MPI_Comm_free(&c);
        }
        MPI_Group_free(&g);
    }
    int zero = 0;
    MPI_Group_incl(world, 1, &zero, &g);
    CHECK_OK(MPI_Comm_create(MPI_COMM_WORLD, check_rank ? MPI_GROUP_EMPTY : g, &c));
    CHECK((c == MPI_COMM_NULL) == (check_rank != 0), "create with one member");
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    MPI_Group_free(&g);
    MPI_Group_free(&world);
}

static void many(void)
{
    enum { LIVE = 200, ROUNDS = 3000 };
    static MPI_Comm c[LIVE];
    int sum;
    for (int i = 0; i < LIVE; i++) CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &c[i]));
    for (int i = 0; i < LIVE; i++) {
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_MAX, c[i]);
        CHECK(sum == i, "communicator %d of many: %d", i, sum);
    }
    for (int i = 0; i < LIVE; i++) CHECK_OK(MPI_Comm_free(&c[(i * 7) % LIVE]));
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2) MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &c[0]);
        else MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
        MPI_Comm_free(&c[0]);
    }
    MPI_Comm_dup(MPI_COMM_SELF, &c[0]);
    works(c[0], 0, 1, "dup of self after thousands");
    MPI_Comm_free(&c[0]);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len = -1;
    MPI_Comm c;
    CHECK_OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &len));
    CHECK(!strcmp(name, "MPI_COMM_WORLD") && len == 14, "'%s', %d", name, len);
    CHECK_OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &len)); /* the null handle has a name, too */
    CHECK(!strcmp(name, "MPI_COMM_NULL") && len == 13, "the name is %s", name);
    CHECK_OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &len));
    CHECK(!strcmp(name, "MPI_COMM_SELF"), "'%s'", name);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    CHECK_OK(MPI_Comm_get_name(c, name, &len));
    CHECK(name[0] == 0 && len == 0, "a new communicator is called '%s'", name);
    CHECK_OK(MPI_Comm_set_name(c, "sea swallow"));
    CHECK_OK(MPI_Comm_get_name(c, name, &len));
    CHECK(!strcmp(name, "sea swallow") && len == 11, "'%s', %d", name, len);
    MPI_Comm_free(&c);
    CHECK_OK(MPI_Comm_get_parent(&c));
    CHECK(c == MPI_COMM_NULL, "there is a parent");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    works(MPI_COMM_WORLD, check_rank, check_size, "world");
    works(MPI_COMM_SELF, 0, 1, "self");
    dup();
    split();
    from_groups();
    many();
    names();
    return check_done();
}
