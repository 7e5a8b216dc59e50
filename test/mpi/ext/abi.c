/*
 * abi.c - what the binary interface says and is told of other languages (MPI-5.0 section 20.4): any time; what is told
 * counts once; logical reductions then use the compiler's values.
 */
#include "../check.h"

static int info_size(MPI_Info info, const char *key)
{
    char text[MPI_MAX_INFO_VAL];
    int len = sizeof text, flag = 0;
    MPI_Info_get_string(info, key, &len, text, &flag);
    return flag ? atoi(text) : -1;
}

static int info_says(MPI_Info info, const char *key, const char *want)
{
    char text[MPI_MAX_INFO_VAL];
    int len = sizeof text, flag = 0;
    MPI_Info_get_string(info, key, &len, text, &flag);
    return flag && !strcmp(text, want);
}

static void sizes(const char *when)
{
    MPI_Info info = MPI_INFO_NULL;
    CHECK_OK(MPI_Abi_get_info(&info));
    CHECK(info_size(info, "mpi_aint_size") == (int)sizeof(MPI_Aint), "%s: mpi_aint_size", when);
    CHECK(info_size(info, "mpi_count_size") == (int)sizeof(MPI_Count), "%s: mpi_count_size", when);
    CHECK(info_size(info, "mpi_offset_size") == (int)sizeof(MPI_Offset), "%s: mpi_offset_size", when);
    CHECK_OK(MPI_Info_free(&info));
}

/* The first call counts. Here after MPI_Init; a Fortran program's start does it before. */
static void compiler(void)
{
    MPI_Info info, wrong, told;
    MPI_Info_create(&info);
    MPI_Info_create(&wrong);
    MPI_Info_set(info, "mpi_logical_size", "4");
    MPI_Info_set(info, "mpi_integer_size", "4");
    MPI_Info_set(info, "mpi_real16_supported", "false");
    MPI_Info_set(info, "mpi_double_complex_supported", "true");
    MPI_Info_set(wrong, "mpi_logical_size", "four");
    told = wrong;
    CHECK_OK(MPI_Abi_get_fortran_info(&told));
    CHECK(told == MPI_INFO_NULL, "something is known of the Fortran compiler, though nobody told");
    CHECK_CLASS(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Abi_set_fortran_info(wrong), MPI_ERR_INFO_VALUE);
    CHECK_CLASS(MPI_Abi_get_fortran_info(NULL), MPI_ERR_ARG);
    CHECK_OK(MPI_Abi_set_fortran_info(info));
    CHECK_CLASS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    CHECK_OK(MPI_Abi_get_fortran_info(&told));
    CHECK(info_size(told, "mpi_logical_size") == 4 && info_size(told, "mpi_integer_size") == 4, "sizes told");
    CHECK(info_says(told, "mpi_real16_supported", "false") && info_says(told, "mpi_double_complex_supported", "true"), "types told");
    CHECK(info_size(told, "mpi_real_size") == -1, "mpi_real_size is there, which nobody told");
    MPI_Info_free(&told);
    MPI_Info_free(&info);
    MPI_Info_free(&wrong);
}

/* All ones are .TRUE., 7 is .FALSE.: neither is what C would take. */
static const int32_t yes = -1, no = 7;

static void reduction(MPI_Op op, const char *name, int truth_of_mix, int truth_of_all)
{
    /* one rank true, all true, all false */
    int32_t in[3] = {check_rank == 0 ? yes : no, yes, no}, out[3] = {0, 0, 0};
    CHECK_OK(MPI_Allreduce(in, out, 3, MPI_LOGICAL, op, MPI_COMM_WORLD));
    CHECK(out[0] == (truth_of_mix ? yes : no), "%s of one true: %d", name, out[0]);
    CHECK(out[1] == (truth_of_all ? yes : no), "%s of all true: %d", name, out[1]);
    CHECK(out[2] == no, "%s of all false: %d", name, out[2]);
}

static void booleans(void)
{
    int32_t t = 0, f = 0, in = 1, out = 0;
    int64_t t8, f8;
    int is_set = -1;
    CHECK_OK(MPI_Abi_get_fortran_booleans(4, &t, &f, &is_set));
    CHECK(is_set == 0, "values of LOGICAL are known, though nobody told");
    MPI_Allreduce(&in, &out, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD);
    CHECK(out == 1, "without being told, 1 is true: %d", out);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(3, &t, &f), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, NULL, &f), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &t, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &t, &f), MPI_ERR_ARG); /* the same value for both */
    CHECK_CLASS(MPI_Abi_get_fortran_booleans(4, &t, &f, NULL), MPI_ERR_ARG);
    t = yes, f = no;
    CHECK_OK(MPI_Abi_set_fortran_booleans(4, &t, &f));
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &t, &f), MPI_ERR_ABI);
    t = f = 0;
    CHECK_OK(MPI_Abi_get_fortran_booleans(4, &t, &f, &is_set));
    CHECK(is_set == 1 && t == yes && f == no, "told %d and %d, is_set %d", t, f, is_set);
    CHECK_OK(MPI_Abi_get_fortran_booleans(8, &t8, &f8, &is_set));
    CHECK(is_set == 0, "the values of another size are known");
    reduction(MPI_LAND, "MPI_LAND", check_size == 1, 1);
    reduction(MPI_LOR, "MPI_LOR", 1, 1);
    reduction(MPI_LXOR, "MPI_LXOR", 1, check_size % 2);
    _Bool b = 1, all = 0; /* C's are left alone */
    MPI_Allreduce(&b, &all, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    CHECK(all, "MPI_C_BOOL");
}

int main(int argc, char **argv)
{
    sizes("before MPI_Init");
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    sizes("in between");
    compiler();
    booleans();
    CHECK_CLASS(MPI_Abi_get_info(NULL), MPI_ERR_ARG);
    int rc = check_done();
    sizes("after MPI_Finalize");
    return rc || check_failures;
}
