/* hello.c - a program that only starts and ends: who and where each rank is. */
#include "../check.h"

int main(int argc, char **argv)
{
    int flag = -1, version = 0, subversion = 0, length = -1;
    char name[MPI_MAX_PROCESSOR_NAME] = "";

    MPI_Initialized(&flag);
    int before = flag;
    check_start(&argc, &argv);
    CHECK(before == 0, "MPI_Initialized said %d before MPI_Init", before);
    CHECK_OK(MPI_Initialized(&flag));
    CHECK(flag == 1, "MPI_Initialized said %d after MPI_Init", flag);
    CHECK_OK(MPI_Finalized(&flag));
    CHECK(flag == 0, "MPI_Finalized said %d", flag);
    CHECK(check_rank >= 0 && check_rank < check_size, "rank %d of %d", check_rank, check_size);
    CHECK_OK(MPI_Get_processor_name(name, &length));
    CHECK(length > 0 && (size_t)length == strlen(name), "processor name '%s' of length %d", name, length);
    CHECK_OK(MPI_Get_version(&version, &subversion));
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION, "version %d.%d", version, subversion);
    return check_done();
}
