/* request_ops_test.c - waiting for several, persistent requests, letting go, cancelling at every stage. */
#include "mock_job.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

static char out[30000], in[30000];

static struct request *isend(struct comm *c, int64_t n, int tag, enum pt_mode mode)
{
    fill(out, (size_t)n, (uint64_t)n);
    return job_isend(c, out, n, tag, mode);
}

static struct request *irecv(struct comm *c, int64_t n, int tag) { return job_irecv(c, in, n, tag); }

/* ---- waiting ---- */

static void any_and_all(void **state)
{
    enum { N = 10 };
    struct comm *c = job_open(NULL);
    struct request *r[N + 1] = {NULL};
    (void)state;
    for (int i = 0; i < N; i++) r[i] = irecv(c, 8, i);
    isend(c, 8, 7, PT_STANDARD);
    pt_wait_many(N + 1, r, false);
    for (int i = 0; i < N; i++) assert_int_equal(request_is_complete(r[i]), i == 7);
    for (int i = 0; i < N; i++)
        if (i != 7) isend(c, 8, i, PT_STANDARD);
    pt_wait_many(N + 1, r, true);
    for (int i = 0; i < N; i++) {
        assert_true(request_is_complete(r[i]));
        pt_release(r[i]);
    }
    job_close();
}

enum { MEETINGS = 20000 };
static struct request only;
static _Atomic int meeting;
static uint64_t meeting_seed;

/* Ends the request of each meeting, a moment after it has begun. */
static void *ends_it(void *none)
{
    for (int i = 1; i <= MEETINGS; i++) {
        for (int looks = 1; atomic_load(&meeting) < i; looks++)
            if (looks % 1000 == 0) sched_yield();
        for (uint64_t n = random_next(&meeting_seed) % 100; n; n--) atomic_signal_fence(memory_order_seq_cst);
        lane_enter(only.comm->lane);
        waits_finish(&only);
        lane_leave(only.comm->lane);
    }
    return none;
}

/* Another thread ends the only request while the wait begins: the lane was taken from the last entry, which is empty. */
static void wait_for_any_meets_the_end_of_the_only_one(void **state)
{
    struct request *r[3] = {NULL, &only, NULL};
    pthread_t t;
    (void)state;
    meeting_seed = random_open();
    only = (struct request){.comm = job_open_threaded()};
    atomic_store(&meeting, 0);
    assert_int_equal(pthread_create(&t, NULL, ends_it, NULL), 0);
    for (int i = 1; i <= MEETINGS; i++) {
        atomic_store(&only.complete, 0);
        atomic_store(&meeting, i);
        pt_wait_many(3, r, false);
        assert_true(request_is_complete(&only));
    }
    pthread_join(t, NULL);
    job_close();
}

/* ---- persistent ---- */

static void persistent_requests_run_many_times(void **state)
{
    static const int64_t sizes[] = {8, 5000, 25000};
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++)
        for (enum pt_mode mode = PT_STANDARD; mode <= PT_READY; mode++) {
            struct request *s = NULL, *r = NULL;
            assert_int_equal(pt_send_init(c, out, sizes[k], type_of(MPI_BYTE), 0, 3, mode, &s), 0);
            assert_int_equal(pt_recv_init(c, in, sizes[k], type_of(MPI_BYTE), 0, 3, &r), 0);
            assert_true(request_is_complete(s) && request_is_complete(r));
            for (uint64_t i = 0; i < 5; i++) {
                fill(out, (size_t)sizes[k], i);
                assert_int_equal(pt_start(r), 0);
                assert_int_equal(pt_start(s), 0);
                assert_int_equal(pt_wait(s), 0);
                assert_int_equal(pt_wait(r), 0);
                assert_int_equal(r->result.bytes, sizes[k]);
                assert_true(filled(in, (size_t)sizes[k], i));
            }
            pt_release(s);
            pt_release(r);
        }
    job_close();
}

/* ---- letting go ---- */

/* A request that was let go still ends, frees itself, and its communicator after it (MPI-5.0 3.7.3). */
static void detached_requests_end(void **state)
{
    struct comm *c = job_open(NULL), *d = NULL;
    (void)state;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(c->map), NULL, c, &d), 0);
    struct request *s = isend(d, 25000, 1, PT_STANDARD), *r = irecv(d, 25000, 1);
    pt_release(s);
    pt_release(r);
    comm_unref(d);
    assert_ptr_equal(handle_get(d, HANDLE_COMM), d); /* the operations hold it */
    job_settle();
    assert_true(filled(in, 25000, 25000));
    assert_null(handle_get(d, HANDLE_COMM));
    assert_null(handle_get(s, HANDLE_REQUEST));
    assert_null(handle_get(r, HANDLE_REQUEST));
    job_close();
}

/* ---- cancelling: either it is cancelled or it completes, never both (MPI-5.0 3.8.4) ---- */

static void cancelled_receive(void **state)
{
    struct comm *c = job_open(NULL);
    struct request *r = irecv(c, 8, 1);
    (void)state;
    assert_int_equal(pt_cancel(r), 0);
    assert_int_equal(pt_wait(r), 0);
    assert_true(r->result.cancelled);
    pt_release(r);
    r = irecv(c, 8, 1); /* the cancelled one does not take its message */
    isend(c, 8, 1, PT_STANDARD);
    assert_int_equal(pt_wait(r), 0);
    assert_false(r->result.cancelled);
    assert_int_equal(pt_cancel(r), 0); /* too late */
    assert_false(r->result.cancelled);
    pt_release(r);
    job_close();
}

