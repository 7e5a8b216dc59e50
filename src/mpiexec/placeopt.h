/*
 * placeopt.h - the words of --bind-to and --map-by, of both dialects:
 *   bind: none | hwthread | core | l1cache | l2cache | l3cache | numa | socket, each with :N units a rank (Hydra);
 *         rr (= core), user:0,1,2+3 (cpus of rank 0, 1, 2)
 *         cpu-list:ordered (the cores of --cpu-set one by one)
 *   map:  the same units, slot, node, ppr:N:unit; modifiers after ':' such as PE=N (cores a rank), also alone
 *   rank: slot, node, the same units; modifiers SPAN, FILL
 */
#ifndef TERN_MPIEXEC_PLACEOPT_H
#define TERN_MPIEXEC_PLACEOPT_H

#include "mpiexec/spec.h"

/* 0 or an exit code after saying what is not understood. `ppn` gets the ranks that ppr:N:node asks for. */
int placeopt_bind(struct place_spec *, const char *text);
int placeopt_map(struct place_spec *, const char *text, int *ppn);
int placeopt_rank(struct place_spec *, const char *text);

/* "core" for UNIT_CORE. */
const char *placeopt_unit_name(enum unit);

#endif
