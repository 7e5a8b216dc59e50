/*
 * groups.c - groups (MPI-5.0 section 7.3): set operations, selection by ranks and ranges, comparison, translation,
 * each against a plain computation on lists.
 */
#include "../check.h"

enum { MAX = 64 };

static MPI_Group world;

struct list {
    int n, rank[MAX]; /* in the world */
};

/* The world ranks of a group's members, in order. */
static struct list members(MPI_Group g)
{
    struct list l = {0, {0}};
    int own[MAX];
    CHECK_OK(MPI_Group_size(g, &l.n));
    for (int i = 0; i < l.n; i++) own[i] = i;
    CHECK_OK(MPI_Group_translate_ranks(g, l.n, own, world, l.rank));
    return l;
}

static int has(const struct list *l, int r)
{
    for (int i = 0; i < l->n; i++)
        if (l->rank[i] == r) return 1;
    return 0;
}

static void check_list(MPI_Group g, const struct list *want, const char *what)
{
    struct list is = members(g);
    int rank = -1, want_rank = MPI_UNDEFINED;
    CHECK(is.n == want->n && !memcmp(is.rank, want->rank, (size_t)is.n * sizeof(int)), "%s: other members than expected (%d, %d)", what,
          is.n, want->n);
    for (int i = 0; i < want->n; i++)
        if (want->rank[i] == check_rank) want_rank = i;
    CHECK_OK(MPI_Group_rank(g, &rank));
    CHECK(rank == want_rank, "%s: rank %d instead of %d", what, rank, want_rank);
}

/* A random list of different ranks. */
static struct list draw(uint64_t *state)
{
    struct list l = {0, {0}};
    int first = (int)(check_random(state) % (unsigned)check_size), up = (int)(check_random(state) % 2);
    for (int k = 0; k < check_size; k++) {
        int r = (first + (up ? k : check_size - k)) % check_size;
        if (check_random(state) % 3) l.rank[l.n++] = r;
    }
    return l;
}

static void sets(uint64_t *state)
{
    struct list a = draw(state), b = draw(state), all = a, both = {0, {0}}, only = {0, {0}};
    MPI_Group ga, gb, g;
    int result = -1, same = a.n == b.n;
    CHECK_OK(MPI_Group_incl(world, a.n, a.rank, &ga));
    CHECK_OK(MPI_Group_incl(world, b.n, b.rank, &gb));
    check_list(ga, &a, "incl");
    for (int i = 0; i < b.n; i++)
        if (!has(&a, b.rank[i])) all.rank[all.n++] = b.rank[i], same = 0;
    for (int i = 0; i < a.n; i++) {
        struct list *to = has(&b, a.rank[i]) ? &both : &only;
        to->rank[to->n++] = a.rank[i];
    }
    CHECK_OK(MPI_Group_union(ga, gb, &g));
    check_list(g, &all, "union");
    MPI_Group_free(&g);
    CHECK_OK(MPI_Group_intersection(ga, gb, &g));
    check_list(g, &both, "intersection");
    CHECK((g == MPI_GROUP_EMPTY) == (both.n == 0), "the empty group has another handle");
    MPI_Group_free(&g);
    CHECK_OK(MPI_Group_difference(ga, gb, &g));
    check_list(g, &only, "difference");
    MPI_Group_free(&g);
    CHECK_OK(MPI_Group_compare(ga, gb, &result));
    int want = same && !memcmp(a.rank, b.rank, (size_t)a.n * sizeof(int)) ? MPI_IDENT : same ? MPI_SIMILAR : MPI_UNEQUAL;
    CHECK(result == want, "compare: %d instead of %d", result, want);
    int own[MAX + 1], to[MAX + 1];
    for (int i = 0; i < a.n; i++) own[i] = i;
    own[a.n] = MPI_PROC_NULL;
    CHECK_OK(MPI_Group_translate_ranks(ga, a.n + 1, own, gb, to));
    for (int i = 0; i < a.n; i++)
        CHECK(has(&b, a.rank[i]) ? to[i] >= 0 && b.rank[to[i]] == a.rank[i] : to[i] == MPI_UNDEFINED, "translation of %d is %d", i, to[i]);
    CHECK(to[a.n] == MPI_PROC_NULL, "translation of MPI_PROC_NULL is %d", to[a.n]);
    MPI_Group_free(&ga);
    MPI_Group_free(&gb);
}

static void excluding(uint64_t *state)
{
    struct list a = draw(state), rest = {0, {0}};
    MPI_Group g;
    for (int r = 0; r < check_size; r++)
        if (!has(&a, r)) rest.rank[rest.n++] = r;
    CHECK_OK(MPI_Group_excl(world, a.n, a.rank, &g));
    check_list(g, &rest, "excl");
    MPI_Group_free(&g);
}

static void ranges(void)
{
    int last = check_size - 1;
    int up[1][3] = {{0, last, 2}}, down[2][3] = {{last, 1, -2}, {0, 0, 5}};
    struct list l = {0, {0}}, rest = {0, {0}};
    MPI_Group g;
    for (int r = 0; r <= last; r += 2) l.rank[l.n++] = r;
    for (int r = 1; r <= last; r += 2) rest.rank[rest.n++] = r;
    CHECK_OK(MPI_Group_range_incl(world, 1, up, &g));
    check_list(g, &l, "range_incl upwards");
    MPI_Group_free(&g);
    CHECK_OK(MPI_Group_range_excl(world, 1, up, &g));
    check_list(g, &rest, "range_excl");
    MPI_Group_free(&g);
    if (last < 1) return;
    l.n = 0;
    for (int r = last; r >= 1; r -= 2) l.rank[l.n++] = r;
    l.rank[l.n++] = 0;
    CHECK_OK(MPI_Group_range_incl(world, 2, down, &g));
    check_list(g, &l, "range_incl downwards");
    MPI_Group_free(&g);
    CHECK(g == MPI_GROUP_NULL, "a freed group is not null");
}

static void empty(void)
{
    MPI_Group g;
    int n = -1, rank = -1, result = -1;
    CHECK_OK(MPI_Group_incl(world, 0, NULL, &g));
    CHECK(g == MPI_GROUP_EMPTY, "incl of nobody");
    CHECK_OK(MPI_Group_size(MPI_GROUP_EMPTY, &n));
    CHECK_OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
    CHECK(n == 0 && rank == MPI_UNDEFINED, "the empty group: %d, %d", n, rank);
    CHECK_OK(MPI_Group_compare(g, MPI_GROUP_EMPTY, &result));
    CHECK(result == MPI_IDENT, "empty groups compare as %d", result);
    CHECK_OK(MPI_Group_excl(world, 0, NULL, &g));
    CHECK_OK(MPI_Group_compare(g, world, &result));
    CHECK(result == MPI_IDENT, "the whole group compares as %d", result);
    MPI_Group_free(&g);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK_OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    uint64_t state = check_seed();
    for (int i = 0; i < 300; i++) sets(&state), excluding(&state);
    ranges();
    empty();
    CHECK_OK(MPI_Group_free(&world));
    return check_done();
}
