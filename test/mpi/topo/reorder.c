/*
 * reorder.c - reordering by hardware (MPI-5.0 8.5.1 to 8.5.4, 8.5.8), on a made-up machine of two packages with two L3
 * caches of two cores, over which the ranks are strewn: neighbours come nearer, never farther, and the topology is the
 * one that was asked for.
 */
#include "../check.h"
#include <unistd.h>

enum { MOST = 64 };
static const int cpu_of_rank[8] = {0, 4, 2, 6, 1, 5, 3, 7};

/* Levels at which two ranks of the world differ: core (and what is inside), L3, package. */
static int distance(int a, int b)
{
    int x = cpu_of_rank[a], y = cpu_of_rank[b];
    return (x != y) * 4 + (x / 2 != y / 2) + (x / 4 != y / 4);
}

/* world[r]: the rank in the world of rank r of c. */
static void world_ranks(MPI_Comm c, int world[])
{
    MPI_Group g, w;
    int size, ranks[MOST];
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size; i++) ranks[i] = i;
    MPI_Comm_group(c, &g);
    MPI_Comm_group(MPI_COMM_WORLD, &w);
    MPI_Group_translate_ranks(g, size, ranks, w, world);
    MPI_Group_free(&g);
    MPI_Group_free(&w);
}

struct edges {
    int n, from[MOST], to[MOST], weight[MOST];
};

static long cost(const struct edges *e, const int world[])
{
    long sum = 0;
    for (int i = 0; i < e->n; i++)
        sum += (long)e->weight[i] * distance(world ? world[e->from[i]] : e->from[i], world ? world[e->to[i]] : e->to[i]);
    return sum;
}

static void cheaper(const char *what, MPI_Comm c, const struct edges *e, int strictly)
{
    int world[MOST];
    world_ranks(c, world);
    long before = cost(e, NULL), after = cost(e, world);
    CHECK(after < before || (!strictly && after == before), "%s: the cost was %ld and is %ld", what, before, after);
}

static void grid(int a, int b, int periodic, int strictly)
{
    int dims[2] = {a, b}, periods[2] = {periodic, periodic}, rank, newrank = -5, at[2], same;
    struct edges e = {0};
    MPI_Comm c;
    for (int x = 0; x < a; x++)
        for (int y = 0; y < b; y++) {
            if (x + 1 < a || periodic) e.from[e.n] = x * b + y, e.to[e.n] = (x + 1) % a * b + y, e.weight[e.n++] = 1;
            if (y + 1 < b || periodic) e.from[e.n] = x * b + y, e.to[e.n] = x * b + (y + 1) % b, e.weight[e.n++] = 1;
        }
    CHECK_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &c));
    CHECK_OK(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &newrank));
    CHECK((c == MPI_COMM_NULL) == (newrank == MPI_UNDEFINED), "the map says %d", newrank);
    if (c == MPI_COMM_NULL) return;
    MPI_Comm_rank(c, &rank);
    CHECK(newrank == rank, "the map says %d, I am %d", newrank, rank);
    MPI_Cart_coords(c, rank, 2, at);
    MPI_Cart_rank(c, at, &same);
    CHECK(same == rank && at[0] * b + at[1] == rank, "rank %d at %d, %d", rank, at[0], at[1]);
    cheaper("grid", c, &e, strictly);
    MPI_Comm_free(&c);
}

static void draw(struct edges *e, uint64_t *state)
{
    e->n = (int)(check_random(state) % MOST);
    for (int i = 0; i < e->n; i++) {
        e->from[i] = (int)(check_random(state) % (uint64_t)check_size);
        e->to[i] = (int)(check_random(state) % (uint64_t)check_size);
        e->weight[i] = (int)(check_random(state) % 100);
    }
}

/* Neighbours in pairs, which are on different packages before. */
static void pairs(struct edges *e)
{
    e->n = 0;
    for (int i = 0; i + 1 < check_size; i += 2) e->from[e->n] = i, e->to[e->n] = i + 1, e->weight[e->n++] = 7;
}

