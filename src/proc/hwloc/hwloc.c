/*
 * hwloc.c - the machine as hwloc sees it, put into a plain table (table.h). A module of
 * its own, loaded on demand, so that the library needs no hwloc at run time.
 *
 * The topology is loaded, read and thrown away at once. hwloc itself honours
 * HWLOC_XMLFILE, by which a launcher can save the ranks the search. The one that
 * Tern's own mpiexec keeps for its PMIx server is a dummy, so PMIx is not asked.
 */
#include "base/err.h"
#include "proc/table.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

static int (*fail)(int code, const char *fmt, ...);

static const hwloc_obj_type_t type_of_level[] = {
    [MACHINE_PACKAGE] = HWLOC_OBJ_PACKAGE, [MACHINE_NUMA] = HWLOC_OBJ_NUMANODE, [MACHINE_L3] = HWLOC_OBJ_L3CACHE,
    [MACHINE_L2] = HWLOC_OBJ_L2CACHE,      [MACHINE_L1] = HWLOC_OBJ_L1CACHE,    [MACHINE_CORE] = HWLOC_OBJ_CORE,
    [MACHINE_PU] = HWLOC_OBJ_PU,
};
static_assert(ARRAY_LEN(type_of_level) == MACHINE_LEVELS, "a type for each level");

/* Memory of several kinds may be near the same cpus: then the first counts. */
static void enter_object(struct machine_table *t, int level, const struct hwloc_obj *o)
{
    for (int cpu = hwloc_bitmap_first(o->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(o->cpuset, cpu))
        if (cpu < t->cpus && t->row[cpu].at[level] < 0) t->row[cpu].at[level] = (int32_t)o->logical_index;
}

static void enter_level(struct machine_table *t, hwloc_topology_t topology, int level)
{
    hwloc_obj_t o = NULL;
    while ((o = hwloc_get_next_obj_by_type(topology, type_of_level[level], o))) {
        if (hwloc_bitmap_iszero(o->cpuset)) continue; /* memory that is near to no cpu */
        enter_object(t, level, o);
        t->count[level]++;
    }
}

static int fill(hwloc_topology_t topology, struct machine_table **table_p)
{
    int last = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(topology));
    size_t cpus = last < 0 ? 0 : (size_t)last + 1;
    struct machine_table *t = calloc(1, sizeof *t + cpus * sizeof t->row[0]);
    if (!t) return fail(TERN_ERR_NOMEM, "no memory for a table of %zu cpus", cpus);
    t->cpus = (int32_t)cpus;
    memset(t->row, 0xff, cpus * sizeof t->row[0]);
    for (int level = 0; level < MACHINE_LEVELS; level++) enter_level(t, topology, level);
    *table_p = t;
    return 0;
}

static int load(hwloc_topology_t topology, const char *synthetic)
{
    if (synthetic && hwloc_topology_set_synthetic(topology, synthetic))
        return fail(TERN_ERR_ARG, "TERN_MACHINE=%s is no synthetic description that hwloc understands", synthetic);
    if (hwloc_topology_load(topology)) return fail(TERN_ERR_SYSTEM, "hwloc cannot look at the machine: %s", strerror(errno));
    return 0;
}

static int read_machine(const char *synthetic, struct machine_table **table_p)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology)) return fail(TERN_ERR_NOMEM, "hwloc cannot be started: %s", strerror(errno));
    int rc = load(topology, synthetic);
    if (!rc) rc = fill(topology, table_p);
    hwloc_topology_destroy(topology);
    return rc;
}

TERN_EXPORT extern const struct machine_source tern_machine_hwloc;
const struct machine_source tern_machine_hwloc = {.fail = &fail, .read = read_machine};
