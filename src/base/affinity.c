/* affinity.c - see affinity.h. */
#include "base/affinity.h"

#include <sched.h>

#define CPUS_MOST ((size_t)1 << 20) /* no system has that many */

/* An affinity mask of *bytes bytes, to be freed by CPU_FREE; NULL: it is not to be seen, or memory is out. The system
 * refuses a set that is shorter than its own, without saying how long that is. */
static cpu_set_t *mask_of(pid_t pid, size_t *bytes)
{
    for (size_t cpus = 1024; cpus <= CPUS_MOST; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        *bytes = CPU_ALLOC_SIZE(cpus);
        if (set) CPU_ZERO_S(*bytes, set);
        if (set && !sched_getaffinity(pid, *bytes, set)) return set;
        CPU_FREE(set);
    }
    return NULL;
}

uint32_t affinity_count(pid_t pid)
{
    size_t bytes;
    cpu_set_t *set = mask_of(pid, &bytes);
    int n = set ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    return (uint32_t)n;
}

bool affinity_is_within(pid_t inner, pid_t outer)
{
    size_t in_bytes, out_bytes;
    cpu_set_t *in = mask_of(inner, &in_bytes), *out = mask_of(outer, &out_bytes);
    bool within = in && out && in_bytes == out_bytes;
    if (within) {
        CPU_AND_S(out_bytes, out, out, in);
        within = CPU_EQUAL_S(in_bytes, in, out);
    }
    CPU_FREE(in);
    CPU_FREE(out);
    return within;
}
