/*
 * table_test.c - rules of src/dpm/table.h: a table says of its group what was written, in the bytes that can be worked out; what is
 * no table is refused, whatever it claims.
 */
#include "../seed.h"
#include "base/clock.h"
#include "base/err.h"
#include "dpm/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 5, LARGE = 100000, CARD = 171, HEAD = 20, RUN = 12 };

static uint64_t seed;
static uint64_t below(uint64_t n) { return seed_next(&seed) % n; }

static const char *const names[JOBS] = {"a", "job.two", "three.0123456789abcdef", "four", "fi ve"};
static uint8_t keys[JOBS][CRYPTO_KEY];
static struct table_job jobs[JOBS];
static struct table_entry *entries; /* LARGE */
static uint8_t *cards;              /* CARD bytes each */

/* ---- made-up groups ---- */

/* A card as a process on that node has it: 6 bytes of its own at one place, 8 at another. `local`: its rank on the node. */
static uint8_t *make_card(uint32_t i, uint32_t node, uint32_t local)
{
    uint8_t *card = cards + (size_t)i * CARD;
    uint64_t word = (uint64_t)node * 0x9e3779b97f4a7c15u;
    for (size_t k = 0; k < CARD; k++) card[k] = (uint8_t)(word >> k % 8 * 8 ^ k);
    for (size_t k = 0; k < 14; k++) card[k < 6 ? 40 + k : 90 + k] ^= (uint8_t)(local ? 1 + local % 255 : 0);
    return card;
}

static void put_entry(uint32_t i, uint32_t job, uint32_t rank, uint32_t node, uint32_t local)
{
    entries[i] = (struct table_entry){job, rank, node, CARD, make_card(i, node, local)};
}

/* The world of job 0, of n ranks, `per` on a node. */
static void make_world(uint32_t n, uint32_t per)
{
    jobs[0].size = n;
    for (uint32_t i = 0; i < n; i++) put_entry(i, 0, i, i / per, i % per);
}

/* Ranks of several jobs in any order. */
static uint32_t make_mix(uint32_t *njobs)
{
    uint32_t n = 0;
    *njobs = 1 + (uint32_t)below(JOBS);
    for (uint32_t k = 0; k < *njobs; k++) {
        jobs[k].size = 1 + (uint32_t)below(100);
        for (uint32_t r = 0; r < jobs[k].size; r++)
            if (!r || below(3)) put_entry(n++, k, r, r / 7, r % 7); /* a job without a member is not told of */
    }
    for (uint64_t swaps = below(2) * below(40); swaps; swaps--) {
        uint32_t a = (uint32_t)below(n), b = (uint32_t)below(n);
        struct table_entry e = entries[a];
        entries[a] = entries[b];
        entries[b] = e;
    }
    return n;
}

static void *write_it(uint32_t njobs, uint32_t n, uint32_t root, size_t *bytes)
{
    void *t = NULL;
    assert_int_equal(table_write(jobs, njobs, entries, n, root, 0, &t, bytes), 0);
    return t;
}

/* ---- what is read ---- */

static void check_members(const struct table *t, void *memory)
{
    struct card_pack *p = card_pack_open(memory, t->cards, t->card_bytes);
    uint32_t at = 0, place = 0;
    for (uint32_t i = 0; i < t->runs; i++) {
        struct table_run r = table_run(t, i);
        for (uint32_t k = 0; k < r.count; k++, at++, place = card_pack_next(p, place)) {
            uint8_t card[CARD_MAX];
            assert_true(r.job == entries[at].job && r.first + k == entries[at].rank);
            assert_int_equal(card_pack_get(p, place, card), entries[at].card_bytes);
            assert_memory_equal(card, entries[at].card, entries[at].card_bytes);
        }
    }
    assert_int_equal(at, t->size);
    card_pack_unref(p);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t njobs, n = make_mix(&njobs), root = (uint32_t)below(n);
        size_t bytes;
        void *memory = write_it(njobs, n, root, &bytes);
        struct table t;
        assert_int_equal(table_open(&t, memory, bytes), 0);
        assert_true(t.size == n && t.root == root && t.jobs == njobs);
        for (uint32_t k = 0; k < njobs; k++) {
            assert_string_equal(t.job[k].name, names[k]);
            assert_int_equal(t.job[k].size, jobs[k].size);
            assert_memory_equal(t.job[k].public, keys[k], CRYPTO_KEY);
        }
        struct proc_name name = table_root(&t);
        assert_true(name.job == jobs_id(names[entries[root].job]) && name.rank == entries[root].rank);
        check_members(&t, memory);
        table_close(&t);
    }
}

/* A world of n ranks, p on each node: one run; on each node a whole card, and 4 + 1 + (2 + 6) + (2 + 8) bytes for each other one. */
static void bytes_on_paper(void **state)
{
    static const uint32_t sizes[] = {1, 64, 1000, 10000, LARGE}, per[] = {1, 16, 128};
    (void)state;
    for (unsigned s = 0; s < ARRAY_LEN(sizes); s++)
        for (unsigned k = 0; k < ARRAY_LEN(per); k++) {
            uint32_t n = sizes[s], nodes = (n + per[k] - 1) / per[k];
            size_t bytes, first = HEAD + 4 + strlen(names[0]) + 1 + 4 + CRYPTO_KEY + RUN;
            make_world(n, per[k]);
            void *memory = write_it(1, n, 0, &bytes);
            print_message("# %u processes, %u on a node: a table of %zu bytes, %.1f each\n", n, per[k], bytes, (double)bytes / n);
            assert_int_equal(bytes, first + nodes * (CARD + 6) + (n - nodes) * 23);
            free(memory);
        }
}

