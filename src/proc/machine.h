/*
 * machine.h - the machine that this process runs on, and where in it: what the
 * hardware-aware parts (splitting by hardware, reordering of topologies, leaders of
 * collectives) ask for.
 *
 * The facts come from hwloc, through a module that is loaded at the first question,
 * so a program that never asks pays nothing. Without the module (or where hwloc finds
 * nothing) all is unknown, which is an answer and no error.
 *
 * Threads: any, after proc_open; the first question loads, under a lock.
 */
#ifndef TERN_PROC_MACHINE_H
#define TERN_PROC_MACHINE_H

#include "base/compiler.h"

/*
 * Finds out what the machine is like, at the first call; the functions below do so by themselves. For who wants to know
 * why nothing is known: TERN_ERR_ARG with words if TERN_MACHINE or TERN_MACHINE_CPUS make no sense, TERN_ERR_NOT_FOUND
 * if there is no hwloc here.
 */
int machine_open(void);

/* Kinds of hardware in which a process may be confined, from wide to narrow. */
enum machine_level {
    MACHINE_PACKAGE,
    MACHINE_NUMA,
    MACHINE_L3,
    MACHINE_L2,
    MACHINE_L1,
    MACHINE_CORE,
    MACHINE_PU,
    MACHINE_LEVELS
};

/* hwloc's name of a level: "Package", "NUMANode", "L3Cache" ... */
const char *machine_level_name(enum machine_level);

/*
 * Where the calling process may run: for each level the logical index of the one object that holds all cpus of its
 * affinity mask as it is now; -1 where there is none (it may run in several), or where it is unknown. Plain data: may be sent to
 * other processes. Two processes share the hardware of a level if they are on one node and have the same index >= 0.
 */
struct machine_place {
    int32_t node; /* proc_node_of this process */
    int32_t at[MACHINE_LEVELS];
};
void machine_place(struct machine_place *);

/*
 * The cache and the NUMA domain that another rank of the job on this node is bound into, as far as the launcher says; -1:
 * none, or not known. The same whoever asks on this node, and nobody is asked. False: nothing is known.
 */
struct machine_domain {
    int32_t l3, numa;
};
bool machine_domain_of(uint32_t rank, struct machine_domain *);

/* How many objects of a level the machine has; 0 if there is none or it is unknown. */
int machine_count(enum machine_level);

/*
 * How far two places are apart: 0 the same cpu, growing by one with each level that they do not share (unknown levels
 * count as shared by processes of a node), MACHINE_LEVELS + 1 across nodes.
 */
int machine_distance(const struct machine_place *, const struct machine_place *);

void machine_close(void);

#endif
