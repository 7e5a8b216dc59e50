/* environ_test.c - which variables reach a rank. */
#include "mpiexec/environ.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *own[] = {"PATH=/bin",
                      "A=1",
                      "AB=2",
                      "PMI_RANK=9",
                      "PMIX_NAMESPACE=x",
                      "PMIX_MCA_gds=hash",
                      "OMPI_MCA_orte_local_daemon_uri=x",
                      "EMPTY=",
                      NULL};

/* The ranks' environment with ' ' between. */
static const char *result(const struct spec *s, const struct app_spec *a)
{
    static char all[512];
    struct strv env = {0};
    environ_of_app(&env, own, s, a);
    all[0] = 0;
    for (int i = 0; i < env.n; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", env.v[i]);
        if (s->prefix && strstr(env.v[i], s->prefix)) free(env.v[i]); /* made for it; the others are not */
    }
    strv_free(&env);
    return all;
}

static void everything_but_the_launchers(void **state)
{
    (void)state;
    assert_string_equal(result(&(struct spec){0}, &(struct app_spec){0}),
                        "PATH=/bin A=1 AB=2 PMIX_MCA_gds=hash EMPTY=");
}

static void bases(void **state)
{
    (void)state;
    struct spec s = {.env.base = ENV_NONE};
    struct app_spec a = {0};
    assert_string_equal(result(&s, &a), "");
    s.env.base = ENV_LIST;
    strv_push(&s.env.list, "A");
    strv_push(&s.env.list, "MISSING");
    strv_push(&s.env.list, "EMPTY");
    assert_string_equal(result(&s, &a), "A=1 EMPTY=");
    a.env.base = ENV_NONE; /* the program's own word counts more */
    assert_string_equal(result(&s, &a), "");
    strv_free(&s.env.list);
}

static void sets(void **state)
{
    (void)state;
    struct spec s = {.env.base = ENV_NONE};
    struct app_spec a = {0};
    strv_push(&s.env.sets, "A"); /* as we have it */
    strv_push(&s.env.sets, "MISSING");
    strv_push(&s.env.sets, "B=global");
    strv_push(&a.env.sets, "B=local");
    assert_string_equal(result(&s, &a), "A=1 B=local");
    s.prefix = "/opt";
    assert_string_equal(result(&s, &a), "A=1 B=local PATH=/opt/bin LD_LIBRARY_PATH=/opt/lib");
    strv_free(&s.env.sets);
    strv_free(&a.env.sets);
}

static void put_and_get(void **state)
{
    (void)state;
    struct strv env = {0};
    environ_put(&env, "A=1");
    environ_put(&env, "AB=2");
    environ_put(&env, "A=3");
    assert_int_equal(env.n, 2);
    assert_string_equal(environ_get(&env, "A"), "3");
    assert_string_equal(environ_get(&env, "AB"), "2");
    assert_null(environ_get(&env, "B"));
    environ_put(&env, "A");
    assert_null(environ_get(&env, "A"));
    assert_int_equal(env.n, 1);
    assert_null(env.v[1]);
    environ_put(&env, "MISSING");
    assert_int_equal(env.n, 1);
    strv_free(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_but_the_launchers), cmocka_unit_test(bases),
                                       cmocka_unit_test(sets), cmocka_unit_test(put_and_get)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
