/*
 * opt_sim_test.c - optimised schedules do what they did before (GOAL-29): random graphs on 1..16 ranks, full of copies to and
 * from the scratchpad, results that nobody needs, joins and edges that say nothing new, in the simulator against a sequential
 * evaluator (GOAL-1), as they are, after each pass, after all of them, and with messages put together. How much there is
 * to win is printed, and must be something.
 */
#include "cells.h"
#include "coll/goal/arith.h"
#include "coll/goal/check.h"
#include "coll/goal/optimise.h"

#include "base/err.h"
#include "base/var.h"
#include "type/op.h"
#include <goal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Cells of the user's memory and, behind them, of the scratchpad. */
enum { MINE = 8, CELLS = CELLS_MAX, STEPS = 100, RANKS = 16 };

static uint64_t seed;

struct trial {
    int P;
    struct cells rank[RANKS];
    uint64_t memory[RANKS][MINE][CELL_WORDS]; /* what the user's memory holds before */
    uint64_t rng;
};

static int draw(struct trial *t, int n) { return (int)(sim_random(&t->rng) % (uint64_t)n); }

static struct goal_mem at(int c)
{
    return c < MINE ? goal_mem(GOAL_SLOT_USER, c * CELL) : goal_mem(GOAL_SCRATCH, (c - MINE) * CELL);
}

/* ---- drawing ------------------------------------------------------------------- */

static void add_copy(struct cells *r, int from, int to)
{
    goal_id op = goal_copy(r->b, at(from), at(to), CELL);
    cell_read(r, op, from);
    cell_write(r, op, to);
    memcpy(r->cell[to], r->cell[from], CELL);
}

static void add_sum(struct cells *r, int from, int to)
{
    struct goal_part in = {at(from), CELL}, out = {at(to), CELL};
    goal_id op = goal_arithv(r->b, ARITH_CODE(GOAL_ADD, GOAL_UINT64), &in, 1, &out, 1);
    cell_read(r, op, from);
    cell_write(r, op, to);
    for (int k = 0; k < CELL_WORDS; k++) r->cell[to][k] += r->cell[from][k];
}

/* Edges that follow from others, and joins for nothing. */
static void add_noise(struct trial *t, struct cells *r)
{
    int n = goal_count(r->b);
    if (n < 2) return;
    goal_id a = draw(t, n - 1), b = a + 1 + draw(t, n - 1 - a);
    if (draw(t, 2)) {
        goal_id join = goal_join(r->b);
        goal_after(r->b, join, a);
        if (draw(t, 2)) goal_after_start(r->b, join, b);
    } else if (draw(t, 2)) {
        goal_after_start(r->b, b, a);
    } else {
        goal_after_start(r->b, b, a);
        goal_after_start(r->b, b, a);
    }
}

static void one_message(struct trial *t, int src, int dst, int tag)
{
    struct cells *from = &t->rank[src], *to = &t->rank[dst];
    int a = draw(t, CELLS), c = draw(t, CELLS);
    if (src == dst) return; /* the receive may wait for the send: that is a deadlock */
    goal_id send = goal_send(from->b, dst, tag, at(a), CELL), recv = goal_recv(to->b, src, tag, at(c), CELL);
    cell_read(from, send, a);
    cell_write(to, recv, c);
    memcpy(to->cell[c], from->cell[a], CELL);
    if (c >= MINE && draw(t, 2)) add_copy(to, c, draw(t, MINE)); /* taken away at once */
}

/* All messages of a pair that wait for nothing: into cells that nobody has touched. */
static void first_messages(struct trial *t)
{
    for (int r = 0; r < t->P && t->P > 1; r++) {
        struct cells *from = &t->rank[r], *to = &t->rank[(r + 1) % t->P];
        for (int i = 0; i < 3; i++) {
            goal_id send = goal_send(from->b, (r + 1) % t->P, 60000 + i, at(i), CELL);
            goal_id recv = goal_recv(to->b, r, 60000 + i, at(MINE + i), CELL);
            cell_read(from, send, i);
            cell_write(to, recv, MINE + i);
            memcpy(to->cell[MINE + i], from->cell[i], CELL);
        }
    }
}

static void draw_all(struct trial *t)
{
    first_messages(t);
    for (int step = 0; step < STEPS; step++) {
        int r = draw(t, t->P), from = draw(t, CELLS), to = draw(t, CELLS);
        if (from == to) to = (to + 1) % CELLS;
        switch (draw(t, 6)) {
        case 0: add_noise(t, &t->rank[r]); break;
        case 1: one_message(t, r, draw(t, t->P), step); break;
        case 2: add_sum(&t->rank[r], from, to); break;
        default: add_copy(&t->rank[r], from, to);
        }
    }
}

/* ---- running ---------------------------------------------------------------------- */

struct counts {
    uint64_t ops, edges, bytes, messages;
};

