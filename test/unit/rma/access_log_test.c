/*
 * access_log_test.c - which accesses to a window conflict, when they go from the log, and that it stays bounded.
 */
#include "rma/access_log.h"
#include "rma/wire.h"
#include "type/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

enum { INT = 7, FLOAT = 8 }; /* types */

static const struct access_rules standard, same_op = {.same_op = true}, unordered = {.unordered = true};
static struct access_log entries;
static uint64_t calls;

static int empty(void **state)
{
    (void)state;
    access_log_close(&entries);
    calls = 0;
    return 0;
}

static struct access move(int32_t origin, enum win_record_kind kind, int64_t begin, int64_t end)
{
    calls++;
    return (struct access){.first = calls, .last = calls, .begin = begin, .end = end, .origin = origin, .kind = (uint8_t)kind,
                           .call = (uint8_t)kind, .epoch = ACCESS_LOCK_ALL};
}

static struct access accumulate(int32_t origin, enum op_index op, int64_t begin, int64_t end)
{
    struct access a = move(origin, WIN_GET_ACCUMULATE, begin, end);
    a.op = (uint8_t)op;
    a.type = INT;
    a.phase = (uint8_t)(begin % 4);
    return a;
}

static enum access_clash add(struct access a)
{
    struct access other;
    return access_log_add(&entries, &a, &standard, &other);
}

static enum access_clash in(struct access a, enum access_epoch epoch, uint64_t fences)
{
    a.epoch = (uint8_t)epoch;
    a.fences = fences;
    return add(a);
}

/* The same whichever comes first. */
static enum access_clash clash(struct access a, struct access b, const struct access_rules *r)
{
    enum access_clash why = access_clash(&a, &b, r);
    assert_int_equal(access_clash(&b, &a, r), why);
    return why;
}

static void bytes_must_be_the_same(void **state)
{
    (void)state;
    assert_int_equal(clash(move(0, WIN_PUT, 0, 8), move(1, WIN_PUT, 8, 16), &standard), CLASH_NONE);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 9), move(1, WIN_PUT, 8, 16), &standard), CLASH_PUT);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 99), move(1, WIN_PUT, 8, 16), &standard), CLASH_PUT);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 9), move(0, WIN_PUT, 8, 16), &standard), CLASH_PUT);
}

static void puts_and_gets(void **state)
{
    (void)state;
    assert_int_equal(clash(move(0, WIN_GET, 0, 8), move(1, WIN_GET, 0, 8), &standard), CLASH_NONE);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 8), move(1, WIN_GET, 0, 8), &standard), CLASH_PUT);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 8), accumulate(1, OP_SUM, 0, 8), &standard), CLASH_PUT);
    assert_int_equal(clash(move(0, WIN_PUT, 0, 8), accumulate(1, OP_NO_OP, 0, 8), &standard), CLASH_PUT);
    assert_int_equal(clash(move(0, WIN_GET, 0, 8), accumulate(1, OP_SUM, 0, 8), &standard), CLASH_GET);
    assert_int_equal(clash(move(0, WIN_GET, 0, 8), accumulate(1, OP_NO_OP, 0, 8), &standard), CLASH_NONE);
}

static void accumulates(void **state)
{
    struct access other_type = accumulate(1, OP_SUM, 0, 8), swap = accumulate(1, OP_SUM, 0, 4);
    (void)state;
    other_type.type = FLOAT;
    swap.kind = WIN_COMPARE_AND_SWAP;
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(1, OP_SUM, 4, 12), &standard), CLASH_NONE);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(1, OP_MAX, 4, 12), &standard), CLASH_OPERATORS);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(0, OP_MAX, 4, 12), &standard), CLASH_NONE);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(0, OP_MAX, 4, 12), &unordered), CLASH_OPERATORS);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(1, OP_NO_OP, 4, 12), &standard), CLASH_NONE);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(1, OP_NO_OP, 4, 12), &same_op), CLASH_OPERATORS);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), accumulate(1, OP_SUM, 2, 6), &standard), CLASH_ELEMENTS);
    assert_int_equal(clash(accumulate(0, OP_SUM, 0, 8), other_type, &standard), CLASH_TYPES);
    assert_int_equal(clash(accumulate(0, OP_REPLACE, 0, 8), swap, &standard), CLASH_NONE);
}

static void a_flush_ends_what_locks_allow(void **state)
{
    (void)state;
    assert_int_equal(add(move(0, WIN_PUT, 0, 8)), CLASH_NONE);
    assert_int_equal(add(move(1, WIN_PUT, 8, 16)), CLASH_NONE);
    access_log_flush(&entries, 0);
    assert_int_equal(entries.n, 1);
    assert_int_equal(add(move(2, WIN_PUT, 0, 8)), CLASH_NONE);
    assert_int_equal(add(move(2, WIN_PUT, 12, 20)), CLASH_PUT);
    assert_int_equal(in(move(0, WIN_PUT, 40, 48), ACCESS_START, 0), CLASH_NONE);
    access_log_flush(&entries, 0);
    assert_int_equal(add(move(1, WIN_GET, 40, 48)), CLASH_PUT);
}

