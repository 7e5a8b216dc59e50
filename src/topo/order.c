/* order.c - see order.h. */
#include "topo/order.h"
#include "base/err.h"
#include "coll/coll.h"
#include "proc/jobs.h"

#include <stdlib.h>
#include <string.h>

/* ---- where the processes are ---- */

static int no_memory(int32_t n) { return err_set(TERN_ERR_NOMEM, "no memory to reorder %d ranks", n); }

/* NULL: not asked yet. A thread in a local call may look while another one's collective call asks. */
static const struct machine_place *places_of(const struct comm *c)
{
    handle_state_lock();
    const struct machine_place *all = c->places;
    handle_state_unlock();
    return all;
}

static void set_places(struct comm *c, struct machine_place *all)
{
    handle_state_lock();
    c->places = all;
    handle_state_unlock();
}

/* Collective at the first time. */
static int ask_places(struct comm *c)
{
    struct machine_place mine, *all;
    if (places_of(c)) return 0;
    all = malloc((size_t)c->size * sizeof mine);
    if (!all) return no_memory(c->size);
    machine_place(&mine);
    int rc = coll_allgather(c, &mine, sizeof mine, type_of(MPI_BYTE), all, sizeof mine, type_of(MPI_BYTE));
    if (rc) free(all);
    else set_places(c, all);
    return rc;
}

/* What is known without asking, malloc'ed. */
static struct machine_place *known_places(const struct comm *c)
{
    struct machine_place *p = malloc((size_t)c->size * sizeof *p);
    const struct machine_place *all = places_of(c);
    if (!p) return NULL;
    if (all) {
        memcpy(p, all, (size_t)c->size * sizeof *p);
        return p;
    }
    memset(p, 0xff, (size_t)c->size * sizeof *p); /* -1: unknown */
    for (int32_t r = 0; r < c->size; r++) p[r].node = (int32_t)jobs_node_of(comm_index(c, r));
    return p;
}

/* ---- the graph of a wish ---- */

/* A grid's edges upwards along each dimension; returns how many. */
static int64_t grid_edges(const struct reorder_grid *g, int32_t n, struct reorder_edge *e)
{
    int64_t count = 0;
    for (int32_t cell = 0; cell < n; cell++) {
        int32_t stride = 1, rest = cell;
        for (int i = g->ndims; i-- > 0; rest /= g->dims[i], stride *= g->dims[i]) {
            int32_t at = rest % g->dims[i];
            if (at + 1 < g->dims[i]) e[count++] = (struct reorder_edge){cell, cell + stride, 1};
            else if (g->periods[i]) e[count++] = (struct reorder_edge){cell, cell - at * stride, 1};
        }
    }
    return count;
}

static int64_t list_edges(const struct order_wish *w, struct reorder_edge *e)
{
    int64_t count = 0;
    for (int32_t v = 0; v < w->n; v++)
        for (int i = v ? w->index[v - 1] : 0; i < w->index[v]; i++) e[count++] = (struct reorder_edge){v, w->edges[i], 1};
    return count;
}

/* Of a grid or a graph, which is known here. Malloc'ed. */
static struct reorder_edge *wished_edges(const struct order_wish *w, int64_t *count)
{
    int64_t most = w->index ? w->index[w->n - 1] : (int64_t)w->n * w->grid.ndims;
    if (w->index && most > REORDER_EDGES / 2) most = 0;
    struct reorder_edge *e = malloc(((size_t)most + 1) * sizeof *e);
    *count = 0;
    if (e && most) *count = w->index ? list_edges(w, e) : grid_edges(&w->grid, w->n, e);
    return e;
}

static int count_edges(struct comm *c, int64_t own, int64_t *total)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_ALLREDUCE, .sendbuf = &own, .recvbuf = total, .rcount = 1,
                                           .rtype = type_of(MPI_INT64_T), .op = op_of(MPI_SUM)});
}

