/*
 * ops.c - operators by themselves (MPI-5.0 sections 6.9.5 to 6.9.7): local reductions, users' functions and what they are given,
 * which types an operator takes.
 */
#include "../check.h"

static MPI_Datatype seen_type;
static long seen_len;

static void first_minus(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int *a = in, *b = inout;
    seen_type = *type;
    seen_len = *len;
    for (int i = 0; i < *len; i++) b[i] = a[i] - b[i];
}

static void first_minus_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    int n = (int)*len;
    first_minus(in, inout, &n, type);
}

static void local(void)
{
    int a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, flag = -1;
    MPI_Op op, op_c;
    CHECK_OK(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM));
    CHECK(b[0] == 11 && b[1] == 22 && b[2] == 33, "%d %d %d", b[0], b[1], b[2]);
    CHECK_OK(MPI_Reduce_local_c(a, b, 3, MPI_INT, MPI_MIN));
    CHECK(b[0] == 10 && b[1] == 20 && b[2] == 30, "%d %d %d", b[0], b[1], b[2]);
    CHECK_OK(MPI_Op_create(first_minus, 0, &op));
    CHECK_OK(MPI_Op_create_c(first_minus_c, 1, &op_c));
    b[0] = 1;
    CHECK_OK(MPI_Reduce_local(a, b, 3, MPI_INT, op));
    CHECK(b[0] == 9 && b[1] == 0 && seen_type == MPI_INT && seen_len == 3, "%d %d, length %ld", b[0], b[1], seen_len);
    CHECK_OK(MPI_Reduce_local(a, b, 1, MPI_INT, op_c));
    CHECK(b[0] == 1 && seen_len == 1, "%d, length %ld", b[0], seen_len);
    CHECK_OK(MPI_Op_commutative(op, &flag));
    CHECK(flag == 0, "made not to commute, but it says %d", flag);
    CHECK_OK(MPI_Op_commutative(op_c, &flag));
    CHECK(flag == 1, "made to commute, but it says %d", flag);
    CHECK_OK(MPI_Op_commutative(MPI_MAXLOC, &flag));
    CHECK(flag == 1, "MPI_MAXLOC says %d", flag);
    CHECK_OK(MPI_Op_free(&op));
    CHECK_OK(MPI_Op_free(&op_c));
    CHECK(op == MPI_OP_NULL, "a freed operator is not null");
}

/* 6.9.2: the table of the standard. */
static void allowed(void)
{
    struct { MPI_Op op; MPI_Datatype type; int ok; } cases[] = {
        {MPI_SUM, MPI_INT, 1}, {MPI_SUM, MPI_DOUBLE, 1}, {MPI_SUM, MPI_C_DOUBLE_COMPLEX, 1}, {MPI_SUM, MPI_CHAR, 1}, {MPI_SUM, MPI_WCHAR, 0}, {MPI_SUM, MPI_BYTE, 0},
        {MPI_SUM, MPI_C_BOOL, 0}, {MPI_SUM, MPI_AINT, 1}, {MPI_MAX, MPI_C_DOUBLE_COMPLEX, 0}, {MPI_MAX, MPI_LONG_DOUBLE, 1},
        {MPI_LAND, MPI_INT, 1}, {MPI_LAND, MPI_C_BOOL, 1}, {MPI_LAND, MPI_DOUBLE, 0}, {MPI_BAND, MPI_BYTE, 1}, {MPI_BAND, MPI_FLOAT, 0},
        {MPI_BXOR, MPI_UINT64_T, 1}, {MPI_MINLOC, MPI_DOUBLE_INT, 1}, {MPI_MINLOC, MPI_DOUBLE, 0}, {MPI_SUM, MPI_2INT, 0},
        {MPI_SUM, MPI_SIGNED_CHAR, 1}, {MPI_PROD, MPI_UNSIGNED_CHAR, 1}, {MPI_SUM, MPI_PACKED, 0}, {MPI_REPLACE, MPI_INT, 0}, {MPI_NO_OP, MPI_INT, 0}};
    char a[64] = "", b[64] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[MPI_MAX_OBJECT_NAME];
        int len, rc = MPI_Reduce_local(a, b, 1, cases[i].type, cases[i].op), class = -1;
        MPI_Error_class(rc, &class);
        MPI_Type_get_name(cases[i].type, name, &len);
        CHECK(class == (cases[i].ok ? MPI_SUCCESS : MPI_ERR_OP), "case %zu (%s): class %d", i, name, class);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    local();
    allowed();
    return check_done();
}
