/*
 * pmix_test.c - what the PMIx module makes of what a launcher says, or does not say: a launcher that this test plays,
 * by functions that take the place of the library's.
 */
#include "base/clock.h"
#include "base/err.h"
#include "proc/pmix/pmix_module.h"
#include "proc/proc.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the rest of the module ---- */

int (*pmix_fail)(int code, const char *fmt, ...) = err_set;
pmix_proc_t pmix_me = {.nspace = "own", .rank = 0};
uint32_t pmix_job_size = 4;
bool pmix_by_tern(void) { return true; }
int pmix_own_secret(uint8_t key[32]) { return key ? TERN_ERR_INTERN : 0; }
int pmix_own_card(uint32_t rank, void *buf, size_t cap) { return rank || buf || cap ? TERN_ERR_INTERN : 0; }
int pmix_take_card(pmix_value_t *v, const pmix_proc_t *p, void *buf, size_t cap)
{
    return v && p && buf && cap ? TERN_ERR_INTERN : 0;
}
bool pmix_to_u32(const pmix_value_t *v, uint32_t *n) { return v && n; }

/* ---- the launcher ---- */

#define GETS_MAX 8
static struct {
    pmix_notification_fn_t handler;
    int registered;
    bool initialised;
    int gets, answers_at;       /* the question that has an answer; 0: none */
    pmix_status_t otherwise;    /* PMIX_SUCCESS: nothing is said */
    pmix_value_cbfunc_t get_cb; /* of the questions without an answer */
    void *get_arg[GETS_MAX];
    int looks, waits, waits_without_end;
    pmix_status_t look;
    int look_found_at;
    pmix_status_t table;
    _Atomic(pmix_info_cbfunc_t) slow_cb; /* of the job "slow" */
    void *slow_arg;
} launcher;
static bool no_memory; /* malloc fails */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return no_memory ? NULL : __real_malloc(n); }

int PMIx_Initialized(void) { return launcher.initialised; }

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t n, pmix_info_t info[], size_t ninfo,
                                          pmix_notification_fn_t handler, pmix_hdlr_reg_cbfunc_t done, void *arg)
{
    (void)codes, (void)n, (void)info, (void)ninfo;
    launcher.handler = handler;
    launcher.registered++;
    done(PMIX_SUCCESS, 1, arg);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get_nb(const pmix_proc_t *p, const char key[], const pmix_info_t info[], size_t ninfo,
                          pmix_value_cbfunc_t done, void *arg)
{
    pmix_value_t v = {.type = PMIX_UINT32, .data.uint32 = 7};
    (void)p, (void)key, (void)info, (void)ninfo;
    if (++launcher.gets == launcher.answers_at) {
        done(PMIX_SUCCESS, &v, arg);
    } else if (launcher.otherwise != PMIX_SUCCESS) {
        done(launcher.otherwise, NULL, arg);
    } else {
        launcher.get_cb = done;
        assert_true(launcher.gets <= GETS_MAX);
        launcher.get_arg[launcher.gets - 1] = arg;
    }
    return PMIX_SUCCESS;
}

/* It waits as it is told, and says then that it has found nothing. */
pmix_status_t PMIx_Lookup(pmix_pdata_t data[], size_t n, const pmix_info_t info[], size_t ninfo)
{
    bool wait = false;
    int seconds = 0;
    (void)n;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) wait = true;
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) seconds = info[i].value.data.integer;
    }
    launcher.waits += wait && seconds;
    launcher.waits_without_end += wait && !seconds;
    if (wait) sleep((unsigned)seconds);
    if (++launcher.looks != launcher.look_found_at) return launcher.look;
    PMIX_VALUE_LOAD(&data[0].value, "here", PMIX_STRING);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Query_info_nb(pmix_query_t queries[], size_t n, pmix_info_cbfunc_t done, void *arg)
{
    (void)n;
    if (!strcmp(queries[0].qualifiers[0].value.data.string, "slow")) {
        launcher.slow_arg = arg;
        launcher.slow_cb = done;
    } else {
        done(launcher.table, NULL, 0, arg, NULL, NULL);
    }
    return PMIX_SUCCESS;
}

/* An event; exit code -1: none is told. */
static void tell(pmix_status_t event, const char *job, uint32_t rank, int code)
{
    pmix_proc_t p;
    pmix_info_t info;
    PMIX_PROC_LOAD(&p, job, rank);
    PMIX_INFO_LOAD(&info, PMIX_EXIT_CODE, &code, PMIX_INT);
    launcher.handler(1, event, &p, &info, code >= 0, NULL, 0, NULL, NULL);
}

