/* session_test.c - sessions as objects: handles, levels of thread support by name, what they tell, references. */
#include "obj/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int close_handles(void **state)
{
    (void)state;
    handle_close();
    errh_open();
    return 0;
}

static void levels_have_names(void **state)
{
    (void)state;
    struct info *i = info_new();
    assert_int_equal(session_level(NULL, MPI_THREAD_FUNNELED), MPI_THREAD_FUNNELED);
    assert_int_equal(session_level(i, MPI_THREAD_MULTIPLE), MPI_THREAD_MULTIPLE);
    const int all[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    for (int k = 0; k < 4; k++) {
        info_set(i, "thread_level", session_level_name(all[k]));
        assert_int_equal(session_level(i, -77), all[k]);
    }
    info_set(i, "thread_level", "MPI_THREAD_DOUBLE");
    assert_true(session_level(i, MPI_THREAD_SINGLE) < MPI_THREAD_SINGLE);
    info_free(i);
}

static void kinds(const char *asked, const char *told)
{
    struct info *i = info_new();
    if (asked) info_set(i, "mpi_memory_alloc_kinds", asked);
    struct session *s = session_new(errh_fatal(), MPI_THREAD_SINGLE, i);
    assert_string_equal(info_get(s->hints, "mpi_memory_alloc_kinds"), told);
    assert_string_equal(info_get(s->hints, "thread_level"), "MPI_THREAD_SINGLE");
    info_free(i);
    session_unref(s);
}

static void it_tells_what_is_supported(void **state)
{
    (void)state;
    kinds(NULL, "mpi,system");
    kinds("system", "mpi,system");
    kinds("cuda,system,rocm:device", "mpi,system");
    kinds("mpi:alloc_mem,cuda:managed", "mpi,system,mpi:alloc_mem");
    kinds("systematic", "mpi,system");
}

static void the_handle_ends_before_the_memory(void **state)
{
    (void)state;
    struct errhandler *e = errh_new(ERRH_SESSION, (errh_fn *)close_handles);
    struct session *s = session_new(e, MPI_THREAD_SINGLE, NULL);
    errh_unref(e);
    assert_ptr_equal(errh_of((MPI_Errhandler)e), e); /* the session keeps it */
    MPI_Session h = session_handle(s);
    assert_ptr_equal(session_of(h), s);
    session_ref(s); /* as a communicator does */
    s->over = true; /* MPI_Session_finalize */
    session_unref(s);
    assert_null(session_of(h));
    assert_int_equal(s->level, MPI_THREAD_SINGLE);
    session_unref(s);
    assert_null(errh_of((MPI_Errhandler)e));
    session_unref(NULL);
    assert_null(session_of(MPI_SESSION_NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(levels_have_names, close_handles),
        cmocka_unit_test_teardown(it_tells_what_is_supported, close_handles),
        cmocka_unit_test_teardown(the_handle_ends_before_the_memory, close_handles),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
