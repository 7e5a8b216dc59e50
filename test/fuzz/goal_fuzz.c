/*
 * goal_fuzz.c - schedules from elsewhere: blocks with wrong bits, blocks spliced from others, wrong numbers in the right
 * places, and texts in the same way. What the verifier accepts is run in the simulator, among the parts of the
 * other ranks as they were, in memory of exactly the declared ranges: it computes something, or says what is
 * wrong; a sanitizer sees any step outside (GOAL-12).
 */
#include "coll/alg/alg.h"
#include "coll/goal/arith.h"
#include "coll/goal/check.h"

#include "base/err.h"
#include "base/var.h"
#include "fuzz.h"
#include "sim.h"
#include "type/op.h"
#include <goal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, SETS = 12, ROOM = 1 << 16 }; /* memory of one slot in a run, at most */

static struct goal_prog *set[SETS][RANKS]; /* programs of all ranks, by kind */
static int sets;
static uint64_t accepted, ran, ended;

/* ---- where they come from ------------------------------------------------------- */

static void add_collective(enum coll_kind kind, const char *alg)
{
    struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)coll_alg_find(kind, alg), .flags = COLL_EXACT, .size = RANKS,
                           .nodes = 1, .radix = 2, .bytes = 64, .grain = coll_reduces(kind) ? 8 : 1, .segment = 16};
    for (s.rank = 0; s.rank < RANKS; s.rank++)
        if (coll_compile(&s, &coll_given_nothing, &set[sets][s.rank])) abort();
    sets++;
}

/* As users make them: a ring of messages with arithmetic of all types, lists, stamps, edges of both kinds. */
static struct goal_prog *user_program(int rank)
{
    struct goal_build *b = goal_build_open(rank, RANKS, 0);
    struct goal_mem pad = goal_scratch(b, 256);
    struct goal_prog *prog;
    goal_id last = GOAL_NONE;
    for (unsigned type = 0; type < GOAL_FLOAT16; type++) {
        struct goal_part in[2] = {{goal_plus(pad, 8 * type), 8}, {goal_plus(pad, 128 + 8 * type), 8}};
        struct goal_part out = {goal_mem(GOAL_SLOT_USER, 16 * type), 16};
        goal_id send = goal_sendv(b, (rank + 1) % RANKS, (int)type, &out, 1);
        goal_id recv = goal_recvv(b, (rank + RANKS - 1) % RANKS, (int)type, in, 2);
        goal_id op = goal_arithv(b, ARITH_CODE(type % GOAL_OPERATORS, type), in, 2, &out, 1);
        goal_id stamp = goal_stamp(b, goal_mem(GOAL_SLOT_USER + 2, 8 * type));
        goal_after(b, op, recv);
        goal_after(b, op, send);
        goal_after_start(b, stamp, op);
        goal_after(b, op, last);
        last = op;
    }
    if (goal_seal(b, &prog)) abort();
    goal_build_close(b);
    return prog;
}

static void make_sets(void)
{
    add_collective(COLL_BARRIER, "dissemination");
    add_collective(COLL_BCAST, "chain");
    add_collective(COLL_REDUCE, "binomial");
    add_collective(COLL_ALLREDUCE, "halving");
    add_collective(COLL_ALLREDUCE, "ring");
    add_collective(COLL_ALLGATHER, "bruck");
    add_collective(COLL_ALLTOALL, "bruck");
    add_collective(COLL_SCAN, "doubling");
    for (int rank = 0; rank < RANKS; rank++) set[sets][rank] = user_program(rank);
    sets++;
}

/* ---- running what was accepted ------------------------------------------------------ */

static bool small(const struct goal_head *h)
{
    if (h->scratch > ROOM) return false;
    for (uint32_t i = 0; i < h->slot_count; i++)
        if (goal_ranges(h)[i].hi - goal_ranges(h)[i].lo > ROOM || llabs(goal_ranges(h)[i].lo) > (int64_t)1 << 40) return false;
    return true;
}

