/*
 * mock_job.h - a job of one rank whose messages to itself go through the mock
 * transport, for tests of the protocol: the layers up to point-to-point are open, and
 * both sides of every message are in this process.
 */
#ifndef TERN_TEST_MOCK_JOB_H
#define TERN_TEST_MOCK_JOB_H

#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "pt2pt/protocol.h"
#include "transport/mock/mock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Opens the job with the mock scripted by *script (NULL: MOCK_SCRIPT); returns MPI_COMM_WORLD. TERN_ variables that a
 * test wants are set with setenv before. A test that hangs is killed after 60 s. */
struct comm *job_open(const struct mock_script *script);
struct comm *job_open_threaded(void);

/* A job of two ranks: this process is rank 1, and the test plays rank 0 (mock.h, `played`), which is connected. */
struct comm *job_open_played(const struct mock_script *script);

/* One of the same processes in the lane that this value of tern_lane says. */
struct comm *job_comm_in(struct comm *world, const char *lane);

/* Checks that nothing is left in any lane (no parked, large or streaming operation, no unexpected message, no memory of
 * the shared heap in use) and closes. */
void job_close(void);

/* Closes what a failed test left open, and unsets the variables; a teardown function. */
int job_clean(void **state);

/* Closes without the checks: for tests that leave something behind on purpose. */
void job_abandon(void);

struct peer *job_peer(void); /* the one peer: this process */

/* Turns of progress until nothing happens for a few. */
void job_settle(void);

/* n bytes that depend on seed; and whether they are there. */
void fill(void *buf, size_t n, uint64_t seed);
bool filled(const void *buf, size_t n, uint64_t seed);

/* With a played peer: what this process has sent next, with up to `room` bytes of its payload; that there is nothing more; and the
 * peer is lost. */
struct mock_message job_sent(void *payload, size_t room);
void job_sent_nothing(void);
void job_lose_peer(void);

/* The next message offers s, whose receiver then wants nothing of it: s ends. Returns pt_rts.offer. */
uint64_t job_offered_in_vain(struct request *s);

/* In a process of its own `act` ends the job, with these words. */
void job_dies(void (*act)(void), const char *words);

/* Starts a message of n bytes to this process, or the receive of one from it. */
struct request *job_isend(struct comm *c, const void *data, int64_t n, int tag, enum pt_mode mode);
struct request *job_irecv(struct comm *c, void *room, int64_t n, int tag);

/* Waits for the end of r, which has this code, and lets r go; of one that is cancelled. */
void job_end(struct request *r, int code);
void job_cancel(struct request *r);

/* A committed type of the first two bytes of each four. */
struct type *gaps_type(void);

/* Where byte k of the data of a message lies: in a buffer with those gaps, or in one without. */
size_t gaps_place(size_t k, bool with_gaps);

/* A sequence of random numbers, from TERN_TEST_SEED or the clock; the seed is printed. */
uint64_t random_open(void);
uint64_t random_next(uint64_t *state);

#endif
