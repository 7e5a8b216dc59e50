/* graph.c - graphs that all know (MPI-5.0 8.5.3): rings, stars, loops, double and one-way edges, nodes alone. */
#include "../check.h"

enum { MOST = 64 };

static void is_graph(MPI_Comm c, int n, const int indx[], const int edges[])
{
    int kind, nodes, nedges, i2[MOST], e2[MOST], all = indx[n - 1];
    CHECK_OK(MPI_Topo_test(c, &kind));
    CHECK(kind == MPI_GRAPH, "kind %d", kind);
    CHECK_OK(MPI_Graphdims_get(c, &nodes, &nedges));
    CHECK(nodes == n && nedges == all, "%d nodes, %d edges", nodes, nedges);
    CHECK_OK(MPI_Graph_get(c, MOST, MOST, i2, e2));
    CHECK(!memcmp(i2, indx, (size_t)n * sizeof(int)), "another graph");
    CHECK(!all || !memcmp(e2, edges, (size_t)all * sizeof(int)), "other edges");
    for (int r = 0; r < n; r++) {
        int first = r ? indx[r - 1] : 0, count = -1;
        CHECK_OK(MPI_Graph_neighbors_count(c, r, &count));
        CHECK(count == indx[r] - first, "%d neighbours of %d", count, r);
        CHECK_OK(MPI_Graph_neighbors(c, r, MOST, e2));
        CHECK(!count || !memcmp(e2, edges + first, (size_t)count * sizeof(int)), "other neighbours of %d", r);
    }
}

static void graph(int n, const int indx[], const int edges[], int reorder)
{
    MPI_Comm c, dup;
    int newrank = -5, rank;
    CHECK_OK(MPI_Graph_create(MPI_COMM_WORLD, n, indx, edges, reorder, &c));
    CHECK_OK(MPI_Graph_map(MPI_COMM_WORLD, n, indx, edges, &newrank));
    CHECK((c == MPI_COMM_NULL) == (check_rank >= n), "%d processes, %d nodes", check_size, n);
    CHECK((newrank == MPI_UNDEFINED) == (c == MPI_COMM_NULL), "the map says %d", newrank);
    if (c == MPI_COMM_NULL) return;
    MPI_Comm_rank(c, &rank);
    CHECK(reorder ? rank == newrank : rank == check_rank, "rank %d, the map says %d", rank, newrank);
    is_graph(c, n, indx, edges);
    CHECK_OK(MPI_Comm_dup(c, &dup));
    MPI_Comm_free(&c);
    is_graph(dup, n, indx, edges);
    MPI_Comm_free(&dup);
}

static void ring(int n, int reorder)
{
    int indx[MOST], edges[MOST];
    for (int i = 0; i < n; i++) {
        edges[2 * i] = (i + n - 1) % n;
        edges[2 * i + 1] = (i + 1) % n;
        indx[i] = 2 * (i + 1);
    }
    graph(n, indx, edges, reorder);
}

/* Everybody to node 0 only: the edges back are not there. Node 0 has a loop, twice. */
static void star(int n, int reorder)
{
    int indx[MOST], edges[MOST] = {0, 0};
    for (int i = 0; i < n; i++) {
        indx[i] = 2 + i;
        edges[1 + i] = 0;
    }
    graph(n, indx, edges, reorder);
}

static void lonely(int n)
{
    int indx[MOST] = {0};
    graph(n, indx, NULL, 1);
}

int main(int argc, char **argv)
{
    MPI_Comm none;
    check_start(&argc, &argv);
    for (int n = 1; n <= check_size; n++)
        for (int reorder = 0; reorder < 2; reorder++) {
            ring(n, reorder);
            star(n, reorder);
            lonely(n);
        }
    CHECK_OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &none));
    CHECK(none == MPI_COMM_NULL, "a graph without nodes has a communicator");
    return check_done();
}
