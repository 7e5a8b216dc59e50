/*
 * server.h - the PMIx server of the job: for programs that use PMIx instead of the job block (other MPI libraries,
 * tools, TERN_BOOTSTRAP=pmix). Ranks of Tern need nothing of it, so a job runs also when it cannot be started.
 *
 * Threads: the functions here are called by the main thread. The library calls ours on a thread of its own; what it
 * reports is kept behind a lock, or in atomics, and announced through server_event_fd.
 */
#ifndef TERN_MPIEXEC_SERVER_H
#define TERN_MPIEXEC_SERVER_H

#include "mpiexec/launch.h"
#include "proc/job_block.h"

/* Starts the server with its files below `dir`. False: it cannot be had, server_why says why. */
bool server_open(const struct job *, const char *dir);
const char *server_why(void);

/* Makes the job and its ranks known. Does not wait; the server takes this up before any client connects. */
void server_register(const struct job *);

/* The library's words when it refused the job or a rank, else NULL. */
const char *server_refused(void);

/* The variables a client needs, of rank 0: only PMIX_RANK differs between ranks. Empty without a server. */
const struct strv *server_variables(void);

/* What a rank did as a PMIx client. */
enum job_life server_life(int rank);

/* Readable when server_abort has something. -1 without a server. */
int server_event_fd(void);

struct server_abort {
    int rank, code;
    char words[256];
};

/* Takes the first PMIx_Abort not yet taken; false when there is none. */
bool server_take_abort(struct server_abort *);

#endif
