/* send_test.c - sending: modes, sizes, credit, back-pressure and failures, over the mock transport. */
#include "mock_job.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static char out[1 << 16], in[1 << 16];

static void receive(struct comm *c, size_t n, int tag, uint64_t seed)
{
    struct request_result res;
    memset(in, 0, sizeof in);
    assert_int_equal(pt_recv(c, in, (int64_t)n, type_of(MPI_BYTE), 0, tag, &res), 0);
    assert_int_equal(res.bytes, n);
    assert_int_equal(res.tag, tag);
    assert_true(filled(in, n, seed));
}

/* A standard send of at most the eager limit is over at once, whether or not a receive is there (MPI-5.0 3.4). */
static void small_sends_are_over_at_once(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 4095, 8184};
    struct comm *c = job_open(NULL);
    (void)state;
    assert_int_equal(pt_send(c, out, 0, type_of(MPI_BYTE), 0, 4, PT_STANDARD), 0); /* the first one connects */
    receive(c, 0, 4, 0);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        fill(out, sizes[i], i);
        struct request *r = job_isend(c, out, (int64_t)sizes[i], 5, PT_STANDARD);
        assert_ptr_equal(r, request_done);
        memset(out, 0, sizeof out);
        receive(c, sizes[i], 5, i);
    }
    assert_int_equal(mock_count.sent[AM_EAGER], 1 + ARRAY_LEN(sizes));
    assert_int_equal(mock_count.sent[AM_RTS], 0);
    job_close();
}

/* At and around the limits of eager messages: what fits goes at once, one byte more is offered. */
static void eager_limit_is_exact(void **state)
{
    setenv("TERN_EAGER_SHM", "1000", 1);
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t n = 990; n < 1010; n++) {
        uint64_t offered = mock_count.sent[AM_RTS];
        fill(out, n, n);
        struct request *r = job_isend(c, out, (int64_t)n, 5, PT_STANDARD);
        assert_int_equal(mock_count.sent[AM_RTS] - offered, n > 1000);
        receive(c, n, 5, n);
        job_end(r, 0);
    }
    job_close();
}

/* A synchronous send is over only when a receive has matched (MPI-5.0 3.4). */
static void synchronous_send_waits_for_its_match(void **state)
{
    static const size_t sizes[] = {0, 8, 1000, 20000};
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        fill(out, sizes[i], i);
        struct request *r = job_isend(c, out, (int64_t)sizes[i], 5, PT_SYNC);
        job_settle();
        assert_false(request_is_complete(r));
        receive(c, sizes[i], 5, i);
        job_end(r, 0);
    }
    job_close();
}

static void synchronous_send_to_a_posted_receive(void **state)
{
    struct comm *c = job_open(NULL);
    (void)state;
    fill(out, 100, 1);
    struct request *r = job_irecv(c, in, 100, 1), *s = job_isend(c, out, 100, 1, PT_SYNC);
    job_end(s, 0);
    job_end(r, 0);
    assert_true(filled(in, 100, 1));
    job_close();
}

/* Eager bytes that nobody received are bounded by TERN_EAGER_CREDIT; beyond that messages are offered, and none is lost
 * or overtaken (LHS-9). */
static void credit_bounds_what_lies_unreceived(void **state)
{
    enum { N = 200, BYTES = 500 };
    struct request *r[N];
    setenv("TERN_EAGER_CREDIT", "10K", 1);
    struct comm *c = job_open(NULL);
    (void)state;
    for (int i = 0; i < N; i++) {
        fill(out + i * 8, 8, (uint64_t)i);
        fill(in, BYTES, (uint64_t)i);
        char *buf = malloc(BYTES);
        assert_non_null(buf);
        memcpy(buf, in, BYTES);
        r[i] = job_isend(c, buf, BYTES, 9, PT_STANDARD);
        if (r[i] == request_done) free(buf);
        else r[i]->owner = buf;
    }
    job_settle();
    assert_in_range(mock_count.sent[AM_EAGER], 10 * 1024 / (BYTES + 64), 10 * 1024 / (BYTES + 64));
    assert_true(lanes_first()->pool.used < 64 * 1024);
    for (int i = 0; i < N; i++) receive(c, BYTES, 9, (uint64_t)i);
    for (int i = 0; i < N; i++) {
        if (r[i] == request_done) continue;
        assert_int_equal(pt_wait(r[i]), 0);
        free(r[i]->owner);
        pt_release(r[i]);
    }
    assert_true(mock_count.sent[AM_CREDIT] >= 1);
    job_close();
}

/* Credit comes back however often it is used up. */
static void credit_returns(void **state)
{
    setenv("TERN_EAGER_CREDIT", "4K", 1);
    struct comm *c = job_open(NULL);
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        fill(out, 300, i);
        struct request *r = job_isend(c, out, 300, 1, PT_STANDARD);
        receive(c, 300, 1, i);
        job_end(r, 0);
    }
    assert_int_equal(mock_count.sent[AM_RTS], 0);
    assert_true(mock_count.sent[AM_CREDIT] > 100);
    job_close();
}

