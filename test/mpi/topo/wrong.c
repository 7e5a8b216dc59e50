/* wrong.c - wrong arguments of the calls about topologies: the error class, and nothing touched (MPI-5.0 9.4). */
#include "../errors/wrong.h"

static MPI_Comm none = MPI_COMM_NULL, cart, graph, dist;
static int zero[2] = {0, 0}, one[2] = {1, 1}, out[4];

static void making(void)
{
    int minus[2] = {-1, 1}, large[2] = {1 << 20, 1 << 20};
    WRONG_COMMS(MPI_Cart_create(comm, 1, one, one, 0, &none));
    WRONG_COMMS(MPI_Graph_create(comm, 1, zero, zero, 0, &none));
    WRONG_COMMS(MPI_Dist_graph_create(comm, 0, zero, zero, zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &none));
    WRONG_COMMS(MPI_Dist_graph_create_adjacent(comm, 0, zero, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &none));
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, -1, one, one, 0, &none), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, minus, one, 0, &none), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, zero, one, 0, &none), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, large, one, 0, &none), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, NULL, one, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, one, NULL, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, one, one, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_map(MPI_COMM_WORLD, 2, minus, one, &out[0]), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Cart_map(MPI_COMM_WORLD, 1, one, one, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, -1, one, one, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, check_size + 1, one, one, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, minus, one, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, one, one, 0, &none), MPI_ERR_ARG); /* node 1 of one */
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, NULL, one, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(MPI_COMM_WORLD, 1, one, NULL, 0, &none), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_map(MPI_COMM_WORLD, 1, minus, one, &out[0]), MPI_ERR_ARG);
    CHECK(none == MPI_COMM_NULL, "a failing call gave a communicator");
}

