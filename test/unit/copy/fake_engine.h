/*
 * fake_engine.h - a copy engine and a clock that are both made up: time passes only by what the engine's calls take, and as a test says.
 */
#ifndef TERN_TEST_FAKE_ENGINE_H
#define TERN_TEST_FAKE_ENGINE_H

#include "copy/copy.h"

struct fake {
    double submit, issue, look; /* ns of the caller's, for each */
    double lag, pace;           /* ns from an issue until the first byte is copied, if it was idle; for a byte */
    uint64_t now;               /* ns */
    unsigned reads;             /* of the clock */
    bool dry;                   /* nothing is copied */
};
extern struct fake fake; /* set before the queue is opened, changed at will */

extern const struct copy_ops fake_ops; /* its ends are seen in `finished` only: it tells nobody */
uint64_t fake_clock(void);             /* for copy_now */

#endif
