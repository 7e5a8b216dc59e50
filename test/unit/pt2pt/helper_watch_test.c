/*
 * helper_watch_test.c - a caller that leaves while the helper ends its watch either finds that, and wakes it, or is seen.
 */
#include "base/clock.h"
#include "pt2pt/helper_watch.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MS 1000000u

/* So many, or fewer where the two are seldom on a core at once. */
enum { MEETINGS = 400000, MEETINGS_LEAST = 1000 };
#define MEETINGS_NS ((uint64_t)700 * MS)

static struct {
    TERN_ALIGNED(CACHE_LINE) struct helper_watch watch;
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t here[2];
    _Atomic bool stop, called;
    bool looks_again; /* the helper does, behind its end */
} meeting;

static void meet(int who, uint32_t round)
{
    atomic_store(&meeting.here[who], round);
    for (int i = 1; atomic_load(&meeting.here[!who]) < round; i++)
        if (i % 1024 == 0) sched_yield();
}

static void *leave(void *none)
{
    for (uint32_t i = 1; !atomic_load(&meeting.stop); i++) {
        meet(1, 2 * i);
        for (uint32_t k = i % 16; k; k--) cpu_relax();
        watch_leave(&meeting.watch);
        atomic_store(&meeting.called, watch_calls(&meeting.watch));
        meet(1, 2 * i + 1);
    }
    return none;
}

/* The end of a watch, with or without its second look. */
static void end(uint32_t left)
{
    if (meeting.looks_again) watch_end(&meeting.watch, left);
    else if (watch_left(&meeting.watch) == left) watch_stop(&meeting.watch);
}

/* How often neither saw the other: what was left in the background would be slept over. */
static int missed(bool looks_again, uint32_t *meetings, uint32_t *ends)
{
    int n = 0;
    pthread_t other;
    uint64_t limit = clock_ns() + MEETINGS_NS;
    meeting.looks_again = looks_again;
    meeting.stop = false;
    meeting.here[0] = meeting.here[1] = 0;
    *ends = 0;
    assert_int_equal(pthread_create(&other, NULL, leave, NULL), 0);
    for (uint32_t i = 1; !atomic_load(&meeting.stop); i++) {
        uint32_t left = watch_left(&meeting.watch);
        atomic_store(&meeting.watch.state, WATCH_ON);
        meet(0, 2 * i);
        for (uint32_t k = i / 16 % 16; k; k--) cpu_relax();
        end(left);
        atomic_store(&meeting.stop, i == MEETINGS || (i >= MEETINGS_LEAST && clock_ns() > limit));
        *meetings = i;
        meet(0, 2 * i + 1);
        *ends += atomic_load(&meeting.called);
        n += !atomic_load(&meeting.called) && !watch_is_on(&meeting.watch);
    }
    pthread_join(other, NULL);
    return n;
}

static void nobody_who_leaves_is_missed(void **state)
{
    uint32_t meetings = 0, ends = 0;
    (void)state;
    int without = missed(false, &meetings, &ends);
    print_message("# of %u ends of a watch without a second look, %d miss who leaves\n", meetings, without);
    assert_int_equal(missed(true, &meetings, &ends), 0);
    assert_true(meetings >= MEETINGS_LEAST);
    print_message("# of %u ends, %u were seen by who left\n", meetings, ends);
}

/* Without another thread: each side finds what the other did before it. */
static void one_after_the_other(void **state)
{
    struct helper_watch w = {WATCH_OFF, 0};
    (void)state;
    watch_leave(&w);
    assert_true(watch_calls(&w)); /* it did not watch */
    uint32_t left = watch_left(&w);
    watch_leave(&w);
    assert_false(watch_calls(&w)); /* it does */
    watch_end(&w, left);
    assert_true(watch_is_on(&w)); /* somebody has left since */
    watch_end(&w, watch_left(&w));
    assert_false(watch_is_on(&w));
    atomic_store(&w.state, WATCH_ENDING);
    watch_leave(&w);
    assert_true(watch_calls(&w)); /* it may be about to sleep */
    watch_end(&w, left);
    assert_true(watch_is_on(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(nobody_who_leaves_is_missed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
