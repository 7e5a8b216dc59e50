/*
 * progress_test.c - rules of src/transport/progress.h: open steps are polled and slept on, by every thread that waits, and
 * nothing is left of one that is closed. The steps are endpoints of the datagram layer: over UDP between two processes
 * (progress_party_test.c), over UDP and a simulated wire without a descriptor in this one.
 */
#include "dgram/circle.h"
#include "dgram/net.h"
#include "../pt2pt/mock_job.h"

#include "base/clock.h"
#include "base/err.h"
#include "transport/dgram/udp.h"
#include "transport/progress.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static uint64_t ns_of(struct timeval t) { return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u; }

static uint64_t cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ns_of(u.ru_utime) + ns_of(u.ru_stime);
}

/* ---- a step that counts ---- */

struct counted {
    struct step step;
    int looks;
    uint64_t due;
};

static int count_look(struct step *s)
{
    struct counted *c = container_of(s, struct counted, step);
    c->looks++;
    if (clock_ns() < c->due) return 0;
    c->due = UINT64_MAX;
    return 1;
}

static uint64_t counted_due(const struct step *s) { return container_of(s, struct counted, step)->due; }

static const struct step_ops counting = {.name = "a count", .poll = count_look, .poll_ns = 320, .due = counted_due};

static struct counted counted(void)
{
    return (struct counted){.step = {.ops = &counting, .fd = -1}, .due = UINT64_MAX};
}

/* A look at this step costs what a look at a socket costs: cheap wires go first, and it has its turn now and then. */
static void looked_at_as_costly_wires_are(void **state)
{
    struct counted c = counted();
    (void)state;
    job_open(NULL);
    assert_int_equal(pt_progress_open(&c.step), 0);
    for (int i = 0; i < 80; i++) wires_progress(64);
    assert_int_equal(c.looks, 10);
    pt_progress_close(&c.step);
    for (int i = 0; i < 80; i++) wires_progress(64);
    assert_int_equal(c.looks, 10);
    assert_true(wires_idle(false));
    job_close();
}

/* An open step does not make peers on other nodes reachable. */
static void is_no_transport(void **state)
{
    struct counted c = counted();
    (void)state;
    job_open(NULL);
    assert_int_equal(pt_progress_open(&c.step), 0);
    assert_false(wires_beyond_node());
    pt_progress_close(&c.step);
    job_close();
}

static void nothing_is_left(void **state)
{
    struct counted c[PROGRESS_OPEN_MAX + 1];
    (void)state;
    job_open(NULL);
    unsigned before = descriptors();
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < PROGRESS_OPEN_MAX; i++) {
            c[i] = counted();
            assert_int_equal(pt_progress_open(&c[i].step), 0);
        }
        assert_true(bell_has_socket(wires_bell()));
        assert_int_not_equal(descriptors(), before);
        c[PROGRESS_OPEN_MAX] = counted();
        assert_int_equal(pt_progress_open(&c[PROGRESS_OPEN_MAX].step), TERN_ERR_INTERN);
        assert_non_null(strstr(err_words(), "more than 4 open steps of progress"));
        for (int i = 0; i < PROGRESS_OPEN_MAX; i++) pt_progress_close(&c[(i + round) % PROGRESS_OPEN_MAX].step);
        assert_int_equal(descriptors(), before);
        assert_false(bell_has_socket(wires_bell()));
    }
    pt_progress_close(&c[0].step); /* is closed already */
    job_close();
}

/* ---- retries ---- */

struct tried {
    struct step step;
    const int *room; /* it ends when that is not 0 */
    int tries;
};

static int try_again(struct step *s)
{
    struct tried *t = container_of(s, struct tried, step);
    t->tries++;
    if (*t->room) step_off(s);
    return *t->room ? 1 : 0;
}

static const struct step_ops trying = {
    .name = "a try", .poll = try_again, .room = true, .idle = step_waits, .drained = step_is_off};

/* What waits for room is tried once a turn until it has gone; so long nobody sleeps without being woken by room, and the
 * process does not take its leave. */
