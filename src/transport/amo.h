/*
 * amo.h - an atomic operation on memory of any process that is mapped here, by the processor.
 *
 * acq_rel: who has changed a flag or lock in this way sees what others did before they changed it.
 */
#ifndef TERN_TRANSPORT_AMO_H
#define TERN_TRANSPORT_AMO_H

#include "transport/remote.h"

#include <stdatomic.h>
#include <string.h>

/* The operation on an integer of one type; as the widths differ in the type only, the compiler makes one of each. */
#define AMO_DEFINE(type)                                                                                               \
    static inline uint64_t amo_##type(void *at, enum remote_op op, uint64_t operand, uint64_t compare)                 \
    {                                                                                                                  \
        _Atomic type *p = at;                                                                                          \
        type v = (type)operand, c = (type)compare;                                                                     \
        switch (op) {                                                                                                  \
        case REMOTE_ADD: return atomic_fetch_add_explicit(p, v, memory_order_acq_rel);                                 \
        case REMOTE_AND: return atomic_fetch_and_explicit(p, v, memory_order_acq_rel);                                 \
        case REMOTE_OR: return atomic_fetch_or_explicit(p, v, memory_order_acq_rel);                                   \
        case REMOTE_XOR: return atomic_fetch_xor_explicit(p, v, memory_order_acq_rel);                                 \
        case REMOTE_SWAP: return atomic_exchange_explicit(p, v, memory_order_acq_rel);                                 \
        default:                                                                                                       \
            atomic_compare_exchange_strong_explicit(p, &c, v, memory_order_acq_rel, memory_order_acquire);             \
            return c;                                                                                                  \
        }                                                                                                              \
    }
AMO_DEFINE(uint8_t)
AMO_DEFINE(uint16_t)
AMO_DEFINE(uint32_t)
AMO_DEFINE(uint64_t)
#undef AMO_DEFINE

/* The value from before. `at` is aligned to a->width. */
static inline uint64_t amo_do(void *at, const struct remote_amo *a)
{
    switch (a->width) {
    case 1: return amo_uint8_t(at, a->op, a->operand, a->compare);
    case 2: return amo_uint16_t(at, a->op, a->operand, a->compare);
    case 4: return amo_uint32_t(at, a->op, a->operand, a->compare);
    default: return amo_uint64_t(at, a->op, a->operand, a->compare);
    }
}

static inline bool amo_is_width(uint32_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

/* The lower `width` bytes of a value, as an integer of that width in memory. */
static inline void amo_store(void *to, uint64_t value, uint32_t width)
{
    uint8_t v1 = (uint8_t)value;
    uint16_t v2 = (uint16_t)value;
    uint32_t v4 = (uint32_t)value;
    memcpy(to, width == 1 ? (void *)&v1 : width == 2 ? (void *)&v2 : width == 4 ? (void *)&v4 : (void *)&value, width);
}

#endif
