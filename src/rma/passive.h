/*
 * passive.h - what this process does for others that reach its part of a window by messages: the three designs of a target
 * (TERN_RMA_PASSIVE, or the info key tern_rma_passive when the window is made; the variable is above the key).
 *
 *     basic    it serves them in calls of MPI
 *     helper   its helper thread serves them as well, while the program computes (pt2pt/helper.h)
 *     copy     as helper; and origins put off all that they do until it has to be done (far.h), so that a target gets the whole of
 *              an epoch at once, and has large data copied by a copy engine (landing.h)
 *     auto     helper, if others reach it by messages, and TERN_PROGRESS is not caller
 *
 * Source: RMA-1 to RMA-13.
 *
 * Threads: the one that makes or frees the window, outside of the lane.
 */
#ifndef TERN_RMA_PASSIVE_H
#define TERN_RMA_PASSIVE_H

#include <stdbool.h>

struct info;
struct win;

enum win_passive { PASSIVE_BASIC, PASSIVE_HELPER, PASSIVE_COPY };

bool passive_knows(const char *word);     /* a value of the key */
const char *passive_word(const struct win *);

/* by_messages: some processes reach this one by messages. 0, or a code with words. */
int passive_begin(struct win *, struct info *, bool by_messages);
void passive_end(struct win *);

#endif
