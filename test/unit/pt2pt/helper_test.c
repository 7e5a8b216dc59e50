/*
 * helper_test.c - the helper thread: it and the lane's owner are never inside at once, it ends what the owner leaves to go
 * on by itself, sleeps when there is nothing of that kind, and comes and goes. Run under the thread sanitizer as well.
 */
#include "mock_job.h"
#include "base/clock.h"
#include "base/err.h"
#include "pt2pt/helper.h"
#include "pt2pt/helper_cpus.h"
#include "pt2pt/helper_habit.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000000u
enum { LARGE = 40000 };

static struct comm *world, *talk; /* messages go by the second, which may be in another lane */

static void open_job(bool threaded)
{
    world = talk = threaded ? job_open_threaded() : job_open(NULL);
    assert_int_equal(pt_help(), 0);
}

/* What the helper has to do is in the last of several lanes. */
static void open_job_of_lanes(bool threaded)
{
    setenv("TERN_LANES", "4", 1);
    open_job(threaded);
    talk = job_comm_in(world, "3");
    assert_int_equal(talk->lane->number, 3);
}

static void close_job(void)
{
    pt_help_no_more();
    assert_int_equal(atomic_load(&background.count), 0);
    assert_int_equal(atomic_load(&waits.waiting), 0);
    if (talk != world) comm_unref(talk);
    job_close();
}

/* ---- one at a time ---- */

static long guarded[2]; /* equal whenever nobody is inside; plain on purpose */
static _Atomic bool over;
static _Atomic long visits;

static void *visitor(void *none)
{
    this_is_the_helper = true;
    for (int tries = 0; !atomic_load_explicit(&over, memory_order_relaxed); tries++) {
        if (tries % 64 == 0) usleep(1); /* where cores are busy, an owner who finds it inside waits for a turn of theirs */
        if (!lane_try(lanes_first())) continue;
        if (guarded[0] != guarded[1]) abort();
        guarded[0]++;
        lane_enter(lanes_first()); /* what it calls may enter again */
        visits++;
        lane_leave(lanes_first());
        guarded[1]++;
        for (int i = 0; i < 20 && !lane_wanted(lanes_first()); i++) cpu_relax();
        lane_out(lanes_first());
    }
    return none;
}

/* The owner in sections of random depth and length, and in short sends, against a thread that claims all the time. */
static void owner_and_helper_exclude_each_other(void **state)
{
    uint64_t seed = random_open();
    (void)state;
    pthread_t t;
    open_job(false);
    pt_help_no_more();
    atomic_store(&background.helped, true); /* the visitor takes its place, and there is always something for it */
    atomic_store(&background.count, 1);
    over = false;
    visits = 0;
    guarded[0] = guarded[1] = 0;
    assert_int_equal(pthread_create(&t, NULL, visitor, NULL), 0);
    for (long i = 0; i < 20000 || (visits < 100 && i < 2000000); i++) {
        uint64_t r = random_next(&seed);
        if (r % 4 == 0) {
            int value = (int)i, got = -1;
            struct request_result res;
            assert_int_equal(pt_send(world, &value, 1, type_of(MPI_INT), 0, 3, PT_STANDARD), 0);
            assert_int_equal(pt_recv(world, &got, 1, type_of(MPI_INT), 0, 3, &res), 0);
            assert_int_equal(got, value);
        }
        int depth = 1 + (int)((r >> 8) % 3);
        for (int d = 0; d < depth; d++) lane_enter(lanes_first());
        assert_int_equal(guarded[0], guarded[1]);
        guarded[0]++;
        for (int k = (int)((r >> 16) % 64); k > 0; k--) cpu_relax();
        guarded[1]++;
        for (int d = 0; d < depth; d++) lane_leave(lanes_first());
        for (int k = (int)((r >> 24) % 256); k > 0; k--) cpu_relax();
        if (r % 1024 == 0) sched_yield();
    }
    atomic_store(&over, true);
    pthread_join(t, NULL);
    atomic_store(&background.helped, false);
    atomic_store(&background.count, 0);
    assert_true(visits >= 100);
    assert_int_equal(guarded[0], guarded[1]);
    job_close();
}

