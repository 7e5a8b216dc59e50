/*
 * group.c - entry points: groups (MPI-5.0 section 7.3).
 */
#include "mpi/report.h"
#include "obj/rankset.h"

/* `of`: the group that the new one is made from. */
static int give(const struct group *of, const char *call, int rc, struct group *made, MPI_Group *newgroup)
{
    if (rc) return report_code(of, call, rc);
    *newgroup = group_handle(made);
    return MPI_SUCCESS;
}

MPI_ALIAS(Group_size);
int PMPI_Group_size(MPI_Group group, int *size)
{
    struct group *g = group_of(group);
    if (!g) return bad_group(NULL, "MPI_Group_size", group, "group");
    if (!size) return bad_null(g, "MPI_Group_size", "size");
    *size = g->map->size;
    return MPI_SUCCESS;
}

MPI_ALIAS(Group_rank);
int PMPI_Group_rank(MPI_Group group, int *rank)
{
    struct group *g = group_of(group);
    if (!g) return bad_group(NULL, "MPI_Group_rank", group, "group");
    if (!rank) return bad_null(g, "MPI_Group_rank", "rank");
    *rank = g->rank;
    return MPI_SUCCESS;
}

MPI_ALIAS(Group_free);
int PMPI_Group_free(MPI_Group *group)
{
    if (!group) return bad_null(NULL, "MPI_Group_free", "group");
    struct group *g = group_of(*group);
    if (!g) return bad_group(NULL, "MPI_Group_free", *group, "group");
    group_unref(g);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

/* ---- two groups ---- */

/* Both groups of a call; false when one of them is none, which is reported. */
static bool two_groups(const char *call, MPI_Group group1, MPI_Group group2, struct group *g[2], int *rc)
{
    g[0] = group_of(group1);
    g[1] = group_of(group2);
    if (!g[0]) *rc = bad_group(NULL, call, group1, "group1");
    else if (!g[1]) *rc = bad_group(NULL, call, group2, "group2");
    return g[0] && g[1];
}

MPI_ALIAS(Group_compare);
int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
    struct group *g[2];
    int rc;
    if (!two_groups("MPI_Group_compare", group1, group2, g, &rc)) return rc;
    if (!result) return bad_null(g[0], "MPI_Group_compare", "result");
    *result = group_compare(g[0], g[1]);
    return MPI_SUCCESS;
}

typedef int set_fn(const struct group *, const struct group *, struct group **);

static int combine(const char *call, set_fn *fn, MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    struct group *g[2], *made = NULL;
    int rc;
    no_group_yet(newgroup);
    if (!two_groups(call, group1, group2, g, &rc)) return rc;
    if (!newgroup) return bad_null(g[0], call, "newgroup");
    rc = fn(g[0], g[1], &made);
    return give(g[0], call, rc, made, newgroup);
}

MPI_ALIAS(Group_union);
int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_union", group_union, group1, group2, newgroup);
}

MPI_ALIAS(Group_intersection);
int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_intersection", group_intersection, group1, group2, newgroup);
}

MPI_ALIAS(Group_difference);
int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_difference", group_difference, group1, group2, newgroup);
}

MPI_ALIAS(Group_translate_ranks);
int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])
{
    const char *call = "MPI_Group_translate_ranks";
    struct group *g[2];
    int rc;
    if (!two_groups(call, group1, group2, g, &rc)) return rc;
    if (n < 0) return report(g[0], call, MPI_ERR_ARG, "argument n is %d, which is negative", n);
    if (n && (!ranks1 || !ranks2)) return bad_null(g[0], call, ranks1 ? "ranks2" : "ranks1");
    for (int i = 0; i < n; i++)
        if (ranks1[i] != MPI_PROC_NULL && (ranks1[i] < 0 || ranks1[i] >= g[0]->map->size))
            return report(g[0], call, MPI_ERR_RANK, "argument ranks1[%d] is %d, but the group has ranks 0 to %d", i, ranks1[i],
                          g[0]->map->size - 1);
    return report_if(g[0], call, group_translate(g[0], n, ranks1, g[1], ranks2));
}

/* ---- members by rank ---- */

