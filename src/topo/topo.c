/* topo.c - topologies as objects; see topo.h. */
#include "topo/topo.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#define LAYER 3

void topo_unref(struct topo *t)
{
    if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) free(t);
}

static void comm_gone(struct comm *c)
{
    topo_unref(c->topo);
    c->topo = NULL;
    free(c->places);
    c->places = NULL;
}

void topo_open(void)
{
    static const struct comm_hooks hooks = {.gone = comm_gone};
    comm_set_hooks(LAYER, &hooks);
}

void topo_close(void) { comm_set_hooks(LAYER, NULL); }

void topo_copy(const struct comm *parent, struct comm *dup)
{
    struct topo *t = parent->topo;
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    dup->topo = t;
}

int topo_neighbors(const struct comm *c, struct topo_neighbors *n)
{
    const struct topo *t = c->topo;
    if (!t) return err_set(TERN_ERR_TOPOLOGY, "the communicator has no topology, so there are no neighbours");
    *n = (struct topo_neighbors){t->in, t->out, t->sources, t->destinations};
    return 0;
}

/* ---- making ---- */

static struct topo *new_topo(int kind, size_t ints)
{
    struct topo *t = calloc(1, sizeof *t + ints * sizeof(int));
    if (!t) {
        err_set(TERN_ERR_NOMEM, "no memory for a topology of %zu bytes", sizeof *t + ints * sizeof(int));
        return NULL;
    }
    atomic_store_explicit(&t->refs, 1, memory_order_relaxed);
    t->kind = kind;
    return t;
}

/* Copies n numbers to *at, moves it on and returns where they are. */
static int *put(int **at, int n, const int from[])
{
    int *to = *at;
    if (n && from) memcpy(to, from, (size_t)n * sizeof *to);
    *at += n;
    return to;
}

struct topo *topo_new_cart(int ndims, const int dims[], const int periods[], int rank)
{
    struct topo *t = new_topo(MPI_CART, (size_t)ndims * 5);
    if (!t) return NULL;
    int *at = t->ints;
    t->ndims = ndims;
    t->dims = put(&at, ndims, dims);
    t->periods = put(&at, ndims, NULL);
    for (int i = 0; i < ndims; i++) t->periods[i] = periods[i] != 0;
    t->coords = put(&at, ndims, NULL);
    topo_cart_coords(t, rank, t->coords);
    t->in = t->out = 2 * ndims;
    t->sources = t->destinations = put(&at, 2 * ndims, NULL);
    for (int i = 0; i < ndims; i++) {
        t->sources[2 * i] = topo_cart_step(t, i, -1);
        t->sources[2 * i + 1] = topo_cart_step(t, i, 1);
    }
    return t;
}

struct topo *topo_new_graph(int nnodes, const int index[], const int edges[], int rank)
{
    int nedges = nnodes ? index[nnodes - 1] : 0;
    struct topo *t = new_topo(MPI_GRAPH, (size_t)nnodes + (size_t)nedges);
    if (!t) return NULL;
    int *at = t->ints;
    const int *mine;
    t->nnodes = nnodes;
    t->index = put(&at, nnodes, index);
    t->edges = put(&at, nedges, edges);
    t->in = t->out = topo_graph_edges(t, rank, &mine);
    t->sources = t->destinations = t->edges + (mine - t->edges);
    return t;
}

struct topo *topo_new_dist(int in, const int sources[], const int in_weights[], int out, const int destinations[],
                           const int out_weights[], bool weighted)
{
    struct topo *t = new_topo(MPI_DIST_GRAPH, 2 * ((size_t)in + (size_t)out));
    if (!t) return NULL;
    int *at = t->ints;
    t->weighted = weighted;
    t->in = in;
    t->out = out;
    t->sources = put(&at, in, sources);
    t->destinations = put(&at, out, destinations);
    t->in_weights = put(&at, in, in_weights);
    t->out_weights = put(&at, out, out_weights);
    return t;
}

/* ---- grids ---- */

int topo_cart_rank(const struct topo *t, const int coords[])
{
    int rank = 0;
    for (int i = 0; i < t->ndims; i++) rank = rank * t->dims[i] + coords[i];
    return rank;
}

void topo_cart_coords(const struct topo *t, int rank, int coords[])
{
    for (int i = t->ndims; i-- > 0; rank /= t->dims[i]) coords[i] = rank % t->dims[i];
}

int topo_cart_step(const struct topo *t, int dim, int64_t disp)
{
    int64_t size = t->dims[dim], to = t->coords[dim] + disp;
    int stride = 1;
    if (t->periods[dim]) to = (to % size + size) % size;
    if (to < 0 || to >= size) return MPI_PROC_NULL;
    for (int i = dim + 1; i < t->ndims; i++) stride *= t->dims[i];
    return topo_cart_rank(t, t->coords) + (int)(to - t->coords[dim]) * stride;
}

/* ---- graphs ---- */

int topo_graph_edges(const struct topo *t, int node, const int **edges)
{
    int first = node ? t->index[node - 1] : 0;
    *edges = t->edges + first;
    return t->index[node] - first;
}