/* ---- what is left to it ---- */

struct pair_of {
    struct request *send, *recv;
    char out[LARGE], in[LARGE];
};

static void begin(struct pair_of *p, int tag, size_t n, uint64_t seed)
{
    fill(p->out, n, seed);
    memset(p->in, 0, n);
    p->recv = job_irecv(talk, p->in, (int64_t)n, tag);
    p->send = job_isend(talk, p->out, (int64_t)n, tag, PT_STANDARD);
}

static bool both_complete(const struct pair_of *p) { return request_is_complete(p->send) && request_is_complete(p->recv); }

/* Looks, without a call of the library. */
static bool ends_by_itself(const struct pair_of *p)
{
    uint64_t end = clock_ns() + (uint64_t)20000 * MS;
    while (!both_complete(p)) {
        if (clock_ns() > end) return false;
        sched_yield();
    }
    return true;
}

static void finish(struct pair_of *p, size_t n, uint64_t seed)
{
    job_end(p->send, 0);
    job_end(p->recv, 0);
    assert_true(filled(p->in, n, seed));
}

/* Each time, whatever the helper is just doing: on its way to sleep, asleep, looking. */
static void large_messages_end_without_a_call(void **state)
{
    static struct pair_of p;
    uint64_t seed = random_open();
    (void)state;
    for (int k = 0; k < 4; k++) {
        (k & 1 ? open_job_of_lanes : open_job)(k & 2);
        for (int i = 0; i < 3000; i++) {
            uint64_t r = random_next(&seed);
            begin(&p, i, LARGE, r);
            assert_true(ends_by_itself(&p));
            finish(&p, LARGE, r);
            if (r % 8 == 0) usleep((unsigned)((r >> 20) % 60));
        }
        close_job();
    }
}

/* Everything at once: the owner waits, tests, looks, sends in all ways and sizes, while the helper is at it too. */
static void random_traffic(void **state)
{
    enum { N = 6 };
    static struct pair_of p[N];
    static size_t size[N];
    static uint64_t mark[N];
    uint64_t seed = random_open();
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool live[N] = {false};
        (k & 1 ? open_job_of_lanes : open_job)(k & 2);
        for (int i = 0; i < 20000; i++) {
            uint64_t r = random_next(&seed);
            int at = (int)((r >> 32) % N);
            if (live[at]) {
                if (r % 3 == 0) pt_progress_once(talk);
                if (r % 3 == 1 || both_complete(&p[at])) {
                    finish(&p[at], size[at], mark[at]);
                    live[at] = false;
                }
                continue;
            }
            size[at] = r & 1 ? 1 + (r >> 8) % LARGE : 1 + (r >> 8) % 64;
            mark[at] = r;
            begin(&p[at], at, size[at], r);
            live[at] = true;
        }
        for (int at = 0; at < N; at++)
            if (live[at]) finish(&p[at], size[at], mark[at]);
        close_job();
    }
}

/* ---- a caller that comes back, and one that does not ---- */

/* Rounds that begin a message and end it at once; how often the helper was armed in between. */
static int come_back(struct pair_of *p, int rounds, uint64_t seed)
{
    int armed = 0;
    for (int i = 0; i < rounds; i++) {
        begin(p, i, LARGE, seed + (uint64_t)i);
        armed += atomic_load(&wires_bell()->asleep) != BELL_AWAKE;
        finish(p, LARGE, seed + (uint64_t)i);
    }
    return armed;
}

/* The helper is not armed for it. Where the thread was kept from its core once, it is, the next time. */
static void who_comes_back_is_left_alone(void **state)
{
    static struct pair_of p;
    (void)state;
    for (int k = 0; k < 2; k++) {
        (k ? open_job_of_lanes : open_job)(false);
        (void)come_back(&p, 20, 1);
        int armed = come_back(&p, 400, 2);
        print_message("# armed in %d of 400 rounds\n", armed);
        assert_in_range(armed, 0, 100);
        close_job();
    }
}

