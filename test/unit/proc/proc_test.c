/* proc_test.c - which bootstrap is taken, what a process alone is, and the end of a job by abort. */
#include "proc/proc.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/job_block.h"
#include "proc/usable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int clean(void **state)
{
    static const char *const names[] = {JOB_ENV_FD, JOB_ENV_RANK, "TERN_BOOTSTRAP", "PMIX_NAMESPACE", "PMIX_RANK", "TERN_MODULE_DIR",
                                        "TERN_TEST_CPUS"};
    (void)state;
    proc_close();
    var_close();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) unsetenv(names[i]);
    return 0;
}

static void alone_is_a_job_of_one(void **state)
{
    char buf[16];
    (void)state;
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), 0);
    const struct proc_info *me = proc_self();
    assert_string_equal(me->bootstrap, "single");
    assert_int_equal(me->rank, 0);
    assert_int_equal(me->size, 1);
    assert_int_equal(me->local_size, 1);
    assert_int_equal(me->usable_cpus, usable_here());
    assert_false(me->oversubscribed);
    assert_true(strlen(me->job) > 0);
    assert_int_equal(proc_card_put("hello", 6), 0);
    assert_int_equal(proc_card_get(0, buf, sizeof buf), 6);
    assert_string_equal(buf, "hello");
    assert_true(proc_card_get(1, buf, sizeof buf) < 0);
    assert_true(proc_card_get(0, buf, 5) < 0);
}

static void what_was_asked_for_must_be_there(void **state)
{
    (void)state;
    setenv("TERN_BOOTSTRAP", "native", 1);
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), TERN_ERR_NOT_FOUND);
    assert_non_null(strstr(err_words(), "TERN_BOOTSTRAP=native"));
}

/* A launcher waits for this process: to go on alone would be wrong. */
static void missing_module_is_an_error(void **state)
{
    (void)state;
    setenv("PMIX_NAMESPACE", "job", 1);
    setenv("PMIX_RANK", "0", 1);
    setenv("TERN_MODULE_DIR", "/nowhere", 1);
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "/nowhere/pmix.so"));
}

static void cpus_follow_the_mask(void **state)
{
    cpu_set_t before, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_in_range(usable_here(), 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(usable_here(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* For tests: a small machine as a large one, and the other way round. */
static void cpus_are_what_the_hook_says(void **state)
{
    (void)state;
    setenv("TERN_TEST_CPUS", "77", 1);
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), 0);
    assert_int_equal(proc_self()->usable_cpus, 77);
    proc_close();
    setenv("TERN_TEST_CPUS", "0", 1);
    assert_int_equal(proc_open(), 0);
    assert_int_equal(proc_self()->usable_cpus, usable_here());
}

/* proc_abort in a child: its exit code, and what it printed. */
static int aborted(int code, char *text, size_t cap)
{
    int fd[2], status = 0;
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        dup2(fd[1], STDERR_FILENO);
        proc_abort(code, "the words");
    }
    close(fd[1]);
    size_t n = 0;
    for (ssize_t k; n < cap - 1 && (k = read(fd[0], text + n, cap - 1 - n)) > 0;) n += (size_t)k;
    text[n] = 0;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void abort_ends_with_the_code_and_words(void **state)
{
    static const int codes[][2] = {{3, 3}, {255, 255}, {256, 1}, {0, 1}, {-1, 255}};
    char text[100];
    (void)state;
    assert_int_equal(var_open(), 0);
    for (int opened = 0; opened < 2; opened++) {
        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
            assert_int_equal(aborted(codes[i][0], text, sizeof text), codes[i][1]);
            assert_string_equal(text, "tern: the words\n");
        }
        if (!opened) assert_int_equal(proc_open(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alone_is_a_job_of_one, clean, clean),
        cmocka_unit_test_setup_teardown(what_was_asked_for_must_be_there, clean, clean),
        cmocka_unit_test_setup_teardown(missing_module_is_an_error, clean, clean),
        cmocka_unit_test_setup_teardown(cpus_follow_the_mask, clean, clean),
        cmocka_unit_test_setup_teardown(cpus_are_what_the_hook_says, clean, clean),
        cmocka_unit_test_setup_teardown(abort_ends_with_the_code_and_words, clean, clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
