/*
 * rankset_test.c - rank maps as ordered sets (MPI-5.0 7.3.2) against plain arrays: random maps of all three forms in
 * worlds of 40 to a million processes, from runs, blocks, grids, reversals, permutations and holes.
 */
#include "obj/rankset.h"
#include "../seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD_MAX = 1000000 };
static uint64_t seed;
static int32_t world;
static int forms[3]; /* maps made: progressions, runs, tables */

/* A map and what it has to be. */
struct model {
    int32_t n;
    uint32_t *at;
    int32_t *where; /* by index, -1 */
    struct rankmap *map;
};

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static void model_open(struct model *m)
{
    *m = (struct model){.at = malloc((size_t)world * sizeof *m->at), .where = malloc((size_t)world * sizeof *m->where)};
    memset(m->where, 0xff, (size_t)world * sizeof *m->where);
}

static void model_close(struct model *m)
{
    rankmap_unref(m->map);
    free(m->at);
    free(m->where);
}

static void put(struct model *m, int64_t index)
{
    if (index < 0 || index >= world || m->where[index] >= 0) return;
    m->where[index] = m->n;
    m->at[m->n++] = (uint32_t)index;
}

static void put_pieces(struct model *m) /* some progressions, up or down */
{
    int pieces = 1 + (int)draw(6);
    for (int p = 0; p < pieces; p++) {
        int64_t first = draw((uint32_t)world), stride = draw(2) ? 1 : 1 + (int64_t)draw(9), count = draw((uint32_t)world);
        if (draw(3) == 0) stride = -stride;
        for (int64_t i = 0; i < count && first >= 0 && first < world; i++, first += stride) put(m, first);
    }
}

static void put_grid(struct model *m) /* columns or rows of a grid, some of them, maybe all */
{
    int64_t width = 1 + draw(40), rows = world / width, some = 1 + draw((uint32_t)width), begin = draw((uint32_t)width);
    bool blocks = draw(2);
    for (int64_t c = 0; c < some; c++)
        for (int64_t r = 0; r < rows; r++) put(m, blocks ? c * 2 * rows + r : r * width + (begin + c) % width);
}

static void put_holes(struct model *m) /* all but every k-th */
{
    int64_t k = 2 + draw(9);
    for (int64_t i = 0; i < world; i++)
        if (i % k != 0) put(m, i);
}

static void put_random(struct model *m)
{
    uint32_t n = draw(2) ? draw((uint32_t)world) : draw((uint32_t)world / 8 + 1);
    for (uint32_t i = 0; i < n; i++) put(m, draw((uint32_t)world));
}

static void draw_model(struct model *m)
{
    void (*const how[])(struct model *) = {put_pieces, put_pieces, put_grid, put_holes, put_random};
    model_open(m);
    if (draw(12)) how[draw(5)](m);
    m->map = rankmap_list(m->n, m->at);
    assert_non_null(m->map);
    forms[m->map->runs == 1 ? 0 : m->map->runs ? 1 : 2]++;
}

/* The map is the model's; it is released. */
static void same(struct rankmap *map, const struct model *m, const char *what)
{
    assert_non_null(map);
    if (map->size != m->n) fail_msg("%s: %d ranks instead of %d", what, map->size, m->n);
    for (int32_t r = 0; r < m->n; r++)
        if (rankmap_at(map, r) != m->at[r]) fail_msg("%s: rank %d is %u instead of %u", what, r, rankmap_at(map, r), m->at[r]);
    for (int k = 0; k < 30 || k < m->n / 1000; k++) {
        uint32_t index = draw((uint32_t)world);
        if (rankmap_find(map, index) != m->where[index])
            fail_msg("%s: %u is rank %d instead of %d", what, index, rankmap_find(map, index), m->where[index]);
    }
    rankmap_unref(map);
}

static void filtered(struct model *out, const struct model *a, const struct model *b, bool in)
{
    model_open(out);
    for (int32_t r = 0; r < a->n; r++)
        if ((b->where[a->at[r]] >= 0) == in) put(out, a->at[r]);
}

static void check_sets(const struct model *a, const struct model *b)
{
    struct model common, minus;
    filtered(&common, a, b, true);
    filtered(&minus, a, b, false);
    int32_t outside = minus.n ? a->where[minus.at[0]] : -1;
    same(rankset_common(a->map, b->map), &common, "common");
    same(rankset_minus(a->map, b->map), &minus, "minus");
    assert_int_equal(rankset_outside(a->map, b->map), outside);
    assert_int_equal(rankset_outside(a->map, a->map), -1);
    struct rankmap *rest = rankmap_list(minus.n, minus.at);
    for (int32_t r = 0; r < b->n; r++) put(&minus, b->at[r]);
    same(rankset_join(rest, b->map), &minus, "join");
    same(rankset_union(rest, b->map), &minus, "union of what is disjoint");
    struct model all;
    model_open(&all);
    for (int32_t r = 0; r < a->n; r++) put(&all, a->at[r]);
    for (int32_t r = 0; r < b->n; r++) put(&all, b->at[r]);
    same(rankset_union(a->map, b->map), &all, "union");
    model_close(&all);
    rankmap_unref(rest);
    model_close(&common);
    model_close(&minus);
}

