/* request_test.c - memory of requests, the one that is always complete, and error handlers. */
#include "obj/request.h"
#include "obj/errhandler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int close_all(void **state)
{
    (void)state;
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
        cmocka_unit_test_teardown(shared_request_is_complete_and_empty, close_all),
        cmocka_unit_test_teardown(error_handlers, close_all),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
