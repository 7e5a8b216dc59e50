/* strided.c - copy loops over blocks; see strided.h. */
#include "type/strided.h"

#include <string.h>

/* The bytes [0, n) as two moves of w bytes that may overlap, for w <= n <= 2w. */
static inline __attribute__((always_inline)) void copy_ends(char *dst, const char *src, size_t n, const size_t w)
{
    char head[32], tail[32];
    memcpy(head, src, w);
    memcpy(tail, src + n - w, w);
    memcpy(dst, head, w);
    memcpy(dst + n - w, tail, w);
}

/* A copy whose size the compiler knows becomes a few moves; one it does not know is chosen by size. */
static inline __attribute__((always_inline)) void copy_block(char *dst, const char *src, size_t n)
{
    if (__builtin_constant_p(n) || n > 64)
        memcpy(dst, src, n);
    else if (n > 32)
        copy_ends(dst, src, n, 32);
    else if (n > 16)
        copy_ends(dst, src, n, 16);
    else if (n >= 8)
        copy_ends(dst, src, n, 8);
    else if (n >= 4)
        copy_ends(dst, src, n, 4);
    else
        for (size_t i = 0; i < n; i++) dst[i] = src[i];
}

/* The three shapes for both directions, written once for a block size that the callers below make constant. */
static inline __attribute__((always_inline)) void move_strided(bool pack, char *packed, char *at, int64_t n,
                                                               size_t block, int64_t stride)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++, packed += block, at += stride)
        copy_block(pack ? packed : at, pack ? at : packed, block);
}

static inline __attribute__((always_inline)) void move_blocks(bool pack, char *packed, char *base, const int64_t *offs,
                                                              int64_t n, size_t block)
{
    for (int64_t i = 0; i < n; i++, packed += block)
        copy_block(pack ? packed : base + offs[i], pack ? base + offs[i] : packed, block);
}

/* From here on the call of memcpy is small beside the copy; deciding nothing else in the loop pays. */
#define LONG_BLOCK 65

static inline __attribute__((always_inline)) void move_strided_long(bool pack, char *packed, char *at, int64_t n,
                                                                    size_t block, int64_t stride)
{
    for (int64_t i = 0; i < n; i++, packed += block, at += stride)
        memcpy(pack ? packed : at, pack ? at : packed, block);
}

/* One line for each size. */
/* clang-format off */

static inline __attribute__((always_inline)) void move_strided_any(bool pack, char *packed, char *at, int64_t n,
                                                                   size_t block, int64_t stride)
{
    switch (block < LONG_BLOCK ? block : LONG_BLOCK) {
    case 1: move_strided(pack, packed, at, n, 1, stride); break;
    case 2: move_strided(pack, packed, at, n, 2, stride); break;
    case 4: move_strided(pack, packed, at, n, 4, stride); break;
    case 8: move_strided(pack, packed, at, n, 8, stride); break;
    case 12: move_strided(pack, packed, at, n, 12, stride); break;
    case 16: move_strided(pack, packed, at, n, 16, stride); break;
    case 24: move_strided(pack, packed, at, n, 24, stride); break;
    case 32: move_strided(pack, packed, at, n, 32, stride); break;
    case 48: move_strided(pack, packed, at, n, 48, stride); break;
    case 64: move_strided(pack, packed, at, n, 64, stride); break;
    case LONG_BLOCK: move_strided_long(pack, packed, at, n, block, stride); break;
    default: move_strided(pack, packed, at, n, block, stride);
    }
}

static inline __attribute__((always_inline)) void move_blocks_any(bool pack, char *packed, char *base,
                                                                  const int64_t *offs, int64_t n, size_t block)
{
    switch (block) {
    case 4: move_blocks(pack, packed, base, offs, n, 4); break;
    case 8: move_blocks(pack, packed, base, offs, n, 8); break;
    case 16: move_blocks(pack, packed, base, offs, n, 16); break;
    case 24: move_blocks(pack, packed, base, offs, n, 24); break;
    case 32: move_blocks(pack, packed, base, offs, n, 32); break;
    case 64: move_blocks(pack, packed, base, offs, n, 64); break;
    default: move_blocks(pack, packed, base, offs, n, block);
    }
}

/* clang-format on */

static char *mutable(const char *p) { return (char *)(uintptr_t)p; } /* the side that is only read */

char *strided_pack(char *packed, const char *at, int64_t n, size_t block, int64_t stride)
{
    move_strided_any(true, packed, mutable(at), n, block, stride);
    return packed + n * (int64_t)block;
}

const char *strided_unpack(const char *packed, char *at, int64_t n, size_t block, int64_t stride)
{
    move_strided_any(false, mutable(packed), at, n, block, stride);
    return packed + n * (int64_t)block;
}

char *blocks_pack(char *packed, const char *base, const int64_t *offs, int64_t n, size_t block)
{
    move_blocks_any(true, packed, mutable(base), offs, n, block);
    return packed + n * (int64_t)block;
}

const char *blocks_unpack(const char *packed, char *base, const int64_t *offs, int64_t n, size_t block)
{
    move_blocks_any(false, mutable(packed), base, offs, n, block);
    return packed + n * (int64_t)block;
}

/* The pieces p[0..np), n times, `stride` apart. */
static inline __attribute__((always_inline)) char *
move_pieces(bool pack, char *packed, char *base, const struct layout_piece *p, int64_t np, int64_t n, int64_t stride)
{
    for (int64_t k = 0; k < n; k++, base += stride)
        for (int64_t i = 0; i < np; i++) {
            size_t len = (size_t)(p[i + 1].at - p[i].at);
            copy_block(pack ? packed : base + p[i].off, pack ? base + p[i].off : packed, len);
            packed += len;
        }
    return packed;
}

char *pieces_pack(char *packed, const char *base, const struct layout_piece *p, int64_t np, int64_t n, int64_t stride)
{
    return move_pieces(true, packed, mutable(base), p, np, n, stride);
}

const char *pieces_unpack(const char *packed, char *base, const struct layout_piece *p, int64_t np, int64_t n,
                          int64_t stride)
{
    return move_pieces(false, mutable(packed), base, p, np, n, stride);
}
