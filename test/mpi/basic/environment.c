/*
 * environment.c - versions, names, clocks, memory: what may be asked at any time, and what after MPI_Init (MPI-5.0 chapters 9, 11, 20).
 */
#include "../check.h"

static void at_any_time(const char *when)
{
    int a = -1, b = -1, len = -1;
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Get_version(&a, &b) == MPI_SUCCESS && a == MPI_VERSION && b == MPI_SUBVERSION, "%s: version %d.%d", when, a, b);
    CHECK(MPI_Abi_get_version(&a, &b) == MPI_SUCCESS && a == MPI_ABI_VERSION && b == MPI_ABI_SUBVERSION, "%s: ABI %d.%d", when, a, b);
    CHECK(MPI_Get_library_version(version, &len) == MPI_SUCCESS && len == (int)strlen(version), "%s: length %d", when, len);
    CHECK(!strncmp(version, "Tern MPI ", 9), "%s: '%s'", when, version); /* others begin "MPICH Version", "Open MPI v" */
    CHECK(MPI_Error_class(MPI_ERR_TYPE, &a) == MPI_SUCCESS && a == MPI_ERR_TYPE, "%s: class %d", when, a);
}

static void clocks(void)
{
    double start = MPI_Wtime(), tick = MPI_Wtick(), before = start;
    CHECK(tick > 0 && tick < 1e-3, "a tick of %g s", tick);
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    for (int i = 0; i < 1000; i++) {
        double now = MPI_Wtime();
        CHECK(now >= before, "the clock went back by %g s", before - now);
        before = now;
    }
    CHECK(before - start >= 0.0199 && before - start < 10, "20 ms took %g s", before - start);
}

static void memory(void)
{
    static const MPI_Aint sizes[] = {0, 1, 100, 5000, 3 << 20};
    for (int i = 0; i < 5; i++) {
        char *p = NULL;
        CHECK_OK(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &p));
        CHECK(p != NULL && (uintptr_t)p % 16 == 0, "%ld bytes at %p", (long)sizes[i], (void *)p);
        memset(p, 1, (size_t)sizes[i]);
        CHECK_OK(MPI_Free_mem(p));
    }
}

int main(int argc, char **argv)
{
    at_any_time("before MPI_Init");
    check_start(&argc, &argv);
    at_any_time("in between");
    clocks();
    memory();
    CHECK_OK(MPI_Pcontrol(1));
    CHECK_OK(MPI_Pcontrol(2, "more", 3));
    int rc = check_done();
    at_any_time("after MPI_Finalize");
    int a = -1, b = -1;
    MPI_Initialized(&a);
    MPI_Finalized(&b);
    if (!a || !b) fprintf(stderr, "after the end: initialized %d, finalized %d\n", a, b);
    return rc || check_failures || !a || !b;
}
