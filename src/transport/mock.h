/*
 * mock.h - the strings by which a test pulls the mock transport (mock.c).
 *
 * Tests set the script before the library is opened (capabilities, sizes) or at any
 * time (refusals, failures), and read the counters. Without a test the script is the
 * one below: every capability, and a queue of 64 messages.
 */
#ifndef TERN_TRANSPORT_MOCK_H
#define TERN_TRANSPORT_MOCK_H

#include "transport/transport.h"

struct mock_script {
    uint32_t caps;      /* enum tp_cap of endpoints opened from now on */
    uint32_t max_short; /* bytes, of endpoints opened from now on */
    uint32_t room;      /* messages that fit into the queue of an endpoint; more are refused with TERN_AGAIN */
    uint32_t deliver;   /* messages that one call of progress delivers at most; 0: as many as it is asked for */

    /* Refusals besides: every n-th send (0: none), and so many of a hundred by a random sequence from `seed`. */
    uint32_t again_every, again_percent;
    uint64_t seed;

    /* Failures: the n-th send, the n-th get or put from now on returns `error`, and so do all later ones. 0: none. */
    uint32_t fail_send, fail_copy;
    int error;
    bool no_window; /* memory of the peer's arena cannot be mapped */
};
#define MOCK_SCRIPT {.caps = TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP, .max_short = 8192, .room = 64}

struct mock_count {
    uint64_t sent[AM_COUNT]; /* by id, accepted */
    uint64_t refused, delivered, copies, windows, nudges;
};

extern struct mock_script mock_script;
extern struct mock_count mock_count;

#endif
