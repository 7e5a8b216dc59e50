/* rankmap_test.c - rank maps against plain arrays, also where they need no table. */
#include "obj/rankmap.h"
#include "../seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* n different indices: a progression, one with a flaw, or any. */
static void make_list(uint32_t *list, int32_t n)
{
    uint32_t first = draw(1000), stride = 1 + draw(5);
    for (int32_t i = 0; i < n; i++) list[i] = first + (uint32_t)i * stride;
    uint32_t how = draw(4);
    if (how == 1 && n > 1) list[draw((uint32_t)n)] = 5000000;
    if (how == 2)
        for (int32_t i = n - 1; i > 0; i--) {
            int32_t k = (int32_t)draw((uint32_t)i + 1);
            uint32_t t = list[i];
            list[i] = list[k];
            list[k] = t;
        }
    if (how == 3)
        for (int32_t i = 0; i < n / 2; i++) { /* falling */
            uint32_t t = list[i];
            list[i] = list[n - 1 - i];
            list[n - 1 - i] = t;
        }
}

static void lists_are_kept(void **state)
{
    uint32_t list[40];
    int with_table = 0, without = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        int32_t n = (int32_t)draw(41);
        make_list(list, n);
        struct rankmap *m = rankmap_list(n, list);
        assert_non_null(m);
        assert_int_equal(m->size, n);
        m->table ? with_table++ : without++;
        for (int32_t r = 0; r < n; r++) {
            assert_int_equal(rankmap_at(m, r), list[r]);
            assert_int_equal(rankmap_find(m, list[r]), r);
        }
        for (int k = 0; k < 20; k++) {
            uint32_t index = k == 19 ? UINT32_MAX : draw(1300);
            int32_t want = -1;
            for (int32_t r = 0; r < n; r++)
                if (list[r] == index) want = r;
            assert_int_equal(rankmap_find(m, index), want);
        }
        rankmap_unref(m);
    }
    assert_true(with_table > 1000 && without > 1000);
}

static void progressions_need_no_table(void **state)
{
    const uint32_t up[] = {7, 9, 11, 13}, down[] = {3, 2, 1, 0}, one[] = {UINT32_MAX}, equal[] = {4, 4, 4};
    (void)state;
    struct rankmap *m = rankmap_list(4, up);
    assert_null(m->table);
    assert_int_equal(rankmap_find(m, 8), -1);
    assert_int_equal(rankmap_find(m, 15), -1);
    assert_int_equal(rankmap_find(m, 5), -1);
    rankmap_unref(m);
    m = rankmap_list(4, down);
    for (int32_t r = 0; r < 4; r++) assert_int_equal(rankmap_find(m, down[r]), r);
    rankmap_unref(m);
    m = rankmap_list(1, one);
    assert_null(m->table);
    assert_int_equal(rankmap_at(m, 0), UINT32_MAX);
    assert_int_equal(rankmap_find(m, UINT32_MAX), 0);
    rankmap_unref(m);
    m = rankmap_list(3, equal); /* no group, but no division by zero either */
    assert_int_equal(rankmap_find(m, 4), 0);
    rankmap_unref(m);
    m = rankmap_list(0, NULL);
    assert_int_equal(rankmap_find(m, 0), -1);
    rankmap_unref(m);
}

static void equality_is_of_members_in_order(void **state)
{
    uint32_t a[10], b[10];
    int equal = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        int32_t n = (int32_t)draw(4), k = (int32_t)draw(4);
        for (int32_t i = 0; i < n; i++) a[i] = draw(3) * 2;
        for (int32_t i = 0; i < k; i++) b[i] = draw(3) * 2;
        struct rankmap *ma = rankmap_list(n, a), *mb = rankmap_list(k, b);
        bool want = n == k && !memcmp(a, b, (size_t)n * sizeof *a);
        assert_int_equal(rankmap_equal(ma, mb), want);
        equal += want;
        rankmap_unref(ma);
        rankmap_unref(mb);
    }
    assert_true(equal > 500);
}

static void last_reference_frees(void **state)
{
    (void)state;
    struct rankmap *m = rankmap_line(5, 1, 2);
    assert_ptr_equal(rankmap_ref(m), m);
    rankmap_unref(m);
    assert_int_equal(rankmap_at(m, 4), 9); /* the sanitizer would tell */
    rankmap_unref(m);
    rankmap_unref(NULL);
}

/* Two other jobs: what is told of a group means the same processes wherever it is heard, and the jobs stay known as long
 * as a map has processes of them. */
static void other_jobs_are_told_and_held(void **state)
{
    static const uint8_t key[JOBS_KEY] = "of the test";
    struct proc_name name;
    uint32_t index;
    (void)state;
    jobs_open("own", 1, 4);
    struct job_entry *a = job_add("a", 10, key, NULL), *b = job_add("b", 6, key, NULL);
    assert_int_equal(job_index(a, 0), 4);
    assert_int_equal(job_index(b, 0), 14);
    uint32_t mixed[] = {19, 4, 2, 6, 14}, one[] = {17, 14, 19}, own[] = {3, 0};
    struct rankmap *map[] = {rankmap_list(5, mixed), rankmap_list(3, one), rankmap_list(2, own), rankmap_line(3, 12, -3)};
    for (size_t i = 0; i < ARRAY_LEN(map); i++) {
        struct rankmap_form form = rankmap_form_of(map[i]);
        assert_int_equal(rankmap_has_others(map[i]), i != 2);
        assert_int_equal(form.job, i == 1 ? jobs_id("b") : i == 2 ? jobs_id("own") : i == 3 ? jobs_id("a") : 0);
        if (!form.job) continue;
        void *text = malloc(rankmap_packed(&form));
        rankmap_pack(map[i], text);
        struct rankmap *copy = rankmap_unpack(&form, text);
        assert_true(copy && rankmap_equal(copy, map[i]));
        rankmap_unref(copy);
        free(text);
    }
    assert_true(rankmap_shares_job(map[0], map[1]) && rankmap_shares_job(map[0], map[3]) && !rankmap_shares_job(map[1], map[3]));
    /* As another process has it: other indices, the same names. */
    struct rankmap_form form = rankmap_form_of(map[1]);
    uint32_t text[3];
    rankmap_pack(map[1], text);
    for (int i = 0; i < 3; i++) assert_int_equal(text[i], one[i] - 14);
    text[1] = 6;
    assert_null(rankmap_unpack(&form, text)); /* job b has no rank 6 */
    rankmap_unref(map[0]);
    job_unref(a);
    job_unref(b);
    assert_int_equal(jobs_others(), 2);
    rankmap_unref(map[3]);
    name = (struct proc_name){jobs_id("a"), 0, 0};
    assert_false(jobs_index_of(&name, &index));
    name.job = jobs_id("b");
    assert_true(jobs_index_of(&name, &index) && index == 14);
    a = job_add("a third", 10, key, NULL); /* fits into the gap */
    assert_int_equal(job_index(a, 0), 4);
    job_unref(a);
    rankmap_unref(map[1]);
    rankmap_unref(map[2]);
    assert_int_equal(jobs_others(), 0);
    jobs_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_kept),
        cmocka_unit_test(progressions_need_no_table),
        cmocka_unit_test(equality_is_of_members_in_order),
        cmocka_unit_test(last_reference_frees),
        cmocka_unit_test(other_jobs_are_told_and_held),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
