/*
 * safety_test.c - engines that work on their own, while the process does what has ended copy offload elsewhere (RMA-15): it forks, unmaps and
 * moves memory, writes beside what is copied, and ends. No copy is lost or torn, none goes where it does not belong any more, and no
 * process waits for ever. For a core that copies, and for a device (dsa_model.h).
 */
#include "../seed.h"
#include "base/err.h"
#include "copy/copy.h"
#include "copy/dsa.h"
#include "dsa_model.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE ((size_t)4096)
#define BYTES ((size_t)1 << 20)
#define ROUNDS 30

static struct dsa_model model;

static const struct copy_ops *const engines[] = {&copy_core_ops, &copy_dsa_ops};

static struct copy_queue *open_queue(const struct copy_ops *ops)
{
    struct copy_queue *q;
    model = (struct dsa_model){.size = 16, .most = 64 << 10};
    if (ops == &copy_dsa_ops) assert_true(dsa_model_open(&model));
    assert_int_equal(copy_queue_open(ops, 32, &q), 0);
    return q;
}

static void close_queue(struct copy_queue *q, const struct copy_ops *ops)
{
    copy_queue_close(q);
    if (ops == &copy_dsa_ops) dsa_model_close(&model);
}

static unsigned char *map(void *at)
{
    unsigned char *p = mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static copy_cookie start(struct copy_queue *q, void *dst, const void *src, size_t n)
{
    copy_cookie c;
    assert_int_equal(copy_submit(q, dst, src, n, &c), 0);
    copy_issue(q);
    return c;
}

/* The child's exit code; one that does not end in 20 s is killed. */
static int end_of(pid_t child)
{
    int status;
    for (int ms = 0; waitpid(child, &status, WNOHANG) == 0; ms++) {
        if (ms == 20000) kill(child, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a child: nothing is outstanding, and what it copies itself it gets. */
static int use_inherited(struct copy_queue *q)
{
    char src[100], dst[100] = {0};
    copy_cookie c;
    memset(src, 8, sizeof src);
    if (copy_poll(q) != copy_last(q) || copy_due(q)) return 2;
    copy_wait_all(q);
    if (copy_submit(q, dst, src, sizeof src, &c) || copy_poll(q) != c || memcmp(dst, src, sizeof src)) return 3;
    copy_issue(q);
    copy_queue_close(q);
    return 0;
}

/* The parent writes to all pages afterwards, so that it gets copies of its own of them. */
static void fork_while_copies_are_outstanding(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct copy_queue *q = open_queue(engines[e]);
        unsigned char *src = map(NULL), *dst = map(NULL);
        for (int round = 0; round < ROUNDS; round++) {
            memset(src, round + 1, BYTES);
            memset(dst, 0, BYTES);
            start(q, dst, src, BYTES - PAGE);
            pid_t child = fork();
            if (child == 0) _exit(use_inherited(q));
            assert_true(child > 0);
            for (size_t i = BYTES - PAGE; i < BYTES; i++) dst[i] = src[i] = 99;
            copy_wait_all(q);
            assert_memory_equal(dst, src, BYTES);
            assert_int_equal(end_of(child), 0);
        }
        munmap(src, BYTES);
        munmap(dst, BYTES);
        close_queue(q, engines[e]);
    }
}

/* What has finished is not written again: not to new memory at the same place, nor to where it was moved from. */
static void unmap_and_map_anew(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct copy_queue *q = open_queue(engines[e]);
        unsigned char *src = map(NULL), *dst = map(NULL);
        for (int round = 0; round < ROUNDS; round++) {
            memset(src, round + 1, BYTES);
            start(q, dst, src, BYTES);
            copy_wait_all(q);
            assert_memory_equal(dst, src, BYTES);
            munmap(dst, BYTES);
            map(dst);
            start(q, dst + BYTES / 2, src, PAGE);
            copy_wait_all(q);
            for (size_t i = 0; i < BYTES; i++) assert_int_equal(dst[i], i >= BYTES / 2 && i < BYTES / 2 + PAGE ? round + 1 : 0);
        }
        munmap(src, BYTES);
        munmap(dst, BYTES);
        close_queue(q, engines[e]);
    }
}

/* The source is moved away when it has been copied; other memory is, too, while copies are outstanding. */
static void move_memory(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct copy_queue *q = open_queue(engines[e]);
        unsigned char *src = map(NULL), *dst = map(NULL), *other = map(NULL);
        for (int round = 0; round < ROUNDS; round++) {
            memset(src, round + 1, BYTES);
            start(q, dst, src, BYTES);
            unsigned char *place = map(NULL);
            other = mremap(other, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place);
            assert_ptr_equal(other, place);
            copy_wait_all(q);
            assert_memory_equal(dst, src, BYTES);
            place = map(NULL);
            assert_ptr_equal(mremap(dst, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
            assert_memory_equal(place, src, BYTES);
            dst = place;
        }
        munmap(src, BYTES);
        munmap(dst, BYTES);
        munmap(other, BYTES);
        close_queue(q, engines[e]);
    }
}

/* The processor writes, and copies, to the same pages and lines meanwhile: every second KB is the engine's. */
static void write_beside(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
        struct copy_queue *q = open_queue(engines[e]);
        unsigned char *src = map(NULL), *dst = map(NULL);
        for (int round = 0; round < ROUNDS; round++) {
            copy_cookie c;
            memset(src, round + 1, BYTES);
            memset(dst, 0, BYTES);
            for (size_t at = 1000; at + 1000 < 60 * 1000; at += 2000)
                while (copy_submit(q, dst + at, src + at, 1000, &c)) copy_issue(q), copy_poll(q);
            copy_issue(q);
            for (size_t at = 0; at + 1000 < 60 * 1000; at += 2000) memset(dst + at, 200, 1000);
            copy_wait_all(q);
            for (size_t at = 0; at < 59 * 1000; at++) assert_int_equal(dst[at], at / 1000 % 2 ? round + 1 : 200);
        }
        munmap(src, BYTES);
        munmap(dst, BYTES);
        close_queue(q, engines[e]);
    }
}

/* A process of its own, which returns from main, or so, with copies outstanding. */
static void exit_while_copies_are_outstanding(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            struct copy_queue *q;
            copy_cookie c;
            char *src = calloc(1, 16 * BYTES), *dst = malloc(16 * BYTES);
            if (!src || !dst || copy_queue_open(&copy_core_ops, 8, &q)) _exit(2);
            for (int i = 0; i < 8; i++)
                if (copy_submit(q, dst, src, 16 * BYTES, &c)) break;
            copy_issue(q);
            if (round % 2) _exit(0);
            quick_exit(0);
        }
        assert_true(child > 0);
        assert_int_equal(end_of(child), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_while_copies_are_outstanding), cmocka_unit_test(unmap_and_map_anew),
        cmocka_unit_test(move_memory),                       cmocka_unit_test(write_beside),
        cmocka_unit_test(exit_while_copies_are_outstanding),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
