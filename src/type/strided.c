/*
 * strided.c - copy loops over blocks; see strided.h.
 *
 * To the loops, packing and unpacking are the same thing: blocks go from one
 * regular pattern to another. One nest of two loops moves them, compiled for each
 * block size that occurs in practice; everything regular is brought into its form.
 */
#include "type/strided.h"

#include <string.h>

/* ---- one block ---- */

/* The bytes [0, n) as two moves of w bytes that may overlap, for w <= n <= 2w. */
static inline __attribute__((always_inline)) void copy_ends(char *dst, const char *src, size_t n, const size_t w)
{
    char head[64], tail[64];
    memcpy(head, src, w);
    memcpy(tail, src + n - w, w);
    memcpy(dst, head, w);
    memcpy(dst + n - w, tail, w);
}

/* A block whose size is known at run time only. */
static inline __attribute__((always_inline)) void copy_any(char *dst, const char *src, size_t n)
{
    if (n > 64)
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

/* `ends` is 0, or a constant width that two overlapping moves of are enough for the block. */
static inline __attribute__((always_inline)) void copy_block(char *dst, const char *src, size_t n, const size_t ends)
{
    if (ends)
        copy_ends(dst, src, n, ends);
    else
        memcpy(dst, src, n);
}

/* ---- the nest of loops ---- */

/* outer x inner blocks; both patterns have a distance between blocks and one between rows of blocks. */
struct nest {
    int64_t inner, outer;
    int64_t to, to_row;
    int64_t from, from_row;
};

static inline __attribute__((always_inline)) void move_rows(char *dst, const char *src, const struct nest *l,
                                                            size_t block, const size_t ends, int64_t to, int64_t from)
{
    const int64_t inner = l->inner;
    for (int64_t k = 0; k < l->outer; k++, dst += l->to_row, src += l->from_row) {
        char *d = dst;
        const char *s = src;
#pragma GCC unroll 4
        for (int64_t i = 0; i < inner; i++, d += to, s += from) copy_block(d, s, block, ends);
    }
}

/* One side is mostly without gaps, which saves address arithmetic if the block size is known: a fifth of the time at
 * 4 and 8 bytes. */
static inline __attribute__((always_inline)) void move(char *dst, const char *src, const struct nest *l, size_t block,
                                                       const size_t ends)
{
    if (l->to == (int64_t)block)
        move_rows(dst, src, l, block, ends, (int64_t)block, l->from);
    else if (l->from == (int64_t)block)
        move_rows(dst, src, l, block, ends, l->to, (int64_t)block);
    else
        move_rows(dst, src, l, block, ends, l->to, l->from);
}

/* The function has been compiled for this size, or for any size in this range. */
/* clang-format off */
static void move_nest(char *dst, const char *src, const struct nest *l, size_t block)
{
    switch (block) {
    case 1: move(dst, src, l, 1, 0); break;
    case 2: move(dst, src, l, 2, 0); break;
    case 4: move(dst, src, l, 4, 0); break;
    case 5 ... 7: move(dst, src, l, block, 4); break;
    case 8: move(dst, src, l, 8, 0); break;
    case 12: move(dst, src, l, 12, 0); break;
    case 9 ... 11: case 13 ... 15: move(dst, src, l, block, 8); break;
    case 16: move(dst, src, l, 16, 0); break;
    case 20: move(dst, src, l, 20, 0); break;
    case 24: move(dst, src, l, 24, 0); break;
    case 17 ... 19: case 21 ... 23: case 25 ... 31: move(dst, src, l, block, 16); break;
    case 32: move(dst, src, l, 32, 0); break;
    case 40: move(dst, src, l, 40, 0); break;
    case 48: move(dst, src, l, 48, 0); break;
    case 33 ... 39: case 41 ... 47: case 49 ... 63: move(dst, src, l, block, 32); break;
    case 64: move(dst, src, l, 64, 0); break;
    case 65 ... 128: move(dst, src, l, block, 64); break;
    default: move(dst, src, l, block, 0); /* 3, and those beside which the call of memcpy is small */
    }
}
/* clang-format on */

/* Both ways: packed memory is the target or the source. */
static inline __attribute__((always_inline)) void move_way(bool pack, char *packed, char *at, const struct nest *user,
                                                           size_t block)
{
    if (pack) {
        move_nest(packed, at, user, block);
        return;
    }
    const struct nest back = {user->inner, user->outer, user->from, user->from_row, user->to, user->to_row};
    move_nest(at, packed, &back, block);
}

static char *mutable(const char *p) { return (char *)(uintptr_t)p; } /* the side that is only read */

/* ---- grids ---- */

#define SHORT_ROW 6    /* rows of fewer blocks are moved column by column: loops of few rounds cost more */
#define LONG_COLUMN 64 /* ... so many rows at a time, which keeps the cache lines of all columns in reach */
#define LONG_ROW 128   /* blocks, each on a line of its own, after which the first lines are no longer in the cache */

static int64_t magnitude(int64_t step) { return step < 0 ? -step : step; }

/* How many rows are moved together, column by column; 1: row by row. Only where no two blocks can overlap, as the one
 * that is packed last is what remains. */
static int64_t rows_together(const struct grid *g)
{
    if (g->rows == 1) return 1;
    int64_t block = (int64_t)g->block, row_step = magnitude(g->row_step), step = magnitude(g->step);
    bool row_by_row = block <= step && g->n * step <= row_step,
         interleaved = block <= row_step && g->rows * row_step <= step;
    if (row_by_row && g->n < SHORT_ROW && g->n < g->rows) return LONG_COLUMN;
    if (interleaved && g->n > LONG_ROW && step >= CACHE_LINE && row_step <= CACHE_LINE / 2)
        return CACHE_LINE / row_step;
    return 1;
}

static void move_grid(bool pack, char *packed, char *at, const struct grid *g)
{
    int64_t block = (int64_t)g->block, row = g->n * block, together = rows_together(g);
    if (together == 1) {
        move_way(pack, packed, at, &(struct nest){g->n, g->rows, block, row, g->step, g->row_step}, g->block);
        return;
    }
    for (int64_t k = 0; k < g->rows; k += together) {
        int64_t now = g->rows - k < together ? g->rows - k : together;
        const struct nest columns = {now, g->n, row, block, g->row_step, g->step};
        move_way(pack, packed + k * row, at + k * g->row_step, &columns, g->block);
    }
}

char *grid_pack(char *packed, const char *at, const struct grid *g)
{
    move_grid(true, packed, mutable(at), g);
    return packed + g->rows * g->n * (int64_t)g->block;
}

const char *grid_unpack(const char *packed, char *at, const struct grid *g)
{
    move_grid(false, mutable(packed), at, g);
    return packed + g->rows * g->n * (int64_t)g->block;
}

/* ---- lists of blocks, repeated ---- */

#define TILE_BYTES 8192 /* memory of the repetitions that are moved together, block by block: small beside a cache */
#define TILE_MIN 4      /* fewer together do not pay */

/* Repetitions of a list that are moved together; 1 if they might overlap. `extent`: bytes from the first of the list to
 * behind the last. */
static int64_t times_together(int64_t times, int64_t stride, int64_t extent)
{
    int64_t distance = magnitude(stride);
    if (times < TILE_MIN || distance < extent || distance > TILE_BYTES / TILE_MIN) return 1;
    return TILE_BYTES / distance < times ? TILE_BYTES / distance : times;
}

static inline __attribute__((always_inline)) char *move_listed(bool pack, char *packed, char *base, const int64_t *offs,
                                                               int64_t n, size_t block)
{
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++, packed += block)
        copy_any(pack ? packed : base + offs[i], pack ? base + offs[i] : packed, block);
    return packed;
}

