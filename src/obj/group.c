/* group.c - groups and their set operations. */
#include "obj/group.h"
#include "base/err.h"
#include "obj/rankset.h"

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

struct group *group_new(struct rankmap *map) { return group_new_in(NULL, map); }

struct group *group_new_in(struct session *s, struct rankmap *map)
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
    g->session = session_ref(s);
    g->rank = rankmap_find_once(map, my_index);
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
    session_unref(g->session);
    handle_release(g, sizeof *g);
}

/* The group of a map that was made from g's, NULL if memory was out. */
static int give(const struct group *of, struct rankmap *map, struct group **out)
{
    struct group *g = group_new_in(of->session, map);
    if (!g) return err_set(TERN_ERR_NOMEM, "no memory for a group");
    *out = g;
    return 0;
}

int group_pick(const struct group *g, const struct rankmap *ranks, struct group **out)
{
    return give(g, rankset_pick(g->map, ranks), out);
}

int group_drop(const struct group *g, const struct rankmap *ranks, struct group **out)
{
    return give(g, rankset_drop(g->map, ranks), out);
}

int group_incl(const struct group *g, int n, const int ranks[], struct group **out)
{
    struct rankmap *list = rankmap_list(n, (const uint32_t *)ranks);
    int rc = give(g, list ? rankset_pick(g->map, list) : NULL, out);
    rankmap_unref(list);
    return rc;
}

int group_union(const struct group *a, const struct group *b, struct group **out)
{
    return give(a->session ? a : b, rankset_union(a->map, b->map), out);
}

int group_intersection(const struct group *a, const struct group *b, struct group **out)
{
    return give(a, rankset_common(a->map, b->map), out);
}

int group_difference(const struct group *a, const struct group *b, struct group **out)
{
    return give(a, rankset_minus(a->map, b->map), out);
}

int group_compare(const struct group *a, const struct group *b)
{
    if (rankmap_equal(a->map, b->map)) return MPI_IDENT;
    return a->map->size == b->map->size && group_outside(a, b) < 0 ? MPI_SIMILAR : MPI_UNEQUAL;
}

int32_t group_outside(const struct group *a, const struct group *b) { return rankset_outside(a->map, b->map); }

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
