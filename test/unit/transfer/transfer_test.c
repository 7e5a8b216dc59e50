/* transfer_test.c - chunks of a transfer, and the two ways of copying them. All orders of its steps: test/sim/transfer_sim_test.c. */
#include "transfer/transfer.h"
#include "base/err.h"
#include "copy/copy.h"
#include "transport/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 10000, CHUNK = 4096, PLACE = 512 };

static char from[BYTES], to[BYTES];
static char *arena;            /* the other side's, as it is mapped here; NULL: it cannot be mapped */
static uint64_t order[8];      /* offsets of the chunks, as they were copied */
static int copies, fails_at;   /* fails_at: the number of the copy that fails */

static int copy(const struct iovec *src, const struct iovec *dst)
{
    order[copies] = (uint64_t)((char *)src->iov_base - from);
    if (++copies == fails_at) return err_set(TERN_ERR_SYSTEM, "no");
    memcpy(dst->iov_base, src->iov_base, src->iov_len);
    return 0;
}

static int get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    assert_int_equal(nl, 1);
    assert_int_equal(nr, 1);
    return copy(remote, local);
}

static int put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    assert_int_equal(nl, 1);
    assert_int_equal(nr, 1);
    return copy(local, remote);
}

static void *map_arena(struct tp_ep *ep, uint64_t place, size_t n)
{
    (void)ep, (void)n;
    return arena ? arena + (place - PLACE) : NULL;
}

static const struct tp_ops ops = {.get = get, .put = put, .map_arena = map_arena};

static void begin(struct transfer *t, uint64_t sent, uint64_t room, uint64_t from_place, uint64_t to_place)
{
    for (int i = 0; i < BYTES; i++) from[i] = (char)(i * 7 + i / 256);
    memset(to, 0, sizeof to);
    memset(t, 0, sizeof *t);
    copies = fails_at = 0;
    arena = NULL;
    t->chunk = CHUNK;
    transfer_say(t, TRANSFER_FROM, 5, from, from_place, sent);
    assert_true(transfer_is_said(t, TRANSFER_FROM, 5));
    assert_false(transfer_is_said(t, TRANSFER_FROM, 4));
    transfer_say(t, TRANSFER_TO, 5, to, to_place, room);
}

static void chunks_are_copied_by_either_side(void **state)
{
    struct transfer t;
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_GETPUT};
    (void)state;
    begin(&t, BYTES, BYTES, 0, 0);
    t.first = 1; /* of 0, 4096 and 8192 */
    assert_int_equal(transfer_go_on(&t, TRANSFER_FROM, &ep), TRANSFER_MOVED);
    assert_int_equal(transfer_go_on(&t, TRANSFER_TO, &ep), TRANSFER_MOVED);
    assert_false(transfer_is_over(&t));
    assert_int_equal(transfer_go_on(&t, TRANSFER_TO, &ep), TRANSFER_MOVED | TRANSFER_ENDED);
    assert_true(transfer_is_over(&t));
    assert_int_equal(transfer_error(&t), 0);
    assert_int_equal(transfer_go_on(&t, TRANSFER_FROM, &ep), 0);
    assert_int_equal(order[0], CHUNK);
    assert_int_equal(order[1], 2 * CHUNK);
    assert_int_equal(order[2], 0);
    assert_memory_equal(from, to, BYTES);
}

static void the_shorter_end_counts(void **state)
{
    static const uint64_t bytes[][2] = {{BYTES, 5000}, {5000, BYTES}, {CHUNK, CHUNK}, {0, BYTES}, {BYTES, 0}};
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_GETPUT};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bytes); i++) {
        uint64_t n = bytes[i][0] < bytes[i][1] ? bytes[i][0] : bytes[i][1];
        struct transfer t;
        begin(&t, bytes[i][0], bytes[i][1], 0, 0);
        assert_int_equal(transfer_bytes(&t), n);
        while (transfer_go_on(&t, TRANSFER_TO, &ep)) continue;
        assert_true(transfer_is_over(&t));
        assert_int_equal(copies, (n + CHUNK - 1) / CHUNK);
        assert_memory_equal(from, to, n);
        for (uint64_t k = n; k < BYTES; k++) assert_int_equal(to[k], 0);
    }
}

/* Memory of the other side that is mapped here needs no system call, whichever side that is. */
static void an_arena_is_copied_from_and_to(void **state)
{
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_ARENA};
    struct transfer t;
    static char mapped[BYTES];
    (void)state;
    begin(&t, BYTES, BYTES, 0, PLACE);
    arena = mapped; /* the receiver's */
    assert_true(transfer_reaches(&t, TRANSFER_FROM, &ep));
    assert_false(transfer_reaches(&t, TRANSFER_TO, &ep));
    while (transfer_go_on(&t, TRANSFER_FROM, &ep)) continue;
    assert_memory_equal(from, mapped, BYTES);
    begin(&t, BYTES, BYTES, PLACE, 0);
    arena = from; /* the sender's */
    while (transfer_go_on(&t, TRANSFER_TO, &ep)) continue;
    assert_memory_equal(from, to, BYTES);
    assert_int_equal(copies, 0);
}

