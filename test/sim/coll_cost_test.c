/*
 * coll_cost_test.c - what the schedules of the collectives look like, without running them: every message has its one
 * counterpart, stages are as many as the algorithm's name promises (GOAL-26), trees send a message an edge, and
 * programs and scratchpads stay within bounds.
 */
#include "measure.h"
#include "trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

static void measure(const struct trial *t, struct measure *m)
{
    struct goal_prog *prog[TRIAL_RANKS];
    assert_true(trial_compile(t, prog));
    const char *words = measure_programs(t->P, prog, m);
    if (words)
        fail_msg("%s %s, %d ranks, root %d, seed %llu: %s", coll_kind_name(coll_algs[t->alg].kind),
                 coll_algs[t->alg].name, t->P, t->root, (unsigned long long)t->seed, words);
    for (int r = 0; r < t->P; r++) goal_unref(prog[r]);
}

/* Of one algorithm in one piece, operators that commute; root 0. */
static struct trial plain(enum coll_kind kind, const char *name, int P, int radix)
{
    struct trial t = {
        .alg = coll_alg_find(kind, name), .P = P, .elems = 64, .esize = 8, .segment = 1 << 20, .nodes = 1};
    assert_true(t.alg >= 0);
    t.radix = radix;
    return t;
}

static int log_up(int P, int radix)
{
    int k = 0;
    for (int64_t n = 1; n < P; n *= radix) k++;
    return k;
}

enum promise { ONE, LOG, LOG_RADIX, LINEAR, TREE /* at most LOG */ };

static int promised(enum promise p, int P, int radix)
{
    return P == 1 ? 0 : p == ONE ? 1 : p == LOG || p == TREE ? log_up(P, 2) : p == LOG_RADIX ? log_up(P, radix) : P - 1;
}

