/*
 * op_kernels.h - the sets of reduction kernels, one for each vector width.
 *
 * All are compiled from op_kernels.inc. A set need not have every kernel: what is
 * missing is taken from the next narrower one; op_scalar has all that the standard
 * asks for.
 */
#ifndef TERN_TYPE_OP_KERNELS_H
#define TERN_TYPE_OP_KERNELS_H

#include "type/op.h"

struct op_kernels {
    const char *name;                  /* a word of TERN_OP_VECTOR */
    bool (*usable)(void);              /* does this processor have the instructions? */
    const struct op_kernels *narrower; /* NULL: this is the last */
    op_kernel *table[OP_KERNELS][KIND_COUNT];
};

extern const struct op_kernels op_scalar; /* what every processor of the kind has: SSE2, NEON */
extern const struct op_kernels op_half; /* half precision numbers only: stands between the wide sets and op_scalar */
extern const struct op_kernels op_avx2, op_avx512;

#endif
