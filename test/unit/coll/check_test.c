/*
 * check_test.c - mistakes in the messages of schedules are found before they run, and nothing else is: each mistake alone,
 * and all algorithms of the collectives, which have none.
 */
#include "coll/alg/alg.h"
#include "coll/goal/check.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3 };

static struct goal_build *part[RANKS];
static struct goal_spot spot[2]; /* of the last judgement */

static void begin(void)
{
    for (int r = 0; r < RANKS; r++) assert_non_null(part[r] = goal_build_open(r, RANKS, 0));
}

/* Seals the parts and judges them together. */
static int judged(void)
{
    struct goal_prog *prog[RANKS];
    const struct goal_head *block[RANKS];
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(goal_seal(part[r], &prog[r]), 0);
        goal_build_close(part[r]);
        block[r] = &prog[r]->head;
    }
    int rc = goal_check_all(RANKS, RANKS, block, spot);
    for (int r = 0; r < RANKS; r++) goal_unref(prog[r]);
    return rc;
}

static goal_id send_to(int from, int to, int tag, int64_t len) { return goal_send(part[from], to, tag, goal_mem(0, 0), len); }
static goal_id recv_from(int to, int from, int tag, int64_t len) { return goal_recv(part[to], from, tag, goal_mem(1, 0), len); }

static void refused(const char *words)
{
    assert_int_equal(judged(), TERN_ERR_PROGRAM);
    if (!strstr(err_words(), words)) fail_msg("'%s' is not in: %s", words, err_words());
}

/* The words are about these operations. */
static void points_to(int program, uint32_t op, int other, uint32_t other_op)
{
    assert_int_equal(spot[0].program, program);
    assert_int_equal(spot[1].program, other);
    if (program >= 0) assert_int_equal(spot[0].op, op);
    if (other >= 0) assert_int_equal(spot[1].op, other_op);
}

static void pairs(void **state)
{
    (void)state;
    begin();
    send_to(0, 1, 3, 8);
    recv_from(1, 0, 3, 16); /* more room than needed is fine */
    send_to(2, 2, 0, 4);
    recv_from(2, 2, 0, 4);
    assert_int_equal(judged(), 0);
    points_to(-1, 0, -1, 0);
    begin();
    send_to(0, 1, 3, 8);
    refused("rank 0 sends to rank 1 under tag 3 (operation 0), and nothing");
    points_to(0, 0, -1, 0);
    begin();
    recv_from(2, 1, 9, 8);
    refused("rank 2 receives from rank 1 under tag 9 (operation 0), and nothing");
    begin();
    send_to(0, 1, 3, 8);
    recv_from(1, 0, 4, 8);
    refused("under tag 3");
    begin();
    send_to(0, 1, 3, 9);
    recv_from(1, 0, 3, 8);
    refused("sends 9 bytes to rank 1 under tag 3, which has room for 8");
    points_to(0, 0, 1, 0);
    begin();
    send_to(0, 1, 3, 8);
    send_to(0, 1, 3, 8);
    recv_from(1, 0, 3, 8);
    refused("two sends from rank 0 to rank 1 under tag 3");
    points_to(0, 1, 0, 0);
}

/* r waits for its receive from the rank below before it sends upwards; rank 0 does so only if `all`. */
static void circle(bool all, bool start)
{
    begin();
    for (int r = 0; r < RANKS; r++) {
        goal_id recv = recv_from(r, (r + RANKS - 1) % RANKS, 0, 8), send = send_to(r, (r + 1) % RANKS, 0, 8);
        if (r || all) (start ? goal_after_start : goal_after)(part[r], send, recv);
    }
}

static void deadlocks(void **state)
{
    (void)state;
    circle(false, false);
    assert_int_equal(judged(), 0);
    circle(true, true);
    assert_int_equal(judged(), 0);
    circle(true, false);
    refused("deadlock: rank 0 receives from rank 2 under tag 0 (operation 0)");
    points_to(0, 0, 2, 1);
    begin(); /* only if no message is buffered: each sends before it receives */
    goal_after(part[0], recv_from(0, 1, 0, 8), send_to(0, 1, 0, 8));
    goal_after(part[1], recv_from(1, 0, 0, 8), send_to(1, 0, 0, 8));
    refused("deadlock: rank 0 sends to rank 1");
}

