/*
 * env.c - entry points: the environment - versions, names, clocks, memory (MPI-5.0
 * chapter 9, 15.2.4, 20).
 */
#include "config.h"

#include "mpi/report.h"
#include "obj/info.h"
#include "pt2pt/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- versions: may be called at any time ---- */

MPI_ALIAS(Get_version);
int PMPI_Get_version(int *version, int *subversion)
{
    if (!version || !subversion) return bad_null(NULL, "MPI_Get_version", version ? "subversion" : "version");
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

MPI_ALIAS(Get_library_version);
int PMPI_Get_library_version(char *version, int *resultlen)
{
    if (!version || !resultlen) return bad_null(NULL, "MPI_Get_library_version", version ? "resultlen" : "version");
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Tern MPI %s (MPI %d.%d, ABI %d.%d)", PACKAGE_VERSION,
                          MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

MPI_ALIAS(Abi_get_version);
int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
    if (!abi_major || !abi_minor) return bad_null(NULL, "MPI_Abi_get_version", abi_major ? "abi_minor" : "abi_major");
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}

MPI_ALIAS(Get_processor_name);
int PMPI_Get_processor_name(char *name, int *resultlen)
{
    check_running("MPI_Get_processor_name");
    if (!name || !resultlen) return bad_null(NULL, "MPI_Get_processor_name", name ? "resultlen" : "name");
    name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1))
        return report_code(NULL, "MPI_Get_processor_name", err_sys("the host's name cannot be read"));
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

/* ---- clocks ---- */

static double seconds(struct timespec t) { return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }

MPI_ALIAS(Wtime);
double PMPI_Wtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return seconds(t);
}

MPI_ALIAS(Wtick);
double PMPI_Wtick(void)
{
    struct timespec t;
    clock_getres(CLOCK_MONOTONIC, &t);
    return seconds(t);
}

/* ---- memory ---- */

#define PAGE 4096
#define LARGE_PAGE ((size_t)2 << 20)

MPI_ALIAS(Alloc_mem);
int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    const char *call = "MPI_Alloc_mem";
    void *p = NULL;
    check_running(call);
    struct info *hints; /* none is known */
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    if (size < 0) return report(NULL, call, MPI_ERR_ARG, "argument size is %lld, which is negative", (long long)size);
    if (!baseptr) return bad_null(NULL, call, "baseptr");
    size_t n = size ? (size_t)size : 1;
    /* aligned so that large copies and the kernel's large pages come easy */
    int rc = posix_memalign(&p, n >= LARGE_PAGE ? LARGE_PAGE : n >= PAGE ? PAGE : CACHE_LINE, n);
    if (rc) return report(NULL, call, MPI_ERR_NO_MEM, "argument size is %lld: %s", (long long)size, strerror(rc));
    *(void **)baseptr = p;
    return MPI_SUCCESS;
}

MPI_ALIAS(Free_mem);
int PMPI_Free_mem(void *base)
{
    check_running("MPI_Free_mem");
    if (!base) return bad_null(NULL, "MPI_Free_mem", "base");
    free(base);
    return MPI_SUCCESS;
}

/* For profilers, which put their own in its place: the library's does nothing, as the standard says (15.2.4). */
MPI_ALIAS(Pcontrol);
int PMPI_Pcontrol(const int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}