static void stages(void **state)
{
    static const struct {
        enum coll_kind kind;
        const char *name;
        enum promise stages;
    } is[] = {
        {COLL_BARRIER, "dissemination", LOG},
        {COLL_BARRIER, "kdissemination", LOG_RADIX},
        {COLL_BARRIER, "deposit", ONE},
        {COLL_BCAST, "binomial", TREE},
        {COLL_BCAST, "linear", ONE},
        {COLL_BCAST, "chain", LINEAR},
        {COLL_REDUCE, "binomial", TREE},
        {COLL_REDUCE, "linear", ONE},
        {COLL_REDUCE, "chain", LINEAR},
        {COLL_ALLREDUCE, "dissemination", LOG},
        {COLL_ALLREDUCE, "deposit", ONE},
        {COLL_GATHER, "binomial", TREE},
        {COLL_GATHER, "linear", ONE},
        {COLL_SCATTER, "binomial", TREE},
        {COLL_SCATTER, "linear", ONE},
        {COLL_ALLGATHER, "bruck", LOG},
        {COLL_ALLGATHER, "kbruck", LOG_RADIX},
        {COLL_ALLGATHER, "ring", LINEAR},
        {COLL_ALLGATHER, "direct", ONE},
        {COLL_ALLTOALL, "bruck", LOG},
        {COLL_ALLTOALL, "kbruck", LOG_RADIX},
        {COLL_ALLTOALL, "direct", ONE},
        {COLL_REDUCE_SCATTER_BLOCK, "direct", ONE},
        {COLL_REDUCE_SCATTER_BLOCK, "ring", LINEAR},
        {COLL_SCAN, "doubling", TREE},
        {COLL_SCAN, "direct", ONE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(is); i++)
        for (int P = 1; P <= TRIAL_RANKS; P++)
            for (int radix = 2; radix <= (is[i].stages == LOG_RADIX ? 5 : 2); radix++) {
                struct trial t = plain(is[i].kind, is[i].name, P, radix);
                struct measure m;
                measure(&t, &m);
                int most = promised(is[i].stages, P, radix);
                if (is[i].stages == TREE ? m.stages > most : m.stages != most)
                    fail_msg("%s %s, %d ranks, radix %d: %d stages", coll_kind_name(is[i].kind), is[i].name, P, radix,
                             m.stages);
            }
}

/* A tree over P ranks has P - 1 edges; what goes up and down sends two messages on each. */
static void messages(void **state)
{
    static const struct {
        enum coll_kind kind;
        const char *name;
        int each;
    } is[] = {
        {COLL_BARRIER, "tree", 2},       {COLL_BARRIER, "linear", 2},         {COLL_BCAST, "binomial", 1},
        {COLL_BCAST, "knomial", 1},      {COLL_BCAST, "linear", 1},           {COLL_BCAST, "chain", 1},
        {COLL_BCAST, "chains", 1},       {COLL_BCAST, "binary", 1},           {COLL_BCAST, "two_tree", 2},
        {COLL_REDUCE, "binomial", 1},    {COLL_REDUCE, "knomial", 1},         {COLL_REDUCE, "linear", 1},
        {COLL_REDUCE, "chain", 1},       {COLL_REDUCE, "chains", 1},          {COLL_REDUCE, "binary", 1},
        {COLL_REDUCE, "two_tree", 2},    {COLL_ALLREDUCE, "reduce_bcast", 2}, {COLL_ALLREDUCE, "binary", 2},
        {COLL_ALLREDUCE, "two_tree", 4}, {COLL_GATHER, "binomial", 1},        {COLL_GATHER, "linear", 1},
        {COLL_GATHER, "staged", 2},      {COLL_SCATTER, "binomial", 1},       {COLL_SCATTER, "linear", 1},
        {COLL_SCATTER, "staged", 1},     {COLL_ALLGATHER, "gather_bcast", 2}, {COLL_SCAN, "chain", 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(is); i++)
        for (int P = 1; P <= TRIAL_RANKS; P++) {
            struct trial t = plain(is[i].kind, is[i].name, P, 2 + P % 4);
            struct measure m;
            measure(&t, &m);
            if (m.messages != is[i].each * (P - 1))
                fail_msg("%s %s, %d ranks: %d messages", coll_kind_name(is[i].kind), is[i].name, P, (int)m.messages);
        }
}

static bool has_leaders(const struct trial *t) { return coll_algs[t->alg].flags & (ALG_NODES | ALG_DOMAINS); }

/* Operations grow with ranks plus segments; only the segmented ring does its work anew for each of its pieces. */
static int64_t most_ops(const struct trial *t)
{
    int64_t segments = t->elems * t->esize / t->segment + 2;
    if (strcmp(coll_algs[t->alg].name, "ring_segmented") == 0) return 6 * t->P * segments + 16;
    return 8 * (t->P + t->radix * segments) * (has_leaders(t) ? 2 : 1) + 128;
}

/* Scratch: what has to be held for others, and a bounded number of vectors or blocks besides. */
static int64_t most_scratch(const struct trial *t, enum coll_kind kind)
{
    bool blocks = (kind >= COLL_GATHER && kind <= COLL_ALLTOALLW) || kind == COLL_REDUCE_SCATTER ||
                  kind == COLL_REDUCE_SCATTER_BLOCK;
    int64_t n = t->elems * t->esize + 64,
            all = blocks || kind == COLL_ALLREDUCE || kind == COLL_SCAN || kind == COLL_EXSCAN || kind == COLL_REDUCE
                      ? n * t->P
                      : n;
    if (kind == COLL_ALLTOALL && has_leaders(t)) all *= 2 * t->P; /* a whole node's */
    return 8 * all + 8192;
}

static void bounds(void **state)
{
    (void)state;
    for (int alg = 0; alg < coll_algs_count; alg++)
        for (int P = 1; P <= TRIAL_RANKS; P++)
            for (unsigned options = 0; options < TRIAL_OPTIONS; options += 3 + (unsigned)P % 2) {
                struct trial t;
                struct measure m;
                uint64_t random = seed + (uint64_t)(alg * 1000 + P) * 16 + options;
                enum coll_kind kind = coll_algs[alg].kind;
                int root = trial_has_root(kind) ? (int)(sim_random(&random) % (uint64_t)P) : 0;
                if (!trial_draw(&t, alg, P, root, options, random)) continue;
                measure(&t, &m);
                if (m.ops > most_ops(&t) || m.scratch > most_scratch(&t, kind))
                    fail_msg("%s %s, %d ranks, %lld bytes, segments of %lld: %lld operations, scratch %lld",
                             coll_kind_name(kind), coll_algs[alg].name, P, (long long)(t.elems * t.esize),
                             (long long)t.segment, (long long)m.ops, (long long)m.scratch);
            }
}

/* TERN_SIM_TABLE: the costs of all algorithms as a table. */
static void print_table(void)
{
    static const int ranks[] = {4, 16, 64};
    printf("%-42s %5s %6s %7s %8s %9s %7s\n", "# algorithm, 4096 bytes, segments of 512", "ranks", "ops", "bytes",
           "scratch", "messages", "stages");
    for (int alg = 0; alg < coll_algs_count; alg++)
        for (size_t i = 0; i < ARRAY_LEN(ranks); i++) {
            struct trial t;
            struct measure m;
            if (!trial_draw(&t, alg, ranks[i], 0, 0, 1)) continue;
            t = plain(coll_algs[alg].kind, coll_algs[alg].name, ranks[i], 4);
            t.elems = 512;
            t.segment = 512;
            t.nodes = 2;
            t.domains = 4;
            for (int r = 0; r < t.P; r++) t.node[r] = r >= t.P / 2, t.domain[r] = r * 4 / t.P;
            measure(&t, &m);
            printf("# %-20s %-19s %5d %6lld %7lld %8lld %9lld %7d\n", coll_kind_name(coll_algs[alg].kind),
                   coll_algs[alg].name, t.P, (long long)m.ops, (long long)m.bytes, (long long)m.scratch,
                   (long long)m.messages, m.stages);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages),
        cmocka_unit_test(messages),
        cmocka_unit_test(bounds),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    if (getenv("TERN_SIM_TABLE")) print_table();
    return cmocka_run_group_tests_name("costs of collective schedules", tests, NULL, NULL);
}
