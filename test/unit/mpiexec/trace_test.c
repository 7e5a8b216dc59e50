/*
 * trace_test.c - what --get-stack-traces says of the ranks of a node: who is asked, what is passed on, and when it is
 * over. Ranks are children of the test that sleep; debuggers are scripts of the test's in a PATH of its own.
 *
 * The linker puts __wrap_event_add in the place of event_add, so that the limit comes earlier.
 */
#include "mpiexec/trace.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, FIRST = 4 }; /* ranks FIRST .. of the job run on this node */

static char dir[] = "/tmp/tern-trace-XXXXXX"; /* the PATH of the script */
static struct job job;
static struct rank ranks[FIRST + RANKS];
static struct node nodes[2];
static int locals[RANKS];
static int ends;
static char *said; /* all lines, each with a newline */
static size_t said_n;
static bool soon; /* the limit comes at once */

int __real_event_add(struct event *e, const struct timeval *limit);
int __wrap_event_add(struct event *e, const struct timeval *limit);
int __wrap_event_add(struct event *e, const struct timeval *limit)
{
    static const struct timeval some_ms = {.tv_usec = 200000};
    if (limit) assert_int_equal(limit->tv_sec, TRACE_LIMIT_S);
    return __real_event_add(e, limit && soon ? &some_ms : limit);
}

static void hear(const char *line)
{
    size_t n = strlen(line);
    said = xrealloc(said, said_n + n + 2);
    memcpy(said + said_n, line, n);
    memcpy(said + said_n + n, "\n", 2);
    said_n += n + 1;
}

static void at_end(void)
{
    ends++;
    event_base_loopbreak(job.base);
}

/* ---- debuggers ---- */

static char *path_of(const char *name) { return xasprintf("%s/%s", dir, name); }

static void put_script(const char *name, const char *text)
{
    char *path = path_of(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
}

/* What the script needs besides, and no debugger that may be installed. */
static void put_tools(void)
{
    static const char *const tools[] = {"sed", "grep", "cat", "sleep"};
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        char *own = path_of(tools[i]), *theirs = xasprintf("/usr/bin/%s", tools[i]);
        if (access(theirs, X_OK)) {
            free(theirs);
            theirs = xasprintf("/bin/%s", tools[i]);
        }
        assert_int_equal(symlink(theirs, own), 0);
        free(own);
        free(theirs);
    }
    setenv("PATH", dir, 1);
}

static void no_debuggers(void)
{
    static const char *const names[] = {"gdb", "eu-stack", "gstack"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = path_of(names[i]);
        unlink(path);
        free(path);
    }
}

/* ---- ranks ---- */

/* A child that sleeps, with this name, and with a child of its own if `child` is its name. */
static pid_t start_rank(const char *name, const char *child)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        if (child && !fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_NAME, child);
            if (write(ready[1], "", 1) == 1)
                for (;;) pause();
        }
        if (child || write(ready[1], "", 1) == 1)
            for (;;) pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static int open_job(void **state)
{
    (void)state;
    ends = 0;
    soon = false;
    said_n = 0;
    hear("");
    words_to = hear;
    no_debuggers();
    for (int i = 0; i < RANKS; i++) {
        locals[i] = FIRST + i;
        ranks[FIRST + i] = (struct rank){.rank = FIRST + i, .node = 1, .local = i};
    }
    nodes[1] = (struct node){.nranks = RANKS, .ranks = locals};
    job = (struct job){
        .size = FIRST + RANKS, .ranks = ranks, .nodes = nodes, .nnodes = 2, .node = 1, .base = event_base_new()};
    ranks[FIRST].pid = start_rank("first", NULL);
    ranks[FIRST + 2].pid = start_rank("third", NULL); /* the second one has ended */
    alarm(60);
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    words_to = NULL;
    for (int i = 0; i < RANKS; i++) {
        if (!ranks[FIRST + i].pid) continue;
        kill(ranks[FIRST + i].pid, SIGKILL);
        waitpid(ranks[FIRST + i].pid, NULL, 0);
    }
    event_base_free(job.base);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue; /* scripts */
    return 0;
}

