/* pairs_test.c - many threads copy one transfer after the other: each chunk is claimed once, and the end
 * is said once. */
#include "coll/node/pairs.h"

#include <pthread.h>
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
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pairs of ranks that copy", tests, NULL, NULL);
}
