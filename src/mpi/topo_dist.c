/* topo_dist.c - entry points: graphs of which each process knows a part (MPI-5.0 sections 8.5.4, 8.5.5). */
#include "mpi/topoargs.h"
#include "obj/info.h"
#include "topo/create.h"

#include <string.h>

/* What the arguments of one list of ranks are called. */
struct names {
    const char *degree, *ranks, *weights;
};
static const struct names in_names = {"indegree", "sources", "sourceweights"};
static const struct names out_names = {"outdegree", "destinations", "destweights"};
static const struct names edge_names = {"degrees", "destinations", "weights"};

static int check_ranks(struct comm *c, const char *call, const char *name, int n, const int ranks[])
{
    if (n < 0) return MPI_SUCCESS; /* said by others */
    if (n && !ranks) return bad_null(c, call, name);
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= c->size)
            return report(c, call, MPI_ERR_RANK, "argument %s[%d] is %d, but the communicator has ranks 0 to %d", name, i, ranks[i],
                          c->size - 1);
    return MPI_SUCCESS;
}

/* MPI_WEIGHTS_EMPTY stands for weights of no edges. */
static int check_weights(struct comm *c, const char *call, const char *name, int n, const int weights[])
{
    if (weights == MPI_UNWEIGHTED || !n) return MPI_SUCCESS;
    if (!weights) return bad_null(c, call, name);
    if (weights == MPI_WEIGHTS_EMPTY)
        return report(c, call, MPI_ERR_ARG, "argument %s is MPI_WEIGHTS_EMPTY, but there are %d edges", name, n);
    for (int i = 0; i < n; i++)
        if (weights[i] < 0) return report(c, call, MPI_ERR_ARG, "argument %s[%d] is %d, which is negative", name, i, weights[i]);
    return MPI_SUCCESS;
}

static int check_side(struct comm *c, const char *call, const struct names *names, int n, const int ranks[], const int weights[],
                      struct topo_side *side)
{
    if (n < 0) return report(c, call, MPI_ERR_ARG, "argument %s is %d, which is negative", names->degree, n);
    int rc = check_ranks(c, call, names->ranks, n, ranks);
    if (!rc) rc = check_weights(c, call, names->weights, n, weights);
    *side = (struct topo_side){n, ranks, !n || weights == MPI_UNWEIGHTED ? NULL : weights};
    return rc;
}

/* Hints: none is known, but it must be an info object. */
static int check_hints(struct comm *c, const char *call, MPI_Info info)
{
    if (info == MPI_INFO_NULL || info_of(info)) return MPI_SUCCESS;
    return report(c, call, MPI_ERR_INFO, "argument info (%p) is not an info object, or one that was freed", (void *)info);
}

MPI_ALIAS(Dist_graph_create_adjacent);
int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
                                    int outdegree, const int destinations[], const int destweights[], MPI_Info info,
                                    int reorder, MPI_Comm *comm_dist_graph)
{
    const char *call = "MPI_Dist_graph_create_adjacent";
    struct topo_side in, out;
    int rc;
    struct comm *c = topology_parent(call, comm_old, "comm_old", &rc), *made = NULL;
    no_comm_yet(comm_dist_graph);
    if (!c || (rc = check_side(c, call, &in_names, indegree, sources, sourceweights, &in)) ||
        (rc = check_side(c, call, &out_names, outdegree, destinations, destweights, &out)) || (rc = check_hints(c, call, info)))
        return rc;
    if ((sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED))
        return report(c, call, MPI_ERR_ARG, "one of sourceweights and destweights is MPI_UNWEIGHTED, and the other is not");
    if (!comm_dist_graph) return bad_null(c, call, "comm_dist_graph");
    rc = topo_dist_create_adjacent(c, &in, &out, sourceweights != MPI_UNWEIGHTED, reorder != 0, &made);
    return give_topology(c, call, rc, made, comm_dist_graph);
}

