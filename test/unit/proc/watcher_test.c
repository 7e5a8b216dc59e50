/* watcher_test.c - the end of a process that is watched is told once and wakes this one; the others are not told of. */
#include "proc/watcher.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t woken;

static void wake(void) { sem_post(&woken); }

static pid_t child(void)
{
    pid_t pid = fork();
    while (!pid) pause();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_death_is_told_and_wakes(void **state)
{
    pid_t one = child(), two = child();
    (void)state;
    struct proc_deaths d = watcher_open(4);
    watcher_wakes(wake);
    watcher_add(1, one);
    watcher_add(3, two);
    assert_int_equal(atomic_load(d.count), 0);
    end(two);
    sem_wait(&woken); /* without end if it is not told: the alarm ends the test */
    assert_int_equal(atomic_load(d.count), 1);
    assert_int_equal(atomic_load(&d.rank[0]), 3);
    watcher_add(2, two); /* it has ended already */
    assert_int_equal(atomic_load(d.count), 2);
    assert_int_equal(atomic_load(&d.rank[1]), 2);
    watcher_close();
    end(one);
    assert_int_equal(sem_trywait(&woken), -1);
    assert_int_equal(atomic_load(d.count), 0);
}

/* Where the launcher tells, nobody opens the list. */
static void nothing_is_watched_without_a_list(void **state)
{
    pid_t one = child();
    (void)state;
    watcher_wakes(wake);
    watcher_add(1, one);
    end(one);
    watcher_close();
    assert_int_equal(sem_trywait(&woken), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_watched_without_a_list),
        cmocka_unit_test(a_death_is_told_and_wakes),
        cmocka_unit_test(a_death_is_told_and_wakes), /* again, after the end */
    };
    alarm(60);
    sem_init(&woken, 0, 0);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
