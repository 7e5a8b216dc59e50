/* create.c - communicators with a topology; see create.h. */
#include "topo/create.h"
#include "base/err.h"
#include "coll/coll.h"
#include "comm/create.h"
#include "comm/talk.h"
#include "topo/order.h"
#include "topo/route.h"

#include <stdlib.h>

/* The processes of the parent's ranks order[0] to order[n - 1]; of its first n where order is NULL. */
static struct rankmap *choose_ranks(const struct comm *parent, int n, const int32_t *order)
{
    if (!order && n == parent->size) return rankmap_ref(parent->local);
    uint32_t *index = malloc((size_t)(n ? n : 1) * sizeof *index);
    for (int r = 0; r < n && index; r++) index[r] = comm_index(parent, order ? order[r] : r);
    struct rankmap *map = index ? rankmap_list(n, index) : NULL;
    free(index);
    return map;
}

/* A communicator of those; NULL for the others. */
static int make_comm(struct comm *parent, int n, const int32_t *order, struct comm **out)
{
    uint64_t ctx = parent->rank == 0 ? comm_fresh_ctx_of(parent) : 0;
    int rc = coll_bcast(parent, &ctx, sizeof ctx, type_of(MPI_BYTE), 0);
    *out = NULL;
    if (rc) return rc;
    struct rankmap *map = choose_ranks(parent, n, order);
    if (!map) return err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", n);
    if (rankmap_find(map, comm_index(parent, parent->rank)) >= 0) return comm_new(ctx, map, NULL, parent, out);
    rankmap_unref(map);
    return 0;
}

/* The same, in the order that suits the wish if reordering is allowed. */
static int make_ordered(struct comm *parent, const struct order_wish *w, bool reorder, struct comm **out)
{
    int32_t *order = NULL;
    int rc = reorder ? order_find(parent, w, &order) : 0;
    if (!rc) rc = make_comm(parent, w->n, order, out);
    free(order);
    return rc;
}

/* The end of making a communicator with a topology, which is taken over. */
static int attach(struct comm **c, struct topo *t)
{
    if (t) (*c)->topo = t;
    else comm_unref(*c), *c = NULL;
    return t ? 0 : TERN_ERR_NOMEM;
}

/* ---- grids ---- */

static int cells(int ndims, const int dims[])
{
    int n = 1;
    for (int i = 0; i < ndims; i++) n *= dims[i];
    return n;
}

int topo_cart_create(struct comm *parent, int ndims, const int dims[], const int periods[], bool reorder,
                     struct comm **out)
{
    struct order_wish w = {.n = cells(ndims, dims), .grid = {ndims, dims, periods}};
    int rc = make_ordered(parent, &w, reorder, out);
    return rc || !*out ? rc : attach(out, topo_new_cart(ndims, dims, periods, (*out)->rank));
}

int topo_cart_map(struct comm *c, int ndims, const int dims[], const int periods[], int *newrank)
{
    struct order_wish w = {.n = cells(ndims, dims), .grid = {ndims, dims, periods}};
    return order_map(c, &w, newrank);
}

/* The dimensions that remain, and their cells in the old grid that have this process in them. */
struct cut {
    int ndims, n;
    int *dims, *periods, *coords, *where; /* coords: of a cell in the old grid; where: which old dimension */
    int32_t *ranks;
};

static int open_cut(struct cut *s, const struct topo *t, const int remain[])
{
    *s = (struct cut){.n = 1, .dims = malloc((4 * (size_t)t->ndims + 1) * sizeof *s->dims)};
    if (!s->dims) return err_set(TERN_ERR_NOMEM, "no memory to cut a grid of %d dimensions", t->ndims);
    s->periods = s->dims + t->ndims;
    s->coords = s->periods + t->ndims;
    s->where = s->coords + t->ndims;
    for (int i = 0; i < t->ndims; i++) {
        s->coords[i] = t->coords[i];
        if (!remain[i]) continue;
        s->dims[s->ndims] = t->dims[i];
        s->periods[s->ndims] = t->periods[i];
        s->where[s->ndims++] = i;
        s->n *= t->dims[i];
    }
    s->ranks = malloc((size_t)s->n * sizeof *s->ranks);
    return s->ranks ? 0 : err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", s->n);
}

static void list_ranks(struct cut *s, const struct topo *t)
{
    for (int cell = 0; cell < s->n; cell++) {
        int rest = cell;
        for (int i = s->ndims; i-- > 0; rest /= s->dims[i]) s->coords[s->where[i]] = rest % s->dims[i];
        s->ranks[cell] = topo_cart_rank(t, s->coords);
    }
}

int topo_cart_sub(struct comm *cart, const int remain[], struct comm **out)
{
    const struct topo *t = topo_of(cart);
    struct cut s;
    int rc = open_cut(&s, t, remain);
    if (!rc) {
        list_ranks(&s, t);
        struct rankmap *map = choose_ranks(cart, s.n, s.ranks);
        struct group *g = map ? group_new(map) : NULL;
        rc = g ? comm_create_group(cart, g, TALK_TAGS, out) : err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", s.n);
        if (g) group_unref(g);
    }
    if (!rc) rc = attach(out, topo_new_cart(s.ndims, s.dims, s.periods, (*out)->rank));
    free(s.ranks);
    free(s.dims);
    return rc;
}

