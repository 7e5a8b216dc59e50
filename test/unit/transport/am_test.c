/* am_test.c - ids of messages: who registers which, what is refused, and the number that stands for all of them. */
#include "transport/am.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void one(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { (void)from, (void)h0, (void)h1, (void)data, (void)n; }
static void two(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { (void)from, (void)h0, (void)h1, (void)data, (void)n; }

static void *sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    (void)from, (void)h0, (void)h1, (void)n;
    return NULL;
}

static const struct tp_am pair[] = {{TP_AM_TESTS, "first", one, NULL, false, 0}, {TP_AM_MAX - 1, "last", two, sink, true, 0}};

static void the_table_is_filled_and_emptied(void **state)
{
    (void)state;
    assert_int_equal(tp_am_register(pair, 2), 0);
    assert_ptr_equal(tp_handlers[TP_AM_TESTS], one);
    assert_null(tp_sinks[TP_AM_TESTS]);
    assert_false(tp_questions[TP_AM_TESTS]);
    assert_ptr_equal(tp_handlers[TP_AM_MAX - 1], two);
    assert_ptr_equal(tp_sinks[TP_AM_MAX - 1], sink);
    assert_true(tp_questions[TP_AM_MAX - 1]);
    tp_am_unregister(pair, 2);
    for (unsigned id = 0; id < TP_AM_MAX; id++) assert_true(!tp_handlers[id] && !tp_sinks[id] && !tp_questions[id]);
}

static void expect_refused(const struct tp_am *m, size_t n, const char *words)
{
    assert_int_equal(tp_am_register(m, n), TERN_ERR_INTERN);
    if (!strstr(err_words(), words)) fail_msg("'%s' is not in: %s", words, err_words());
}

static void what_cannot_be_is_refused_in_words(void **state)
{
    const struct tp_am taken[] = {{TP_AM_TESTS + 1, "mine", one, NULL, false, 0}, {TP_AM_TESTS, "second", two, NULL, false, 0}};
    const struct tp_am pad = {AM_PAD, "pad", one, NULL, false, 0}, beyond = {TP_AM_MAX, "beyond", one, NULL, false, 0};
    const struct tp_am deaf = {TP_AM_TESTS + 2, "deaf", NULL, NULL, false, 0};
    (void)state;
    assert_int_equal(tp_am_register(pair, 2), 0);
    expect_refused(taken, 2, "'first' has it");
    assert_null(tp_handlers[TP_AM_TESTS + 1]); /* all or none */
    assert_ptr_equal(tp_handlers[TP_AM_TESTS], one);
    tp_am_unregister(taken, 2); /* who has nothing takes nothing away */
    assert_ptr_equal(tp_handlers[TP_AM_TESTS], one);
    expect_refused(&pad, 1, "'pad'");
    expect_refused(&beyond, 1, "64");
    expect_refused(&deaf, 1, "'deaf'");
    tp_am_unregister(pair, 2);
}

static void nothing_is_registered_while_transports_are_open(void **state)
{
    (void)state;
    tp_am_seal();
    expect_refused(pair, 2, "open");
    tp_am_unseal();
    assert_int_equal(tp_am_register(pair, 2), 0);
    tp_am_unregister(pair, 2);
}

static uint64_t number_of(const struct tp_am *m, size_t n)
{
    assert_int_equal(tp_am_register(m, n), 0);
    uint64_t number = tp_am_seal();
    assert_int_equal(tp_am_seal(), number);
    tp_am_unseal();
    tp_am_unregister(m, n);
    return number;
}

static void the_number_tells_sizes_of_structs_apart(void **state)
{
    const struct tp_am small = {TP_AM_TESTS, "first", one, NULL, false, 24}, large = {TP_AM_TESTS, "first", one, NULL, false, 32};
    const struct tp_am none = {TP_AM_TESTS, "first", one, NULL, false, 0};
    uint64_t number = number_of(&small, 1);
    (void)state;
    assert_int_equal(number_of(&small, 1), number);
    assert_int_not_equal(number_of(&large, 1), number);
    assert_int_not_equal(number_of(&none, 1), number);
}

static void the_number_tells_ids_and_names_apart(void **state)
{
    const struct tp_am swapped[] = {{TP_AM_TESTS, "last", one, NULL, false, 0}, {TP_AM_MAX - 1, "first", two, sink, true, 0}};
    const struct tp_am moved[] = {{TP_AM_TESTS + 1, "first", one, NULL, false, 0}, {TP_AM_MAX - 1, "last", two, sink, true, 0}};
    const struct tp_am same[] = {{TP_AM_MAX - 1, "last", one, NULL, false, 0}, {TP_AM_TESTS, "first", one, NULL, false, 0}};
    uint64_t number = number_of(pair, 2);
    (void)state;
    assert_int_equal(number_of(same, 2), number); /* whoever came first, and whatever handles them */
    assert_int_not_equal(number_of(swapped, 2), number);
    assert_int_not_equal(number_of(moved, 2), number);
    assert_int_not_equal(number_of(pair, 1), number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_filled_and_emptied),
        cmocka_unit_test(what_cannot_be_is_refused_in_words),
        cmocka_unit_test(nothing_is_registered_while_transports_are_open),
        cmocka_unit_test(the_number_tells_ids_and_names_apart),
        cmocka_unit_test(the_number_tells_sizes_of_structs_apart),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