/* Every slot of a rank to memory of its range; *all_p is to be freed. */
static void bind(struct sim *s, int rank, const struct goal_head *h, char ***all_p)
{
    char **all = calloc((size_t)h->slot_count + 1, sizeof *all);
    if (!all) abort();
    for (uint32_t i = 0; i < h->slot_count; i++) {
        const struct goal_range *r = &goal_ranges(h)[i];
        if (i == GOAL_SCRATCH || !r->flags) continue;
        all[i] = calloc(1, (size_t)(r->hi - r->lo) + 1);
        if (!all[i]) abort();
        sim_bind(s, rank, i, (char *)((uintptr_t)all[i] - (uintptr_t)r->lo), NULL);
    }
    *all_p = all;
}

static void run(struct goal_prog *const prog[RANKS])
{
    static const struct sim_op sum = {SIM_SUM};
    char **mem[RANKS];
    struct sim *s = sim_open(RANKS, prog, fuzz_seed);
    if (!s) abort();
    for (int r = 0; r < RANKS; r++) bind(s, r, &prog[r]->head, &mem[r]);
    sim_bind_op(s, &sum, NULL);
    ran++;
    ended += !sim_run(s);
    for (int r = 0; r < RANKS; r++) {
        for (uint32_t i = 0; i < prog[r]->head.slot_count; i++) free(mem[r][i]);
        free(mem[r]);
    }
    sim_close(s);
}

/* One that was accepted: it has a text, which is that of the same block, and runs in the place of one of its set. */
static void use(int kind, struct goal_prog *prog)
{
    struct goal_prog *all[RANKS], *again;
    const struct goal_head *block[RANKS], *h = &prog->head;
    accepted++;
    char *text = goal_print(h);
    if (!text) abort();
    bool same = !goal_parse(text, &again);
    FUZZ_RULE(same, "the text of a block is read");
    if (same) {
        FUZZ_RULE(again->head.bytes == h->bytes && !memcmp(&again->head, h, h->bytes), "... as the same block");
        goal_unref(again);
    }
    free(text);
    if (h->size != RANKS || !small(h)) return;
    for (int r = 0; r < RANKS; r++) {
        all[r] = r == h->rank ? prog : set[kind][r];
        block[r] = &all[r]->head;
    }
    int judged = goal_check_all(RANKS, RANKS, block, NULL);
    uint64_t before = ended;
    run(all);
    FUZZ_RULE(judged || ended > before || err_code() != TERN_ERR_PROGRAM || !strstr(err_words(), "deadlock"),
              "what was found to end ends");
}

/* ---- blocks --------------------------------------------------------------------------- */

/* A number somewhere in the operations becomes another one that is as small: it often passes. */
static void nudge(struct goal_head *h)
{
    static const uint16_t few[] = {0, 1, 2, 3, 4, 7, 8, 16, 24, 32, 64, 0xffff};
    uint32_t at = (uint32_t)fuzz_below((h->bytes - sizeof *h) / 2) * 2 + (uint32_t)sizeof *h;
    uint16_t v;
    memcpy(&v, (char *)h + at, sizeof v);
    v = fuzz_below(2) ? few[fuzz_below(ARRAY_LEN(few))] : (uint16_t)(v + 8 * fuzz_below(5) - 16);
    memcpy((char *)h + at, &v, sizeof v);
}

static void splice(struct goal_head *h, const struct goal_head *from)
{
    size_t n = 8 * (1 + fuzz_below(16)), at = 8 * fuzz_below(h->bytes / 8), where = 8 * fuzz_below(from->bytes / 8);
    n = min_size(n, min_size(h->bytes - at, from->bytes - where));
    memcpy((char *)h + at, (const char *)from + where, n);
}