/* ---- graphs ---- */

int topo_graph_create(struct comm *parent, int nnodes, const int index[], const int edges[], bool reorder,
                      struct comm **out)
{
    struct order_wish w = {.n = nnodes, .index = index, .edges = edges};
    int rc = make_ordered(parent, &w, reorder && nnodes, out);
    return rc || !*out ? rc : attach(out, topo_new_graph(nnodes, index, edges, (*out)->rank));
}

int topo_graph_map(struct comm *c, int nnodes, const int index[], const int edges[], int *newrank)
{
    struct order_wish w = {.n = nnodes, .index = index, .edges = edges};
    return order_map(c, &w, newrank);
}

/* ---- distributed graphs: sides[0] goes out, sides[1] comes in ---- */

static int no_edges_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory for the edges of a graph"); }

/* The two sides of this process, in one allocation that is sides[0].ranks; NULL: no memory. */
static int *split_sides(const struct route_edge *e, int64_t n, struct topo_side sides[2])
{
    int *list = malloc((size_t)(n ? 2 * n : 1) * sizeof *list), count[2] = {0, 0}, next[2];
    if (!list) return NULL;
    for (int64_t i = 0; i < n; i++) count[e[i].incoming]++;
    next[0] = 0;
    next[1] = count[0];
    for (int64_t i = 0; i < n; i++) {
        int at = next[e[i].incoming]++;
        list[at] = e[i].other;
        list[n + at] = e[i].weight;
    }
    sides[0] = (struct topo_side){count[0], list, list + n};
    sides[1] = (struct topo_side){count[1], list + count[0], list + n + count[0]};
    return list;
}

/* The edges that this process told are those of the vertex that it was: they go to the process that has that rank now, and
 * others come here. Edges of one side keep their order. *list_p: what `sides` points to then, to be freed. */
static int move_sides(struct comm *parent, const int32_t *order, struct topo_side sides[2], int **list_p)
{
    int64_t n = (int64_t)sides[0].n + sides[1].n, at = 0;
    struct route_edge *e = malloc(((size_t)n + 1) * sizeof *e);
    if (!e) return no_edges_memory();
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < sides[side].n; i++) {
            int weight = sides[side].weights ? sides[side].weights[i] : 1;
            e[at++] = (struct route_edge){order[parent->rank], side, sides[side].ranks[i], weight, parent->rank, i};
        }
    int rc = route_edges(parent, &e, &n);
    if (!rc) *list_p = split_sides(e, n, sides);
    free(e);
    return rc ? rc : *list_p ? 0 : no_edges_memory();
}

static int create_adjacent(struct comm *parent, struct topo_side sides[2], bool weighted, int32_t *order, struct comm **out)
{
    int *list = NULL;
    int rc = order ? move_sides(parent, order, sides, &list) : 0;
    if (!rc) rc = make_comm(parent, parent->size, order, out);
    if (!rc)
        rc = attach(out, topo_new_dist(sides[1].n, sides[1].ranks, sides[1].weights, sides[0].n, sides[0].ranks, sides[0].weights,
                                       weighted));
    free(list);
    return rc;
}

int topo_dist_create_adjacent(struct comm *parent, const struct topo_side *in, const struct topo_side *out_side,
                              bool weighted, bool reorder, struct comm **out)
{
    struct topo_side sides[2] = {*out_side, *in};
    struct order_wish w = {.n = parent->size, .out = out_side};
    int32_t *order = NULL;
    int rc = reorder ? order_find(parent, &w, &order) : 0;
    if (!rc) rc = create_adjacent(parent, sides, weighted, order, out);
    free(order);
    return rc;
}

/* Each edge twice: for the process where it starts, and for the one where it ends. *n: how many that are. */
static struct route_edge *list_edges(int me, int n, const int sources[], const int degrees[], const struct topo_side *to,
                                     int64_t *n_p)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++) total += degrees[i];
    struct route_edge *list = malloc((size_t)(total ? 2 * total : 1) * sizeof *list), *e = list;
    if (!list) return NULL;
    for (int i = 0, place = 0; i < n; i++)
        for (int d = 0; d < degrees[i]; d++, place++) {
            int weight = to->weights ? to->weights[place] : 1;
            *e++ = (struct route_edge){sources[i], 0, to->ranks[place], weight, me, place};
            *e++ = (struct route_edge){to->ranks[place], 1, sources[i], weight, me, place};
        }
    *n_p = 2 * total;
    return list;
}

int topo_dist_create(struct comm *parent, int n, const int sources[], const int degrees[], const struct topo_side *to,
                     bool weighted, bool reorder, struct comm **out)
{
    int64_t count = 0;
    struct topo_side sides[2];
    struct route_edge *edges = list_edges(parent->rank, n, sources, degrees, to, &count);
    int rc = edges ? route_edges(parent, &edges, &count) : TERN_ERR_NOMEM;
    int *list = rc ? NULL : split_sides(edges, count, sides);
    free(edges);
    if (!list) return rc && rc != TERN_ERR_NOMEM ? rc : no_edges_memory();
    rc = topo_dist_create_adjacent(parent, &sides[1], &sides[0], weighted, reorder, out);
    free(list);
    return rc;
}
