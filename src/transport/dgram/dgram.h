/*
 * dgram.h - messages of up to 16 MB between processes, in order and exactly once, over
 * datagrams that may be lost, doubled, reordered, delayed, damaged, forged or repeated by
 * a stranger. For few and rare messages: the wire-up of spawned processes, and of
 * connect and accept.
 *
 *     carrier (dgram_wire)      what carries datagrams, such as a UDP socket (wire.h)
 *     endpoint (struct dgram)   one carrier, one key, an id that was never used before
 *     card                      the endpoint's id and address as bytes, for others
 *     peer (dgram_peer)         another endpoint: made from its card, or by its first packet
 *
 * These are not the wires, cards and peers of transport.h, of which this layer is independent.
 *
 * Messages are cut into segments that fit into a datagram. A window of them is under way at a
 * time; the other side says which have come, and missing ones are sent again: when one has come
 * that was sent three transmissions later, or after a time that follows the measured round trips
 * (RFC 6298, with Karn's rule), doubled each time. The window begins small, grows with
 * what arrives, and is halved by loss (RFC 5681), so that neither a full receiver nor a
 * bad path is flooded.
 *
 * There is no connection to be opened: the first packet carries data and the sender's
 * card, its answer carries data. A packet of a sender without the key has no effect, costs the
 * check of one tag, and nothing is kept about it. Old packets of senders with the key have no
 * effect either: dgram.c says why.
 *
 * Nothing runs by itself: dgram_progress does all the work. The owner calls it when the
 * carrier's descriptor is readable (dgram_wire.fd) and at dgram_next_timeout, or leaves that to
 * the progress of the library (dgram_step).
 *
 * A peer is given up when it does not answer for `patience`, or at once when its host says that nobody listens at its address. Where
 * dgram_progress was not called for 2 s and more, 1 s of them counts: this process was stopped or has computed, and the peer perhaps, too.
 * A peer on this host that has been heard before is given more time (DGRAM_NEAR): if its process had ended, the host would say so,
 * and it may compute for long.
 *
 * A peer that has introduced itself is a newcomer until the owner takes a message of it, or opens it by its card. Newcomers are bounded in
 * number and in memory (DGRAM_NEWCOMERS, DGRAM_NEWCOMER_BYTES), so that who has the key, or repeats packets of those that have it, cannot
 * exhaust the process: the one that has been silent for longest is dropped, and told so. What is kept of a message that is coming is at
 * most twice what has come of it. Messages of others are bounded by what the owner takes.
 *
 * Why so, and what was measured: doc/decisions/datagrams.md.
 *
 * Functions that can fail return 0 or a code with words.
 *
 * Threads: an endpoint and its peers belong to one thread at a time. Call-backs may send, and
 * forget peers; they may not call dgram_progress or dgram_close.
 */
#ifndef TERN_TRANSPORT_DGRAM_H
#define TERN_TRANSPORT_DGRAM_H

#include "base/list.h"
#include "transport/dgram/packet.h"
#include "transport/progress.h"

#define DGRAM_MESSAGE ((size_t)16 << 20) /* bytes of the longest message */
#define DGRAM_NEAR 60 /* times the patience */
#define DGRAM_NEWCOMERS 4096 /* at an endpoint at a time ... */
#define DGRAM_NEWCOMER_BYTES ((size_t)64 << 20) /* ... with so much of messages */

struct dgram;
struct dgram_peer;

/* A message that is sent. It and `data` are memory of the caller's, and stay until `done` is called. */
struct dgram_message {
    struct link link; /* ours */
    const void *data;
    size_t n; /* bytes; may be 0 */
    /* Called once. 0: the other process has all of it; else why not, with words in err_words. */
    void (*done)(struct dgram_message *, int rc);
};

struct dgram_params {
    struct dgram_wire *wire; /* the carrier; dgram_open takes it, and closes it if it fails */
    const struct crypto *crypto;
    const uint8_t *secret;   /* CRYPTO_KEY bytes that all endpoints have which may talk; read by dgram_open only */
    uint64_t patience;       /* ns after which a peer that does not answer is given up */
    unsigned window;         /* segments under way to a peer at a time, at most; 2 .. DGRAM_WINDOW */
    unsigned seq_bits;       /* of segment numbers on the wire: 8 .. 32, equal at both ends */

