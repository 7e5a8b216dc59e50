/*
 * exec_errors_test.c - the interpreter when an operation fails: the run ends once, with the first error, starts nothing more,
 * and gives up or waits for what is pending.
 */
#include "frame.h"

#include "base/err.h"

static void on_done(struct goal_frame *f) { ++*(int *)f->ctx; }

static int fail_at, cancelled, sends;
static const struct goal_op *held;
static struct goal_frame *held_frame;

static int failing_send(struct goal_frame *f, const struct goal_op *op)
{
    sends++;
    if (op->tag == fail_at) return err_set(TERN_ERR_PEER, "rank 1 is gone");
    held = op;
    held_frame = f;
    return GOAL_LATER;
}

static void cancel(struct goal_frame *f)
{
    cancelled++;
    assert_ptr_equal(f, held_frame);
    const struct goal_op *op = held;
    held = NULL;
    if (op) goal_op_done(f, op, TERN_ERR_PENDING);
}

static const struct goal_port failing = {.send = failing_send, .recv = failing_send};
static const struct goal_port failing_cancels = {.send = failing_send, .recv = failing_send, .cancel = cancel};

/* A builder, and nothing counted yet; the message under the tag `fail` cannot be sent. */
static struct goal_build *open_failing(int fail)
{
    fail_at = fail;
    sends = cancelled = 0;
    return goal_build_open(0, 2, 0);
}

/* An error ends the run once, starts nothing more, and waits for what is pending. */
static void errors(void **state)
{
    struct goal_build *b = open_failing(1);
    int over = 0;
    goal_sendv(b, 1, 0, NULL, 0);
    goal_after(b, goal_sendv(b, 1, 2, NULL, 0), goal_sendv(b, 1, 1, NULL, 0));
    struct goal_frame *f = frame_of(b, *state ? &failing_cancels : &failing, &over, on_done);
    goal_start(f);
    assert_int_equal(over, *state ? 1 : 0);
    assert_int_equal(cancelled, *state ? 1 : 0);
    if (!*state) goal_op_done(f, held, 0);
    assert_int_equal(over, 1);
    assert_int_equal(sends, 2);
    assert_int_equal(f->status, TERN_ERR_PEER);
    goal_frame_free(f);
}

/* An error reported later, while a message is pending that the port gives up at once. */
static void late_error(void **state)
{
    (void)state;
    struct goal_build *b = open_failing(-1);
    int over = 0;
    goal_sendv(b, 1, 0, NULL, 0);
    goal_sendv(b, 1, 1, NULL, 0);
    struct goal_frame *f = frame_of(b, &failing_cancels, &over, on_done);
    goal_start(f); /* `held` is the second */
    goal_op_done(f, goal_op_at(f->block, goal_indep(f->block)[0]), TERN_ERR_PEER);
    assert_int_equal(cancelled, 1);
    assert_int_equal(over, 1);
    assert_int_equal(f->status, TERN_ERR_PEER);
    goal_frame_free(f);
}

/* A message longer than what was expected is an error of the run, but others wait for the rest of it: that is done. */
static void truncated(void **state)
{
    (void)state;
    struct goal_build *b = open_failing(-1);
    int over = 0;
    goal_id first = goal_recvv(b, 1, 0, NULL, 0);
    goal_after(b, goal_sendv(b, 1, 1, NULL, 0), first);
    struct goal_frame *f = frame_of(b, &failing_cancels, &over, on_done);
    for (int again = 1; again <= 2; again++) {
        goal_start(f);
        goal_op_done(f, held, TERN_ERR_TRUNCATE);
        assert_int_equal(sends, 2 * again);
        assert_int_equal(over, again - 1);
        goal_op_done(f, held, 0);
        assert_int_equal(over, again);
        assert_int_equal(f->status, TERN_ERR_TRUNCATE);
    }
    assert_int_equal(cancelled, 0);
    goal_frame_free(f);
}

int main(void)
{
    static int yes = 1;
    const struct CMUnitTest tests[] = {
        {.name = "errors", .test_func = errors},
        {.name = "errors, port cancels", .test_func = errors, .initial_state = &yes},
        cmocka_unit_test(late_error),
        cmocka_unit_test(truncated),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("interpreter, errors", tests, NULL, NULL);
}
