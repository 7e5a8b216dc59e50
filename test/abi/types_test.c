/* types_test.c - sizes, signs and layouts of the types of mpi.h (MPI-5.0, chapter 20). */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

static int cases, failed;

static void check(int good, const char *words)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++cases, words);
    failed |= !good;
}

#define IS_SIGNED(type) ((type)-1 < (type)0)

int main(void)
{
    check(sizeof(MPI_Aint) == sizeof(void *) && IS_SIGNED(MPI_Aint), "MPI_Aint is a signed pointer-sized integer");
    check(sizeof(MPI_Offset) == 8 && IS_SIGNED(MPI_Offset), "MPI_Offset is a signed 64-bit integer");
    check(sizeof(MPI_Count) == 8 && IS_SIGNED(MPI_Count), "MPI_Count is a signed 64-bit integer");
    check(sizeof(MPI_Fint) == sizeof(int), "MPI_Fint is an int");
    check(sizeof(MPI_Status) == 32 && _Alignof(MPI_Status) == _Alignof(int), "MPI_Status is 8 ints");
    check(offsetof(MPI_Status, MPI_SOURCE) == 0, "MPI_SOURCE comes first");
    check(offsetof(MPI_Status, MPI_TAG) == 4, "MPI_TAG comes second");
    check(offsetof(MPI_Status, MPI_ERROR) == 8, "MPI_ERROR comes third");
    check(offsetof(MPI_Status, MPI_internal) == 12, "the library's 5 ints come last");
    check(sizeof(MPI_F08_status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint), "MPI_F08_status is MPI_F_STATUS_SIZE integers");
    check(sizeof(MPI_Comm) == sizeof(void *) && sizeof(MPI_T_enum) == sizeof(void *), "handles are pointers");
    check(sizeof(MPI_T_cb_safety) == 4 && sizeof(MPI_T_source_order) == 4, "enumerations have 4 bytes");

    int part[] = {TERN_VERSION_MAJOR, TERN_VERSION_MINOR, TERN_VERSION_PATCH};
    check(TERN_VERSION == part[0] * 10000 + part[1] * 100 + part[2], "TERN_VERSION is made of its parts");
    printf("1..%d\n", cases);
    return failed;
}
