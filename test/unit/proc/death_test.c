/* death_test.c - a process is said to have ended when it has, and a failure waits for the launcher where a peer was lost. */
#include "base/clock.h"
#include "base/sleep.h"
#include "base/var.h"
#include "proc/job_block.h"
#include "proc/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static void a_zombie_and_its_pid_have_ended(void **state)
{
    siginfo_t info;
    (void)state;
    pid_t child = fork();
    if (!child) _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(proc_has_ended(child));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(proc_has_ended(child));
}

/* Programs do so (daemons), and have not ended. */
static void a_process_without_descriptors_lives(void **state)
{
    int ready[2];
    char byte;
    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        for (int fd = 0; fd < 1024; fd++) close(fd);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* its end is closed */
    assert_false(proc_has_ended(child));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    assert_false(proc_has_ended(getpid()));
    assert_false(proc_has_ended(0));
}

/* ---- this process is rank 0 of 2, and the test plays the launcher ---- */

static struct job_head *block;

static int open_job(void **state)
{
    uint64_t place, card, bytes = job_layout(2, &place, &card);
    int fd = memfd_create("block", 0);
    char text[16];
    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(block != MAP_FAILED);
    *block = (struct job_head){.magic = JOB_MAGIC, .version = JOB_VERSION, .bytes = bytes, .size = 2, .nodes = 1,
                               .local_size = 2, .usable_cpus = 2, .place_off = place, .card_off = card, .name = "job"};
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, "0", 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    int rc = var_open() || proc_open();
    close(fd);
    return rc;
}

static int close_job(void **state)
{
    (void)state;
    munmap(block, block->bytes);
    proc_close();
    var_close();
    return 0;
}

static uint64_t time_of_wait(void)
{
    uint64_t start = clock_ns();
    proc_await_end();
    return clock_ns() - start;
}

static void nothing_is_awaited_without_a_loss(void **state)
{
    (void)state;
    assert_true(time_of_wait() < 100 * MS);
}

static void the_end_of_one_that_finalised_is_not_awaited(void **state)
{
    (void)state;
    atomic_store(&job_cards(block)[1].life, JOB_LIFE_FINALISED);
    proc_note_loss(1);
    assert_true(time_of_wait() < 100 * MS);
}

/* The launcher may have noted the end before this process looks. */
static void one_that_finalised_and_then_ended_is_not_awaited(void **state)
{
    (void)state;
    atomic_store(&job_cards(block)[1].life, JOB_LIFE_FINALISED | JOB_ENDED);
    proc_note_loss(1);
    assert_true(time_of_wait() < 100 * MS);
}

static void *end_the_job(void *arg)
{
    (void)arg;
    usleep(50000);
    atomic_store(&block->aborted, 1 + 9);
    futex_wake_all(&block->aborted);
    return NULL;
}

static void the_word_of_the_launcher_ends_the_wait(void **state)
{
    pthread_t launcher;
    (void)state;
    proc_note_loss(1);
    assert_int_equal(pthread_create(&launcher, NULL, end_the_job, NULL), 0);
    proc_await_end();
    assert_int_equal(atomic_load(&block->aborted), 1 + 9);
    pthread_join(launcher, NULL);
    assert_true(time_of_wait() < 100 * MS);
}

/* The launcher tells of deaths when the job goes on: a failure by one is this process's own then. */
static void *tell_of_death(void *arg)
{
    (void)arg;
    usleep(50000);
    atomic_store(&job_died(block)[0], 1);
    atomic_store(&block->deaths, 1);
    futex_wake_all(&block->aborted);
    return NULL;
}

static void a_death_that_was_told_is_not_awaited(void **state)
{
    pthread_t launcher;
    (void)state;
    proc_note_loss(1);
    assert_int_equal(pthread_create(&launcher, NULL, tell_of_death, NULL), 0);
    assert_true(time_of_wait() < 1000 * MS);
    pthread_join(launcher, NULL);
    assert_int_equal(atomic_load(&block->aborted), 0);
    assert_true(time_of_wait() < 100 * MS);
}

