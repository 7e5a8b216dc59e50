/*
 * arena_test.c - memory that peers can map: blocks do not overlap, are aligned, reused and returned; wrong addresses are
 * noticed; what is seen through the memfd is the memory.
 */
#include "transport/arena.h"
#include "../seed.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena_note where;
static uint64_t state;

static uint64_t next_random(void) { return seed_next(&state); }

static uint64_t memory_in_use(void)
{
    struct stat st;
    assert_int_equal(fstat((int)where.fd - 1, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static void nothing_without_peers(void **unused)
{
    (void)unused;
    assert_null(arena_alloc(1 << 20, 4096));
    int x;
    assert_int_equal(arena_free(&x), ARENA_FOREIGN);
    assert_int_equal(arena_place(&x, 4), 0);
}

static void blocks_are_seen_through_the_memfd(void **unused)
{
    (void)unused;
    arena_publish(&where);
    assert_int_equal(where.fd, 0);
    char *p = arena_alloc(100000, 64);
    assert_non_null(p);
    assert_int_not_equal(where.fd, 0);
    uint64_t place = arena_place(p, 100000);
    assert_int_not_equal(place, 0);
    assert_int_equal(arena_place(p + 10, 5), place + 10);
    assert_int_equal(arena_place(p, (size_t)1 << 40), 0); /* not all of it lies here */
    assert_int_equal(arena_place(p - (uintptr_t)place - 1, 1), 0);
    memset(p, 7, 100000);
    struct stat st;
    fstat((int)where.fd - 1, &st);
    char *seen = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)where.fd - 1, 0);
    assert_ptr_not_equal(seen, MAP_FAILED);
    assert_int_equal(seen[place], 7);
    assert_int_equal(seen[place + 99999], 7);
    seen[place + 500] = 9;
    assert_int_equal(p[500], 9);
    munmap(seen, (size_t)st.st_size);
    assert_int_equal(arena_free(p), ARENA_FREED);
}

static void alignment_is_kept(void **unused)
{
    (void)unused;
    void *p[40];
    for (int i = 0; i < 40; i++) {
        size_t align = (size_t)1 << (6 + i % 18), bytes = (size_t)1 << (12 + i % 11);
        p[i] = arena_alloc(bytes, align);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % align, 0);
        if (bytes >= ARENA_HUGE) assert_int_equal((uintptr_t)p[i] % ARENA_HUGE, 0);
    }
    for (int i = 0; i < 40; i++) assert_int_equal(arena_free(p[i]), ARENA_FREED);
}

/* A model: whoever has a block finds in it what it wrote. */
static void blocks_do_not_overlap(void **unused)
{
    (void)unused;
    enum { N = 200 };
    static struct {
        unsigned char *p;
        size_t n;
        unsigned char mark;
    } b[N];
    for (int turn = 0; turn < 20000; turn++) {
        int i = (int)(next_random() % N);
        if (!b[i].p) {
            b[i].n = 1 + next_random() % (next_random() % 8 ? 40000 : 3000000);
            b[i].p = arena_alloc(b[i].n, 64);
            assert_non_null(b[i].p);
            b[i].mark = (unsigned char)next_random();
            memset(b[i].p, b[i].mark, b[i].n < 64 ? b[i].n : 64);
            b[i].p[b[i].n / 2] = b[i].p[b[i].n - 1] = b[i].mark;
            continue;
        }
        assert_true(b[i].p[0] == b[i].mark && b[i].p[b[i].n / 2] == b[i].mark && b[i].p[b[i].n - 1] == b[i].mark);
        assert_int_equal(arena_free(b[i].p), ARENA_FREED);
        b[i].p = NULL;
    }
    for (int i = 0; i < N; i++)
        if (b[i].p) assert_int_equal(arena_free(b[i].p), ARENA_FREED);
    void *all = arena_alloc((size_t)60 << 20, 64); /* neighbours were joined again: one large piece is there */
    uintptr_t before = arena_bytes;
    assert_int_equal(arena_free(all), ARENA_FREED);
    assert_int_equal(arena_bytes, before);
}

