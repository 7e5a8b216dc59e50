/*
 * soft.h - the info key "soft" (MPI-5.0 section 11.8.1): how many processes may be spawned, as a set of numbers.
 *
 *     "2:8:2,16"     2, 4, 6, 8 or 16: triplets first:last:stride, whose stride may be negative, or is 1 if it is not there
 *
 * Threads: any.
 */
#ifndef TERN_DPM_SOFT_H
#define TERN_DPM_SOFT_H

#include "base/compiler.h"

/* The largest number of the set from 1 to `most`, into *n. TERN_ERR_INFO with words: there is none, or that is no set. */
int soft_largest(const char *set, int most, int *n);

#endif
