/*
 * makespan_test.c - how long a skewed set of tasks takes under each placement policy (DPM-7). A program has TASKS tasks, most of them
 * short, one in ten 20 times as long; it spawns a process for each, as many at a time as there are slots, and the next one when one has
 * ended. A host with more processes than slots gives each of them its share.
 *
 * No placement is faster than the longest task, nor than all work spread evenly over all slots: the lower bound. A policy that gives
 * each task a free slot, as load and packed do, is bound by Graham's rule: all work / slots + (1 - 1 / slots) times the longest task.
 * One that begins with the first host again and again (restart) has all tasks there.
 */
#include "../seed.h"
#include "base/compiler.h"
#include "mpiexec/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HOSTS = 4, TASKS = 1000, SETS = 50, POLICIES = SCHEDULE_SPREAD + 1, MOST_SLOTS = 32 };

static const char *const policy_name[POLICIES] = {"round_robin", "restart", "load", "packed", "spread"};

static uint64_t seed;
static struct host host[HOSTS] = {{.name = (char *)(uintptr_t) "a"}, {.name = (char *)(uintptr_t) "b"}, {.name = (char *)(uintptr_t) "c"},
                                  {.name = (char *)(uintptr_t) "d"}};
static const struct hosts hosts = {host, HOSTS};

/* ---- tasks ---- */

struct set {
    double work[TASKS]; /* seconds, alone on a slot */
    double sum, longest;
};

static double uniform(double low, double high) { return low + (high - low) * (double)(seed_next(&seed) >> 11) / 9007199254740992.0; }

static void make_set(struct set *s)
{
    s->sum = s->longest = 0;
    for (int i = 0; i < TASKS; i++) {
        s->work[i] = seed_next(&seed) % 10 ? uniform(1, 2) : uniform(20, 40);
        s->sum += s->work[i];
        s->longest = s->work[i] > s->longest ? s->work[i] : s->longest;
    }
}

/* ---- running them ---- */

struct running {
    double left; /* of its work */
    int host;
    struct schedule_load load;
};

struct farm {
    struct running task[MOST_SLOTS];
    int n, on[HOSTS];
    double now;
};

static void spawn(struct farm *f, enum schedule_policy p, double work)
{
    struct running *t = &f->task[f->n++];
    *t = (struct running){.left = work, .host = -1};
    free(schedule_place(p, 1, &t->load));
    for (int h = 0; h < HOSTS; h++)
        if (t->load.on[h]) t->host = h;
    assert_in_range(t->host, 0, HOSTS - 1);
    f->on[t->host]++;
}

/* The part of a slot that each process of a host has. */
static double share(const struct farm *f, int h) { return f->on[h] <= host[h].slots ? 1 : (double)host[h].slots / f->on[h]; }

/* Time passes until the first of the running tasks has ended, which leaves its host. */
static void run_one(struct farm *f)
{
    int first = 0;
    for (int i = 1; i < f->n; i++)
        if (f->task[i].left / share(f, f->task[i].host) < f->task[first].left / share(f, f->task[first].host)) first = i;
    double passes = f->task[first].left / share(f, f->task[first].host);
    f->now += passes;
    for (int i = 0; i < f->n; i++) f->task[i].left -= passes * share(f, f->task[i].host);
    f->on[f->task[first].host]--;
    schedule_release(&f->task[first].load);
    f->task[first] = f->task[--f->n];
}

static int all_slots(void)
{
    int sum = 0;
    for (int h = 0; h < HOSTS; h++) sum += host[h].slots;
    return sum;
}

static double makespan(enum schedule_policy p, const struct set *s)
{
    static const int none[HOSTS];
    struct farm f = {.n = 0};
    schedule_open(&hosts, none, HOSTS - 1);
    for (int i = 0; i < TASKS; i++) {
        if (f.n == all_slots()) run_one(&f);
        spawn(&f, p, s->work[i]);
    }
    while (f.n) run_one(&f);
    return f.now;
}

/* ---- the test ---- */

/* Of many sets; sum[p]: of the makespans, each to its lower bound. */
static void compare(double sum[POLICIES])
{
    int slots = all_slots();
    for (int n = 0; n < SETS; n++) {
        struct set s;
        double t[POLICIES];
        make_set(&s);
        double even = s.sum / slots, bound = even > s.longest ? even : s.longest, graham = even + (1 - 1.0 / slots) * s.longest + 1e-6;
        for (int p = 0; p < POLICIES; p++) {
            t[p] = makespan((enum schedule_policy)p, &s);
            sum[p] += t[p] / bound / SETS;
            assert_true(t[p] >= bound - 1e-6);
        }
        for (int p = 0; p < POLICIES; p++)
            if (p != SCHEDULE_RESTART) assert_true(t[p] < t[SCHEDULE_RESTART]);
        assert_true(t[SCHEDULE_LOAD] <= graham && t[SCHEDULE_PACKED] <= graham);
        assert_true(t[SCHEDULE_RESTART] >= s.sum / host[0].slots - 1e-6);
    }
}

static void compare_on(const int slots[HOSTS], double sum[POLICIES])
{
    memset(sum, 0, POLICIES * sizeof *sum);
    for (int h = 0; h < HOSTS; h++) host[h].slots = slots[h];
    compare(sum);
    printf("# slots %d,%d,%d,%d: makespan to the lower bound, mean of %d sets:", slots[0], slots[1], slots[2], slots[3], SETS);
    for (int p = 0; p < POLICIES; p++) printf(" %s %.2f", policy_name[p], sum[p]);
    printf("\n");
}

/* Where tasks are short beside the whole, a policy that looks at the load comes near the bound; turns do not. */
static void load_is_near_the_bound(const double sum[POLICIES])
{
    assert_true(sum[SCHEDULE_LOAD] < 1.2 && sum[SCHEDULE_PACKED] < 1.2);
    assert_true(sum[SCHEDULE_LOAD] <= sum[SCHEDULE_SPREAD] + 1e-6);
    assert_true(sum[SCHEDULE_LOAD] < sum[SCHEDULE_ROUND_ROBIN]);
}

static void equal_hosts(void **state)
{
    double sum[POLICIES];
    (void)state;
    compare_on((const int[HOSTS]){4, 4, 4, 4}, sum);
    load_is_near_the_bound(sum);
    assert_true(sum[SCHEDULE_SPREAD] < 1.2);
}

static void unequal_hosts(void **state)
{
    double sum[POLICIES];
    (void)state;
    compare_on((const int[HOSTS]){2, 2, 4, 16}, sum);
    load_is_near_the_bound(sum);
    assert_true(sum[SCHEDULE_SPREAD] > 1.2); /* as it does not look at slots */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_hosts), cmocka_unit_test(unequal_hosts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = seed_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
