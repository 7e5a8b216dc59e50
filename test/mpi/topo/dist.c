/*
 * dist.c - distributed graphs (MPI-5.0 8.5.4): random ones, told by the processes at their ends or by anybody, are the
 * same graph; the order of the lists; weights.
 */
#include "../check.h"

enum { MOST = 4096 };
struct edge {
    int from, to, weight, teller;
};
static struct edge all[MOST];
static int count;

/* The same edges in all processes. */
static void draw(uint64_t *state)
{
    count = (int)(check_random(state) % 60);
    for (int i = 0; i < count; i++)
        all[i] = (struct edge){(int)(check_random(state) % (uint64_t)check_size), (int)(check_random(state) % (uint64_t)check_size),
                               (int)(check_random(state) % 9), (int)(check_random(state) % (uint64_t)check_size)};
}

struct side {
    int n, rank[MOST], weight[MOST];
};

/* Those that go out of (in: come into) this process, by who tells them. */
static void expect(struct side *s, int in)
{
    s->n = 0;
    for (int teller = 0; teller < check_size; teller++)
        for (int i = 0; i < count; i++) {
            if (all[i].teller != teller || (in ? all[i].to : all[i].from) != check_rank) continue;
            s->rank[s->n] = in ? all[i].from : all[i].to;
            s->weight[s->n++] = all[i].weight;
        }
}

static void same(const char *what, int n, const int rank[], const int weight[], const struct side *s, int weighted)
{
    CHECK(n == s->n, "%d %s instead of %d", n, what, s->n);
    CHECK(n != s->n || !memcmp(rank, s->rank, (size_t)n * sizeof(int)), "other %s, or another order", what);
    CHECK(n != s->n || !weighted || !memcmp(weight, s->weight, (size_t)n * sizeof(int)), "other weights of %s", what);
}

static struct side in, out;

static void is_graph(MPI_Comm c, int weighted)
{
    static int src[MOST], sw[MOST], dst[MOST], dw[MOST];
    int kind, n_in = -1, n_out = -1, w = -1;
    CHECK_OK(MPI_Topo_test(c, &kind));
    CHECK(kind == MPI_DIST_GRAPH, "kind %d", kind);
    CHECK_OK(MPI_Dist_graph_neighbors_count(c, &n_in, &n_out, &w));
    CHECK(!w == !weighted, "weighted: %d", w);
    if (weighted) CHECK_OK(MPI_Dist_graph_neighbors(c, MOST, src, sw, MOST, dst, dw));
    else CHECK_OK(MPI_Dist_graph_neighbors(c, n_in, src, MPI_UNWEIGHTED, n_out, dst, MPI_UNWEIGHTED));
    same("sources", n_in, src, sw, &in, weighted);
    same("destinations", n_out, dst, dw, &out, weighted);
    if (n_out < 2) return;
    dst[1] = -7; /* with little room, the first part comes */
    CHECK_OK(MPI_Dist_graph_neighbors(c, 0, NULL, MPI_UNWEIGHTED, 1, dst, MPI_UNWEIGHTED));
    CHECK(dst[0] == out.rank[0] && dst[1] == -7, "the first of several: %d %d", dst[0], dst[1]);
}

/* The order of the calling process's own lists must be kept: they come in the order of expect(). */
static void adjacent(int weighted)
{
    MPI_Comm c, dup;
    const int *iw = !weighted ? MPI_UNWEIGHTED : in.n ? in.weight : MPI_WEIGHTS_EMPTY;
    const int *ow = !weighted ? MPI_UNWEIGHTED : out.n ? out.weight : MPI_WEIGHTS_EMPTY;
    CHECK_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in.n, in.rank, iw, out.n, out.rank, ow, MPI_INFO_NULL, 0, &c));
    CHECK_OK(MPI_Comm_dup(c, &dup));
    MPI_Comm_free(&c);
    is_graph(dup, weighted);
    MPI_Comm_free(&dup);
}

static void general(int weighted, int each_alone)
{
    static int src[MOST], deg[MOST], dst[MOST], w[MOST];
    int n = 0, edges = 0;
    MPI_Comm c;
    for (int i = 0; i < count; i++) {
        if (all[i].teller != check_rank) continue;
        if (each_alone || !n || src[n - 1] != all[i].from) src[n] = all[i].from, deg[n++] = 0;
        deg[n - 1]++;
        dst[edges] = all[i].to;
        w[edges++] = all[i].weight;
    }
    const int *weights = !weighted ? MPI_UNWEIGHTED : edges ? w : MPI_WEIGHTS_EMPTY;
    CHECK_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, src, deg, dst, weights, MPI_INFO_NULL, 0, &c));
    is_graph(c, weighted);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    uint64_t state = check_seed();
    for (int round = 0; round < 30; round++) {
        draw(&state);
        expect(&in, 1);
        expect(&out, 0);
        adjacent(round & 1);
        general(round & 1, round & 2);
    }
    /* hints that nobody knows are passed over */
    MPI_Info info;
    MPI_Comm c;
    MPI_Info_create(&info);
    MPI_Info_set(info, "sea_swallow", "yes");
    CHECK_OK(MPI_Dist_graph_create(MPI_COMM_SELF, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, info, 1, &c));
    MPI_Info_free(&info);
    MPI_Comm_free(&c);
    return check_done();
}
