/* apply.c - see apply.h. */
#include "rma/apply.h"
#include "type/cursor.h"

#include <stdatomic.h>
#include <string.h>

/* ---- beside others ---- */

#define APPLY_NAME apply_1
#define SWAP_NAME swap_1
#define APPLY_TYPE uint8_t
#include "rma/apply_width.inc"
#define APPLY_NAME apply_2
#define SWAP_NAME swap_2
#define APPLY_TYPE uint16_t
#include "rma/apply_width.inc"
#define APPLY_NAME apply_4
#define SWAP_NAME swap_4
#define APPLY_TYPE uint32_t
#include "rma/apply_width.inc"
#define APPLY_NAME apply_8
#define SWAP_NAME swap_8
#define APPLY_TYPE uint64_t
#include "rma/apply_width.inc"

void apply_atomic(const struct op *op, const struct type *basic, void *at, const void *data, void *before, int64_t n)
{
    switch (basic->size) {
    case 1: apply_1(op, basic, at, data, before, n); break;
    case 2: apply_2(op, basic, at, data, before, n); break;
    case 4: apply_4(op, basic, at, data, before, n); break;
    default: apply_8(op, basic, at, data, before, n); break;
    }
}

void swap_atomic(const struct type *basic, void *at, const void *compare, const void *data, void *before)
{
    switch (basic->size) {
    case 1: swap_1(at, compare, data, before); break;
    case 2: swap_2(at, compare, data, before); break;
    case 4: swap_4(at, compare, data, before); break;
    default: swap_8(at, compare, data, before); break;
    }
}

/* ---- by one that is alone ---- */

void apply_alone(const struct op *op, const struct type *basic, void *at, const void *data, void *before, int64_t n)
{
    size_t bytes = (size_t)(n * basic->extent);
    if (before) memcpy(before, at, bytes);
    if (op->index == OP_REPLACE && basic->size == basic->extent) memmove(at, data, bytes);
    else if (op->index == OP_REPLACE) type_copy_across(at, n, basic, data, n, basic); /* gaps stay as they are */
    else if (op->index != OP_NO_OP) op_kernel_of(op, basic)(at, data, at, (size_t)n);
}

void swap_alone(const struct type *basic, void *at, const void *compare, const void *data, void *before)
{
    size_t bytes = (size_t)basic->size;
    memcpy(before, at, bytes);
    if (!memcmp(at, compare, bytes)) memcpy(at, data, bytes);
}
