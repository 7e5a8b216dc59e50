/*
 * packing.h - what MPI_Pack, MPI_Pack_external and their counterparts check alike: (count x
 * datatype) at `typed`, and a packed buffer with a position in it.
 */
#ifndef TERN_MPI_PACKING_H
#define TERN_MPI_PACKING_H

#include "mpi/dataargs.h"

struct packing {
    const void *typed;
    const char *typed_name; /* the names are those of the call's arguments, for the words */
    int64_t count;
    const char *count_name;
    MPI_Datatype datatype;
    const void *packed;
    const char *packed_name;
    int64_t size;
    const char *size_name;
};

/* MPI_SUCCESS, or the class reported to the handler of `on`. */
int packing_check(const void *on, const char *call, const struct packing *);

/* The `total` packed bytes lie in the packed buffer from `position` on. */
int packing_room(const void *on, const char *call, const struct packing *, int64_t position, size_t total);

#endif
