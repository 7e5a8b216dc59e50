/* layout.c - making layouts, always in their simplest form. */
#include "type/layout.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static struct layout *node(enum layout_kind kind, int64_t size, int64_t blocks)
{
    struct layout *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->kind = kind;
    atomic_init(&l->refs, 1);
    l->size = size;
    l->blocks = blocks;
    return l;
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory for the description of a datatype"); }

void layout_unref(const struct layout *shared)
{
    struct layout *l = (struct layout *)(uintptr_t)shared;
    /* acq_rel: the last owner must see what the others read as finished before it frees. */
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) return;
    if (l->kind == LAYOUT_LOOPS) {
        for (int64_t i = 0; i < l->n; i++) layout_unref(l->loops[i].body);
        free(l->loops);
    } else if (l->kind == LAYOUT_LIST) {
        free(l->pieces);
    } else if (l->kind == LAYOUT_BLOCKS) {
        free(l->offs);
    }
    free(l);
}

int layout_run(int64_t off, int64_t len, const struct layout **out)
{
    struct layout *l = node(LAYOUT_RUN, len, 1);
    if (!l) return no_memory();
    l->off = off;
    l->block = len;
    *out = l;
    return 0;
}

/* n blocks of `block` bytes, `stride` apart. */
static int make_vector(int64_t off, int64_t n, int64_t block, int64_t stride, const struct layout **out)
{
    if (n == 1 || block == stride) return layout_run(off, n * block, out);
    struct layout *l = node(LAYOUT_VECTOR, n * block, n);
    if (!l) return no_memory();
    l->off = off;
    l->n = n;
    l->block = block;
    l->stride = stride;
    *out = l;
    return 0;
}

/* A LOOPS node of the given loops, whose bodies are not NULL; takes references of its own. */
static int make_loops(int64_t n, const struct layout_loop *loops, const struct layout **out)
{
    struct layout *l = node(LAYOUT_LOOPS, 0, 0);
    if (!l) return no_memory();
    l->loops = calloc((size_t)n + 1, sizeof *l->loops);
    if (!l->loops) {
        free(l);
        return no_memory();
    }
    for (int64_t i = 0; i < n; i++) {
        const struct layout *body = loops[i].body;
        l->loops[i] = loops[i];
        l->loops[i].at = l->size;
        l->size += loops[i].n * body->size;
        l->blocks += loops[i].n * body->blocks;
        if (l->depth <= body->depth) l->depth = body->depth + 1;
        layout_ref(body);
    }
    l->n = n;
    l->loops[n].at = l->size;
    if (l->depth > LAYOUT_DEPTH_MAX) {
        layout_unref(l);
        return err_set(TERN_ERR_ARG, "the datatype is nested more than %d deep", LAYOUT_DEPTH_MAX);
    }
    *out = l;
    return 0;
}

/* `body` moved by `off` bytes. */
static int shifted(const struct layout *body, int64_t off, const struct layout **out)
{
    if (off == 0) {
        *out = layout_ref(body);
        return 0;
    }
    if (body->kind == LAYOUT_RUN) return layout_run(body->off + off, body->block, out);
    if (body->kind == LAYOUT_VECTOR) return make_vector(body->off + off, body->n, body->block, body->stride, out);
    struct layout_loop loop = {.off = off, .n = 1, .body = body};
    if (body->kind == LAYOUT_LOOPS && body->n == 1) {
        loop = body->loops[0];
        loop.off += off;
    }
    return make_loops(1, &loop, out);
}

int layout_repeat(const struct layout *body, int64_t off, int64_t n, int64_t stride, const struct layout **out)
{
    if (!body || n == 0) {
        *out = NULL;
        return 0;
    }
    if (n == 1) return shifted(body, off, out);
    if (body->kind == LAYOUT_RUN) return make_vector(body->off + off, n, body->block, stride, out);
    if (body->kind == LAYOUT_VECTOR && stride == body->n * body->stride) /* goes on in step: one longer vector */
        return make_vector(body->off + off, n * body->n, body->block, body->stride, out);
    struct layout_loop loop = {.off = off, .n = n, .stride = stride, .body = body};
    if (body->kind == LAYOUT_LOOPS && body->n == 1) {
        const struct layout_loop *inner = &body->loops[0];
        if (inner->n == 1) { /* only a shift: take its body */
            loop.off += inner->off;
            loop.body = inner->body;
        } else if (stride == inner->n * inner->stride) {
            loop = *inner;
            loop.off += off;
            loop.n *= n;
        }
    }
    return make_loops(1, &loop, out);
}

/* ---- pieces ---- */

int layout_pieces_open(struct layout_pieces *p, int64_t room)
{
    *p = (struct layout_pieces){.room = room};
    p->list = malloc(((size_t)room + 1) * sizeof *p->list);
    return p->list ? 0 : no_memory();
}

