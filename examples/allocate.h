/*
 * allocate.h - memory for examples, which end in words when there is none.
 */
#ifndef EXAMPLES_ALLOCATE_H
#define EXAMPLES_ALLOCATE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* So many elements of so many bytes, all zero; the caller frees them. */
static inline void *allocate(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);
    if (p) return p;
    fprintf(stderr, "no memory for %zu elements of %zu bytes\n", count, bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#endif
