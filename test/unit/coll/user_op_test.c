/*
 * user_op_test.c - where the user's operators of a collective are run: not by a thread that delivers a message under the
 * lock of a wire, but in a turn of the lane behind it (coll/port_pt2pt.c). One rank sends to itself, by the mock
 * transport.
 */
#include "../pt2pt/mock_job.h"
#include "base/err.h"
#include "coll/goal/build.h"
#include "coll/port_pt2pt.h"
#include "transport/wire_lock.h"
#include "type/op.h"

static int calls, calls_in_a_wire, ends;

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    calls++;
    calls_in_a_wire += wire_is_inside();
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void note_end(struct goal_frame *f)
{
    assert_int_equal(f->status, 0);
    ends++;
}

/* What comes is combined with what is there: recv = send op recv. */
static struct goal_prog *program(void)
{
    struct goal_prog *prog = NULL;
    struct goal_build *b = goal_build_open(0, 1, 0);
    struct goal_mem room = goal_scratch(b, sizeof(int));
    goal_id in = goal_recv(b, 0, 1, room, sizeof(int));
    goal_send(b, 0, 1, goal_mem(GOAL_SEND_BUF, 0), sizeof(int));
    goal_after(b, goal_reduce(b, room, goal_mem(GOAL_RECV_BUF, 0), sizeof(int)), in);
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    return prog;
}

static struct comm *comm;
static struct op *user;
static struct coll_frame *frame;
static int mine, result;

static int open_frame(void **state)
{
    (void)state;
    comm = job_open_threaded();
    wires_share();
    assert_non_null(job_peer());
    assert_int_equal(op_open(), 0);
    assert_int_equal(op_create(add, true, &user), 0);
    struct goal_prog *prog = program();
    frame = coll_frame_new(comm, prog, false);
    goal_unref(prog);
    assert_non_null(frame);
    calls = calls_in_a_wire = ends = 0;
    mine = 4;
    result = 3;
    return 0;
}

static int close_frame(void **state)
{
    coll_frame_free(frame);
    op_unref(user);
    op_close();
    wires_unshare();
    job_close();
    return job_clean(state);
}

/* The message is in the queue of the mock on return, and its receive is posted. */
static void begin(const struct op *op)
{
    struct goal_frame *f = coll_frame_goal(frame);
    goal_bind(f, GOAL_SEND_BUF, &mine);
    goal_bind(f, GOAL_RECV_BUF, &result);
    f->op = op;
    f->type = type_of(MPI_INT);
    f->done = note_end;
    coll_frame_number(frame, 7);
    goal_start(f);
    assert_int_equal(ends, 0);
}

/* As a thread that polls the wire. */
static void deliver(void)
{
    int n = 0;
    for (int i = 0; wires_at(i); i++) n += wire_poll(i, 64);
    assert_true(n > 0);
}

static void a_user_s_operator_waits_for_the_next_turn(void **state)
{
    struct lane *l = comm->lane;
    (void)state;
    lane_enter(l);
    begin(user);
    deliver();
    assert_int_equal(calls, 0);
    assert_int_equal(ends, 0);
    assert_int_equal(result, 3);
    lane_progress(l);
    assert_int_equal(calls, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(result, 7);
    assert_int_equal(calls_in_a_wire, 0);
    lane_leave(l);
}

static void an_operator_of_the_library_does_not_wait(void **state)
{
    struct lane *l = comm->lane;
    (void)state;
    lane_enter(l);
    begin(op_of(MPI_SUM));
    deliver();
    assert_int_equal(ends, 1);
    assert_int_equal(result, 7);
    lane_leave(l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_frame, close_frame)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_s_operator_waits_for_the_next_turn),
        TEST(an_operator_of_the_library_does_not_wait),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