/* One line for each size. */
/* clang-format off */
static inline __attribute__((always_inline)) char *move_list(bool pack, char *packed, char *base, const int64_t *offs,
                                                             int64_t n, size_t block)
{
    switch (block) {
    case 4: return move_listed(pack, packed, base, offs, n, 4);
    case 8: return move_listed(pack, packed, base, offs, n, 8);
    case 16: return move_listed(pack, packed, base, offs, n, 16);
    case 24: return move_listed(pack, packed, base, offs, n, 24);
    case 32: return move_listed(pack, packed, base, offs, n, 32);
    case 64: return move_listed(pack, packed, base, offs, n, 64);
    default: return move_listed(pack, packed, base, offs, n, block);
    }
}
/* clang-format on */

static int64_t scattered_extent(const struct scattered *s)
{
    int64_t low = s->offs[0], high = low;
    for (int64_t i = 1; i < s->n; i++) {
        if (s->offs[i] < low) low = s->offs[i];
        if (s->offs[i] > high) high = s->offs[i];
    }
    return high - low + (int64_t)s->block;
}

static inline __attribute__((always_inline)) char *move_scattered(bool pack, char *packed, char *base,
                                                                  const struct scattered *s)
{
    int64_t block = (int64_t)s->block, size = s->n * block, together = 1;
    if (s->times >= TILE_MIN) together = times_together(s->times, s->stride, scattered_extent(s));
    for (int64_t k = 0; k < s->times; k += together, base += together * s->stride) {
        int64_t now = s->times - k < together ? s->times - k : together;
        const struct nest column = {now, 1, size, 0, s->stride, 0};
        if (together == 1)
            move_list(pack, packed, base, s->offs, s->n, s->block);
        else
            for (int64_t i = 0; i < s->n; i++) move_way(pack, packed + i * block, base + s->offs[i], &column, s->block);
        packed += now * size;
    }
    return packed;
}

