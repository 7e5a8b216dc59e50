/*
 * dsa_test.c - the engine that is a Data Streaming Accelerator, against a model of the device (dsa_model.h): every byte arrives whatever
 * the device says of a descriptor, by its portal and by write(2).
 */
#include "copy/dsa.h"
#include "../seed.h"
#include "base/err.h"
#include "dsa_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COPIES 60
#define ROUNDS 40
#define LONGEST 20000

static uint64_t seed;

static size_t rnd(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

struct job {
    unsigned char *to, *from;
    size_t n;
};

/* All that is said to be done has arrived, in order. */
static void run(struct copy_queue *q, const struct job *jobs)
{
    copy_cookie first = copy_last(q), c;
    for (int i = 0; i < COPIES; i++) {
        while (copy_submit(q, jobs[i].to, jobs[i].from, jobs[i].n, &c) == TERN_AGAIN) {
            copy_issue(q);
            copy_poll(q);
        }
        if (rnd(4) == 0) copy_issue(q);
        copy_cookie done = copy_poll(q);
        for (int k = 0; first + (copy_cookie)k + 1 <= done; k++) assert_memory_equal(jobs[k].to, jobs[k].from, jobs[k].n);
    }
    copy_wait_all(q);
    for (int i = 0; i < COPIES; i++) assert_memory_equal(jobs[i].to, jobs[i].from, jobs[i].n);
}

static void run_rounds(struct copy_queue *q)
{
    unsigned char *from = malloc(COPIES * LONGEST), *to = malloc(COPIES * LONGEST);
    struct job jobs[COPIES];
    assert_true(from && to);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < COPIES * LONGEST; i += 97) from[i] = (unsigned char)rnd(256);
        memset(to, 0, COPIES * LONGEST);
        for (int i = 0; i < COPIES; i++) {
            size_t n = 1 + rnd(rnd(4) ? 500 : LONGEST - 1), at = (size_t)i * LONGEST;
            jobs[i] = (struct job){to + at + rnd(LONGEST - n + 1), from + at + rnd(LONGEST - n + 1), n};
        }
        run(q, jobs);
    }
    free(from);
    free(to);
}

static bool opens_by(const char *way)
{
    void *state;
    assert_int_equal(copy_dsa_ops.open(8, &state), 0);
    bool is = !strcmp(copy_dsa_way(state), way);
    copy_dsa_ops.close(state);
    return is;
}

/* The way that is wanted, else the test is skipped. */
static void works(struct dsa_model *m, const char *way, size_t depth)
{
    struct copy_queue *q;
    m->seed = seed;
    assert_true(dsa_model_open(m));
    if (!opens_by(way)) {
        dsa_model_close(m);
        print_message("# this processor has no %s\n", way);
        skip();
    }
    assert_int_equal(copy_queue_open(&copy_dsa_ops, depth, &q), 0);
    assert_true(copy_is_async(q));
    run_rounds(q);
    copy_queue_close(q);
    dsa_model_close(m);
    assert_true(m->copies >= COPIES * ROUNDS && m->longest <= m->most);
}

static void by_the_portal(void **state)
{
    (void)state;
    works(&(struct dsa_model){.portal = true, .size = 16, .most = 1 << 21}, "MOVDIR64B", 64);
}

static void by_write(void **state)
{
    (void)state;
    works(&(struct dsa_model){.size = 16, .most = 1 << 21}, "write", 64);
    works(&(struct dsa_model){.size = 128, .most = 1 << 21, .mode = "shared"}, "write", 7);
}

static void longer_ones_are_cut(void **state)
{
    struct dsa_model m = {.size = 8, .most = 4096};
    (void)state;
    works(&m, "write", 64);
    assert_int_equal(m.longest, 4096);
}

static void pages_that_are_not_there(void **state)
{
    struct dsa_model m = {.size = 16, .most = 1 << 21, .fault_every = 3};
    (void)state;
    works(&m, "write", 64);
    assert_true(m.faults > 100);
}

static void descriptors_that_are_refused(void **state)
{
    struct dsa_model m = {.size = 16, .most = 1 << 21, .bad_every = 3};
    (void)state;
    works(&m, "write", 64);
    assert_true(m.bad > 100);
}

