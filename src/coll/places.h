/*
 * places.h - where the ranks of a communicator are: nodes, and the caches or NUMA domains of a node, numbered in the
 * order of their first ranks. All ranks get the same answer without a message, since the choice of an algorithm depends
 * on it: it follows from what the launcher told all of them, and from variables that are equal on all.
 */
#ifndef TERN_COLL_PLACES_H
#define TERN_COLL_PLACES_H

#include "coll/coll.h"

/* Reads TERN_COLL_DOMAINS; TERN_ERR_ARG with words when it makes no sense. */
int coll_places_open(void);

/* Fills far, mixed, shuffled, nodes, node_of, domains, domain_of, until coll_places_drop. The arrays, which grow with the ranks, are
 * the same for a communicator and its duplicates, and so for its windows. False: memory is out. Any thread. */
bool coll_places_find(const struct comm *, struct coll_comm *);
void coll_places_drop(struct coll_comm *);

#endif