char *scattered_pack(char *packed, const char *base, const struct scattered *s)
{
    return move_scattered(true, packed, mutable(base), s);
}

const char *scattered_unpack(const char *packed, char *base, const struct scattered *s)
{
    return move_scattered(false, mutable(packed), base, s);
}

static int64_t pieces_extent(const struct pieces *s)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (const struct layout_piece *p = s->p; p < s->p + s->n; p++) {
        int64_t end = p->off + (p[1].at - p->at);
        if (p->off < low) low = p->off;
        if (end > high) high = end;
    }
    return high - low;
}

static inline __attribute__((always_inline)) void move_different(bool pack, char *packed, char *base,
                                                                 const struct layout_piece *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        size_t len = (size_t)(p[i + 1].at - p[i].at);
        copy_any(pack ? packed : base + p[i].off, pack ? base + p[i].off : packed, len);
        packed += len;
    }
}

static inline __attribute__((always_inline)) char *move_pieces(bool pack, char *packed, char *base,
                                                               const struct pieces *s)
{
    const struct layout_piece *p = s->p;
    int64_t size = p[s->n].at - p[0].at, together = 1;
    if (s->times >= TILE_MIN) together = times_together(s->times, s->stride, pieces_extent(s));
    for (int64_t k = 0; k < s->times; k += together, base += together * s->stride) {
        int64_t now = s->times - k < together ? s->times - k : together;
        const struct nest column = {now, 1, size, 0, s->stride, 0};
        if (together == 1)
            move_different(pack, packed, base, p, s->n);
        else
            for (int64_t i = 0; i < s->n; i++)
                move_way(pack, packed + (p[i].at - p[0].at), base + p[i].off, &column, (size_t)(p[i + 1].at - p[i].at));
        packed += now * size;
    }
    return packed;
}

char *pieces_pack(char *packed, const char *base, const struct pieces *s)
{
    return move_pieces(true, packed, mutable(base), s);
}

const char *pieces_unpack(const char *packed, char *base, const struct pieces *s)
{
    return move_pieces(false, mutable(packed), base, s);
}
