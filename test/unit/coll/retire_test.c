/*
 * retire_test.c - the block of a communicator that goes: it is given away when all ranks have left it, and not before
 * (coll/node/retire.c). Both ranks are played by the test.
 */
#include "../pt2pt/mock_job.h"
#include "base/clock.h"
#include "base/err.h"
#include "coll/node/block.h"
#include "coll/node/node.h"
#include "transport/peer.h"

#include <string.h>

static struct pt_call_log call_log;
static struct comm comm;
static struct node owner, guest;
static void *block;

static void join(struct node *n, int rank)
{
    *n = (struct node){.size = 2, .rank = rank, .big_bytes = 1024, .comm = &comm, .state = NODE_READY};
    n->bytes = node_layout(n, NULL);
    if (!block) {
        uint64_t offset;
        block = peer_shared_alloc(n->bytes, &offset);
        assert_non_null(block);
    }
    node_layout(n, block);
    if (rank == 0) n->block = block;
}

static int open_node(void **state)
{
    static const uint32_t members[] = {0, 0};
    (void)state;
    job_open(NULL);
    comm = (struct comm){.map = rankmap_list(2, members), .size = 2, .call_log = &call_log};
    block = NULL;
    join(&owner, 0);
    join(&guest, 1);
    return 0;
}

static int close_node(void **state)
{
    node_forget_retired();
    rankmap_unref(comm.map);
    job_abandon();
    return job_clean(state);
}

static void do_one(struct node *n)
{
    n->seq++;
    node_finish(n, n->seq, false);
}

/* Is the block given to the next one that wants so much? */
static bool is_given_away(void)
{
    uint64_t offset;
    node_reclaim();
    return peer_shared_alloc(owner.bytes, &offset) == block;
}

/* Regression: it was given away when all had finished the last operation. Then the count of a thread that left the gate
 * changed what lay there: the pointer of a free list. */
static void a_rank_that_is_counted_at_the_gate_keeps_the_block(void **state)
{
    struct bell bell = {0};
    struct sleep_words words = {0};
    (void)state;
    uint32_t counted = gate_enter(&guest.head->gate, &bell, 0, &words);
    do_one(&owner);
    do_one(&guest);
    node_retire(&owner);
    assert_false(is_given_away());
    gate_leave(&guest.head->gate, counted);
    assert_false(is_given_away());
    node_retire(&guest);
    assert_true(is_given_away());
    assert_int_equal(atomic_load(&guest.head->gate.sleepers), 0);
}

static void the_owner_has_to_leave_it_too(void **state)
{
    (void)state;
    do_one(&owner);
    do_one(&guest);
    node_retire(&guest);
    assert_false(is_given_away());
    node_retire(&owner);
    assert_true(is_given_away());
}

static void one_that_has_died_keeps_nothing(void **state)
{
    (void)state;
    do_one(&owner);
    node_retire(&owner);
    assert_false(is_given_away());
    job_peer()->lost = (char *)(uintptr_t)"it has died";
    assert_true(is_given_away());
    job_peer()->lost = NULL;
}

static void after_a_failure_it_is_kept(void **state)
{
    (void)state;
    atomic_store(&call_log.error, TERN_ERR_PEER);
    node_retire(&owner);
    node_retire(&guest);
    assert_false(is_given_away());
    atomic_store(&call_log.error, 0);
}

static uint64_t settled(void)
{
    uint64_t start = clock_ns();
    node_settle();
    return clock_ns() - start;
}

/* The end of the process waits for a rank that has not finished, in time and not for ever; but not for one that has, and has
 * not left yet. */
static void the_end_waits_for_those_that_have_not_finished(void **state)
{
    (void)state;
    do_one(&owner);
    node_retire(&owner);
    uint64_t unfinished = settled();
    do_one(&guest);
    assert_true(settled() < unfinished / 2);
    assert_false(is_given_away()); /* nor is it forgotten: the library may be opened again */
    node_retire(&guest);
    assert_true(is_given_away());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rank_that_is_counted_at_the_gate_keeps_the_block),
        TEST(the_owner_has_to_leave_it_too),
        TEST(one_that_has_died_keeps_nothing),
        TEST(after_a_failure_it_is_kept),
        TEST(the_end_waits_for_those_that_have_not_finished),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
