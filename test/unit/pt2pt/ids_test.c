/* ids_test.c - ids of requests: each names one request, for one peer and purpose, as long as it lives. */
#include "base/err.h"
#include "mock_job.h"

#include <stdlib.h>
#include <string.h>

static struct peer *some = (struct peer *)0x1000, *other = (struct peer *)0x2000; /* never looked into */

static void an_id_is_for_one_peer_and_purpose(void **state)
{
    struct ids t;
    struct request r = {.peer = some};
    (void)state;
    ids_open(&t, 0);
    assert_null(ids_find(&t, 0, some, AWAIT_ACK));
    assert_int_equal(ids_give(&t, &r, AWAIT_ACK), 0);
    assert_true(r.id != 0);
    assert_ptr_equal(ids_find(&t, r.id, some, AWAIT_ACK)->request, &r);
    assert_null(ids_find(&t, r.id, other, AWAIT_ACK));
    assert_null(ids_find(&t, r.id, some, AWAIT_CTS | AWAIT_FRAG | AWAIT_CANCELLED));
    assert_null(ids_find(&t, r.id + 1, some, AWAIT_ACK));
    assert_null(ids_find(&t, r.id + ((uint64_t)1 << 32), some, AWAIT_ACK));
    uint64_t id = r.id;
    assert_int_equal(ids_give(&t, &r, AWAIT_CTS), 0); /* the same, for more */
    assert_true(r.id == id && ids_find(&t, id, some, AWAIT_CTS) && ids_find(&t, id, some, AWAIT_ACK));
    ids_drop(&t, &r);
    assert_true(!r.id && !t.used);
    assert_null(ids_find(&t, id, some, AWAIT_ACK));
    ids_close(&t);
}

/* An id says whose table it is of, and is none of another one's. */
static void an_id_says_its_lane(void **state)
{
    struct ids t, u;
    struct request r = {.peer = some}, q = {.peer = some};
    (void)state;
    ids_open(&t, 5);
    ids_open(&u, 63);
    assert_int_equal(ids_give(&t, &r, AWAIT_ACK), 0);
    assert_int_equal(ids_give(&u, &q, AWAIT_ACK), 0);
    assert_int_equal(ids_lane(r.id), 5);
    assert_int_equal(ids_lane(q.id), 63);
    assert_ptr_equal(ids_find(&t, r.id, some, AWAIT_ACK)->request, &r);
    assert_ptr_equal(ids_find(&u, q.id, some, AWAIT_ACK)->request, &q);
    assert_null(ids_find(&u, r.id, some, AWAIT_ACK));
    assert_null(ids_find(&t, q.id, some, AWAIT_ACK));
    ids_close(&t);
    ids_close(&u);
}

/* The answer to a cancel may come when the send is over: until then the number is not given out again. */
static void a_cancelled_one_stays_until_its_answer(void **state)
{
    struct ids t;
    struct request r = {.peer = some}, q = {.peer = some};
    (void)state;
    ids_open(&t, 0);
    assert_int_equal(ids_give(&t, &r, AWAIT_CTS | AWAIT_CANCELLED), 0);
    uint64_t id = r.id;
    ids_drop(&t, &r);
    assert_null(ids_find(&t, id, some, AWAIT_CTS));
    struct id_entry *e = ids_find(&t, id, some, AWAIT_CANCELLED);
    assert_true(e && !e->request && t.used == 1);
    assert_int_equal(ids_give(&t, &q, AWAIT_ACK), 0);
    assert_true((uint32_t)q.id != (uint32_t)id);
    ids_free(&t, e);
    assert_null(ids_find(&t, id, some, AWAIT_CANCELLED));
    ids_drop(&t, &q);
    assert_int_equal(t.used, 0);
    ids_close(&t);
}

/* Against a plain array, with thousands alive; numbers are used again, ids are not. */
static void random_life(void **state)
{
    enum { N = 5000, STEPS = 200000 };
    static struct request r[N];
    static uint64_t stale[N];
    struct ids t;
    uint64_t seed = random_open();
    uint32_t used = 0;
    (void)state;
    ids_open(&t, 0);
    memset(r, 0, sizeof r);
    for (int step = 0; step < STEPS; step++) {
        int i = (int)(random_next(&seed) % N);
        if (stale[i]) assert_null(ids_find(&t, stale[i], some, UINT32_MAX));
        if (r[i].id) {
            assert_ptr_equal(ids_find(&t, r[i].id, r[i].peer, AWAIT_FRAG)->request, &r[i]);
            stale[i] = r[i].id;
            ids_drop(&t, &r[i]);
            used--;
        } else {
            r[i].peer = i % 3 ? some : other;
            assert_int_equal(ids_give(&t, &r[i], AWAIT_FRAG), 0);
            assert_true(r[i].id != stale[i]);
            used++;
        }
        assert_int_equal(t.used, used);
    }
    assert_in_range(t.made, used, 4 * N);
    uint32_t at = 0, found = 0, expected = 0;
    for (struct id_entry *e; (e = ids_next(&t, other, &at)); at++, found++) assert_ptr_equal(e->request->peer, other);
    for (int i = 0; i < N; i++) expected += r[i].id && r[i].peer == other;
    assert_int_equal(found, expected);
    ids_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_for_one_peer_and_purpose),
        cmocka_unit_test(an_id_says_its_lane),
        cmocka_unit_test(a_cancelled_one_stays_until_its_answer),
        cmocka_unit_test(random_life),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
