/*
 * pack.c - explicit packing (MPI-5.0 section 5.2), and counting what arrived: Get_count, Get_elements, Status_set_*.
 */
#include "../check.h"

static void pack_and_unpack(int large)
{
    int a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {0}, size1 = 0, size2 = 0, position = 0;
    MPI_Count cposition = 0, csize = 0;
    double x = 2.5, y = 0;
    char buf[200];
    MPI_Datatype odd;
    MPI_Type_vector(3, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    CHECK_OK(MPI_Pack_size(1, odd, MPI_COMM_WORLD, &size1));
    CHECK_OK(MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_WORLD, &size2));
    CHECK(size1 >= 12 && size2 >= 8, "pack sizes %d, %d", size1, size2);
    CHECK_OK(MPI_Pack_size_c(1, odd, MPI_COMM_WORLD, &csize));
    CHECK(csize == size1, "pack_size_c %d", (int)csize);
    if (large) {
        CHECK_OK(MPI_Pack_c(a, 1, odd, buf, 200, &cposition, MPI_COMM_WORLD));
        CHECK_OK(MPI_Pack_c(&x, 1, MPI_DOUBLE, buf, 200, &cposition, MPI_COMM_WORLD));
        position = (int)cposition;
    } else {
        CHECK_OK(MPI_Pack(a, 1, odd, buf, 200, &position, MPI_COMM_WORLD));
        CHECK_OK(MPI_Pack(&x, 1, MPI_DOUBLE, buf, 200, &position, MPI_COMM_WORLD));
    }
    CHECK(position <= size1 + size2, "position %d", position);
    int length = position;
    char got[200];
    CHECK_OK(MPI_Sendrecv(buf, length, MPI_PACKED, check_rank, 1, got, 200, MPI_PACKED, check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    position = 0, cposition = 0;
    if (large) {
        CHECK_OK(MPI_Unpack_c(got, length, &cposition, b, 1, odd, MPI_COMM_WORLD));
        CHECK_OK(MPI_Unpack_c(got, length, &cposition, &y, 1, MPI_DOUBLE, MPI_COMM_WORLD));
        position = (int)cposition;
    } else {
        CHECK_OK(MPI_Unpack(got, length, &position, b, 1, odd, MPI_COMM_WORLD));
        CHECK_OK(MPI_Unpack(got, length, &position, &y, 1, MPI_DOUBLE, MPI_COMM_WORLD));
    }
    CHECK(position == length, "unpacked to %d of %d", position, length);
    CHECK(b[0] == 1 && b[1] == 0 && b[2] == 3 && b[3] == 0 && b[4] == 5 && y == 2.5, "unpacked %d %d %d %d %d, %g", b[0], b[1], b[2], b[3], b[4], y);
    /* what was packed can be received as its type, and the other way round */
    memset(b, 0, sizeof b);
    CHECK_OK(MPI_Sendrecv(buf, 12, MPI_PACKED, check_rank, 1, b, 1, odd, check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(b[0] == 1 && b[2] == 3 && b[4] == 5 && b[1] == 0, "a packed message into a vector");
    MPI_Type_free(&odd);
}

static void too_small(void)
{
    char buf[10];
    int a[4] = {1, 2, 3, 4}, position = 0;
    CHECK_OK(MPI_Pack(a, 2, MPI_INT, buf, 10, &position, MPI_COMM_WORLD));
    CHECK(position == 8, "position %d", position);
    CHECK_CLASS(MPI_Pack(a, 1, MPI_INT, buf, 10, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    CHECK(position == 8, "a failed pack moved the position to %d", position);
    CHECK_CLASS(MPI_Unpack(buf, 7, &(int){0}, a, 2, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
}

/* What n ints are as elements of a type of int and double. */
static void counting(void)
{
    struct { int i; double d; } x[4] = {{0, 0}};
    MPI_Datatype t, types[2] = {MPI_INT, MPI_DOUBLE};
    int lens[2] = {1, 1}, n = -5, e = -5;
    MPI_Aint at[2] = {0, 8};
    MPI_Status st;
    MPI_Count c = -5;
    MPI_Type_create_struct(2, lens, at, types, &t);
    MPI_Type_commit(&t);
    struct { int bytes, count, elements; } cases[] = {{0, 0, 0}, {12, 1, 2}, {24, 2, 4}, {16, MPI_UNDEFINED, 3}, {4, MPI_UNDEFINED, 1},
                                                      {6, MPI_UNDEFINED, MPI_UNDEFINED}};
    for (int k = 0; k < 6; k++) {
        char packed[24] = "";
        CHECK_OK(MPI_Sendrecv(packed, cases[k].bytes, MPI_BYTE, check_rank, 1, x, 4, t, check_rank, 1, MPI_COMM_WORLD, &st));
        CHECK_OK(MPI_Get_count(&st, t, &n));
        CHECK_OK(MPI_Get_elements(&st, t, &e));
        CHECK(n == cases[k].count && e == cases[k].elements, "%d bytes: count %d, elements %d", cases[k].bytes, n, e);
        CHECK_OK(MPI_Get_count_c(&st, t, &c));
        CHECK(c == cases[k].count, "count_c %lld", (long long)c);
        CHECK_OK(MPI_Get_elements_c(&st, t, &c));
        CHECK(c == cases[k].elements, "elements_c %lld", (long long)c);
        CHECK_OK(MPI_Get_elements_x(&st, t, &c));
        CHECK(c == cases[k].elements, "elements_x %lld", (long long)c);
    }
    CHECK_OK(MPI_Status_set_elements(&st, t, 3));
    CHECK_OK(MPI_Get_elements(&st, t, &e));
    CHECK_OK(MPI_Get_count(&st, t, &n));
    CHECK(e == 3 && n == MPI_UNDEFINED, "set to 3 elements: elements %d, count %d", e, n);
    CHECK_OK(MPI_Status_set_elements_c(&st, MPI_INT, (MPI_Count)5 << 30));
    CHECK_OK(MPI_Get_count(&st, MPI_INT, &n));
    CHECK_OK(MPI_Get_count_c(&st, MPI_INT, &c));
    CHECK(n == MPI_UNDEFINED && c == (MPI_Count)5 << 30, "a count beyond int: %d, %lld", n, (long long)c);
    CHECK_OK(MPI_Status_set_elements_x(&st, t, 4));
    CHECK_OK(MPI_Get_count(&st, t, &n));
    CHECK(n == 2, "set to 4 elements: count %d", n);
    MPI_Type_free(&t);
}

static void fields(void)
{
    MPI_Status st = {.MPI_SOURCE = 0};
    int v = -1;
    CHECK_OK(MPI_Status_set_source(&st, 3));
    CHECK_OK(MPI_Status_set_tag(&st, 4));
    CHECK_OK(MPI_Status_set_error(&st, MPI_ERR_TAG));
    CHECK(st.MPI_SOURCE == 3 && st.MPI_TAG == 4 && st.MPI_ERROR == MPI_ERR_TAG, "fields set");
    CHECK_OK(MPI_Status_get_source(&st, &v));
    CHECK(v == 3, "source %d", v);
    CHECK_OK(MPI_Status_get_tag(&st, &v));
    CHECK(v == 4, "tag %d", v);
    CHECK_OK(MPI_Status_get_error(&st, &v));
    CHECK(v == MPI_ERR_TAG, "error %d", v);
    CHECK_OK(MPI_Status_set_cancelled(&st, 1));
    CHECK_OK(MPI_Test_cancelled(&st, &v));
    CHECK(v == 1, "cancelled %d", v);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    pack_and_unpack(0);
    pack_and_unpack(1);
    too_small();
    counting();
    fields();
    return check_done();
}
