/* topo_cart.c - entry points: grids (MPI-5.0 sections 8.5.1, 8.5.2, 8.5.5 to 8.5.8). */
#include "mpi/topoargs.h"
#include "topo/create.h"
#include "topo/dims.h"

#include <string.h>

static void copy(int to[], const int from[], int n)
{
    if (n) memcpy(to, from, (size_t)n * sizeof *to);
}

MPI_ALIAS(Dims_create);
int PMPI_Dims_create(int nnodes, int ndims, int dims[])
{
    const char *call = "MPI_Dims_create";
    check_running(call);
    if (nnodes <= 0) return report(NULL, call, MPI_ERR_ARG, "argument nnodes is %d, but it must be positive", nnodes);
    if (ndims < 0) return report(NULL, call, MPI_ERR_DIMS, "argument ndims is %d, which is negative", ndims);
    if (ndims && !dims) return bad_null(NULL, call, "dims");
    return report_if(NULL, call, topo_dims(nnodes, ndims, dims));
}

/* ---- making ---- */

/* A grid that fits the communicator. */
static int check_grid(struct comm *c, const char *call, int ndims, const int dims[], const int periods[])
{
    int64_t cells = 1;
    if (ndims < 0) return report(c, call, MPI_ERR_DIMS, "argument ndims is %d, which is negative", ndims);
    if (ndims && !dims) return bad_null(c, call, "dims");
    if (ndims && !periods) return bad_null(c, call, "periods");
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0) return report(c, call, MPI_ERR_DIMS, "argument dims[%d] is %d, but it must be positive", i, dims[i]);
        cells *= dims[i];
        if (cells > c->size)
            return report(c, call, MPI_ERR_DIMS, "argument dims: the grid has more cells than the communicator has processes (%d)",
                          c->size);
    }
    return MPI_SUCCESS;
}

MPI_ALIAS(Cart_create);
int PMPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart)
{
    const char *call = "MPI_Cart_create";
    int rc;
    struct comm *c = topology_parent(call, comm_old, "comm_old", &rc), *made = NULL;
    no_comm_yet(comm_cart);
    if (!c || (rc = check_grid(c, call, ndims, dims, periods))) return rc;
    if (!comm_cart) return bad_null(c, call, "comm_cart");
    rc = topo_cart_create(c, ndims, dims, periods, reorder != 0, &made);
    return give_topology(c, call, rc, made, comm_cart);
}

MPI_ALIAS(Cart_sub);
int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
    const char *call = "MPI_Cart_sub";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_CART, &rc), *made = NULL;
    no_comm_yet(newcomm);
    if (!c) return rc;
    if (!comm_of(comm)) return bad_comm(call, comm); /* still being duplicated */
    if (topo_of(c)->ndims && !remain_dims) return bad_null(c, call, "remain_dims");
    if (!newcomm) return bad_null(c, call, "newcomm");
    rc = topo_cart_sub(c, remain_dims, &made);
    return give_topology(c, call, rc, made, newcomm);
}

MPI_ALIAS(Cart_map);
int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    const char *call = "MPI_Cart_map";
    int rc;
    struct comm *c = topology_parent(call, comm, "comm", &rc);
    if (!c || (rc = check_grid(c, call, ndims, dims, periods))) return rc;
    if (!newrank) return bad_null(c, call, "newrank");
    return report_if(c, call, topo_cart_map(c, ndims, dims, periods, newrank));
}

/* ---- asking ---- */

MPI_ALIAS(Cartdim_get);
int PMPI_Cartdim_get(MPI_Comm comm, int *ndims)
{
    int rc;
    struct comm *c = with_topology("MPI_Cartdim_get", comm, MPI_CART, &rc);
    if (!c) return rc;
    if (!ndims) return bad_null(c, "MPI_Cartdim_get", "ndims");
    *ndims = topo_of(c)->ndims;
    return MPI_SUCCESS;
}

MPI_ALIAS(Cart_get);
int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
    const char *call = "MPI_Cart_get";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_CART, &rc);
    if (!c) return rc;
    const struct topo *t = topo_of(c);
    if ((rc = check_room(c, call, "maxdims", maxdims, "dims", dims, t->ndims))) return rc;
    if (t->ndims && (!periods || !coords)) return bad_null(c, call, periods ? "coords" : "periods");
    copy(dims, t->dims, t->ndims);
    copy(periods, t->periods, t->ndims);
    copy(coords, t->coords, t->ndims);
    return MPI_SUCCESS;
}

/* Into the range of a periodic dimension; what is outside of another one is an error. */
static int check_coords(struct comm *c, const char *call, const int coords[], int *rank)
{
    const struct topo *t = topo_of(c);
    *rank = 0;
    for (int i = 0; i < t->ndims; i++) {
        int at = coords[i], size = t->dims[i];
        if ((at < 0 || at >= size) && !t->periods[i])
            return report(c, call, MPI_ERR_ARG, "argument coords[%d] is %d, but the dimension, which is not periodic, has 0 to %d", i,
                          at, size - 1);
        *rank = *rank * size + (at % size + size) % size;
    }
    return MPI_SUCCESS;
}

MPI_ALIAS(Cart_rank);
int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    const char *call = "MPI_Cart_rank";
    int rc, found;
    struct comm *c = with_topology(call, comm, MPI_CART, &rc);
    if (!c) return rc;
    if (topo_of(c)->ndims && !coords) return bad_null(c, call, "coords");
    if (!rank) return bad_null(c, call, "rank");
    if ((rc = check_coords(c, call, coords, &found))) return rc;
    *rank = found;
    return MPI_SUCCESS;
}

MPI_ALIAS(Cart_coords);
int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
    const char *call = "MPI_Cart_coords";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_CART, &rc);
    if (!c) return rc;
    if (rank < 0 || rank >= c->size) return bad_topology_rank(c, call, "rank", rank);
    if ((rc = check_room(c, call, "maxdims", maxdims, "coords", coords, topo_of(c)->ndims))) return rc;
    topo_cart_coords(topo_of(c), rank, coords);
    return MPI_SUCCESS;
}

MPI_ALIAS(Cart_shift);
int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    const char *call = "MPI_Cart_shift";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_CART, &rc);
    if (!c) return rc;
    const struct topo *t = topo_of(c);
    if (direction < 0 || direction >= t->ndims)
        return report(c, call, MPI_ERR_ARG, "argument direction is %d, but the grid has %d dimensions, which are counted from 0",
                      direction, t->ndims);
    if (!rank_source || !rank_dest) return bad_null(c, call, rank_source ? "rank_dest" : "rank_source");
    *rank_source = topo_cart_step(t, direction, -(int64_t)disp);
    *rank_dest = topo_cart_step(t, direction, disp);
    return MPI_SUCCESS;
}