static void expect_back(void)
{
    lane_enter(world->lane);
    memset(habit.back, 1, sizeof habit.back); /* from no place it has stayed away */
    lane_leave(world->lane);
}

/* What is left when the thread had been expected back is done soon: not when the helper gets up by itself, after 50 ms and more. Before,
 * the helper has been on its watch, or has just ended it, or sleeps. */
static void who_does_not_come_back_is_found(void **state)
{
    enum { TIMES = 200 };
    static struct pair_of p;
    uint64_t seed = random_open();
    int late = 0;
    (void)state;
    open_job(false);
    for (int i = 0; i < TIMES; i++) {
        uint64_t r = random_next(&seed);
        expect_back();
        usleep((unsigned)(r >> 20) % 5000);
        begin(&p, i, LARGE, r);
        uint64_t start = clock_ns();
        assert_true(ends_by_itself(&p));
        late += clock_ns() - start > (uint64_t)40 * MS;
        finish(&p, LARGE, r);
    }
    close_job();
    print_message("# %d of %d ends were late\n", late, TIMES);
    assert_in_range(late, 0, TIMES / 10);
}

/* Calls that leave nothing but a service in the background, `gap_us` behind each other; how often the helper was armed behind one. */
static int serve(int rounds, unsigned gap_us)
{
    int armed = 0;
    for (int i = 0; i < rounds; i++) {
        expect_back();
        if (gap_us) usleep(gap_us);
        lane_enter(world->lane);
        lane_leave(world->lane);
        armed += atomic_load(&wires_bell()->asleep) == BELL_HELPER;
        lane_enter(world->lane);
        helper_waits(); /* takes that back */
        lane_leave(world->lane);
    }
    return armed;
}

/* Nobody watches for it: the helper is armed now and then, also where the thread is expected back. */
static void services_are_armed_for_now_and_then(void **state)
{
    enum { CLOSE = 20000, APART = 200, GAP_US = 500 /* more than a service may be late */ };
    (void)state;
    open_job(false);
    lane_enter(world->lane);
    assert_true(background_stands_by());
    lane_leave(world->lane);
    int often = serve(CLOSE, 0), apart = serve(APART, GAP_US);
    lane_enter(world->lane);
    background_stands_down();
    lane_leave(world->lane);
    close_job();
    print_message("# armed in %d of %d rounds and %d of %d\n", often, CLOSE, apart, APART);
    assert_in_range(often, 1, CLOSE / 2);
    assert_in_range(apart, APART / 2, APART);
}

/* The place where it has stayed away is known from then on. */
static void its_place_is_known_then(void **state)
{
    static struct pair_of p;
    (void)state;
    open_job(false);
    expect_back();
    begin(&p, 1, LARGE, 1);
    assert_true(ends_by_itself(&p));
    finish(&p, LARGE, 1);
    assert_int_equal(habit.back[2], 0);
    close_job();
}

static bool is_so(void *arg) { return *(bool *)arg; }

/* What follows a wait is the same place whether there was something to wait for or not. */
static void waits_that_are_over_count(void **state)
{
    bool yes = true;
    (void)state;
    open_job(false);
    for (int doubting = 0; doubting < 2; doubting++) {
        lane_enter(world->lane);
        habit.place = 3;
        if (doubting) lane_wait_doubting(world->lane, is_so, &yes, NULL);
        else lane_wait(world->lane, is_so, &yes, NULL);
        assert_int_equal(habit.place, 0);
        lane_leave(world->lane);
    }
    close_job();
}

/* ---- what it costs, and where it is ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* With a receive in the background that nobody answers, and without one: no time is used, and small messages wake nobody. */
static void idle_helper_sleeps(void **state)
{
    static char in[LARGE];
    struct request *r = NULL;
    (void)state;
    for (int k = 0; k < 4; k++) {
        (k & 1 ? open_job_of_lanes : open_job)(k & 2);
        for (int pending = 0; pending < 2; pending++) {
            if (pending) r = job_irecv(talk, in, LARGE, 9);
            usleep(20000);
            uint64_t before = cpu_ns();
            usleep(200000);
            assert_true(cpu_ns() - before < 20 * MS);
            assert_int_equal(atomic_load(&wires_bell()->asleep), pending ? BELL_HELPER : BELL_AWAKE);
        }
        assert_int_equal(pt_cancel(r), 0);
        pt_wait(r);
        pt_release(r);
        close_job();
    }
}

