/* group_test.c - the algebra of groups against naive sets (MPI-5.0 7.3.2), by random groups of a small world. */
#include "obj/group.h"
#include "../seed.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { WORLD = 12, ME = 5 };
static uint64_t seed;

/* A group as the standard thinks of it. */
struct set {
    int n;
    uint32_t at[2 * WORLD];
};

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static int find(const struct set *s, uint32_t index)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i] == index) return i;
    return -1;
}

static struct set random_set(void)
{
    struct set s = {0};
    int n = (int)draw(WORLD + 1);
    while (s.n < n) {
        uint32_t index = draw(2) ? draw(WORLD) : (uint32_t)s.n % WORLD;
        if (find(&s, index) < 0) s.at[s.n++] = index;
    }
    return s;
}

static struct group *group_from(const struct set *s) { return group_new(rankmap_list(s->n, s->at)); }

static void same(struct group *g, const struct set *s)
{
    assert_int_equal(g->map->size, s->n);
    for (int i = 0; i < s->n; i++) assert_int_equal(rankmap_at(g->map, i), s->at[i]);
    int me = find(s, ME);
    assert_int_equal(g->rank, me < 0 ? MPI_UNDEFINED : me);
    assert_int_equal(group_handle(g) == MPI_GROUP_EMPTY, s->n == 0);
    assert_ptr_equal(group_of(group_handle(g)), g);
}

/* Members of a that are in b, or are not; behind what is in `out`. */
static void choose(struct set *out, const struct set *a, const struct set *b, bool in)
{
    for (int i = 0; i < a->n; i++)
        if ((find(b, a->at[i]) >= 0) == in) out->at[out->n++] = a->at[i];
}

static int open_groups(void **state)
{
    (void)state;
    group_open(ME);
    return 0;
}

static int close_groups(void **state)
{
    (void)state;
    group_close();
    handle_close();
    return 0;
}

static void union_intersection_difference(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct set a = random_set(), b = random_set(), u = a, i = {0}, d = {0};
        struct group *ga = group_from(&a), *gb = group_from(&b), *r = NULL;
        choose(&u, &b, &a, false);
        choose(&i, &a, &b, true);
        choose(&d, &a, &b, false);
        assert_int_equal(group_union(ga, gb, &r), 0);
        same(r, &u);
        group_unref(r);
        assert_int_equal(group_intersection(ga, gb, &r), 0);
        same(r, &i);
        group_unref(r);
        assert_int_equal(group_difference(ga, gb, &r), 0);
        same(r, &d);
        group_unref(r);
        group_unref(ga);
        group_unref(gb);
    }
}

static void include_and_exclude(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct set a = random_set(), in = {0}, ex = {0};
        struct group *ga = group_from(&a), *r = NULL;
        int ranks[WORLD], n = 0;
        for (int i = 0; i < a.n; i++)
            if (draw(2)) ranks[n++] = i;
        for (int i = n - 1; i > 0; i--) { /* in any order */
            int k = (int)draw((uint32_t)i + 1), t = ranks[i];
            ranks[i] = ranks[k];
            ranks[k] = t;
        }
        for (int i = 0; i < n; i++) in.at[in.n++] = a.at[ranks[i]];
        choose(&ex, &a, &in, false);
        assert_int_equal(group_incl(ga, n, ranks, &r), 0);
        same(r, &in);
        group_unref(r);
        struct rankmap *list = rankmap_list(n, (const uint32_t *)ranks);
        assert_int_equal(group_pick(ga, list, &r), 0);
        same(r, &in);
        group_unref(r);
        assert_int_equal(group_drop(ga, list, &r), 0);
        same(r, &ex);
        group_unref(r);
        rankmap_unref(list);
        group_unref(ga);
    }
}

static void comparing_and_translating(void **state)
{
    int seen[3] = {0};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct set a = random_set(), b = draw(2) ? a : random_set();
        if (b.n > 1 && draw(2)) {
            uint32_t t = b.at[0];
            b.at[0] = b.at[b.n - 1];
            b.at[b.n - 1] = t;
        }
        struct group *ga = group_from(&a), *gb = group_from(&b);
        bool ident = a.n == b.n, similar = a.n == b.n;
        for (int i = 0; i < a.n && i < b.n; i++) ident = ident && a.at[i] == b.at[i];
        for (int i = 0; i < a.n; i++) similar = similar && find(&b, a.at[i]) >= 0;
        int want = ident ? MPI_IDENT : similar ? MPI_SIMILAR : MPI_UNEQUAL;
        assert_int_equal(group_compare(ga, gb), want);
        seen[ident ? 0 : similar ? 1 : 2]++;
        int from[WORLD + 1], to[WORLD + 1];
        for (int i = 0; i < a.n; i++) from[i] = i;
        from[a.n] = MPI_PROC_NULL;
        assert_int_equal(group_translate(ga, a.n + 1, from, gb, to), 0);
        for (int i = 0; i < a.n; i++) assert_int_equal(to[i], find(&b, a.at[i]) < 0 ? MPI_UNDEFINED : find(&b, a.at[i]));
        assert_int_equal(to[a.n], MPI_PROC_NULL);
        group_unref(ga);
        group_unref(gb);
    }
    assert_true(seen[0] > 100 && seen[1] > 100 && seen[2] > 100);
}

static void the_empty_group_is_one_and_stays(void **state)
{
    struct set none = {0};
    (void)state;
    struct group *a = group_from(&none), *b = group_from(&none);
    assert_ptr_equal(a, b);
    assert_ptr_equal(a, group_empty());
    assert_ptr_equal(group_of(MPI_GROUP_EMPTY), a);
    for (int i = 0; i < 10; i++) group_unref(a); /* freed too often by a careless program */
    assert_ptr_equal(group_of(MPI_GROUP_EMPTY), group_empty());
    assert_int_equal(group_empty()->map->size, 0);
}

static void references_keep_groups(void **state)
{
    struct set s = {3, {1, 2, 3}};
    (void)state;
    struct group *g = group_from(&s);
    assert_ptr_equal(group_ref(g), g);
    group_unref(g);
    assert_ptr_equal(group_of(group_handle(g)), g);
    MPI_Group h = group_handle(g);
    group_unref(g);
    assert_null(group_of(h));
    assert_null(group_of(MPI_GROUP_NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(union_intersection_difference, open_groups, close_groups),
        cmocka_unit_test_setup_teardown(include_and_exclude, open_groups, close_groups),
        cmocka_unit_test_setup_teardown(comparing_and_translating, open_groups, close_groups),
        cmocka_unit_test_setup_teardown(the_empty_group_is_one_and_stays, open_groups, close_groups),
        cmocka_unit_test_setup_teardown(references_keep_groups, open_groups, close_groups),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
