/* info_test.c - info objects: order, change, deletion, copies. */
#include "obj/info.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void pairs_keep_the_order_in_which_they_came(void **state)
{
    struct info *i = info_new();
    char key[16];
    (void)state;
    for (int k = 0; k < 40; k++) {
        snprintf(key, sizeof key, "key%d", k * 7 % 40);
        assert_int_equal(info_set(i, key, "x"), 0);
    }
    assert_int_equal(i->n, 40);
    for (int k = 0; k < 40; k++) {
        snprintf(key, sizeof key, "key%d", k * 7 % 40);
        assert_string_equal(i->pair[k].key, key);
    }
    info_free(i);
}

static void a_key_set_again_keeps_its_place(void **state)
{
    struct info *i = info_new();
    (void)state;
    info_set(i, "a", "1");
    info_set(i, "b", "2");
    info_set(i, "a", "3");
    assert_int_equal(i->n, 2);
    assert_string_equal(i->pair[0].key, "a");
    assert_string_equal(info_get(i, "a"), "3");
    assert_null(info_get(i, "A"));
    assert_null(info_get(NULL, "a"));
    info_free(i);
}

static void deleting_closes_the_gap(void **state)
{
    struct info *i = info_new();
    (void)state;
    info_set(i, "a", "1");
    info_set(i, "b", "2");
    info_set(i, "c", "3");
    assert_int_equal(info_delete(i, "b"), 0);
    assert_int_equal(info_delete(i, "b"), TERN_ERR_NOT_FOUND);
    assert_int_equal(i->n, 2);
    assert_string_equal(i->pair[1].key, "c");
    info_free(i);
}

static void a_copy_is_independent(void **state)
{
    struct info *i = info_new(), *copy;
    (void)state;
    info_set(i, "a", "1");
    copy = info_dup(i);
    info_set(i, "a", "2");
    info_set(copy, "b", "3");
    assert_string_equal(info_get(copy, "a"), "1");
    assert_null(info_get(i, "b"));
    assert_ptr_equal(info_of(info_handle(copy)), copy);
    info_free(i);
    assert_null(info_of((MPI_Info)i)); /* a freed one is no info object */
    info_free(copy);
}

static void truth_is_a_word(void **state)
{
    struct info *i = info_new();
    (void)state;
    info_set(i, "yes", "True");
    info_set(i, "no", "false");
    info_set(i, "other", "7");
    assert_true(info_true(i, "yes", false));
    assert_false(info_true(i, "no", true));
    assert_true(info_true(i, "other", true));
    assert_false(info_true(NULL, "yes", false));
    info_free(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_keep_the_order_in_which_they_came),
        cmocka_unit_test(a_key_set_again_keeps_its_place),
        cmocka_unit_test(deleting_closes_the_gap),
        cmocka_unit_test(a_copy_is_independent),
        cmocka_unit_test(truth_is_a_word),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