/* Nothing was received yet: the send is taken back, and no receive finds it. */
static void taken_back(struct comm *c, int64_t n, enum pt_mode mode, bool settle)
{
    struct request_result res;
    bool found = true;
    struct request *s = isend(c, n, 1, mode);
    if (settle) job_settle();
    assert_false(request_is_complete(s));
    assert_int_equal(pt_cancel(s), 0);
    assert_int_equal(pt_cancel(s), 0); /* twice does no harm */
    assert_int_equal(pt_wait(s), 0);
    assert_true(s->result.cancelled);
    pt_release(s);
    job_settle();
    assert_int_equal(pt_probe(c, 0, 1, false, &found, &res), 0);
    assert_false(found);
}

static void cancelled_sends_are_taken_back(void **state)
{
    static const uint32_t caps[] = {TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP, TP_CAP_BCOPY, TP_CAP_BCOPY | TP_CAP_BULK};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(caps); i++)
        for (int settle = 0; settle < 2; settle++) {
            struct mock_script script = MOCK_SCRIPT;
            script.caps = caps[i];
            struct comm *c = job_open(&script);
            taken_back(c, 0, PT_SYNC, settle);
            taken_back(c, 8, PT_SYNC, settle);
            taken_back(c, 25000, PT_STANDARD, settle);
            taken_back(c, 25000, PT_SYNC, settle);
            job_close();
        }
}

/* Regression: a send that was still parked gave neither its credit back, nor did the count of large transfers come out. */
static void cancelled_while_parked(void **state)
{
    static const int64_t sizes[] = {8, 4000, 25000};
    struct mock_script script = MOCK_SCRIPT;
    script.room = 0;
    struct comm *c = job_open(&script);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (enum pt_mode mode = PT_STANDARD; mode <= PT_SYNC; mode++) {
            int64_t credit = job_peer()->credit;
            taken_back(c, sizes[i], mode, true);
            assert_int_equal(job_peer()->credit, credit);
            assert_true(list_empty(&lanes_first()->steps.active));
        }
    mock_script.room = 8;
    struct request *r = irecv(c, 25000, 1), *s = isend(c, 25000, 1, PT_STANDARD);
    assert_int_equal(pt_wait(r), 0);
    assert_int_equal(pt_wait(s), 0);
    assert_true(filled(in, 25000, 25000));
    pt_release(r);
    pt_release(s);
    job_close();
}

/* The receive is matched already, seen by the sender or not: the send completes and is not cancelled. */
static void cancelled_too_late(void **state)
{
    static const int64_t sizes[] = {8, 25000};
    static const uint32_t caps[] = {TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP, TP_CAP_BCOPY, TP_CAP_BCOPY | TP_CAP_BULK};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(caps); k++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            for (int turns = 1; turns < 4; turns++) {
                struct mock_script script = MOCK_SCRIPT;
                script.caps = caps[k];
                struct comm *c = job_open(&script);
                mock_script.deliver = 1;
                struct request *r = irecv(c, sizes[i], 1), *s = isend(c, sizes[i], 1, PT_SYNC);
                for (int t = 0; t < turns && !request_is_complete(s); t++) wires_progress(1);
                assert_int_equal(pt_cancel(s), 0);
                assert_int_equal(pt_wait(s), 0);
                assert_int_equal(pt_wait(r), 0);
                assert_false(s->result.cancelled);
                assert_true(filled(in, (size_t)sizes[i], (uint64_t)sizes[i]));
                pt_release(r);
                pt_release(s);
                job_close();
            }
}

/* The cancel and the receive cross: exactly one of them gets the message. */
static void cancel_races_with_a_receive(void **state)
{
    uint64_t seed = random_open();
    int cancelled = 0, received = 0;
    (void)state;
    for (int i = 0; i < 400; i++) {
        struct mock_script script = MOCK_SCRIPT;
        if (random_next(&seed) % 2) script.caps = TP_CAP_BCOPY | (i % 2 ? TP_CAP_BULK : 0);
        script.deliver = 1;
        script.again_percent = 30;
        script.seed = random_next(&seed);
        struct comm *c = job_open(&script);
        struct request *s = isend(c, random_next(&seed) % 2 ? 100 : 20000, 1, PT_SYNC);
        for (uint64_t n = random_next(&seed) % 4; n; n--) lane_progress(lanes_first());
        bool first = random_next(&seed) % 2;
        if (first) pt_cancel(s);
        for (uint64_t n = random_next(&seed) % 4; n; n--) lane_progress(lanes_first());
        struct request *r = irecv(c, 20000, 1);
        for (uint64_t n = random_next(&seed) % 4; n; n--) lane_progress(lanes_first());
        if (!first) pt_cancel(s);
        assert_int_equal(pt_wait(s), 0);
        job_settle();
        assert_int_equal(request_is_complete(r), !(s->result.cancelled));
        cancelled += (s->result.cancelled) != 0;
        received += !(s->result.cancelled);
        if (!request_is_complete(r)) pt_cancel(r);
        pt_release(r);
        pt_release(s);
        job_close();
    }
    assert_true(cancelled > 20 && received > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(any_and_all, job_clean),
        cmocka_unit_test_teardown(wait_for_any_meets_the_end_of_the_only_one, job_clean),
        cmocka_unit_test_teardown(persistent_requests_run_many_times, job_clean),
        cmocka_unit_test_teardown(detached_requests_end, job_clean),
        cmocka_unit_test_teardown(cancelled_receive, job_clean),
        cmocka_unit_test_teardown(cancelled_sends_are_taken_back, job_clean),
        cmocka_unit_test_teardown(cancelled_while_parked, job_clean),
        cmocka_unit_test_teardown(cancelled_too_late, job_clean),
        cmocka_unit_test_teardown(cancel_races_with_a_receive, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