static int join(void **state)
{
    (void)state;
    memset((void *)&launcher, 0, sizeof launcher);
    pmix_events_join();
    return 0;
}

static int leave(void **state)
{
    (void)state;
    pmix_events_part();
    pmix_events_close();
    return 0;
}

static pmix_status_t get(const char *job, uint32_t rank)
{
    pmix_proc_t p;
    pmix_value_t v = {0};
    PMIX_PROC_LOAD(&p, job, rank);
    pmix_status_t status = pmix_get_put(&p, "key", &v);
    if (status == PMIX_SUCCESS) assert_true(v.type == PMIX_UINT32 && v.data.uint32 == 7);
    return status;
}

static uint64_t ms_since(uint64_t start) { return (clock_ns() - start) / 1000000; }

/* ---- questions ---- */

static void a_process_that_has_put_nothing_yet_is_asked_for_again(void **state)
{
    (void)state;
    launcher.otherwise = PMIX_ERR_TIMEOUT; /* as libpmix 4.2 says after 2 s */
    launcher.answers_at = 4;
    assert_int_equal(get("own", 1), PMIX_SUCCESS);
    assert_int_equal(launcher.gets, 4);
    launcher.otherwise = PMIX_ERR_NOT_FOUND;
    launcher.answers_at = 7;
    assert_int_equal(get("own", 1), PMIX_SUCCESS);
    assert_int_equal(launcher.gets, 7);
}

static void a_process_of_a_job_that_has_ended_is_not_asked_for_again(void **state)
{
    (void)state;
    launcher.otherwise = PMIX_ERR_NOT_FOUND;
    assert_int_equal(get("other", 1), PMIX_ERR_NOT_FOUND);
    assert_int_equal(launcher.gets, 1);
}

static void *tell_an_end(void *arg)
{
    usleep(100000);
    tell(PMIX_ERR_PROC_TERM_WO_SYNC, "own", 2, -1);
    return arg;
}

static void the_end_of_a_process_ends_the_wait_for_what_it_would_put(void **state)
{
    pthread_t thread;
    uint64_t start = clock_ns();
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, tell_an_end, NULL), 0);
    assert_int_equal(get("own", 2), PMIX_ERR_PROC_TERM_WO_SYNC);
    pthread_join(thread, NULL);
    assert_true(ms_since(start) < 30000);
    assert_non_null(launcher.get_cb);
    for (int i = 0; i < launcher.gets; i++) /* frees the questions that were left behind */
        launcher.get_cb(PMIX_ERR_NOT_FOUND, NULL, launcher.get_arg[i]);
    assert_int_equal(atomic_load(pmix_deaths().count), 0);       /* it never was a process of MPI */
}

/* ---- names ---- */

static void a_wait_for_a_name_never_becomes_one_without_end(void **state)
{
    char value[64];
    uint64_t start = clock_ns();
    (void)state;
    launcher.look = PMIX_ERR_NOT_FOUND;
    assert_int_equal(pmix_dynamic.lookup("name", 1100, value, sizeof value), TERN_ERR_NOT_FOUND);
    assert_non_null(strstr(err_words(), "within 1100 ms"));
    assert_true(ms_since(start) >= 1100);
    assert_int_equal(launcher.waits, 1); /* the second as a whole */
    assert_int_equal(launcher.waits_without_end, 0);
    assert_true(launcher.looks > 2); /* and what is left of the time */
}

static void a_wait_without_end_goes_on_when_the_launcher_gives_up(void **state)
{
    char value[64];
    (void)state;
    launcher.look = PMIX_ERR_TIMEOUT;
    launcher.look_found_at = 3;
    assert_int_equal(pmix_dynamic.lookup("name", -1, value, sizeof value), 0);
    assert_string_equal(value, "here");
}

/* ---- events ---- */

static bool is_readable(void)
{
    struct proc_signal s;
    pmix_event_signal(&s);
    struct pollfd p = {.fd = s.fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void *watch_slow(void *arg)
{
    *(int *)arg = pmix_watch("slow");
    return NULL;
}

static void one_watch_does_not_wait_for_the_answer_of_another(void **state)
{
    pthread_t thread;
    int slow = 1;
    uint64_t start = clock_ns();
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, watch_slow, &slow), 0);
    while (!launcher.slow_cb) usleep(1000);
    assert_int_equal(pmix_watch("quick"), 0);
    launcher.slow_cb(PMIX_ERR_NOT_SUPPORTED, NULL, 0, launcher.slow_arg, NULL, NULL);
    pthread_join(thread, NULL);
    assert_true(ms_since(start) < 9000);
    assert_int_equal(slow, TERN_ERR_UNSUPPORTED); /* its own answer */
}

