/* helper_cpus.c - see helper_cpus.h. */
#include "pt2pt/helper_cpus.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number at *s, which is moved behind it; -1: there is none, or it is no cpu's. */
static long number(const char **s)
{
    char *end;
    if (!isdigit((unsigned char)**s)) return -1;
    long n = strtol(*s, &end, 10);
    *s = end;
    return n < CPU_SETSIZE ? n : -1;
}

bool helper_parse_cpus(const char *list, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    for (;; list++) {
        long first = number(&list), last = first;
        if (*list == '-') {
            list++;
            last = number(&list);
        }
        if (first < 0 || last < first || (*list && *list != ',')) return false;
        for (long cpu = first; cpu <= last; cpu++) CPU_SET((size_t)cpu, cpus);
        if (!*list) return true;
    }
}

/* Of mpiexec on this host, or its daemon: the parent, when that is who bound this process. */
static bool launcher_cpus(cpu_set_t *cpus)
{
    const struct proc_info *me = proc_self();
    return me->bound && !strcmp(me->bootstrap, "native") && !sched_getaffinity(getppid(), sizeof *cpus, cpus);
}

int helper_cpus(cpu_set_t *cpus)
{
    const char *list = var_text(VAR_HELPER_CPUS);
    cpu_set_t own, all, wanted;
    CPU_ZERO(cpus);
    if (*list && !helper_parse_cpus(list, &wanted))
        return err_set(TERN_ERR_ARG, "variable TERN_HELPER_CPUS is '%s', which is no list of cpus like 0,4-7", list);
    if (*list) {
        *cpus = wanted;
        return 0;
    }
    if (sched_getaffinity(0, sizeof own, &own)) return 0; /* the machine has more cpus than a set has room for: none is chosen */
    if (CPU_COUNT(&own) > 1 || !launcher_cpus(&all)) return 0;
    CPU_XOR(cpus, &all, &own);
    CPU_AND(cpus, cpus, &all);
    return 0;
}

bool helper_cpus_are_more(const cpu_set_t *cpus)
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own)) return true; /* as in helper_cpus */
    CPU_OR(&own, &own, cpus);
    return CPU_COUNT(&own) > 1;
}
