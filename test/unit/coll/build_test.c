/* build_test.c - making programs: layout, order, cycles, sticky errors, text (GOAL-2, 5, 12, 13). */
#include "coll/goal/build.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct goal_prog *sealed(struct goal_build *b)
{
    struct goal_prog *prog = NULL;
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    assert_int_equal(goal_verify(&prog->head, prog->head.bytes), 0);
    return prog;
}

/* recv -> reduce -> send up: what one rank of a reduction does. */
static struct goal_prog *small_program(void)
{
    struct goal_build *b = goal_build_open(1, 4, 0);
    struct goal_mem x = goal_scratch(b, 24);
    goal_id up = goal_send(b, 0, 7, goal_mem(GOAL_RECV_BUF, 0), 24), got = goal_recv(b, 3, 7, x, 24);
    goal_id sum = goal_reduce(b, x, goal_mem(GOAL_RECV_BUF, 0), 24);
    goal_after(b, up, sum);
    goal_after(b, sum, got);
    return sealed(b);
}

static void layout(void **state)
{
    (void)state;
    struct goal_prog *prog = small_program();
    const struct goal_head *h = &prog->head;
    assert_int_equal(h->op_count, 3);
    assert_int_equal(h->indep_ops_count, 1);
    assert_int_equal(h->rank, 1);
    assert_int_equal(h->size, 4);
    assert_int_equal(h->scratch, 64); /* one line */
    /* GOAL-13: the head leads straight to the operation that starts; the others follow in order of release */
    const struct goal_op *op = goal_op_at(h, goal_indep(h)[0]);
    assert_int_equal(op->type, GOAL_OP_RECV);
    assert_int_equal(*(const uint8_t *)op, GOAL_OP_RECV); /* the type is the first byte */
    op = goal_op_at(h, goal_edges(op)[0]);
    assert_int_equal(op->type, GOAL_OP_REDUCE);
    op = goal_op_at(h, goal_edges(op)[0]);
    assert_int_equal(op->type, GOAL_OP_SEND);
    assert_int_equal(op->tag, 7);
    assert_int_equal(op->n_finish, 0);
    const struct goal_range *r = goal_ranges(h);
    assert_int_equal(r[GOAL_RECV_BUF].hi, 24);
    assert_int_equal(r[GOAL_RECV_BUF].flags, GOAL_SLOT_READ | GOAL_SLOT_WRITE);
    assert_int_equal(r[GOAL_SEND_BUF].flags, 0);
    goal_unref(prog);
}

static void cycles(void **state)
{
    (void)state;
    for (int length = 1; length <= 5; length++) {
        struct goal_build *b = goal_build_open(0, 1, 0);
        struct goal_prog *prog = NULL;
        goal_join(b); /* outside of it */
        for (int i = 1; i <= length; i++) goal_join(b);
        for (int i = 1; i <= length; i++) goal_after(b, i % length + 1, i);
        assert_int_equal(goal_seal(b, &prog), TERN_ERR_PROGRAM);
        assert_null(prog);
        assert_non_null(strstr(err_words(), "cycle"));
        goal_build_close(b);
    }
}

static void first_error_sticks(void **state)
{
    (void)state;
    const struct goal_part four = {{0, 0}, 4}, eight = {{1, 0}, 8};
    struct goal_prog *prog = NULL;
    for (int what = 0; what < 8; what++) {
        struct goal_build *b = goal_build_open(0, 2, 0);
        goal_join(b);
        switch (what) {
        case 0: goal_sendv(b, 2, 0, NULL, 0); break;  /* no such rank */
        case 1: goal_sendv(b, -1, 0, NULL, 0); break;
        case 2: goal_sendv(b, 1, 65536, NULL, 0); break; /* tag */
        case 3: goal_send(b, 1, 0, goal_mem(-1, 0), 8); break;
        case 4: goal_send(b, 1, 0, goal_mem(0, 0), -8); break;
        case 5: goal_after(b, 0, 5); break; /* no such operation */
        case 6: goal_copyv(b, &four, 1, &eight, 1); break; /* unequal */
        default: goal_send(b, 1, 0, goal_mem(GOAL_SLOT_MAX + 1, 0), 8);
        }
        assert_int_not_equal(goal_build_error(b), 0);
        assert_int_equal(goal_join(b), GOAL_NONE);
        assert_int_equal(goal_seal(b, &prog), TERN_ERR_PROGRAM);
        assert_null(prog);
        goal_build_close(b);
    }
}

static void text(void **state)
{
    (void)state;
    struct goal_prog *prog = small_program();
    char *t = goal_print(&prog->head);
    assert_string_equal(t, "schedule v2: rank 1 of 4, 3 operations, 1 independent, scratchpad 64 bytes, 3 slots, 280 bytes\n"
                           "  slot 1 (recv) [0,24) read write\n"
                           "  slot 2 (scratch) [0,24) read write\n"
                           "  0    recv     from 3 tag 7: scratch[0,24)  then 1\n"
                           "  1    reduce   scratch[0,24) -> recv[0,24)  then 2\n"
                           "  2    send     to 0 tag 7: recv[0,24)\n");
    free(t);
    goal_unref(prog);
}

static void edges_to_nothing_are_nothing(void **state)
{
    (void)state;
    struct goal_build *b = goal_build_open(0, 2, 0);
    goal_after(b, goal_join(b), GOAL_NONE);
    goal_after_start(b, GOAL_NONE, 0);
    struct goal_prog *prog = sealed(b);
    assert_int_equal(prog->head.indep_ops_count, 1);
    goal_unref(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout), cmocka_unit_test(cycles), cmocka_unit_test(first_error_sticks),
        cmocka_unit_test(text),   cmocka_unit_test(edges_to_nothing_are_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("builder of schedules", tests, NULL, NULL);
}
