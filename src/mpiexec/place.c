/*
 * place.c - mapping and binding by hwloc, in two steps: mapping gives each rank a start (a mapping unit and its turn
 * within the unit), binding turns the start into a set of cpus. More ranks than places start over at the first one.
 */
#include "mpiexec/place.h"
#include "mpiexec/cpulist.h"
#include "mpiexec/placeopt.h"
#include "mpiexec/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool place_wanted(const struct place_spec *p)
{
    return p->bind != UNIT_NONE || p->user || p->cpu_set || p->report || p->width ||
           (p->map != UNIT_NONE && p->map != UNIT_NODE && !p->bind_said);
}

/* Leaves the cores that --cpu-set names. Their numbers are those of all the cores, so this comes before our own mask.
 */
static int restrict_to_set(hwloc_topology_t t, const struct place_spec *p, hwloc_bitmap_t mask)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    bool good = cpulist_all(t, p->hwthreads, p->cpu_set, set) && hwloc_bitmap_isincluded(set, mask);
    if (good) hwloc_bitmap_copy(mask, set);
    hwloc_bitmap_free(set);
    if (good) return 0;
    say("--cpu-set %s has a %s that is not there, or that this process may not use", p->cpu_set,
        p->hwthreads ? "hardware thread" : "core");
    return EXIT_USAGE;
}

int place_topology(const struct place_spec *p, hwloc_topology_t *t)
{
    int rc = 0;
    if (hwloc_topology_init(t) == 0 && hwloc_topology_load(*t) == 0) {
        /* The loaded topology has the cpus our cgroup allows; our own mask may be narrower still. */
        hwloc_bitmap_t mask = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(*t));
        if (mask && hwloc_topology_is_thissystem(*t)) hwloc_get_cpubind(*t, mask, HWLOC_CPUBIND_PROCESS);
        if (mask && p->cpu_set && !p->cpu_each) rc = restrict_to_set(*t, p, mask);
        if (mask && !rc) hwloc_topology_restrict(*t, mask, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS); /* a socket that has none is no place */
        hwloc_bitmap_free(mask);
        return rc;
    }
    say("cannot find out the topology of this machine; without --bind-to and --map-by it is not needed");
    return EXIT_RESOURCE;
}

int place_set_cpus(hwloc_topology_t t, const struct place_spec *p)
{
    if (!p->cpu_set) return 0;
    hwloc_bitmap_t set = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(t)); /* what place_topology has left */
    bool known = set && (!p->cpu_each || cpulist_all(t, p->hwthreads, p->cpu_set, set));
    int n = known ? hwloc_bitmap_weight(set) : 0;
    hwloc_bitmap_free(set);
    return n;
}

static hwloc_obj_type_t type_of(enum unit u)
{
    switch (u) {
    case UNIT_HWTHREAD:
        return HWLOC_OBJ_PU;
    case UNIT_L1:
        return HWLOC_OBJ_L1CACHE;
    case UNIT_L2:
        return HWLOC_OBJ_L2CACHE;
    case UNIT_L3:
        return HWLOC_OBJ_L3CACHE;
    case UNIT_NUMA:
        return HWLOC_OBJ_NUMANODE;
    case UNIT_SOCKET:
        return HWLOC_OBJ_PACKAGE;
    case UNIT_NODE:
        return HWLOC_OBJ_MACHINE;
    default:
        return HWLOC_OBJ_CORE;
    }
}

/* Number of units of a kind; a machine that does not know the kind (no L3, no NUMA) counts as one unit of it. */
static int unit_count(hwloc_topology_t t, enum unit u)
{
    int n = hwloc_get_nbobjs_by_type(t, type_of(u));
    return n > 0 ? n : 1;
}

static enum unit grain_of(const struct place_spec *p) { return p->hwthreads ? UNIT_HWTHREAD : UNIT_CORE; }

int place_count_units(struct place_spec *p, int *ppn)
{
    hwloc_topology_t t;
    bool per_host = p->per_unit && p->map != UNIT_NODE && !*ppn;
    if (!per_host && !p->span && !p->order_span && !p->refuse_more) return 0;
    int rc = place_topology(p, &t);
    if (rc) return rc;
    p->map_units = unit_count(t, p->map == UNIT_NONE ? grain_of(p) : p->map); /* a slot is a core */
    p->order_units = unit_count(t, p->order_unit);
    p->cores = unit_count(t, grain_of(p));
    int64_t n = (int64_t)p->per_unit * p->map_units;
    if (per_host) *ppn = n > SLOTS_MAX ? SLOTS_MAX : (int)n;
    hwloc_topology_destroy(t);
    return 0;
}

static hwloc_const_cpuset_t unit_cpus(hwloc_topology_t t, enum unit u, int i)
{
    hwloc_obj_t o = hwloc_get_obj_by_type(t, type_of(u), (unsigned)i);
    return o ? o->cpuset : hwloc_topology_get_topology_cpuset(t);
}

