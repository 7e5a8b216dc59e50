/*
 * verify_test.c - blocks from elsewhere: position independence and versions (GOAL-12), each rule of
 * the checker by a block that breaks only it, and mutated blocks, of which those that pass are run
 * with buffers of exactly the declared ranges (a sanitizer build finds any access outside).
 *
 * TERN_FUZZ_BLOCKS: how many mutated blocks.
 */
#include "coll/alg/alg.h"
#include "../seed.h"
#include "coll/goal/exec.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t rng;

static uint64_t draw(void) { return seed_next(&rng); }

/* A copy of a program's block in memory of its exact size, so that sanitizers see every step outside. */
struct block {
    size_t bytes;
    struct goal_head *head;
};

static struct block block_of(const struct goal_prog *prog)
{
    struct block b = {prog->head.bytes, malloc(prog->head.bytes)};
    memcpy(b.head, &prog->head, b.bytes);
    return b;
}

static struct goal_prog *compiled(enum coll_kind kind, const char *alg, int rank, int size)
{
    struct goal_prog *prog;
    struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)coll_alg_find(kind, alg), .flags = COLL_EXACT,
                           .rank = rank, .size = size, .bytes = 64, .grain = 8, .segment = 16};
    if (!coll_reduces(kind)) s.grain = 1;
    assert_int_equal(coll_compile(&s, &coll_given_nothing, &prog), 0);
    return prog;
}

static struct goal_op *op_number(struct goal_head *h, unsigned index)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    while (index--) op = goal_op_next(op);
    return (struct goal_op *)op;
}

/* The first operation of that type. */
static struct goal_op *op_of_type(struct goal_head *h, unsigned type)
{
    for (unsigned i = 0; i < h->op_count; i++)
        if (op_number(h, i)->type == type) return op_number(h, i);
    fail_msg("no %s in the program", goal_type_name(type));
    return NULL;
}

/* ---- rules --------------------------------------------------------------------- */

#define RULE(name, statement)                                                                                          \
    static void name(struct block *b)                                                                                  \
    {                                                                                                                  \
        struct goal_head *h = b->head;                                                                                 \
        (void)h;                                                                                                       \
        statement;                                                                                                     \
    }

RULE(magic, h->magic ^= 1)
RULE(version, h->version++)
RULE(flags, h->flags = 0x80)
RULE(bytes, h->bytes += 8)
RULE(cut, b->bytes -= 8)
RULE(cut_in_head, b->bytes = 40)
RULE(rank, h->rank = h->size)
RULE(many_ops, h->op_count = UINT32_MAX)
RULE(fewer_ops, h->op_count--)
RULE(many_slots, h->slot_count = UINT32_MAX)
RULE(many_indep, h->indep_ops_count = UINT32_MAX)
RULE(small_scratch, h->scratch = 8)
RULE(negative_scratch, h->scratch = -1)
RULE(type_zero, op_number(h, 0)->type = 0)
RULE(type_unknown, op_number(h, 0)->type = GOAL_OP_END)
RULE(index_wrong, op_number(h, 1)->index = 0)
RULE(peer_outside, op_of_type(h, GOAL_OP_SEND)->peer = h->size)
RULE(peer_negative, op_of_type(h, GOAL_OP_SEND)->peer = -1)
RULE(piece_slot, op_of_type(h, GOAL_OP_SEND)->piece[0].where |= (uint64_t)0xfff0 << 48)
RULE(piece_before, op_of_type(h, GOAL_OP_SEND)->piece[0].off = -1)
RULE(piece_far, op_of_type(h, GOAL_OP_SEND)->piece[0].off = INT64_MAX)
RULE(piece_long, op_of_type(h, GOAL_OP_SEND)->piece[0].where |= GOAL_LEN_MAX)
RULE(piece_empty, op_of_type(h, GOAL_OP_SEND)->piece[0].where &= ~GOAL_LEN_MAX)
RULE(unequal, op_of_type(h, GOAL_OP_REDUCE)->piece[0].where -= 8)
RULE(not_writable, ((struct goal_range *)(h + 1))[GOAL_RECV_BUF].flags = GOAL_SLOT_READ)
RULE(edge_astray, ((uint32_t *)goal_edges(op_of_type(h, GOAL_OP_RECV)))[0] += 8)
RULE(edge_outside, ((uint32_t *)goal_edges(op_of_type(h, GOAL_OP_RECV)))[0] = h->bytes)
RULE(edge_to_head, ((uint32_t *)goal_edges(op_of_type(h, GOAL_OP_RECV)))[0] = 0)
RULE(counter_high, op_of_type(h, GOAL_OP_REDUCE)->dependencies++)
RULE(counter_zero, op_of_type(h, GOAL_OP_REDUCE)->dependencies = 0)
RULE(indep_twice, ((uint32_t *)goal_indep(h))[1] = goal_indep(h)[0])

