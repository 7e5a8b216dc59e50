/*
 * errcode.h - error classes, codes and strings that users add (MPI-5.0 section 9.5).
 *
 * Classes and codes share one row of numbers behind MPI_ERR_LASTCODE. A number is
 * never given out twice, so that one which was removed stays wrong, and
 * MPI_LASTUSEDCODE only grows.
 *
 * Threads: any, at any time, also before MPI_Init and after MPI_Finalize.
 */
#ifndef TERN_OBJ_ERRCODE_H
#define TERN_OBJ_ERRCODE_H

#include "base/compiler.h"

/* Results: 0, TERN_ERR_NOMEM, or TERN_ERR_ARG with words. */
int errcode_add_class(int *klass_p);
int errcode_add(int klass, int *code_p); /* klass: any that is known, also the standard's */
int errcode_set_string(int code, const char *string);

/* Only what users added. A class that still has codes stays, and so does a code that still has a string. It is an error
 * to remove a string that is not there. */
int errcode_remove_class(int klass);
int errcode_remove(int code);
int errcode_remove_string(int code);

/* The class of a code that users added (a class is its own); false: there is no such code. */
bool errcode_class(int code, int *klass_p);

/* Its string into buf ("" if it has none); false: there is no such code. */
bool errcode_string(int code, char *buf, size_t cap);

/* The largest number given out; what MPI_LASTUSEDCODE points to. */
int *errcode_last(void);

void errcode_close(void);

#endif
