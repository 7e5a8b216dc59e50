/* removed.c - the datatype functions of MPI-1 make and tell what their successors do (MPI-5.0 section 17.1). */
#include "../check.h"

#include <stddef.h>

struct member {
    int i[3];
    double d;
};

static void bounds_of(MPI_Datatype t, const char *what)
{
    MPI_Aint lb, extent, old_lb = -77, old_ub = -77, old_extent = -77;
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK_OK(MPI_Type_extent(t, &old_extent));
    CHECK_OK(MPI_Type_lb(t, &old_lb));
    CHECK_OK(MPI_Type_ub(t, &old_ub));
    CHECK(old_extent == extent && old_lb == lb && old_ub == lb + extent, "%s: extent %ld, bounds %ld, %ld", what,
          (long)old_extent, (long)old_lb, (long)old_ub);
}

static void combiner_of(MPI_Datatype *t, int expected, const char *what)
{
    int ints, addresses, types, combiner = -1;
    MPI_Type_get_envelope(*t, &ints, &addresses, &types, &combiner);
    CHECK(combiner == expected, "%s: combiner %d", what, combiner);
    bounds_of(*t, what);
    MPI_Type_free(t);
}

static void a_struct_moves(void)
{
    struct member a = {{1, 2, 3}, 4.5}, b = {{0}, 0};
    int lens[2] = {3, 1};
    MPI_Aint at[2], base;
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, t;
    CHECK_OK(MPI_Address(&a, &base));
    CHECK_OK(MPI_Address(&a.i, &at[0]));
    CHECK_OK(MPI_Address(&a.d, &at[1]));
    at[0] -= base;
    at[1] -= base;
    CHECK(at[1] == (MPI_Aint)offsetof(struct member, d), "address %ld", (long)at[1]);
    CHECK_OK(MPI_Type_struct(2, lens, at, types, &t));
    MPI_Type_commit(&t);
    MPI_Sendrecv(&a, 1, t, check_rank, 0, &b, 1, t, check_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(b.i[2] == 3 && b.d == 4.5, "received %d, %g", b.i[2], b.d);
    combiner_of(&t, MPI_COMBINER_STRUCT, "struct");
}

static void the_others(void)
{
    MPI_Datatype t;
    int lens[2] = {1, 2};
    MPI_Aint at[2] = {-8, 16};
    CHECK_OK(MPI_Type_hvector(3, 2, 20, MPI_INT, &t));
    combiner_of(&t, MPI_COMBINER_HVECTOR, "hvector");
    CHECK_OK(MPI_Type_hindexed(2, lens, at, MPI_INT, &t));
    combiner_of(&t, MPI_COMBINER_HINDEXED, "hindexed");
    bounds_of(MPI_DOUBLE_INT, "MPI_DOUBLE_INT");
}

static void bad_arguments(void)
{
    MPI_Aint x;
    MPI_Datatype t;
    CHECK_CLASS(MPI_Address(&x, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_extent(MPI_DATATYPE_NULL, &x), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_lb(MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_ub(MPI_DATATYPE_NULL, &x), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_hvector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_hindexed(1, NULL, &x, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_struct(1, (int[]){1}, &x, NULL, &t), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    a_struct_moves();
    the_others();
    bad_arguments();
    return check_done();
}
