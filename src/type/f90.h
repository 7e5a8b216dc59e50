/*
 * f90.h - types for Fortran's selected kinds (MPI-5.0 section 19.1.9): predefined types
 * that are made when they are asked for. Equal arguments give the same type; it is not
 * to be freed, and says with which arguments it was made.
 */
#ifndef TERN_TYPE_F90_H
#define TERN_TYPE_F90_H

#include "type/type.h"

/* combiner: MPI_COMBINER_F90_REAL or _COMPLEX (precision and range, either may be MPI_UNDEFINED), or _INTEGER (range
 * only). TERN_ERR_ARG in words if no kind has so much. Threads: may be called by any thread. */
int type_f90(int combiner, int precision, int range, struct type **out);

void type_f90_close(void); /* by type_close only */

#endif
