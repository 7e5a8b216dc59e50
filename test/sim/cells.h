/*
 * cells.h - memory of a rank as cells, by a sequential evaluator and as a schedule at once: the oracle of random graphs.
 *
 * A test draws a sequential program. For each step it adds an operation to the builder, says which cells that reads and writes,
 * and does the same to the evaluator's memory. The operations are ordered only where they touch the same cell, so whatever
 * order respects the edges must leave what the evaluator has (GOAL-1).
 */
#ifndef TERN_TEST_CELLS_H
#define TERN_TEST_CELLS_H

#include "coll/goal/build.h"
#include "sim.h"

enum { CELLS_MAX = 16, CELL = 16, CELL_WORDS = CELL / 8, CELL_READERS = 256 };

struct cell_use { /* who wrote it last, who has read it since */
    goal_id writer, reader[CELL_READERS];
    int readers;
};

struct cells { /* of one rank */
    struct goal_build *b;
    struct goal_mem (*at)(int cell); /* where a cell lies */
    struct cell_use use[CELLS_MAX];
    uint64_t cell[CELLS_MAX][CELL_WORDS]; /* the evaluator's memory */
};

/* A rank's, with a builder; the first n cells have random contents, the others zeros. */
void cells_open(struct cells *, int rank, int ranks, struct goal_mem (*at)(int cell), int n, uint64_t *rng);

/* The program; the builder is closed. */
struct goal_prog *cells_seal(struct cells *);

/* `op` reads or writes a cell: after whom it comes. */
void cell_read(struct cells *, goal_id op, int cell);
void cell_write(struct cells *, goal_id op, int cell);

#endif
