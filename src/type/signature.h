/*
 * signature.h - a hash of the sequence of basic types, which a send and its receive
 * must have in common (3.3.1 of MPI-5.0). For checks while debugging.
 *
 * Joining A and B gives A * step(B) + B, modulo 2^64, so that any repetition costs
 * the logarithm of its count.
 */
#ifndef TERN_TYPE_SIGNATURE_H
#define TERN_TYPE_SIGNATURE_H

#include "type/type.h"

struct signature {
    uint64_t hash;
    uint64_t step; /* a fixed odd number to the power of the number of basic elements */
};
#define SIGNATURE_EMPTY ((struct signature){0, 1})

struct signature signature_basic(MPI_Datatype basic);
struct signature signature_join(struct signature a, struct signature b);
struct signature signature_repeat(struct signature a, int64_t n);

/* Of `count` elements of a type. Types that have MPI_BYTE or MPI_PACKED in them (t->untyped) match anything. */
struct signature type_signature(const struct type *t, int64_t count);

/* Of the first `elements` basic elements of a sequence of `t`. */
struct signature signature_of_first(const struct type *t, int64_t elements);

#endif
