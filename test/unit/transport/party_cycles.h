/*
 * party_cycles.h - for tests of two jobs (party.h) that are connected and parted again and again: what there is after
 * half of the cycles is all that there ever is. Such a test takes arguments:
 *
 *     x_test [cycles [transports]]     so many cycles in place of what fits into some seconds, and nothing
 *                                      else; by these transports only, e.g. self,tcp
 */
#ifndef TERN_TEST_PARTY_CYCLES_H
#define TERN_TEST_PARTY_CYCLES_H

#include "party.h"

/* Reads main's arguments. True: only the cycles are wanted. */
bool cycles_arguments(int argc, char **argv, long number_by_default);

/* party_run_two by these transports, if the arguments want them; true also if they do not. Rings of shared memory are
 * small, so that they are soon gone round. */
bool cycles_run_by(const char *transports, const uint32_t n[2], bool (*member)(void));

/* The same by shared memory with a ring for each sender, with the common ring alone, and by TCP. */
bool cycles_run(const uint32_t n[2], bool (*member)(void));

/* In a member: runs once(0), once(1), ..., and compares what the process has of memory, mappings and descriptors. */
struct cycles {
    bool (*once)(long i);
    bool (*settle)(void); /* before that is counted; NULL: nothing is to be done */
    long files;           /* so many descriptors more are no fault: a connection may just be refused */
};
bool cycles_go(const struct cycles *);

#endif
