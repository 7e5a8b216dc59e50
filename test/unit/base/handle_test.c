/* handle_test.c - the arena of handle objects: any value may be asked for, stale and stray ones are noticed. */
#include "base/handle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct object {
    struct handle h;
    char body[100];
};

static int close_arena(void **state)
{
    (void)state;
    handle_close();
    return 0;
}

static void object_is_found_by_its_address(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_COMM, sizeof *o);
    assert_non_null(o);
    assert_int_equal((uintptr_t)o % CACHE_LINE, 0);
    assert_int_equal(atomic_load(&o->h.refs), 1);
    for (size_t i = 0; i < sizeof o->body; i++) assert_int_equal(o->body[i], 0);
    assert_ptr_equal(handle_get(o, HANDLE_COMM), o);
    assert_null(handle_get(o, HANDLE_GROUP));
    handle_release(o, sizeof *o);
}

static void stale_handle_is_noticed_and_its_slot_reused(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_COMM, sizeof *o);
    memset(o->body, 0x55, sizeof o->body);
    handle_release(o, sizeof *o);
    assert_null(handle_get(o, HANDLE_COMM));
    struct object *again = handle_alloc(HANDLE_INFO, sizeof *again);
    assert_ptr_equal(again, o);
    for (size_t i = 0; i < sizeof again->body; i++) assert_int_equal(again->body[i], 0);
    assert_null(handle_get(o, HANDLE_COMM));
    assert_ptr_equal(handle_get(o, HANDLE_INFO), again);
    handle_release(again, sizeof *again);
}

/* MPI-5.0 20.2: 0..4095 are constants; a user may pass anything. */
static void stray_values_are_no_handles(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_TYPE, sizeof *o);
    const uintptr_t stray[] = {0, 1, 0x101, 4095, 4096, 0xdeadbeef, UINTPTR_MAX, (uintptr_t)&stray, (uintptr_t)o + 1,
                               (uintptr_t)o + 8, (uintptr_t)o + 64, (uintptr_t)o - 64, handle_base + handle_used,
                               handle_base + handle_used + 64, handle_base - 64};
    for (size_t i = 0; i < ARRAY_LEN(stray); i++) assert_null(handle_get((void *)stray[i], HANDLE_TYPE));
    handle_release(o, sizeof *o);
}

static void predefined_object_is_found_by_its_constant(void **state)
{
    static struct object world = {.h = {.kind = HANDLE_COMM}};
    (void)state;
    assert_null(handle_get((void *)0x101, HANDLE_COMM));
    handle_define(0x101, &world);
    assert_ptr_equal(handle_get((void *)0x101, HANDLE_COMM), &world);
    assert_null(handle_get((void *)0x101, HANDLE_TYPE));
    handle_close();
    assert_null(handle_get((void *)0x101, HANDLE_COMM));
}

static void last_reference_is_told(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_COMM, sizeof *o);
    handle_ref(&o->h);
    handle_ref(&o->h);
    assert_false(handle_unref(&o->h));
    assert_false(handle_unref(&o->h));
    assert_true(handle_unref(&o->h));
    handle_release(o, sizeof *o);
}

/* Objects of many sizes do not overlap, and none is lost when the arena grows. */
static void many_objects_of_many_sizes(void **state)
{
    enum { N = 5000 };
    static struct object *all[N];
    static size_t size[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        size[i] = sizeof(struct handle) + (size_t)(i * 37 % 1000) + 1;
        all[i] = handle_alloc(HANDLE_REQUEST, size[i]);
        assert_non_null(all[i]);
        memset(all[i]->body, i & 0xff, size[i] - sizeof(struct handle));
    }
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(handle_get(all[i], HANDLE_REQUEST), all[i]);
        for (size_t k = 0; k < size[i] - sizeof(struct handle); k++)
            if ((all[i]->body[k] & 0xff) != (i & 0xff)) fail_msg("object %d byte %zu was overwritten", i, k);
    }
    for (int i = 0; i < N; i++) handle_release(all[i], size[i]);
    for (int i = 0; i < N; i++) assert_null(handle_get(all[i], HANDLE_REQUEST));
}

