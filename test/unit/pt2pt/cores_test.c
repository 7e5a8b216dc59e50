/* cores_test.c - what a wait does when a peer is on its core. Cores and masks are simulated. */
#include "base/clock.h"
#include "mock_job.h"
#include "proc/proc.h"
#include "pt2pt/cores.h"
#include "pt2pt/wait_policy.h"

#include <sched.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

/* ---- the simulated machine ---- */

static int cpu;        /* the one that this thread runs on */
static cpu_set_t mask; /* of this thread */
static int yields, masks_set;
static bool refused; /* masks cannot be set */

int __wrap_sched_getcpu(void);
int __wrap_sched_yield(void);
int __wrap_sched_getaffinity(pid_t, size_t, cpu_set_t *);
int __wrap_sched_setaffinity(pid_t, size_t, const cpu_set_t *);

int __wrap_sched_getcpu(void) { return cpu; }

int __wrap_sched_yield(void)
{
    yields++;
    return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
    assert_int_equal(pid, 0);
    assert_int_equal(n, sizeof *set);
    *set = mask;
    return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t n, const cpu_set_t *set)
{
    assert_int_equal(pid, 0);
    assert_int_equal(n, sizeof *set);
    if (refused) return -1;
    mask = *set;
    masks_set++;
    for (int i = 0; !CPU_ISSET((size_t)cpu, &mask); i++)
        if (CPU_ISSET((size_t)i, &mask)) cpu = i;
    return 0;
}

static void machine(int cpus)
{
    CPU_ZERO(&mask);
    for (int i = 0; i < cpus; i++) CPU_SET((size_t)i, &mask);
    cpu = yields = masks_set = 0;
    refused = false;
}

/* A job that compares cores although it has one rank, with its peer on `core`. */
static void open_job(const char *how, int cpus, int core)
{
    machine(cpus);
    setenv("TERN_SHARED_CORE", how, 1);
    setenv("TERN_SPIN_MAX", "200000", 1); /* a wait here ends before it sleeps, however slow the build is */
    setenv("TERN_YIELD_MAX", "100000", 1);
    job_open(NULL);
    cores_compare(true);
    mock_script.core = core;
}

static bool countdown(void *left) { return --*(int *)left <= 0; }

/* A wait of some thousand looks: much longer than the first look at the core takes, shorter than polling. */
static int yields_of_a_wait(void)
{
    int left = 3000;
    yields = 0;
    lane_enter(lanes_first());
    lane_wait(lanes_first(), countdown, &left, NULL);
    lane_leave(lanes_first());
    return yields;
}

/* ---- tests ---- */

/* Regression: a rank polled for its whole budget, or slice, on the core of the rank that it waited for. */
static void a_wait_gives_up_a_core_that_a_peer_shares(void **state)
{
    (void)state;
    open_job("yield", 4, 0);
    assert_true(yields_of_a_wait() > 100);
    assert_int_equal(masks_set, 0);
    job_close();
}

/* When the peer has gone elsewhere, waits poll as before, and what they have learnt stands. */
static void a_wait_polls_again_when_the_peer_has_gone(void **state)
{
    (void)state;
    open_job("yield", 4, 0);
    uint64_t spin = waits.spin_ns;
    yields_of_a_wait();
    assert_true(waits.spin_ns == spin);
    mock_script.core = 1;
    assert_in_range(yields_of_a_wait(), 0, 1);
    assert_int_equal(yields_of_a_wait(), 0);
    assert_true(waits.spin_ns == spin);
    job_close();
}

static void a_rank_moves_to_a_core_without_peers(void **state)
{
    cpu_set_t before;
    (void)state;
    open_job("move", 2, 0);
    before = mask;
    assert_false(cores_find_peer(clock_ns(), false));
    assert_int_equal(cpu, 1);
    assert_int_equal(masks_set, 2);
    assert_true(CPU_EQUAL(&mask, &before));
    assert_int_equal(atomic_load(&wires_bell()->core), 2);
    assert_false(cores_find_peer(clock_ns(), false)); /* alone now */
    assert_int_equal(masks_set, 2);
    mock_script.core = 1; /* the peer follows: not again at once */
    assert_true(cores_find_peer(0, false));
    assert_int_equal(cpu, 1);
    assert_false(cores_find_peer(UINT64_MAX, false)); /* but later */
    assert_int_equal(cpu, 0);
    job_close();
}

