/*
 * inline.h - what software engines that copy in the caller share: a ring of pieces,
 * worked off by issue.
 */
#ifndef TERN_COPY_INLINE_H
#define TERN_COPY_INLINE_H

#include "copy/copy.h"

struct inline_piece {
    void *dst;
    const void *src;
    size_t n;
};

struct inline_ring {
    size_t depth, queued;
    uint64_t finished;
    struct inline_piece pieces[];
};

int inline_open(size_t depth, void **state_p);
void inline_close(void *state);
int inline_push(void *state, void *dst, const void *src, size_t n);
uint64_t inline_finished(void *state);

/* Copies everything queued by `copy`. */
void inline_work(struct inline_ring *, void (*copy)(void *, const void *, size_t));

#endif
