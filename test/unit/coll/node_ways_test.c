/*
 * node_ways_test.c - which ways calls take inside a node (coll/node/possible.c) by the built-in rules, for each operation over ranks,
 * bytes, cores of their own or shared ones, blocking or not, and the variables that bound the ways: compared with what decided before
 * there were rules for it. And what the user says beside that.
 */
#include "base/var.h"
#include "coll/coll.h"
#include "coll/node/block.h"
#include "coll/node/node.h"
#include "coll/node/pairs.h"
#include "coll/select.h"
#include "type/op.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS_MAX = 256 };

struct given {
    enum coll_kind kind;
    int ranks;
    int64_t bytes; /* of the longest block */
    bool shared, blocking;
};

/* ---- what is expected ---- */

#define ANY_BYTES INT64_MAX

static const struct {
    int64_t once_of_more, once_of_two, wide_of_two;
} large[COLL_KINDS] = {
    [COLL_BCAST] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_SCATTER] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_GATHER] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_ALLGATHER] = {16 << 10, 16 << 10, 256 << 10},
    [COLL_ALLGATHERV] = {16 << 10, 16 << 10, 0},
    [COLL_ALLTOALL] = {16 << 10, 16 << 10, 256 << 10},
    [COLL_REDUCE] = {32 << 10, 0, ANY_BYTES},
    [COLL_ALLREDUCE] = {32 << 10, 0, ANY_BYTES},
    [COLL_SCAN] = {0, 0, ANY_BYTES},
    [COLL_EXSCAN] = {0, 0, 32 << 10},
    [COLL_REDUCE_SCATTER] = {0, 0, ANY_BYTES},
    [COLL_REDUCE_SCATTER_BLOCK] = {16 << 10, 0, ANY_BYTES},
};

/* Bytes of a slice in the wide slots, elements having one. */
static int64_t slice(const struct given *g)
{
    bool each = g->kind == COLL_ALLTOALL || g->kind == COLL_REDUCE_SCATTER || g->kind == COLL_REDUCE_SCATTER_BLOCK;
    int64_t share = var_int(VAR_COLL_WIDE) / (g->shared ? 2 : 8) / g->ranks, most = g->shared ? 128 << 10 : 16 << 10;
    share = (share < most ? share : most) / 4096 * 4096 / (each ? g->ranks : 1);
    if (!coll_reduces(g->kind)) share = share / 64 * 64;
    return share < 256 ? 0 : share;
}

static bool goes_wide(const struct given *g)
{
    int64_t one = slice(g), of_two = large[g->kind].wide_of_two;
    bool has = of_two || g->kind == COLL_ALLGATHERV;
    if (!has || !one || g->bytes <= 0 || !g->blocking || !var_int(VAR_COLL_NODE) || g->ranks < 2) return false;
    if (g->ranks == 2 && !g->shared) return g->bytes <= of_two;
    if (g->kind == COLL_ALLTOALL && one < 16 << 10 && g->bytes > 8 * one) return false;
    return g->shared || (of_two && g->bytes <= 128 << 10);
}

static bool copies_once(const struct given *g)
{
    int64_t least = g->ranks > 2 ? large[g->kind].once_of_more : large[g->kind].once_of_two;
    bool gathers = g->kind == COLL_ALLGATHER || g->kind == COLL_ALLGATHERV;
    if (!g->blocking) least = var_int(VAR_COLL_PAIRS);
    if (!least || !large[g->kind].once_of_more || !var_int(VAR_COLL_NODE) || !var_int(VAR_COLL_DIRECT)) return false;
    if (g->ranks < 2 || g->bytes < least || (!g->blocking && gathers && g->shared && g->ranks > 8)) return false;
    return coll_reduces(g->kind) ? g->blocking : g->ranks <= 64;
}

static struct coll_way_list expected(const struct given *g)
{
    struct coll_way_list l = {0};
    if (g->shared && goes_wide(g)) coll_way_add(&l, COLL_WAY_WIDE, 0);
    if (copies_once(g)) coll_way_add(&l, COLL_WAY_ONCE, 0);
    if (!g->shared && goes_wide(g)) coll_way_add(&l, COLL_WAY_WIDE, 0);
    return l;
}

/* ---- what is chosen ---- */

static const char *words(const struct coll_way_list *l)
{
    static char text[2][80];
    static int turn;
    char *to = text[turn++ % 2];
    *to = 0;
    for (unsigned i = 0; i < l->n; i++) strcat(strcat(to, i ? " " : ""), coll_ways[l->way[i]].name);
    return to;
}

