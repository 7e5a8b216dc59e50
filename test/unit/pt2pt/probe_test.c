/* probe_test.c - probing tells what a receive would get; a matched message is out of everybody's reach (MPI-5.0 3.8). */
#include "mock_job.h"

#include <string.h>

static char out[30000], in[30000];

static void probe_tells_and_leaves(void **state)
{
    static const int64_t sizes[] = {0, 100, 20000};
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct request_result res = {0}, got;
        struct request *s = NULL;
        bool found = true;
        assert_int_equal(pt_probe(c, 0, 4, false, &found, &res), 0);
        assert_false(found);
        fill(out, (size_t)sizes[i], i);
        s = job_isend(c, out, sizes[i], 4, PT_STANDARD);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(pt_probe(c, MPI_ANY_SOURCE, MPI_ANY_TAG, again > 0, &found, &res), 0);
            assert_true(found);
            assert_int_equal(res.source, 0);
            assert_int_equal(res.tag, 4);
            assert_int_equal(res.bytes, sizes[i]);
        }
        assert_int_equal(pt_probe(c, 0, 5, false, &found, &res), 0);
        assert_false(found);
        assert_int_equal(pt_recv(c, in, sizeof in, type_of(MPI_BYTE), 0, 4, &got), 0);
        assert_int_equal(got.bytes, sizes[i]);
        assert_true(filled(in, (size_t)sizes[i], i));
        job_end(s, 0);
    }
    job_close();
}

static void matched_message_is_not_received_by_others(void **state)
{
    static const int64_t sizes[] = {0, 100, 20000};
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (int sync = 0; sync < 2; sync++) {
            struct request_result res;
            struct request *s = NULL, *r = NULL, *other = NULL;
            struct pt_message *m = NULL;
            bool found = false;
            fill(out, (size_t)sizes[i], i);
            s = job_isend(c, out, sizes[i], 4, sync ? PT_SYNC : PT_STANDARD);
            assert_int_equal(pt_mprobe(c, 0, 4, true, &found, &m, &res), 0);
            assert_true(found);
            assert_int_equal(res.bytes, sizes[i]);
            assert_ptr_equal(handle_get(m, HANDLE_MESSAGE), m);
            assert_int_equal(pt_irecv(c, in, sizeof in, type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &other), 0);
            job_settle();
            assert_false(request_is_complete(other));
            if (sync || sizes[i] > 8192) assert_false(request_is_complete(s)); /* probing matches, receiving completes */
            assert_int_equal(pt_imrecv(m, in, sizes[i], type_of(MPI_BYTE), &r), 0);
            assert_null(handle_get(m, HANDLE_MESSAGE));
            assert_int_equal(pt_wait(r), 0);
            assert_true(filled(in, (size_t)sizes[i], i));
            assert_int_equal(pt_wait(s), 0);
            assert_false(request_is_complete(other));
            assert_int_equal(pt_cancel(other), 0);
            assert_true(other->result.cancelled);
            pt_release(other);
            pt_release(r);
            pt_release(s);
        }
    job_close();
}

static void nothing_there(void **state)
{
    struct comm *c = job_open(NULL);
    struct request_result res;
    struct pt_message *m = NULL;
    bool found = true;
    (void)state;
    assert_int_equal(pt_mprobe(c, 0, 4, false, &found, &m, &res), 0);
    assert_false(found);
    assert_null(m);
    assert_int_equal(pt_probe(c, MPI_PROC_NULL, 4, true, &found, &res), 0);
    assert_true(found);
    assert_int_equal(res.source, MPI_PROC_NULL);
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(probe_tells_and_leaves, job_clean),
        cmocka_unit_test_teardown(matched_message_is_not_received_by_others, job_clean),
        cmocka_unit_test_teardown(nothing_there, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
