/*
 * amo.h - an atomic operation on memory of any process that is mapped here, by the processor.
 *
 * The order is acq_rel: a process that changes a flag or lock in this way sees what others did before they changed it.
 */
#ifndef TERN_TRANSPORT_AMO_H
#define TERN_TRANSPORT_AMO_H

#include "transport/remote.h"

#include <stdatomic.h>
#include <string.h>

#define AMO_NAME amo_1
#define AMO_TYPE uint8_t
#include "transport/amo_width.inc"
#define AMO_NAME amo_2
#define AMO_TYPE uint16_t
#include "transport/amo_width.inc"
#define AMO_NAME amo_4
#define AMO_TYPE uint32_t
#include "transport/amo_width.inc"
#define AMO_NAME amo_8
#define AMO_TYPE uint64_t
#include "transport/amo_width.inc"

/* The value from before. `at` is aligned to a->width. */
static inline uint64_t amo_do(void *at, const struct remote_amo *a)
{
    switch (a->width) {
    case 1:
        return amo_1(at, a->op, a->operand, a->compare);
    case 2:
        return amo_2(at, a->op, a->operand, a->compare);
    case 4:
        return amo_4(at, a->op, a->operand, a->compare);
    default:
        return amo_8(at, a->op, a->operand, a->compare);
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