typedef int pick_fn(const struct group *, const struct rankmap *ranks, struct group **);

/* The end of the four functions below. `ranks` is released; NULL: memory is out. No rank may be there twice. */
static int pick(const char *call, pick_fn *fn, const struct group *g, struct rankmap *ranks, const char *argument, MPI_Group *newgroup)
{
    struct group *made = NULL;
    int32_t twice = ranks ? rankset_twice(ranks, g->map->size) : -2;
    int rc = twice == -2 ? err_set(TERN_ERR_NOMEM, "no memory to look at the ranks") : 0;
    if (twice >= 0) {
        rankmap_unref(ranks);
        return report(g, call, MPI_ERR_RANK, "argument %s names rank %d twice", argument, twice);
    }
    if (!rc) rc = fn(g, ranks, &made);
    rankmap_unref(ranks);
    return give(g, call, rc, made, newgroup);
}

static int pick_ranks(const char *call, pick_fn *fn, MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    struct group *g = group_of(group);
    no_group_yet(newgroup);
    if (!g) return bad_group(NULL, call, group, "group");
    if (n < 0) return report(g, call, MPI_ERR_ARG, "argument n is %d, which is negative", n);
    if ((n && !ranks) || !newgroup) return bad_null(g, call, newgroup ? "ranks" : "newgroup");
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= g->map->size)
            return report(g, call, MPI_ERR_RANK, "argument ranks[%d] is %d, but the group has ranks 0 to %d", i, ranks[i],
                          g->map->size - 1);
    return pick(call, fn, g, rankmap_list(n, (const uint32_t *)ranks), "ranks", newgroup);
}

MPI_ALIAS(Group_incl);
int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    return pick_ranks("MPI_Group_incl", group_pick, group, n, ranks, newgroup);
}

MPI_ALIAS(Group_excl);
int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    return pick_ranks("MPI_Group_excl", group_drop, group, n, ranks, newgroup);
}

/* ---- members by ranges ---- */

static int check_range(const char *call, const struct group *g, int at, const int range[3])
{
    int first = range[0], last = range[1], stride = range[2], size = g->map->size;
    if (stride == 0) return report(g, call, MPI_ERR_ARG, "argument ranges[%d] has stride 0", at);
    if (first < 0 || first >= size || last < 0 || last >= size)
        return report(g, call, MPI_ERR_RANK, "argument ranges[%d] is (%d, %d, %d), but the group has ranks 0 to %d", at, first,
                      last, stride, size - 1);
    if ((last > first && stride < 0) || (last < first && stride > 0))
        return report(g, call, MPI_ERR_ARG, "argument ranges[%d] is (%d, %d, %d): the stride leads away from the last rank", at,
                      first, last, stride);
    return MPI_SUCCESS;
}

/* The ranks of checked ranges, up to where there are more than the group has: then one of them is there twice. */
static struct rankmap *ranks_of(const struct group *g, int n, int ranges[][3])
{
    struct run_list l = {0};
    for (int i = 0; i < n && l.size <= g->map->size; i++) {
        int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        runs_add(&l, (uint32_t)first, (int32_t)stride, (int32_t)((last - first) / stride + 1));
    }
    return rankmap_runs(&l);
}

static int pick_ranges(const char *call, pick_fn *fn, MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    struct group *g = group_of(group);
    no_group_yet(newgroup);
    if (!g) return bad_group(NULL, call, group, "group");
    if (n < 0) return report(g, call, MPI_ERR_ARG, "argument n is %d, which is negative", n);
    if ((n && !ranges) || !newgroup) return bad_null(g, call, newgroup ? "ranges" : "newgroup");
    for (int i = 0; i < n; i++) {
        int rc = check_range(call, g, i, ranges[i]);
        if (rc) return rc;
    }
    return pick(call, fn, g, ranks_of(g, n, ranges), "ranges", newgroup);
}

MPI_ALIAS(Group_range_incl);
int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return pick_ranges("MPI_Group_range_incl", group_pick, group, n, ranges, newgroup);
}

MPI_ALIAS(Group_range_excl);
int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return pick_ranges("MPI_Group_range_excl", group_drop, group, n, ranges, newgroup);
}