/* The last operation leads back to the one before: counters agree, but it is a cycle. */
static void cycle(struct block *b)
{
    struct goal_op *recv = op_of_type(b->head, GOAL_OP_RECV);
    struct goal_op *reduce = (struct goal_op *)goal_op_at(b->head, goal_edges(recv)[0]);
    uint32_t *to = (uint32_t *)goal_edges(reduce);
    assert_true(reduce->n_finish > 0);
    ((struct goal_op *)goal_op_at(b->head, to[0]))->dependencies--;
    reduce->dependencies++;
    to[0] = goal_op_off(b->head, reduce);
}

static const struct {
    const char *name;
    void (*damage)(struct block *);
} rules[] = {
    {"magic", magic}, {"version", version}, {"flags", flags}, {"bytes", bytes}, {"cut", cut},
    {"cut in the head", cut_in_head}, {"rank", rank}, {"many operations", many_ops}, {"fewer operations", fewer_ops},
    {"many slots", many_slots}, {"many independent", many_indep}, {"small scratchpad", small_scratch},
    {"negative scratchpad", negative_scratch}, {"type 0", type_zero}, {"unknown type", type_unknown},
    {"wrong index", index_wrong}, {"peer outside", peer_outside}, {"negative peer", peer_negative},
    {"slot outside", piece_slot}, {"piece before the range", piece_before}, {"piece far away", piece_far},
    {"piece too long", piece_long}, {"empty piece", piece_empty}, {"unequal lists", unequal},
    {"slot not writable", not_writable}, {"edge astray", edge_astray}, {"edge outside", edge_outside},
    {"edge to the head", edge_to_head}, {"counter too high", counter_high}, {"counter zero", counter_zero},
    {"independent twice", indep_twice}, {"cycle", cycle},
};

static void broken_rules(void **state)
{
    (void)state;
    struct goal_prog *prog = compiled(COLL_ALLREDUCE, "doubling", 1, 4);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct block b = block_of(prog);
        assert_int_equal(goal_verify(b.head, b.bytes), 0);
        rules[i].damage(&b);
        err_clear();
        if (goal_verify(b.head, b.bytes) != TERN_ERR_PROGRAM) fail_msg("rule \"%s\" is not enforced", rules[i].name);
        assert_true(err_words()[0]);
        free(b.head);
    }
    goal_unref(prog);
}

/* ---- round trips ----------------------------------------------------------------- */

static void import(void **state)
{
    (void)state;
    struct goal_prog *prog = compiled(COLL_BCAST, "chain", 1, 4), *copy = NULL;
    struct block b = block_of(prog);
    assert_int_equal(goal_import(b.head, b.bytes, &copy), 0);
    char *one = goal_print(&prog->head), *two = goal_print(&copy->head);
    assert_string_equal(one, two);
    assert_int_equal(memcmp(&prog->head, &copy->head, b.bytes), 0);
    b.head->magic++;
    struct goal_prog *none = NULL;
    assert_int_equal(goal_import(b.head, b.bytes, &none), TERN_ERR_PROGRAM);
    assert_null(none);
    free(one);
    free(two);
    free(b.head);
    goal_unref(prog);
    goal_unref(copy);
}

/* ---- mutation ---------------------------------------------------------------------- */

struct run {
    const struct goal_op *op[4096];
    unsigned n;
    bool done;
};

static void touch(const struct goal_buf *b, int with)
{
    for (int64_t i = 0; i < b->len; i++) b->buf[i] = (char)(b->buf[i] + with);
}

static int fuzz_message(struct goal_frame *f, const struct goal_op *op)
{
    struct run *fl = f->ctx;
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) {
        struct goal_buf b = goal_piece_buf(f, &op->piece[i]);
        touch(&b, i >= op->n_in);
    }
    if (fl->n == ARRAY_LEN(fl->op) || draw() & 1) return GOAL_DONE;
    fl->op[fl->n++] = op;
    return GOAL_LATER;
}

static int fuzz_copy(struct goal_frame *f, const struct goal_buf *from, const struct goal_buf *to)
{
    (void)f;
    assert_int_equal(from->len, to->len);
    memmove(to->buf, from->buf, (size_t)from->len);
    return 0;
}

static int fuzz_reduce3(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b,
                        const struct goal_buf *out)
{
    (void)f;
    for (int64_t i = 0; i < out->len; i++) out->buf[i] = (char)(a->buf[i] + b->buf[i]);
    return 0;
}

