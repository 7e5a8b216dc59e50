/*
 * coll_sim_test.c - every algorithm of every collective for 1 to 64 ranks in the simulator: roots, in place and not,
 * operators that do not commute, nothing to move, several segments; with and without gaps in the buffers, on random
 * nodes with random domains. Results against a direct evaluation of what the standard says (GOAL-1, 26, 27, 28).
 *
 * `make check` runs a random sample; `make check-sim` all roots and options (TERN_SIM_ALL=1), in several processes that
 * have a share each (TERN_SIM_SHARE=i/n). TERN_SIM_RANKS sets the largest number of ranks.
 */
#include "trial.h"

#include "base/err.h"
#include "base/var.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t seed;
static int max_ranks = TRIAL_RANKS, share, shares = 1;
static bool all;
static int64_t cases;

static void one(int alg, int P, int root, unsigned options, uint64_t n)
{
    struct trial t;
    char words[TRIAL_WORDS];
    uint64_t state =
        seed ^ (((uint64_t)alg << 48) + ((uint64_t)P << 40) + ((uint64_t)root << 32) + (options << 24) + n);
    if (!trial_draw(&t, alg, P, root, options, sim_random(&state)) || cases++ % shares != share) return;
    if (!trial_run(&t, NULL, words)) fail_msg("%s", words);
}

static void run_all(int alg, int P)
{
    int roots = trial_has_root(coll_algs[alg].kind) ? P : 1;
    for (int root = 0; root < roots; root++)
        for (unsigned options = 0; options < TRIAL_OPTIONS; options++) one(alg, P, root, options, 0);
}

/* A few of the options for each number of ranks, roots at random. */
static void run_sample(int alg, int P)
{
    uint64_t state = seed + (uint64_t)(alg * 64 + P);
    bool rooted = trial_has_root(coll_algs[alg].kind);
    for (unsigned n = 0; n < 3; n++) {
        int root = rooted ? (int)(sim_random(&state) % (uint64_t)P) : 0;
        one(alg, P, root, ((unsigned)P + n * 4 + n / 2) % TRIAL_OPTIONS, n);
    }
}

static void run_alg(void **state)
{
    int alg = (int)(intptr_t)*state;
    int64_t before = cases;
    for (int P = 1; P <= max_ranks; P++) {
        if (all)
            run_all(alg, P);
        else
            run_sample(alg, P);
    }
    assert_true(cases > before); /* an algorithm that never fits is not tested */
}

/* MPI-5.0 6.9.6: all ranks of an allreduce get the same bits, also where the order of operands shows in them. */
static void alike(void **state)
{
    (void)state;
    for (int alg = 0; alg < coll_algs_count; alg++)
        for (int P = 1; P <= max_ranks && coll_algs[alg].kind == COLL_ALLREDUCE; P++)
            for (unsigned in_place = 0; in_place < 2; in_place++) {
                struct trial t;
                char words[TRIAL_WORDS];
                if (coll_algs[alg].flags & (ALG_EXACT | ALG_INTER)) continue;
                trial_draw(&t, alg, P, 0, TRIAL_SIZE * 2 + in_place, seed + (uint64_t)(alg * 64 + P));
                if ((coll_algs[alg].flags & (ALG_NODES | ALG_DOMAINS)) && !trial_fits(&t)) continue;
                t.ordered = t.loose = true;
                t.esize = 16;
                t.segment = 48;
                if (!trial_run(&t, NULL, words)) fail_msg("%s", words);
            }
}

int main(void)
{
    static struct CMUnitTest test[256];
    static char name[256][64];
    size_t n = 0;
    const char *text;
    if ((text = getenv("TERN_SIM_RANKS"))) max_ranks = atoi(text);
    if ((text = getenv("TERN_SIM_SHARE")) && sscanf(text, "%d/%d", &share, &shares) != 2) return 1;
    all = getenv("TERN_SIM_ALL");
    if (max_ranks < 1 || max_ranks > TRIAL_RANKS) max_ranks = TRIAL_RANKS;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    for (int i = 0; i < coll_algs_count; i++) {
        if (coll_has_neighbors(coll_algs[i].kind) || (coll_algs[i].flags & ALG_INTER)) continue;
        snprintf(name[n], sizeof name[n], "%s %s", coll_kind_name(coll_algs[i].kind), coll_algs[i].name);
        test[n] = (struct CMUnitTest){.name = name[n], .test_func = run_alg, .initial_state = (void *)(intptr_t)i};
        n++;
    }
    test[n++] = (struct CMUnitTest){.name = "all ranks of an allreduce get the same bits", .test_func = alike};
    int failed = _cmocka_run_group_tests("collectives in the simulator", test, n, NULL, NULL);
    printf("# programs run: %lld\n", (long long)trial_programs);
    return failed;
}