static void a_fence_ends_all_before(void **state)
{
    (void)state;
    assert_int_equal(in(move(0, WIN_PUT, 0, 8), ACCESS_FENCE, 3), CLASH_NONE);
    access_log_flush(&entries, 0);
    assert_int_equal(in(move(1, WIN_PUT, 0, 8), ACCESS_FENCE, 3), CLASH_PUT);
    assert_int_equal(in(move(1, WIN_PUT, 0, 8), ACCESS_FENCE, 4), CLASH_NONE); /* the first to have left the fence */
    assert_int_equal(entries.n, 1);
    assert_int_equal(in(move(0, WIN_PUT, 0, 8), ACCESS_FENCE, 4), CLASH_PUT);
    access_log_fence(&entries, 5);
    assert_int_equal(entries.n, 0);
    assert_int_equal(in(move(0, WIN_PUT, 0, 8), ACCESS_FENCE, 4), CLASH_NONE); /* cannot be */
    assert_int_equal(entries.n, 0);
}

static void an_exposure_ends_what_starts_allow(void **state)
{
    (void)state;
    assert_int_equal(in(move(0, WIN_PUT, 0, 8), ACCESS_START, 0), CLASH_NONE);
    assert_int_equal(add(move(0, WIN_PUT, 16, 24)), CLASH_NONE);
    access_log_end_exposure(&entries);
    assert_int_equal(in(move(1, WIN_PUT, 0, 8), ACCESS_START, 0), CLASH_NONE);
    assert_int_equal(add(move(1, WIN_PUT, 16, 24)), CLASH_PUT);
}

static void what_has_been_read_goes(void **state)
{
    struct access brief = move(0, WIN_GET, 200, 208);
    (void)state;
    brief.brief = true;
    assert_int_equal(add(move(0, WIN_GET, 0, 8)), CLASH_NONE);
    assert_int_equal(add(move(0, WIN_PUT, 16, 24)), CLASH_NONE);
    assert_int_equal(add(move(1, WIN_GET, 100, 108)), CLASH_NONE);
    assert_int_equal(add(brief), CLASH_NONE);
    assert_int_equal(entries.n, 3);
    access_log_reads_over(&entries, 0, calls);
    assert_int_equal(entries.n, 2);
    assert_int_equal(add(move(0, WIN_PUT, 0, 8)), CLASH_NONE);
    assert_int_equal(add(move(0, WIN_PUT, 100, 108)), CLASH_PUT);
    brief.begin = 0;
    assert_int_equal(add(brief), CLASH_PUT); /* that does not stay, but meets what is there */
}

/* The other access is the one that conflicts; a process that is lost has none. */
static void the_other_is_named(void **state)
{
    struct access other, a = move(3, WIN_PUT, 100, 104);
    (void)state;
    for (int i = 0; i < 5; i++) add(move(1, WIN_PUT, 1000 + 50 * i, 1010 + 50 * i));
    add(move(2, WIN_GET, 96, 101));
    assert_int_equal(access_log_add(&entries, &a, &standard, &other), CLASH_PUT);
    assert_true(other.origin == 2 && other.kind == WIN_GET && other.begin == 96 && other.end == 101 && other.first == 7);
    access_log_forget(&entries, 1);
    assert_int_equal(entries.n, 2);
}

static void neighbours_are_joined(void **state)
{
    struct access other, a;
    (void)state;
    for (int i = 0; i < 1000; i++) assert_int_equal(add(move(0, WIN_PUT, 8 * i, 8 * i + 8)), CLASH_NONE);
    for (int i = 0; i < 1000; i++) assert_int_equal(add(accumulate(0, OP_SUM, 9000, 9008)), CLASH_NONE);
    assert_int_equal(entries.n, 2);
    a = move(1, WIN_GET, 4000, 4004);
    assert_int_equal(access_log_add(&entries, &a, &standard, &other), CLASH_PUT);
    assert_true(other.first == 1 && other.last == 1000 && other.begin == 0 && other.end == 8000);
    a = move(0, WIN_PUT, 8000, 8008);
    a.place[0] = 'x'; /* elsewhere in the program */
    assert_int_equal(add(a), CLASH_NONE);
    assert_int_equal(entries.n, 4);
}

static void it_is_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < ACCESS_MOST; i++) assert_int_equal(add(move(0, WIN_PUT, 16 * i, 16 * i + 8)), CLASH_NONE);
    assert_false(entries.dropped);
    assert_int_equal(add(move(0, WIN_PUT, 16 * ACCESS_MOST, 16 * ACCESS_MOST + 8)), CLASH_NONE);
    assert_true(entries.dropped);
    assert_true(entries.n < ACCESS_MOST);
    assert_int_equal(add(move(1, WIN_PUT, 0, 8)), CLASH_NONE); /* the first has gone */
    assert_int_equal(add(move(1, WIN_PUT, 16 * ACCESS_MOST, 16 * ACCESS_MOST + 8)), CLASH_PUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bytes_must_be_the_same, empty),
        cmocka_unit_test_teardown(puts_and_gets, empty),
        cmocka_unit_test_teardown(accumulates, empty),
        cmocka_unit_test_teardown(a_flush_ends_what_locks_allow, empty),
        cmocka_unit_test_teardown(a_fence_ends_all_before, empty),
        cmocka_unit_test_teardown(an_exposure_ends_what_starts_allow, empty),
        cmocka_unit_test_teardown(what_has_been_read_goes, empty),
        cmocka_unit_test_teardown(the_other_is_named, empty),
        cmocka_unit_test_teardown(neighbours_are_joined, empty),
        cmocka_unit_test_teardown(it_is_bounded, empty),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
