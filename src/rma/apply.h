/*
 * apply.h - accumulates on memory that this process reaches by loads and stores, and the rule that makes those of all
 * origins atomic, however each of them reaches the memory:
 *
 *     In memory that is common (win_exposure.common), an element of 1, 2, 4 or 8 bytes that is no pair, at an address that is
 *     a multiple of its size, is changed by one atomic operation of a processor.
 *     Every other element is changed by a process that has the accumulate lock of the target (win_exposure.accumulate), or by the
 *     target on behalf of one that has it and waits (mail.h). So are
 *     many elements of the first kind at once, when those atomic operations have been stopped (atomics.h).
 *
 * The owner of the memory says, when it makes the window, whether it is common: whether all processes of its node reach it by
 * loads and stores. The size and the address of an element are the same for all. So there is one way to change each element,
 * and all take it: near origins, and the target, for itself and for far origins. A near process that fails to map common
 * memory leaves its accumulates to the target.
 *
 * An origin that has locked the target for itself alone (MPI_LOCK_EXCLUSIVE) is the only one that may access it then, and needs
 * neither.
 *
 * Source: MPI-5.0 section 12.7.1; RMA-13.
 */
#ifndef TERN_RMA_APPLY_H
#define TERN_RMA_APPLY_H

#include "type/op.h"

/* The elements that begin at `at` can be changed by atomic operations. */
static inline bool apply_can_be_atomic(const struct type *basic, const void *at)
{
    size_t size = (size_t)basic->size;
    return size <= 8 && !(size & (size - 1)) && basic->klass != CLASS_PAIR && !((uintptr_t)at & (size - 1));
}

/* MPI_Compare_and_swap is for integers, logicals and bytes (12.3.4.5). */
static inline bool apply_can_compare(const struct type *basic)
{
    return basic->predefined && basic->klass & (CLASS_CINT | CLASS_FINT | CLASS_LOGICAL | CLASS_MULTI | CLASS_BYTE);
}

/*
 * at[i] = at[i] op data[i], for n elements of the predefined type `basic`, as they lie in memory. `before` gets what was there;
 * NULL: it is not wanted. `data` is NULL for MPI_NO_OP. The operator is valid for the type. _alone: by one that has the
 * accumulate lock, or an exclusive one.
 */
void apply_atomic(const struct op *, const struct type *basic, void *at, const void *data, void *before, int64_t n);
void apply_alone(const struct op *, const struct type *basic, void *at, const void *data, void *before, int64_t n);

/* Stores the element `data` at `at` if `compare` is there; `before` gets what was there. */
void swap_atomic(const struct type *basic, void *at, const void *compare, const void *data, void *before);
void swap_alone(const struct type *basic, void *at, const void *compare, const void *data, void *before);

#endif
