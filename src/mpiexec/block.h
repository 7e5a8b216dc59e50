/*
 * block.h - the job block (src/proc/job_block.h) on the launcher's side: made before the first rank starts, inherited by all.
 */
#ifndef TERN_MPIEXEC_BLOCK_H
#define TERN_MPIEXEC_BLOCK_H

#include "proc/job_block.h"

struct block {
    char id[40]; /* the value of JOB_ENV_ID, by which ranks that have lost the descriptor find the block again */
    int fd; /* the ranks inherit it under the same number, which is none of the small ones programs use */
    struct job_head *head;
    int wanted_pipe[2]; /* the pipe by which ranks say that a card is wanted: [0] is ours, [1] is inherited; -1: one node */
    int memory;  /* with a slot for each rank of the node, inherited as well; -1: none */
};

/* An anonymous, size-sealed block for `size` ranks with the job's secret; places, nodes and counts are the caller's to
 * fill. `psets`: the names of process sets, pset_bytes of them (psets_names). 0 or an exit code after saying why. */
int block_open(struct block *, const char *job, int size, const uint8_t secret[32], const char *psets,
               size_t pset_bytes);

/* Makes that pipe, in a job of several nodes. Same result. */
int block_open_wanted_pipe(struct block *);

/* Gives the ranks a file of memory for their segments, of which nothing is used yet. Without one they make files of
 * their own, which each needs the right to open. */
void block_open_memory(struct block *, int nlocal);

/* Writes the card of a rank of another node (n <= JOB_CARD_MAX bytes) and wakes the ranks that wait for it. */
void block_card_put(struct block *, uint32_t rank, const void *card, size_t n);

/* 1 + the exit code of MPI_Abort, 0 = not called. */
uint32_t block_aborted(const struct block *);

/* The job is ending, with this exit code: ranks that abort for what they see of it say nothing. */
void block_silence(struct block *, int code);

/* The last state (job_card.life) of a rank that has exited; of no use for a rank of another node. From now on no rank
 * waits for its card. */
enum job_life block_end(struct block *, int rank);

/* A rank of the job has died and the job goes on: tells the ranks of this node by the job block (drawn in job_block.h),
 * and wakes those that sleep. Later calls for the same rank do nothing. */
void block_tell_death(struct block *, uint32_t rank);

#endif
