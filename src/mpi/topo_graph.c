/* topo_graph.c - entry points: graphs that every process knows whole (MPI-5.0 sections 8.5.3, 8.5.5, 8.5.8). */
#include "mpi/topoargs.h"
#include "topo/create.h"

#include <string.h>

/* The ends of the nodes' lists of neighbours: they do not fall. */
static int check_index(struct comm *c, const char *call, int nnodes, const int indx[])
{
    for (int i = 0; i < nnodes; i++)
        if (indx[i] < (i ? indx[i - 1] : 0))
            return report(c, call, MPI_ERR_ARG, "argument index[%d] is %d, which is less than %s", i, indx[i],
                          i ? "the entry before it" : "zero");
    return MPI_SUCCESS;
}

static int check_graph(struct comm *c, const char *call, int nnodes, const int indx[], const int edges[])
{
    if (nnodes < 0) return report(c, call, MPI_ERR_ARG, "argument nnodes is %d, which is negative", nnodes);
    if (nnodes > c->size)
        return report(c, call, MPI_ERR_ARG, "argument nnodes is %d, but the communicator has %d processes", nnodes, c->size);
    if (nnodes && !indx) return bad_null(c, call, "indx");
    int rc = check_index(c, call, nnodes, indx), nedges = nnodes ? indx[nnodes - 1] : 0;
    if (rc) return rc;
    if (nedges && !edges) return bad_null(c, call, "edges");
    for (int i = 0; i < nedges; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return report(c, call, MPI_ERR_ARG, "argument edges[%d] is %d, but the graph has nodes 0 to %d", i, edges[i], nnodes - 1);
    return MPI_SUCCESS;
}

MPI_ALIAS(Graph_create);
int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder, MPI_Comm *comm_graph)
{
    const char *call = "MPI_Graph_create";
    int rc;
    struct comm *c = topology_parent(call, comm_old, "comm_old", &rc), *made = NULL;
    no_comm_yet(comm_graph);
    if (!c || (rc = check_graph(c, call, nnodes, indx, edges))) return rc;
    if (!comm_graph) return bad_null(c, call, "comm_graph");
    rc = topo_graph_create(c, nnodes, indx, edges, reorder != 0, &made);
    return give_topology(c, call, rc, made, comm_graph);
}

MPI_ALIAS(Graph_map);
int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
    const char *call = "MPI_Graph_map";
    int rc;
    struct comm *c = topology_parent(call, comm, "comm", &rc);
    if (!c || (rc = check_graph(c, call, nnodes, indx, edges))) return rc;
    if (!newrank) return bad_null(c, call, "newrank");
    return report_if(c, call, topo_graph_map(c, nnodes, indx, edges, newrank));
}

MPI_ALIAS(Graphdims_get);
int PMPI_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
    const char *call = "MPI_Graphdims_get";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_GRAPH, &rc);
    if (!c) return rc;
    if (!nnodes || !nedges) return bad_null(c, call, nnodes ? "nedges" : "nnodes");
    const struct topo *t = topo_of(c);
    *nnodes = t->nnodes;
    *nedges = t->index[t->nnodes - 1];
    return MPI_SUCCESS;
}

MPI_ALIAS(Graph_get);
int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])
{
    const char *call = "MPI_Graph_get";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_GRAPH, &rc);
    if (!c) return rc;
    const struct topo *t = topo_of(c);
    int nedges = t->index[t->nnodes - 1];
    if ((rc = check_room(c, call, "maxindex", maxindex, "indx", indx, t->nnodes))) return rc;
    if ((rc = check_room(c, call, "maxedges", maxedges, "edges", edges, nedges))) return rc;
    memcpy(indx, t->index, (size_t)t->nnodes * sizeof *indx);
    if (nedges) memcpy(edges, t->edges, (size_t)nedges * sizeof *edges);
    return MPI_SUCCESS;
}

MPI_ALIAS(Graph_neighbors_count);
int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
    const char *call = "MPI_Graph_neighbors_count";
    const int *edges;
    int rc;
    struct comm *c = with_topology(call, comm, MPI_GRAPH, &rc);
    if (!c) return rc;
    if (rank < 0 || rank >= c->size) return bad_topology_rank(c, call, "rank", rank);
    if (!nneighbors) return bad_null(c, call, "nneighbors");
    *nneighbors = topo_graph_edges(topo_of(c), rank, &edges);
    return MPI_SUCCESS;
}

MPI_ALIAS(Graph_neighbors);
int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[])
{
    const char *call = "MPI_Graph_neighbors";
    const int *edges;
    int rc;
    struct comm *c = with_topology(call, comm, MPI_GRAPH, &rc);
    if (!c) return rc;
    if (rank < 0 || rank >= c->size) return bad_topology_rank(c, call, "rank", rank);
    int n = topo_graph_edges(topo_of(c), rank, &edges);
    if ((rc = check_room(c, call, "maxneighbors", maxneighbors, "neighbors", neighbors, n))) return rc;
    if (n) memcpy(neighbors, edges, (size_t)n * sizeof *neighbors);
    return MPI_SUCCESS;
}
