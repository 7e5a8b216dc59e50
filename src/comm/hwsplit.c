/* hwsplit.c - see hwsplit.h. */
#include "comm/hwsplit.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char shared_memory[] = "mpi_shared_memory";

static const char *without_provider(const char *name)
{
    return !strncasecmp(name, "hwloc://", 8) ? name + 8 : name;
}

int hw_level(const char *name)
{
    if (!strcmp(name, shared_memory)) return HW_NODE;
    name = without_provider(name);
    for (int level = 0; level < MACHINE_LEVELS; level++)
        if (!strcasecmp(name, machine_level_name(level))) return level;
    return strcasecmp(name, "Machine") ? HW_NONE : HW_NODE;
}

const char *hw_name(int level, char *buf)
{
    if (level == HW_NODE) snprintf(buf, HW_NAME, "%s", shared_memory);
    else snprintf(buf, HW_NAME, "hwloc://%s", machine_level_name(level));
    return buf;
}

/* | 0 | level + 1 (7 bits) | node (31) | instance on the node (24) | */
int64_t hw_color(const struct machine_place *p, int level)
{
    int32_t instance = level == HW_NODE ? 0 : p->at[level];
    if (instance < 0 || p->node < 0) return -1;
    return (int64_t)(level + 1) << 55 | (int64_t)p->node << 24 | instance;
}

/* Are there places with different colors in the list? *color: that of the first place of all, once it is known. */
static bool differ(const void *list, int32_t n, size_t stride, int level, int64_t *color, bool *known)
{
    const char *at = list;
    for (int32_t i = 0; i < n; i++, at += stride) {
        const struct machine_place *p = (const struct machine_place *)at;
        if (p->node < 0) continue;
        int64_t c = hw_color(p, level);
        if (*known && c != *color) return true;
        *color = c;
        *known = true;
    }
    return false;
}

int hw_dividing_level(const void *ours, int32_t n_ours, const void *theirs, int32_t n_theirs, size_t stride)
{
    for (int level = HW_NODE; level < MACHINE_LEVELS; level++) {
        int64_t color = -1;
        bool known = false;
        if (differ(ours, n_ours, stride, level, &color, &known) || differ(theirs, n_theirs, stride, level, &color, &known))
            return level;
    }
    return HW_NONE; /* at each level all are in one instance, or none is in any */
}
