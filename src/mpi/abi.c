/*
 * abi.c - entry points: questions of other languages' interfaces to the binary
 * interface, and what they tell about the Fortran compiler (MPI-5.0 section 20.4).
 *
 * What is told counts once in the life of the process. All of it may be called at any
 * time and by any thread.
 */
#include "mpi/report.h"
#include "obj/info.h"
#include "type/logical.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- sizes of C's types ---- */

static int set_size(struct info *i, const char *key, int bytes)
{
    char text[16];
    snprintf(text, sizeof text, "%d", bytes);
    return info_set(i, key, text);
}

MPI_ALIAS(Abi_get_info);
int PMPI_Abi_get_info(MPI_Info *info)
{
    if (!info) return bad_null(NULL, "MPI_Abi_get_info", "info");
    struct info *i = info_new();
    int rc = i ? set_size(i, "mpi_aint_size", sizeof(MPI_Aint)) : TERN_ERR_NOMEM;
    if (!rc) rc = set_size(i, "mpi_count_size", sizeof(MPI_Count));
    if (!rc) rc = set_size(i, "mpi_offset_size", sizeof(MPI_Offset));
    return give_info(NULL, "MPI_Abi_get_info", i, rc, info);
}

/* ---- the Fortran compiler: nothing is known until somebody tells ---- */

/* The keys; those that end in _size have a number of bytes, the others true or false. */
static const char *const keys[] = {
    "mpi_logical_size",        "mpi_integer_size",       "mpi_real_size",           "mpi_double_precision_size",
    "mpi_logical1_supported",  "mpi_logical2_supported", "mpi_logical4_supported",  "mpi_logical8_supported",
    "mpi_logical16_supported", "mpi_integer1_supported", "mpi_integer2_supported",  "mpi_integer4_supported",
    "mpi_integer8_supported",  "mpi_integer16_supported", "mpi_real2_supported",    "mpi_real4_supported",
    "mpi_real8_supported",     "mpi_real16_supported",   "mpi_complex4_supported",  "mpi_complex8_supported",
    "mpi_complex16_supported", "mpi_complex32_supported", "mpi_double_complex_supported"};
#define SIZES 4 /* of the keys: the first ones */

enum { UNTOLD = -1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool told;
static int values[ARRAY_LEN(keys)]; /* under `lock`: bytes, 0 or 1, UNTOLD */

/* The value of key k; UNTOLD if there is no text, less if it makes no sense. */
static int parse(const char *text, size_t k)
{
    if (!text) return UNTOLD;
    if (k >= SIZES) return !strcasecmp(text, "true") ? 1 : !strcasecmp(text, "false") ? 0 : UNTOLD - 1;
    char *end;
    long bytes = strtol(text, &end, 10);
    return end != text && !*end && bytes > 0 && bytes <= 64 ? (int)bytes : UNTOLD - 1;
}

static int told_before(const char *call)
{
    return report(NULL, call, MPI_ERR_ABI, "it has been set already, which can be done once in a process");
}

MPI_ALIAS(Abi_set_fortran_info);
int PMPI_Abi_set_fortran_info(MPI_Info info)
{
    const char *call = "MPI_Abi_set_fortran_info";
    struct info *i = info_of(info);
    int now[ARRAY_LEN(keys)];
    char copy[MPI_MAX_INFO_VAL];
    if (!i) return report(NULL, call, MPI_ERR_INFO, "argument info (%p) is not an info object, or one that was freed", (void *)info);
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        if ((now[k] = parse(info_copy_value(i, keys[k], copy), k)) < UNTOLD)
            return report(NULL, call, MPI_ERR_INFO_VALUE, "argument info: %s is '%s', which is not %s", keys[k], copy,
                          k < SIZES ? "a number of bytes" : "true or false");
    pthread_mutex_lock(&lock);
    bool late = told;
    for (size_t k = 0; !late && k < ARRAY_LEN(keys); k++) values[k] = now[k];
    told = true;
    pthread_mutex_unlock(&lock);
    return late ? told_before(call) : MPI_SUCCESS;
}

static int fill(struct info *i)
{
    int rc = 0;
    for (size_t k = 0; k < ARRAY_LEN(keys) && !rc; k++) {
        if (values[k] == UNTOLD) continue;
        rc = k < SIZES ? set_size(i, keys[k], values[k]) : info_set(i, keys[k], values[k] ? "true" : "false");
    }
    return rc;
}

MPI_ALIAS(Abi_get_fortran_info);
int PMPI_Abi_get_fortran_info(MPI_Info *info)
{
    if (!info) return bad_null(NULL, "MPI_Abi_get_fortran_info", "info");
    pthread_mutex_lock(&lock);
    bool known = told;
    pthread_mutex_unlock(&lock); /* what is told does not change any more */
    if (!known) {
        *info = MPI_INFO_NULL;
        return MPI_SUCCESS;
    }
    struct info *i = info_new();
    return give_info(NULL, "MPI_Abi_get_fortran_info", i, i ? fill(i) : 0, info);
}

/* ---- .TRUE. and .FALSE. ---- */

static int bad_logical(const char *call, int size, const void *yes, const void *no)
{
    if (!yes || !no) return bad_null(NULL, call, yes ? "logical_false" : "logical_true");
    return report(NULL, call, MPI_ERR_ARG, "argument logical_size is %d, which is not 1, 2, 4, 8 or 16", size);
}

static bool is_logical_size(int size) { return size > 0 && size <= LOGICAL_MAX && !(size & (size - 1)); }

MPI_ALIAS(Abi_set_fortran_booleans);
int PMPI_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    const char *call = "MPI_Abi_set_fortran_booleans";
    if (!logical_true || !logical_false || !is_logical_size(logical_size))
        return bad_logical(call, logical_size, logical_true, logical_false);
    if (!memcmp(logical_true, logical_false, (size_t)logical_size))
        return report(NULL, call, MPI_ERR_ARG, "arguments logical_true and logical_false have one value");
    return logical_set((size_t)logical_size, logical_true, logical_false) ? MPI_SUCCESS : told_before(call);
}

MPI_ALIAS(Abi_get_fortran_booleans);
int PMPI_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
{
    const char *call = "MPI_Abi_get_fortran_booleans";
    if (!is_set) return bad_null(NULL, call, "is_set");
    if (!logical_true || !logical_false || !is_logical_size(logical_size))
        return bad_logical(call, logical_size, logical_true, logical_false);
    *is_set = logical_get((size_t)logical_size, logical_true, logical_false);
    return MPI_SUCCESS;
}
