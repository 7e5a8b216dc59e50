/*
 * env.c - entry points: the environment - versions, names, clocks, memory (MPI-5.0
 * chapter 9, 15.2.4, 20).
 */
#include "config.h"

#include "mpi/report.h"
#include "obj/info.h"
#include "transport/arena.h"

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

#define LARGE_PAGE ((size_t)2 << 20)

/* The alignment that an info object asks for (info key of 9.2), 0 for none; -1: it is no power of two. */
static int64_t wanted_alignment(const char *text)
{
    if (!text) return 0;
    char *end;
    long long n = strtoll(text, &end, 10);
    return end != text && !*end && n > 0 && !(n & (n - 1)) ? n : -1;
}

/* Where peers on the node can reach it if it is large, else anywhere. NULL: there is none. */
static void *allocate(size_t n, size_t align)
{
    void *p = n >= ARENA_MIN ? arena_alloc(n, align) : NULL;
    /* aligned so that large copies and the kernel's large pages come easy */
    align = max_size(align, n >= LARGE_PAGE ? LARGE_PAGE : CACHE_LINE);
    return p || !posix_memalign(&p, align, n) ? p : NULL;
}

MPI_ALIAS(Alloc_mem);
int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    const char *call = "MPI_Alloc_mem";
    struct info *hints;
    char copy[MPI_MAX_INFO_VAL];
    check_running(call);
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    if (size < 0) return report(NULL, call, MPI_ERR_ARG, "argument size is %lld, which is negative", (long long)size);
    if (!baseptr) return bad_null(NULL, call, "baseptr");
    const char *wanted = info_copy_value(hints, "mpi_minimum_memory_alignment", copy);
    int64_t align = wanted_alignment(wanted);
    if (align < 0)
        return report(NULL, call, MPI_ERR_INFO_VALUE,
                      "argument info: mpi_minimum_memory_alignment is '%s', which is no power of two", wanted);
    void *p = allocate(size ? (size_t)size : 1, (size_t)align);
    if (!p) return report(NULL, call, MPI_ERR_NO_MEM, "argument size is %lld, and there is not so much memory", (long long)size);
    *(void **)baseptr = p;
    return MPI_SUCCESS;
}

MPI_ALIAS(Free_mem);
int PMPI_Free_mem(void *base)
{
    check_running("MPI_Free_mem");
    if (!base) return bad_null(NULL, "MPI_Free_mem", "base");
    enum arena_result found = arena_free(base);
    if (found == ARENA_WRONG)
        return report(NULL, "MPI_Free_mem", MPI_ERR_BASE, "argument base (%p) is not what MPI_Alloc_mem gave, or was freed", base);
    if (found == ARENA_FOREIGN) free(base);
    return MPI_SUCCESS;
}

/* For profilers, which put their own in its place: the library's does nothing, as the standard says (15.2.4). */
MPI_ALIAS(Pcontrol);
int PMPI_Pcontrol(const int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}
