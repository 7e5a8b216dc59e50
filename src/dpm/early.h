/*
 * early.h - what a spawned process will need to connect to its parents, and what does not depend on the other processes of its
 * job, is made ready by a thread while MPI_Init meets these: the cryptography is loaded (0.18 ms), and the job's public key
 * computed (0.09 ms). By rank 0, which needs them, and only where there is a core for that thread; else it is done when it is needed.
 *
 * Threads: one at a time.
 */
#ifndef TERN_DPM_EARLY_H
#define TERN_DPM_EARLY_H

/* In a process that may have parents (dpm.h), when it knows its job. */
void early_begin(void);

/* It is done, and the thread has ended. */
void early_end(void);

#endif
