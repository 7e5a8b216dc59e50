/*
 * widen.h - the int arrays of plain entry points as the 64-bit ones that everything
 * below takes. Short arrays lie on the stack.
 *
 *     struct wide w;
 *     const int64_t *lens = wide_ints(&w, n, array_of_blocklengths);
 *     if (!lens) ...             no memory
 *     wide_close(&w);
 */
#ifndef TERN_MPI_WIDEN_H
#define TERN_MPI_WIDEN_H

#include "base/compiler.h"
#include <mpi.h>
#include <stdlib.h>

/* The arrays of the _c calls and of addresses are passed on as they are. */
static_assert(sizeof(MPI_Aint) == sizeof(int64_t) && sizeof(MPI_Count) == sizeof(int64_t), "a 64-bit machine");

struct wide {
    int64_t *many;
    int64_t few[64];
};

/* NULL only if memory is out. */
static inline const int64_t *wide_ints(struct wide *w, int64_t n, const int *a)
{
    w->many = n > (int64_t)ARRAY_LEN(w->few) ? malloc((size_t)n * sizeof(int64_t)) : NULL;
    int64_t *to = n > (int64_t)ARRAY_LEN(w->few) ? w->many : w->few;
    for (int64_t i = 0; i < n && to; i++) to[i] = a[i];
    return to;
}

static inline void wide_close(struct wide *w)
{
    if (unlikely(w->many)) free(w->many);
}

#endif
