/*
 * flatten.c - the form of a layout that moves data fastest.
 *
 * A loop over a body of few blocks costs more in bookkeeping than in copying, so
 * such loops are written out as BLOCKS or a LIST. Loops over long vectors and
 * lists are left alone: they are compact and their bookkeeping is paid once per body.
 */
#include "base/err.h"
#include "type/layout.h"

#include <stdlib.h>

/* Set by bench/type_bench pack: a body of 8 blocks of 8 bytes moves as fast looped over as written out. */
#define BODY_BLOCKS 8    /* blocks of a body up to which its loop is written out ... */
#define LIST_BLOCKS 4096 /* ... if no more than these come of it: 64 KiB of list */
#define SMALL_BLOCKS 64  /* anything is written out that has no more blocks than these */

static bool worth_listing(const struct layout *l)
{
    bool small_bodies = true;
    if (l->blocks <= SMALL_BLOCKS) return true;
    for (int64_t i = 0; i < l->n; i++) {
        const struct layout_loop *e = &l->loops[i];
        bool is_list = e->body->kind == LAYOUT_BLOCKS || e->body->kind == LAYOUT_LIST;
        if (l->n == 1 && e->n == 1 && is_list) return true; /* a list, moved */
        small_bodies = small_bodies && e->body->blocks <= BODY_BLOCKS;
    }
    return small_bodies && l->blocks <= LIST_BLOCKS;
}

static void emit(const struct layout *l, int64_t base, struct layout_pieces *to)
{
    switch (l->kind) {
    case LAYOUT_RUN:
        layout_pieces_add(to, base + l->off, l->block);
        break;
    case LAYOUT_VECTOR:
        for (int64_t i = 0; i < l->n; i++) layout_pieces_add(to, base + l->off + i * l->stride, l->block);
        break;
    case LAYOUT_BLOCKS:
        for (int64_t i = 0; i < l->n; i++) layout_pieces_add(to, base + l->offs[i], l->block);
        break;
    case LAYOUT_LIST:
        for (int64_t i = 0; i < l->n; i++)
            layout_pieces_add(to, base + l->pieces[i].off, l->pieces[i + 1].at - l->pieces[i].at);
        break;
    case LAYOUT_LOOPS:
        for (int64_t i = 0; i < l->n; i++)
            for (int64_t k = 0; k < l->loops[i].n; k++)
                emit(l->loops[i].body, base + l->loops[i].off + k * l->loops[i].stride, to);
        break;
    }
}

static int list(const struct layout *l, const struct layout **out)
{
    struct layout_pieces p;
    int rc = layout_pieces_open(&p, l->blocks);
    if (rc) return rc;
    emit(l, 0, &p);
    return layout_pieces_seal(&p, out);
}

/* The same loops over flattened bodies; neighbours that share a body share its new form. */
static int flatten_bodies(const struct layout *l, struct layout_loop *loops)
{
    for (int64_t i = 0; i < l->n; i++) {
        loops[i] = l->loops[i];
        loops[i].body = NULL;
        if (i > 0 && l->loops[i].body == l->loops[i - 1].body) {
            loops[i].body = layout_ref(loops[i - 1].body);
            continue;
        }
        int rc = layout_flatten(l->loops[i].body, &loops[i].body);
        if (rc) return rc;
    }
    return 0;
}

int layout_flatten(const struct layout *l, const struct layout **out)
{
    if (!l || l->kind != LAYOUT_LOOPS) {
        *out = layout_ref(l);
        return 0;
    }
    if (worth_listing(l)) return list(l, out);
    struct layout_loop *loops = calloc((size_t)l->n, sizeof *loops);
    if (!loops) return err_set(TERN_ERR_NOMEM, "no memory for the description of a datatype");
    int rc = flatten_bodies(l, loops);
    if (!rc) rc = layout_join(l->n, loops, out);
    for (int64_t i = 0; i < l->n; i++) layout_unref(loops[i].body);
    free(loops);
    return rc;
}
