/* op.c - the operators behind MPI_Op, and applying them. */
#include "type/op.h"
#include "base/err.h"
#include "base/var.h"
#include "type/cursor.h"
#include "type/logical.h"
#include "type/op_kernels.h"

#include <string.h>

#define NUMBERS (CLASS_CINT | CLASS_FINT | CLASS_FLOAT | CLASS_MULTI)
#define WHOLE (CLASS_CINT | CLASS_FINT | CLASS_MULTI)
#define ANY UINT16_MAX

/* 6.9.2 and 12.3.4 of MPI-5.0. */
static const struct row {
    MPI_Op self;
    const char *name;
    enum op_index index;
    unsigned classes;
} table[] = {
    {MPI_SUM, "MPI_SUM", OP_SUM, NUMBERS | CLASS_COMPLEX},
    {MPI_MIN, "MPI_MIN", OP_MIN, NUMBERS},
    {MPI_MAX, "MPI_MAX", OP_MAX, NUMBERS},
    {MPI_PROD, "MPI_PROD", OP_PROD, NUMBERS | CLASS_COMPLEX},
    {MPI_BAND, "MPI_BAND", OP_BAND, WHOLE | CLASS_BYTE},
    {MPI_BOR, "MPI_BOR", OP_BOR, WHOLE | CLASS_BYTE},
    {MPI_BXOR, "MPI_BXOR", OP_BXOR, WHOLE | CLASS_BYTE},
    {MPI_LAND, "MPI_LAND", OP_LAND, CLASS_CINT | CLASS_LOGICAL | CLASS_MULTI},
    {MPI_LOR, "MPI_LOR", OP_LOR, CLASS_CINT | CLASS_LOGICAL | CLASS_MULTI},
    {MPI_LXOR, "MPI_LXOR", OP_LXOR, CLASS_CINT | CLASS_LOGICAL | CLASS_MULTI},
    {MPI_MINLOC, "MPI_MINLOC", OP_MINLOC, CLASS_PAIR},
    {MPI_MAXLOC, "MPI_MAXLOC", OP_MAXLOC, CLASS_PAIR},
    {MPI_REPLACE, "MPI_REPLACE", OP_REPLACE, ANY},
    {MPI_NO_OP, "MPI_NO_OP", OP_NO_OP, ANY},
};

static struct op ops[ARRAY_LEN(table)];
static const struct op_kernels *kernels; /* the set in use; NULL: not open */
static op_kernel *kernel_for[OP_KERNELS][KIND_COUNT]; /* the widest one that the set in use has or leaves to a narrower */

static const struct op_kernels *widest(void)
{
    const struct op_kernels *const sets[] = {&op_avx512, &op_avx2};
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (sets[i]->usable()) return sets[i];
    return &op_scalar;
}

static int choose_kernels(void)
{
    const struct op_kernels *const sets[] = {&op_scalar, &op_avx2, &op_avx512};
    const char *word = var_text(VAR_OP_VECTOR);
    if (!strcmp(word, "auto")) {
        kernels = widest();
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        if (strcmp(word, sets[i]->name)) continue;
        if (!sets[i]->usable())
            return err_set(TERN_ERR_UNSUPPORTED, "TERN_OP_VECTOR=%s: this processor does not have it", word);
        kernels = sets[i];
    }
    return 0;
}

static op_kernel *widest_kernel(unsigned index, unsigned kind)
{
    for (const struct op_kernels *set = kernels; set; set = set->narrower)
        if (set->table[index][kind]) return set->table[index][kind];
    return NULL;
}

int op_open(void)
{
    if (kernels) return 0;
    int rc = choose_kernels();
    if (rc) return rc;
    for (unsigned i = 0; i < OP_KERNELS; i++)
        for (unsigned k = 0; k < KIND_COUNT; k++) kernel_for[i][k] = widest_kernel(i, k);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct row *r = &table[i];
        ops[i] = (struct op){.index = (uint8_t)r->index,
                             .commute = true,
                             .predefined = true,
                             .rma_only = r->index == OP_REPLACE || r->index == OP_NO_OP,
                             .classes = (uint16_t)r->classes,
                             .self = r->self,
                             .name = r->name};
        ops[i].h.kind = HANDLE_OP;
        atomic_init(&ops[i].h.refs, 1);
        handle_define((uintptr_t)r->self, &ops[i]);
    }
    return 0;
}

