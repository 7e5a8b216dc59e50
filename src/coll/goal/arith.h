/*
 * arith.h - arithmetic of schedules on plain numbers (GOAL-7, GOAL-8): which operators
 * and types there are, and doing it. Operators and types are those of the public goal.h.
 *
 * Defined for every input, and never a trap: integers wrap around, also the least one
 * divided by -1; x / 0 is 0; floating numbers follow IEEE 754 with the default rounding.
 * The kernels of src/type do it in vectors; all widths give the same bits, but for which
 * of several NaNs comes out.
 */
#ifndef TERN_COLL_GOAL_ARITH_H
#define TERN_COLL_GOAL_ARITH_H

#include "base/compiler.h"

/* Operator and type in the 16 bits of an operation's tag. */
#define ARITH_CODE(op, type) ((unsigned)(op) << 8 | (unsigned)(type))

/* Do operator and type exist and go together? */
bool goal_arith_known(unsigned code);

/* Bytes that every piece is a multiple of: those of a number, 1 for numbers of one bit. Only for known codes. */
size_t goal_arith_unit(unsigned code);

/* "add", "int32"; NULL when there is none. */
const char *goal_operator_name(unsigned op);
const char *goal_number_name(unsigned type);

/*
 * inout = inout op in, `bytes` bytes at any alignment; in and inout are the same or do not overlap.
 * TERN_ERR_UNSUPPORTED: half precision where the compiler has none. Needs type_open and op_open.
 */
int goal_arith(unsigned code, const void *in, void *inout, size_t bytes);

#endif