static void the_launcher_s_list_is_seen(void **state)
{
    (void)state;
    struct proc_deaths d = proc_deaths();
    assert_int_equal(atomic_load(d.count), 0);
    atomic_store(&job_died(block)[0], 1);
    atomic_store(&block->deaths, 1);
    assert_int_equal(atomic_load(d.count), 1);
    assert_int_equal(atomic_load(&d.rank[0]), 1);
    proc_bell(4097, 77);
    assert_int_equal(atomic_load(&job_bells(block)[0].place), 4097);
    assert_int_equal(atomic_load(&job_bells(block)[0].name), 77);
}

/* ---- the end of a job in words ---- */

/* proc_abort in a child, whose stderr is that. */
static pid_t abort_into(int fd, int code)
{
    pid_t pid = fork();
    if (pid) return pid;
    dup2(fd, STDERR_FILENO);
    proc_abort(code, "the words");
}

static bool still_runs(pid_t pid)
{
    usleep(100000);
    return !waitpid(pid, NULL, WNOHANG);
}

/* What there is; the descriptor does not block. */
static size_t read_all(int fd, char *text, size_t room)
{
    size_t n = 0;
    for (ssize_t k; (k = read(fd, text + n, room - n)) > 0;) n += (size_t)k;
    return n;
}

static void ends_with(pid_t pid, int code)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

/* Regression: of two ranks that failed at the same time the second one's end had the first one killed before it had printed why. */
static void the_launcher_is_told_when_the_words_are_out(void **state)
{
    static char text[1 << 20], page[4096];
    size_t n = 0, full;
    int fd[2];
    (void)state;
    assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
    while (write(fd[1], page, sizeof page) > 0) {
    }
    fcntl(fd[1], F_SETFL, 0);
    pid_t first = abort_into(fd[1], 5);
    while (!atomic_load(&block->aborting)) usleep(1000);
    assert_true(still_runs(first));
    assert_int_equal(atomic_load(&block->aborted), 0);
    pid_t second = abort_into(fd[1], 6);
    assert_true(still_runs(second));
    full = n = read_all(fd[0], text, sizeof text);
    ends_with(first, 5);
    ends_with(second, 6);
    assert_int_equal(atomic_load(&block->aborted), 1 + 5);
    n += read_all(fd[0], text + n, sizeof text - 1 - n);
    close(fd[0]);
    close(fd[1]);
    full -= full % sizeof page; /* in case that some of the words came with them */
    assert_true(full > 0);
    assert_string_equal(text + full, "tern: the words\n");
}

/* It may have died: the next one that aborts says why then, and ends the job. */
static void who_never_prints_is_not_waited_for_longer_than_for_a_while(void **state)
{
    char text[100] = "";
    uint64_t start = clock_ns();
    int fd[2];
    (void)state;
    assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
    atomic_store(&block->aborting, 1);
    ends_with(abort_into(fd[1], 7), 7);
    assert_in_range(clock_ns() - start, 500 * MS, 30000 * MS);
    assert_int_equal(atomic_load(&block->aborted), 1 + 7);
    read_all(fd[0], text, sizeof text - 1);
    assert_string_equal(text, "tern: the words\n");
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zombie_and_its_pid_have_ended),
        cmocka_unit_test(a_process_without_descriptors_lives),
        cmocka_unit_test_setup_teardown(nothing_is_awaited_without_a_loss, open_job, close_job),
        cmocka_unit_test_setup_teardown(the_end_of_one_that_finalised_is_not_awaited, open_job, close_job),
        cmocka_unit_test_setup_teardown(one_that_finalised_and_then_ended_is_not_awaited, open_job, close_job),
        cmocka_unit_test_setup_teardown(the_word_of_the_launcher_ends_the_wait, open_job, close_job),
        cmocka_unit_test_setup_teardown(a_death_that_was_told_is_not_awaited, open_job, close_job),
        cmocka_unit_test_setup_teardown(the_launcher_s_list_is_seen, open_job, close_job),
        cmocka_unit_test_setup_teardown(the_launcher_is_told_when_the_words_are_out, open_job, close_job),
        cmocka_unit_test_setup_teardown(who_never_prints_is_not_waited_for_longer_than_for_a_while, open_job, close_job),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