void layout_pieces_add(struct layout_pieces *p, int64_t off, int64_t len)
{
    struct layout_piece *last = p->n ? &p->list[p->n - 1] : NULL;
    p->size += len;
    if (last && last->off + (p->size - len - last->at) == off) return; /* it goes on where the last one ends */
    assert(p->n < p->room);
    p->list[p->n++] = (struct layout_piece){.off = off, .at = p->size - len};
}

static bool same_length(const struct layout_pieces *p)
{
    if (p->size % p->n) return false;
    for (int64_t i = 0; i < p->n; i++)
        if (p->list[i + 1].at - p->list[i].at != p->size / p->n) return false;
    return true;
}

static bool same_stride(const struct layout_pieces *p)
{
    for (int64_t i = 2; i < p->n; i++)
        if (p->list[i].off - p->list[i - 1].off != p->list[1].off - p->list[0].off) return false;
    return true;
}

static int make_blocks(const struct layout_pieces *p, const struct layout **out)
{
    struct layout *l = node(LAYOUT_BLOCKS, p->size, p->n);
    if (!l) return no_memory();
    l->n = p->n;
    l->block = p->size / p->n;
    l->offs = calloc((size_t)p->n, sizeof *l->offs);
    if (!l->offs) {
        free(l);
        return no_memory();
    }
    for (int64_t i = 0; i < p->n; i++) l->offs[i] = p->list[i].off;
    *out = l;
    return 0;
}

static int make_list(struct layout_pieces *p, const struct layout **out)
{
    struct layout *l = node(LAYOUT_LIST, p->size, p->n);
    if (!l) return no_memory();
    struct layout_piece *fit = realloc(p->list, ((size_t)p->n + 1) * sizeof *fit);
    l->n = p->n;
    l->pieces = fit ? fit : p->list;
    p->list = NULL;
    *out = l;
    return 0;
}

int layout_pieces_seal(struct layout_pieces *p, const struct layout **out)
{
    int rc = 0;
    p->list[p->n].at = p->size;
    if (p->n == 0)
        *out = NULL;
    else if (!same_length(p))
        rc = make_list(p, out);
    else if (same_stride(p))
        rc = make_vector(p->list[0].off, p->n, p->size / p->n, p->n > 1 ? p->list[1].off - p->list[0].off : 0, out);
    else
        rc = make_blocks(p, out);
    free(p->list);
    p->list = NULL;
    return rc;
}

/* ---- several loops ---- */

static bool is_run(const struct layout_loop *e)
{
    return e->body->kind == LAYOUT_RUN && (e->n == 1 || e->stride == e->body->block);
}

static bool is_empty(const struct layout_loop *e) { return !e->body || e->n == 0; }

static int join_runs(int64_t n, const struct layout_loop *loops, const struct layout **out)
{
    struct layout_pieces p;
    int rc = layout_pieces_open(&p, n);
    if (rc) return rc;
    for (int64_t i = 0; i < n; i++)
        if (!is_empty(&loops[i]))
            layout_pieces_add(&p, loops[i].off + loops[i].body->off, loops[i].n * loops[i].body->block);
    return layout_pieces_seal(&p, out);
}

/* Equal loops at a regular distance are one loop over one loop. */
static bool is_regular(int64_t n, const struct layout_loop *e)
{
    for (int64_t i = 1; i < n; i++)
        if (e[i].body != e[0].body || e[i].n != e[0].n || e[i].stride != e[0].stride ||
            e[i].off - e[i - 1].off != e[1].off - e[0].off)
            return false;
    return true;
}

static int join_mixed(int64_t n, struct layout_loop *loops, const struct layout **out)
{
    const struct layout *inner;
    if (n > 1 && !is_regular(n, loops)) return make_loops(n, loops, out);
    int rc = layout_repeat(loops[0].body, 0, loops[0].n, loops[0].stride, &inner);
    if (rc) return rc;
    rc = layout_repeat(inner, loops[0].off, n, n > 1 ? loops[1].off - loops[0].off : 0, out);
    layout_unref(inner);
    return rc;
}

int layout_join(int64_t n, const struct layout_loop *loops, const struct layout **out)
{
    int64_t full = 0;
    bool runs = true;
    for (int64_t i = 0; i < n; i++) {
        if (is_empty(&loops[i])) continue;
        full++;
        runs = runs && is_run(&loops[i]);
    }
    if (runs) return join_runs(n, loops, out);
    struct layout_loop *kept = calloc((size_t)full, sizeof *kept);
    if (!kept) return no_memory();
    full = 0;
    for (int64_t i = 0; i < n; i++)
        if (!is_empty(&loops[i])) kept[full++] = loops[i];
    int rc = join_mixed(full, kept, out);
    free(kept);
    return rc;
}
