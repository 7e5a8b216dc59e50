/* steps_test.c - steps of a lane: polled in every turn while they are on; who sleeps for them is counted and woken. */
#include "mock_job.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Memory that "another process" changes: `flag`, then the gate. */
static struct shared {
    struct step step;
    struct gate gate, room;
    _Atomic uint32_t flag;
    int looks;
    bool seen;
} shared;

static int look(struct step *step)
{
    struct shared *s = container_of(step, struct shared, step);
    s->looks++;
    if (!atomic_load_explicit(&s->flag, memory_order_acquire)) return 0;
    s->seen = true;
    step_off(step);
    return 1;
}

static const struct step_ops look_ops = {.name = "shared memory", .poll = look};

static void open_shared(void)
{
    lane_enter(lanes_first()); /* a thread that waits in the lane looks at it */
    shared = (struct shared){.step = {.ops = &look_ops, .gate = {&shared.gate, &shared.room}}};
    lane_step_on(lanes_first(), &shared.step);
    lane_leave(lanes_first());
}

static bool was_seen(void *arg) { return ((struct shared *)arg)->seen; }

static uint32_t sleepers(struct gate *g) { return atomic_load_explicit(&g->sleepers, memory_order_acquire); }

static void is_looked_at_until_it_leaves(void **state)
{
    (void)state;
    job_open(NULL);
    open_shared();
    lane_enter(lanes_first());
    assert_int_equal(lane_progress(lanes_first()), 0);
    assert_int_equal(shared.looks, 1);
    assert_true(lane_idle());
    atomic_store_explicit(&shared.flag, 1, memory_order_release);
    assert_false(lane_idle()); /* it looks, too */
    assert_true(shared.seen);
    int looks = shared.looks;
    lane_progress(lanes_first());
    assert_int_equal(shared.looks, looks);
    lane_leave(lanes_first());
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
    lane_enter(lanes_first());
    lane_wait(lanes_first(), was_seen, &shared, NULL);
    lane_leave(lanes_first());
    pthread_join(t, &ok);
    assert_non_null(ok);
    assert_int_equal(sleepers(&shared.gate), 0);
    assert_int_equal(sleepers(&shared.room), 0);
    job_close();
}

static void *wait_for_it(void *arg)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), was_seen, arg, NULL);
    lane_leave(lanes_first());
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
        lane_enter(lanes_first());
        n = waits.sleepers;
        lane_leave(lanes_first());
    }
    open_shared();
    change(NULL);
    pthread_join(t, NULL);
    assert_true(shared.seen);
    assert_int_equal(sleepers(&shared.gate), 0);
    job_close();
}

static int deep, deepest;

static int look_again(struct step *s)
{
    (void)s;
    if (++deep > deepest) deepest = deep;
    if (deep < 5) (void)progress_run(&lanes_first()->steps);
    deep--;
    return 1;
}

/* What a look does may look again, on the way out of the lane; lists that are being walked must not change meanwhile. */
static void look_does_not_come_back_into_itself(void **state)
{
    static const struct step_ops ops = {.name = "looks again", .poll = look_again};
    struct step s[2] = {{.ops = &ops}, {.ops = &ops}};
    (void)state;
    job_open(NULL);
    step_on(&lanes_first()->steps, &s[0]);
    assert_int_equal(progress_run(&lanes_first()->steps), 1);
    assert_int_equal(deepest, 1);
    assert_int_equal(progress_run(&lanes_first()->steps), 1); /* and the next one looks */
    step_on(&lanes_first()->steps, &s[1]);
    assert_int_equal(progress_run(&lanes_first()->steps), 2);
    assert_int_equal(deepest, 1);
    for (int i = 0; i < 2; i++) step_off(&s[i]);
    job_close();
}

/* ---- what wakes a look that is not on ---- */

struct counted {
    struct step step;
    struct counted *off; /* is turned off, and no more known, by a look at this one */
    int looks, ends, doubts;
    bool again; /* a look turns itself off and on */
};

static struct counted *counted_of(const struct step *s)
{
    return container_of((struct step *)(uintptr_t)s, struct counted, step);
}

static int count(struct step *s)
{
    struct counted *c = counted_of(s);
    c->looks++;
    if (c->off) step_remove(&c->off->step);
    if (c->again) {
        step_off(s);
        step_on(&lanes_first()->steps, s);
    }
    return 1;
}

static void count_end(struct step *s, struct peer *p)
{
    assert_ptr_equal(p, job_peer());
    counted_of(s)->ends++;
}

static void count_doubt(struct step *s) { counted_of(s)->doubts++; }
static bool is_busy(const struct step *s, const struct peer *p) { return p == job_peer() && counted_of(s)->again; }
static bool has_no_looks(const struct step *s) { return !counted_of(s)->looks; }