/* The one unit of a kind that holds the whole set; -1 when there is none. */
static int unit_holding(hwloc_topology_t t, enum unit u, hwloc_const_cpuset_t set)
{
    int n = hwloc_get_nbobjs_by_type(t, type_of(u));
    for (int i = 0; i < n; i++)
        if (hwloc_bitmap_isincluded(set, unit_cpus(t, u, i))) return i;
    return -1;
}

/* How ranks are laid out: `units` mapping units, of which each takes `block` ranks in a row. */
struct layout {
    enum unit map, grain; /* grain: what a rank takes of its mapping unit, cores or hardware threads */
    int units, block, width;
};

static struct layout layout_of(hwloc_topology_t t, const struct place_spec *p, int threads, int n)
{
    struct layout l = {.map = p->map, .grain = p->bind == UNIT_HWTHREAD ? UNIT_HWTHREAD : grain_of(p)};
    if (l.map == UNIT_NONE || l.map == UNIT_CORE || l.map == UNIT_HWTHREAD) {
        if (l.map == UNIT_HWTHREAD && !p->bind_said) l.grain = UNIT_HWTHREAD;
        l.map = UNIT_NODE;
    }
    l.units = unit_count(t, l.map);
    l.block = p->per_unit ? p->per_unit : l.units == 1 ? n : 1;
    bool whole_grains = p->bind == UNIT_NONE || p->bind == UNIT_CORE || p->bind == UNIT_HWTHREAD;
    l.width = whole_grains && p->width ? p->width : threads ? threads : 1;
    return l;
}

/* The grains of rank `r`: its turn within its mapping unit, `width` of them, starting over at the unit's end. */
static void start_of(hwloc_topology_t t, const struct layout *l, int r, hwloc_bitmap_t set)
{
    int unit = r / l->block % l->units;
    int turn = r / (l->block * l->units) * l->block + r % l->block;
    hwloc_const_cpuset_t inside = unit_cpus(t, l->map, unit);
    int grains = hwloc_get_nbobjs_inside_cpuset_by_type(t, inside, type_of(l->grain));
    hwloc_bitmap_zero(set);
    if (grains < 1) {
        hwloc_bitmap_copy(set, inside);
        return;
    }
    int width = l->width < grains ? l->width : grains;
    /* Ranks never straddle the end: places that a rank cannot fill whole are left out. */
    int first = turn % (grains / width) * width;
    for (int i = first; i < first + width; i++)
        hwloc_bitmap_or(set, set,
                        hwloc_get_obj_inside_cpuset_by_type(t, inside, type_of(l->grain), (unsigned)i)->cpuset);
}

/* Grows the set to whole units of the kind it is to be bound to, `width` neighbours of them. */
static void widen(hwloc_topology_t t, enum unit u, int width, hwloc_bitmap_t set)
{
    int n = unit_count(t, u), first = -1;
    hwloc_bitmap_t whole = hwloc_bitmap_alloc();
    for (int i = 0; i < n; i++)
        if (hwloc_bitmap_intersects(set, unit_cpus(t, u, i))) {
            if (first < 0) first = i;
            hwloc_bitmap_or(whole, whole, unit_cpus(t, u, i));
        }
    for (int i = 1; i < width && first >= 0; i++) hwloc_bitmap_or(whole, whole, unit_cpus(t, u, (first + i) % n));
    hwloc_bitmap_copy(set, whole);
    hwloc_bitmap_free(whole);
}

/* What a rank is bound to when the options say only how to map: the unit it was mapped to. */
static enum unit binding_of(const struct place_spec *p)
{
    enum unit mapped = p->map == UNIT_NODE ? UNIT_NONE : p->map;
    if (!p->bind_said && p->width) return grain_of(p);
    if (p->bind_said) mapped = p->bind;
    return mapped == UNIT_NONE && p->cpu_set ? UNIT_NODE : mapped; /* of the node, what the set leaves */
}

/* --bind-to user:LIST: the r-th element of "0,2+3,4-7". */
static int user_cpus(hwloc_topology_t t, const char *list, int r, hwloc_bitmap_t set)
{
    int elements = 1, e = 0;
    for (const char *p = list; *p; p++) elements += *p == ',';
    const char *p = list;
    for (; e < r % elements; p++) e += *p == ',';
    hwloc_bitmap_zero(set);
    while (*p && *p != ',') {
        char *end;
        long from = strtol(p, &end, 10), to = from;
        if (end != p && *end == '-') to = strtol(end + 1, &end, 10);
        if (end == p || to < from || to > 1 << 20) break;
        hwloc_bitmap_set_range(set, (unsigned)from, (int)to);
        p = *end == '+' ? end + 1 : end;
    }
    if ((!*p || *p == ',') && !hwloc_bitmap_iszero(set) &&
        hwloc_bitmap_isincluded(set, hwloc_topology_get_topology_cpuset(t)))
        return 0;
    say("--bind-to user:%s: cpu set %d is empty or has cpus this process may not use", list, r % elements + 1);
    return EXIT_USAGE;
}

