/*
 * stats.h - what TERN_STATS says when MPI is finalised: how often threads of this process have waited for each other, and for how
 * long, in words, a line each on stderr.
 *
 *     tern: rank 1: lane 0: sections waited for its lock 12 times, 0.034 ms in all
 *     tern: rank 1: shm: looks found another thread there 3 times; calls waited for it 2 times, 0.001 ms in all
 *
 * Only who waits counts, so the counts cost nothing where nobody does. A file that counts something adds a function to the
 * table in stats.c, which says it by stats_line.
 */
#ifndef TERN_PT2PT_STATS_H
#define TERN_PT2PT_STATS_H

#include "base/compiler.h"

/* Says all that is counted, if the variable is set. No other thread is in the library. */
void stats_say(void) TERN_COLD;

/* One line, without its end. */
__attribute__((format(printf, 1, 2))) void stats_line(const char *fmt, ...) TERN_COLD;

#endif
