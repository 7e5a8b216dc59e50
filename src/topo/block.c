/* block.c - grids cut into boxes, level by level; see reorder.h. */
#include "topo/reorder.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 20000 }; /* tried for one level: grids of many dimensions have far too many */

/* The search for the best box with so many cells that divides the box around it. */
struct shapes {
    const struct reorder_grid *grid;
    const int *around;
    int *box, *best;
    int64_t n, least; /* cells of the whole grid; surface of the best, INT64_MAX: none yet */
    int tried;
};

/* Edges of the whole grid that go from box to box. */
static int64_t surface(const struct shapes *s)
{
    int64_t cut = 0;
    for (int i = 0; i < s->grid->ndims; i++) {
        int64_t lines = s->n / s->grid->dims[i], boxes = s->grid->dims[i] / s->box[i];
        if (boxes > 1) cut += lines * (boxes - !s->grid->periods[i]);
    }
    return cut;
}

static void try_shapes(struct shapes *s, int dim, int64_t left)
{
    if (dim == s->grid->ndims) {
        if (left > 1) return;
        s->tried++;
        int64_t cut = surface(s);
        if (cut >= s->least) return;
        s->least = cut;
        memcpy(s->best, s->box, (size_t)dim * sizeof *s->best);
        return;
    }
    for (int w = 1; w <= s->around[dim] && w <= left && s->tried < MAX_SHAPES; w++) {
        if (s->around[dim] % w || left % w) continue;
        s->box[dim] = w;
        try_shapes(s, dim + 1, left / w);
    }
}

/* The size of all pieces of hardware of this depth; 0 if they are not equal. */
static int32_t piece_size(int32_t n, const struct machine_place place[], const int32_t sorted[], int depth)
{
    int32_t size = 0, start = 0;
    for (int32_t i = 1; i <= n; i++) {
        if (i < n && !reorder_apart(&place[sorted[i - 1]], &place[sorted[i]], depth)) continue;
        if (size && i - start != size) return 0;
        size = i - start;
        start = i;
    }
    return size;
}

/* Adds to each cell's position which of the boxes it is in. */
static void number_boxes(const struct reorder_grid *grid, int32_t n, const int around[], const int box[], int32_t cells,
                         int32_t position[])
{
    for (int32_t cell = 0; cell < n; cell++) {
        int32_t rest = cell, index = 0, stride = 1;
        for (int i = grid->ndims; i-- > 0; rest /= grid->dims[i]) {
            index += rest % grid->dims[i] % around[i] / box[i] * stride;
            stride *= around[i] / box[i];
        }
        position[cell] += index * cells;
    }
}

/* The levels from wide to narrow, then single cells. Returns how many levels were cut. */
static int cut_levels(struct shapes *s, int *around, int32_t n, const struct machine_place place[], const int32_t sorted[],
                      int32_t position[])
{
    int cuts = 0;
    int32_t outer = n;
    for (int depth = 0; depth <= REORDER_DEPTHS; depth++) {
        int32_t size = depth < REORDER_DEPTHS ? piece_size(n, place, sorted, depth) : 1;
        if (size <= 0 || size >= outer) continue;
        s->least = INT64_MAX;
        s->tried = 0;
        try_shapes(s, 0, size);
        if (s->least == INT64_MAX) continue;
        number_boxes(s->grid, n, around, s->best, size, position);
        memcpy(around, s->best, (size_t)s->grid->ndims * sizeof *around);
        outer = size;
        cuts += size > 1;
    }
    return cuts;
}

int reorder_block(const struct reorder_grid *grid, int32_t n, const struct machine_place place[], const int32_t sorted[], int32_t order[])
{
    size_t ndims = (size_t)grid->ndims;
    int *room = malloc(3 * ndims * sizeof *room);
    if (!room) return err_set(TERN_ERR_NOMEM, "no memory to cut a grid of %d dimensions", grid->ndims);
    struct shapes s = {.n = n, .grid = grid, .around = room, .box = room + ndims, .best = room + 2 * ndims};
    memcpy(room, grid->dims, ndims * sizeof *room);
    memset(order, 0, (size_t)n * sizeof *order);
    int cuts = cut_levels(&s, room, n, place, sorted, order);
    for (int32_t cell = 0; cell < n; cell++) order[cell] = sorted[order[cell]];
    free(room);
    return cuts ? 0 : TERN_ERR_NOT_FOUND;
}
