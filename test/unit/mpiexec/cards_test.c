/* cards_test.c - the launcher's part in the exchange of cards between nodes; the test plays ranks and other nodes. */
#include "mpiexec/cards.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Three nodes of 40 ranks each, in blocks; this process serves node 1: ranks 40 to 79. The root serves node 0. */
#define NODES 3
#define EACH 40
#define SIZE (NODES * EACH)

tree_handler_fn tree_handlers[TREE_TYPES];

static struct job job;
static struct sent {
    int to;
    enum tree_type type;
    size_t n;
    unsigned char bytes[4096];
} sent[16];
static int nsent;

void tree_send(int to, enum tree_type type, const void *bytes, size_t n)
{
    assert_true(nsent < (int)ARRAY_LEN(sent) && n <= sizeof sent[0].bytes);
    sent[nsent] = (struct sent){.to = to, .type = type, .n = n};
    memcpy(sent[nsent++].bytes, bytes, n);
}

static int set_up(void **state)
{
    static struct node nodes[NODES];
    static struct rank ranks[SIZE];
    static uint8_t secret[32];
    (void)state;
    nsent = 0;
    job = (struct job){
        .size = SIZE, .nnodes = NODES, .node = 1, .nodes = nodes, .ranks = ranks, .base = event_base_new()};
    for (int i = 0; i < NODES; i++) nodes[i] = (struct node){.nranks = EACH, .own = i == 0};
    for (int r = 0; r < SIZE; r++) ranks[r] = (struct rank){.rank = r, .node = r / EACH, .local = r % EACH};
    if (block_open(&job.block, "job", SIZE, secret, NULL, 0)) return 1;
    return cards_open(&job);
}

static int tear_down(void **state)
{
    (void)state;
    cards_close();
    event_base_free(job.base);
    close(job.block.wanted_pipe[0]);
    close(job.block.wanted_pipe[1]);
    close(job.block.fd);
    return 0;
}

static struct job_card *card(int rank) { return &job_cards(job.block.head)[rank]; }

/* As native.c: a rank of this node wants to be told of a card, or tells that its own is there. */
static void tell(int rank)
{
    atomic_fetch_or(&job_wanted(job.block.head)[rank / 64], (uint64_t)1 << rank % 64);
    assert_int_equal(write(job.block.head->wanted_pipe, "", 1), 1);
}

static void take_wanted(void) { event_base_loop(job.base, EVLOOP_NONBLOCK); }

static bool arrives(int from, enum tree_type type, const void *bytes, size_t n)
{
    return tree_handlers[type](from, bytes, n);
}

static bool card_arrives(int from, uint32_t rank, const char *text)
{
    unsigned char message[600];
    memcpy(message, &rank, sizeof rank);
    memcpy(message + sizeof rank, text, strlen(text));
    return arrives(from, TREE_CARD, message, sizeof rank + strlen(text));
}

static void wanted_cards_are_asked_for_once_a_node(void **state)
{
    static const uint32_t of_root[] = {0, 39}, of_last[] = {80, 119};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tell((int)of_root[i]);
        tell((int)of_last[i]);
    }
    take_wanted();
    assert_int_equal(nsent, 2);
    assert_true(sent[0].to == 0 && sent[0].type == TREE_CARD_ASK && sent[0].n == sizeof of_root);
    assert_memory_equal(sent[0].bytes, of_root, sizeof of_root);
    assert_true(sent[1].to == 2 && sent[1].n == sizeof of_last);
    assert_memory_equal(sent[1].bytes, of_last, sizeof of_last);
    tell(0); /* a second rank wants it */
    take_wanted();
    assert_int_equal(nsent, 2);

    assert_true(card_arrives(TREE_ROOT, 39, "address of 39"));
    assert_int_equal(atomic_load(&card(39)->state), JOB_CARD_HERE);
    assert_int_equal(card(39)->len, 13);
    assert_memory_equal(card(39)->data, "address of 39", 13);
    assert_int_equal(atomic_load(&card(0)->state), JOB_CARD_WANTED);
}

static void write_card(int rank, const char *text)
{
    card(rank)->len = (uint32_t)strlen(text);
    memcpy(card(rank)->data, text, strlen(text));
    if (atomic_exchange(&card(rank)->state, JOB_CARD_HERE) == JOB_CARD_WANTED) tell(rank);
}

static void assert_sent_card(int i, int to, uint32_t rank, const char *text)
{
    assert_true(sent[i].to == to && sent[i].type == TREE_CARD && sent[i].n == sizeof rank + strlen(text));
    assert_memory_equal(sent[i].bytes, &rank, sizeof rank);
    assert_memory_equal(sent[i].bytes + sizeof rank, text, strlen(text));
}

