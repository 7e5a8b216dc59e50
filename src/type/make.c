/* make.c - the shared steps of type constructors; see make.h. */
#include "type/make.h"
#include "base/err.h"
#include "type/signature.h"

#include <stdlib.h>

int make_check_type(const char *what, const struct type *old)
{
    if (old->size >= 0) return 0;
    return err_set(TERN_ERR_TYPE, "%s: the optional type %s does not exist on this machine", what, type_name(old));
}

int make_check_counts(const char *what, const char *arg, int64_t n, const int64_t *counts)
{
    for (int64_t i = 0; i < n; i++)
        if (counts[i] < 0)
            return err_set(TERN_ERR_COUNT, "%s: %s [entry %lld] is %lld, must not be negative", what, arg, (long long)i,
                           (long long)counts[i]);
    return 0;
}

void make_open(struct make *m, const char *what, int combiner, int64_t nargs, int64_t nparts)
{
    *m = (struct make){.what = what};
    m->t = handle_alloc(HANDLE_TYPE, sizeof *m->t);
    m->env = envelope_new(combiner, nargs);
    struct type_part *parts = calloc((size_t)nparts + 1, sizeof *parts);
    if (!m->t || !m->env || !parts) {
        if (m->t) handle_release(m->t, sizeof *m->t);
        free(m->env);
        free(parts);
        m->t = NULL;
        m->rc = err_set(TERN_ERR_NOMEM, "no memory for a %s", what);
        return;
    }
    m->t->envelope = m->env;
    m->t->parts = parts;
    m->t->self = (MPI_Datatype)m->t;
    m->t->signature_step = 1;
    m->t->align = 1;
}

static void too_large(struct make *m)
{
    m->rc =
        err_set(TERN_ERR_COUNT,
                "%s: with this count, blocklength, size, extent or displacement it goes beyond 2^63 bytes", m->what);
}

bool make_product(struct make *m, int64_t a, int64_t b, int64_t *product)
{
    if (m->rc) return false;
    if (__builtin_mul_overflow(a, b, product)) too_large(m);
    return !m->rc;
}

bool make_sum(struct make *m, int64_t a, int64_t b, int64_t *sum)
{
    if (m->rc) return false;
    if (__builtin_add_overflow(a, b, sum)) too_large(m);
    return !m->rc;
}

void make_part(struct make *m, int64_t n, struct type *type)
{
    struct type *t = m->t;
    int64_t size, elements, external;
    if (!make_product(m, n, type->size, &size) || !make_sum(m, t->size, size, &size)) return;
    if (!make_product(m, n, type->elements, &elements) || !make_sum(m, t->elements, elements, &elements)) return;
    if (!make_product(m, n, type->external, &external) || !make_sum(m, t->external, external, &external)) return;
    type_ref(type);
    t->parts[t->nparts++] = (struct type_part){n, type};
    if (n == 0) return;
    struct signature s = signature_join((struct signature){t->signature, t->signature_step}, type_signature(type, n));
    bool first = t->elements == 0;
    t->size = size;
    t->elements = elements;
    t->external = external;
    t->signature = s.hash;
    t->signature_step = s.step;
    t->untyped = t->untyped || type->untyped;
    if (type->elements) t->basic = first || t->basic == type->basic ? type->basic : NULL;
    if (type->align > t->align) t->align = type->align;
}

/* A bound that is set wins over any that follows from data (the standard's lb and ub markers). */
static void widen(int64_t *bound, bool *set, int64_t at, bool at_set, bool first, bool upwards)
{
    if (at_set && !*set)
        first = true;
    else if (*set && !at_set)
        return;
    *set = at_set;
    if (first || (upwards ? at > *bound : at < *bound)) *bound = at;
}

static void place(struct make *m, int64_t off, const struct type *type)
{
    struct type *t = m->t;
    int64_t lo, hi, true_lo, true_hi;
    if (!make_sum(m, off, type->lb, &lo) || !make_sum(m, lo, type->extent, &hi)) return;
    if (!make_sum(m, off, type->true_lb, &true_lo) || !make_sum(m, true_lo, type->true_extent, &true_hi)) return;
    widen(&t->lb, &t->lb_set, lo, type->lb_set, !m->any, false);
    widen(&m->ub, &t->ub_set, hi, type->ub_set, !m->any, true);
    m->any = true;
    if (type->size == 0) return;
    if (!m->data || true_lo < t->true_lb) t->true_lb = true_lo;
    if (!m->data || true_hi > m->true_ub) m->true_ub = true_hi;
    m->data = true;
}

void make_bounds(struct make *m, int64_t off, int64_t n, int64_t stride, const struct type *type)
{
    int64_t last;
    bool empty = type->size == 0 && !type->lb_set && !type->ub_set;
    if (m->rc || n == 0 || empty) return;
    place(m, off, type);
    if (n > 1 && make_product(m, n - 1, stride, &last) && make_sum(m, off, last, &last)) place(m, last, type);
}

void make_set_bounds(struct make *m, int64_t lb, int64_t extent)
{
    if (m->rc) return;
    m->any = m->t->lb_set = m->t->ub_set = true;
    m->t->lb = lb;
    make_sum(m, lb, extent, &m->ub);
}

/* The extent of types without set bounds is rounded up to the alignment of what is in them (5.1.6, epsilon). */
static void seal_bounds(struct make *m)
{
    struct type *t = m->t;
    if (__builtin_sub_overflow(m->ub, t->lb, &t->extent) ||
        __builtin_sub_overflow(m->true_ub, t->true_lb, &t->true_extent)) {
        too_large(m);
        return;
    }
    int64_t rest = t->ub_set ? 0 : t->extent % t->align;
    if (rest) make_sum(m, t->extent, t->align - rest, &t->extent);
}

int make_close(struct make *m, struct type **new_p)
{
    if (!m->rc) seal_bounds(m);
    if (m->rc) {
        if (m->t) type_destroy(m->t);
        return m->rc;
    }
    *new_p = m->t;
    return 0;
}
