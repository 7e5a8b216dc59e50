/*
 * logical.h - Fortran's LOGICAL: what .TRUE. and .FALSE. look like, and the logical
 * operators on such values.
 *
 * Compilers differ in it (1 or -1; the lowest bit or all of them), so it is told by
 * who knows, once in the life of the process and for LOGICALs of one size. Until then,
 * and for other sizes, the kernels for integers serve: what is not 0 is true, and true
 * becomes 1.
 *
 * Threads: any.
 */
#ifndef TERN_TYPE_LOGICAL_H
#define TERN_TYPE_LOGICAL_H

#include "type/op.h"

#define LOGICAL_MAX 16 /* bytes of the longest */

/* False: it has been told before. `size` is 1, 2, 4, 8 or 16 bytes, the values differ. */
bool logical_set(size_t size, const void *yes, const void *no);

/* Writes the two values; false if those of this size are not known. */
bool logical_get(size_t size, void *yes, void *no);

/* The kernel for a Fortran type of class CLASS_LOGICAL; NULL: take that for integers. */
op_kernel *logical_kernel(enum op_index, const struct type *basic);

#endif