/* Once a rank of another node waited for it until the end of the job. */
static void card_of_a_rank_that_ended_without_one_is_not_awaited(void **state)
{
    const uint32_t ours[] = {40, 41, 42};
    (void)state;
    assert_true(arrives(2, TREE_CARD_ASK, &ours[0], sizeof ours[0]));
    cards_end(40); /* it runs: the launcher would have marked its end */
    assert_int_equal(nsent, 0);
    block_end(&job.block, 40);
    cards_end(40);
    assert_int_equal(nsent, 1);
    assert_sent_card(0, 2, 40, "");
    block_end(&job.block, 41);
    assert_true(arrives(TREE_ROOT, TREE_CARD_ASK, &ours[1], sizeof ours[1]));
    assert_int_equal(nsent, 2);
    assert_sent_card(1, 0, 41, "");
    write_card(42, "address of 42"); /* the card of a rank that has ended is given all the same */
    block_end(&job.block, 42);
    assert_true(arrives(2, TREE_CARD_ASK, &ours[2], sizeof ours[2]));
    assert_sent_card(2, 2, 42, "address of 42");

    atomic_store(&card(119)->state, JOB_CARD_WANTED);
    assert_true(card_arrives(2, 119, ""));
    assert_int_equal(atomic_load(&card(119)->state), JOB_CARD_WANTED);
    assert_true(atomic_load(&card(119)->life) & JOB_ENDED);
}

static void own_cards_are_given_when_they_are_there(void **state)
{
    const uint32_t both[] = {40, 79};
    (void)state;
    write_card(40, "address of 40");
    assert_true(arrives(2, TREE_CARD_ASK, both, sizeof both));
    assert_int_equal(nsent, 1);
    assert_sent_card(0, 2, 40, "address of 40");
    assert_true(arrives(TREE_ROOT, TREE_CARD_ASK, &both[1], sizeof both[1]));
    assert_int_equal(nsent, 1);
    write_card(79, "79");
    take_wanted();
    assert_int_equal(nsent, 3);
    assert_sent_card(1, 2, 79, "79");
    assert_sent_card(2, 0, 79, "79");
    tell(79); /* rings without need */
    take_wanted();
    assert_int_equal(nsent, 3);
}

static void what_cannot_be_is_refused(void **state)
{
    static const uint32_t ours = 41, theirs = 80, nobody = SIZE;
    unsigned char large[4 + JOB_CARD_MAX + 1] = {80};
    (void)state;
    assert_false(arrives(2, TREE_CARD_ASK, &ours, 0));
    assert_false(arrives(2, TREE_CARD_ASK, &ours, 3));
    assert_false(arrives(2, TREE_CARD_ASK, &theirs, 4));
    assert_false(arrives(2, TREE_CARD_ASK, &nobody, 4));
    assert_false(arrives(3, TREE_CARD_ASK, &ours, 4)); /* there is no node 3 */
    assert_true(arrives(2, TREE_CARD_ASK, &ours, 4));
    assert_false(arrives(2, TREE_CARD_ASK, &ours, 4)); /* twice */
    assert_false(card_arrives(2, 80, "nobody asked"));
    assert_int_equal(atomic_load(&card(80)->state), JOB_CARD_EMPTY);
    atomic_store(&card(80)->state, JOB_CARD_WANTED);
    assert_false(card_arrives(0, 80, "not its node"));
    assert_false(card_arrives(2, nobody, "no rank"));
    assert_false(card_arrives(1, ours, "ours"));
    assert_false(arrives(2, TREE_CARD, large, sizeof large));
    assert_false(arrives(2, TREE_CARD, large, 3));
    assert_true(arrives(2, TREE_CARD, large, sizeof large - 1));
    assert_int_equal(nsent, 0);
}

/* Bytes from anywhere are refused or taken, and change nothing but cards that are wanted. */
static void random_bytes(void **state)
{
    (void)state;
    unsigned seed = (unsigned)getpid();
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 20000; i++) {
        unsigned char bytes[64];
        size_t n = (size_t)rand() % sizeof bytes;
        for (size_t k = 0; k < n; k++) bytes[k] = (unsigned char)(rand() % 4 ? 0 : rand());
        nsent = 0;
        arrives(rand() % 5 - 1, rand() % 2 ? TREE_CARD : TREE_CARD_ASK, bytes, n);
    }
    for (int r = 0; r < SIZE; r++) assert_int_not_equal(atomic_load(&card(r)->state), JOB_CARD_HERE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wanted_cards_are_asked_for_once_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(own_cards_are_given_when_they_are_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(card_of_a_rank_that_ended_without_one_is_not_awaited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_bytes, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
