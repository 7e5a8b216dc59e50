/*
 * op.h - reduction operators: the predefined ones on all their types, and the user's.
 *
 * Predefined operators are rows of a table of kernels by element kind, compiled
 * from one source for several vector widths; the widest the processor has is
 * chosen at start (TERN_OP_VECTOR). All of them give bit for bit the same results.
 * `a op b` keeps MPI's order: a is the operand of the lower rank (6.9 of MPI-5.0).
 *
 * Threads: operators do not change after they are made. User functions are called
 * on the calling thread.
 */
#ifndef TERN_TYPE_OP_H
#define TERN_TYPE_OP_H

#include "type/type.h"

/* out[i] = a[i] op b[i]. out may be a or b, but must not overlap them otherwise. No alignment is needed. */
typedef void op_kernel(const void *a, const void *b, void *out, size_t n);

/* clang-format off */
enum op_index { /* rows of the kernel tables */
    OP_SUM, OP_MIN, OP_MAX, OP_PROD, OP_BAND, OP_BOR, OP_BXOR, OP_LAND, OP_LOR, OP_LXOR, OP_MINLOC, OP_MAXLOC,
    OP_KERNELS, /* the rows above have kernels; the two below are copies */
    OP_REPLACE = OP_KERNELS, OP_NO_OP, OP_USER
};
/* clang-format on */

struct op {
    struct handle h;
    uint8_t index; /* enum op_index */
    bool commute;
    bool predefined;
    bool rma_only;         /* MPI_REPLACE, MPI_NO_OP: valid in accumulates, not in reductions */
    uint16_t classes;      /* types it accepts: mask of enum type_class; all bits for user functions */
    MPI_Op self;           /* the user's value */
    const char *name;      /* "MPI_SUM"; "user function" */
    MPI_User_function *fn; /* one of the two is set for OP_USER */
    MPI_User_function_c *fn_c;
};

/* Needs var_open and type_open to have been called. Idempotent. */
int op_open(void);
void op_close(void);

/* NULL if `h` is MPI_OP_NULL or no operator. */
static inline struct op *op_of(MPI_Op h) { return handle_get(h, HANDLE_OP); }
static inline MPI_Op op_handle(const struct op *o) { return o->self; }

int op_create(MPI_User_function *fn, bool commute, struct op **op_p);
int op_create_c(MPI_User_function_c *fn, bool commute, struct op **op_p);

static inline void op_ref(struct op *o)
{
    if (!o->predefined) handle_ref(&o->h);
}
static inline void op_unref(struct op *o)
{
    if (!o->predefined && handle_unref(&o->h)) handle_release(o, sizeof *o);
}

/* May `op` be applied to elements of `type`? (Committed, supported, and in the operator's table.) */
bool op_valid(const struct op *op, const struct type *type);

/* inout = in op inout, elementwise. TERN_ERR_OP in words when !op_valid. The buffers must not overlap. */
int op_apply(const struct op *op, const void *in, void *inout, int64_t count, struct type *type);

/* out = a op b; out must not overlap a or b unless it is b. Saves a copy where the operator is predefined. */
int op_apply3(const struct op *op, const void *a, const void *b, void *out, int64_t count, struct type *type);

/* The kernel of `op` for elements of the predefined type `basic`; NULL if there is none. For accumulates. */
op_kernel *op_kernel_of(const struct op *op, const struct type *basic);

/* The name of a predefined operator by its index; NULL: there is none. */
const char *op_name_of(unsigned index);

/* The predefined operator with this index; NULL: there is none. */
const struct op *op_by_index(unsigned index);

/* Which set of kernels is in use: "scalar", "avx2", "avx512". */
const char *op_vector_name(void);

#endif
