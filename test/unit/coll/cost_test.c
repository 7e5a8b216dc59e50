/*
 * cost_test.c - programs are small: at most 64 bytes an operation, for every algorithm, not counting the pieces of lists
 * beyond the second (16 bytes each). What an operation costs to run is held down by test/build/instructions.test.
 */
#include "coll/alg/alg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BOUND = 64 };

static size_t surplus(const struct goal_head *h)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    size_t n = 0;
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
        if (op->n_in + op->n_out > 2) n += ((size_t)op->n_in + op->n_out - 2) * sizeof(struct goal_piece);
    return n;
}

static void check(int alg, int size, int64_t bytes)
{
    enum coll_kind kind = coll_algs[alg].kind;
    struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)alg, .rank = 1, .size = size, .nodes = 1, .radix = 4};
    struct goal_prog *prog;
    s.flags = COLL_EXACT;
    s.bytes = bytes;
    s.grain = coll_reduces(kind) ? 8 : 1;
    s.segment = 1024;
    if (!coll_alg_fits(alg, &s)) return;
    assert_int_equal(coll_compile(&s, &coll_given_nothing, &prog), 0);
    const struct goal_head *h = &prog->head;
    size_t used = h->bytes - h->first_op - surplus(h);
    if (h->op_count > 8 && used > (size_t)h->op_count * BOUND)
        fail_msg("%s %s, %d ranks: %zu bytes for %u operations", coll_kind_name(kind), coll_algs[alg].name, size, used,
                 h->op_count);
    goal_unref(prog);
}

static void bytes_an_operation(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 4, 7, 16, 33, 64};
    for (int alg = 0; alg < coll_algs_count; alg++) {
        if (coll_has_blocks(coll_algs[alg].kind) || coll_has_neighbors(coll_algs[alg].kind)) continue;
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            check(alg, sizes[i], 8);
            check(alg, sizes[i], 64 << 10);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_an_operation)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("size of schedules", tests, NULL, NULL);
}
