/* signature_test.c - equal sequences of basic types have equal signatures, others have not (3.3.1). */
#include "reference.h"
#include "type/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct signature of_typemap(const struct ref *r, int64_t count)
{
    struct signature s = SIGNATURE_EMPTY;
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < r->n; i++) s = signature_join(s, signature_basic(r->items[i].basic));
    return s;
}

static void layout_does_not_matter(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000) / 5 + 1; i > 0; i--) {
        struct ref r;
        struct type *t = random_type((int)random_int(1, 5), 300, &r);
        int64_t count = random_int(0, 3);
        struct signature a = type_signature(t, count), b = of_typemap(&r, count);
        assert_true(a.hash == b.hash && a.step == b.step);
        type_unref(t);
        ref_close(&r);
    }
}

static void a_beginning_has_the_signature_of_its_elements(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000) / 10 + 1; i > 0; i--) {
        struct ref r;
        struct type *t = random_type((int)random_int(1, 4), 100, &r);
        struct signature all = SIGNATURE_EMPTY;
        for (int64_t n = 0; n <= 2 * r.n; n++) {
            assert_true(signature_of_first(t, n).hash == all.hash);
            if (r.n) all = signature_join(all, signature_basic(r.items[n % r.n].basic));
        }
        type_unref(t);
        ref_close(&r);
    }
}

static uint64_t hash_of(const MPI_Datatype *basics, int n)
{
    struct signature s = SIGNATURE_EMPTY;
    for (int i = 0; i < n; i++) s = signature_join(s, signature_basic(basics[i]));
    return s.hash;
}

static void order_kind_and_number_matter(void **state)
{
    (void)state;
    const MPI_Datatype a[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, b[] = {MPI_INT, MPI_INT, MPI_DOUBLE};
    const MPI_Datatype c[] = {MPI_INT, MPI_FLOAT, MPI_INT};
    assert_false(hash_of(a, 3) == hash_of(b, 3));
    assert_false(hash_of(a, 3) == hash_of(c, 3));
    assert_false(hash_of(a, 3) == hash_of(a, 2));
    assert_false(type_signature(type_of(MPI_INT), 7).hash == type_signature(type_of(MPI_INT), 8).hash);
    assert_false(type_signature(type_of(MPI_INT), 1).hash == type_signature(type_of(MPI_UNSIGNED), 1).hash);
}

static void bytes_make_a_type_untyped(void **state)
{
    (void)state;
    struct type *t, *members[] = {type_of(MPI_INT), type_of(MPI_BYTE)};
    int64_t lens[] = {1, 1}, displs[] = {0, 4};
    assert_int_equal(type_struct(2, lens, displs, members, &t), 0);
    assert_true(t->untyped);
    type_unref(t);
    lens[1] = 0;
    assert_int_equal(type_struct(2, lens, displs, members, &t), 0);
    assert_false(t->untyped);
    type_unref(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_does_not_matter), cmocka_unit_test(a_beginning_has_the_signature_of_its_elements),
        cmocka_unit_test(order_kind_and_number_matter),
        cmocka_unit_test(bytes_make_a_type_untyped),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