static struct coll_way_list chosen_with(const struct given *g, bool slots, bool commutes, const struct coll_choice *wanted)
{
    static int64_t counts[RANKS_MAX];
    struct type byte = {.size = 1, .extent = 1, .contig = true};
    struct op op = {.commute = commutes};
    struct coll_comm cc = {.nodes = 1, .domains = 1, .oversubscribed = g->shared, .wanted = (struct coll_choice *)(uintptr_t)wanted};
    struct comm c = {.size = g->ranks, .coll = &cc};
    struct coll_call a = {.kind = g->kind, .rcount = g->bytes, .rtype = &byte, .stype = &byte, .scount = g->bytes};
    struct coll_way_list l;
    bool blocks = coll_has_blocks(g->kind);
    for (int r = 0; r < g->ranks; r++) counts[r] = r == g->ranks / 2 ? g->bytes : g->bytes / 3;
    if (blocks) a.rcounts = a.scounts = counts;
    if (coll_reduces(g->kind)) a.op = &op;
    if (g->kind == COLL_BARRIER) a.rtype = a.stype = NULL;
    assert_int_equal(node_ways(&c, &a, g->blocking, slots, blocks ? 0 : g->bytes, &l), 0);
    return l;
}

static struct coll_way_list chosen(const struct given *g) { return chosen_with(g, false, true, NULL); }

static void compare(const struct given *g)
{
    struct coll_way_list want = expected(g), got = chosen(g);
    struct coll_way_list ordered = chosen_with(g, false, false, NULL), all = chosen_with(g, true, true, NULL);
    bool same = got.n == want.n && !memcmp(got.way, want.way, want.n) && ordered.n == want.n && !memcmp(ordered.way, want.way, want.n);
    if (!same)
        fail_msg("%s%s of %lld bytes, %d ranks%s: %s, expected: %s", g->blocking ? "" : "i", coll_kind_name(g->kind), (long long)g->bytes,
                 g->ranks, g->shared ? " that share cores" : "", words(&got), words(&want));
    assert_true(all.n == want.n + 1 && all.way[0] == COLL_WAY_SLOTS && !memcmp(all.way + 1, want.way, want.n));
}

static void grid(void **state)
{
    static const int ranks[] = {2, 3, 4, 5, 8, 9, 10, 12, 16, 17, 24, 32, 33, 64, 65, 128, 256};
    static const int64_t border[] = {1 << 10, 8 << 10,  12 << 10,  16 << 10,  24 << 10, 32 << 10,
                                     64 << 10, 128 << 10, 256 << 10, 1 << 20, 1 << 26};
    (void)state;
    for (int kind = 0; kind < COLL_NEIGHBOR_ALLGATHER; kind++)
        for (size_t r = 0; r < ARRAY_LEN(ranks); r++)
            for (size_t b = 0; b < 3 * ARRAY_LEN(border) + 1; b++)
                for (int i = 0; i < 4; i++) {
                    int64_t bytes = b ? border[(b - 1) / 3] + (int64_t)(b % 3) - 1 : 0;
                    compare(&(struct given){(enum coll_kind)kind, ranks[r], kind == COLL_BARRIER ? 0 : bytes, i & 1, i & 2});
                }
}

/* As the user does it; NULL: not at all. */
static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
    var_close();
    assert_int_equal(var_open(), 0);
}

static void with(const char *name, const char *value)
{
    set(name, value);
    grid(NULL);
    set(name, NULL);
}

static void without_copies(void **state) { (void)state, with("TERN_COLL_DIRECT", "0"); }
static void without_wide_slots(void **state) { (void)state, with("TERN_COLL_WIDE", "0"); }
static void with_small_wide_slots(void **state) { (void)state, with("TERN_COLL_WIDE", "100K"); }
static void without_any(void **state) { (void)state, with("TERN_COLL_NODE", "0"); }

static void bounds_of_nonblocking(void **state)
{
    (void)state;
    with("TERN_COLL_PAIRS", "0");
    with("TERN_COLL_PAIRS", "64");
    with("TERN_COLL_PAIRS", "100K");
}

/* What has no lengths that all ranks know, and what is small and has gaps. */
static void nothing_to_choose(void **state)
{
    (void)state;
    static const enum coll_kind kind[] = {COLL_BARRIER, COLL_GATHERV, COLL_SCATTERV, COLL_ALLTOALLV, COLL_ALLTOALLW};
    for (size_t i = 0; i < ARRAY_LEN(kind); i++)
        for (int how = 0; how < 4; how++) {
            struct coll_way_list l = chosen(&(struct given){kind[i], 4, kind[i] == COLL_BARRIER ? 0 : 1 << 20, how & 1, how & 2});
            assert_int_equal(l.n, 0);
        }
}

/* The sets of operations are those that there are halves for (ops.c). */
static void slots_of(void **state)
{
    (void)state;
    for (int k = 0; k < COLL_KINDS; k++)
        assert_int_equal(coll_way_is_of(COLL_WAY_SLOTS, (enum coll_kind)k, COLL_CALLS_ANY), node_can((enum coll_kind)k));
}

