/* outline.c - see outline.h. */
#include "rma/outline.h"
#include "pt2pt/lane.h"

#include <stdlib.h>
#include <string.h>

/* ---- origin ---- */

int outline_find(const struct outlines_told *o, const struct outline_of *of)
{
    for (int i = 0; i < OUTLINES; i++) {
        const struct outline_of *k = &o->told[i].of;
        if (k->type == of->type && k->count == of->count && k->basic == of->basic && k->piece == of->piece) return i;
    }
    return -1;
}

void outline_forget(struct outlines_told *o, int number)
{
    struct type *t = o->told[number].of.type;
    o->told[number].of.type = NULL;
    if (t) type_unref(t);
}

int outline_tell(struct outlines_told *o, const struct outline_of *of, uint16_t runs, int64_t elements)
{
    int number = (int)(o->next++ % OUTLINES);
    outline_forget(o, number);
    o->told[number] = (struct outline_told){*of, runs, elements};
    type_ref(of->type);
    return number;
}

void outlines_told_close(struct outlines_told *o)
{
    for (int i = 0; i < OUTLINES; i++) outline_forget(o, i);
}

/* ---- target ---- */

static void keep(struct outlines *o, uint16_t number, const char *runs, uint16_t n)
{
    size_t bytes = n * sizeof(struct win_run);
    struct win_run *copy = malloc(bytes);
    if (!copy) lane_fatal("no memory for a type of operations on a window");
    memcpy(copy, runs, bytes);
    free(o->runs[number]);
    o->runs[number] = copy;
    o->n[number] = n;
}

const char *outline_runs(struct outlines *o, const struct win_record *r, const char *rest, size_t *bytes)
{
    uint16_t number = r->outline & OUTLINE_NUMBER, how = (uint16_t)(r->outline & ~OUTLINE_NUMBER);
    *bytes = how == OUTLINE_KNOWN ? 0 : r->runs * sizeof(struct win_run);
    if (r->runs > WIN_PIECE_RUNS || *bytes > r->bytes || (r->outline && (!r->runs || number >= OUTLINES || how == (OUTLINE_NEW | OUTLINE_KNOWN)))) return NULL;
    if (how == OUTLINE_KNOWN) return o->runs[number] && o->n[number] == r->runs ? (const char *)o->runs[number] : NULL;
    if (how == OUTLINE_NEW) keep(o, number, rest, r->runs);
    return how == OUTLINE_NEW || !r->outline ? rest : NULL;
}

void outlines_close(struct outlines *o)
{
    for (int i = 0; i < OUTLINES; i++) free(o->runs[i]);
}
