/*
 * choose_test.c - memcpy or stores that bypass the caches (choose.h): the better one of two ways whose times are made up is found, and
 * found again when the times change; whatever is chosen, every byte arrives.
 */
#include "copy/choose.h"
#include "../seed.h"
#include "base/clock.h"
#include "base/var.h"
#include "copy/count.h"
#include "copy/now.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MB ((size_t)1 << 20)

static double ns_for_kb[2]; /* of the two ways */
static size_t bytes[2];     /* that have gone each way */
static uint64_t now;        /* ns: only copies take time */
static uint64_t noise;      /* of a generator of random numbers; 0: none */

static uint64_t made_up_clock(void) { return now; }

/* Half as long again at most, but one in 10 twenty times as long, and not those that follow: a whole is up to two, one for each way, and two
 * wholes in turn that are that long make a way look bad until the next trial. */
static double disturbed(double ns)
{
    static int since_long;
    if (!noise) return ns;
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    bool is_long = ++since_long > 4 && (noise >> 50) % 10 == 0;
    if (is_long) since_long = 0;
    return is_long ? 20 * ns : ns * (1 + 0.5 * (double)(noise >> 33 & 1023) / 1024);
}

static void take(int way, size_t n)
{
    now += (uint64_t)disturbed(ns_for_kb[way] * (double)n / 1024);
    bytes[way] += n;
}

static void cached(void *dst, const void *src, size_t n)
{
    (void)dst, (void)src;
    take(0, n);
}

static void nontemporal(void *dst, const void *src, size_t n)
{
    (void)dst, (void)src;
    take(1, n);
}

static void begin(double cached_ns, double nontemporal_ns)
{
    copy_open();
    copy_choose_among(cached, nontemporal);
    copy_now = made_up_clock;
    noise = 0;
    ns_for_kb[0] = cached_ns;
    ns_for_kb[1] = nontemporal_ns;
    bytes[0] = bytes[1] = 0;
}

/* Which way most of the last ones of `times` wholes go. */
static bool mostly_nontemporal(int times, size_t n, size_t whole)
{
    static char memory[1];
    size_t before[2] = {0, 0};
    for (int i = 0; i < times; i++) {
        if (i == times / 2) before[0] = bytes[0], before[1] = bytes[1];
        for (size_t at = 0; at < whole; at += n) copy_part(memory, memory, n, whole);
    }
    return bytes[1] - before[1] > bytes[0] - before[0];
}

static void the_better_way_is_found(void **state)
{
    (void)state;
    for (int better = 0; better < 2; better++) {
        begin(better ? 40 : 20, better ? 20 : 40);
        assert_int_equal(mostly_nontemporal(40, MB, MB), better);
        assert_int_equal(mostly_nontemporal(10, 2 * MB, 8 * MB), better);
        struct copy_choice one = copy_choice_of(0), eight = copy_choice_of(3), none = copy_choice_of(2);
        assert_int_equal(one.from, MB);
        assert_true(one.tried && one.nontemporal == better);
        assert_true(eight.tried && eight.nontemporal == better && eight.from == 8 * MB);
        assert_false(none.tried);
        assert_true((one.cost[0] > one.cost[1]) == better);
    }
}

/* The other way is dropped as soon as it is clear that it is no good: then it is used for three wholes. */
static void bad_way_costs_little(void **state)
{
    (void)state;
    begin(10, 100);
    mostly_nontemporal(50, MB, MB);
    assert_in_range(bytes[1], MB, 3 * MB);
}

static void what_changes_is_found_out(void **state)
{
    (void)state;
    begin(2, 4);
    assert_false(mostly_nontemporal(40, MB, MB));
    ns_for_kb[1] = 1;
    assert_true(mostly_nontemporal(3 * COPY_DISTANCE, MB, MB));
    ns_for_kb[0] = 0.5;
    assert_false(mostly_nontemporal(4 * COPY_DISTANCE, MB, MB));
}

/* In 50 trials each of two ways, of which one takes 1.6 times as long, the right one is found whatever disturbs. */
static void noise_changes_nothing(void **state)
{
    uint64_t seed = seed_open();
    (void)state;
    for (int better = 0; better < 2; better++)
        for (int i = 0; i < 50; i++) {
            begin(better ? 16 : 10, better ? 10 : 16);
            noise = seed += 2;
            assert_int_equal(mostly_nontemporal(60, MB, MB), better);
        }
}

/* Not by less than 5 %: what is copied may be read more than once. */
static void a_little_better_is_not_taken(void **state)
{
    (void)state;
    begin(100, 96);
    assert_false(mostly_nontemporal(40, MB, MB));
    begin(100, 94);
    assert_true(mostly_nontemporal(40, MB, MB));
}