static void what_waits_for_room_is_tried_every_turn(void **state)
{
    int room = 0;
    struct tried t[2] = {{.step.ops = &trying, .room = &room}, {.step.ops = &trying, .room = &room}};
    (void)state;
    job_open(NULL);
    for (int i = 0; i < 2; i++) {
        step_on(&progress_process, &t[i].step);
        step_on(&progress_process, &t[i].step); /* is on already */
    }
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(i % 2 ? wires_progress(64) : wires_progress_cheap(64), 0);
        assert_int_equal(t[0].tries, i);
        assert_int_equal(t[1].tries, i);
        assert_false(wires_idle(false)); /* mock wakes nobody for room */
        assert_false(wires_drained());
    }
    step_off(&t[1].step);
    step_off(&t[1].step);
    room = 1;
    assert_int_equal(wires_progress(64), 1);
    assert_int_equal(wires_progress(64), 0);
    assert_int_equal(t[0].tries, 4);
    assert_int_equal(t[1].tries, 3);
    assert_true(wires_idle(false));
    assert_true(wires_drained());
    job_close();
}

/* A wire whose look is a system call makes room in that look, and nothing wakes the process once more for it. */
static void room_that_a_costly_look_makes_is_used_in_that_turn(void **state)
{
    struct counted c = counted();
    struct tried t = {.step.ops = &trying, .room = &c.looks};
    (void)state;
    job_open(NULL);
    step_on(&progress_process, &t.step);
    assert_int_equal(pt_progress_open(&c.step), 0);
    while (!c.looks) wires_progress(64);
    assert_false(progress_waits(&progress_process));
    pt_progress_close(&c.step);
    job_close();
}

static bool is_over(void *step) { return container_of(step, struct counted, step)->due == UINT64_MAX; }

/* The time of a step ends a sleep then: not before, and not as late as other sleeps end. */
static void time_ends_a_sleep(void **state)
{
    struct counted a = counted(), b = counted();
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open(NULL);
    assert_int_equal(pt_progress_open(&a.step), 0);
    assert_int_equal(pt_progress_open(&b.step), 0);
    for (uint64_t ms = 1; ms <= 64; ms *= 4) {
        uint64_t begin = clock_ns(), cpu = cpu_ns();
        a.due = begin + 2 * ms * 1000000;
        b.due = begin + ms * 1000000;
        b.looks = 0;
        lane_enter(lanes_first());
        lane_wait(lanes_first(), is_over, &b.step, NULL);
        lane_wait(lanes_first(), is_over, &a.step, NULL);
        lane_leave(lanes_first());
        uint64_t waited = clock_ns() - begin;
        assert_true(waited >= 2 * ms * 1000000);
        assert_true(b.looks < 100);
        if (ms == 64) assert_true(cpu_ns() - cpu < waited / 4);
    }
    pt_progress_close(&a.step);
    pt_progress_close(&b.step);
    job_close();
}

/* Before a sleep the timer is set to the time of the steps, sooner or later than it was: neither slept over nor in vain. */
static void a_sleep_has_the_right_time(void **state)
{
    struct counted c = counted();
    struct pollfd p[BELL_FDS_MAX];
    int fds[BELL_FDS_MAX];
    (void)state;
    job_open(NULL);
    assert_int_equal(pt_progress_open(&c.step), 0);
    int n = wires_wait_fds(fds);
    for (int i = 0; i < n; i++) p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    uint64_t begin = clock_ns();
    c.due = begin + 5000000;
    assert_true(wires_idle(false));
    assert_int_equal(poll(p, (nfds_t)n, 10000), 1);
    assert_true(clock_ns() >= c.due);
    assert_false(wires_idle(false)); /* there is something to do */
    c.due = clock_ns() + 5000000;
    assert_true(wires_idle(false));
    c.due = UINT64_MAX;
    assert_true(wires_idle(false));
    assert_int_equal(poll(p, (nfds_t)n, 20), 0);
    pt_progress_close(&c.step);
    job_close();
}

static void *wait_for_step(void *step)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), is_over, step, NULL);
    lane_leave(lanes_first());
    return NULL;
}

/* Until n threads sleep in the lane. */
static void await_sleepers(uint32_t n)
{
    for (bool asleep = false; !asleep; usleep(100)) {
        lane_enter(lanes_first());
        asleep = waits.sleepers == n;
        lane_leave(lanes_first());
    }
}

/* A thread that sleeps and is not woken gets up by itself after half a second. */
#define SOON_NS UINT64_C(250000000)

