/*
 * answer.h - takes the questions of proc/ask.h: those of the ranks of this node, which come by a socket, and those
 * that other launchers have about its ranks. A question that concerns only this node is answered here. All others go on
 * to the root, and from the root of a spawned job to the first mpiexec, where the registry answers them (registry.h).
 *
 * A process of the job is accepted when it has sent the job's secret. The socket is made when the ranks have been
 * started, so it costs their start nothing; a job that asks nothing has this one descriptor more.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_ANSWER_H
#define TERN_MPIEXEC_ANSWER_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

/* Takes questions of other launchers from here on. Before the ranks start. */
void answer_open(struct job *);

/* The ranks of this node have been started: takes their questions. */
void answer_start(void);

/* Has the launcher of the rank's node answer with a ticket for a file of the rank (offers.h): `question` is that of
 * ASK_OFFER. */
void answer_offer(const struct asker *, const void *question, size_t n);

/* Answers with the card of a rank of this job, on whichever node it runs. */
void answer_fetch(const struct asker *, uint32_t rank);

/* Answers with the bytes that a rank of this job has committed at the PMIx server of its node (server_jobs.h). */
void answer_modex(const struct asker *, uint32_t rank);

#endif