static void without_a_free_core_a_rank_stays(void **state)
{
    (void)state;
    open_job("move", 1, 0);
    assert_true(cores_find_peer(clock_ns(), false));
    machine(2);
    refused = true;
    assert_true(cores_find_peer(UINT64_MAX, false));
    assert_int_equal(masks_set, 0);
    job_close();
}

static void told_to_poll_on_it_does(void **state)
{
    (void)state;
    open_job("poll", 2, 0);
    assert_int_equal(yields_of_a_wait(), 0);
    job_close();
}

/* A loop of MPI_Test or MPI_Iprobe, too. */
static void looking_without_waiting_gives_up_the_core(void **state)
{
    (void)state;
    open_job("yield", 4, 0);
    lane_enter(lanes_first());
    for (int i = 0; i < 640; i++) lane_poll(lanes_first());
    assert_in_range(yields, 20, 40);
    mock_script.core = 2;
    for (int i = 0; i < 64; i++) lane_poll(lanes_first());
    yields = 0;
    for (int i = 0; i < 640; i++) lane_poll(lanes_first());
    lane_leave(lanes_first());
    assert_int_equal(yields, 0);
    job_close();
}

/* ---- processes of other jobs ---- */

enum { OTHERS_MAX = 256 };

/* All peers from `from` on, before `to`. */
static void meet(struct peer *others, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        others[i] = (struct peer){.index = jobs_own_size + i, .ep.ops = job_peer()->ep.ops};
        wait_meets(&others[i]);
    }
}

static void other_jobs_are_counted(void **state)
{
    static struct peer others[OTHERS_MAX];
    (void)state;
    open_job("yield", 4, -1);
    uint32_t cores = proc_self()->usable_cpus;
    uint64_t spin = waits.spin_max_ns;
    assert_in_range(cores, 1, OTHERS_MAX);
    meet(others, 0, cores); /* on other cores */
    assert_int_equal(yields_of_a_wait(), 0);
    mock_script.shares_cores = true;
    meet(others, 0, cores - 1);
    wait_meets(job_peer()); /* not of another job */
    assert_int_equal(yields_of_a_wait(), 0);
    assert_true(waits.spin_max_ns == spin && !bell_is_crowded(wires_bell()));
    meet(others, cores - 1, cores);
    assert_true(yields_of_a_wait() > 100);
    assert_true(waits.spin_max_ns < spin && bell_is_crowded(wires_bell()));
    wait_parts(&others[0]);
    wait_parts(&others[0]);
    assert_int_equal(yields_of_a_wait(), 0);
    assert_true(waits.spin_max_ns == spin && !bell_is_crowded(wires_bell()));
    wait_meets(&others[0]);
    assert_true(yields_of_a_wait() > 100);
    job_close();
}

/* Regression: each spawned process that went had waits begin to learn anew. */
static void what_was_learnt_on_own_cores_is_known_there_again(void **state)
{
    static struct peer others[OTHERS_MAX];
    (void)state;
    open_job("yield", 4, -1);
    mock_script.shares_cores = true;
    atomic_store(&waits.spin_ns, 1234);
    meet(others, 0, proc_self()->usable_cpus);
    assert_int_not_equal(waits.spin_ns, 1234);
    atomic_store(&waits.spin_ns, 77);
    wait_parts(&others[0]);
    assert_int_equal(waits.spin_ns, 1234);
    wait_meets(&others[0]);
    assert_int_equal(waits.spin_ns, 77);
    job_close();
}

/* Threads that wait poll on so many cores; the rank may be bound to fewer than its share of the node's. */
static void threads_poll_on_the_cores_of_their_rank(void **state)
{
    (void)state;
    setenv("TERN_TEST_CPUS", "16", 1);
    open_job("poll", 3, -1);
    assert_int_equal(waits.share, 3);
    job_close();
    open_job("poll", 64, -1);
    assert_int_equal(waits.share, 16);
    job_close();
    unsetenv("TERN_TEST_CPUS");
}

static void a_thread_yields_where_it_says_so(void **state)
{
    (void)state;
    open_job("poll", 4, -1);
    uint64_t spin = waits.spin_ns;
    lane_wait_so(LANE_YIELDS);
    assert_true(yields_of_a_wait() > 100);
    wait_teaches(clock_ns() - 2 * spin, true);
    assert_int_equal(waits.spin_ns, spin);
    lane_wait_so(LANE_POLLS);
    assert_int_equal(yields_of_a_wait(), 0);
    wait_teaches(clock_ns() - 2 * spin, true);
    assert_int_not_equal(waits.spin_ns, spin);
    job_close();
}

