/* err_test.c - the words of failures: one text a thread, cut where it is too long, with the system's reason. */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

static void words_and_code(void **state)
{
    (void)state;
    err_clear();
    assert_string_equal(err_words(), "");
    assert_int_equal(err_set(TERN_ERR_RANK, "rank %d of %d", 7, 4), TERN_ERR_RANK);
    assert_string_equal(err_words(), "rank 7 of 4");
    assert_int_equal(err_code(), TERN_ERR_RANK);
    err_clear();
    assert_string_equal(err_words(), "");
    assert_int_equal(err_code(), 0);
}

static void reason_of_the_system(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(err_sys("open %s", "x"), TERN_ERR_SYSTEM);
    assert_string_equal(err_words(), "open x: No such file or directory");
    assert_int_equal(errno, ENOENT);
}

/* As callers do that add what they know: "the block cannot be mapped: %s". */
static void words_in_their_own_words(void **state)
{
    (void)state;
    err_set(TERN_ERR_SYSTEM, "no such memory");
    err_set(TERN_ERR_ARG, "rank %d: %s", 3, err_words());
    assert_string_equal(err_words(), "rank 3: no such memory");
    errno = ENOENT;
    err_sys("%s, then %s", "first", err_words());
    assert_string_equal(err_words(), "first, then rank 3: no such memory: No such file or directory");
}

/* Callers turn a failure of the system into the loss of a peer, but an earlier failure of another kind is not the reason. */
static void words_explain_what_they_may_be_of(void **state)
{
    (void)state;
    err_set(TERN_ERR_SYSTEM, "too many open files");
    assert_true(err_explains(TERN_ERR_SYSTEM));
    assert_true(err_explains(TERN_ERR_PEER));
    assert_false(err_explains(TERN_ERR_TRUNCATE));
    err_set(TERN_ERR_UNSUPPORTED, "no single copies here");
    assert_false(err_explains(TERN_ERR_PEER));
    err_clear();
    assert_false(err_explains(TERN_ERR_PEER));
}

static void long_words_are_cut(void **state)
{
    char text[2000];
    (void)state;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    err_set(TERN_ERR_ARG, "%s", text);
    size_t n = strlen(err_words());
    assert_in_range(n, 100, sizeof text - 2);
    assert_memory_equal(err_words(), text, n);
    errno = EIO;
    err_sys("%s", text);
    assert_int_equal(strlen(err_words()), n);
}

static void *other_thread(void *clean)
{
    *(bool *)clean = err_words()[0] == 0;
    err_set(TERN_ERR_ARG, "of the other thread");
    return NULL;
}

static void words_are_per_thread(void **state)
{
    pthread_t t;
    bool clean = false;
    (void)state;
    err_set(TERN_ERR_ARG, "of this thread");
    assert_int_equal(pthread_create(&t, NULL, other_thread, &clean), 0);
    pthread_join(t, NULL);
    assert_true(clean);
    assert_string_equal(err_words(), "of this thread");
}

static void *recalling_thread(void *of)
{
    err_recall(of, TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "longer than 4 bytes");
    assert_int_equal(err_code(), TERN_ERR_TRUNCATE);
    return NULL;
}

/* One thread finds an operation to have failed, and another one reports it. */
static void words_are_kept_for_an_operation(void **state)
{
    pthread_t t;
    int operation;
    (void)state;
    assert_int_equal(err_keep(&operation, err_set(TERN_ERR_TRUNCATE, "longer than 4 bytes")), TERN_ERR_TRUNCATE);
    err_set(TERN_ERR_ARG, "a later failure");
    assert_int_equal(pthread_create(&t, NULL, recalling_thread, &operation), 0);
    pthread_join(t, NULL);
    assert_string_equal(err_words(), "a later failure");
}

/* Operations come again at the same address. */
static void words_of_an_earlier_operation_are_not_kept(void **state)
{
    int operation;
    (void)state;
    err_keep(&operation, err_set(TERN_ERR_TRUNCATE, "the first"));
    err_keep(&operation, err_set(TERN_ERR_TRUNCATE, "the second"));
    err_recall(&operation, TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "the second");
    err_keep(&operation, err_set(TERN_ERR_TRUNCATE, "the third"));
    err_set(TERN_ERR_ARG, "of something else");
    err_recall(&operation, TERN_ERR_RANK); /* of another failure than was kept */
    assert_string_equal(err_words(), "of something else");
    err_set(TERN_ERR_ARG, "not of the operation");
    err_recall(&operation, TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "not of the operation");
    err_keep(&operation, TERN_ERR_TRUNCATE);
    err_recall(&operation, TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "not of the operation");
}

static void so_many_words_are_kept(void **state)
{
    int operation[ERR_KEPT + 1];
    (void)state;
    for (int i = 0; i <= ERR_KEPT; i++) err_keep(&operation[i], err_set(TERN_ERR_TRUNCATE, "number %d", i));
    err_clear();
    err_recall(&operation[0], TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "");
    err_recall(&operation[1], TERN_ERR_TRUNCATE);
    assert_string_equal(err_words(), "number 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_code),
        cmocka_unit_test(reason_of_the_system),
        cmocka_unit_test(words_in_their_own_words), cmocka_unit_test(words_explain_what_they_may_be_of),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(words_are_per_thread),
        cmocka_unit_test(words_are_kept_for_an_operation),
        cmocka_unit_test(words_of_an_earlier_operation_are_not_kept),
        cmocka_unit_test(so_many_words_are_kept),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