static void copies_are_counted(void **state)
{
    struct copy_counts before = copy_counts(), after;
    (void)state;
    begin(40, 20);
    mostly_nontemporal(40, MB, MB);
    after = copy_counts();
    uint64_t wholes[2] = {after.copies[COPY_BY_MEMCPY] - before.copies[COPY_BY_MEMCPY],
                          after.copies[COPY_BY_NONTEMPORAL] - before.copies[COPY_BY_NONTEMPORAL]};
    assert_int_equal(wholes[0] + wholes[1], 40);
    assert_true(wholes[1] > wholes[0] && wholes[0] > 0);
    assert_int_equal(after.bytes[COPY_BY_NONTEMPORAL] - before.bytes[COPY_BY_NONTEMPORAL], wholes[1] * MB);
    assert_int_equal(after.copies[COPY_BY_ENGINE], before.copies[COPY_BY_ENGINE]);
}

/* A trial that confirms the one before is followed by a run that is twice as long: in 16 times as many copies as the first one are four
 * more. */
static void trials_become_rare(void **state)
{
    (void)state;
    begin(1, 1.5);
    mostly_nontemporal(COPY_DISTANCE, MB, MB);
    size_t first = bytes[1];
    mostly_nontemporal(15 * COPY_DISTANCE, MB, MB);
    assert_in_range(bytes[1], 2 * first, 7 * first);
}

static void small_wholes_and_pieces_stay(void **state)
{
    char src[3000], dst[3000];
    (void)state;
    begin(20, 10);
    assert_true(mostly_nontemporal(40, MB, MB));
    memset(src, 5, sizeof src);
    bytes[0] = bytes[1] = 0;
    copy_memory(dst, src, sizeof src); /* no way of ours: it is copied */
    assert_memory_equal(dst, src, sizeof src);
    assert_int_equal(bytes[0] + bytes[1], 0);
    copy_part(dst, src, 3000, MB);
    assert_int_equal(bytes[0], 3000);
}

static void the_variable_fixes_it(void **state)
{
    (void)state;
    assert_int_equal(var_set(VAR_COPY_NT, "3M"), 0);
    begin(1, 100);
    mostly_nontemporal(2, 3 * MB, 3 * MB);
    assert_in_range(bytes[1], 5 * MB, 6 * MB); /* but for the part that is to be warm */
    bytes[0] = bytes[1] = 0;
    mostly_nontemporal(20, 2 * MB, 2 * MB);
    assert_int_equal(bytes[0] + bytes[1], 0);
    assert_int_equal(var_set(VAR_COPY_NT, "0"), 0);
}

/* ---- the real ways ---- */

static void begin_real(void)
{
    copy_open();
    copy_choose_among(NULL, NULL);
    copy_now = clock_ns;
}

/* Either way, whatever the alignment, and nothing beside it. */
static void check_bytes(unsigned char *src, unsigned char *dst, size_t n, size_t whole, size_t from, size_t to)
{
    memset(dst, 0xee, n + 512);
    copy_part(dst + to, src + from, n, whole);
    assert_memory_equal(dst + to, src + from, n);
    for (size_t i = 0; i < to; i++) assert_int_equal(dst[i], 0xee);
    for (size_t i = to + n; i < n + 512; i++) assert_int_equal(dst[i], 0xee);
}

static void every_byte_arrives(void **state)
{
    unsigned char *src = malloc(3 * MB), *dst = malloc(3 * MB);
    uint64_t seed = seed_open();
    (void)state;
    assert_true(src && dst);
    for (size_t i = 0; i < 3 * MB; i++) src[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int fixed = 0; fixed < 2; fixed++) {
        assert_int_equal(var_set(VAR_COPY_NT, fixed ? "100" : "0"), 0);
        begin_real();
        for (int i = 0; i < 40; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t n = (size_t)(seed >> 20) % (i % 2 ? MB + MB : 20000) + 1, from = (seed >> 45) % 130, to = (seed >> 53) % 130;
            check_bytes(src, dst, n, i % 3 ? n : 64 * MB, from, to);
        }
    }
    assert_int_equal(var_set(VAR_COPY_NT, "0"), 0);
    free(src);
    free(dst);
}

static void *copies(void *unused)
{
    char *src = malloc(2 * MB), *dst = malloc(2 * MB);
    bool good = src && dst;
    for (int i = 0; i < 100 && good; i++) {
        memset(src, i, 2 * MB);
        memset(dst, ~i, 2 * MB);
        copy_part(dst, src, 2 * MB, 2 * MB);
        good = !memcmp(src, dst, 2 * MB);
    }
    free(src);
    free(dst);
    return good ? NULL : &ns_for_kb;
    (void)unused;
}

static void by_threads(void **state)
{
    pthread_t t[3];
    void *bad;
    (void)state;
    begin_real();
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, copies, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(t[i], &bad), 0);
        assert_null(bad);
    }
    assert_true(copy_choice_of(1).tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_better_way_is_found), cmocka_unit_test(bad_way_costs_little),
        cmocka_unit_test(what_changes_is_found_out), cmocka_unit_test(noise_changes_nothing),
        cmocka_unit_test(a_little_better_is_not_taken), cmocka_unit_test(copies_are_counted), cmocka_unit_test(trials_become_rare),
        cmocka_unit_test(small_wholes_and_pieces_stay), cmocka_unit_test(the_variable_fixes_it),
        cmocka_unit_test(every_byte_arrives), cmocka_unit_test(by_threads),
    };
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
