/*
 * wire.h - the content of messages: numbers and texts to bytes and back. Numbers are in network order; a text or a run
 * of bytes is its length (32 bits) and then itself.
 *
 * A reader never leaves its bytes, whatever they are: what is missing reads as 0 or "", and `bad` stays set, so that
 * one look at the end tells whether all was there.
 */
#ifndef TERN_MPIEXEC_WIRE_H
#define TERN_MPIEXEC_WIRE_H

#include "mpiexec/xalloc.h"

struct wire_out { /* begin with {0} */
    uint8_t *bytes;
    size_t n, room;
};

void wire_put8(struct wire_out *, uint8_t);
void wire_put32(struct wire_out *, uint32_t);
void wire_put64(struct wire_out *, uint64_t);
void wire_put_text(struct wire_out *, const char *); /* NULL is told from "" */
void wire_put_list(struct wire_out *, const struct strv *);
void wire_put_raw(struct wire_out *, const void *bytes, size_t n); /* without a length */
void wire_free(struct wire_out *);

struct wire_in {
    const uint8_t *at, *end;
    bool bad;
};

static inline struct wire_in wire_of(const void *bytes, size_t n)
{
    return (struct wire_in){.at = bytes, .end = (const uint8_t *)bytes + n};
}

uint8_t wire_get8(struct wire_in *);
uint32_t wire_get32(struct wire_in *);
uint64_t wire_get64(struct wire_in *);
char *wire_get_text(struct wire_in *); /* the caller's to free; "" when bad */
void wire_get_list(struct wire_in *, struct strv *);
void wire_get_raw(struct wire_in *, void *bytes, size_t n);

/* A number of elements that follow, each of at least `each` bytes: never more than there are bytes for. */
uint32_t wire_get_count(struct wire_in *, size_t each);

/* Was all there, and is nothing left? */
static inline bool wire_done(const struct wire_in *w) { return !w->bad && w->at == w->end; }
static inline size_t wire_left(const struct wire_in *w) { return (size_t)(w->end - w->at); }

#endif
