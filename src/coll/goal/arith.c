/*
 * arith.c - see arith.h. What MPI's operators have too is done by their kernels; those
 * for differences and quotients are here. Numbers of one bit are what words are for:
 * modulo 2 a sum is XOR and a product AND.
 */
#include "coll/goal/arith.h"

#include "base/err.h"
#include "type/element.h"
#include "type/op.h"
#include <goal.h>

/* ---- differences and quotients ------------------------------------------- */

#if defined(__clang__)
#define LOOPS
#else
#define LOOPS __attribute__((optimize("O3"))) /* in vectors, whatever the build's flags */
#endif
#define LOOSE __attribute__((aligned(1), may_alias)) /* operands lie anywhere and are of any type to the program */

#define EACH(name, T, expr)                                                                                            \
    LOOPS static void name(const void *av, const void *bv, void *ov, size_t n)                                         \
    {                                                                                                                  \
        typedef T LOOSE el;                                                                                            \
        const el *a = av, *b = bv;                                                                                     \
        el *o = ov;                                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                                               \
            T x = a[i], y = b[i];                                                                                      \
            o[i] = (T)(expr);                                                                                          \
        }                                                                                                              \
    }

/* Unsigned subtraction wraps, and so does the negation that dividing by -1 is. */
#define WHOLE(bits)                                                                                                    \
    EACH(sub_##bits, uint##bits##_t, (uint64_t)x - y)                                                                  \
    EACH(div_i##bits, int##bits##_t, y == 0 ? 0 : y == -1 ? (int##bits##_t)(0 - (uint64_t)x) : x / y)                  \
    EACH(div_u##bits, uint##bits##_t, y == 0 ? 0 : x / y)

#define REAL(bits, T)                                                                                                  \
    EACH(sub_f##bits, T, x - y)                                                                                        \
    EACH(div_f##bits, T, x / y)

WHOLE(8)
WHOLE(16)
WHOLE(32)
WHOLE(64)
REAL(32, float)
REAL(64, double)
#if HAVE_FLOAT16
REAL(16, _Float16)
#else
#define sub_f16 NULL
#define div_f16 NULL
#endif

/* ---- types ----------------------------------------------------------------- */

static const struct number {
    const char *name;
    uint8_t bytes;
    MPI_Datatype type; /* whose kernels it shares; bits are combined as bytes */
    op_kernel *sub, *div;
} numbers[GOAL_TYPES] = {
    [GOAL_INT1] = {"int1", 1, MPI_UINT8_T, NULL, NULL},
    [GOAL_INT8] = {"int8", 1, MPI_INT8_T, sub_8, div_i8},
    [GOAL_INT16] = {"int16", 2, MPI_INT16_T, sub_16, div_i16},
    [GOAL_INT32] = {"int32", 4, MPI_INT32_T, sub_32, div_i32},
    [GOAL_INT64] = {"int64", 8, MPI_INT64_T, sub_64, div_i64},
    [GOAL_UINT1] = {"uint1", 1, MPI_UINT8_T, NULL, NULL},
    [GOAL_UINT8] = {"uint8", 1, MPI_UINT8_T, sub_8, div_u8},
    [GOAL_UINT16] = {"uint16", 2, MPI_UINT16_T, sub_16, div_u16},
    [GOAL_UINT32] = {"uint32", 4, MPI_UINT32_T, sub_32, div_u32},
    [GOAL_UINT64] = {"uint64", 8, MPI_UINT64_T, sub_64, div_u64},
    [GOAL_FLOAT16] = {"float16", 2, MPI_REAL2, sub_f16, div_f16},
    [GOAL_FLOAT32] = {"float32", 4, MPI_FLOAT, sub_f32, div_f32},
    [GOAL_FLOAT64] = {"float64", 8, MPI_DOUBLE, sub_f64, div_f64},
};

static const char *const operators[GOAL_OPERATORS] = {
    [GOAL_ADD] = "add", [GOAL_SUB] = "sub", [GOAL_MULT] = "mult", [GOAL_DIV] = "div", [GOAL_MAX] = "max",
    [GOAL_MIN] = "min", [GOAL_AND] = "and", [GOAL_OR] = "or",     [GOAL_XOR] = "xor",
};

const char *goal_operator_name(unsigned op) { return op < GOAL_OPERATORS ? operators[op] : NULL; }
const char *goal_number_name(unsigned type) { return type < GOAL_TYPES ? numbers[type].name : NULL; }

bool goal_arith_known(unsigned code)
{
    unsigned op = code >> 8, type = code & 0xff;
    return op < GOAL_OPERATORS && type < GOAL_TYPES && !(op >= GOAL_AND && type >= GOAL_FLOAT16);
}

size_t goal_arith_unit(unsigned code) { return numbers[code & 0xff].bytes; }

/* ---- operators ---------------------------------------------------------------- */

/* Which of AND, OR, XOR an operator is on single bits; a signed one is 0 or -1. */
static unsigned of_bits(unsigned op, bool is_signed)
{
    switch (op) {
    case GOAL_ADD:
    case GOAL_SUB: return GOAL_XOR;
    case GOAL_MULT:
    case GOAL_DIV: return GOAL_AND;
    case GOAL_MAX: return is_signed ? GOAL_AND : GOAL_OR;
    case GOAL_MIN: return is_signed ? GOAL_OR : GOAL_AND;
    default: return op;
    }
}

static op_kernel *kernel_of(unsigned op, const struct number *n)
{
    static const MPI_Op of_mpi[GOAL_OPERATORS] = {
        [GOAL_ADD] = MPI_SUM,  [GOAL_MULT] = MPI_PROD, [GOAL_MAX] = MPI_MAX, [GOAL_MIN] = MPI_MIN,
        [GOAL_AND] = MPI_BAND, [GOAL_OR] = MPI_BOR,    [GOAL_XOR] = MPI_BXOR,
    };
    if (op == GOAL_SUB) return n->sub;
    if (op == GOAL_DIV) return n->div;
    const struct op *o = op_of(of_mpi[op]);
    const struct type *t = type_of(n->type);
    return o && t ? op_kernel_of(o, t) : NULL;
}

int goal_arith(unsigned code, const void *in, void *inout, size_t bytes)
{
    unsigned op = code >> 8, type = code & 0xff;
    if (type == GOAL_INT1 || type == GOAL_UINT1) op = of_bits(op, type == GOAL_INT1);
    op_kernel *kernel = kernel_of(op, &numbers[type]);
    if (unlikely(!kernel))
        return err_set(TERN_ERR_UNSUPPORTED, "this library was built without arithmetic on %s", numbers[type].name);
    kernel(inout, in, inout, bytes / numbers[type].bytes);
    return 0;
}