/* In the middle of copies: the processor makes what is left of them, and all later ones. */
static void dies(struct dsa_model *m)
{
    struct copy_queue *q;
    m->seed = seed;
    assert_true(dsa_model_open(m));
    if (m->portal && !opens_by("MOVDIR64B")) {
        print_message("# this processor has no MOVDIR64B\n");
        dsa_model_close(m);
        return;
    }
    assert_int_equal(copy_queue_open(&copy_dsa_ops, 32, &q), 0);
    copy_patience(q, 1000000000); /* the model is a thread, which may have to wait for a core */
    run_rounds(q);
    assert_int_equal(copy_fault(q), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "the copy engine 'dsa' has finished nothing for 1.000 s"));
    copy_queue_close(q);
    dsa_model_close(m);
    assert_int_equal(m->copies, m->dies_after);
}

static void a_device_that_dies(void **state)
{
    (void)state;
    dies(&(struct dsa_model){.portal = true, .size = 16, .most = 1 << 21, .dies_after = 200});
    dies(&(struct dsa_model){.size = 16, .most = 1 << 21, .dies_after = 333, .fault_every = 5});
}

/* What the device is asked for is right, so a model that reports no fault needs no help. */
static void nothing_is_left_to_the_processor(void **state)
{
    static unsigned char from[5000], to[5000];
    struct dsa_model m = {.size = 4, .most = 1 << 21};
    void *engine;
    (void)state;
    assert_true(dsa_model_open(&m));
    assert_int_equal(copy_dsa_ops.open(64, &engine), 0);
    memset(from, 9, sizeof from);
    for (int i = 0; i < 4; i++) assert_int_equal(copy_dsa_ops.push(engine, to, from, 1 + (size_t)i * 1600), 0);
    assert_int_equal(copy_dsa_ops.push(engine, to, from, 1), TERN_AGAIN); /* the queue has no more places */
    assert_int_equal(copy_dsa_ops.finished(engine), 0);
    copy_dsa_ops.issue(engine);
    while (copy_dsa_ops.finished(engine) < 4) continue;
    assert_int_equal(copy_dsa_by_processor(engine), 0);
    assert_int_equal(m.bad, 0);
    assert_memory_equal(to, from, 4801);
    copy_dsa_ops.close(engine);
    dsa_model_close(&m);
}

static void queues_that_are_not_for_us(void **state)
{
    static const struct {
        const char *type, *state, *words;
        size_t size, most;
    } no[] = {{"kernel", NULL, NULL, 16, 4096}, {NULL, "disabled", NULL, 16, 4096}, {NULL, NULL, NULL, 0, 4096}, {NULL, NULL, NULL, 16, 0}};
    void *engine;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        struct dsa_model m = {.type = no[i].type, .state = no[i].state, .size = no[i].size, .most = no[i].most};
        assert_true(dsa_model_open(&m));
        assert_int_equal(copy_dsa_ops.open(8, &engine), TERN_ERR_UNSUPPORTED);
        dsa_model_close(&m);
    }
    copy_dsa_at("/nowhere", "/nowhere");
    assert_int_equal(copy_dsa_ops.open(8, &engine), TERN_ERR_UNSUPPORTED);
    copy_dsa_at(NULL, NULL);
}

/* One that cannot be opened is named. */
static void why_not(void **state)
{
    struct dsa_model m = {.size = 16, .most = 4096};
    void *engine;
    (void)state;
    assert_true(dsa_model_open(&m));
    dsa_model_hide(&m);
    assert_int_equal(copy_dsa_ops.open(8, &engine), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "/wq0.0 cannot be opened: No such file or directory"));
    dsa_model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_portal),
        cmocka_unit_test(by_write),
        cmocka_unit_test(longer_ones_are_cut),
        cmocka_unit_test(pages_that_are_not_there),
        cmocka_unit_test(descriptors_that_are_refused),
        cmocka_unit_test(a_device_that_dies),
        cmocka_unit_test(nothing_is_left_to_the_processor),
        cmocka_unit_test(queues_that_are_not_for_us),
        cmocka_unit_test(why_not),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
