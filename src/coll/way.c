/* way.c - see way.h. */
#include "coll/way.h"

#include <string.h>

enum {
    REDUCTIONS = 1u << COLL_REDUCE | 1u << COLL_ALLREDUCE | 1u << COLL_REDUCE_SCATTER_BLOCK,
    PREFIXES = 1u << COLL_SCAN | 1u << COLL_EXSCAN,
    MOVES = 1u << COLL_BCAST | 1u << COLL_SCATTER | 1u << COLL_GATHER | 1u << COLL_ALLGATHER | 1u << COLL_ALLGATHERV | 1u << COLL_ALLTOALL,
    WIDE = MOVES | REDUCTIONS | PREFIXES | 1u << COLL_REDUCE_SCATTER,
    ALL = (1u << COLL_NEIGHBOR_ALLGATHER) - 1 /* but neighbourhoods */
};

const struct coll_way_info coll_ways[COLL_WAYS] = {
    [COLL_WAY_NONE] = {"", 0, 0, ""},
    [COLL_WAY_SLOTS] = {"slots", ALL, ALL, "through slots in shared memory, up to TERN_COLL_NODE bytes of a rank"},
    [COLL_WAY_WIDE] = {"wide", WIDE, 0, "through wide slots, slice by slice (TERN_COLL_WIDE); blocking calls"},
    [COLL_WAY_ONCE] = {"copy_once", MOVES | REDUCTIONS, MOVES, "from memory to memory (TERN_COLL_DIRECT)"},
    [COLL_WAY_MESSAGES] = {"messages", ALL, ALL, "by the algorithm that is chosen for messages"},
};

enum coll_way coll_way_find(enum coll_kind kind, enum coll_calls calls, const char *name)
{
    for (int w = COLL_WAY_SLOTS; w < COLL_WAYS; w++)
        if (!strcmp(coll_ways[w].name, name) && coll_way_is_of((enum coll_way)w, kind, calls)) return (enum coll_way)w;
    return COLL_WAY_NONE;
}
