/*
 * array.c - the constructors for parts of multi-dimensional arrays: subarray (5.1.3)
 * and darray (5.1.4).
 *
 * Both go from the fastest dimension to the slowest and repeat what they have so far.
 */
#include "base/err.h"
#include "type/layout.h"
#include "type/make.h"

/* The i-th fastest of the ndims dimensions. */
static int dimension(int order, int ndims, int i) { return order == MPI_ORDER_C ? ndims - 1 - i : i; }

static int check_order(const char *what, int ndims, int order)
{
    if (ndims < 1) return err_set(TERN_ERR_ARG, "%s: ndims is %d, must be positive", what, ndims);
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return err_set(TERN_ERR_ARG, "%s: order is %d, must be MPI_ORDER_C or MPI_ORDER_FORTRAN", what, order);
    return 0;
}

/* What has been made of an array, dimension by dimension. */
struct grid {
    int64_t stride;      /* bytes from one index of the coming dimension to the next */
    int64_t first, last; /* where the first and the last element lie */
    int64_t total;       /* elements */
    const struct layout *layout;
};

static void grid_open(struct grid *g, const struct type *old)
{
    *g = (struct grid){.stride = old->extent, .total = 1, .layout = type_layout(old)};
}

static void grid_replace(struct grid *g, const struct layout *made)
{
    layout_unref(g->layout);
    g->layout = made;
}

/* This dimension has `size` indices, of which `n` are taken, from lo to hi. */
static void grid_advance(struct make *m, struct grid *g, int64_t size, int64_t n, int64_t lo, int64_t hi)
{
    int64_t at;
    if (make_product(m, lo, g->stride, &at)) make_sum(m, g->first, at, &g->first);
    if (make_product(m, hi, g->stride, &at)) make_sum(m, g->last, at, &g->last);
    make_product(m, g->total, n, &g->total);
    make_product(m, g->stride, size, &g->stride);
}

static int grid_close(struct make *m, struct grid *g, struct type *old, struct type **new_p)
{
    if (!m->rc) make_part(m, g->total, old);
    if (!m->rc && g->total > 0) {
        make_bounds(m, g->first, 1, 0, old);
        make_bounds(m, g->last, 1, 0, old);
        m->t->layout = layout_ref(g->layout);
    }
    make_set_bounds(m, 0, g->stride);
    layout_unref(g->layout);
    return make_close(m, new_p);
}

/* ---- subarray ---- */

static int check_subarray(const char *what, int ndims, const int64_t *sizes, const int64_t *subsizes,
                          const int64_t *starts)
{
    for (int d = 0; d < ndims; d++)
        if (sizes[d] < 1 || subsizes[d] < 1 || starts[d] < 0 || subsizes[d] > sizes[d] ||
            starts[d] > sizes[d] - subsizes[d])
            return err_set(TERN_ERR_ARG, "%s: dimension %d: %lld from %lld on does not lie in an array of %lld", what,
                           d, (long long)subsizes[d], (long long)starts[d], (long long)sizes[d]);
    return 0;
}

int type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts, int order,
                  struct type *old, struct type **new_p)
{
    const char *what = "subarray datatype";
    struct make m;
    struct grid g;
    int rc = make_check_type(what, old);
    if (!rc) rc = check_order(what, ndims, order);
    if (!rc) rc = check_subarray(what, ndims, sizes, subsizes, starts);
    if (rc) return rc;
    make_open(&m, what, MPI_COMBINER_SUBARRAY, 2 + 3 * (int64_t)ndims, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_INT, ndims);
    envelope_add(m.env, ENVELOPE_COUNT, ndims, sizes);
    envelope_add(m.env, ENVELOPE_COUNT, ndims, subsizes);
    envelope_add(m.env, ENVELOPE_COUNT, ndims, starts);
    envelope_add1(m.env, ENVELOPE_INT, order);
    grid_open(&g, old);
    for (int i = 0; i < ndims && !m.rc; i++) {
        int d = dimension(order, ndims, i);
        const struct layout *l;
        int64_t stride = g.stride, off;
        grid_advance(&m, &g, sizes[d], subsizes[d], starts[d], starts[d] + subsizes[d] - 1);
        if (!make_product(&m, starts[d], stride, &off)) break;
        m.rc = layout_repeat(g.layout, off, subsizes[d], stride, &l);
        if (!m.rc) grid_replace(&g, l);
    }
    return grid_close(&m, &g, old, new_p);
}

/* ---- darray: in each dimension a process has every psize-th block of `block` indices, from the coord-th on ---- */

struct share {
    int64_t gsize, block, psize, coord;
    int64_t full, rest; /* whole blocks of ours, and indices in a last, shorter one */
};

