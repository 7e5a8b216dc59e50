/*
 * now.h - the clock by which this folder measures: clock_ns, or a test's.
 *
 * Threads: any; it is set while no queue and no other thread is there.
 */
#ifndef TERN_COPY_NOW_H
#define TERN_COPY_NOW_H

#include "base/compiler.h"
#include <stdint.h>

extern TERN_HIDDEN uint64_t (*copy_now)(void); /* ns; never NULL */

#endif