static const struct goal_port fuzz_port = {fuzz_message, fuzz_message, fuzz_copy, fuzz_copy, fuzz_reduce3, NULL, NULL};

static void fuzz_done(struct goal_frame *f) { ((struct run *)f->ctx)->done = true; }

/* Runs a block that has passed, all slots being of exactly the declared size. False if it asks for too much memory. */
static bool run_block(const struct block *b)
{
    static struct run fl;
    struct goal_prog *prog;
    const struct goal_range *r = goal_ranges(b->head);
    int64_t sum = b->head->scratch;
    char *mem[64];
    uint32_t slots = b->head->slot_count;
    for (uint32_t i = 0; i < slots; i++) sum += r[i].hi - r[i].lo > 1 << 20 ? 1 << 20 : r[i].hi - r[i].lo;
    if (sum >= 1 << 20 || slots > ARRAY_LEN(mem)) return false;
    assert_int_equal(goal_import(b->head, b->bytes, &prog), 0);
    struct goal_frame *f = goal_frame_new(prog, &fuzz_port);
    fl.n = 0;
    fl.done = false;
    f->ctx = &fl;
    f->done = fuzz_done;
    if (prog->head.flags & GOAL_TYPED_SCRATCH) goal_bind_scratch(f, NULL, 1, 1, 0, 1);
    for (uint32_t i = 0; i < slots; i++) {
        mem[i] = calloc(1, (size_t)(r[i].hi - r[i].lo) + (r[i].hi == r[i].lo));
        if (i != GOAL_SCRATCH) goal_bind(f, i, (char *)((uintptr_t)mem[i] - (uintptr_t)r[i].lo));
    }
    goal_start(f);
    while (fl.n) {
        unsigned k = (unsigned)(draw() % fl.n);
        const struct goal_op *op = fl.op[k];
        fl.op[k] = fl.op[--fl.n];
        goal_op_done(f, op, 0);
    }
    assert_true(fl.done);
    for (uint32_t i = 0; i < slots; i++) free(mem[i]);
    goal_frame_free(f);
    goal_unref(prog);
    return true;
}

static void mutate(struct block *b)
{
    int n = 1 + (int)(draw() % 3);
    for (int i = 0; i < n; i++) {
        size_t at = draw() % b->bytes;
        unsigned char *p = (unsigned char *)b->head;
        uint32_t word = (uint32_t)draw();
        switch (draw() % 4) {
        case 0: p[at] ^= (unsigned char)(1u << draw() % 8); break;
        case 1: p[at] = (unsigned char)draw(); break;
        case 2: p[at] = (unsigned char)(p[at] + (draw() & 1 ? 8 : -8)); break;
        default:
            if (draw() & 1) word %= 64;
            memcpy(p + (at & ~(size_t)3), &word, b->bytes - (at & ~(size_t)3) < 4 ? b->bytes - (at & ~(size_t)3) : 4);
        }
    }
}

static void mutated_blocks(void **state)
{
    (void)state;
    static const struct {
        enum coll_kind kind;
        const char *alg;
    } from[] = {{COLL_BARRIER, "dissemination"}, {COLL_BCAST, "chain"}, {COLL_ALLREDUCE, "halving"},
                {COLL_ALLTOALL, "bruck"}, {COLL_GATHER, "binomial"}, {COLL_ALLREDUCE, "dissemination"}};
    long blocks = getenv("TERN_FUZZ_BLOCKS") ? atol(getenv("TERN_FUZZ_BLOCKS")) : 100000, passed = 0, run = 0;
    for (long i = 0; i < blocks;) {
        int size = 2 + (int)(draw() % 9);
        size_t k = draw() % ARRAY_LEN(from);
        struct goal_prog *prog = compiled(from[k].kind, from[k].alg, (int)(draw() % (uint64_t)size), size);
        for (int n = 0; n < 100 && i < blocks; n++, i++) {
            struct block b = block_of(prog);
            mutate(&b);
            if (!goal_verify(b.head, b.bytes)) {
                passed++;
                run += run_block(&b);
                free(goal_print(b.head));
            }
            free(b.head);
        }
        goal_unref(prog);
    }
    print_message("# %ld mutated blocks: %ld passed the check, %ld of them were run\n", blocks, passed, run);
    assert_true(passed < blocks);
    assert_true(run > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_rules),
        cmocka_unit_test(import),
        cmocka_unit_test(mutated_blocks),
    };
    rng = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("checker of schedules", tests, NULL, NULL);
}
