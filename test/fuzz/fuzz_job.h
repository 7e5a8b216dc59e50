/*
 * fuzz_job.h - this process as rank 0 of a job on one node whose other ranks the fuzzer plays, with the TCP transport.
 */
#ifndef TEST_FUZZ_JOB_H
#define TEST_FUZZ_JOB_H

#include <stdbool.h>
#include <stdint.h>

extern uint8_t fuzz_key[32]; /* the job's secret */

/* Sets the environment so that var_open, proc_open, peers_open find such a job of `ranks`. */
void fuzz_job(uint32_t ranks);

/* One more process with the job's part in it, so that it may end as it likes: runs `play`, whose failure or death is
 * one of the case. */
void fuzz_fork(bool (*play)(void), const char *rule);

#endif
