/*
 * mock.h - how a test controls the mock transport (mock.c): a script that it sets, and counters that it reads.
 *
 * Tests set the script before the library is opened (capabilities, sizes) or at any
 * time (refusals, failures). Without a test the script is MOCK_SCRIPT below: the
 * capabilities that it lists, and a queue of 64 messages.
 *
 * Usually a message comes back from the peer that it was sent to, so both sides of the protocol run here. A test that decides each
 * step of the other side plays the peer itself (`played`). Messages to such a peer stay in the queue until the test takes them
 * (mock_take). The test sets how many of them the peer has handled, and calls tp_handlers with what the peer sends.
 *
 * Threads: under the lane's lock, or while no other thread uses the library.
 */
#ifndef TERN_TRANSPORT_MOCK_H
#define TERN_TRANSPORT_MOCK_H

#include "transport/transport.h"

#define MOCK_DOMAINS 2

struct mock_script {
    bool absent;        /* open finds that there is none */
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
    bool no_arena; /* memory of the peer's arena cannot be mapped */

    /* As a stream: payloads longer than sink_min are asked for a sink in one turn, and delivered in a later one; 0: none.
     * am_zcopy's done comes when the message is delivered; else during the call. */
    uint32_t sink_min;
    bool done_late;

    /* The peer is lost before the n-th delivery (or question for a sink) from now on; 0: never. What is under way is told so
     * before tp_lost, or after. */
    uint32_t lose;
    bool done_after_lost;
    bool sever_counts; /* and does nothing else */

    bool no_bulk; /* bulk operations fail, and nothing else does */
    bool bulk_at_once; /* who comes second to a bulk transfer ends it during its call; else both ends come by progress */

    uint32_t keep; /* messages that are kept at a time; more are copied */

    uint32_t latency_ns[MOCK_DOMAINS][MOCK_DOMAINS]; /* from a domain here to one there; 0: as tp_mock.cost says */

    bool played;      /* of endpoints opened from now on: the test is the peer */
    uint64_t handled; /* what tp_ops.handled says of a played peer; UINT64_MAX: it does not know */

    int core; /* the core that tp_ops.cores says the peer is on; -1: it says nothing */
    bool crowded, shares_cores; /* what else the peer says, and what tp_ops.shares_cores does */
};
#define MOCK_SCRIPT                                                                                             \
    {.caps = TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP | TP_CAP_KEEP | TP_CAP_BULK, .max_short = 8192, .room = 64, \
     .keep = 8, .core = -1}

struct mock_count {
    uint64_t sent[TP_AM_MAX]; /* by id, accepted */
    uint64_t refused, delivered, copies, arena_maps;
    _Atomic uint64_t nudges;
    uint64_t sinks, sunk; /* sinks asked for, and given */
    uint64_t severed, kept, asked_to_keep; /* the last: of either domain */
    uint64_t bulk; /* transfers that both sides have begun */
    uint64_t awaits_handled; /* calls of tp_ops.await_handled */
};

extern struct mock_script mock_script;
extern struct mock_count mock_count;

/* A message to a played peer. */
struct mock_message {
    unsigned id;
    uint64_t h0, h1;
    size_t n; /* bytes of the payload */
};

/* Takes the oldest message that was sent to a played peer, with up to `room` bytes of its payload. The message is then over for its
 * sender. False: there is none. */
bool mock_take(struct mock_message *, void *payload, size_t room);

#endif
