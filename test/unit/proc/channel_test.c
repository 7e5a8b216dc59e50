/* channel_test.c - questions to a launcher that the test plays: what it answers is checked, and no answer is an error.
 */
#include "proc/channel.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>

/* The linker puts __wrap_malloc in the place of malloc. */
static _Thread_local bool out_of_memory;
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return out_of_memory ? NULL : __real_malloc(n); }

static struct job_head job;
static int listener;

/* What the launcher does with the next question. */
static struct {
    struct ask_head head; /* of the answer; its id is added to that of the question */
    uint8_t bytes[256];
    size_t n; /* that are sent */
    bool silent;
} plan;

static int set_up(void **state)
{
    struct sockaddr_un a;
    (void)state;
    memset(&job, 0, sizeof job);
    for (size_t i = 0; i < sizeof job.secret; i++) job.secret[i] = (uint8_t)(i + 1);
    if (getrandom(&job.socket_id, sizeof job.socket_id, 0) != sizeof job.socket_id) return 1;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&a, ask_address(&a, job.socket_id)) || listen(listener, 8)) return 1;
    atomic_store(&job.socket_state, JOB_SOCKET_OPEN);
    channel_open(&job, 5);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    channel_close();
    close(listener);
    return 0;
}

static bool get(int fd, struct ask_head *h, uint8_t *bytes, size_t room)
{
    if (recv(fd, h, sizeof *h, MSG_WAITALL) != sizeof *h) return false;
    *h = ask_swap(*h);
    return h->length <= room && (!h->length || recv(fd, bytes, h->length, MSG_WAITALL) == (ssize_t)h->length);
}

/* Takes one connection; answers every question on it by the plan. */
static void *serve(void *arg)
{
    uint8_t bytes[4096];
    struct ask_head h;
    int fd = accept(listener, NULL, NULL);
    bool good = get(fd, &h, bytes, sizeof bytes) && h.type == ASK_HELLO && h.length == sizeof job.secret &&
                !memcmp(bytes, job.secret, sizeof job.secret);
    while (good && get(fd, &h, bytes, sizeof bytes)) {
        struct ask_head answer = plan.head;
        if (plan.silent) continue;
        good = h.rank == 5;
        answer.id += h.id;
        answer = ask_swap(answer);
        (void)!send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
        (void)!send(fd, plan.bytes, plan.n, MSG_NOSIGNAL);
        if (plan.n < plan.head.length) break; /* it ends in the middle */
    }
    close(fd);
    return good ? arg : NULL;
}

static int ask(int wait_ms, struct channel_answer *a)
{
    pthread_t t;
    void *good = NULL;
    uint8_t room[64];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    ask_put_text(&q, "what?");
    assert_int_equal(pthread_create(&t, NULL, serve, &plan), 0);
    err_clear();
    int rc = channel_ask(ASK_LOOKUP, &q, wait_ms, a);
    channel_close(); /* ends the thread */
    channel_open(&job, 5);
    pthread_join(t, &good);
    assert_non_null(good);
    return rc;
}

static void put_words(const char *words)
{
    struct ask_out o = {.bytes = plan.bytes, .room = sizeof plan.bytes};
    ask_put_text(&o, words);
    plan.n = plan.head.length = (uint32_t)o.n;
}

static void answers_are_taken(void **state)
{
    struct channel_answer a;
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.head.type = ASK_ANSWER;
    put_words("that");
    assert_int_equal(ask(-1, &a), 0);
    assert_int_equal(a.n, 9);
    assert_memory_equal(a.bytes + 4, "that", 5);
    free(a.bytes);
}

static void refusals_keep_their_words(void **state)
{
    struct channel_answer a;
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .status = TERN_ERR_NOT_FOUND};
    put_words("no such thing");
    assert_int_equal(ask(-1, &a), TERN_ERR_NOT_FOUND);
    assert_string_equal(err_words(), "no such thing");
    assert_null(a.bytes);
}

static void fails(const char *words, int code)
{
    struct channel_answer a;
    int rc = ask(5000, &a);
    if (rc != code || !strstr(err_words(), words))
        fail_msg("code %d, '%s' instead of %d, '%s'", rc, err_words(), code, words);
    assert_null(a.bytes);
}

