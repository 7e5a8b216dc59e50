/*
 * entry.h - how an entry point of MPI is written.
 *
 *     MPI_ALIAS(Send);
 *     int PMPI_Send(const void *buf, int count, ...)
 *     {
 *         ...
 *     }
 *
 * PMPI_Send is the function, and the strong symbol; MPI_Send is its weak alias, so a
 * profiling tool may define an MPI_Send of its own that calls PMPI_Send (chapter 15 of
 * the standard). Both are exported; all else in the library is hidden.
 *
 * The line MPI_ALIAS(X); at the start of a line is also the list of what the library
 * defines: mpi.h declares the functions that have one (maint/list_entries), so after a
 * new entry point say `make mpi-h`.
 */
#ifndef TERN_MPI_ENTRY_H
#define TERN_MPI_ENTRY_H

#include <mpi.h>

#define MPI_ALIAS(name)                                                                                  \
    extern __typeof__(PMPI_##name) PMPI_##name __attribute__((visibility("default")));                  \
    extern __typeof__(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name), visibility("default")))

/* The same for a variable of mpi.h; there are only the four that stand for Fortran's MPI_STATUS_IGNORE and its like. */
#define MPI_VARIABLE(name) extern __typeof__(MPI_##name) MPI_##name __attribute__((visibility("default")))

#endif