static void finish(hwloc_topology_t t, struct place *pl)
{
    pl->count = hwloc_bitmap_weight(pl->cpus);
    pl->l3 = unit_holding(t, UNIT_L3, pl->cpus);
    pl->numa = unit_holding(t, UNIT_NUMA, pl->cpus);
}

/* The cpus of the i-th place. */
static int place_cpus(hwloc_topology_t t, const struct place_spec *p, const struct layout *l, int i, hwloc_bitmap_t set)
{
    enum unit bind = binding_of(p);
    if (p->user) return user_cpus(t, p->user, i, set);
    if (p->cpu_each) {
        if (cpulist_nth(t, p->hwthreads, p->cpu_set, i, set)) return 0;
        say("--cpu-list %s has a core that this machine has not, or that this process may not use", p->cpu_set);
        return EXIT_USAGE;
    }
    start_of(t, l, i, set);
    if (bind != l->grain) widen(t, bind, p->width, set);
    return 0;
}

/* --rank-by a unit: the order in which `n` places get their ranks. They were mapped in the order 0 to n-1; `unit` of
 * each is where it lies. */
static void order_places(const int *unit, bool fill, int *order, int n)
{
    int most = -1, done = 0;
    for (int i = 0; i < n; i++) most = unit[i] > most ? unit[i] : most;
    int *next = xcalloc((size_t)most + 2, sizeof *next); /* by unit: where to look for its next place */
    while (done < n)
        for (int u = -1; u <= most; u++)
            for (bool more = true; more && next[u + 1] < n; next[u + 1]++)
                if (unit[next[u + 1]] == u) {
                    order[done++] = next[u + 1];
                    more = fill;
                }
    free(next);
}

/* Which place each of `n` ranks gets: its own number's, unless ranks are numbered by a unit. */
static void order_ranks(hwloc_topology_t t, const struct place_spec *p, const struct layout *l, int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    if (p->order != RANK_BY_UNIT) return;
    int *unit = xcalloc((size_t)n, sizeof *unit);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = 0; i < n; i++) {
        start_of(t, l, i, set);
        unit[i] = unit_holding(t, p->order_unit, set);
    }
    order_places(unit, p->order_fill, order, n);
    hwloc_bitmap_free(set);
    free(unit);
}

int place_ranks(hwloc_topology_t t, const struct place_spec *p, int threads, struct place *places, int n)
{
    struct layout l = layout_of(t, p, threads, n);
    bool bound = binding_of(p) != UNIT_NONE || p->user;
    int rc = 0, *order = xcalloc((size_t)n, sizeof *order);
    if (bound) order_ranks(t, p, &l, order, n);
    for (int r = 0; r < n && !rc; r++) {
        struct place *pl = &places[r];
        *pl = (struct place){.l3 = -1, .numa = -1};
        if (!bound) continue;
        pl->cpus = hwloc_bitmap_alloc();
        rc = place_cpus(t, p, &l, order[r], pl->cpus);
        if (!rc) finish(t, pl);
    }
    free(order);
    return rc;
}

int place_slots(hwloc_topology_t t, const struct place_spec *p, const char *slots, struct place *pl)
{
    *pl = (struct place){.l3 = -1, .numa = -1};
    if (!slots) return 0;
    pl->cpus = hwloc_bitmap_alloc();
    if (cpulist_slots(t, p->hwthreads, slots, pl->cpus)) {
        finish(t, pl);
        return 0;
    }
    say("rank file: slot=%s has a socket or core that this machine has not, or that this process may not use", slots);
    return EXIT_USAGE;
}

void place_words(hwloc_topology_t t, const struct place *pl, char *buf, size_t size)
{
    static const enum unit kinds[] = {UNIT_HWTHREAD, UNIT_CORE, UNIT_NUMA, UNIT_SOCKET};
    char list[128];
    if (!pl->cpus) {
        snprintf(buf, size, "is not bound");
        return;
    }
    hwloc_bitmap_list_snprintf(list, sizeof list, pl->cpus);
    int n = snprintf(buf, size, "is bound to cpus %s", list);
    for (size_t i = 0; i < ARRAY_LEN(kinds) && n >= 0 && (size_t)n < size; i++) {
        int at = unit_holding(t, kinds[i], pl->cpus);
        if (at >= 0) n += snprintf(buf + n, size - (size_t)n, "%s%s %d", ", ", placeopt_unit_name(kinds[i]), at);
    }
}