static void blocks(void)
{
    int kind = (int)fuzz_below((uint64_t)sets);
    const struct goal_head *h = &set[kind][fuzz_below(RANKS)]->head, *other = &set[fuzz_below((uint64_t)sets)][fuzz_below(RANKS)]->head;
    struct goal_prog *prog;
    size_t size = h->bytes;
    char *block = malloc(size);
    if (!block) abort();
    memcpy(block, h, size);
    switch (fuzz_below(8)) {
    case 0: fuzz_mutate((uint8_t *)block, size); break;
    case 1: splice((struct goal_head *)block, other); break;
    case 2: size = fuzz_below(size); break;
    default:
        for (uint64_t k = 1 + fuzz_below(2); k; k--) nudge((struct goal_head *)block);
    }
    if (!goal_import(block, size, &prog)) {
        use(kind, prog);
        goal_unref(prog);
    }
    free(block);
}

/* ---- texts ------------------------------------------------------------------------------ */

/* A digit becomes another digit, a line goes, comes twice, or is cut; or anything becomes anything. */
static void spoil(char *text)
{
    size_t n = strlen(text), at = fuzz_below(n);
    switch (fuzz_below(5)) {
    case 0:
    case 1:
        while (at < n && (text[at] < '0' || text[at] > '9')) at++;
        if (at < n) text[at] = (char)('0' + fuzz_below(10));
        break;
    case 2: text[at] = (char)fuzz_random(); break;
    case 3: text[at] = 0; break;
    default: {
        char *line = memchr(text + at, '\n', n - at), *end = line ? strchr(line + 1, '\n') : NULL;
        if (end) memmove(line, end, strlen(end) + 1);
    }
    }
}

static void texts(void)
{
    int kind = (int)fuzz_below((uint64_t)sets);
    struct goal_prog *prog;
    char *text = goal_print(&set[kind][fuzz_below(RANKS)]->head);
    if (!text) abort();
    for (uint64_t k = fuzz_below(3); k && *text; k--) spoil(text);
    char *exact = strdup(text); /* where a sanitizer sees what is behind */
    if (!exact) abort();
    if (!goal_parse(exact, &prog)) {
        use(kind, prog);
        goal_unref(prog);
    }
    free(exact);
    free(text);
}

/* Random words, of those that texts are made of. */
static void nonsense(void)
{
    static const char *const words[] = {"schedule v2: rank 0 of 1, 1 operations, 1 independent, scratchpad 8 bytes, 3 slots, 160 bytes\n",
                                        "send", "recv", "scratch", "slot", "[0,8)", "->", "then", "started:", "tag", "to", "from",
                                        "add", "int32:", "join", "stamp", "copy", "nothing", "0", "1", "-1", "\n", " ", ":", ",",
                                        "read", "write", "99999999999999999999", "("};
    char text[512];
    struct goal_prog *prog;
    strcpy(text, fuzz_below(4) ? words[0] : "");
    for (uint64_t k = fuzz_below(24); k && strlen(text) < 400; k--) {
        strcat(text, words[fuzz_below(8) ? 1 + fuzz_below(ARRAY_LEN(words) - 1) : 0]);
        if (fuzz_below(2)) strcat(text, " ");
    }
    if (!goal_parse(text, &prog)) {
        FUZZ_RULE(!goal_verify(&prog->head, prog->head.bytes), "what is read is right");
        goal_unref(prog);
    }
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"corrupted blocks are refused or harmless", blocks, 1},
        {"corrupted texts are refused or harmless", texts, 4},
        {"nonsense is refused", nonsense, 4},
    };
    if (var_open() || type_open() || op_open()) return 1;
    make_sets();
    int rc = fuzz_main(parts, ARRAY_LEN(parts), 20000);
    printf("# %llu were accepted, %llu of them run, %llu of those to their end\n", (unsigned long long)accepted,
           (unsigned long long)ran, (unsigned long long)ended);
    if (!ran || !ended) rc = 1;
    for (int k = 0; k < sets; k++)
        for (int r = 0; r < RANKS; r++) goal_unref(set[k][r]);
    return rc;
}
