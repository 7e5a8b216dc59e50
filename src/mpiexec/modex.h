/*
 * modex.h - gets the data that a process on another node has put by PMIx, for a PMIx client of this node: the server of
 * this node asks the server of that one. ("Modex", module exchange, is PMIx's word for such data.)
 *
 *     TREE_MODEX_ASK   id, rank             to the node of the rank
 *     TREE_MODEX       id, status, bytes    the answer, when the rank has committed what it put, or has ended
 */
#ifndef TERN_MPIEXEC_MODEX_H
#define TERN_MPIEXEC_MODEX_H

#include "mpiexec/launch.h"
#include <pmix_server.h>

/* Main thread; takes messages from here on. */
void modex_open(struct job *);

/* Any thread. `done` is called on the main thread. */
void modex_ask(uint32_t rank, pmix_modex_cbfunc_t done, void *arg);

/* A rank of this node has ended: who waits for what it would have put is refused. Main thread. */
void modex_rank_ended(uint32_t rank);

#endif