/* What one thread finds, another one may sleep for. */
static void a_find_wakes_other_threads(void **state)
{
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    struct counted c = counted();
    assert_int_equal(pt_progress_open(&c.step), 0);
    uint64_t begin = clock_ns();
    for (int round = 0; round < 10; round++) {
        pthread_t t;
        lane_enter(lanes_first());
        c.due = clock_ns() + 100 * SECOND;
        lane_leave(lanes_first());
        assert_int_equal(pthread_create(&t, NULL, wait_for_step, &c.step), 0);
        await_sleepers(1);
        lane_enter(lanes_first());
        c.due = 0;
        while (!is_over(&c.step)) lane_progress(lanes_first());
        lane_leave(lanes_first());
        pthread_join(t, NULL);
    }
    assert_true(clock_ns() - begin < 10 * SOON_NS);
    pt_progress_close(&c.step);
    job_close();
}

/* ---- datagrams ---- */

static void open_steps(void)
{
    for (unsigned i = 0; i < 2; i++) assert_int_equal(pt_progress_open(dgram_step(members[i].ep)), 0);
}

static void close_steps(void)
{
    for (unsigned i = 0; i < 2; i++) pt_progress_close(dgram_step(members[i].ep));
    for (unsigned i = 0; i < 2; i++) member_close(i);
}

static bool all_done(void *none)
{
    (void)none;
    return circle_under_way() == 0;
}

static void exchange(void)
{
    lane_enter(lanes_first());
    member_send_some(0, 1, 40, 30000);
    member_send_some(1, 0, 40, 30000);
    lane_wait(lanes_first(), all_done, NULL, NULL);
    lane_leave(lanes_first());
    assert_true(circle_right());
}

static void open_udp(const char *faults)
{
    for (unsigned i = 0; i < 2; i++) {
        struct dgram_wire *w;
        char words[128];
        snprintf(words, sizeof words, "seed=%llu,%s", (unsigned long long)circle_seed + i, faults);
        assert_int_equal(udp_open("127.0.0.1", 0, 0, 0, &w), 0);
        member_open(i, w, *faults ? words : "", NULL);
    }
    member_meet(0, 1);
    member_meet(1, 0);
}

/* Nobody calls dgram_progress but the wait; what is lost is sent again by the timer. */
static void waits_drive_datagrams(void **state)
{
    static const char *const faults[] = {"", "loss=20", "loss=10,dup=10,reorder=10,corrupt=1,delay_us=200"};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
        job_open(NULL);
        unsigned before = descriptors();
        open_udp(faults[i]);
        open_steps();
        exchange();
        if (i) assert_true(member_stats(0).resent > 0);
        close_steps();
        assert_int_equal(descriptors(), before);
        job_close();
    }
}

/* A wire without a descriptor: its time alone says when to look. */
static void any_wire_will_do(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        job_open(NULL);
        net_reset();
        net_now = clock_ns();
        circle_pair(faulty ? "loss=20" : "", NULL);
        open_steps();
        exchange();
        close_steps();
        job_close();
    }
}

static void *wait_for_all(void *none)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), all_done, NULL, NULL);
    lane_leave(lanes_first());
    return none;
}

static bool flag_is_set(void *flag) { return atomic_load((_Atomic bool *)flag); }

static void *wait_for_flag(void *flag)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), flag_is_set, flag, NULL);
    lane_leave(lanes_first());
    return NULL;
}

/* A thread that sleeps sees to what another one sends and does not look after; and both threads that wait get up, though
 * one of them alone takes the last datagram. */
static void sleeping_threads_see_to_it(void **state)
{
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    open_udp("");
    open_steps();
    _Atomic bool over = false;
    pthread_t keeper, waiter[2];
    assert_int_equal(pthread_create(&keeper, NULL, wait_for_flag, &over), 0);
    uint64_t begin = clock_ns();
    for (int round = 0; round < 50; round++) {
        await_sleepers(1);
        lane_enter(lanes_first());
        member_send(0, 1, 16 + (unsigned)round);
        lane_leave(lanes_first());
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&waiter[i], NULL, wait_for_all, NULL), 0);
        for (int i = 0; i < 2; i++) pthread_join(waiter[i], NULL);
    }
    assert_true(clock_ns() - begin < 50 * SOON_NS);
    atomic_store(&over, true);
    bell_wake_all(wires_bell());
    pthread_join(keeper, NULL);
    assert_true(circle_right());
    close_steps();
    job_close();
}

