/* watcher_test.c - ends of processes are told once, by a thread that sleeps meanwhile, whether there are descriptors or not. */
#include "base/clock.h"
#include "proc/watcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int rings;
static void ring(void) { atomic_fetch_add(&rings, 1); }

static int start(void **state)
{
    (void)state;
    atomic_store(&rings, 0);
    watcher_ring_by(ring);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    watcher_close();
    watcher_ring_by(NULL);
    return 0;
}

static pid_t sleeper(void)
{
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
        for (;;) pause();
    }
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* True: it is told within ten seconds. */
static bool told(uint32_t *index)
{
    for (int i = 0; i < 10000; i++) {
        if (watcher_next(index)) return true;
        usleep(1000);
    }
    return false;
}

static void an_end_is_told_once(void **state)
{
    uint32_t index;
    pid_t a = sleeper(), b = sleeper();
    (void)state;
    assert_int_equal(watcher_watch(3, a), 0);
    assert_int_equal(watcher_watch(5, b), 0);
    assert_int_equal(watcher_watch(5, a), 0); /* nothing: it is watched already */
    usleep(20000);
    assert_false(watcher_next(&index));
    assert_int_equal(atomic_load(&rings), 0);
    end(b);
    assert_true(told(&index));
    assert_int_equal(index, 5);
    while (atomic_load(&rings) < 1) usleep(1000); /* it rings when the end is in the list */
    end(a);
    assert_true(told(&index));
    assert_int_equal(index, 3);
    assert_false(watcher_next(&index));
}

static void one_that_has_ended_is_told_at_once(void **state)
{
    siginfo_t info;
    uint32_t index;
    pid_t gone = sleeper(), zombie = fork();
    (void)state;
    if (!zombie) _exit(0);
    end(gone);
    assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(watcher_watch(1, gone), 0);
    assert_true(watcher_next(&index));
    assert_int_equal(index, 1);
    assert_int_equal(watcher_watch(2, zombie), 0);
    assert_true(told(&index));
    assert_int_equal(index, 2);
    waitpid(zombie, NULL, 0);
}

static void one_that_is_forgotten_is_not_told(void **state)
{
    uint32_t index;
    pid_t a = sleeper(), b = sleeper();
    (void)state;
    assert_int_equal(watcher_watch(1, a), 0);
    watcher_forget(1);
    watcher_forget(7);
    end(a);
    usleep(20000);
    assert_false(watcher_next(&index));
    assert_int_equal(watcher_watch(1, b), 0); /* another process with that index */
    end(b);
    assert_true(told(&index));
    assert_int_equal(index, 1);
}

static void what_the_caller_has_found_is_told_once(void **state)
{
    uint32_t index;
    pid_t a = sleeper();
    (void)state;
    assert_int_equal(watcher_watch(1, a), 0);
    watcher_note(1);
    watcher_note(9); /* not watched */
    watcher_note(9);
    assert_int_equal(atomic_load(&rings), 2);
    assert_true(watcher_next(&index));
    assert_int_equal(index, 1);
    assert_true(watcher_next(&index));
    assert_int_equal(index, 9);
    end(a);
    usleep(20000);
    assert_false(watcher_next(&index));
    assert_int_equal(atomic_load(&rings), 2);
}

/* No more descriptors: the thread looks. */
static void ends_are_told_without_descriptors(void **state)
{
    struct rlimit was, none;
    uint32_t index;
    pid_t a = sleeper(), b = sleeper();
    (void)state;
    assert_int_equal(watcher_watch(1, a), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){3, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(watcher_watch(2, b), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    uint64_t start_ns = clock_ns();
    end(b);
    assert_true(told(&index));
    assert_int_equal(index, 2);
    assert_true(clock_ns() - start_ns < UINT64_C(5000000000));
    end(a);
    assert_true(told(&index));
    assert_int_equal(index, 1);
}

/* Without any, there is no thread: whoever waits for long looks. */
static void ends_are_found_without_a_thread(void **state)
{
    struct rlimit was, none;
    uint32_t index;
    pid_t a = sleeper();
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){3, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = watcher_watch(1, a);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_true(rc < 0);
    watcher_look();
    assert_false(watcher_next(&index));
    end(a);
    watcher_look();
    assert_true(watcher_next(&index));
    assert_int_equal(index, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_is_told_once, start, finish),
        cmocka_unit_test_setup_teardown(one_that_has_ended_is_told_at_once, start, finish),
        cmocka_unit_test_setup_teardown(one_that_is_forgotten_is_not_told, start, finish),
        cmocka_unit_test_setup_teardown(what_the_caller_has_found_is_told_once, start, finish),
        cmocka_unit_test_setup_teardown(ends_are_told_without_descriptors, start, finish),
        cmocka_unit_test_setup_teardown(ends_are_found_without_a_thread, start, finish),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
