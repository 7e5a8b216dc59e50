/* group.c - groups and their set operations. */
#include "obj/group.h"
#include "base/err.h"

#include <stdlib.h>

static uint32_t my_index;
static struct group empty;

void group_open(uint32_t index)
{
    my_index = index;
    empty.h.kind = HANDLE_GROUP;
    atomic_init(&empty.h.refs, 1);
    empty.map = rankmap_line(0, 0, 1);
    empty.rank = MPI_UNDEFINED;
    handle_define((uintptr_t)MPI_GROUP_EMPTY, &empty);
}

void group_close(void)
{
    rankmap_unref(empty.map);
    empty.map = NULL;
}

struct group *group_empty(void) { return &empty; }

MPI_Group group_handle(struct group *g) { return g == &empty ? MPI_GROUP_EMPTY : (MPI_Group)g; }

struct group *group_new(struct rankmap *map)
{
    if (!map) return NULL;
    if (map->size == 0) {
        rankmap_unref(map);
        return group_ref(&empty);
    }
    struct group *g = handle_alloc(HANDLE_GROUP, sizeof *g);
    if (!g) {
        rankmap_unref(map);
        return NULL;
    }
    g->map = map;
    g->rank = rankmap_find(map, my_index);
    if (g->rank < 0) g->rank = MPI_UNDEFINED;
    return g;
}

struct group *group_ref(struct group *g)
{
    handle_ref(&g->h);
    return g;
}

void group_unref(struct group *g)
{
    if (!handle_unref(&g->h) || g == &empty) return;
    rankmap_unref(g->map);
    handle_release(g, sizeof *g);
}

/* A group from `n` indices, which are freed. */
static int from_list(int32_t n, uint32_t *index, struct group **out)
{
    struct group *g = index ? group_new(rankmap_list(n, index)) : NULL;
    free(index);
    if (!g) return err_set(TERN_ERR_NOMEM, "no memory for a group of %d processes", n);
    *out = g;
    return 0;
}

static uint32_t *list_of(size_t n) { return malloc((n + 1) * sizeof(uint32_t)); }

int group_incl(const struct group *g, int n, const int ranks[], struct group **out)
{
    uint32_t *list = list_of((size_t)n);
    for (int i = 0; i < n && list; i++) list[i] = rankmap_at(g->map, ranks[i]);
    return from_list(n, list, out);
}

int group_excl(const struct group *g, int n, const int ranks[], struct group **out)
{
    int32_t size = g->map->size, k = 0;
    uint32_t *list = list_of((size_t)size);
    bool *drop = calloc((size_t)size + 1, 1);
    if (!drop) {
        free(list);
        list = NULL;
    }
    for (int i = 0; i < n && list; i++) drop[ranks[i]] = true;
    for (int32_t r = 0; r < size && list; r++)
        if (!drop[r]) list[k++] = rankmap_at(g->map, r);
    free(drop);
    return from_list(k, list, out);
}

/* Members of a that are (keep) or are not (!keep) in b, in a's order, behind `list` of n entries. */
static int32_t filter(const struct group *a, const struct group *b, bool keep, uint32_t *list, int32_t n)
{
    for (int32_t r = 0; r < a->map->size; r++) {
        uint32_t index = rankmap_at(a->map, r);
        if ((rankmap_find(b->map, index) >= 0) == keep) list[n++] = index;
    }
    return n;
}

int group_union(const struct group *a, const struct group *b, struct group **out)
{
    int32_t n = a->map->size;
    uint32_t *list = list_of((size_t)n + (size_t)b->map->size);
    if (list) {
        for (int32_t r = 0; r < n; r++) list[r] = rankmap_at(a->map, r);
        n = filter(b, a, false, list, n);
    }
    return from_list(n, list, out);
}

int group_intersection(const struct group *a, const struct group *b, struct group **out)
{
    uint32_t *list = list_of((size_t)a->map->size);
    return from_list(list ? filter(a, b, true, list, 0) : 0, list, out);
}

int group_difference(const struct group *a, const struct group *b, struct group **out)
{
    uint32_t *list = list_of((size_t)a->map->size);
    return from_list(list ? filter(a, b, false, list, 0) : 0, list, out);
}

int group_compare(const struct group *a, const struct group *b)
{
    if (rankmap_equal(a->map, b->map)) return MPI_IDENT;
    if (a->map->size != b->map->size) return MPI_UNEQUAL;
    for (int32_t r = 0; r < a->map->size; r++)
        if (rankmap_find(b->map, rankmap_at(a->map, r)) < 0) return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

int group_translate(const struct group *a, int n, const int from[], const struct group *b, int to[])
{
    for (int i = 0; i < n; i++) {
        if (from[i] == MPI_PROC_NULL) {
            to[i] = MPI_PROC_NULL;
            continue;
        }
        int32_t r = rankmap_find(b->map, rankmap_at(a->map, from[i]));
        to[i] = r < 0 ? MPI_UNDEFINED : r;
    }
    return 0;
}
