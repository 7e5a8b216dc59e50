/*
 * table.h - what the library and its hwloc module share: the machine as a table by cpu.
 *
 *              Package NUMANode L3Cache ... PU
 *     cpu 0        0       0       0        0      index of the object that the cpu lies in,
 *     cpu 1        0       0       0        1      -1 = in none, or no such cpu
 *     cpu 2        0       0       1        2
 *
 * Cpus are the system's numbers, indexes are hwloc's logical ones.
 */
#ifndef TERN_PROC_TABLE_H
#define TERN_PROC_TABLE_H

#include "proc/machine.h"

struct machine_row {
    int32_t at[MACHINE_LEVELS];
};

struct machine_table {
    int32_t count[MACHINE_LEVELS]; /* objects of each level */
    int32_t cpus;                  /* rows */
    struct machine_row row[];
};

/* What the module exports. */
struct machine_source {
    int (**fail)(int code, const char *fmt, ...); /* where the library puts err_set, which a module cannot see */
    /* The machine, or the one of a synthetic description (NULL: none), malloc'ed. */
    int (*read)(const char *synthetic, struct machine_table **);
};
#define MACHINE_SYMBOL "tern_machine_hwloc"

#endif
