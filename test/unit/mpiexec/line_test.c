/* line_test.c - frames by a Unix socket, and questions along it; the test plays the other side. */
#include "base/err.h"
#include "mpiexec/asks.h"
#include "mpiexec/line.h"
#include "mpiexec/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

tree_handler_fn tree_handlers[TREE_TYPES];

static int sent_to_nodes;
static uint32_t sent_id; /* of the question that was sent last */

void tree_send(int to, enum tree_type type, const void *bytes, size_t n)
{
    struct ask_head h;
    (void)to, (void)type;
    assert_true(n >= sizeof h);
    memcpy(&h, bytes, sizeof h);
    sent_id = ask_swap(h).id;
    sent_to_nodes++;
}

static struct event_base *base;
static int other; /* our end */
static struct line *line;
static int taken, cancelled, rings;
static struct asker asker; /* of the question that came last */

static void take(const struct asker *a, enum ask_type type, const void *bytes, size_t n)
{
    (void)type, (void)bytes, (void)n;
    asker = *a;
    taken++;
}

static void cancel(const struct asker *a)
{
    (void)a;
    cancelled++;
}

static void ring(void) { rings++; }
static const struct asks_calls asks = {take, cancel, ring};

static void hear(struct line *l, const struct ask_head *h, const void *bytes)
{
    asks_take(l, h, h->type == ASK_WATCH, bytes);
}

static void gone(struct line *l)
{
    asks_lose(l);
    line = NULL;
}

static const struct line_calls calls = {hear, gone};

static int set_up(void **state)
{
    int pair[2];
    (void)state;
    base = event_base_new();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    other = pair[0];
    line = line_open(base, pair[1], &calls, 0);
    asks_open(&asks);
    taken = cancelled = rings = sent_to_nodes = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (line) line_close(line);
    close(other);
    event_base_free(base);
    return 0;
}

static void turn(void) { event_base_loop(base, EVLOOP_NONBLOCK); }

static void say(struct ask_head h, const void *bytes, size_t n)
{
    h = ask_swap(h);
    assert_int_equal(write(other, &h, sizeof h), sizeof h);
    if (n) assert_int_equal(write(other, bytes, n), n);
    turn();
}

static struct ask_head hear_one(void *bytes, size_t room)
{
    struct ask_head h;
    turn();
    assert_int_equal(recv(other, &h, sizeof h, MSG_DONTWAIT), sizeof h);
    h = ask_swap(h);
    assert_true(h.length <= room);
    if (h.length) assert_int_equal(recv(other, bytes, h.length, MSG_WAITALL), h.length);
    return h;
}

static bool is_closed(void)
{
    char byte;
    turn();
    return recv(other, &byte, 1, MSG_DONTWAIT) == 0;
}

/* In pieces, as a stream may bring them. */
static void frames_are_put_together(void **state)
{
    struct ask_head h = ask_swap((struct ask_head){.type = ASK_LOOK, .length = 5, .id = 9, .rank = 3});
    char frame[sizeof h + 5] = {0};
    (void)state;
    memcpy(frame, &h, sizeof h);
    for (size_t i = 0; i < sizeof frame; i++) {
        assert_int_equal(taken, 0);
        assert_int_equal(write(other, frame + i, 1), 1);
        turn();
    }
    assert_int_equal(taken, 1);
    assert_true(asker.id == 9 && asker.rank == 3 && asker.route.line == line_number(line));
}

/* An answer is on its way before the ring. */
static void answers_go_back(void **state)
{
    char bytes[16];
    (void)state;
    say((struct ask_head){.type = ASK_WATCH, .id = 4}, NULL, 0);
    assert_int_equal(taken, 1);
    asks_answer(&asker, 0, "abc", 4);
    assert_int_equal(rings, 1);
    struct ask_head h;
    assert_int_equal(recv(other, &h, sizeof h, MSG_DONTWAIT), sizeof h); /* without the event loop */
    h = ask_swap(h);
    assert_true(h.type == ASK_ANSWER && h.id == 4 && h.length == 4);
    assert_int_equal(recv(other, bytes, 4, MSG_DONTWAIT), 4);
    assert_string_equal(bytes, "abc");
}

static void large_answers_wait_for_a_slow_reader(void **state)
{
    char *all = calloc(1, ASK_BYTES_MAX), got[65536];
    (void)state;
    say((struct ask_head){.type = ASK_LOOK, .id = 4}, NULL, 0);
    asks_answer(&asker, 0, all, ASK_BYTES_MAX);
    size_t n = 0;
    for (ssize_t part; n < ASK_BYTES_MAX + sizeof(struct ask_head); n += (size_t)part) {
        turn();
        part = recv(other, got, sizeof got, 0);
        assert_true(part > 0);
    }
    assert_int_equal(n, ASK_BYTES_MAX + sizeof(struct ask_head));
    free(all);
}