/* b's indices, as far as a has so many, as ranks of a. */
static void check_ranks(const struct model *a, const struct model *b)
{
    struct model picked, others, ranks;
    model_open(&picked);
    model_open(&others);
    model_open(&ranks);
    for (int32_t r = 0; r < b->n; r++)
        if ((int32_t)b->at[r] < a->n) put(&ranks, b->at[r]);
    for (int32_t r = 0; r < ranks.n; r++) put(&picked, a->at[ranks.at[r]]);
    for (int32_t r = 0; r < a->n; r++)
        if (ranks.where[r] < 0) put(&others, a->at[r]);
    ranks.map = rankmap_list(ranks.n, ranks.at);
    same(rankset_pick(a->map, ranks.map), &picked, "pick");
    same(rankset_drop(a->map, ranks.map), &others, "drop");
    assert_int_equal(rankset_twice(ranks.map, world), -1);
    model_close(&picked);
    model_close(&others);
    model_close(&ranks);
}

static void check_telling(const struct model *a)
{
    struct rankmap_form form = rankmap_form_of(a->map);
    size_t bytes = rankmap_packed(&form);
    void *message = malloc(bytes + 1);
    rankmap_pack(a->map, message);
    struct rankmap *copy = rankmap_unpack(&form, message);
    assert_true(rankmap_equal(copy, a->map));
    same(copy, a, "unpacked");
    free(message);
}

static void check_pair(void)
{
    struct model a, b;
    draw_model(&a);
    draw_model(&b);
    same(rankmap_ref(a.map), &a, "list");
    assert_int_equal(rankmap_equal(a.map, b.map), a.n == b.n && !memcmp(a.at, b.at, (size_t)a.n * sizeof *a.at));
    check_sets(&a, &b);
    check_ranks(&a, &b);
    check_telling(&a);
    model_close(&a);
    model_close(&b);
}

static void small_worlds(void **state)
{
    (void)state;
    for (int round = 0; round < 10000; round++) {
        world = 1 + (int32_t)draw(draw(4) ? 40 : 400);
        check_pair();
    }
    assert_true(forms[0] > 1000 && forms[1] > 1000 && forms[2] > 1000);
}

static void a_million_processes(void **state)
{
    (void)state;
    memset(forms, 0, sizeof forms);
    world = WORLD_MAX;
    for (int round = 0; round < 30; round++) check_pair();
    assert_true(forms[0] && forms[1] && forms[2]);
}

/* What must not be: a number that is there twice is found, wherever it is. */
static void what_is_there_twice(void **state)
{
    int found = 0;
    (void)state;
    for (int round = 0; round < 10000; round++) {
        struct run_list l = {0};
        int32_t count[300] = {0}, twice = 0, pieces = 1 + (int32_t)draw(5);
        for (int32_t p = 0; p < pieces; p++) {
            int32_t first = (int32_t)draw(300), stride = 1 + (int32_t)draw(5), n = 0;
            while (first + n * stride < 300 && (n < 1 || draw(20))) count[first + n++ * stride]++;
            bool down = draw(2);
            runs_add(&l, (uint32_t)(down ? first + (n - 1) * stride : first), down ? -stride : stride, n);
        }
        for (int i = 0; i < 300; i++) twice += count[i] > 1;
        struct rankmap *m = rankmap_runs(&l);
        int32_t is = rankset_twice(m, 300);
        if (twice) assert_true(is >= 0 && count[is] > 1);
        else assert_int_equal(is, -1);
        found += is >= 0;
        rankmap_unref(m);
    }
    assert_true(found > 1000 && found < 9900);
}

static int32_t bytes_of(struct rankmap *m)
{
    int32_t bytes = (int32_t)rankmap_bytes(m);
    rankmap_unref(m);
    return bytes;
}

/* Groups that are regular cost no table, however large: also what remains of them. */
static void regular_groups_are_small(void **state)
{
    (void)state;
    struct rankmap *all = rankmap_line(WORLD_MAX, 0, 1), *sevenths = rankmap_line(WORLD_MAX / 7, 3, 7);
    struct rankmap *down = rankmap_line(WORLD_MAX, WORLD_MAX - 1, -1), *middle = rankmap_line(1000, 500000, 1);
    assert_int_equal(bytes_of(rankset_common(all, sevenths)), sizeof(struct rankmap));
    assert_int_equal(bytes_of(rankset_common(down, sevenths)), sizeof(struct rankmap));
    assert_int_equal(bytes_of(rankset_pick(down, sevenths)), sizeof(struct rankmap));
    assert_true(bytes_of(rankset_minus(all, middle)) < 200);
    assert_true(bytes_of(rankset_drop(down, middle)) < 200);
    assert_true(bytes_of(rankset_join(sevenths, middle)) < 200);
    assert_int_equal(rankset_outside(sevenths, down), -1);
    assert_int_equal(rankset_outside(down, sevenths), 0);
    rankmap_unref(all);
    rankmap_unref(sevenths);
    rankmap_unref(down);
    rankmap_unref(middle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_worlds),
        cmocka_unit_test(a_million_processes),
        cmocka_unit_test(what_is_there_twice),
        cmocka_unit_test(regular_groups_are_small),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
