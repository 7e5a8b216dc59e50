/* hash_test.c - a hash table against a plain array: elements of equal and of different keys, added and removed at random. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

enum { THINGS = 5000, KEYS = 1500, STEPS = 200000 };

static struct thing {
    struct hash_link link;
    uint64_t key;
    bool is_in, found;
} thing[THINGS];
static struct hash table;

/* All that have this key, each once. */
static void check_key(uint64_t key)
{
    int n = 0, in = 0;
    for (struct hash_link *l = hash_find(&table, key); l; l = hash_more(l), n++) {
        struct thing *t = container_of(l, struct thing, link);
        assert_true(t->is_in && t->key == key && !t->found);
        t->found = true;
    }
    for (int i = 0; i < THINGS; i++) {
        in += thing[i].is_in && thing[i].key == key;
        thing[i].found = false;
    }
    assert_int_equal(n, in);
}

static void as_an_array(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct thing *t = &thing[(seed >> 33) % THINGS];
        if (t->is_in) {
            hash_remove(&table, &t->link);
        } else {
            t->key = (seed >> 20) % KEYS << 40; /* keys that differ in the upper bits only */
            hash_add(&table, &t->link, t->key);
        }
        t->is_in = !t->is_in;
        if (step % 97 == 0) check_key((seed >> 20) % KEYS << 40);
    }
    for (uint64_t k = 0; k < KEYS; k++) check_key(k << 40);
}

static void spreads(void **state)
{
    int most = 0, n[1 << HASH_BITS] = {0};
    (void)state;
    for (uint64_t k = 0; k < 1 << HASH_BITS; k++) { /* as numbers of lines are: one after the other */
        int *at = &n[hash_list(&table, k) - table.list];
        if (++*at > most) most = *at;
    }
    assert_true(most <= 4);
}

static void texts(void **state)
{
    (void)state;
    assert_true(hash_text("") != hash_text("a") && hash_text("ab") != hash_text("ba") && hash_text("ab") == hash_text("ab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_an_array), cmocka_unit_test(spreads), cmocka_unit_test(texts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
