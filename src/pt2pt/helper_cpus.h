/*
 * helper_cpus.h - where the helper thread runs (TERN_HELPER_CPUS).
 */
#ifndef TERN_PT2PT_HELPER_CPUS_H
#define TERN_PT2PT_HELPER_CPUS_H

#include "base/compiler.h"
#include <sched.h>

/*
 * The cpus for the helper of this process; none: wherever the process may run. Those of the variable; else, where this
 * process is bound to a single cpu, the others that its launcher may use, if that can be told. 0, or a code with words.
 */
int helper_cpus(cpu_set_t *);

/* May a thread that is given these cpus (none: those of its process) run beside the calling thread? Not if there is one cpu for both,
 * such as in a process that another launcher has bound to it, however many the node has. */
bool helper_cpus_are_more(const cpu_set_t *);

/* "0,4-7": true, or false if it is no list of cpus, or an empty one. */
bool helper_parse_cpus(const char *list, cpu_set_t *);

#endif