static int share_of(const char *what, int d, int64_t gsize, int distrib, int darg, int psize, int64_t coord,
                    struct share *s)
{
    int64_t even = gsize / psize + (gsize % psize != 0);
    bool dflt = darg == MPI_DISTRIBUTE_DFLT_DARG;
    *s = (struct share){.gsize = gsize, .psize = psize, .coord = coord};
    if (!dflt && distrib != MPI_DISTRIBUTE_NONE && darg < 1)
        return err_set(TERN_ERR_ARG, "%s: dimension %d: the distribution argument is %d, must be positive", what, d,
                       darg);
    if (distrib == MPI_DISTRIBUTE_BLOCK)
        s->block = dflt ? even : darg;
    else if (distrib == MPI_DISTRIBUTE_CYCLIC)
        s->block = dflt ? 1 : darg;
    else if (distrib == MPI_DISTRIBUTE_NONE)
        s->block = gsize;
    else
        return err_set(TERN_ERR_ARG, "%s: dimension %d: unknown distribution %d", what, d, distrib);
    if (distrib == MPI_DISTRIBUTE_NONE && psize != 1)
        return err_set(TERN_ERR_ARG, "%s: dimension %d is not distributed, but over %d processes", what, d, psize);
    if (distrib == MPI_DISTRIBUTE_BLOCK && s->block < even)
        return err_set(TERN_ERR_ARG, "%s: dimension %d: %d processes with blocks of %lld do not cover %lld", what, d,
                       psize, (long long)s->block, (long long)gsize);
    int64_t blocks = gsize / s->block, tail = gsize % s->block; /* of all processes together */
    s->full = blocks > coord ? (blocks - coord - 1) / psize + 1 : 0;
    s->rest = blocks % psize == coord ? tail : 0;
    return 0;
}

/* The layout of one dimension's share over what there is of the faster ones. */
static int share_layout(const struct share *s, int64_t stride, const struct layout *body, const struct layout **out)
{
    const struct layout *block;
    int64_t step = s->psize * s->block * stride, off = s->coord * s->block * stride;
    int rc = layout_repeat(body, 0, s->block, stride, &block);
    if (rc) return rc;
    struct layout_loop loops[2] = {
        {.off = off, .n = s->full, .stride = step, .body = block},
        {.off = off + s->full * step, .n = s->rest, .stride = stride, .body = body},
    };
    rc = layout_join(2, loops, out);
    layout_unref(block);
    return rc;
}

static void add_share(struct make *m, struct grid *g, const struct share *s)
{
    const struct layout *l;
    int64_t n = s->full * s->block + s->rest, stride = g->stride, lo = s->coord * s->block, far;
    int64_t last_block = s->rest ? s->full : s->full - 1;
    int64_t hi = lo + last_block * s->psize * s->block + (s->rest ? s->rest : s->block) - 1;
    if (n == 0) lo = hi = 0;
    grid_advance(m, g, s->gsize, n, lo, hi);
    /* The step to the block behind the last one is computed, though not used for data: it must not overflow. */
    if (!make_product(m, s->psize * 2, s->block, &far) || !make_sum(m, far, s->gsize, &far)) return;
    if (!make_product(m, far, stride, &far)) return;
    m->rc = share_layout(s, stride, g->layout, &l);
    if (!m->rc) grid_replace(g, l);
}

static int check_darray(const char *what, int size, int rank, int ndims, const int64_t *gsizes, const int *psizes)
{
    int64_t procs = 1;
    if (size < 1 || rank < 0 || rank >= size)
        return err_set(TERN_ERR_ARG, "%s: rank %d does not lie in a group of %d", what, rank, size);
    for (int d = 0; d < ndims; d++) {
        if (gsizes[d] < 1 || psizes[d] < 1)
            return err_set(TERN_ERR_ARG, "%s: dimension %d: %lld indices over %d processes; both must be positive",
                           what, d, (long long)gsizes[d], psizes[d]);
        if (__builtin_mul_overflow(procs, (int64_t)psizes[d], &procs)) procs = -1;
    }
    if (procs != size)
        return err_set(TERN_ERR_ARG, "%s: the process grid has not %d members, as the group has", what, size);
    return 0;
}

static void record_darray(struct envelope *e, const int *head, int ndims, const int64_t *gsizes, const int *distribs,
                          const int *dargs, const int *psizes, int order)
{
    envelope_add_ints(e, 3, head);
    envelope_add(e, ENVELOPE_COUNT, ndims, gsizes);
    envelope_add_ints(e, ndims, distribs);
    envelope_add_ints(e, ndims, dargs);
    envelope_add_ints(e, ndims, psizes);
    envelope_add1(e, ENVELOPE_INT, order);
}

int type_darray(int size, int rank, int ndims, const int64_t *gsizes, const int *distribs, const int *dargs,
                const int *psizes, int order, struct type *old, struct type **new_p)
{
    const char *what = "darray datatype";
    const int head[3] = {size, rank, ndims};
    struct make m;
    struct grid g;
    int rc = make_check_type(what, old);
    if (!rc) rc = check_order(what, ndims, order);
    if (!rc) rc = check_darray(what, size, rank, ndims, gsizes, psizes);
    if (rc) return rc;
    make_open(&m, what, MPI_COMBINER_DARRAY, 4 + 4 * (int64_t)ndims, 1);
    if (m.rc) return m.rc;
    record_darray(m.env, head, ndims, gsizes, distribs, dargs, psizes, order);
    grid_open(&g, old);
    for (int i = 0; i < ndims && !m.rc; i++) {
        int d = dimension(order, ndims, i);
        struct share s;
        int64_t slower = 1; /* ranks run fastest in the last dimension, whatever the order of the array */
        for (int k = d + 1; k < ndims; k++) slower *= psizes[k];
        m.rc = share_of(what, d, gsizes[d], distribs[d], dargs[d], psizes[d], rank / slower % psizes[d], &s);
        if (!m.rc) add_share(&m, &g, &s);
    }
    return grid_close(&m, &g, old, new_p);
}
