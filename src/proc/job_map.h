/*
 * job_map.h - maps a job block (job_block.h) that a launcher has given to this process, and checks that it is one.
 *
 * Threads: any.
 */
#ifndef TERN_PROC_JOB_MAP_H
#define TERN_PROC_JOB_MAP_H

#include "proc/job_block.h"

/* The block behind the descriptor, which stays the caller's, for `rank`; the caller unmaps it (job_unmap). `from`, for the
 * words: where the descriptor comes from. 0, or TERN_ERR_SYSTEM with words: it is no block, not of this version, or has no
 * such rank. */
int job_map(int fd, const char *from, uint32_t rank, struct job_head **);
void job_unmap(struct job_head *);

#endif
