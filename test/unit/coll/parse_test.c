/*
 * parse_test.c - schedules as texts: what is printed is read again as the same block, bit for bit, and what is wrong in a
 * text is refused with its line.
 */
#include "coll/alg/alg.h"
#include "coll/goal/arith.h"

#include "base/err.h"
#include <goal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void round_trip(const struct goal_prog *prog)
{
    struct goal_prog *again;
    char *text = goal_print(&prog->head);
    assert_non_null(text);
    if (goal_parse(text, &again)) fail_msg("%s, in:\n%s", err_words(), text);
    assert_int_equal(again->head.bytes, prog->head.bytes);
    assert_memory_equal(&again->head, &prog->head, prog->head.bytes);
    goal_unref(again);
    free(text);
}

static void collectives(void **state)
{
    (void)state;
    for (int alg = 0; alg < coll_algs_count; alg++) {
        enum coll_kind kind = coll_algs[alg].kind;
        struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)alg, .flags = COLL_EXACT, .size = 8, .nodes = 1,
                               .radix = 2, .bytes = 160, .grain = coll_reduces(kind) ? 8 : 1, .segment = 32};
        struct goal_prog *prog;
        if (coll_has_blocks(kind) || coll_has_neighbors(kind) || !coll_alg_fits(alg, &s)) continue;
        for (s.rank = 0; s.rank < s.size; s.rank++) {
            assert_int_equal(coll_compile(&s, &coll_given_nothing, &prog), 0);
            round_trip(prog);
            goal_unref(prog);
        }
    }
}

/* One operation of every kind, empty lists, both kinds of edges, far slots, negative offsets. */
static struct goal_prog *everything(void)
{
    struct goal_build *b = goal_build_open(1, 4, 0);
    struct goal_part in[2] = {{{0, -16}, 8}, {{7, 0}, 8}}, out = {{GOAL_SCRATCH, 0}, 16};
    struct goal_prog *prog;
    goal_scratch(b, 100);
    goal_id first = goal_join(b), last = first;
    for (unsigned op = 0; op < GOAL_OPERATORS; op++)
        for (unsigned type = 0; type < GOAL_TYPES; type++) {
            if (!goal_arith_known(ARITH_CODE(op, type))) continue;
            goal_id id = goal_arithv(b, ARITH_CODE(op, type), in, 2, &out, 1);
            goal_after(b, id, last);
            last = id;
        }
    goal_after_start(b, goal_copyv(b, in, 2, &out, 1), last);
    goal_after(b, goal_reducev(b, in, 2, &out, 1), first);
    goal_reduce3(b, goal_mem(0, 0), goal_mem(0, 8), goal_mem(1, 0), 8);
    goal_stamp(b, goal_mem(1, 8));
    goal_sendv(b, 3, 65535, in, 2);
    goal_sendv(b, 3, 1, NULL, 0);
    goal_recvv(b, 0, 1, &out, 1);
    goal_after_start(b, goal_recvv(b, 0, 2, NULL, 0), first);
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    assert_int_equal(goal_verify(&prog->head, prog->head.bytes), 0);
    return prog;
}

static void all_operations(void **state)
{
    (void)state;
    struct goal_prog *prog = everything();
    round_trip(prog);
    goal_unref(prog);
}

#define HEAD "schedule v2: rank 0 of 2, 2 operations, 1 independent, scratchpad 64 bytes, 3 slots, 232 bytes\n"
#define SLOTS "  slot 0 (send) [0,8) read\n  slot 2 (scratch) [0,8) read write\n"
#define OPS "  0 recv from 1 tag 4: scratch[0,8) then 1\n  1 add uint32: send[0,8) -> scratch[0,8)\n"

#define CYCLE                                                                                                        \
    "schedule v2: rank 0 of 1, 4 operations, 1 independent, scratchpad 0 bytes, 0 slots, 176 bytes\n"               \
    "  0 join then 1\n  1 join then 2 3\n  2 join then 1\n  3 join\n"

static void mistakes(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "line 1: expected schedule v at ''"},
        {"schedule v1: rank", "line 1: a number is out of range at '1:"},
        {"schedule v2: rank 0 of 2, 999999999 operations", "out of range"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[0,8) then 1\n", "line 5: expected a number"},
        {HEAD SLOTS OPS OPS, "line 6: more lines than operations"},
        {HEAD "  slot 3 (x) [0,8) read\n" OPS, "line 2: a number is out of range"},
        {HEAD SLOTS "  1 join\n  0 join\n", "line 4: a number is out of range at '1 join'"},
        {HEAD SLOTS "  0 rec from 1 tag 4: scratch[0,8)\n", "line 4: unknown operation at 'rec from 1 tag 4: scratch[0,8)'"},
        {HEAD SLOTS "  0 add int33: send[0,8) -> scratch[0,8)\n", "unknown type of numbers at 'int33"},
        {HEAD SLOTS "  0 recv from 1 tag 65536: scratch[0,8)\n", "out of range at '65536"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[8,0)\n", "out of range at '0)'"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[0,8) later 1\n", "expected the end of the line at 'later 1'"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[0,8) then 2\n", "out of range at '2'"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[0,8)\n  1 join\n", "more operations are independent"},
        {HEAD SLOTS "  0 recv from 1 tag 4: scratch[0,8) then 1\n  1 join then 0\n", "fewer operations are independent"},
        {HEAD SLOTS "  0 recv from 2 tag 4: scratch[0,8) then 1\n  1 add uint32: send[0,8) -> scratch[0,8)\n", "line 4: collective schedule: operation 0 names rank 2"},
        {CYCLE, "line 3: collective schedule: the dependencies form a cycle: operation 1 waits for 2"},
    };
    (void)state;
    struct goal_prog *prog;
    assert_int_equal(goal_parse(HEAD SLOTS OPS, &prog), 0);
    round_trip(prog);
    goal_unref(prog);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(goal_parse(bad[i].text, &prog), TERN_ERR_PROGRAM);
        if (!strstr(err_words(), bad[i].words)) fail_msg("text %zu: '%s' is not in: %s", i, bad[i].words, err_words());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives),
        cmocka_unit_test(all_operations),
        cmocka_unit_test(mistakes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("schedules as texts", tests, NULL, NULL);
}
