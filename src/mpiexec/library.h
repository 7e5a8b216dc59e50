/*
 * library.h - which MPI library a program was linked with, as far as its file says: the names that an ELF executable
 * needs directly. A script, or a program that loads MPI later (python), says nothing.
 */
#ifndef TERN_MPIEXEC_LIBRARY_H
#define TERN_MPIEXEC_LIBRARY_H

#include <stdbool.h>

struct library {
    enum library_kind { LIBRARY_UNKNOWN, LIBRARY_TERN, LIBRARY_OTHER } kind;
    bool pmix;     /* it calls libpmix itself */
    char name[64]; /* of another MPI: "libmpich.so.12" */
};

/* Reads the file `path`, relative to the directory `dir` as openat. What cannot be read is LIBRARY_UNKNOWN. */
void library_of(struct library *, int dir, const char *path);

/* Whose library that is: "MPICH" for "libmpich.so.12". NULL: it is no MPI library of others. */
const char *library_family(const char *name);

#endif
