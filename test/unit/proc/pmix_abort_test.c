/*
 * pmix_abort_test.c - the end of a job by PMIx (proc_abort): the words are said before the launcher is told, where it says
 * nothing and may kill the process at once, as Slurm does.
 */
#include "proc/job_block.h"
#include "proc/proc.h"

#include <pmix.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct proc_boot tern_proc_pmix;

/* A launcher that ends the job before the call returns. */
pmix_status_t PMIx_Abort(int code, const char words[], pmix_proc_t procs[], size_t n)
{
    (void)procs, (void)n;
    dprintf(STDERR_FILENO, "told: %d, %s\n", code, words);
    _exit(code);
}

/* What a process prints that ends its job. */
static const char *ends(void)
{
    static char text[100];
    int fd[2], status = 0;
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        dup2(fd[1], STDERR_FILENO);
        proc_abort_by(&tern_proc_pmix, 7, "the words");
    }
    close(fd[1]);
    size_t n = 0;
    for (ssize_t k; n < sizeof text - 1 && (k = read(fd[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)k;
    text[n] = 0;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return text;
}

static void the_words_come_before_the_launcher_is_told(void **state)
{
    (void)state;
    unsetenv(JOB_ENV_RANK);
    assert_string_equal(ends(), "tern: the words\ntold: 7, the words\n");
}

static void tern_s_own_launcher_says_them(void **state)
{
    (void)state;
    setenv(JOB_ENV_RANK, "0", 1);
    assert_string_equal(ends(), "told: 7, the words\n");
    unsetenv(JOB_ENV_RANK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_come_before_the_launcher_is_told),
        cmocka_unit_test(tern_s_own_launcher_says_them),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