void op_close(void)
{
    for (size_t i = 0; kernels && i < ARRAY_LEN(table); i++) handle_define((uintptr_t)table[i].self, NULL);
    kernels = NULL;
}

const char *op_vector_name(void) { return kernels ? kernels->name : ""; }

const char *op_name_of(unsigned index)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].index == index) return table[i].name;
    return NULL;
}

static struct op *new_user_op(bool commute)
{
    struct op *o = handle_alloc(HANDLE_OP, sizeof *o);
    if (!o) {
        err_set(TERN_ERR_NOMEM, "no memory for an operator");
        return NULL;
    }
    o->index = OP_USER;
    o->commute = commute;
    o->classes = ANY;
    o->self = (MPI_Op)o;
    o->name = "user function";
    return o;
}

int op_create(MPI_User_function *fn, bool commute, struct op **op_p)
{
    struct op *o = new_user_op(commute);
    if (!o) return TERN_ERR_NOMEM;
    o->fn = fn;
    *op_p = o;
    return 0;
}

int op_create_c(MPI_User_function_c *fn, bool commute, struct op **op_p)
{
    struct op *o = new_user_op(commute);
    if (!o) return TERN_ERR_NOMEM;
    o->fn_c = fn;
    *op_p = o;
    return 0;
}

const struct op *op_by_index(unsigned index)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].index == index && ops[i].predefined) return &ops[i];
    return NULL;
}

/* ---- applying ---- */

op_kernel *op_kernel_of(const struct op *op, const struct type *basic)
{
    if (op->index >= OP_KERNELS || !(op->classes & basic->klass)) return NULL;
    op_kernel *of_fortran = unlikely(basic->klass == CLASS_LOGICAL) ? logical_kernel(op->index, basic) : NULL;
    return of_fortran ? of_fortran : kernel_for[op->index][basic->kind];
}

bool op_valid(const struct op *op, const struct type *type)
{
    if (!type->committed || type->size < 0) return false;
    if (op->index == OP_USER) return true;
    if (op->index >= OP_KERNELS) return type->basic != NULL;
    return type->predefined && op_kernel_of(op, type);
}

static TERN_COLD int refuse(const struct op *op, const struct type *type)
{
    const char *name = type_name(type);
    return err_set(TERN_ERR_OP, "%s does not work on %s", op->name,
                   *name ? name : "a derived datatype (predefined operators take predefined datatypes)");
}

/* The older of the two signatures counts in int: long operands are handed over in slices. */
static void call_user(const struct op *op, const void *in, void *inout, int64_t count, const struct type *type)
{
    const int64_t slice = INT32_MAX;
    MPI_Datatype handle = type_handle(type);
    if (op->fn_c) {
        MPI_Count n = count;
        op->fn_c((void *)(uintptr_t)in, inout, &n, &handle);
        return;
    }
    for (int64_t done = 0; done < count; done += slice) {
        int n = (int)(count - done < slice ? count - done : slice);
        op->fn((char *)(uintptr_t)in + done * type->extent, (char *)inout + done * type->extent, &n, &handle);
    }
}

int op_apply(const struct op *op, const void *in, void *inout, int64_t count, struct type *type)
{
    return op_apply3(op, in, inout, inout, count, type);
}

/* What is no loop over numbers: copies and user functions. */
static int apply_other(const struct op *op, const void *a, const void *b, void *out, int64_t count, struct type *type)
{
    if (!op_valid(op, type)) return refuse(op, type);
    if (op->index == OP_REPLACE) {
        type_copy(out, a, count, type);
        return 0;
    }
    if (out != b) type_copy(out, b, count, type);
    if (op->index == OP_USER) call_user(op, a, out, count, type);
    return 0;
}

int op_apply3(const struct op *op, const void *a, const void *b, void *out, int64_t count, struct type *type)
{
    if (count == 0) return 0;
    if (op->index >= OP_KERNELS) return apply_other(op, a, b, out, count, type);
    op_kernel *k = type->predefined ? op_kernel_of(op, type) : NULL;
    if (unlikely(!k)) return refuse(op, type);
    k(a, b, out, (size_t)count);
    return 0;
}
