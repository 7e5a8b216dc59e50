/*
 * split_type.c - splitting communicators by what processes share: memory, hardware,
 * membership in a process set (MPI-5.0 section 7.4.2).
 *
 * One allgather tells everybody everybody's vote, place and type of split, so a
 * mismatch of types is found everywhere, and the unguided split can choose its level.
 * A process that cannot have what it asked for takes part with no color, so that the
 * others do not wait for it.
 */
#include "base/err.h"
#include "comm/hwsplit.h"
#include "comm/split.h"
#include "obj/info.h"
#include "proc/proc.h"
#include "proc/pset.h"

#include <stdlib.h>
#include <string.h>

static const char type_key[] = "mpi_hw_resource_type", pset_key[] = "mpi_pset_name";

struct wish {
    struct vote vote;
    struct machine_place place; /* significant for the unguided split */
};
static_assert(sizeof(struct wish) == 64, "a wish is a cache line");

/* ---- what this process asks for ---- */

/* The members of the set know each other by the first of them. A set that is not known, or not this process's: no color. */
static int wish_pset(struct wish *w, const char *name)
{
    struct rankmap *map;
    uint32_t hash = 2166136261u ^ (uint32_t)jobs_own_name().job; /* sets belong to a job */
    int rc = pset_find(name, &map);
    if (rc) return rc == TERN_ERR_NOT_FOUND ? 0 : rc;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    if (rankmap_find(map, proc_self()->rank) >= 0) w->vote.color = (int64_t)(hash & 0x7fffffff) << 32 | rankmap_at(map, 0);
    rankmap_unref(map);
    return 0;
}

/* A number that no process on another node gives. Each job has numbers of its own for nodes, and those of several jobs
 * are told apart, wherever they are. */
static int32_t node_number(const struct comm *c)
{
    uint64_t node = proc_self()->node;
    if (rankmap_has_others(c->local) || rankmap_has_others(c->map))
        node = ((jobs_own_name().job ^ node) * 0x9e3779b97f4a7c15u >> 33) & INT32_MAX;
    return (int32_t)node;
}

static int find_place(const struct comm *c, struct machine_place *p)
{
    int rc = machine_open();
    machine_place(p);
    p->node = node_number(c);
    return rc == TERN_ERR_NOT_FOUND ? 0 : rc; /* nothing is known, which is no error */
}

static int wish_hardware(const struct comm *c, struct wish *w, int level)
{
    int rc = level == HW_NODE || level == HW_NONE ? 0 : find_place(c, &w->place);
    w->place.node = node_number(c);
    if (level != HW_NONE) w->vote.color = hw_color(&w->place, level);
    return rc;
}

static int wish_guided(const struct comm *c, struct wish *w, const struct info *info)
{
    char copies[2][MPI_MAX_INFO_VAL];
    const char *hardware = info_copy_value(info, type_key, copies[0]);
    const char *pset =
        w->vote.type == MPI_COMM_TYPE_RESOURCE_GUIDED ? info_copy_value(info, pset_key, copies[1]) : NULL;
    if (hardware && pset)
        return err_set(TERN_ERR_INFO, "argument info has both %s and %s, of which one can be used at a time", type_key, pset_key);
    if (pset) return wish_pset(w, pset);
    return wish_hardware(c, w, hardware ? hw_level(hardware) : HW_NONE);
}

static int make_wish(const struct comm *c, struct wish *w, const struct info *info)
{
    switch (w->vote.type) {
    case MPI_COMM_TYPE_SHARED: return wish_hardware(c, w, HW_NODE);
    case MPI_COMM_TYPE_HW_UNGUIDED: return find_place(c, &w->place);
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED: return wish_guided(c, w, info);
    default: return 0; /* MPI_UNDEFINED */
    }
}

/* ---- what all together ask for ---- */

static const char *type_name_of(int type)
{
    switch (type) {
    case MPI_COMM_TYPE_SHARED: return "MPI_COMM_TYPE_SHARED";
    case MPI_COMM_TYPE_HW_UNGUIDED: return "MPI_COMM_TYPE_HW_UNGUIDED";
    case MPI_COMM_TYPE_HW_GUIDED: return "MPI_COMM_TYPE_HW_GUIDED";
    case MPI_COMM_TYPE_RESOURCE_GUIDED: return "MPI_COMM_TYPE_RESOURCE_GUIDED";
    default: return "something else";
    }
}

/* All but those who say MPI_UNDEFINED want the same type. *type: which. */
static int check_types(const struct wish *w, int32_t n, int *type)
{
    for (int32_t r = 0; r < n; r++) {
        if (w[r].vote.type == MPI_UNDEFINED) continue;
        if (*type == MPI_UNDEFINED) *type = w[r].vote.type;
        if (w[r].vote.type != *type)
            return err_set(TERN_ERR_ARG, "argument split_type differs between processes: rank %d gave %s, others %s", r,
                           type_name_of(w[r].vote.type), type_name_of(*type));
    }
    return 0;
}

/* The votes of wishes, at whose start they move, for the whole group. `level`: where colors are to be found yet. */
static struct vote *votes_of(struct wish *w, int32_t n, int level)
{
    struct vote *v = (struct vote *)w;
    for (int32_t r = 0; r < n && w; r++) {
        struct wish one = w[r];
        if (level != HW_NONE && one.vote.type != MPI_UNDEFINED) one.vote.color = hw_color(&one.place, level);
        v[r] = one.vote;
    }
    return v;
}

static int tell_level(struct info *info, int level)
{
    char name[HW_NAME];
    return info && !info->predefined ? info_set_shared(info, type_key, hw_name(level, name)) : 0;
}

static int agree(struct comm *c, struct wish *ours, struct wish *theirs, struct info *info, struct comm **out)
{
    int type = MPI_UNDEFINED, level = HW_NONE;
    int32_t remote = theirs ? c->map->size : 0;
    int rc = check_types(ours, c->size, &type);
    if (!rc && theirs) rc = check_types(theirs, remote, &type);
    if (rc) return rc;
    if (type == MPI_COMM_TYPE_HW_UNGUIDED)
        level = hw_dividing_level(&ours->place, c->size, theirs ? &theirs->place : NULL, remote, sizeof *ours);
    rc = split_make(c, votes_of(ours, c->size, level), votes_of(theirs, remote, level), out);
    return !rc && *out && level != HW_NONE ? tell_level(info, level) : rc;
}

int comm_split_type(struct comm *parent, int type, int key, struct info *info, struct comm **out)
{
    struct wish mine = {.vote = split_vote(parent, SPLIT_NONE, key, type), .place.node = -1};
    void *ours, *theirs;
    memset(mine.place.at, 0xff, sizeof mine.place.at);
    *out = NULL;
    int own = make_wish(parent, &mine, info);
    if (own) mine.vote.color = SPLIT_NONE, mine.vote.type = MPI_UNDEFINED;
    int rc = split_gather(parent, &mine, sizeof mine, &ours, &theirs);
    if (!rc) rc = agree(parent, ours, theirs, info, out);
    free(theirs);
    free(ours);
    return own ? own : rc;
}
