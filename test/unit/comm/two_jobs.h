/*
 * two_jobs.h - members of two parties (party.h) that use MPI, and are connected as a layer for dynamic processes would
 * do it.
 */
#ifndef TERN_TEST_TWO_JOBS_H
#define TERN_TEST_TWO_JOBS_H

#include "../transport/party.h"
#include <mpi.h>

/* party_run_two by shared memory, by its common ring alone, by TCP, and by shared memory with helper threads. */
bool two_run_over_all(const uint32_t n[2], bool (*member)(void));

extern int two_rank, two_size, two_others; /* in MPI_COMM_WORLD; processes of the other job */

bool two_open(void);            /* MPI_Init, and the card is there for the other job */
_Noreturn void two_close(void); /* MPI_Finalize, when all have come here */

/* An intercommunicator between the two worlds, which both sides make, as their roots would have it: the other job is
 * known as long as that lives. `number` is another one each time. */
bool two_connect(uint64_t number, MPI_Comm *inter);
bool two_make(uint64_t number, MPI_Comm *inter); /* the same, without waiting for all the others first */

/* Progress until no other job is known, and no peer of one is left. */
bool two_apart(void);

#endif