static void graph(const struct edges *e, int strictly)
{
    int index[MOST], list[MOST], n = 0, rank, newrank = -5, kept[MOST];
    struct edges plain = *e;
    MPI_Comm c;
    for (int v = 0; v < check_size; v++) {
        for (int i = 0; i < e->n; i++)
            if (e->from[i] == v) list[n++] = e->to[i];
        index[v] = n;
    }
    for (int i = 0; i < plain.n; i++) plain.weight[i] = 1;
    CHECK_OK(MPI_Graph_create(MPI_COMM_WORLD, check_size, index, list, 1, &c));
    CHECK_OK(MPI_Graph_map(MPI_COMM_WORLD, check_size, index, list, &newrank));
    MPI_Comm_rank(c, &rank);
    CHECK(newrank == rank, "the map says %d, I am %d", newrank, rank);
    int first = rank ? index[rank - 1] : 0, count = index[rank] - first;
    CHECK_OK(MPI_Graph_neighbors(c, rank, MOST, kept));
    CHECK(!memcmp(kept, list + first, (size_t)count * sizeof(int)), "other neighbours");
    cheaper("graph", c, &plain, strictly);
    MPI_Comm_free(&c);
}

/* Edges at one end of rank r, in the order of `e`. */
static int side(const struct edges *e, int r, int in, int ranks[], int weights[])
{
    int n = 0;
    for (int i = 0; i < e->n; i++)
        if ((in ? e->to[i] : e->from[i]) == r) ranks[n] = in ? e->from[i] : e->to[i], weights[n++] = e->weight[i];
    return n;
}

/* Each process has the lists of the rank that it got. */
static void is_dist(const char *what, MPI_Comm c, const struct edges *e, int strictly)
{
    int rank, in, out, weighted, got[2][MOST], got_w[2][MOST], want[MOST], want_w[MOST];
    MPI_Comm_rank(c, &rank);
    CHECK_OK(MPI_Dist_graph_neighbors_count(c, &in, &out, &weighted));
    CHECK_OK(MPI_Dist_graph_neighbors(c, MOST, got[1], got_w[1], MOST, got[0], got_w[0]));
    CHECK(weighted, "%s: not weighted", what);
    for (int s = 0; s < 2; s++) {
        int n = side(e, rank, s, want, want_w);
        CHECK(n == (s ? in : out), "%s: %d edges instead of %d", what, s ? in : out, n);
        CHECK(!memcmp(got[s], want, (size_t)n * sizeof(int)), "%s: other ranks", what);
        CHECK(!memcmp(got_w[s], want_w, (size_t)n * sizeof(int)), "%s: other weights", what);
    }
    cheaper(what, c, e, strictly);
}

static void dist(const struct edges *e, int strictly)
{
    int src[MOST], sw[MOST], dst[MOST], dw[MOST], ones[MOST], none = 0;
    MPI_Comm c;
    int in = side(e, check_rank, 1, src, sw), out = side(e, check_rank, 0, dst, dw);
    CHECK_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, src, in ? sw : MPI_WEIGHTS_EMPTY, out, dst,
                                            out ? dw : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &c));
    is_dist("adjacent", c, e, strictly);
    MPI_Comm_free(&c);
    for (int i = 0; i < MOST; i++) ones[i] = 1;
    if (check_rank == check_size - 1) /* one knows all */
        CHECK_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, e->n, e->from, ones, e->to, e->n ? e->weight : MPI_WEIGHTS_EMPTY,
                                       MPI_INFO_NULL, 1, &c));
    else CHECK_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, &none, ones, &none, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &c));
    is_dist("general", c, e, strictly);
    MPI_Comm_free(&c);
}

/* The made-up machine is hwloc's: without its module nothing is known, and nothing can be gained. */
static int hardware_known(void)
{
    char path[4096];
    const char *top = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/lib/tern/hwloc.so", top ? top : "");
    return access(path, R_OK) == 0;
}

int main(int argc, char **argv)
{
    setenv("TERN_MACHINE", "pack:2 l3:2 core:2 pu:1", 1);
    setenv("TERN_MACHINE_CPUS", "0,4,2,6,1,5,3,7", 1);
    check_start(&argc, &argv);
    uint64_t state = check_seed();
    struct edges e;
    int gain = check_size == 8 && hardware_known();
    for (int a = 1; a <= check_size; a++)
        for (int b = 1; a * b <= check_size; b++) grid(a, b, 0, gain && a * b == 8), grid(a, b, 1, gain && a * b == 8);
    pairs(&e);
    graph(&e, gain);
    dist(&e, gain);
    for (int round = 0; round < 20; round++) {
        draw(&e, &state);
        graph(&e, 0);
        dist(&e, 0);
    }
    return check_done();
}
