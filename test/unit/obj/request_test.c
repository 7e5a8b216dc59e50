/* request_test.c - memory of requests, the one that is always complete, and error handlers. */
#include "obj/request.h"
#include "obj/errhandler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

static int close_all(void **state)
{
    (void)state;
    handle_set_threaded(false);
    request_close();
    handle_close();
    return 0;
}

static void requests_are_found_until_freed(void **state)
{
    (void)state;
    struct request *r = request_new(REQ_RECV);
    assert_non_null(r);
    assert_int_equal(r->kind, REQ_RECV);
    assert_true(r->flags & REQ_HEAP);
    assert_false(request_is_complete(r));
    assert_ptr_equal(request_of((MPI_Request)r), r);
    request_free(r);
    assert_null(request_of((MPI_Request)r));
    assert_null(request_of(MPI_REQUEST_NULL));
}

static void requests_on_a_stack_are_not_freed(void **state)
{
    struct request r = {.h.kind = HANDLE_REQUEST};
    (void)state;
    assert_null(request_of((MPI_Request)&r)); /* no user has it */
    request_free(&r);
    assert_int_equal(r.h.kind, HANDLE_REQUEST);
}

/* ---- threads ---- */

enum { MANY = 300 };

static struct request *taken[MANY];

static void *free_taken(void *arg)
{
    for (int i = 0; i < MANY; i++) request_free(taken[i]);
    return arg;
}

/* Memory that has been in use so far. */
static uintptr_t most_used(void)
{
    uintptr_t most = 0;
    for (int i = 0; i < MANY; i++)
        if ((uintptr_t)taken[i] > most) most = (uintptr_t)taken[i];
    return most;
}

/* One thread takes all requests, another one gives them back and ends: no memory is lost on the way. */
static void check_requests_come_back(void)
{
    pthread_t t;
    uintptr_t most = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++) assert_non_null(taken[i] = request_new(REQ_RECV));
        if (!round) most = most_used();
        assert_true(most_used() <= most);
        assert_int_equal(pthread_create(&t, NULL, free_taken, NULL), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
        for (int i = 0; i < MANY; i++) assert_null(request_of((MPI_Request)taken[i]));
    }
}

static void requests_given_back_by_other_threads_come_back(void **state)
{
    (void)state;
    handle_set_threaded(true);
    check_requests_come_back();
}

static void requests_of_threads_that_take_turns_come_back(void **state)
{
    (void)state;
    request_of_threads();
    check_requests_come_back();
}

/* Nor does a thread that goes on hoard what another one takes: it keeps a part of it, and the rest comes back. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool frees, ends;

static void *free_in_turn(void *arg)
{
    pthread_mutex_lock(&turn);
    for (;;) {
        while (!frees && !ends) pthread_cond_wait(&changed, &turn);
        if (ends) break;
        free_taken(arg);
        frees = false;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&turn);
    return arg;
}

static void threads_that_take_turns_hoard_no_requests(void **state)
{
    enum { ROUNDS = 20 };
    pthread_t t;
    uintptr_t most[ROUNDS];
    (void)state;
    request_of_threads();
    assert_int_equal(pthread_create(&t, NULL, free_in_turn, NULL), 0);
    pthread_mutex_lock(&turn);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) assert_non_null(taken[i] = request_new(REQ_RECV));
        most[round] = most_used();
        frees = true;
        pthread_cond_signal(&changed);
        while (frees) pthread_cond_wait(&changed, &turn);
    }
    ends = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&turn);
    pthread_join(t, NULL);
    assert_true(most[ROUNDS - 1] <= most[1]);
}

static void *take_and_free(void *arg)
{
    struct request *r = request_new(REQ_SEND), *again;
    request_free(r);
    again = request_new(REQ_SEND);
    assert_ptr_equal(again, r); /* its own, the last one given back */
    *(struct request **)arg = r;
    request_free(again);
    return NULL;
}

static void threads_reuse_their_own_requests(void **state)
{
    pthread_t t[2];
    struct request *r[2] = {NULL, NULL}, *mine = request_new(REQ_SEND);
    (void)state;
    handle_set_threaded(true);
    request_free(mine);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, take_and_free, &r[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    assert_true(r[0] && r[1] && r[0] != mine && r[1] != mine);
    assert_ptr_equal(request_new(REQ_SEND), mine);
}

/* What a thread keeps belongs to the arena, and goes with it. */
static void kept_requests_go_with_the_arena(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) taken[i] = request_new(REQ_RECV);
    for (int i = 0; i < MANY; i++) request_free(taken[i]);
    request_close();
    handle_close();
    struct request *r = request_new(REQ_RECV);
    assert_non_null(r);
    assert_ptr_equal(request_of((MPI_Request)r), r);
}

static void shared_request_is_complete_and_empty(void **state)
{
    (void)state;
    assert_int_equal(request_open(), 0);
    assert_ptr_equal(request_of((MPI_Request)request_done), request_done);
    assert_true(request_is_complete(request_done));
    assert_true(request_done->flags & REQ_SHARED);
    assert_int_equal(request_done->result.source, MPI_ANY_SOURCE); /* the empty status, MPI-5.0 3.7.3 */
    assert_int_equal(request_done->result.tag, MPI_ANY_TAG);
    assert_int_equal(request_done->result.bytes, 0);
    assert_int_equal(request_done->result.error, 0);
}

static void on_error(MPI_Comm *c, int *code, ...) { (void)c, (void)code; }

static void error_handlers(void **state)
{
    const MPI_Errhandler fixed[] = {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_ERRORS_ABORT};
    const enum errh_action action[] = {ERRH_FATAL, ERRH_RETURN, ERRH_ABORT};
    (void)state;
    errh_open();
    for (int i = 0; i < 3; i++) {
        struct errhandler *e = errh_of(fixed[i]);
        assert_non_null(e);
        assert_int_equal(e->action, action[i]);
        assert_ptr_equal(errh_handle(e), fixed[i]);
        errh_ref(e);
        for (int k = 0; k < 5; k++) errh_unref(e); /* freed too often */
        assert_ptr_equal(errh_of(fixed[i]), e);
    }
    assert_null(errh_of(MPI_ERRHANDLER_NULL));
    struct errhandler *own = errh_new(ERRH_COMM, (errh_fn *)on_error);
    assert_int_equal(own->action, ERRH_USER);
    assert_ptr_equal(own->fn, (errh_fn *)on_error);
    assert_true(errh_fits(own, ERRH_COMM) && !errh_fits(own, ERRH_SESSION));
    MPI_Errhandler h = errh_handle(own);
    errh_ref(own);
    errh_unref(own);
    assert_ptr_equal(errh_of(h), own);
    errh_unref(own);
    assert_null(errh_of(h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(requests_are_found_until_freed, close_all),
        cmocka_unit_test_teardown(requests_on_a_stack_are_not_freed, close_all),
        cmocka_unit_test_teardown(requests_given_back_by_other_threads_come_back, close_all),
        cmocka_unit_test_teardown(requests_of_threads_that_take_turns_come_back, close_all),
        cmocka_unit_test_teardown(threads_that_take_turns_hoard_no_requests, close_all),
        cmocka_unit_test_teardown(threads_reuse_their_own_requests, close_all),
        cmocka_unit_test_teardown(kept_requests_go_with_the_arena, close_all),
        cmocka_unit_test_teardown(shared_request_is_complete_and_empty, close_all),
        cmocka_unit_test_teardown(error_handlers, close_all),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
