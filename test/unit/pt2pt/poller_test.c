/* poller_test.c - what the lane looks at besides messages: by every progress, and who sleeps for it is counted and woken. */
#include "mock_job.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Memory that "another process" changes: `flag`, then the gate. */
static struct shared {
    struct lane_poller poller;
    struct gate gate, room;
    _Atomic uint32_t flag;
    int looks;
    bool seen;
} shared;

static int look(struct lane_poller *p)
{
    struct shared *s = container_of(p, struct shared, poller);
    s->looks++;
    if (!atomic_load_explicit(&s->flag, memory_order_acquire)) return 0;
    s->seen = true;
    lane_poller_remove(&lane0, p);
    return 1;
}

static void open_shared(void)
{
    shared = (struct shared){.poller = {.poll = look, .gate = {&shared.gate, &shared.room}}};
    lane_enter(&lane0);
    lane_poller_add(&lane0, &shared.poller);
    lane_leave(&lane0);
}

static bool was_seen(void *arg) { return ((struct shared *)arg)->seen; }

static uint32_t sleepers(struct gate *g) { return atomic_load_explicit(&g->sleepers, memory_order_acquire); }

static void is_looked_at_until_it_leaves(void **state)
{
    (void)state;
    job_open(NULL);
    open_shared();
    lane_enter(&lane0);
    assert_int_equal(lane_progress(&lane0), 0);
    assert_int_equal(shared.looks, 1);
    assert_true(lane_idle(&lane0));
    atomic_store_explicit(&shared.flag, 1, memory_order_release);
    assert_false(lane_idle(&lane0)); /* it looks, too */
    assert_true(shared.seen);
    int looks = shared.looks;
    lane_progress(&lane0);
    assert_int_equal(shared.looks, looks);
    lane_leave(&lane0);
    job_close();
}

/* Waits until the other thread sleeps, as the gates say, and wakes it as the library does: by the gate, or by its bell
 * where gates do not reach. */
static void *change(void *arg)
{
    (void)arg;
    while (!sleepers(&shared.gate)) usleep(100);
    usleep(20000);
    if (!sleepers(&shared.room)) return NULL;
    atomic_store_explicit(&shared.flag, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (gate_check(&shared.gate, true)) bell_ring(wires_bell());
    return &shared;
}

static void sleeper_is_counted_and_woken(void **state)
{
    pthread_t t;
    void *ok;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    open_shared();
    assert_int_equal(pthread_create(&t, NULL, change, NULL), 0);
    lane_enter(&lane0);
    lane_wait(&lane0, was_seen, &shared, NULL);
    lane_leave(&lane0);
    pthread_join(t, &ok);
    assert_non_null(ok);
    assert_int_equal(sleepers(&shared.gate), 0);
    assert_int_equal(sleepers(&shared.room), 0);
    job_close();
}

static void *wait_for_it(void *arg)
{
    lane_enter(&lane0);
    lane_wait(&lane0, was_seen, arg, NULL);
    lane_leave(&lane0);
    return arg;
}

/* One that comes when a thread sleeps already is looked at by that thread. */
static void one_that_comes_late_is_seen_by_sleepers(void **state)
{
    pthread_t t;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    shared.seen = false;
    assert_int_equal(pthread_create(&t, NULL, wait_for_it, &shared), 0);
    for (uint32_t n = 0; !n; usleep(100)) {
        lane_enter(&lane0);
        n = lane0.sleepers;
        lane_leave(&lane0);
    }
    open_shared();
    change(NULL);
    pthread_join(t, NULL);
    assert_true(shared.seen);
    assert_int_equal(sleepers(&shared.gate), 0);
    job_close();
}

static int deep, deepest;

static int look_again(struct lane_poller *p)
{
    (void)p;
    if (++deep > deepest) deepest = deep;
    if (deep < 5) (void)lane_pollers_look(&lane0);
    deep--;
    return 1;
}

/* What a look does may look again, on the way out of the lane; lists that are being walked must not change meanwhile. */
static void look_does_not_come_back_into_itself(void **state)
{
    struct lane_poller p = {.poll = look_again};
    (void)state;
    job_open(NULL);
    lane_poller_add(&lane0, &p);
    assert_int_equal(lane_pollers_look(&lane0), 1);
    assert_int_equal(deepest, 1);
    assert_int_equal(lane_pollers_look(&lane0), 1); /* and the next one looks */
    lane_poller_remove(&lane0, &p);
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(is_looked_at_until_it_leaves, job_clean),
        cmocka_unit_test_teardown(sleeper_is_counted_and_woken, job_clean),
        cmocka_unit_test_teardown(one_that_comes_late_is_seen_by_sleepers, job_clean),
        cmocka_unit_test_teardown(look_does_not_come_back_into_itself, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