/* With little address space (ulimit -v) the arena is smaller, and its end is no fault. */
static void little_address_space(void **state)
{
    struct rlimit before, little;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    little = (struct rlimit){(rlim_t)256 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    void *some = mmap(NULL, 128 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (some != MAP_FAILED) munmap(some, 128 << 20);
    size_t n = 0;
    while (handle_alloc(HANDLE_REQUEST, 4096)) n++;
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    if (some == MAP_FAILED) return; /* a sanitizer takes more than that for itself: nothing was left to divide */
    assert_in_range(n, 1024, 65536);
}

static void *churn(void *arg)
{
    size_t bad = 0;
    for (int i = 0; i < 20000; i++) {
        struct object *o = handle_alloc(HANDLE_REQUEST, sizeof *o);
        memset(o->body, (int)(intptr_t)arg, sizeof o->body);
        for (size_t k = 0; k < sizeof o->body; k++) bad += o->body[k] != (char)(intptr_t)arg;
        handle_release(o, sizeof *o);
    }
    return (void *)bad;
}

static void threads_get_objects_of_their_own(void **state)
{
    pthread_t t[4];
    (void)state;
    handle_set_threaded(true);
    for (intptr_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    handle_set_threaded(false);
}

static int came;
static void count_thread(void) { came++; }

static void *look_up(void *o)
{
    intptr_t bad = handle_at(o) != &handle_none;         /* nothing is found yet */
    bad += came || handle_get(o, HANDLE_COMM) != o;      /* the thread becomes known by this */
    bad += came != 1 || handle_at(o) != o || handle_get(&bad, HANDLE_COMM) || came != 1;
    return (void *)bad;
}

static void *look_up_as_own(void *o)
{
    handle_thread_is_own();
    return (void *)(intptr_t)(handle_get(o, HANDLE_COMM) != o || came);
}

/* A thread's first look-up tells that it has come, once, and finds what it looks for. */
static void new_thread_is_noticed(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_COMM, sizeof *o);
    void *(*const each[])(void *) = {look_up_as_own, look_up};
    void (*before)(void) = handle_thread_came;
    handle_thread_came = count_thread;
    for (size_t i = 0; i < ARRAY_LEN(each); i++) {
        pthread_t t;
        void *bad = o;
        assert_int_equal(pthread_create(&t, NULL, each[i], o), 0);
        pthread_join(t, &bad);
        assert_null(bad);
    }
    handle_thread_came = before;
    handle_release(o, sizeof *o);
}

/* MPI-5.0 20.3: the same int as long as the object lives, never that of a constant; any int may be asked for. */
static void handles_are_ints(void **state)
{
    (void)state;
    struct object *o = handle_alloc(HANDLE_COMM, sizeof *o), *p = handle_alloc(HANDLE_COMM, sizeof *p);
    assert_true(handle_to_int(o) >= HANDLE_PREDEFINED_END && handle_to_int(p) >= HANDLE_PREDEFINED_END);
    assert_int_not_equal(handle_to_int(o), handle_to_int(p));
    assert_ptr_equal(handle_from_int(handle_to_int(o)), o);
    assert_ptr_equal(handle_from_int(handle_to_int(p)), p);
    assert_int_equal(handle_to_int((void *)257), 257);
    assert_ptr_equal(handle_from_int(257), (void *)257);
    assert_int_equal(handle_to_int((char *)o + 8), -1);
    assert_int_equal(handle_to_int(&o), -1);
    const int stray[] = {-1, INT32_MIN, INT32_MAX, 0, 4095, (int)(handle_used / HANDLE_SLOT) + HANDLE_PREDEFINED_END};
    for (size_t i = 0; i < ARRAY_LEN(stray); i++) assert_null(handle_get(handle_from_int(stray[i]), HANDLE_COMM));
    handle_release(o, sizeof *o);
    handle_release(p, sizeof *p);
}

/* Every live object of a kind is found once, whatever lies between. */
static void objects_of_a_kind_are_found(void **state)
{
    (void)state;
    enum { N = 50, SIZE = 200 };
    void *made[N], *other[N];
    uintptr_t at = 0;
    int found = 0;
    for (int i = 0; i < N; i++) {
        made[i] = handle_alloc(HANDLE_WIN, SIZE);
        other[i] = handle_alloc(HANDLE_FILE, 64);
    }
    for (int i = 0; i < N; i += 2) handle_release(made[i], SIZE);
    for (void *o; (o = handle_next(HANDLE_WIN, &at)); found++) assert_ptr_equal(o, made[2 * found + 1]);
    assert_int_equal(found, N / 2);
    assert_null(handle_next(HANDLE_WIN, &at));
    for (int i = 0; i < N; i++) handle_release(other[i], 64);
    for (int i = 1; i < N; i += 2) handle_release(made[i], SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(object_is_found_by_its_address, close_arena),
        cmocka_unit_test_teardown(stale_handle_is_noticed_and_its_slot_reused, close_arena),
        cmocka_unit_test_teardown(stray_values_are_no_handles, close_arena),
        cmocka_unit_test_teardown(predefined_object_is_found_by_its_constant, close_arena),
        cmocka_unit_test_teardown(last_reference_is_told, close_arena),
        cmocka_unit_test_teardown(handles_are_ints, close_arena),
        cmocka_unit_test_teardown(many_objects_of_many_sizes, close_arena),
        cmocka_unit_test_teardown(objects_of_a_kind_are_found, close_arena),
        cmocka_unit_test_teardown(little_address_space, close_arena),
        cmocka_unit_test_teardown(threads_get_objects_of_their_own, close_arena),
        cmocka_unit_test_teardown(new_thread_is_noticed, close_arena),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
