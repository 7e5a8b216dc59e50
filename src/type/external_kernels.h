/*
 * external_kernels.h - the loops of external.c: n numbers between the machine's form
 * and the external one, for each way in which the two can differ.
 *
 * Compiled from external_kernels.inc, once for every processor of the kind and once for
 * those with wide vectors. Addresses need no alignment; the buffers do not overlap.
 */
#ifndef TERN_TYPE_EXTERNAL_KERNELS_H
#define TERN_TYPE_EXTERNAL_KERNELS_H

#include "base/compiler.h"

/* False if a value did not fit into the other form. */
typedef bool external_kernel(const void *from, void *to, size_t n);

enum external_form {
    FORM_SAME,    /* single bytes */
    FORM_SWAP2,   /* numbers of 2, 4, 8, 16 bytes, in the other order */
    FORM_SWAP4,
    FORM_SWAP8,
    FORM_SWAP16,
    FORM_LONG,    /* 8 bytes here, 4 there, signed */
    FORM_ULONG,   /* the same, unsigned */
    FORM_WCHAR,   /* 4 bytes here, 2 there */
    FORM_X87,     /* 80 bits in 16 bytes here, an IEEE number of 128 bits there */
    FORM_COUNT
};

struct external_kernels {
    external_kernel *pack[FORM_COUNT], *unpack[FORM_COUNT];
};

extern const struct external_kernels external_plain, external_avx2;

/* The latter if this processor has the instructions. */
bool external_avx2_usable(void);

#endif
