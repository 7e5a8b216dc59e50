/* limits_test.c - the eager limit is that of the transport by which the peer is reached. */
#include "base/var.h"
#include "mock_job.h"
#include "pt2pt/limits.h"
#include "transport/find.h"

#include <stdlib.h>

static int64_t limit_over(const struct tp_ops *transport)
{
    struct peer p = {.ep.ops = transport};
    const struct limits *l = limits_of(&p);
    assert_ptr_equal(p.limits, l); /* looked up once */
    return l->eager_max;
}

static void each_transport_has_its_own(void **state)
{
    (void)state;
    setenv("TERN_EAGER_SHM", "1000", 1);
    setenv("TERN_EAGER_TCP", "5000", 1);
    job_open(NULL);
    assert_int_equal(limit_over(&tp_shm), 1000);
    assert_int_equal(limit_over(&tp_tcp), 5000);
    assert_int_equal(limit_over(&tp_self), 1000);
    assert_int_equal(limits_eager_least(), 1000);
    job_close();
}

static void defaults(void **state)
{
    (void)state;
    job_open(NULL);
    assert_int_equal(limit_over(&tp_shm), 32 << 10);
    assert_int_equal(limit_over(&tp_tcp), 64 << 10);
    for (const struct tp_ops *const *t = tp_built_in; *t; t++)
        assert_int_equal(limit_over(*t), (*t)->cost.eager_max); /* what it says of itself is what its variable says */
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_transport_has_its_own, job_clean),
        cmocka_unit_test_teardown(defaults, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