/* The number of edges; -1: *rc is the reported class. */
static int count_edges(struct comm *c, const char *call, int n, const int degrees[], int *rc)
{
    int64_t edges = 0;
    if (n && !degrees) *rc = bad_null(c, call, "degrees");
    for (int i = 0; i < n && !*rc; i++) {
        if (degrees[i] < 0) *rc = report(c, call, MPI_ERR_ARG, "argument degrees[%d] is %d, which is negative", i, degrees[i]);
        edges += degrees[i];
    }
    if (!*rc && edges > INT32_MAX) *rc = report(c, call, MPI_ERR_ARG, "argument degrees: there are more than 2^31 edges");
    return *rc ? -1 : (int)edges;
}

MPI_ALIAS(Dist_graph_create);
int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                           const int weights[], MPI_Info info, int reorder, MPI_Comm *comm_dist_graph)
{
    const char *call = "MPI_Dist_graph_create";
    struct topo_side to;
    int rc;
    struct comm *c = topology_parent(call, comm_old, "comm_old", &rc), *made = NULL;
    no_comm_yet(comm_dist_graph);
    if (!c) return rc;
    if (n < 0) return report(c, call, MPI_ERR_ARG, "argument n is %d, which is negative", n);
    if ((rc = check_ranks(c, call, "sources", n, sources))) return rc;
    int edges = count_edges(c, call, n, degrees, &rc);
    if (rc || (rc = check_side(c, call, &edge_names, edges, destinations, weights, &to)) || (rc = check_hints(c, call, info)))
        return rc;
    if (!comm_dist_graph) return bad_null(c, call, "comm_dist_graph");
    rc = topo_dist_create(c, n, sources, degrees, &to, weights != MPI_UNWEIGHTED, reorder != 0, &made);
    return give_topology(c, call, rc, made, comm_dist_graph);
}

MPI_ALIAS(Dist_graph_neighbors_count);
int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree, int *weighted)
{
    const char *call = "MPI_Dist_graph_neighbors_count";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_DIST_GRAPH, &rc);
    if (!c) return rc;
    if (!indegree || !outdegree || !weighted)
        return bad_null(c, call, !indegree ? "indegree" : !outdegree ? "outdegree" : "weighted");
    const struct topo *t = topo_of(c);
    *indegree = t->in;
    *outdegree = t->out;
    *weighted = t->weighted;
    return MPI_SUCCESS;
}

static int check_results(struct comm *c, const char *call, const struct names *names, int room, int n, const int ranks[],
                         const int weights[])
{
    if (room < 0) return report(c, call, MPI_ERR_ARG, "argument max%s is %d, which is negative", names->degree, room);
    if (n > room) n = room;
    if (n && !ranks) return bad_null(c, call, names->ranks);
    if (!n || !topo_of(c)->weighted || weights == MPI_UNWEIGHTED || (weights && weights != MPI_WEIGHTS_EMPTY)) return MPI_SUCCESS;
    return report(c, call, MPI_ERR_ARG, "argument %s is %s, but there are %d weights", names->weights,
                  weights ? "MPI_WEIGHTS_EMPTY" : "NULL", n);
}

/* The first part of one list, as far as there is room (8.5.5). */
static void give_side(struct comm *c, int room, int n, const int from[], const int from_weights[], int ranks[], int weights[])
{
    if (n > room) n = room;
    if (!n) return;
    memcpy(ranks, from, (size_t)n * sizeof *ranks);
    if (topo_of(c)->weighted && weights != MPI_UNWEIGHTED) memcpy(weights, from_weights, (size_t)n * sizeof *weights);
}

MPI_ALIAS(Dist_graph_neighbors);
int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                              int destinations[], int destweights[])
{
    const char *call = "MPI_Dist_graph_neighbors";
    int rc;
    struct comm *c = with_topology(call, comm, MPI_DIST_GRAPH, &rc);
    if (!c) return rc;
    const struct topo *t = topo_of(c);
    rc = check_results(c, call, &in_names, maxindegree, t->in, sources, sourceweights);
    if (!rc) rc = check_results(c, call, &out_names, maxoutdegree, t->out, destinations, destweights);
    if (rc) return rc;
    give_side(c, maxindegree, t->in, t->sources, t->in_weights, sources, sourceweights);
    give_side(c, maxoutdegree, t->out, t->destinations, t->out_weights, destinations, destweights);
    return MPI_SUCCESS;
}