/* Traces the job until it is over; how long that took, in seconds. */
static double trace(void)
{
    double from = launch_now();
    trace_start(&job, at_end);
    if (!ends) event_base_dispatch(job.base);
    assert_int_equal(ends, 1);
    event_base_loop(job.base, EVLOOP_NONBLOCK); /* it is over once */
    assert_int_equal(ends, 1);
    return launch_now() - from;
}

static char *header(int rank, const char *name)
{
    return xasprintf("\nstack of rank %d, pid %d (%s):\n", rank, (int)ranks[rank].pid, name);
}

/* How often these words were said. */
static int count(const char *words)
{
    int n = 0;
    for (const char *at = said; (at = strstr(at, words)); at++) n++;
    return n;
}

static void assert_traced(int rank, const char *name, const char *line)
{
    char *head = header(rank, name), *at = strstr(said, head);
    if (!at || strncmp(at + strlen(head), line, strlen(line))) fail_msg("rank %d (%s): %s", rank, line, said);
    free(head);
}

/* ---- who is asked ---- */

static void each_rank_that_runs_is_traced(void **state)
{
    (void)state;
    put_script("gdb", "for last; do :; done; echo \"#0 gdb was asked of $last\"");
    trace();
    char *first = xasprintf("#0 gdb was asked of %d\n", (int)ranks[FIRST].pid);
    assert_traced(FIRST, "first", first);
    free(first);
    char *third = xasprintf("#0 gdb was asked of %d\n", (int)ranks[FIRST + 2].pid);
    assert_traced(FIRST + 2, "third", third);
    free(third);
    assert_int_equal(count("stack of rank"), 2);
}

static void the_next_is_asked_where_one_says_nothing(void **state)
{
    (void)state;
    put_script("gdb", "echo 'ptrace: not permitted'; exit 1");
    put_script("eu-stack", "exit 1");
    put_script("gstack", "echo '#0 from gstack'");
    trace();
    assert_traced(FIRST, "first", "#0 from gstack\n");
    assert_int_equal(count("not permitted"), 0);
    no_debuggers();
    put_script("eu-stack", "echo \"TID $2:\"; echo '#0 from eu-stack'");
    ends = 0;
    said_n = 0;
    hear("");
    trace();
    assert_int_equal(count("#0 from eu-stack"), 2);
    assert_int_equal(count("from gstack"), 0);
}

static void without_a_debugger_the_kernel_is(void **state)
{
    (void)state;
    trace();
    for (int rank = FIRST; rank <= FIRST + 2; rank += 2) { /* its main thread; a sanitizer may have made another */
        char *thread = xasprintf("Thread %d: S (sleeping), waits in ", (int)ranks[rank].pid);
        assert_traced(rank, rank == FIRST ? "first" : "third", thread);
        free(thread);
    }
}

/* A rank may be a script, and the program its child. */
static void children_of_ranks_are_traced(void **state)
{
    (void)state;
    put_script("gdb", "echo '#0 here'");
    ranks[FIRST + 1].pid = start_rank("script", "program");
    trace();
    assert_traced(FIRST + 1, "script", "#0 here\n");
    assert_int_equal(count("(program):\n#0 here\n"), 1);
    assert_int_equal(count("stack of rank 5,"), 2);
    assert_int_equal(count("stack of rank"), 4);
}

static void a_rank_that_has_just_ended_keeps_nothing_up(void **state)
{
    (void)state;
    kill(ranks[FIRST].pid, SIGKILL);
    waitpid(ranks[FIRST].pid, NULL, 0);
    put_script("gdb", "for last; do :; done; [ -e /proc/$last ] && echo '#0 alive'");
    trace();
    assert_int_equal(count("#0 alive"), 1);
    assert_traced(FIRST + 2, "third", "#0 alive\n");
    ranks[FIRST].pid = 0;
}