static void distributed(void)
{
    int minus = -1, many = check_size;
#define ADJACENT(n, s, sw, m, d, dw) MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, s, sw, m, d, dw, MPI_INFO_NULL, 0, &none)
#define GENERAL(n, s, g, d, w) MPI_Dist_graph_create(MPI_COMM_WORLD, n, s, g, d, w, MPI_INFO_NULL, 0, &none)
    CHECK_CLASS(ADJACENT(-1, zero, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_CLASS(ADJACENT(0, zero, MPI_UNWEIGHTED, -1, zero, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_CLASS(ADJACENT(1, &many, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED), MPI_ERR_RANK);
    CHECK_CLASS(ADJACENT(0, zero, MPI_UNWEIGHTED, 1, &minus, MPI_UNWEIGHTED), MPI_ERR_RANK);
    CHECK_CLASS(ADJACENT(1, zero, MPI_UNWEIGHTED, 1, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(ADJACENT(1, zero, &minus, 1, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(ADJACENT(1, zero, one, 1, zero, MPI_WEIGHTS_EMPTY), MPI_ERR_ARG);
    CHECK_CLASS(ADJACENT(1, NULL, one, 1, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(GENERAL(-1, zero, one, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(GENERAL(1, &many, one, zero, one), MPI_ERR_RANK);
    CHECK_CLASS(GENERAL(1, zero, &minus, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(GENERAL(1, zero, one, &many, one), MPI_ERR_RANK);
    CHECK_CLASS(GENERAL(1, zero, one, zero, &minus), MPI_ERR_ARG);
    CHECK_CLASS(GENERAL(1, zero, NULL, zero, one), MPI_ERR_ARG);
    CHECK_CLASS(GENERAL(1, zero, one, NULL, one), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, zero, one, zero, one, STRAY(MPI_Info), 0, &none), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Dist_graph_neighbors(dist, -1, out, MPI_UNWEIGHTED, 1, out, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Dist_graph_neighbors(dist, 1, NULL, MPI_UNWEIGHTED, 1, out, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Dist_graph_neighbors(dist, 1, out, NULL, 1, out, MPI_UNWEIGHTED), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Dist_graph_neighbors_count(dist, NULL, out, out), MPI_ERR_ARG);
}

/* Each question to a communicator with no topology, with another one, and to none. */
#define WRONG_TOPOLOGY(kind, call)                                                   \
    do {                                                                             \
        WRONG_COMMS(call);                                                           \
        MPI_Comm others[4] = {MPI_COMM_WORLD, cart, graph, dist};                    \
        for (int o_ = 0; o_ < 4; o_++) {                                             \
            MPI_Comm comm = others[o_];                                              \
            if (comm != (kind)) CHECK_CLASS(call, MPI_ERR_TOPOLOGY);                 \
        }                                                                            \
    } while (0)

static void asking(void)
{
    int two = 2, twos[2] = {0, 9};
    WRONG_TOPOLOGY(cart, MPI_Cart_get(comm, 2, out, out, out));
    WRONG_TOPOLOGY(cart, MPI_Cartdim_get(comm, out));
    WRONG_TOPOLOGY(cart, MPI_Cart_rank(comm, zero, out));
    WRONG_TOPOLOGY(cart, MPI_Cart_coords(comm, 0, 2, out));
    WRONG_TOPOLOGY(cart, MPI_Cart_shift(comm, 0, 1, out, out));
    WRONG_TOPOLOGY(cart, MPI_Cart_sub(comm, one, &none));
    WRONG_TOPOLOGY(graph, MPI_Graphdims_get(comm, out, out));
    WRONG_TOPOLOGY(graph, MPI_Graph_get(comm, 4, 4, out, out));
    WRONG_TOPOLOGY(graph, MPI_Graph_neighbors_count(comm, 0, out));
    WRONG_TOPOLOGY(graph, MPI_Graph_neighbors(comm, 0, 4, out));
    WRONG_TOPOLOGY(dist, MPI_Dist_graph_neighbors_count(comm, out, out, out));
    WRONG_TOPOLOGY(dist, MPI_Dist_graph_neighbors(comm, 1, out, MPI_UNWEIGHTED, 1, out, MPI_UNWEIGHTED));
    WRONG_COMMS(MPI_Topo_test(comm, out));
    CHECK_CLASS(MPI_Topo_test(cart, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_get(cart, 1, out, out, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_get(cart, 2, out, NULL, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_rank(cart, twos, out), MPI_ERR_ARG); /* not periodic */
    CHECK_CLASS(MPI_Cart_rank(cart, NULL, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_coords(cart, two, 2, out), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Cart_coords(cart, 0, 1, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_shift(cart, two, 1, out, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cart_shift(cart, -1, 1, out, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_get(graph, 0, 4, out, out), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_neighbors(graph, 1, 4, out), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Graph_neighbors(graph, 0, 0, out), MPI_ERR_ARG);
    CHECK(none == MPI_COMM_NULL, "a failing call gave a communicator");
}

static void dims(void)
{
    int d[2] = {0, 5};
    CHECK_CLASS(MPI_Dims_create(12, 2, d), MPI_ERR_DIMS);
    CHECK(d[0] == 0 && d[1] == 5, "a failing call set %d x %d", d[0], d[1]);
    d[1] = -1;
    CHECK_CLASS(MPI_Dims_create(12, 2, d), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Dims_create(12, -1, d), MPI_ERR_DIMS);
    CHECK_CLASS(MPI_Dims_create(0, 1, zero), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Dims_create(12, 2, NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    wrong_open();
    CHECK_OK(MPI_Cart_create(MPI_COMM_SELF, 2, one, zero, 0, &cart));
    CHECK_OK(MPI_Graph_create(MPI_COMM_SELF, 1, one, zero, 0, &graph));
    CHECK_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, zero, one, 1, zero, one, MPI_INFO_NULL, 0, &dist));
    wrong_renew();
    making();
    distributed();
    asking();
    dims();
    MPI_Comm_free(&cart);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&dist);
    wrong_close();
    return check_done();
}