    void *arg;
    /* A message has come: n bytes, valid during the call. false: not now; it is offered again by each progress, and the
     * peer is held back meanwhile. */
    bool (*deliver)(void *arg, struct dgram_peer *, const void *data, size_t n);
    /* A peer is given up; words in err_words. Its messages are done already; it stays until dgram_forget. May be NULL. */
    void (*failed)(void *arg, struct dgram_peer *, int code);
};

/* What has happened, for tests and statistics. */
struct dgram_stats {
    uint64_t segments; /* of messages, each counted once */
    uint64_t resent;   /* segments sent again */
    uint64_t acks;     /* packets without data */
    uint64_t rounds;   /* retransmission timers that ran out */
    uint64_t twice;    /* segments that came again */
    uint64_t refused;  /* datagrams that are not packets, or of no genuine origin */
    uint64_t messages; /* delivered */
    uint64_t dropped;  /* newcomers, as they were too many */
    uint64_t newcomers, newcomer_bytes; /* now, with the memory for what comes of them */
};

/* The parameters as TERN_DGRAM_TIMEOUT has them; wire, secret, crypto and call-backs are left to the caller. */
void dgram_params_init(struct dgram_params *);

/* Makes an endpoint. TERN_ERR_ARG: a parameter, or TERN_DGRAM_FAULTS, is wrong. TERN_ERR_NOMEM. */
int dgram_open(struct dgram **, const struct dgram_params *);

/* Ends everything: messages under way are done with TERN_ERR_PEER. */
void dgram_close(struct dgram *);

/* Writes the card; returns its length, at most DGRAM_CARD. */
size_t dgram_card(const struct dgram *, uint8_t *bytes);

/* The peer with that card: the one that is there already, or a new one. TERN_ERR_ARG: no usable card. TERN_ERR_PEER: it
 * has been forgotten (dgram_forget), or has gone, as this endpoint has its address. TERN_ERR_NOMEM. */
int dgram_peer_open(struct dgram *, const void *card, size_t n, struct dgram_peer **);

/* Sends nothing more to the peer and delivers nothing more from it; messages under way to it are done with
 * TERN_ERR_PEER. The same process cannot become a peer of this endpoint again. Messages that it sent before are still
 * acknowledged. */
void dgram_forget(struct dgram_peer *);

/* While a peer is watched, it is asked now and then whether it is there, although nothing is sent to it: for a caller that waits for a
 * message from it. One that does not answer is given up as always. */
void dgram_watch(struct dgram_peer *, bool);

/* Takes nothing more of the peer, and acknowledges nothing more: it does not learn that what it sends from now on has come. What is
 * sent to it goes on. */
void dgram_deafen(struct dgram_peer *);

/* Sends a message after all earlier ones to that peer; no packet leaves before dgram_progress. A code is returned, and
 * `done` is not called, if the message is too long (TERN_ERR_ARG), the peer has been given up (TERN_ERR_PEER), or
 * memory is out. */
int dgram_send(struct dgram_peer *, struct dgram_message *);

/* Takes what has come, sends what may go. `now` (ns of any clock) never goes back. Returns the number of datagrams taken. */
int dgram_progress(struct dgram *, uint64_t now);

/* When dgram_progress is to be called though nothing came; UINT64_MAX: never; 0: at once. */
uint64_t dgram_next_timeout(const struct dgram *);

/* The endpoint as a step of progress: from progress_open of it to progress_close, whoever makes progress or sleeps in this
 * process drives the endpoint, which is under the lane's lock then, and the owner need not call dgram_progress. A
 * `deliver` that takes messages again after it has refused one calls progress_hurry. Closed before the endpoint is. */
struct step *dgram_step(struct dgram *);

/* Is everything that was sent acknowledged, and has no packet come since `since`? A process that is about to end should
 * wait until then, with `since` a few round trips ago: its last acknowledgement may have been lost. */
bool dgram_quiet(const struct dgram *, uint64_t since);

struct dgram_wire *dgram_wire_of(const struct dgram *);
struct dgram_stats dgram_stats(const struct dgram *);

/* The numbers of the two endpoints, which no others have had or will have. */
uint64_t dgram_id(const struct dgram *);
uint64_t dgram_peer_id(const struct dgram_peer *);

/* Where a peer is reached. */
const struct dgram_addr *dgram_peer_addr(const struct dgram_peer *);

/* The caller's own word about a peer. */
void dgram_peer_set_tag(struct dgram_peer *, void *);
void *dgram_peer_tag(const struct dgram_peer *);

#endif
