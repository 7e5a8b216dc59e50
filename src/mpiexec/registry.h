/*
 * registry.h - what the first mpiexec keeps for its job and for the jobs spawned from it: the jobs, the names that
 * their processes have published, and which jobs are connected to each other. It answers the questions of
 * src/proc/ask.h that are no matter of one node.
 *
 * What belongs to a job goes with it: its names, and the keys of its connections.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_REGISTRY_H
#define TERN_MPIEXEC_REGISTRY_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

/* The job of this mpiexec is the first one. */
void registry_open(const struct job *);

/* A spawned job, whose mpiexec is at the other end of this line. False: there is a job of this name. registry_end: the line
 * is closed, and so the job has ended. */
bool registry_add(const char *name, uint32_t size, uint32_t line);
void registry_end(uint32_t line);

/* Answers a question, now or later. */
void registry_take(const struct asker *, enum ask_type, const void *bytes, size_t n);

/* A question that waits needs no answer any more; with id 0, all questions that came by this route. */
void registry_cancel(const struct asker *);

/* A rank of this mpiexec's job has ended, with this status (as of waitpid); `clean`: as it should. Who watches the job
 * is told. When the last one has ended, so has the job. The mpiexec of a spawned job tells the first one. */
void registry_rank_ended(uint32_t rank, int status, bool clean);

#endif