static const struct step_ops counting = {.name = "a count",
                                         .poll = count,
                                         .idle = step_waits,
                                         .drained = has_no_looks,
                                         .busy_with = is_busy,
                                         .peer_end = count_end,
                                         .doubt = count_doubt};

static void *tell(void *step)
{
    step_tell(step);
    return step;
}

/* By another thread, without the lock: once, and nobody sleeps before that. */
static void a_told_step_is_polled_in_the_next_turn(void **state)
{
    struct counted c = {.step.ops = &counting};
    pthread_t t;
    (void)state;
    job_open(NULL);
    step_add(&lanes_first()->steps, &c.step);
    lane_enter(lanes_first());
    assert_int_equal(lane_progress(lanes_first()), 0);
    assert_int_equal(pthread_create(&t, NULL, tell, &c.step), 0);
    pthread_join(t, NULL);
    assert_false(lane_idle());
    assert_int_equal(lane_progress(lanes_first()), 1);
    assert_int_equal(lane_progress(lanes_first()), 0);
    assert_true(lane_idle());
    assert_int_equal(c.looks, 1);
    step_remove(&c.step);
    lane_leave(lanes_first());
    job_close();
}

static void a_step_is_polled_when_its_word_has_changed(void **state)
{
    _Atomic uint32_t word = 7;
    struct counted c = {.step = {.ops = &counting, .word = &word, .seen = 7}};
    (void)state;
    job_open(NULL);
    step_add(&lanes_first()->steps, &c.step);
    lane_enter(lanes_first());
    assert_int_equal(lane_progress(lanes_first()), 0);
    word = 9;
    assert_false(lane_idle());
    assert_int_equal(lane_progress(lanes_first()), 1);
    assert_int_equal(lane_progress(lanes_first()), 0);
    step_remove(&c.step);
    word = 11;
    assert_int_equal(lane_progress(lanes_first()), 0);
    lane_leave(lanes_first());
    job_close();
}

/* A look may take others out of the list that is being walked, and put its own step back into it. */
static void looks_may_change_the_list(void **state)
{
    struct counted c[4] = {{.step.ops = &counting, .again = true}, {.step.ops = &counting}, {.step.ops = &counting}, {.step.ops = &counting}};
    (void)state;
    job_open(NULL);
    c[1].off = &c[2];
    for (int i = 0; i < 4; i++) step_on(&lanes_first()->steps, &c[i].step);
    assert_int_equal(progress_run(&lanes_first()->steps), 3);
    assert_int_equal(c[0].looks, 1);
    assert_int_equal(c[1].looks, 1);
    assert_int_equal(c[2].looks, 0);
    assert_int_equal(c[3].looks, 1);
    assert_int_equal(progress_run(&lanes_first()->steps), 3);
    for (int i = 0; i < 4; i++) step_off(&c[i].step);
    assert_true(list_empty(&lanes_first()->steps.active));
    job_close();
}

/* Known steps are asked though they are off, and those that are on though they are not known; each once. */
static void known_steps_and_those_that_are_on_are_asked(void **state)
{
    struct counted c[3] = {{.step.ops = &counting}, {.step.ops = &counting}, {.step.ops = &counting}};
    (void)state;
    job_open(NULL);
    step_add(&lanes_first()->steps, &c[0].step);
    step_on(&lanes_first()->steps, &c[1].step);
    step_add(&lanes_first()->steps, &c[2].step);
    step_on(&lanes_first()->steps, &c[2].step);
    progress_peer_end(&lanes_first()->steps, job_peer());
    progress_doubt(&lanes_first()->steps);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(c[i].ends, 1);
        assert_int_equal(c[i].doubts, 1);
        assert_false(progress_busy_with(&lanes_first()->steps, job_peer()));
        c[i].again = true;
        assert_true(progress_busy_with(&lanes_first()->steps, job_peer()));
        c[i].again = false;
        assert_true(progress_drained(&lanes_first()->steps));
        c[i].looks = 1;
        assert_false(progress_drained(&lanes_first()->steps));
        c[i].looks = 0;
    }
    for (int i = 0; i < 3; i++) step_remove(&c[i].step);
    assert_true(progress_drained(&lanes_first()->steps));
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(is_looked_at_until_it_leaves, job_clean),
        cmocka_unit_test_teardown(sleeper_is_counted_and_woken, job_clean),
        cmocka_unit_test_teardown(one_that_comes_late_is_seen_by_sleepers, job_clean),
        cmocka_unit_test_teardown(look_does_not_come_back_into_itself, job_clean),
        cmocka_unit_test_teardown(a_told_step_is_polled_in_the_next_turn, job_clean),
        cmocka_unit_test_teardown(a_step_is_polled_when_its_word_has_changed, job_clean),
        cmocka_unit_test_teardown(looks_may_change_the_list, job_clean),
        cmocka_unit_test_teardown(known_steps_and_those_that_are_on_are_asked, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
