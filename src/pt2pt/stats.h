/*
 * stats.h - what TERN_STATS says when MPI is finalised, in words, a line each on stderr: how often threads of this process have waited
 * for each other, and for how long, and what was copied by which means.
 *
 *     tern: rank 1: lane 0: sections waited for its lock 12 times, 0.034 ms in all
 *     tern: rank 1: shm: looks found another thread there 3 times; calls waited for it 2 times, 0.001 ms in all
 *     tern: rank 1: copies: 12 by memcpy, 24.0 MB; 3 past the caches, 6.3 MB; 400 by an engine, 3.3 MB
 *     tern: rank 1: copy engine core: issuing a batch takes 2.40 us, 2.10 at first; least batch none from a cache, 9231 bytes from memory
 *     tern: rank 1: copy engine core: 25 ends observed, after 9.10 us, predicted 8.20 us, in the mean; 3 corrections, 0 trials
 *
 * Of threads only one that waits counts, so the counts cost nothing where none does. Copies are counted where a choice is made for
 * them (copy/count.h). A file that counts something adds a function to the table in stats.c, which says it by stats_line.
 */
#ifndef TERN_PT2PT_STATS_H
#define TERN_PT2PT_STATS_H

#include "base/compiler.h"

/* Says all that is counted, if the variable is set. No other thread is in the library. */
void stats_say(void) TERN_COLD;

/* One line, without its end. */
__attribute__((format(printf, 1, 2))) void stats_line(const char *fmt, ...) TERN_COLD;

#endif
