/*
 * wires.h - the transports of this process: opened as TERN_TRANSPORTS lists them, described on its card, looked at
 * together. Some are polled by loads; a look at others is a system call, so they are looked at more rarely (tp_ops.cost);
 * progress sources (progress.h) are looked at with those, and what waits for room is tried behind all. Some wake sleepers
 * by a doorbell, others by a descriptor.
 *
 * A card is a list of the cards of all of them, each ahead of it its name; a length of 0 ends it:
 *     | name length (1) | name | card length (1) | card | ... | 0 |
 * A transport with several domains has a part for each, "NAME:DOMAIN". TERN_TRANSPORTS opens all of them by NAME, and one
 * by NAME:DOMAIN. A part named "am" is no transport's: it is the number of the ids of messages (am.h).
 *
 * Threads: under the lane's lock, but for wires_sleep.
 */
#ifndef TERN_TRANSPORT_WIRES_H
#define TERN_TRANSPORT_WIRES_H

#include "transport/transport.h"

/* One that is open: a transport, or a domain of it. */
struct wire {
    const struct tp_ops *ops;
    struct tp_dom *dom;
    const char *name; /* on cards and in words: the transport, or "TRANSPORT:DOMAIN" */
};

/* A way to a process: a wire of this process, and the card of a wire of that one. */
struct wire_path {
    const struct wire *wire;
    const uint8_t *card; /* a part of the process's card */
    size_t n;
    struct tp_cost cost; /* see tp_ops.cost_to */
};

int wires_open(void);

/* Other jobs are going to be connected. Transports that TERN_TRANSPORTS lists and that were left out, since no process
 * of the own job needs them, are opened. 0, or a code with words; that there is none to open is no failure. */
int wires_open_for_others(void) TERN_COLD;
extern bool wires_others; /* has it been called? For env.c */

void wires_close(void);
bool wires_beyond_node(void); /* one of them goes to other hosts */
bool wires_all_map(void);     /* none reaches a peer without mapping its memory (tp_ops.map) */
const struct wire *wires_at(int i); /* those that are open, in the order of TERN_TRANSPORTS; NULL behind the last */
const struct wire *wires_delivering(void); /* within a handler: what its message came by. NULL: nothing has come so far. A
                                            * message of this process to itself may be within a handler of another wire */
const char *wires_absent(void); /* why the last one that could not be opened could not: ": words", or "" */

/* Closes the way to one peer. */
void wires_ep_close(struct tp_ep *);

/* See tp_ops.peer_close: 0 when all of them are done with the peer. */
int wires_peer_close(struct peer *);

/* Adds their cards to the n bytes of the card, which has room for `cap`. How many there are then, or a code. */
int wires_cards(uint8_t *card, size_t n, size_t cap);

/* The part of a card that has this name, NULL if there is none or the card is cut short. */
const uint8_t *wires_card_part(const uint8_t *card, size_t n, const char *name, size_t *len);

/* Has the process with this card the same ids of messages? */
bool wires_same_messages(const uint8_t *card, size_t n);

/* The one with the least latency to the process with this card: of each of our domains to each of its domains of the same
 * transport. Of equal ones the first in the order of TERN_TRANSPORTS, here and then there. False: none reaches it. */
bool wires_best(const uint8_t *card, size_t n, struct wire_path *);

int wires_progress(int budget);      /* messages delivered */
int wires_progress_cheap(int budget); /* the same without those that need system calls */
void wires_cores(bool gates, cpu_set_t *); /* adds those of local peers, see tp_ops.cores */
struct bell *wires_bell(void);       /* the doorbell of this process */
bool wires_idle(bool want_room);     /* see tp_ops.idle */
bool wires_drained(void);            /* see tp_ops.drained */
void wires_wait_lasts(void) TERN_COLD; /* see tp_ops.wait_lasts */

/* Where the launcher does not tell of deaths: are there processes on this node whose ends are not watched for yet? Has them
 * watched as far as they are known; keeps the words of the last failure. And see tp_ops.had_left. */
extern TERN_HIDDEN bool wires_unwatched;
void wires_watch(void) TERN_COLD;
bool wires_had_left(uint32_t index) TERN_COLD;

/* Sleeps as bell_announce said: until the bell rings after `ticket`, one of the gates in `words` opens, or a socket has
 * something; at most for most_ns. Without the lane's lock. */
void wires_sleep(struct bell *, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns);

/* The descriptors that say that a socket has something, at most BELL_FDS_MAX; how many. */
int wires_wait_fds(int *fds);

/* What sleepers wait for has changed: all threads of this process get up, and look again. On return none polls what it
 * polled before. */
void wires_wake_all(void) TERN_COLD;

/* Something has come that a sleeping thread of this process may wait for, and does not see. */
void wires_wake_others(void);

/* For progress.c. wires_poll_start: from now on sleepers poll descriptors; call wires_wake_all behind it. wires_poll_stop:
 * they do so only if a transport has a descriptor; call wires_wake_all before it. */
int wires_poll_start(void);
void wires_poll_stop(void);

#endif
