/*
 * route.h - edges of a distributed graph on their way from the process that knows them
 * to the two that they are about.
 *
 * The processes are cut into halves again and again; in each round a process passes on
 * what is for the other half. So there are log2(P) messages a process, and memory for
 * the edges that are there, not for P of anything.
 */
#ifndef TERN_TOPO_ROUTE_H
#define TERN_TOPO_ROUTE_H

#include "obj/comm.h"

struct route_edge {
    int32_t to;       /* rank that has to know of it */
    int32_t incoming; /* for `to` it comes in, else goes out */
    int32_t other;    /* the rank at the other end */
    int32_t weight;
    int32_t teller, place; /* who told it, as which of its edges: their order */
};

/*
 * Takes the n edges of *edges_p (malloc'ed, may be replaced) and leaves those that are for this process, in the order of
 * (teller, place). Collective. On failure *edges_p is still the caller's to free.
 */
int route_edges(struct comm *, struct route_edge **edges_p, int64_t *n);

#endif
