/*
 * past.h - the peers that an endpoint has forgotten: what must still be known about
 * them, so that neither a late packet nor a repeated one makes them peers again.
 *
 * Memory is bounded: when there are many, those that nobody can still be waiting for are
 * dropped, and the endpoint then asks newcomers to introduce themselves with a new epoch.
 *
 * Threads: as the endpoint's.
 */
#ifndef TERN_TRANSPORT_DGRAM_PAST_H
#define TERN_TRANSPORT_DGRAM_PAST_H

#include "base/list.h"

#define PAST_BUCKETS 256
#define PAST_SOME 1024 /* old ones are dropped from this number on */
#define PAST_MANY 8192 /* the eldest are dropped, old or not */

struct dgram_past {
    struct link buckets[PAST_BUCKETS], all; /* all: in the order of `when` */
    size_t n;
};

struct past_peer {
    struct link bucket, all;
    uint64_t id;
    uint64_t expected, una; /* as in struct dgram_peer */
    uint64_t when;          /* ns: forgotten then */
};

void past_open(struct dgram_past *);
void past_close(struct dgram_past *);
struct past_peer *past_find(const struct dgram_past *, uint64_t id);

/* Adds a copy of *p. True: others were dropped, and the epoch must change. `age`: ns after which one is old. */
bool past_add(struct dgram_past *, const struct past_peer *p, uint64_t age);

#endif
