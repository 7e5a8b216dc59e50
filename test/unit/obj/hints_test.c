/* hints_test.c - hints of communicators: which are taken, which are told; kinds of memory. */
#include "obj/hints.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void kinds_are_parsed_whole(void **state)
{
    static const char *const known[] = {"system", "mpi", "mpi,system", "mpi:alloc_mem", "mpi:win_allocate:win_allocate_shared,system"};
    static const char *const not_known[] = {"", ",", "mpi,", ",mpi", "cuda", "mp", "mpi:", "mpi:alloc", "mpi:alloc_mem:", "system:alloc_mem",
                                            "mpix", "systems", "mpi::alloc_mem"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) assert_true(memory_kinds_known(known[i]));
    for (size_t i = 0; i < ARRAY_LEN(not_known); i++) assert_false(memory_kinds_known(not_known[i]));
}

static void only_known_hints_are_kept(void **state)
{
    struct comm c = {.size = 1};
    struct info *given = info_new();
    (void)state;
    info_set(given, "mpi_assert_no_any_tag", "true");
    info_set(given, "mpi_assert_exact_length", "maybe");
    info_set(given, "other", "true");
    assert_int_equal(comm_hints_set(&c, NULL), 0);
    assert_null(c.info);
    assert_int_equal(comm_hints_set(&c, given), 0);
    assert_int_equal(c.info->n, 1);
    assert_string_equal(info_get(c.info, "mpi_assert_no_any_tag"), "true");
    info_free(given);
    info_free(c.info);
}

static void all_with_a_default_are_told(void **state)
{
    struct comm c = {.size = 1};
    struct info *used = comm_hints_used(&c);
    (void)state;
    assert_int_equal(used->n, 6);
    assert_string_equal(info_get(used, "mpi_assert_no_any_source"), "false");
    assert_string_equal(info_get(used, "mpi_memory_alloc_kinds"), MEMORY_KINDS);
    info_free(used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_parsed_whole),
        cmocka_unit_test(only_known_hints_are_kept),
        cmocka_unit_test(all_with_a_default_are_told),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
