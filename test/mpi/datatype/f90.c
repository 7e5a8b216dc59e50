/*
 * f90.c - types for selected kinds (MPI-5.0 section 19.1.9): equal arguments give the same type, which is committed,
 * not to be freed, usable with the operators, and tells its origin.
 */
#include "../check.h"

static void a_real(void)
{
    MPI_Datatype a, b, c;
    int size = 0, ni, na, nd, combiner, args[2] = {0, 0};
    CHECK_OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &a));
    CHECK_OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &b));
    CHECK_OK(MPI_Type_create_f90_real(MPI_UNDEFINED, 100, &c));
    CHECK(a == b, "equal arguments, two types");
    CHECK(a != c && a != MPI_DOUBLE, "types of other arguments are others");
    MPI_Type_size(a, &size);
    CHECK(size == 8, "15 digits in %d bytes", size);
    CHECK_OK(MPI_Type_get_envelope(a, &ni, &na, &nd, &combiner));
    CHECK(ni == 2 && na == 0 && nd == 0 && combiner == MPI_COMBINER_F90_REAL, "envelope %d %d %d %d", ni, na, nd, combiner);
    CHECK_OK(MPI_Type_get_contents(a, 2, 0, 0, args, NULL, NULL));
    CHECK(args[0] == 15 && args[1] == MPI_UNDEFINED, "contents %d, %d", args[0], args[1]);
    CHECK_CLASS(MPI_Type_free(&a), MPI_ERR_TYPE);
    double x = 1.5, y = 2.25, z = 0;
    CHECK_OK(MPI_Reduce_local(&x, &y, 1, a, MPI_SUM));
    CHECK(y == 3.75, "sum %g", y);
    MPI_Sendrecv(&y, 1, a, check_rank, 0, &z, 1, a, check_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(z == 3.75, "received %g", z);
}

static void others(void)
{
    static const struct { int r, size; } integers[] = {{0, 1}, {2, 1}, {3, 2}, {9, 4}, {10, 8}, {18, 8}};
    static const struct { int p, r, size; } complexes[] = {{6, 37, 8}, {7, 37, 16}, {6, 38, 16}, {15, 307, 16}, {18, 4931, 32}};
    MPI_Datatype t, in;
    int size, ni, na, nd, combiner, r = -1;
    for (int i = 0; i < 6; i++) {
        CHECK_OK(MPI_Type_create_f90_integer(integers[i].r, &t));
        MPI_Type_size(t, &size);
        CHECK(size == integers[i].size, "integer of range %d: %d bytes", integers[i].r, size);
        CHECK_OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
        CHECK(ni == 1 && na == 0 && nd == 0 && combiner == MPI_COMBINER_F90_INTEGER, "combiner %d", combiner);
        CHECK_OK(MPI_Type_get_contents(t, 1, 0, 0, &r, NULL, NULL));
        CHECK(r == integers[i].r, "range %d", r);
    }
    for (int i = 0; i < 5; i++) {
        CHECK_OK(MPI_Type_create_f90_complex(complexes[i].p, complexes[i].r, &t));
        MPI_Type_size(t, &size);
        CHECK(size == complexes[i].size, "complex (%d, %d): %d bytes", complexes[i].p, complexes[i].r, size);
        CHECK_OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
        CHECK(ni == 2 && combiner == MPI_COMBINER_F90_COMPLEX, "combiner %d", combiner);
    }
    /* as a part of another type it comes back as itself */
    MPI_Datatype v;
    int ints[1];
    MPI_Type_contiguous(3, t, &v);
    CHECK_OK(MPI_Type_get_contents(v, 1, 0, 1, ints, NULL, &in));
    CHECK(in == t, "a part is another type");
    MPI_Type_free(&v);
    char name[MPI_MAX_OBJECT_NAME] = "x";
    int length = -1;
    CHECK_OK(MPI_Type_get_name(t, name, &length));
    CHECK(length == 0 && !name[0], "its name is %s", name);
}

static void bad_arguments(void)
{
    MPI_Datatype t;
    CHECK_CLASS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_real(99, 10, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_complex(6, 99999, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_complex(-1, 10, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_integer(99, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_integer(MPI_UNDEFINED, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_integer(3, NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    a_real();
    others();
    bad_arguments();
    return check_done();
}
