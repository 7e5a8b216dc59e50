/*
 * strided.h - the inner loops of packing: many blocks between scattered and packed memory.
 *
 * Each takes whole blocks only and returns the packed address behind the last
 * byte. Block sizes that occur in practice (1 to 64 bytes) have loops of their
 * own with the size known to the compiler.
 */
#ifndef TERN_TYPE_STRIDED_H
#define TERN_TYPE_STRIDED_H

#include "type/layout.h"

/* n blocks of `block` bytes, `stride` apart from `at` on. */
char *strided_pack(char *packed, const char *at, int64_t n, size_t block, int64_t stride);
const char *strided_unpack(const char *packed, char *at, int64_t n, size_t block, int64_t stride);

/* n blocks of `block` bytes, at base + offs[i]. */
char *blocks_pack(char *packed, const char *base, const int64_t *offs, int64_t n, size_t block);
const char *blocks_unpack(const char *packed, char *base, const int64_t *offs, int64_t n, size_t block);

/* The np pieces p[0..np), n times, `stride` apart. */
char *pieces_pack(char *packed, const char *base, const struct layout_piece *p, int64_t np, int64_t n, int64_t stride);
const char *pieces_unpack(const char *packed, char *base, const struct layout_piece *p, int64_t np, int64_t n,
                          int64_t stride);

#endif
