/*
 * fenced_test.c - a rank whose sleep relies on the wakers' fences is heard by the others of the node, although their
 * own sleep does without (membarrier): of a waker and a sleeper that come at the same time, one sees the other.
 *
 *     waker                               sleeper
 *     sets its flag (node_signal)         counts itself at the gate
 *     looks at the gate (node_announce)   looks for the flag, does not see it: sleeps
 */
#include "coll/node/block.h"
#include "coll/node/node.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROUNDS = 100000 };

static struct node_head head;
static struct node_slot slots[NODE_K];
static struct node waker = {.head = &head, .slots = slots, .size = 1};
static _Atomic int round_of_waker, round_of_sleeper;

/* Both begin a round at the same time, as far as that can be had. */
static void meet(_Atomic int *mine, _Atomic int *theirs, int round)
{
    atomic_store(mine, round);
    for (int looks = 1; atomic_load(theirs) < round; looks++)
        if (looks % 1000)
            cpu_relax();
        else
            sched_yield(); /* on one core */
}

static void *play_waker(void *arg)
{
    (void)arg;
    for (int i = 1; i <= ROUNDS; i++) {
        waker.flag[1] = (uint64_t)i;
        meet(&round_of_waker, &round_of_sleeper, 2 * i);
        node_signal(&waker, 1, 0);
        node_announce(&waker);
        meet(&round_of_waker, &round_of_sleeper, 2 * i + 1);
    }
    return NULL;
}

/* The round in which the sleeper would have slept on; 0: there is none. */
static int play_sleeper(void)
{
    int lost = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        uint32_t rings = atomic_load(&head.gate.ring);
        meet(&round_of_sleeper, &round_of_waker, 2 * i);
        atomic_fetch_add(&head.gate.sleepers, 1);
        bool set = node_is_set(node_slot(&waker, 1, 0), (uint64_t)i);
        meet(&round_of_sleeper, &round_of_waker, 2 * i + 1);
        if (!set && atomic_load(&head.gate.ring) == rings) lost = i;
        atomic_store(&head.gate.sleepers, 0);
    }
    return lost;
}

static void wakers_fence_for_any_rank_of_the_node(void **state)
{
    pthread_t thread;
    (void)state;
    atomic_store(&head.fenced, 1); /* as a rank without membarrier does when it attaches */
    assert_int_equal(pthread_create(&thread, NULL, play_waker, NULL), 0);
    int lost = play_sleeper();
    pthread_join(thread, NULL);
    assert_int_equal(lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wakers_fence_for_any_rank_of_the_node)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