/* One that cannot be mapped after all is the system's to copy, if it can. */
static void an_arena_that_is_not_mapped(void **state)
{
    struct tp_ep both = {.ops = &ops, .caps = TP_CAP_ARENA | TP_CAP_GETPUT}, arena_only = {.ops = &ops, .caps = TP_CAP_ARENA};
    struct transfer t;
    (void)state;
    begin(&t, BYTES, BYTES, PLACE, PLACE);
    while (transfer_go_on(&t, TRANSFER_TO, &both)) continue;
    assert_int_equal(transfer_error(&t), 0);
    assert_memory_equal(from, to, BYTES);
    begin(&t, BYTES, BYTES, PLACE, PLACE);
    assert_int_equal(transfer_go_on(&t, TRANSFER_TO, &arena_only), TRANSFER_MOVED | TRANSFER_ENDED);
    assert_int_equal(transfer_error(&t), TERN_ERR_UNSUPPORTED);
}

/* Both ends in one process: that process, and another one by way of a buffer. */
static void ends_in_one_process(void **state)
{
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_GETPUT}, arena_only = {.ops = &ops, .caps = TP_CAP_ARENA};
    struct transfer t;
    char buffer[CHUNK];
    (void)state;
    begin(&t, BYTES, BYTES, 0, 0);
    assert_int_equal(transfer_go_on_here(&t), TRANSFER_MOVED);
    assert_int_equal(copies, 0);
    assert_memory_equal(from, to, CHUNK);
    assert_int_equal(to[CHUNK], 0);
    assert_int_equal(transfer_carry(&t, &arena_only, buffer), 0); /* and has claimed nothing */
    assert_int_equal(transfer_carry(&t, &ep, buffer), TRANSFER_MOVED);
    assert_int_equal(copies, 2);
    assert_int_equal(transfer_carry(&t, &ep, buffer), TRANSFER_MOVED | TRANSFER_ENDED);
    assert_int_equal(transfer_carry(&t, &ep, buffer), 0);
    assert_int_equal(transfer_go_on_here(&t), 0);
    assert_int_equal(transfer_error(&t), 0);
    assert_memory_equal(from, to, BYTES);
}

static void what_is_carried_may_fail(void **state)
{
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_GETPUT};
    struct transfer t;
    char buffer[CHUNK];
    (void)state;
    for (int at = 1; at <= 2; at++) {
        begin(&t, BYTES, BYTES, 0, 0);
        fails_at = at;
        assert_int_equal(transfer_carry(&t, &ep, buffer), TRANSFER_MOVED | TRANSFER_ENDED);
        assert_int_equal(copies, at);
        assert_int_equal(transfer_error(&t), TERN_ERR_SYSTEM);
        assert_int_equal(transfer_go_on_here(&t), 0);
    }
}

static void a_failure_ends_all_of_it(void **state)
{
    struct tp_ep ep = {.ops = &ops, .caps = TP_CAP_GETPUT};
    struct transfer t;
    (void)state;
    begin(&t, BYTES, BYTES, 0, 0);
    fails_at = 2;
    assert_int_equal(transfer_go_on(&t, TRANSFER_TO, &ep), TRANSFER_MOVED);
    assert_int_equal(transfer_go_on(&t, TRANSFER_FROM, &ep), TRANSFER_MOVED | TRANSFER_ENDED);
    assert_true(transfer_is_over(&t));
    assert_int_equal(transfer_error(&t), TERN_ERR_SYSTEM);
    assert_int_equal(transfer_go_on(&t, TRANSFER_TO, &ep), 0);
    transfer_renew(&t);
    assert_int_equal(transfer_error(&t), 0);
    assert_true(transfer_has_work(&t));
}

static void chunks_have_sizes(void **state)
{
    static const uint64_t most = 256 << 10;
    (void)state;
    assert_int_equal(transfer_chunk(0, most), 4096);
    assert_int_equal(transfer_chunk(1, most), 4096);
    assert_int_equal(transfer_chunk(40000, most), 20480); /* two, of whole pages */
    assert_int_equal(transfer_chunk(10 << 20, most), most);
    assert_true((UINT64_C(1) << 50) / transfer_chunk(UINT64_C(1) << 50, most) < UINT32_MAX / 2); /* their number has room */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_copied_by_either_side), cmocka_unit_test(the_shorter_end_counts),
        cmocka_unit_test(an_arena_is_copied_from_and_to),   cmocka_unit_test(an_arena_that_is_not_mapped),
        cmocka_unit_test(ends_in_one_process),              cmocka_unit_test(what_is_carried_may_fail),
        cmocka_unit_test(a_failure_ends_all_of_it),         cmocka_unit_test(chunks_have_sizes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
