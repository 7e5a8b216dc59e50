/*
 * graph_sim_test.c - random schedules of 1..16 ranks against a sequential evaluator (GOAL-1, 2, 6).
 *
 * A sequential program of copies, sums and messages over cells of the ranks' memory is drawn; its
 * operations become vertices, ordered only where they touch the same cell. Any order of execution that
 * respects the edges must give what the sequential program gives.
 */
#include "cells.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CELLS = 12, STEPS = 120, RANKS = 16 };

static uint64_t seed;

static struct goal_mem at(int c) { return goal_mem(GOAL_SEND_BUF, c * CELL); }

/* n cells from different places as a list, each in one piece or in two halves. Returns the pieces. */
static int cells_as_list(const int *cell, int n, bool halves, struct goal_part *part)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (!halves) {
            part[k++] = (struct goal_part){at(cell[i]), CELL};
            continue;
        }
        part[k++] = (struct goal_part){at(cell[i]), CELL / 2};
        part[k++] = (struct goal_part){goal_plus(at(cell[i]), CELL / 2), CELL / 2};
    }
    return k;
}

/* `n` different cells. */
static void pick(uint64_t *rng, int n, int *cell)
{
    int all[CELLS];
    for (int i = 0; i < CELLS; i++) all[i] = i;
    for (int i = 0; i < n; i++) {
        int k = i + (int)(sim_random(rng) % (uint64_t)(CELLS - i)), x = all[i];
        cell[i] = all[k];
        all[k] = x;
    }
}

static void add_local(struct cells *r, uint64_t *rng, bool sum)
{
    int c[8], n = 1 + (int)(sim_random(rng) % 4);
    struct goal_part in[16], out[16];
    pick(rng, 2 * n, c);
    int n_in = cells_as_list(c, n, sim_random(rng) & 1, in), n_out = cells_as_list(c + n, n, sim_random(rng) & 1, out);
    goal_id op = sum ? goal_reducev(r->b, in, n_in, out, n_out) : goal_copyv(r->b, in, n_in, out, n_out);
    for (int i = 0; i < n; i++) {
        cell_read(r, op, c[i]);
        cell_write(r, op, c[n + i]);
        for (int k = 0; k < CELL_WORDS; k++)
            r->cell[c[n + i]][k] = r->cell[c[i]][k] + (sum ? r->cell[c[n + i]][k] : 0);
    }
}

static void add_message(struct cells *from, struct cells *to, int src, int dst, int tag, uint64_t *rng)
{
    int a[4], c[4], n = 1 + (int)(sim_random(rng) % 4);
    struct goal_part in[8], out[8];
    uint64_t data[4][CELL_WORDS];
    pick(rng, n, a);
    pick(rng, n, c);
    int n_in = cells_as_list(a, n, sim_random(rng) & 1, in), n_out = cells_as_list(c, n, sim_random(rng) & 1, out);
    goal_id send = goal_sendv(from->b, dst, tag, in, n_in), recv = goal_recvv(to->b, src, tag, out, n_out);
    for (int i = 0; i < n; i++) {
        cell_read(from, send, a[i]);
        memcpy(data[i], from->cell[a[i]], CELL);
    }
    for (int i = 0; i < n; i++) {
        cell_write(to, recv, c[i]);
        memcpy(to->cell[c[i]], data[i], CELL);
    }
}

static void draw(struct cells *r, int P, uint64_t *rng)
{
    for (int step = 0; step < STEPS; step++) {
        int a = (int)(sim_random(rng) % (uint64_t)P), b = (int)(sim_random(rng) % (uint64_t)P);
        if (a == b) add_local(&r[a], rng, sim_random(rng) & 1);
        else add_message(&r[a], &r[b], a, b, step, rng);
    }
}

static void run_one(uint64_t case_seed)
{
    static struct cells rank[RANKS];
    static uint64_t memory[RANKS][CELLS][CELL_WORDS];
    struct goal_prog *prog[RANKS];
    struct sim_op op = {SIM_SUM};
    uint64_t rng = case_seed;
    int P = 1 + (int)(sim_random(&rng) % RANKS);
    for (int i = 0; i < P; i++) {
        cells_open(&rank[i], i, P, at, CELLS, &rng);
        memcpy(memory[i], rank[i].cell, sizeof memory[i]);
    }
    draw(rank, P, &rng);
    for (int i = 0; i < P; i++) {
        prog[i] = cells_seal(&rank[i]);
        assert_int_equal(goal_verify(&prog[i]->head, prog[i]->head.bytes), 0);
    }
    struct sim *sim = sim_open(P, prog, case_seed);
    for (int i = 0; i < P; i++) sim_bind(sim, i, GOAL_SEND_BUF, memory[i], NULL);
    sim_bind_op(sim, &op, NULL);
    if (sim_run(sim)) fail_msg("case %llu: %s", (unsigned long long)case_seed, err_words());
    for (int i = 0; i < P; i++)
        if (memcmp(memory[i], rank[i].cell, sizeof memory[i]))
            fail_msg("case %llu: memory of rank %d of %d differs from the evaluator's", (unsigned long long)case_seed, i, P);
    sim_close(sim);
    for (int i = 0; i < P; i++) goal_unref(prog[i]);
}

static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) run_one(seed + i);
}

/* The simulator itself notices what it is there for. */
static int run_pair(bool second_receives, int64_t room)
{
    static char memory[2][64];
    struct goal_prog *prog[2];
    for (int i = 0; i < 2; i++) {
        struct goal_build *b = goal_build_open(i, 2, 0);
        if (i == 0) goal_send(b, 1, 0, goal_mem(0, 0), 32);
        else if (second_receives) goal_recv(b, 0, 0, goal_mem(0, 0), room);
        else goal_recv(b, 0, 1, goal_mem(0, 0), room); /* under another tag */
        assert_int_equal(goal_seal(b, &prog[i]), 0);
        goal_build_close(b);
    }
    struct sim *sim = sim_open(2, prog, seed);
    for (int i = 0; i < 2; i++) sim_bind(sim, i, 0, memory[i], NULL);
    int rc = sim_run(sim);
    sim_close(sim);
    goal_unref(prog[0]);
    goal_unref(prog[1]);
    return rc;
}

static void mistakes_are_noticed(void **state)
{
    (void)state;
    assert_int_equal(run_pair(true, 32), 0);
    assert_int_equal(run_pair(true, 64), 0);
    assert_int_equal(run_pair(true, 16), TERN_ERR_TRUNCATE);
    assert_int_equal(run_pair(false, 32), TERN_ERR_PROGRAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(mistakes_are_noticed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    return cmocka_run_group_tests_name("random schedules in the simulator", tests, NULL, NULL);
}