/* Threads of this process with the helper's name. */
static int helpers(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        n += fgets(name, sizeof name, f) && !strcmp(name, "tern-helper\n");
        fclose(f);
    }
    if (d) closedir(d);
    return n;
}

/* Of those that have been waited for, the system shows the last ones a little longer. */
static void await_helpers(int n)
{
    for (int i = 0; i < 10000 && helpers() > n; i++) usleep(1000);
    assert_int_equal(helpers(), n);
}

static void comes_and_goes(void **state)
{
    static struct pair_of p;
    (void)state;
    world = talk = job_open(NULL);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(pt_help(), 0);
        assert_int_equal(pt_help(), 0); /* there is one */
        if (i % 100 == 0) {
            await_helpers(1);
            begin(&p, i, LARGE, (uint64_t)i);
            assert_true(ends_by_itself(&p));
            finish(&p, LARGE, (uint64_t)i);
        }
        pt_help_no_more();
    }
    await_helpers(0);
    close_job();
}

/* The lane becomes one that threads share: the helper goes on, by the lock. */
static void survives_sharing(void **state)
{
    static struct pair_of p;
    (void)state;
    for (int k = 0; k < 2; k++) {
        (k ? open_job_of_lanes : open_job)(false);
        assert_int_equal(pt_share(false), 0);
        assert_true(lane_threaded());
        assert_int_equal(helpers(), 1);
        begin(&p, 1, LARGE, 1);
        assert_true(ends_by_itself(&p));
        finish(&p, LARGE, 1);
        close_job();
    }
}

static void *shares(void *done)
{
    int rc = pt_share(true);
    atomic_store_explicit((_Atomic bool *)done, true, memory_order_relaxed);
    return rc ? done : NULL;
}

/* Another thread makes the lane shared while the owner, who takes no lock yet, looks at what it knows of the helper: that
 * stays as it is. (It was cleared and set again without a lock, and the sets that the helper sleeps on were closed.) */
static void sharing_changes_nothing_under_the_owner(void **state)
{
    static struct pair_of p;
    static _Atomic bool done;
    pthread_t t;
    void *failed;
    long changes = 0;
    (void)state;
    open_job(false);
    bool shares_cores = helper_shares_cores, apart = helper_apart;
    assert_int_equal(pthread_create(&t, NULL, shares, &done), 0);
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        changes += !background_is_helped() || helper_shares_cores != shares_cores || helper_apart != apart;
    pthread_join(t, &failed);
    assert_null(failed);
    assert_int_equal(changes, 0);
    await_helpers(1);
    begin(&p, 1, LARGE, 1);
    assert_true(ends_by_itself(&p));
    finish(&p, LARGE, 1);
    close_job();
}

static int poll_nothing(struct step *s)
{
    (void)s;
    return 0;
}

/* Begins and ends something that sleepers wait for, again and again, as ports do. */
static void *opens_and_closes(void *none)
{
    static const struct step_ops ops = {.name = "a port", .poll = poll_nothing};
    for (int i = 0; i < 100; i++) {
        struct step s = {.ops = &ops, .fd = eventfd(0, EFD_CLOEXEC)};
        if (s.fd < 0 || pt_progress_open(&s)) abort();
        pt_progress_close(&s);
        close(s.fd);
    }
    return none;
}

static void *asks_for_help(void *none)
{
    for (int i = 0; i < 1000; i++)
        if (pt_help()) abort();
    return none;
}