/* Sends that found no room are sent later, in order, also when the wire refuses again and again. */
static void parked_sends_keep_their_order(void **state)
{
    enum { N = 500 };
    static int value[N];
    struct request *r[N];
    struct mock_script script = MOCK_SCRIPT;
    script.again_percent = 70;
    script.seed = random_open();
    script.room = 3;
    struct comm *c = job_open(&script);
    (void)state;
    for (int i = 0; i < N; i++) {
        value[i] = i;
        assert_int_equal(pt_isend(c, &value[i], 1, type_of(MPI_INT), 0, 2, i % 3 ? PT_STANDARD : PT_SYNC, &r[i]), 0);
    }
    assert_true(mock_count.refused > 0);
    assert_false(list_empty(&lanes_first()->pending));
    for (int i = 0; i < N; i++) {
        struct request_result res;
        int got = -1;
        assert_int_equal(pt_recv(c, &got, 1, type_of(MPI_INT), 0, 2, &res), 0);
        assert_int_equal(got, i);
    }
    for (int i = 0; i < N; i++) {
        job_end(r[i], 0);
    }
    job_close();
}

/* A type with gaps is packed: in place where the transport can, through a buffer where it cannot. */
static void types_with_gaps(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    for (int bcopy = 0; bcopy < 2; bcopy++) {
        struct type *t = NULL;
        if (!bcopy) script.caps &= ~(uint32_t)TP_CAP_BCOPY;
        struct comm *c = job_open(&script);
        assert_int_equal(type_vector(50, 1, 2, TYPE_ELEMENTS, type_of(MPI_INT), &t), 0);
        assert_int_equal(type_commit(t), 0);
        for (enum pt_mode mode = PT_STANDARD; mode <= PT_SYNC; mode++) {
            int data[100], got[50];
            struct request *r = NULL;
            struct request_result res;
            for (int i = 0; i < 100; i++) data[i] = 1000 * (int)mode + i;
            assert_int_equal(pt_isend(c, data, 1, t, 0, 3, mode, &r), 0);
            assert_int_equal(pt_recv(c, got, 50, type_of(MPI_INT), 0, 3, &res), 0);
            for (int i = 0; i < 50; i++) assert_int_equal(got[i], 1000 * (int)mode + 2 * i);
            job_end(r, 0);
        }
        type_unref(t);
        job_close();
        script = (struct mock_script)MOCK_SCRIPT;
    }
}

/* A wire that fails is an error of the send, at once or from the queue. (The credit of lost messages is lost with the
 * peer: hence job_abandon.) */
static void failing_wire_is_an_error_in_words(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    script.error = TERN_ERR_PEER;
    struct comm *c = job_open(&script);
    struct request *r = NULL;
    (void)state;
    fill(out, 64, 1);
    mock_script.fail_send = 1;
    assert_int_equal(pt_send(c, out, 64, type_of(MPI_BYTE), 0, 1, PT_STANDARD), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: sending fails");
    assert_int_equal(pt_isend(c, out, 20000, type_of(MPI_BYTE), 0, 1, PT_STANDARD, &r), TERN_ERR_PEER);
    assert_null(r); /* said at once, so there is nothing to wait for */
    job_abandon();
}

static void failing_wire_ends_parked_sends(void **state)
{
    enum { N = 3 };
    static const int64_t sizes[N] = {64, 20000, 64};
    struct mock_script script = MOCK_SCRIPT;
    script.room = 0;
    script.error = TERN_ERR_PEER;
    struct comm *c = job_open(&script);
    struct request *r[N];
    (void)state;
    fill(out, 20000, 1);
    for (int i = 0; i < N; i++)
        r[i] = job_isend(c, out, sizes[i], 1, PT_STANDARD);
    job_settle();
    for (int i = 0; i < N; i++) assert_false(request_is_complete(r[i]));
    mock_script.fail_send = 1;
    for (int i = 0; i < N; i++) {
        job_end(r[i], TERN_ERR_PEER);
    }
    assert_true(list_empty(&lanes_first()->pending));
    assert_true(list_empty(&lanes_first()->steps.active));
    job_abandon();
}

static void nobody_is_a_destination(void **state)
{
    struct comm *c = job_open(NULL);
    struct request *r = NULL;
    (void)state;
    assert_int_equal(pt_send(c, out, 8, type_of(MPI_BYTE), MPI_PROC_NULL, 1, PT_SYNC), 0);
    assert_int_equal(pt_isend(c, out, 8, type_of(MPI_BYTE), MPI_PROC_NULL, 1, PT_SYNC, &r), 0);
    assert_ptr_equal(r, request_done);
    assert_int_equal(mock_count.sent[AM_EAGER] + mock_count.sent[AM_EAGER_SYNC], 0);
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(small_sends_are_over_at_once, job_clean),
        cmocka_unit_test_teardown(eager_limit_is_exact, job_clean),
        cmocka_unit_test_teardown(synchronous_send_waits_for_its_match, job_clean),
        cmocka_unit_test_teardown(synchronous_send_to_a_posted_receive, job_clean),
        cmocka_unit_test_teardown(credit_bounds_what_lies_unreceived, job_clean),
        cmocka_unit_test_teardown(credit_returns, job_clean),
        cmocka_unit_test_teardown(parked_sends_keep_their_order, job_clean),
        cmocka_unit_test_teardown(types_with_gaps, job_clean),
        cmocka_unit_test_teardown(failing_wire_is_an_error_in_words, job_clean),
        cmocka_unit_test_teardown(failing_wire_ends_parked_sends, job_clean),
        cmocka_unit_test_teardown(nobody_is_a_destination, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
