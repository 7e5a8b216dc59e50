/* f90.c - see f90.h. */
#include "type/f90.h"
#include "base/err.h"
#include "type/element.h"
#include "type/envelope.h"
#include "type/layout.h"

#include <float.h>
#include <pthread.h>
#include <stdlib.h>

/* What Fortran calls the range of a kind: the power of ten that both the largest number and 1 / the smallest reach. */
#define RANGE(x) (x##_MAX_10_EXP < -(x##_MIN_10_EXP) ? x##_MAX_10_EXP : -(x##_MIN_10_EXP))

/* The kinds of the common compilers from small to large: the first that suffices is chosen. */
static const struct kind {
    int precision, range;
    MPI_Datatype real, complex;
} kinds[] = {
    {FLT_DIG, RANGE(FLT), MPI_REAL4, MPI_COMPLEX8},
    {DBL_DIG, RANGE(DBL), MPI_REAL8, MPI_COMPLEX16},
    {LDBL_DIG, RANGE(LDBL), MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};

static const struct {
    int range;
    MPI_Datatype type;
} integers[] = {{2, MPI_INTEGER1}, {4, MPI_INTEGER2}, {9, MPI_INTEGER4}, {18, MPI_INTEGER8}, {38, MPI_INTEGER16}};

/* All types made so far. */
static struct made {
    struct made *next;
    struct type *type;
    int combiner, precision, range;
} *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct type *integer_of(int range)
{
    for (size_t i = 0; i < ARRAY_LEN(integers); i++)
        if (range <= integers[i].range && type_of(integers[i].type)->size > 0) return type_of(integers[i].type);
    return NULL;
}

static const struct type *real_of(int combiner, int precision, int range)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct kind *k = &kinds[i];
        const struct type *t = type_of(combiner == MPI_COMBINER_F90_REAL ? k->real : k->complex);
        if (precision <= k->precision && range <= k->range && t->size > 0) return t; /* MPI_UNDEFINED is negative */
    }
    return NULL;
}

/* A predefined type like `basic`, but for its name and origin. */
static struct made *make(int combiner, int precision, int range, const struct type *basic)
{
    struct made *m = malloc(sizeof *m);
    struct type *t = handle_alloc(HANDLE_TYPE, sizeof *t);
    struct envelope *e = envelope_new(combiner, 2);
    if (!m || !t || !e) {
        free(m);
        free(e);
        if (t) handle_release(t, sizeof *t);
        return NULL;
    }
    struct handle head = t->h;
    *t = *basic;
    t->h = head;
    t->self = (MPI_Datatype)t;
    t->name = NULL;
    t->attributes = NULL;
    t->envelope = e;
    layout_ref(t->layout);
    if (combiner != MPI_COMBINER_F90_INTEGER) envelope_add1(e, ENVELOPE_INT, precision);
    envelope_add1(e, ENVELOPE_INT, range);
    *m = (struct made){.type = t, .combiner = combiner, .precision = precision, .range = range};
    return m;
}

static struct type *find(int combiner, int precision, int range)
{
    for (const struct made *m = all; m; m = m->next)
        if (m->combiner == combiner && m->precision == precision && m->range == range) return m->type;
    return NULL;
}

static int find_or_make(int combiner, int precision, int range, const struct type *basic, struct type **out)
{
    *out = find(combiner, precision, range);
    if (*out) return 0;
    struct made *m = make(combiner, precision, range, basic);
    if (!m) return err_set(TERN_ERR_NOMEM, "no memory for a datatype");
    m->next = all;
    all = m;
    *out = m->type;
    return 0;
}

/* An argument that may be left open, but not be negative. */
static bool usable(int digits) { return digits == MPI_UNDEFINED || digits >= 0; }

int type_f90(int combiner, int precision, int range, struct type **out)
{
    bool integer = combiner == MPI_COMBINER_F90_INTEGER;
    if (!usable(precision) || !usable(range) || (integer && range < 0))
        return err_set(TERN_ERR_ARG, "a decimal precision or range is negative");
    if (!integer && precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
        return err_set(TERN_ERR_ARG, "arguments p and r are both MPI_UNDEFINED");
    const struct type *basic = integer ? integer_of(range) : real_of(combiner, precision, range);
    if (!basic && integer) return err_set(TERN_ERR_ARG, "there is no integer with a range of %d decimal digits", range);
    if (!basic)
        return err_set(TERN_ERR_ARG, "there is no number with a precision of %d decimal digits and a range of 10^%d (%d: any)",
                       precision, range, MPI_UNDEFINED);
    pthread_mutex_lock(&lock);
    int rc = find_or_make(combiner, precision, range, basic, out);
    pthread_mutex_unlock(&lock);
    return rc;
}

void type_f90_close(void)
{
    while (all) {
        struct made *m = all;
        all = m->next;
        layout_unref(m->type->layout);
        free(m->type->envelope);
        free(m->type->name);
        handle_release(m->type, sizeof *m->type);
        free(m);
    }
}