/* What each process has comes to rank 0, in the order of ranks; own: bytes here. `room` has two numbers for each rank. */
static int gather_bytes(struct comm *c, const void *mine, int64_t own, void *all, int64_t *room)
{
    struct type *byte = type_of(MPI_BYTE);
    int64_t *bytes = room, *at = room + c->size;
    struct coll_call a = {.kind = COLL_GATHER, .sendbuf = &own, .recvbuf = bytes, .scount = sizeof own, .rcount = sizeof own,
                          .stype = byte, .rtype = byte};
    int rc = coll_run(c, &a);
    if (rc) return rc;
    at[0] = 0;
    for (int32_t r = 1; c->rank == 0 && r < c->size; r++) at[r] = at[r - 1] + bytes[r - 1];
    return coll_run(c, &(struct coll_call){.kind = COLL_GATHERV, .sendbuf = mine, .recvbuf = all, .scount = own, .stype = byte,
                                           .rtype = byte, .rcounts = bytes, .rdispls = at});
}

/* Collective. Of a distributed graph: all outgoing edges come to rank 0, unless they are too many (then none). Malloc'ed
 * at rank 0. */
static int gather_edges(struct comm *c, const struct topo_side *out, struct reorder_edge **all_p, int64_t *count)
{
    int rc = count_edges(c, out->n, count);
    if (!rc && *count > REORDER_EDGES / 2) *count = 0;
    if (rc || !*count) return rc;
    struct reorder_edge *mine = malloc(((size_t)out->n + 1) * sizeof *mine);
    int64_t *room = malloc(2 * (size_t)c->size * sizeof *room);
    if (c->rank == 0) *all_p = malloc((size_t)*count * sizeof **all_p);
    for (int i = 0; i < out->n && mine; i++)
        mine[i] = (struct reorder_edge){c->rank, out->ranks[i], out->weights ? out->weights[i] : 1};
    if (!mine || !room || (c->rank == 0 && !*all_p)) rc = no_memory(c->size);
    else rc = gather_bytes(c, mine, out->n * (int64_t)sizeof *mine, *all_p, room);
    free(room);
    free(mine);
    return rc;
}

/* ---- computing ---- */

/* True: `order` costs less than the ranks as they are. */
static bool compute(const struct order_wish *w, const struct machine_place *place, int64_t count, const struct reorder_edge *e,
                    int32_t order[])
{
    struct reorder_graph g;
    struct reorder_result result;
    if (!e || !count || reorder_graph_open(&g, w->n, count, e)) return false;
    int rc = reorder_find(&g, &w->grid, place, order, &result);
    reorder_graph_close(&g);
    return !rc && result.after < result.before;
}

int order_find(struct comm *c, const struct order_wish *w, int32_t **order_p)
{
    int32_t *order = malloc(((size_t)w->n + 1) * sizeof *order); /* the last: is there an order? */
    struct reorder_edge *edges = NULL;
    int64_t count = 0;
    *order_p = NULL;
    int rc = order ? ask_places(c) : no_memory(w->n);
    if (!rc && w->out) rc = gather_edges(c, w->out, &edges, &count);
    if (!rc && c->rank == 0) {
        if (!w->out) edges = wished_edges(w, &count);
        order[w->n] = compute(w, c->places, count, edges, order);
    }
    free(edges);
    if (!rc) rc = coll_bcast(c, &order[w->n], 1, type_of(MPI_INT32_T), 0);
    if (!rc && order[w->n]) rc = coll_bcast(c, order, w->n, type_of(MPI_INT32_T), 0);
    if (!rc && order[w->n]) *order_p = order;
    else free(order);
    return rc;
}

int order_map(struct comm *c, const struct order_wish *w, int *newrank)
{
    int32_t *order = malloc(((size_t)w->n + 1) * sizeof *order);
    struct machine_place *place = known_places(c);
    int64_t count = 0;
    struct reorder_edge *edges = w->n ? wished_edges(w, &count) : NULL;
    *newrank = c->rank < w->n ? c->rank : MPI_UNDEFINED;
    if (order && place && compute(w, place, count, edges, order))
        for (int32_t v = 0; v < w->n; v++)
            if (order[v] == c->rank) *newrank = v;
    free(edges);
    free(place);
    free(order);
    return order && place ? 0 : no_memory(w->n);
}