/* ---- what the user says ---- */

static void use_table(const char *text)
{
    char path[64];
    int fd = memfd_create("table", 0);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(var_set(VAR_COLL_TABLE, *text ? path : ""), 0);
    coll_select_close();
    assert_int_equal(coll_select_open(), 0);
    close(fd);
}

static void says(const char *table, struct given g, const char *ways)
{
    use_table(table);
    struct coll_way_list l = chosen_with(&g, true, true, NULL);
    if (strcmp(words(&l), ways)) fail_msg("%s: %s, expected: %s", table, words(&l), ways);
    use_table("");
}

/* A way that cannot be taken leaves it to the next one. */
static void rules_of_the_user(void **state)
{
    (void)state;
    const struct given own = {COLL_BCAST, 4, 40000, false, true}, shared = {COLL_BCAST, 4, 40000, true, true};
    const struct given small = {COLL_BCAST, 4, 100, false, true}, later = {COLL_BCAST, 4, 40000, false, false};
    const struct given many = {COLL_BCAST, 100, 40000, false, true};
    const struct given cut = {COLL_ALLTOALL, 4, 40000, false, true}; /* into slices of 4 KB */
    says("bcast : wide", own, "wide slots copy_once");
    says("bcast : copy_once", shared, "copy_once slots wide");
    says("bcast : copy_once", many, "slots");
    says("bcast : copy_once", small, "copy_once slots wide");
    says("bcast from 1K : copy_once\nbcast : messages", small, "");
    says("bcast from 1K : copy_once\nbcast : messages", own, "copy_once");
    says("bcast nonblocking : messages", own, "slots copy_once wide");
    says("bcast nonblocking : messages", later, "");
    says("bcast blocking : messages", later, "slots copy_once");
    says("bcast : wide", later, "slots copy_once");
    says("bcast : chain messages", own, "");
    says("bcast : chain messages", later, "slots copy_once");
    says("bcast : chain", own, "slots copy_once wide");
    says("alltoall : wide slices 9", cut, "slots copy_once");
    says("alltoall : wide slices 10", cut, "wide slots copy_once");
    says("reduce : wide", own, "slots copy_once wide");
}

/* Those are of the longest block; the bytes of others are not known to all. */
static void blocks_of_the_user(void **state)
{
    (void)state;
    says("allgatherv from 10K : copy_once\nallgatherv : messages", (struct given){COLL_ALLGATHERV, 4, 10240, false, true}, "copy_once");
    says("allgatherv from 10K : copy_once\nallgatherv : messages", (struct given){COLL_ALLGATHERV, 4, 10239, false, true}, "");
    says("gatherv from 1 : messages", (struct given){COLL_GATHERV, 4, 10240, false, true}, "slots");
    says("gatherv : messages", (struct given){COLL_GATHERV, 4, 10240, false, true}, "");
    says("reduce nonblocking from 10K : messages", (struct given){COLL_REDUCE, 4, 10240, false, false}, "");
    says("reduce nonblocking from 10K : messages", (struct given){COLL_REDUCE, 4, 10239, false, false}, "slots");
}

/* They bound what rules and hints say. */
static void variables_come_first(void **state)
{
    (void)state;
    const struct given own = {COLL_BCAST, 4, 40000, false, true}, later = {COLL_BCAST, 4, 40000, false, false};
    struct coll_choice wanted[COLL_KINDS] = {[COLL_BCAST] = {.alg = -1, .way = COLL_WAY_ONCE}};
    set("TERN_COLL_PAIRS", "0");
    says("bcast : copy_once", later, "slots");
    struct coll_way_list l = chosen_with(&later, true, true, wanted);
    assert_string_equal(words(&l), "slots");
    set("TERN_COLL_PAIRS", "32K");
    says("bcast from 1M : copy_once", later, "slots copy_once");
    says("bcast nonblocking : messages", later, "");
    set("TERN_COLL_PAIRS", "64K");
    says("bcast : copy_once", later, "slots");
    says("bcast : copy_once", own, "copy_once slots wide");
    set("TERN_COLL_PAIRS", NULL);
    set("TERN_COLL_WIDE", "0");
    says("bcast : wide", own, "slots copy_once");
    set("TERN_COLL_WIDE", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid),
        cmocka_unit_test(without_copies),
        cmocka_unit_test(without_wide_slots),
        cmocka_unit_test(with_small_wide_slots),
        cmocka_unit_test(without_any),
        cmocka_unit_test(bounds_of_nonblocking),
        cmocka_unit_test(nothing_to_choose),
        cmocka_unit_test(slots_of),
        cmocka_unit_test(rules_of_the_user),
        cmocka_unit_test(blocks_of_the_user),
        cmocka_unit_test(variables_come_first),
    };
    if (var_open() || coll_select_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("ways inside a node", tests, NULL, NULL);
}