static void count(const struct goal_head *h, struct counts *c)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    c->ops += h->op_count;
    c->bytes += h->bytes;
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op)) {
        c->edges += (uint64_t)op->n_finish + op->n_start;
        c->messages += op->type == GOAL_OP_SEND;
    }
}

/* Runs the programs; the user's memory must be the evaluator's. */
static void run(const struct trial *t, struct goal_prog *const prog[], uint64_t run_seed, const char *what)
{
    static uint64_t memory[RANKS][MINE][CELL_WORDS];
    const struct goal_head *block[RANKS];
    memcpy(memory, t->memory, sizeof memory);
    struct sim *sim = sim_open(t->P, prog, run_seed);
    for (int i = 0; i < t->P; i++) {
        sim_bind(sim, i, GOAL_SLOT_USER, memory[i], NULL);
        block[i] = &prog[i]->head;
        if (goal_verify(block[i], block[i]->bytes)) fail_msg("case %llu, %s: %s", (unsigned long long)run_seed, what, err_words());
    }
    if (goal_check_all(t->P, t->P, block, NULL) || sim_run(sim)) fail_msg("case %llu, %s: %s", (unsigned long long)run_seed, what, err_words());
    for (int i = 0; i < t->P; i++)
        if (memcmp(memory[i], t->rank[i].cell, sizeof memory[i]))
            fail_msg("case %llu, %s: memory of rank %d of %d differs from the evaluator's", (unsigned long long)run_seed, what, i, t->P);
    sim_close(sim);
}

static void drop(struct goal_prog *prog[], int n)
{
    for (int i = 0; i < n; i++) goal_unref(prog[i]);
}

static struct counts before, after[GOAL_PASSES + 1], merged;

static void passes(const struct trial *t, struct goal_prog *const prog[], uint64_t case_seed)
{
    struct goal_prog *better[RANKS];
    for (unsigned p = 1; p <= GOAL_PASSES; p++) {
        char what[32];
        snprintf(what, sizeof what, "passes %u", p);
        for (int i = 0; i < t->P; i++) {
            assert_int_equal(goal_optimise(&prog[i]->head, p, &better[i]), 0);
            count(&better[i]->head, &after[p]);
            assert_true(better[i]->head.op_count <= prog[i]->head.op_count);
        }
        for (uint64_t again = 0; again < 2; again++) run(t, better, case_seed + again * 7919, what);
        drop(better, t->P);
    }
}

static void together(const struct trial *t, struct goal_prog *const prog[], uint64_t case_seed)
{
    struct goal_prog *fewer[RANKS];
    const struct goal_head *block[RANKS];
    for (int i = 0; i < t->P; i++) block[i] = &prog[i]->head;
    assert_int_equal(goal_coalesce(t->P, block, 2 * CELL, fewer), 0); /* two of the three */
    for (int i = 0; i < t->P; i++) count(&fewer[i]->head, &merged);
    run(t, fewer, case_seed, "coalesced");
    drop(fewer, t->P);
}

/* Nothing is read before it is written; all of it has been when a join is over. */
static void fill_pad(struct cells *r)
{
    for (int c = MINE; c < CELLS; c++) add_copy(r, c - MINE, c);
    goal_id join = goal_join(r->b);
    for (int c = MINE; c < CELLS; c++) {
        goal_after(r->b, join, r->use[c].writer);
        r->use[c].writer = join;
    }
}

static void run_one(uint64_t case_seed)
{
    static struct trial t;
    struct goal_prog *prog[RANKS];
    memset(&t, 0, sizeof t);
    t.rng = case_seed;
    t.P = 1 + draw(&t, RANKS);
    for (int i = 0; i < t.P; i++) {
        cells_open(&t.rank[i], i, t.P, at, MINE, &t.rng);
        goal_scratch(t.rank[i].b, (CELLS - MINE) * CELL);
        memcpy(t.memory[i], t.rank[i].cell, sizeof t.memory[i]);
        fill_pad(&t.rank[i]);
    }
    draw_all(&t);
    for (int i = 0; i < t.P; i++) {
        prog[i] = cells_seal(&t.rank[i]);
        count(&prog[i]->head, &before);
    }
    run(&t, prog, case_seed, "as it was");
    passes(&t, prog, case_seed);
    together(&t, prog, case_seed);
    drop(prog, t.P);
}

static void print(const char *what, const struct counts *c)
{
    printf("# %-10s %8llu operations %8llu edges %8llu messages %9llu bytes\n", what, (unsigned long long)c->ops,
           (unsigned long long)c->edges, (unsigned long long)c->messages, (unsigned long long)c->bytes);
}

static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 500; i++) run_one(seed + i);
    print("before", &before);
    print("copies", &after[GOAL_PASS_COPIES]);
    print("dead", &after[GOAL_PASS_DEAD]);
    print("edges", &after[GOAL_PASS_EDGES]);
    print("all", &after[GOAL_PASSES]);
    print("coalesced", &merged);
    assert_true(after[GOAL_PASS_DEAD].ops < before.ops);
    assert_true(after[GOAL_PASS_COPIES].bytes < before.bytes);
    assert_true(after[GOAL_PASS_EDGES].edges < before.edges && after[GOAL_PASS_EDGES].ops == before.ops);
    assert_true(after[GOAL_PASSES].ops < after[GOAL_PASS_DEAD].ops && after[GOAL_PASSES].edges < before.edges * 2 / 3);
    assert_true(merged.messages < before.messages);
}

