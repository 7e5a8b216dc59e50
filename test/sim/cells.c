/* cells.c - see cells.h. */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

void cells_open(struct cells *r, int rank, int ranks, struct goal_mem (*at)(int cell), int n, uint64_t *rng)
{
    memset(r, 0, sizeof *r);
    r->b = goal_build_open(rank, ranks, 0);
    r->at = at;
    if (!r->b) abort();
    for (int c = 0; c < CELLS_MAX; c++) r->use[c].writer = GOAL_NONE;
    for (int c = 0; c < n; c++)
        for (int k = 0; k < CELL_WORDS; k++) r->cell[c][k] = sim_random(rng);
}

struct goal_prog *cells_seal(struct cells *r)
{
    struct goal_prog *prog;
    if (goal_seal(r->b, &prog)) abort();
    goal_build_close(r->b);
    return prog;
}

void cell_read(struct cells *r, goal_id op, int c)
{
    if (r->use[c].readers == CELL_READERS) abort();
    goal_after(r->b, op, r->use[c].writer);
    r->use[c].reader[r->use[c].readers++] = op;
}

void cell_write(struct cells *r, goal_id op, int c)
{
    struct cell_use *u = &r->use[c];
    for (int i = 0; i < u->readers; i++)
        if (u->reader[i] != op) goal_after(r->b, op, u->reader[i]);
    if (u->writer != op) goal_after(r->b, op, u->writer);
    u->writer = op;
    u->readers = 0;
}
