/* probe_test.c - probing tells what a receive would get; a matched message is out of everybody's reach (MPI-5.0 3.8). */
#include "mock_job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- several threads ---- */

struct taker {
    pthread_t id;
    struct comm *comm;
    int tag;
    struct pt_message *message;
    struct request_result res;
};

static void *take(void *arg)
{
    struct taker *t = arg;
    bool found;
    if (pt_mprobe(t->comm, MPI_ANY_SOURCE, t->tag, true, &found, &t->message, &t->res) || !found) abort();
    return NULL;
}

static int waiting(struct comm *c)
{
    int n = 0;
    lane_enter(c->lane);
    list_each(a, next, &c->pt->takers) n++;
    lane_leave(c->lane);
    return n;
}

/* Returns when it waits behind those before it. */
static void begin_to_take(struct taker *t, struct comm *c, int tag)
{
    int before = waiting(c);
    *t = (struct taker){.comm = c, .tag = tag};
    assert_int_equal(pthread_create(&t->id, NULL, take, t), 0);
    while (waiting(c) == before) usleep(100);
}

/* It has the message that was sent with this seed. */
static void has_taken(struct taker *t, uint64_t seed)
{
    struct request *r;
    pthread_join(t->id, NULL);
    assert_int_equal(t->res.bytes, 100);
    assert_int_equal(pt_imrecv(t->message, in, 100, type_of(MPI_BYTE), &r), 0);
    job_end(r, 0);
    assert_true(filled(in, 100, seed));
}

/* Of threads that wait in MPI_Mprobe the one that came first has the first message that suits it, and none is left to a thread
 * that comes later. (A thread that came back at once took nearly all of 3,000, and the others none.) */
static void waiting_threads_take_in_their_order(void **state)
{
    enum { TAKERS = 6 };
    static struct taker t[TAKERS];
    static const int served[TAKERS] = {0, 1, 3, 4, 2, 5}; /* by the messages' tags: the third one waits for another */
    struct comm *c = job_open_threaded();
    (void)state;
    for (int i = 0; i < TAKERS; i++) begin_to_take(&t[i], c, i == 2 ? 5 : 4);
    for (int i = 0; i < TAKERS; i++) {
        struct pt_message *m;
        struct request_result res;
        bool found = true;
        fill(out, 100, (uint64_t)i);
        job_end(job_isend(c, out, 100, served[i] == 2 ? 5 : 4, PT_STANDARD), 0);
        has_taken(&t[served[i]], (uint64_t)i);
        assert_int_equal(waiting(c), TAKERS - 1 - i);
        assert_int_equal(pt_mprobe(c, MPI_ANY_SOURCE, MPI_ANY_TAG, false, &found, &m, &res), 0);
        assert_false(found);
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
        cmocka_unit_test_teardown(waiting_threads_take_in_their_order, job_clean),
        cmocka_unit_test_teardown(nothing_there, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
