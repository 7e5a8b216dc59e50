/* start_attr_test.c - a program that is started apart has a process group of its own, and signals as it should find them. */
#include "base/start_attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The exit code of a shell, as another shell would say it. Until it is waited for, its group can be looked at. */
static int run(char *script, struct start_attr *s, bool *leads)
{
    char name[] = "sh", option[] = "-c", *argv[] = {name, option, script, NULL};
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, "/bin/sh", &s->files, &s->attr, argv, environ), 0);
    *leads = getpgid(pid) == pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A signal that was ignored and masked ends the program; one that is not in the set is ignored as before. */
static void signals(void **state)
{
    char on_usr1[] = "kill -USR1 $$; exit 3", on_usr2[] = "kill -USR2 $$; exit 4";
    struct start_attr s;
    sigset_t none, both, one;
    bool leads;
    (void)state;
    sigemptyset(&none);
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    one = both;
    sigaddset(&both, SIGUSR2);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    sigprocmask(SIG_BLOCK, &both, NULL);
    start_attr_open(&s, &none, &one);
    assert_int_equal(run(on_usr1, &s, &leads), 128 + SIGUSR1);
    assert_true(leads);
    assert_int_equal(run(on_usr2, &s, &leads), 4);
    start_attr_close(&s);
    start_attr_open_fresh(&s);
    assert_int_equal(run(on_usr2, &s, &leads), 128 + SIGUSR2);
    assert_true(leads);
    start_attr_close(&s);
}

/* The mask is the one that was given. */
static void mask(void **state)
{
    char on_usr1[] = "kill -USR1 $$; exit 3";
    struct start_attr s;
    sigset_t one, all;
    bool leads;
    (void)state;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigfillset(&all);
    start_attr_open(&s, &one, &all);
    assert_int_equal(run(on_usr1, &s, &leads), 3);
    start_attr_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signals), cmocka_unit_test(mask)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