static void tags_of_one(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        struct goal_build *b = goal_build_open(0, 2, 0);
        struct goal_prog *prog;
        goal_send(b, 1, 5, goal_mem(0, 0), 8);
        goal_recv(b, 1, 5, goal_mem(1, 0), 8);
        goal_send(b, 0, 5, goal_mem(0, 0), 8);
        goal_recv(b, 1, same ? 5 : 6, goal_mem(1, 8), 8);
        assert_int_equal(goal_seal(b, &prog), 0);
        assert_int_equal(goal_check_tags(&prog->head, spot), same ? TERN_ERR_PROGRAM : 0);
        if (same) points_to(0, 3, 0, 1);
        goal_build_close(b);
        goal_unref(prog);
    }
}

/* Two groups, of one rank and of two: each program names its own group's ranks first. */
static int judged_as_groups(bool cross)
{
    static const int rank[RANKS] = {0, 0, 1}, far[RANKS] = {1, 2, 2};
    struct goal_prog *prog[RANKS];
    const struct goal_head *block[RANKS];
    for (int r = 0; r < RANKS; r++) assert_non_null(part[r] = goal_build_open(rank[r], RANKS, 0));
    for (int r = 1; r < RANKS; r++) {
        goal_id send = send_to(0, far[0] + r - 1, 7, 8), recv = recv_from(r, far[r], 7, 8);
        goal_id back = send_to(r, far[r], 8, 8), got = recv_from(0, far[0] + r - 1, 8, 8);
        goal_after(part[r], back, recv);
        goal_after(part[0], cross ? send : got, cross ? got : send);
    }
    send_to(1, 1, 9, 8); /* within the second group */
    recv_from(2, 0, 9, 8);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(goal_seal(part[r], &prog[r]), 0);
        goal_build_close(part[r]);
        block[r] = &prog[r]->head;
    }
    int rc = goal_check_all(RANKS, 1, block, spot);
    for (int r = 0; r < RANKS; r++) goal_unref(prog[r]);
    return rc;
}

static void two_groups(void **state)
{
    (void)state;
    if (judged_as_groups(false)) fail_msg("%s", err_words());
    assert_int_equal(judged_as_groups(true), TERN_ERR_PROGRAM);
    assert_non_null(strstr(err_words(), "deadlock: rank 0 of the first group receives from rank 0 of the second group"));
}

/* All ranks' programs of one algorithm, for P ranks. */
static void algorithm(int alg, int P)
{
    struct goal_prog *prog[17];
    const struct goal_head *block[17];
    const struct coll_alg *a = &coll_algs[alg];
    struct coll_shape s = {.kind = (uint8_t)a->kind, .alg = (uint8_t)alg, .flags = COLL_EXACT, .size = P, .root = P / 2,
                           .nodes = 1, .radix = 2, .bytes = 240, .grain = coll_reduces(a->kind) ? 8 : 1, .segment = 64};
    if (coll_has_blocks(a->kind) || coll_has_neighbors(a->kind) || !coll_alg_fits(alg, &s)) return;
    for (s.rank = 0; s.rank < P; s.rank++) {
        assert_int_equal(coll_compile(&s, &coll_given_nothing, &prog[s.rank]), 0);
        block[s.rank] = &prog[s.rank]->head;
    }
    if (goal_check_all(P, P, block, NULL)) fail_msg("%s, %d ranks: %s", a->name, P, err_words());
    for (int r = 0; r < P; r++) goal_unref(prog[r]);
}

static void collectives_are_right(void **state)
{
    (void)state;
    for (int alg = 0; alg < coll_algs_count; alg++)
        for (int P = 1; P <= 17; P++) algorithm(alg, P);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),
        cmocka_unit_test(deadlocks),
        cmocka_unit_test(two_groups),
        cmocka_unit_test(tags_of_one),
        cmocka_unit_test(collectives_are_right),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("checker of messages between schedules", tests, NULL, NULL);
}
