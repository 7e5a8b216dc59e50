/* inline.c - the engine that copies by memcpy when it is told to begin. */
#include "copy/inline.h"
#include "base/err.h"

#include <stdlib.h>

int inline_open(size_t depth, void **state_p)
{
    struct inline_ring *r = calloc(1, sizeof *r + depth * sizeof r->pieces[0]);
    if (!r) return err_set(TERN_ERR_NOMEM, "no memory for a copy engine of %zu pieces", depth);
    r->depth = depth;
    *state_p = r;
    return 0;
}

void inline_close(void *state) { free(state); }

int inline_push(void *state, void *dst, const void *src, size_t n)
{
    struct inline_ring *r = state;
    if (r->queued == r->depth) return TERN_AGAIN;
    r->pieces[r->queued++] = (struct inline_piece){dst, src, n};
    return 0;
}

void inline_work(struct inline_ring *r, void (*copy)(void *, const void *, size_t))
{
    for (size_t i = 0; i < r->queued; i++) copy(r->pieces[i].dst, r->pieces[i].src, r->pieces[i].n);
    r->finished += r->queued;
    r->queued = 0;
}

uint64_t inline_finished(void *state) { return ((struct inline_ring *)state)->finished; }

static void plain(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }
static void issue(void *state) { inline_work(state, plain); }

const struct copy_ops copy_inline_ops = {
    .name = "inline",
    .open = inline_open,
    .close = inline_close,
    .push = inline_push,
    .issue = issue,
    .finished = inline_finished,
};