static void what_is_no_answer_is_refused(void **state)
{
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.head.type = ASK_LOOKUP;
    fails("answer is none", TERN_ERR_SYSTEM);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .id = 1};
    fails("answer is none", TERN_ERR_SYSTEM);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .length = ASK_BYTES_MAX + 1};
    fails("answer is none", TERN_ERR_SYSTEM);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .status = TERN_ERR_LAST};
    put_words("a code that is none");
    fails("answer is none", TERN_ERR_SYSTEM);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .status = TERN_ERR_ARG}; /* no words */
    plan.n = 0;
    fails("answer is none", TERN_ERR_SYSTEM);
    plan.head = (struct ask_head){.type = ASK_ANSWER, .length = 100}; /* and no more */
    plan.n = 50;
    fails("closed its connection", TERN_ERR_PEER);
}

static void a_limit_of_time_holds(void **state)
{
    struct channel_answer a;
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.silent = true;
    assert_int_equal(ask(50, &a), TERN_AGAIN);
}

static void no_socket_is_said(void **state)
{
    struct channel_answer a;
    (void)state;
    atomic_store(&job.socket_state, JOB_SOCKET_COMING);
    assert_int_equal(channel_ask(ASK_LOOK, &(struct ask_out){0}, 50, &a), TERN_AGAIN);
    atomic_store(&job.socket_state, JOB_SOCKET_CLOSED);
    assert_int_equal(channel_ask(ASK_LOOK, &(struct ask_out){0}, -1, &a), TERN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err_words(), "takes no questions"));
    atomic_store(&job.socket_state, JOB_SOCKET_OPEN);
    job.socket_id++;
    assert_int_equal(channel_ask(ASK_LOOK, &(struct ask_out){0}, -1, &a), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "cannot reach the launcher"));
}

/* Waits for an answer to a posted question. */
static int collect(uint32_t *id, struct channel_answer *a)
{
    struct pollfd p = {.fd = channel_post_fd(), .events = POLLIN};
    int status = 1;
    assert_int_equal(poll(&p, 1, 10000), 1);
    int rc = channel_collect(id, &status, a);
    if (rc > 0) assert_int_equal(status, 0);
    return rc;
}

/* Without memory for it an answer stays where it is; so do the ones behind it. */
static void answers_wait_for_memory(void **state)
{
    pthread_t t;
    struct channel_answer a;
    uint8_t room[64];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    void *good = NULL;
    uint32_t id = 0;
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.head.type = ASK_ANSWER;
    put_words("that");
    ask_put_text(&q, "what?");
    assert_int_equal(pthread_create(&t, NULL, serve, &plan), 0);
    for (uint32_t i = 7; i < 9; i++) assert_int_equal(channel_post(ASK_LOOKUP, &q, i), 0);
    for (uint32_t i = 7; i < 9; i++) {
        for (int tries = 0; tries < 2; tries++) {
            out_of_memory = true;
            int rc = collect(&id, &a);
            out_of_memory = false;
            assert_int_equal(rc, TERN_ERR_NOMEM);
            assert_null(a.bytes);
        }
        assert_int_equal(collect(&id, &a), 1);
        assert_int_equal(id, i);
        assert_int_equal(a.n, 9);
        assert_memory_equal(a.bytes + 4, "that", 5);
        free(a.bytes);
    }
    channel_close(); /* ends the thread */
    pthread_join(t, &good);
    assert_non_null(good);
}

static void texts_are_checked(void **state)
{
    static const uint8_t unended[] = {0, 0, 0, 2, 'a', 'b'}, early[] = {0, 0, 0, 3, 'a', 0, 0}, none[] = {0, 0, 0, 0},
                         beyond[] = {0, 0, 0, 9, 'a', 0}, good[] = {0, 0, 0, 2, 'a', 0};
    (void)state;
    const struct {
        const uint8_t *bytes;
        size_t n;
    } bad[] = {{unended, 6}, {early, 7}, {none, 4}, {beyond, 6}, {good, 3}, {good, 5}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct ask_in in = ask_of(bad[i].bytes, bad[i].n);
        assert_string_equal(ask_get_text(&in, 100), "");
        assert_true(in.bad && !ask_done(&in));
        assert_int_equal(ask_get32(&in), 0);
    }
    struct ask_in in = ask_of(good, 6), tight = in;
    assert_string_equal(ask_get_text(&in, 2), "a");
    assert_true(ask_done(&in));
    ask_get_text(&tight, 1);
    assert_true(tight.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_keep_their_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_answer_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_limit_of_time_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_wait_for_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_socket_is_said, set_up, tear_down),
        cmocka_unit_test(texts_are_checked),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
