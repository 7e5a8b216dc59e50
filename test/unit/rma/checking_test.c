/*
 * checking_test.c - what others send about their operations with TERN_CHECK=rma may be anything: it does no harm, and its words
 * can be printed. (What is right is tested by test/mpi/rma/conflict.c.)
 */
#include "rma/checking.h"
#include "base/err.h"
#include "base/var.h"
#include "type/type.h"
#include "../seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGINS = 3, RUNS = 4 };

static struct comm comm = {.size = ORIGINS, .rank = 1};
static struct win win = {.comm = &comm, .flavor = MPI_WIN_FLAVOR_CREATE, .bytes = 1000, .unit = 4};
static struct win_target target = {.win = &win, .rank = 1};
static uint64_t state;

static uint64_t below(uint64_t n) { return seed_next(&state) % n; }

static void noise(void *to, size_t n)
{
    for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)seed_next(&state);
}

/* Small, or anything. */
static int64_t distance(void) { return below(4) ? (int64_t)below(300) - 20 : (int64_t)seed_next(&state); }

static int open_all(void **unused)
{
    (void)unused;
    setenv("TERN_CHECK", "rma", 1);
    state = seed_open();
    return var_open() || type_open() || checking_open(&win);
}

static int close_all(void **unused)
{
    (void)unused;
    checking_close(&win);
    type_close();
    var_close();
    return 0;
}

static void words_can_be_printed(void)
{
    const char *w = err_words();
    assert_true(strlen(w) > 20 && strlen(w) < 512);
    for (; *w; w++) assert_true(*w >= ' ' && *w <= '~');
}

static void words_of_noise(void **unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        struct win_conflict c;
        noise(&c, sizeof c);
        if (below(2)) c.own.kind = (uint8_t)below(WIN_LOCK), c.own.op = (uint8_t)below(16);
        if (below(2)) c.other.type = (uint16_t)(uintptr_t)MPI_INT, c.other.kind = WIN_ACCUMULATE;
        win.flavor = below(2) ? MPI_WIN_FLAVOR_CREATE : MPI_WIN_FLAVOR_DYNAMIC;
        assert_int_equal(checking_words(&target, &c), TERN_ERR_WIN_CONFLICT);
        words_can_be_printed();
    }
    win.flavor = MPI_WIN_FLAVOR_CREATE;
}

/* Only what serve.c lets through: a type that there is, and so many elements as have come. */
static void some_operation(int32_t origin)
{
    static const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_DOUBLE_INT, MPI_BYTE};
    struct win_run runs[RUNS];
    struct win_record r = {.kind = (uint8_t)below(WIN_LOCK), .op = (uint8_t)below(14), .runs = (uint32_t)below(RUNS + 1)};
    if (r.kind >= WIN_ACCUMULATE) r.type = (uint16_t)(uintptr_t)types[below(ARRAY_LEN(types))];
    r.displacement = distance();
    r.offset = distance();
    r.count = (int64_t)below(100);
    for (int i = 0; i < RUNS; i++) runs[i] = (struct win_run){distance(), (int64_t)below(100)};
    checking_on_op(&win, origin, &r, (const char *)runs);
}

static bool some_note(int32_t origin)
{
    static uint64_t fences = 1;
    struct win_note n;
    noise(&n, sizeof n);
    fences += !below(300);
    n.fences = fences - !below(10);
    n.call = (uint8_t)below(20);
    n.epoch = (uint8_t)below(6);
    if (below(4)) n.reads_over = 0;
    return checking_on_note(&win, origin, &n);
}

static void notes_of_noise(void **unused)
{
    int wrong = 0, conflicts = 0;
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        struct win_conflict c;
        int32_t origin = (int32_t)below(ORIGINS);
        wrong += !some_note(origin);
        some_operation(origin);
        if (!below(20)) checking_on_flush(&win, origin);
        if (!below(100)) checking_end_exposure(&win);
        if (!below(500)) checking_forget(&win, origin);
        if (below(4) || !checking_conflict(&win, origin, &c)) continue;
        conflicts++;
        assert_int_equal(c.own.origin, origin);
        assert_true(c.own.begin < c.other.end && c.other.begin < c.own.end);
        assert_true(c.own.begin >= 0 && c.own.end <= win.bytes);
        assert_int_equal(checking_words(&target, &c), TERN_ERR_WIN_CONFLICT);
        words_can_be_printed();
    }
    assert_true(wrong > 100 && conflicts > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_noise),
        cmocka_unit_test(notes_of_noise),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