static void wrong_addresses_are_noticed(void **unused)
{
    (void)unused;
    char *p = arena_alloc(1 << 16, 64), *q = arena_alloc(1 << 13, 64), *r = arena_alloc(1 << 13, 64);
    assert_int_equal(arena_free(p + 1), ARENA_WRONG);
    for (int page = 1; page < 16; page++) assert_int_equal(arena_free(p + 4096 * page), ARENA_WRONG);
    assert_int_equal(arena_free(q + 4096), ARENA_WRONG);
    assert_int_equal(arena_free(p), ARENA_FREED);
    assert_int_equal(arena_free(p), ARENA_WRONG);
    assert_int_equal(arena_free(q), ARENA_FREED);
    assert_int_equal(arena_free(q), ARENA_WRONG);
    assert_int_equal(arena_free(r), ARENA_FREED);
    assert_int_equal(arena_free(r), ARENA_WRONG);
    assert_int_equal(arena_free(p), ARENA_WRONG);
}

static void memory_goes_back_to_the_system(void **unused)
{
    (void)unused;
    size_t big = 2 * ARENA_WARM;
    uint64_t before = memory_in_use();
    char *p = arena_alloc(big, 64);
    assert_non_null(p);
    memset(p, 1, big);
    assert_true(memory_in_use() >= before + big / 2);
    assert_int_equal(arena_free(p), ARENA_FREED);
    assert_true(memory_in_use() <= ARENA_WARM);
    p = arena_alloc(big, 64); /* it can be used again */
    memset(p, 2, big);
    assert_int_equal(arena_free(p), ARENA_FREED);
    for (int i = 0; i < 200; i++) { /* small ones do not pile up either */
        p = arena_alloc(ARENA_HUGE, 64);
        memset(p, 3, ARENA_HUGE);
        assert_int_equal(arena_free(p), ARENA_FREED);
    }
    assert_true(memory_in_use() <= 2 * ARENA_WARM);
}

/* More than there is: refused, not promised; a limit on files does not end the process (SIGXFSZ). */
static void limits_are_refusals(void **unused)
{
    (void)unused;
    assert_null(arena_alloc((size_t)1 << 47, 64));
    assert_null(arena_alloc(SIZE_MAX, 64));
    assert_null(arena_alloc((size_t)1 << 20, (size_t)1 << 60));
    pid_t child = fork();
    if (!child) {
        struct rlimit r = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_FSIZE, &r);
        _exit(arena_alloc(arena_bytes, 64) != NULL); /* as much as there is in all: it has to grow */
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void *churn(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)(1 + i % 7) << 13;
        char *p = arena_alloc(n, 64);
        if (!p) return "no memory";
        p[0] = p[n - 1] = (char)i;
        if (p[0] != (char)i || arena_free(p) != ARENA_FREED) return "wrong";
    }
    return NULL;
}

static void threads_get_blocks_of_their_own(void **unused)
{
    (void)unused;
    pthread_t t[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
}

static void the_end(void **unused)
{
    (void)unused;
    char *p = arena_alloc(100000, 64);
    p[0] = 3;
    arena_publish(NULL);
    assert_null(arena_alloc(100000, 64));
    assert_int_equal(p[0], 3); /* what is in use stays */
    assert_int_equal(arena_free(p), ARENA_FREED);
    struct arena_note again = {0};
    arena_publish(&again); /* and it can begin anew */
    assert_int_equal(again.fd, where.fd);
    assert_int_equal(again.id, where.id);
    p = arena_alloc(100000, 64);
    assert_non_null(p);
    assert_int_equal(arena_free(p), ARENA_FREED);
    arena_publish(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_without_peers),
        cmocka_unit_test(blocks_are_seen_through_the_memfd),
        cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(wrong_addresses_are_noticed),
        cmocka_unit_test(memory_goes_back_to_the_system),
        cmocka_unit_test(limits_are_refusals),
        cmocka_unit_test(threads_get_blocks_of_their_own),
        cmocka_unit_test(the_end),
    };
    state = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
