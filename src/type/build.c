/* build.c - the constructors of chapter 5.1.2 to 5.1.10: contiguous, vector, indexed and struct families. */
#include "base/err.h"
#include "type/layout.h"
#include "type/make.h"

#include <stdlib.h>

int type_contiguous(int64_t n, struct type *old, struct type **new_p)
{
    const char *what = "contiguous datatype";
    struct make m;
    int rc = make_check_type(what, old);
    if (!rc) rc = make_check_counts(what, "count", 1, &n);
    if (rc) return rc;
    make_open(&m, what, MPI_COMBINER_CONTIGUOUS, 1, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_COUNT, n);
    make_part(&m, n, old);
    make_bounds(&m, 0, n, old->extent, old);
    const struct layout *l = type_layout(old);
    if (!m.rc) m.rc = layout_repeat(l, 0, n, old->extent, &m.t->layout);
    layout_unref(l);
    return make_close(&m, new_p);
}

/* n blocks of len elements, stride bytes apart. */
static int vector_layout(int64_t n, int64_t len, int64_t stride, const struct type *old, const struct layout **out)
{
    const struct layout *l = type_layout(old), *block;
    int rc = layout_repeat(l, 0, len, old->extent, &block);
    layout_unref(l);
    if (rc) return rc;
    rc = layout_repeat(block, 0, n, stride, out);
    layout_unref(block);
    return rc;
}

int type_vector(int64_t n, int64_t len, int64_t stride, enum type_unit unit, struct type *old, struct type **new_p)
{
    const char *what = "vector datatype";
    struct make m;
    int64_t step = stride, total = 0, last = 0;
    int rc = make_check_type(what, old);
    if (!rc) rc = make_check_counts(what, "count", 1, &n);
    if (!rc) rc = make_check_counts(what, "blocklength", 1, &len);
    if (rc) return rc;
    make_open(&m, what, unit == TYPE_BYTES ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR, 3, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_COUNT, n);
    envelope_add1(m.env, ENVELOPE_COUNT, len);
    envelope_add1(m.env, unit == TYPE_BYTES ? ENVELOPE_ADDRESS : ENVELOPE_COUNT, stride);
    if (unit == TYPE_ELEMENTS) make_product(&m, stride, old->extent, &step);
    make_product(&m, n, len, &total);
    if (!m.rc) make_part(&m, total, old);
    if (n > 0 && make_product(&m, n - 1, step, &last)) { /* the outer blocks bound all between them */
        make_bounds(&m, 0, len, old->extent, old);
        make_bounds(&m, last, len, old->extent, old);
    }
    if (!m.rc) m.rc = vector_layout(n, len, step, old, &m.t->layout);
    return make_close(&m, new_p);
}

/* Blocks of `old` at any place: lens[i] elements, or len of them if lens is NULL. */
struct blocks {
    int64_t n, len;
    const int64_t *lens, *displs;
    enum type_unit unit;
};

static int64_t block_len(const struct blocks *b, int64_t i) { return b->lens ? b->lens[i] : b->len; }

/* The lowest and the highest displacement of all elements: what lies between them changes no bound. */
struct reach {
    int64_t lo, hi;
    bool any;
};

/* `len` > 0 elements from `off` on, an extent apart. */
static void reach_add(struct make *m, struct reach *r, int64_t off, int64_t len, int64_t extent)
{
    int64_t last;
    if (!make_product(m, len - 1, extent, &last) || !make_sum(m, off, last, &last)) return;
    int64_t lo = extent < 0 ? last : off, hi = extent < 0 ? off : last;
    if (!r->any || lo < r->lo) r->lo = lo;
    if (!r->any || hi > r->hi) r->hi = hi;
    r->any = true;
}

static void add_blocks(struct make *m, const struct blocks *b, struct type *old)
{
    int64_t total = 0, off;
    struct reach reach = {0};
    const struct layout *l = type_layout(old);
    struct layout_loop *loops = malloc(((size_t)b->n + 1) * sizeof *loops);
    if (!loops) m->rc = err_set(TERN_ERR_NOMEM, "no memory for an %s", m->what);
    for (int64_t i = 0; i < b->n && !m->rc; i++) {
        int64_t len = block_len(b, i);
        off = b->displs[i];
        loops[i] = (struct layout_loop){0};
        if (!make_sum(m, total, len, &total)) break;
        if (len == 0) continue; /* its displacement may be anything */
        if (b->unit == TYPE_ELEMENTS && !make_product(m, off, old->extent, &off)) break;
        reach_add(m, &reach, off, len, old->extent);
        loops[i] = (struct layout_loop){.off = off, .n = len, .stride = old->extent, .body = l};
    }
    if (reach.any) make_bounds(m, reach.lo, 1, 0, old);
    if (reach.any) make_bounds(m, reach.hi, 1, 0, old);
    if (!m->rc) make_part(m, total, old);
    if (!m->rc) m->rc = layout_join(b->n, loops, &m->t->layout);
    free(loops);
    layout_unref(l);
}

