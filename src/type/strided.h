/*
 * strided.h - the inner loops of packing: many blocks between scattered and packed memory.
 *
 * All take whole blocks and return the packed address behind the last byte. In
 * which order the blocks move is theirs to choose: neighbours in memory together,
 * and long loops inside of short ones.
 */
#ifndef TERN_TYPE_STRIDED_H
#define TERN_TYPE_STRIDED_H

#include "type/layout.h"

/* rows of n blocks each, all of `block` > 0 bytes: the blocks of a row are `step` bytes apart, the rows row_step. */
struct grid {
    size_t block;
    int64_t n, step;
    int64_t rows, row_step;
};

/* The grid whose first block is at `at`. */
char *grid_pack(char *packed, const char *at, const struct grid *g);
const char *grid_unpack(const char *packed, char *at, const struct grid *g);

/* The blocks at base + offs[0..n), all of `block` bytes, and that `times` times, `stride` bytes apart. */
struct scattered {
    size_t block;
    const int64_t *offs;
    int64_t n;
    int64_t times, stride;
};
char *scattered_pack(char *packed, const char *base, const struct scattered *);
const char *scattered_unpack(const char *packed, char *base, const struct scattered *);

/* The pieces p[0..n) of different lengths, `times` times, `stride` bytes apart. The length of the last is found from
 * the entry behind it. */
struct pieces {
    const struct layout_piece *p;
    int64_t n;
    int64_t times, stride;
};
char *pieces_pack(char *packed, const char *base, const struct pieces *);
const char *pieces_unpack(const char *packed, char *base, const struct pieces *);

#endif
