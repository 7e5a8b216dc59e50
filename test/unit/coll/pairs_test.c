/* pairs_test.c - many threads copy one transfer after the other: each chunk is claimed once, the end is said once; and
 * nobody who comes late claims of a later operation. */
#include "coll/node/pairs_own.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, TRANSFERS = 400, BYTES = 100000, CHUNK = 4096 };

static struct node_pair pair[TRANSFERS];
static struct node_tally tally[2]; /* of the two sides: THREADS stand for either */
static char from[BYTES], to[TRANSFERS][BYTES];
static _Atomic uint32_t ends, lasts;

static void prepare(void)
{
    for (int i = 0; i < BYTES; i++) from[i] = (char)(i * 7);
    for (int i = 0; i < TRANSFERS; i++) {
        uint64_t room = BYTES - (uint64_t)(i % 3);
        pair[i] = (struct node_pair){
            .from = (uintptr_t)from, .bytes = BYTES, .to = (uintptr_t)to[i], .room = room, .chunk = CHUNK};
    }
    for (int i = 0; i < 2; i++) atomic_store(&tally[i].left, TRANSFERS);
}

static void copy_one(struct node_pair *p)
{
    uint32_t chunks = node_pair_chunks(p);
    for (uint32_t i; (i = node_pair_claim(p, chunks)) != chunks;) {
        uint64_t at = (uint64_t)i * p->chunk, left = node_pair_bytes(p) - at;
        char *d = (char *)(uintptr_t)p->to + at;
        for (uint64_t b = 0; b < (left < CHUNK ? left : CHUNK); b++) d[b] = (char)(d[b] + from[at + b]); /* twice shows */
        if (!node_pair_done(p, chunks)) continue;
        atomic_fetch_add(&ends, 1);
        for (int s = 0; s < 2; s++)
            if (node_tally_less(&tally[s])) atomic_fetch_add(&lasts, 1);
    }
}

static void *side(void *first)
{
    for (int i = 0; i < TRANSFERS; i++) copy_one(&pair[(i + (int)(intptr_t)first) % TRANSFERS]);
    return NULL;
}

static void each_chunk_is_copied_once(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    prepare();
    for (intptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, side, (void *)(i / 2)), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    assert_int_equal(ends, TRANSFERS);
    assert_int_equal(lasts, 2);
    for (int i = 0; i < TRANSFERS; i++) assert_memory_equal(to[i], from, node_pair_bytes(&pair[i]));
    assert_int_equal(to[1][BYTES - 1], 0); /* behind its room */
}

/* ---- what a rank has for itself: others come to it late ---- */

enum { OPERATIONS = 20000, CHUNKS = 5 };

static struct node_own own; /* one line, used again and again */
static _Atomic uint32_t copied[OPERATIONS + 1], now, own_ends;

/* Claims of operation seq; whoever ends it lets the owner go on. */
static void help(uint32_t seq)
{
    for (uint32_t first, n; (n = node_own_claim(&own, seq, seq % 3 + 1, &first));) {
        assert_int_equal(own.from, seq);
        assert_true(first + n <= CHUNKS);
        for (uint32_t i = first; i < first + n; i++) assert_false(atomic_fetch_or(&copied[seq], 1u << i) & 1u << i);
        if (node_own_done(&own, n, CHUNKS)) atomic_store(&own_ends, seq);
    }
}

static void *latecomer(void *arg)
{
    (void)arg;
    for (uint32_t seq; (seq = atomic_load(&now)) < OPERATIONS;) help(seq);
    return NULL;
}

static void a_line_is_not_taken_for_an_earlier_one(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, latecomer, NULL), 0);
    for (uint32_t seq = 1; seq <= OPERATIONS; seq++) {
        own.from = seq;
        atomic_store(&own.done, 0);
        node_own_open(&own, seq, CHUNKS);
        atomic_store(&now, seq);
        help(seq);
        while (atomic_load(&own_ends) != seq) sched_yield();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 1; i <= OPERATIONS; i++) assert_int_equal(copied[i], (1 << CHUNKS) - 1);
}

static void claims_end(void **state)
{
    struct node_own o = {.bytes = 1};
    uint32_t first = 7;
    (void)state;
    assert_int_equal(node_own_claim(&o, 1, 9, &first), 0);
    node_own_open(&o, 0x80000001, 3);
    assert_int_equal(node_own_claim(&o, 1, 9, &first), 0);
    assert_int_equal(node_own_claim(&o, 0x80000001, 2, &first), 2);
    assert_int_equal(first, 0);
    assert_int_equal(node_own_claim(&o, 0x80000001, 2, &first), 1);
    assert_int_equal(first, 2);
    assert_int_equal(node_own_claim(&o, 0x80000001, 2, &first), 0);
    assert_false(node_own_done(&o, 1, 3));
    assert_true(node_own_done(&o, 2, 3));
}

static void lengths(void **state)
{
    struct node_pair p = {.bytes = 0, .room = 10, .chunk = 4096};
    (void)state;
    assert_int_equal(node_pair_chunks(&p), 0); /* the sender has nothing */
    assert_int_equal(node_pair_claim(&p, 0), 0);
    p.bytes = 4096, p.room = 1 << 20;
    assert_int_equal(node_pair_chunks(&p), 1);
    p.bytes = 4097;
    assert_int_equal(node_pair_chunks(&p), 2);
    p.room = 4096;
    assert_int_equal(node_pair_chunks(&p), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_is_copied_once),
        cmocka_unit_test(lengths),
        cmocka_unit_test(a_line_is_not_taken_for_an_earlier_one),
        cmocka_unit_test(claims_end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pairs of ranks that copy", tests, NULL, NULL);
}