/* It knows only one process of another job, which knows more. */
static void a_peer_knows_of_too_many(void **state)
{
    (void)state;
    open_job("poll", 4, -1);
    mock_script.crowded = true;
    assert_true(yields_of_a_wait() > 100);
    mock_script.crowded = false;
    yields_of_a_wait();
    assert_int_equal(yields_of_a_wait(), 0);
    job_close();
}

/* What is published stands while the core changes. */
static void crowded_and_core_are_published_together(void **state)
{
    (void)state;
    open_job("yield", 4, -1);
    cores_say_crowded(true);
    cpu = 2;
    cores_find_peer(clock_ns(), false);
    assert_int_equal(bell_core(wires_bell(), false), 2);
    assert_true(bell_is_crowded(wires_bell()));
    cores_say_crowded(false);
    assert_int_equal(bell_core(wires_bell(), false), 2);
    assert_false(bell_is_crowded(wires_bell()));
    job_close();
}

/* The clock is simulated: moves follow each other ever more slowly as long as they do not help. */
static void moves_are_paced(void **state)
{
    struct cores_pace p;
    uint64_t now = 1000 * MS, first;
    (void)state;
    cores_pace_open(&p);
    first = p.pause;
    cores_count_move(&p, now, now, true);
    assert_true(p.due - now == first);
    for (uint64_t pause = 2 * first; pause < 50 * first; pause *= 2) {
        now = p.due;
        cores_count_move(&p, now, now, true);
        assert_true(p.due - now == pause);
    }
    for (int i = 0; i < 100; i++) cores_count_move(&p, p.due, p.due, true);
    assert_in_range(p.pause, 50 * MS, 1000 * MS); /* and is bounded */
    now = p.due + 10 * p.pause;
    cores_count_move(&p, now, now, true); /* it has helped for a while */
    assert_true(p.due - now == first);
    now = p.due;
    cores_count_move(&p, now, now + 5 * MS, true); /* the new core was busy: it took a slice to get there */
    assert_true(p.due >= now + 50 * MS);
    now = p.due;
    cores_count_move(&p, now, now, false); /* no core was free: asks again soon */
    assert_true(p.due - now == first);
}

/* Who sleeps needs no core. Who sleeps at a gate may have been woken without a trace in the bell. */
static void sleepers_have_no_core(void **state)
{
    struct bell b = {0};
    (void)state;
    assert_int_equal(bell_core(&b, true), -1); /* nothing published yet */
    atomic_store(&b.core, 3 + 1);
    assert_int_equal(bell_core(&b, false), 3);
    bell_open(&b, true);
    bell_announce(&b);
    assert_int_equal(bell_core(&b, true), -1);
    atomic_store(&b.core, (3 + 1) | BELL_AT_GATE);
    assert_int_equal(bell_core(&b, false), -1);
    assert_int_equal(bell_core(&b, true), 3);
    bell_stay(&b);
    assert_int_equal(bell_core(&b, false), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_wait_gives_up_a_core_that_a_peer_shares, job_clean),
        cmocka_unit_test_teardown(a_wait_polls_again_when_the_peer_has_gone, job_clean),
        cmocka_unit_test_teardown(a_rank_moves_to_a_core_without_peers, job_clean),
        cmocka_unit_test_teardown(without_a_free_core_a_rank_stays, job_clean),
        cmocka_unit_test_teardown(told_to_poll_on_it_does, job_clean),
        cmocka_unit_test_teardown(looking_without_waiting_gives_up_the_core, job_clean),
        cmocka_unit_test_teardown(other_jobs_are_counted, job_clean),
        cmocka_unit_test_teardown(what_was_learnt_on_own_cores_is_known_there_again, job_clean),
        cmocka_unit_test_teardown(threads_poll_on_the_cores_of_their_rank, job_clean),
        cmocka_unit_test_teardown(a_thread_yields_where_it_says_so, job_clean),
        cmocka_unit_test_teardown(a_peer_knows_of_too_many, job_clean),
        cmocka_unit_test_teardown(crowded_and_core_are_published_together, job_clean),
        cmocka_unit_test(moves_are_paced),
        cmocka_unit_test(sleepers_have_no_core),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