static void what_cannot_be_is_refused_in_words(void **state)
{
    static const struct ask_head bad[] = {{.type = ASK_NONE},
                                          {.type = ASK_TYPES},
                                          {.type = ASK_LOOK, .length = ASK_BYTES_MAX + 1},
                                          {.type = ASK_ANSWER, .id = 1u << 30}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char words[256];
        if (i) assert_int_equal(set_up(state), 0);
        say(bad[i], NULL, 0);
        struct ask_head h = hear_one(words, sizeof words);
        assert_true(h.type == ASK_ANSWER && h.status == TERN_ERR_ARG && h.id == bad[i].id && h.length > 20);
        assert_true(is_closed());
        assert_null(line);
        assert_int_equal(taken, 0);
        if (i + 1 < ARRAY_LEN(bad)) tear_down(state);
    }
}

static int answered, status;

static void done(void *arg, int s, const void *bytes, size_t n)
{
    (void)arg, (void)bytes, (void)n;
    answered++;
    status = s;
}

static void our_questions_are_answered_or_fail(void **state)
{
    char bytes[16];
    (void)state;
    struct route route = {.line = line_number(line)};
    answered = 0;
    asks_send(route, ASK_FETCH, 0, "abc", 4, done, NULL);
    struct ask_head h = hear_one(bytes, sizeof bytes);
    assert_true(h.type == ASK_FETCH && h.length == 4);
    say((struct ask_head){.type = ASK_ANSWER, .id = h.id, .status = TERN_ERR_RANK}, NULL, 0);
    assert_true(answered == 1 && status == TERN_ERR_RANK);
    asks_send(route, ASK_FETCH, 0, NULL, 0, done, NULL);
    shutdown(other, SHUT_RDWR);
    turn();
    assert_true(answered == 2 && status == TERN_ERR_PEER && !line);
    asks_send(route, ASK_FETCH, 0, NULL, 0, done, NULL); /* it is gone */
    assert_true(answered == 3 && status == TERN_ERR_PEER);
}

/* A question that was passed on is given up with its asker, and its answer goes nowhere then. */
static void forwards_end_with_their_asker(void **state)
{
    (void)state;
    say((struct ask_head){.type = ASK_LOOKUP, .id = 4}, NULL, 0);
    asks_forward(&asker, (struct route){.node = 2}, ASK_LOOKUP, NULL, 0);
    assert_int_equal(sent_to_nodes, 1);
    say((struct ask_head){.type = ASK_CANCEL, .id = 4}, NULL, 0);
    assert_int_equal(sent_to_nodes, 2);
    assert_int_equal(cancelled, 0);
    say((struct ask_head){.type = ASK_CANCEL, .id = 5}, NULL, 0);
    assert_int_equal(cancelled, 1);
    say((struct ask_head){.type = ASK_LOOKUP, .id = 6}, NULL, 0);
    asks_forward(&asker, (struct route){.node = 2}, ASK_LOOKUP, NULL, 0);
    shutdown(other, SHUT_RDWR);
    turn();
    assert_int_equal(sent_to_nodes, 4);
    assert_null(line);
}

static bool answer_by_tree(int node, uint32_t id)
{
    struct ask_head h = ask_swap((struct ask_head){.type = ASK_ANSWER, .id = id});
    return tree_handlers[TREE_ANSWER](node, &h, sizeof h);
}

/* What was asked of the launcher of a node that is lost is answered, also to those whose questions were passed on; it is asked no more. */
static void a_lost_node_is_asked_no_more(void **state)
{
    char words[100];
    struct route lost = {.node = 9}, lives = {.node = 8};
    (void)state;
    answered = 0;
    asks_send(lost, ASK_LOOKUP, 0, NULL, 0, done, NULL);
    uint32_t late = sent_id;
    asks_send(lives, ASK_LOOKUP, 0, NULL, 0, done, NULL);
    uint32_t other_id = sent_id;
    asks_send(lost, ASK_LOOKUP, 0, NULL, 0, done, NULL);
    say((struct ask_head){.type = ASK_LOOKUP, .id = 7}, NULL, 0);
    asks_forward(&asker, lost, ASK_LOOKUP, NULL, 0);
    assert_int_equal(sent_to_nodes, 4);
    asks_lose_node(9);
    assert_true(answered == 2 && status == TERN_ERR_PEER);
    struct ask_head h = hear_one(words, sizeof words);
    assert_true(h.type == ASK_ANSWER && h.id == 7 && h.status == TERN_ERR_PEER);
    assert_non_null(strstr(words + 4, "has ended"));
    asks_send(lost, ASK_LOOKUP, 0, NULL, 0, done, NULL);
    assert_true(answered == 3 && sent_to_nodes == 4);
    asks_lose_node(9);
    assert_true(answer_by_tree(9, late)); /* it had still been said */
    assert_int_equal(answered, 3);
    assert_true(answer_by_tree(8, other_id));
    assert_true(answered == 4 && !status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_are_put_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_go_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_answers_wait_for_a_slow_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused_in_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(our_questions_are_answered_or_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forwards_end_with_their_asker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_node_is_asked_no_more, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
