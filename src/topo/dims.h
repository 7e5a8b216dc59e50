/*
 * dims.h - balanced factors of a number of processes (MPI_Dims_create, MPI-5.0
 * section 8.5.2).
 */
#ifndef TERN_TOPO_DIMS_H
#define TERN_TOPO_DIMS_H

#include "base/compiler.h"

/*
 * Fills the entries of dims that are zero, in non-increasing order, so that the product of all is nnodes > 0. "As close
 * to each other as possible" is taken as: the least difference of the largest and the smallest new entry; among those,
 * the smallest entry is as large as possible, then the second smallest, and so on. TERN_ERR_DIMS when it is impossible;
 * dims is then untouched.
 */
int topo_dims(int nnodes, int ndims, int dims[]);

/*
 * The same for k > 0 entries, all free. *steps counts the factors that were tried: what the tests bound.
 * 0 or TERN_ERR_NOMEM.
 */
int dims_balance(int32_t n, int k, int out[], int64_t *steps);

#endif