static uint64_t time_of(uint32_t n, uint64_t *read)
{
    size_t bytes;
    struct table t;
    make_world(n, 16);
    uint64_t begin = clock_ns();
    void *memory = write_it(1, n, 0, &bytes);
    uint64_t end = clock_ns();
    assert_int_equal(table_open(&t, memory, bytes), 0);
    *read = clock_ns() - end;
    table_close(&t);
    free(memory);
    return end - begin;
}

/* Ten times as many processes take ten times as long, more or less; the best of several runs. */
static void time_is_linear(void **state)
{
    uint64_t best[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, t[4];
    (void)state;
    for (int i = 0; i < 7; i++) {
        t[0] = time_of(LARGE / 10, &t[1]);
        t[2] = time_of(LARGE, &t[3]);
        for (int k = 0; k < 4; k++) best[k] = t[k] < best[k] ? t[k] : best[k];
    }
    print_message("# %d processes: written in %.2f ms, read in %.2f ms; %d: %.2f, %.2f ms\n", LARGE / 10, (double)best[0] / 1e6,
                  (double)best[1] / 1e6, LARGE, (double)best[2] / 1e6, (double)best[3] / 1e6);
    assert_true(best[2] < 40 * best[0] && best[3] < 40 * best[1]);
}

/* ---- what is refused ---- */

static void put32(void *bytes, size_t at, uint32_t v)
{
    v = htobe32(v);
    memcpy((uint8_t *)bytes + at, &v, 4);
}

static void assert_refused(const void *bytes, size_t n)
{
    struct table t;
    uint8_t *own = malloc(n + 1); /* at the end of its memory, for those who look beyond */
    memcpy(own, bytes, n);
    assert_int_equal(table_open(&t, own, n), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "damaged"));
    assert_null(t.job);
    free(own);
}

static void cut_tables(void **state)
{
    uint32_t njobs, n = make_mix(&njobs);
    size_t bytes;
    void *memory = write_it(njobs, n, 0, &bytes);
    (void)state;
    for (size_t cut = 0; cut < bytes; cut++) assert_refused(memory, cut);
    memory = realloc(memory, bytes + 1);
    ((uint8_t *)memory)[bytes] = 0;
    assert_refused(memory, bytes + 1);
    free(memory);
}

/* One number at a time that is out of its limits. */
static void wrong_numbers(void **state)
{
    size_t bytes, job = HEAD + 4 + strlen(names[0]) + 1, run = job + 4 + CRYPTO_KEY;
    (void)state;
    make_world(10, 16);
    uint8_t *good = write_it(1, 10, 3, &bytes), *bad = malloc(bytes);
    const struct {
        size_t at;
        uint32_t v[4];
    } wrong[] = {{0, {0, 9, 11, UINT32_MAX}},
                 {4, {10, UINT32_MAX, 1 << 30, 10}},
                 {8, {0, 2, 11, UINT32_MAX}},
                 {12, {0, 2, 11, UINT32_MAX}},
                 {16, {1, 4, UINT32_MAX, 1 << 30}},
                 {job, {0, 9, JOBS_PLACES + 1, UINT32_MAX}},
                 {run, {1, 2, UINT32_MAX, 1u << 31}},
                 {run + 4, {1, 10, UINT32_MAX, UINT32_MAX - 9}},
                 {run + 8, {0, 9, 11, UINT32_MAX}},
                 {run + RUN, {1, 100, UINT32_MAX, 1u << 31}}};
    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
        for (unsigned k = 0; k < 4; k++) {
            memcpy(bad, good, bytes);
            put32(bad, wrong[i].at, wrong[i].v[k]);
            assert_refused(bad, bytes);
        }
    free(good);
    free(bad);
}

/* A process twice, in one run and the next, or far apart; a job twice. */
static void twice(void **state)
{
    size_t bytes;
    (void)state;
    make_world(20, 16);
    put_entry(19, 0, 7, 0, 7);
    void *memory = write_it(1, 20, 0, &bytes);
    assert_refused(memory, bytes);
    free(memory);
    for (uint32_t i = 0; i < 20; i++) put_entry(i, 0, (i * 7 + 1) % 20, 0, i);
    memory = write_it(1, 20, 0, &bytes);
    struct table t;
    assert_int_equal(table_open(&t, memory, bytes), 0);
    table_close(&t);
    free(memory);
    put_entry(12, 0, entries[3].rank, 0, 12);
    memory = write_it(1, 20, 0, &bytes);
    assert_refused(memory, bytes);
    free(memory);
    make_world(20, 16);
    jobs[1].size = 20;
    put_entry(19, 1, 19, 0, 19);
    const char *was = jobs[1].name;
    jobs[1].name = jobs[0].name;
    memory = write_it(2, 20, 0, &bytes);
    jobs[1].name = was;
    assert_refused(memory, bytes);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(bytes_on_paper),
        cmocka_unit_test(time_is_linear),
        cmocka_unit_test(cut_tables),
        cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(twice),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = seed_open();
    entries = calloc(LARGE, sizeof *entries);
    cards = malloc((size_t)LARGE * CARD);
    if (!entries || !cards) return 1;
    for (unsigned k = 0; k < JOBS; k++) {
        for (size_t i = 0; i < CRYPTO_KEY; i++) keys[k][i] = (uint8_t)below(256);
        jobs[k] = (struct table_job){names[k], 0, keys[k]};
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(entries);
    free(cards);
    return failed;
}