static void a_watch_that_fails_says_so_and_names_the_job(void **state)
{
    (void)state;
    launcher.table = PMIX_ERR_UNREACH;
    assert_int_equal(pmix_watch("other"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "'other'"));
    assert_int_equal(pmix_unwatch("other"), TERN_ERR_NOT_FOUND);
}

static void of_a_job_that_is_not_known_its_end_is_told(void **state)
{
    struct proc_event e;
    (void)state;
    launcher.table = PMIX_ERR_NOT_FOUND;
    assert_int_equal(pmix_watch("other"), 0);
    assert_int_equal(pmix_event(&e), 1);
    assert_true(e.ended && !strcmp(e.job, "other"));
}

static void no_event_comes_after_unwatch(void **state)
{
    struct proc_event e;
    (void)state;
    assert_int_equal(pmix_watch("other"), 0);
    assert_int_equal(pmix_watch("third"), 0);
    tell(PMIX_ERR_EXIT_NONZERO_TERM, "other", 1, 3);
    tell(PMIX_ERR_EXIT_NONZERO_TERM, "third", 1, 4);
    tell(PMIX_ERR_EXIT_NONZERO_TERM, "other", 2, 3);
    assert_int_equal(pmix_unwatch("other"), 0);
    assert_int_equal(pmix_event(&e), 1);
    assert_string_equal(e.job, "third");
    assert_int_equal(pmix_event(&e), 0);
    tell(PMIX_ERR_EXIT_NONZERO_TERM, "third", 2, 4);
    assert_true(is_readable());
    assert_int_equal(pmix_unwatch("third"), 0);
    assert_false(is_readable());
}

static void an_event_that_is_lost_is_told(void **state)
{
    struct proc_event e;
    (void)state;
    assert_int_equal(pmix_watch("other"), 0);
    no_memory = true;
    tell(PMIX_EVENT_JOB_END, "other", PMIX_RANK_WILDCARD, -1);
    no_memory = false;
    assert_true(is_readable());
    assert_int_equal(pmix_event(&e), TERN_ERR_NOMEM);
    assert_int_equal(pmix_event(&e), 0);
}

static void the_end_of_the_launcher_is_told(void **state)
{
    struct proc_event e;
    (void)state;
    assert_int_equal(pmix_watch("other"), 0);
    tell(PMIX_ERR_LOST_CONNECTION, "own", 0, -1);
    assert_true(is_readable());
    assert_int_equal(pmix_event(&e), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "launcher has ended"));
}

/* The program uses PMIx as well, so the library's thread and the handler live on. */
static void an_event_after_the_end_is_nobodys(void **state)
{
    struct proc_event e;
    (void)state;
    assert_int_equal(pmix_watch("other"), 0);
    launcher.initialised = true;
    pmix_events_part();
    pmix_events_close();
    tell(PMIX_ERR_PROC_ABORTED, "own", 1, -1);
    tell(PMIX_ERR_EXIT_NONZERO_TERM, "other", 1, 3);
    assert_null(pmix_deaths().count);
    assert_int_equal(pmix_event(&e), 0);
    pmix_events_join();
    assert_int_equal(launcher.registered, 1); /* not twice */
    tell(PMIX_ERR_PROC_ABORTED, "own", 1, -1);
    assert_int_equal(atomic_load(pmix_deaths().count), 1);
    launcher.initialised = false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, join, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_that_has_put_nothing_yet_is_asked_for_again),
        TEST(a_process_of_a_job_that_has_ended_is_not_asked_for_again),
        TEST(the_end_of_a_process_ends_the_wait_for_what_it_would_put),
        TEST(a_wait_for_a_name_never_becomes_one_without_end),
        TEST(a_wait_without_end_goes_on_when_the_launcher_gives_up),
        TEST(one_watch_does_not_wait_for_the_answer_of_another),
        TEST(a_watch_that_fails_says_so_and_names_the_job),
        TEST(of_a_job_that_is_not_known_its_end_is_told),
        TEST(no_event_comes_after_unwatch),
        TEST(an_event_that_is_lost_is_told),
        TEST(the_end_of_the_launcher_is_told),
        TEST(an_event_after_the_end_is_nobodys),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