int type_indexed(int64_t n, const int64_t *lens, const int64_t *displs, enum type_unit unit, struct type *old,
                 struct type **new_p)
{
    const char *what = "indexed datatype";
    struct blocks b = {n, 0, lens, displs, unit};
    struct make m;
    int rc = make_check_type(what, old);
    if (!rc) rc = make_check_counts(what, "count", 1, &n);
    if (!rc) rc = make_check_counts(what, "blocklengths", n, lens);
    if (rc) return rc;
    make_open(&m, what, unit == TYPE_BYTES ? MPI_COMBINER_HINDEXED : MPI_COMBINER_INDEXED, 1 + 2 * n, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_COUNT, n);
    envelope_add(m.env, ENVELOPE_COUNT, n, lens);
    envelope_add(m.env, unit == TYPE_BYTES ? ENVELOPE_ADDRESS : ENVELOPE_COUNT, n, displs);
    add_blocks(&m, &b, old);
    return make_close(&m, new_p);
}

int type_indexed_block(int64_t n, int64_t len, const int64_t *displs, enum type_unit unit, struct type *old,
                       struct type **new_p)
{
    const char *what = "indexed-block datatype";
    struct blocks b = {n, len, NULL, displs, unit};
    struct make m;
    int rc = make_check_type(what, old);
    if (!rc) rc = make_check_counts(what, "count", 1, &n);
    if (!rc) rc = make_check_counts(what, "blocklength", 1, &len);
    if (rc) return rc;
    make_open(&m, what, unit == TYPE_BYTES ? MPI_COMBINER_HINDEXED_BLOCK : MPI_COMBINER_INDEXED_BLOCK, 2 + n, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_COUNT, n);
    envelope_add1(m.env, ENVELOPE_COUNT, len);
    envelope_add(m.env, unit == TYPE_BYTES ? ENVELOPE_ADDRESS : ENVELOPE_COUNT, n, displs);
    add_blocks(&m, &b, old);
    return make_close(&m, new_p);
}

static void add_members(struct make *m, int64_t n, const int64_t *lens, const int64_t *displs,
                        struct type *const *types)
{
    struct layout_loop *loops = calloc((size_t)n + 1, sizeof *loops);
    if (!loops) m->rc = err_set(TERN_ERR_NOMEM, "no memory for a %s", m->what);
    for (int64_t i = 0; i < n && !m->rc; i++) {
        const struct type *t = types[i];
        make_part(m, lens[i], types[i]);
        make_bounds(m, displs[i], lens[i], t->extent, t);
        loops[i] = (struct layout_loop){.off = displs[i], .n = lens[i], .stride = t->extent, .body = type_layout(t)};
    }
    if (!m->rc) m->rc = layout_join(n, loops, &m->t->layout);
    for (int64_t i = 0; loops && i < n; i++) layout_unref(loops[i].body);
    free(loops);
}

int type_struct(int64_t n, const int64_t *lens, const int64_t *displs, struct type *const *types, struct type **new_p)
{
    const char *what = "struct datatype";
    struct make m;
    int rc = make_check_counts(what, "count", 1, &n);
    if (!rc) rc = make_check_counts(what, "blocklengths", n, lens);
    for (int64_t i = 0; i < n && !rc; i++) rc = make_check_type(what, types[i]);
    if (rc) return rc;
    make_open(&m, what, MPI_COMBINER_STRUCT, 1 + 2 * n, n);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_COUNT, n);
    envelope_add(m.env, ENVELOPE_COUNT, n, lens);
    envelope_add(m.env, ENVELOPE_ADDRESS, n, displs);
    add_members(&m, n, lens, displs, types);
    return make_close(&m, new_p);
}

int type_resized(struct type *old, int64_t lb, int64_t extent, struct type **new_p)
{
    const char *what = "resized datatype";
    struct make m;
    int rc = make_check_type(what, old);
    if (rc) return rc;
    make_open(&m, what, MPI_COMBINER_RESIZED, 2, 1);
    if (m.rc) return m.rc;
    envelope_add1(m.env, ENVELOPE_ADDRESS, lb);
    envelope_add1(m.env, ENVELOPE_ADDRESS, extent);
    make_part(&m, 1, old);
    make_bounds(&m, 0, 1, 0, old);
    make_set_bounds(&m, lb, extent);
    m.t->layout = type_layout(old);
    return make_close(&m, new_p);
}

/* How the bytes are described: as built, or as committed. */
static void copy_form(struct type *t, const struct type *old)
{
    handle_state_lock();
    t->layout = layout_ref(old->layout);
    t->committed = old->committed;
    t->count_limit = old->count_limit;
    t->contig = old->contig;
    handle_state_unlock();
}

int type_dup(struct type *old, struct type **new_p)
{
    struct make m;
    make_open(&m, "duplicated datatype", MPI_COMBINER_DUP, 0, 1);
    if (m.rc) return m.rc;
    int rc = make_check_type(m.what, old);
    if (rc)
        m.rc = rc;
    else
        make_part(&m, 1, old);
    if (!m.rc) {
        copy_form(m.t, old);
        m.t->lb = old->lb;
        m.t->lb_set = old->lb_set;
        m.t->ub_set = old->ub_set;
        m.t->true_lb = old->true_lb;
        m.ub = old->lb + old->extent;
        m.true_ub = old->true_lb + old->true_extent;
    }
    return make_close(&m, new_p);
}

void type_set_large(struct type *t) { t->envelope->large = true; }