/* ---- each pass by itself ------------------------------------------------------------- */

static char *improved(struct goal_build *b)
{
    struct goal_prog *prog, *better;
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    assert_int_equal(goal_optimise(&prog->head, GOAL_PASSES, &better), 0);
    assert_int_equal(goal_verify(&better->head, better->head.bytes), 0);
    char *text = goal_print(&better->head), *ops = strdup(strstr(text, "  0 "));
    free(text);
    goal_unref(prog);
    goal_unref(better);
    return ops;
}

static void becomes(struct goal_build *b, const char *ops)
{
    char *got = improved(b);
    assert_string_equal(got, ops);
    free(got);
}

static void by_hand(void **state)
{
    (void)state;
    const struct goal_mem mine = goal_mem(3, 0), other = goal_mem(3, 8);
    struct goal_build *b = goal_build_open(0, 2, 0); /* packed for a message, and a stamp for nobody */
    struct goal_mem pad = goal_scratch(b, 64);
    goal_id copy = goal_copy(b, mine, pad, 8), send = goal_send(b, 1, 0, pad, 8);
    goal_after(b, send, copy);
    goal_after(b, goal_stamp(b, goal_plus(pad, 8)), send);
    becomes(b, "  0    send     to 1 tag 0: slot3[0,8)\n");

    b = goal_build_open(0, 2, 0); /* received and taken away; the next starts then */
    pad = goal_scratch(b, 64);
    goal_id recv = goal_recv(b, 1, 0, pad, 8);
    copy = goal_copy(b, pad, mine, 8);
    send = goal_send(b, 1, 0, mine, 8);
    goal_after(b, copy, recv);
    goal_after(b, send, copy);
    goal_after(b, send, recv);
    becomes(b, "  0    recv     from 1 tag 0: slot3[0,8)  then 1\n  1    send     to 1 tag 0: slot3[0,8)\n");

    b = goal_build_open(0, 2, 0); /* the origin changes before the copy is read: it stays */
    pad = goal_scratch(b, 64);
    copy = goal_copy(b, mine, pad, 8);
    goal_id change = goal_copy(b, other, mine, 8);
    goal_after(b, change, copy);
    send = goal_send(b, 1, 0, pad, 8);
    goal_after(b, send, change);
    becomes(b, "  0    copy     slot3[0,8) -> scratch[0,8)  then 1\n"
               "  1    copy     slot3[8,16) -> slot3[0,8)  then 2\n"
               "  2    send     to 1 tag 0: scratch[0,8)\n");
}

/* Nanoseconds of a run. */
static double time_of(struct goal_prog *prog, int times)
{
    static char memory[64];
    struct timespec from, to;
    struct sim *sim = sim_open(1, &prog, seed);
    sim_bind(sim, 0, GOAL_SLOT_USER, memory, NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < times; i++) assert_int_equal(sim_run(sim), 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    sim_close(sim);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / times;
}

/* What there is to win in time: a chain through copies, as it was and as it is then; the fastest of some turns of each. */
static void time_falls(void **state)
{
    (void)state;
    enum { LINKS = 300, TIMES = 20, TURNS = 25 };
    struct goal_build *b = goal_build_open(0, 1, 0);
    struct goal_prog *prog[2];
    double ns[2] = {1e18, 1e18};
    goal_id last = GOAL_NONE;
    for (int i = 0; i < LINKS; i++) {
        struct goal_mem pad = goal_scratch(b, 64);
        goal_id copy = goal_copy(b, goal_mem(3, 0), pad, 8), use = goal_copy(b, pad, goal_mem(3, 8), 8);
        goal_after(b, copy, last);
        goal_after(b, use, copy);
        last = use;
    }
    assert_int_equal(goal_seal(b, &prog[0]), 0);
    goal_build_close(b);
    assert_int_equal(goal_optimise(&prog[0]->head, GOAL_PASSES, &prog[1]), 0);
    assert_true(prog[1]->head.op_count == LINKS);
    for (int k = 0; k < 2 * TURNS; k++) {
        double t = time_of(prog[k % 2], TIMES);
        if (t < ns[k % 2]) ns[k % 2] = t;
    }
    print_message("# a chain of %d operations takes %.0f ns, optimised %.0f ns\n", 2 * LINKS, ns[0], ns[1]);
    assert_true(ns[1] < ns[0]);
    for (int k = 0; k < 2; k++) goal_unref(prog[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(time_falls),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (var_open() || type_open() || op_open()) return 1;
    seed = sim_seed();
    return cmocka_run_group_tests_name("optimised schedules in the simulator", tests, NULL, NULL);
}