static void without_ranks_it_is_over(void **state)
{
    (void)state;
    close_job(state);
    for (int i = 0; i < RANKS; i++) ranks[FIRST + i].pid = 0;
    job.base = event_base_new();
    words_to = hear;
    trace();
    assert_string_equal(said, "\n");
}

/* ---- what is passed on ---- */

static void only_threads_and_frames_are_passed_on(void **state)
{
    (void)state;
    put_script("gdb",
               "echo '[New LWP 7]'; echo 'Thread 1 (LWP 7):'; echo '#0  poll () at x.c:3'; echo; echo warning >&2");
    trace();
    assert_traced(FIRST, "first", "Thread 1 (LWP 7):\n#0  poll () at x.c:3\n");
    assert_int_equal(count("New LWP") + count("warning"), 0);
    assert_null(strstr(said, "\n\n\n"));
}

/* In pieces, and all of it. */
static void a_long_line_is_passed_on_whole(void **state)
{
    enum { LONG = 3000 };
    (void)state;
    char frame[LONG + 1];
    memset(frame, 'x', LONG);
    frame[LONG] = 0;
    char *text = xasprintf("echo '#%s'; echo '#1 last'", frame);
    put_script("gdb", text);
    free(text);
    trace();
    long n = 0;
    for (const char *c = said; *c; c++) n += *c == 'x';
    assert_int_equal(n, 2 * LONG);
    assert_int_equal(count("#1 last\n"), 2);
}

/* ---- the end ---- */

static void a_debugger_that_hangs_is_ended_by_the_limit(void **state)
{
    (void)state;
    put_script("gdb", "exec sleep 1000");
    soon = true;
    double took = trace();
    assert_true(took < 30);
    assert_int_equal(count("stack traces are not complete after 60 s"), 1);
    assert_int_equal(count("stack of rank"), 1);
}

static void trace_stop_ends_it_early(void **state)
{
    (void)state;
    trace_stop(); /* nothing runs */
    put_script("gdb", "exec sleep 1000");
    double from = launch_now();
    trace_start(&job, at_end);
    while (!count("stack of rank")) event_base_loop(job.base, EVLOOP_ONCE);
    assert_int_equal(ends, 0);
    trace_stop();
    event_base_dispatch(job.base);
    assert_int_equal(ends, 1);
    assert_true(launch_now() - from < 30);
    assert_int_equal(count("not complete"), 0);
    trace_stop();
}

static void what_cannot_start_is_said(void **state)
{
    struct rlimit old, none;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    trace_start(&job, at_end);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(ends, 1);
    assert_string_equal(said, "\nno stack traces: Too many open files\n");
}

static int remove_tools(void **state)
{
    (void)state;
    const char *const names[] = {"sed", "grep", "cat", "sleep"};
    no_debuggers();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = path_of(names[i]);
        unlink(path);
        free(path);
    }
    free(said);
    return rmdir(dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_job, close_job)

int main(void)
{
    if (!mkdtemp(dir)) return 99;
    put_tools();
    const struct CMUnitTest tests[] = {
        TEST(each_rank_that_runs_is_traced),
        TEST(the_next_is_asked_where_one_says_nothing),
        TEST(without_a_debugger_the_kernel_is),
        TEST(children_of_ranks_are_traced),
        TEST(a_rank_that_has_just_ended_keeps_nothing_up),
        TEST(without_ranks_it_is_over),
        TEST(only_threads_and_frames_are_passed_on),
        TEST(a_long_line_is_passed_on_whole),
        TEST(a_debugger_that_hangs_is_ended_by_the_limit),
        TEST(trace_stop_ends_it_early),
        TEST(what_cannot_start_is_said),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, remove_tools);
}