/* What threads sleep on changes below them: each sleep before, in between and after is ended by the bell. */
static void sleepers_change_over(void **state)
{
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    uint64_t begin = clock_ns();
    for (int round = 0; round < 300; round++) {
        struct counted c = counted();
        _Atomic bool over = false;
        pthread_t t[2];
        bool early = round % 3 == 0, late = round % 3 == 1; /* set while it is open, or after; else at the same time */
        if (round % 2) assert_int_equal(pt_progress_open(&c.step), 0);
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, wait_for_flag, &over), 0);
        if (round % 5) await_sleepers(2);
        if (!(round % 2)) assert_int_equal(pt_progress_open(&c.step), 0);
        if (early && round % 7) await_sleepers(2);
        if (!late) atomic_store(&over, true);
        if (early) bell_ring(wires_bell());
        pt_progress_close(&c.step);
        if (late) {
            if (round % 7) await_sleepers(2);
            atomic_store(&over, true);
            bell_ring(wires_bell());
        }
        for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    }
    assert_true(clock_ns() - begin < 300 * SOON_NS);
    assert_int_equal(waits.sleepers, 0);
    job_close();
}

static uint64_t messages_at(unsigned member)
{
    lane_enter(lanes_first());
    uint64_t n = members[member].came[1 - member];
    lane_leave(lanes_first());
    return n;
}

/* The thread that sleeps sends what another one gives it, and offers a message again that was refused. */
static void owners_hurry_sleepers(void **state)
{
    enum { TIMES = 10 };
    pthread_t t;
    _Atomic bool over = false;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    open_udp("");
    open_steps();
    assert_int_equal(pthread_create(&t, NULL, wait_for_flag, &over), 0);
    uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < TIMES; i++) {
        await_sleepers(1);
        lane_enter(lanes_first());
        members[1].full = true;
        member_send(0, 1, 100);
        lane_leave(lanes_first());
        for (uint64_t there = 0; there <= i; usleep(100)) {
            lane_enter(lanes_first());
            there = members[0].done[1];
            lane_leave(lanes_first());
        }
        assert_int_equal(messages_at(1), i);
        await_sleepers(1);
        lane_enter(lanes_first());
        members[1].full = false;
        progress_hurry(dgram_step(members[1].ep));
        lane_leave(lanes_first());
        while (messages_at(1) == i) usleep(100);
    }
    assert_true(clock_ns() - begin < TIMES * SOON_NS);
    atomic_store(&over, true);
    bell_wake_all(wires_bell());
    pthread_join(t, NULL);
    close_steps();
    job_close();
}

/* ---- the helper ---- */

/* While the program computes, the helper drives the step, whether it or the step was there first. */
static void the_helper_drives_steps(void **state)
{
    (void)state;
    for (int helper_first = 0; helper_first < 2; helper_first++) {
        job_open(NULL);
        open_udp("loss=10");
        if (helper_first) assert_int_equal(pt_help(), 0);
        open_steps();
        if (!helper_first) assert_int_equal(pt_help(), 0);
        lane_enter(lanes_first());
        assert_true(lane_left_work(lanes_first()));
        member_send_some(0, 1, 20, 10000);
        member_send_some(1, 0, 20, 10000);
        lane_leave(lanes_first());
        for (bool over = false; !over; usleep(1000)) { /* the lane is the helper's meanwhile: nobody looks but the helper */
            if (!lane_try(lanes_first())) continue;
            over = !circle_under_way();
            lane_out(lanes_first());
        }
        lane_enter(lanes_first());
        background_over();
        lane_leave(lanes_first());
        assert_true(circle_right());
        close_steps();
        pt_help_no_more();
        job_close();
    }
}

static int clean(void **state)
{
    circle_stop(state);
    unsetenv("TERN_SPIN");
    return job_clean(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(looked_at_as_costly_wires_are, job_clean),
        cmocka_unit_test_teardown(is_no_transport, job_clean),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test_teardown(what_waits_for_room_is_tried_every_turn, job_clean),
        cmocka_unit_test_teardown(room_that_a_costly_look_makes_is_used_in_that_turn, job_clean),
        cmocka_unit_test_teardown(time_ends_a_sleep, job_clean),
        cmocka_unit_test_teardown(a_sleep_has_the_right_time, job_clean),
        cmocka_unit_test_teardown(a_find_wakes_other_threads, clean),
        cmocka_unit_test_teardown(waits_drive_datagrams, clean),
        cmocka_unit_test_teardown(any_wire_will_do, clean),
        cmocka_unit_test_teardown(sleeping_threads_see_to_it, clean),
        cmocka_unit_test_teardown(sleepers_change_over, job_clean),
        cmocka_unit_test_teardown(owners_hurry_sleepers, clean),
        cmocka_unit_test_teardown(the_helper_drives_steps, clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    circle_read_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