/* Regression: each of them stopped the helper and started it again by itself, so that one was ended twice, or there were two. */
static void threads_change_it_in_turn(void **state)
{
    static struct pair_of p;
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    (void)state;
    open_job(true);
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&t[k], NULL, k % 2 ? asks_for_help : opens_and_closes, NULL), 0);
    for (int i = 0; i < 100; i++) {
        begin(&p, i, LARGE, (uint64_t)i);
        assert_true(ends_by_itself(&p));
        finish(&p, LARGE, (uint64_t)i);
    }
    for (int k = 0; k < THREADS; k++) pthread_join(t[k], NULL);
    await_helpers(1);
    close_job();
}

/* A child of fork has no helper, and is not kept from its exit. */
static void fork_leaves_it_behind(void **state)
{
    static char in[LARGE];
    struct request *r;
    int status = -1;
    (void)state;
    open_job(false);
    r = job_irecv(world, in, LARGE, 9);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        pt_help_no_more();
        _exit(background_is_helped() || helpers() ? 1 : 7);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    pt_cancel(r);
    pt_wait(r);
    pt_release(r);
    close_job();
}

static void lists_of_cpus(void **state)
{
    static const char *const wrong[] = {"", ",", "a", "1,", "1-", "3-1", "-1", "1 2", "1;2", "99999999999999999999", "4096"};
    cpu_set_t cpus;
    (void)state;
    assert_true(helper_parse_cpus("0,4-6", &cpus));
    assert_int_equal(CPU_COUNT(&cpus), 4);
    assert_true(CPU_ISSET(0, &cpus) && CPU_ISSET(4, &cpus) && CPU_ISSET(6, &cpus));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) assert_false(helper_parse_cpus(wrong[i], &cpus));
}

static void wrong_cpus_are_refused(void **state)
{
    (void)state;
    setenv("TERN_HELPER_CPUS", "0-", 1);
    world = talk = job_open(NULL);
    assert_int_equal(pt_help(), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "TERN_HELPER_CPUS"));
    assert_false(background_is_helped());
    job_close();
    unsetenv("TERN_HELPER_CPUS");
}

/* Regression: a rank that another launcher had bound to one cpu got a helper of its own accord, if the node had enough cpus. */
static void one_cpu_has_no_room_for_it(void **state)
{
    cpu_set_t all, one, other;
    (void)state;
    setenv("TERN_TEST_CPUS", "8", 1);
    world = talk = job_open(NULL);
    unsetenv("TERN_TEST_CPUS");
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CPU_XOR(&other, &all, &one);
    assert_int_equal(pt_help_has_core(), CPU_COUNT(&all) > 1);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_false(pt_help_has_core());
    assert_false(helper_cpus_are_more(&one));
    assert_int_equal(helper_cpus_are_more(&other), CPU_COUNT(&all) > 1);
    assert_int_equal(pt_help(), 0);
    assert_true(helper_is_on_shared_cores());
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    close_job();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(owner_and_helper_exclude_each_other, job_clean),
        cmocka_unit_test_teardown(large_messages_end_without_a_call, job_clean),
        cmocka_unit_test_teardown(random_traffic, job_clean),
        cmocka_unit_test_teardown(who_comes_back_is_left_alone, job_clean),
        cmocka_unit_test_teardown(who_does_not_come_back_is_found, job_clean),
        cmocka_unit_test_teardown(services_are_armed_for_now_and_then, job_clean),
        cmocka_unit_test_teardown(its_place_is_known_then, job_clean),
        cmocka_unit_test_teardown(waits_that_are_over_count, job_clean),
        cmocka_unit_test_teardown(idle_helper_sleeps, job_clean),
        cmocka_unit_test_teardown(comes_and_goes, job_clean),
        cmocka_unit_test_teardown(survives_sharing, job_clean),
        cmocka_unit_test_teardown(sharing_changes_nothing_under_the_owner, job_clean),
        cmocka_unit_test_teardown(threads_change_it_in_turn, job_clean),
        cmocka_unit_test_teardown(fork_leaves_it_behind, job_clean),
        cmocka_unit_test(lists_of_cpus),
        cmocka_unit_test_teardown(wrong_cpus_are_refused, job_clean),
        cmocka_unit_test_teardown(one_cpu_has_no_room_for_it, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
