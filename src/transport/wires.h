/*
 * wires.h - the transports of this process: opened as TERN_TRANSPORTS lists them, described on its card, looked at
 * together, and compared to find the best path to a peer.
 *
 * Progress polls transports that need loads only in every turn. A look at others is a system call, so they have their
 * turn more rarely (tp_ops.cost), and open steps (progress.h) with them. Other steps of the process are polled after all
 * of them. Some transports wake sleepers by a doorbell, others by a descriptor.
 *
 * A card has a part for each wire, with the wire's name; a name length of 0 ends it:
 *     | name length (1) | name | part length (1) | part | ... | 0 |
 * A transport with several domains has a part for each, "NAME:DOMAIN". TERN_TRANSPORTS opens all of them by NAME, and
 * one by NAME:DOMAIN. Two parts belong to no transport: "am", a number for the ids of messages (am.h), and "set",
 * settings that processes compare (peer.c).
 *
 * Threads: under the lane's lock, except for wires_sleep, wires_wait_fds, wires_wake_others, and what says so.
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

/* Opens what TERN_TRANSPORTS lists, the bell of this process and its heap of shared memory. 0, or a code with words;
 * wires_close then gives back what is open. A listed transport that cannot be used here is left out. */
int wires_open(void);

/* Other jobs are going to be connected: opens the transports that TERN_TRANSPORTS lists and that were left out, since
 * no process of the own job needs them. 0, also if there is none to open; or a code with words. */
int wires_open_for_others(void) TERN_COLD;
extern bool wires_others; /* has it been called? For env.c */

void wires_close(void);
bool wires_beyond_node(void); /* one of them goes to other hosts */
bool wires_all_map(void);     /* none reaches a peer without mapping its memory (tp_ops.map) */
const struct wire *wires_at(int i); /* the i-th open wire, in the order of TERN_TRANSPORTS; NULL behind the last */

/* Within a handler: the wire that its message came by. NULL: nothing has come so far. The handler of a message of this
 * process to itself may be called within a handler of another wire, and is told that wire. */
const struct wire *wires_delivering(void);
const char *wires_absent(void); /* why the last transport that was left out cannot be used: ": words", or "" */

/* Gives back what ep_open has made for one peer, and what remote.c keeps of it (remote_forget). */
void wires_ep_close(struct tp_ep *);

/* See tp_ops.peer_close: 0 when all wires are done with the peer, else TERN_AGAIN. */
int wires_peer_close(struct peer *);

/* Adds their cards to the n bytes of the card, which has room for `cap`. How many there are then, or a code. */
int wires_cards(uint8_t *card, size_t n, size_t cap);

/* The part of a card that has this name, NULL if there is none or the card is cut short. */
const uint8_t *wires_card_part(const uint8_t *card, size_t n, const char *name, size_t *len);

/* Has the process with this card the same ids of messages? */
bool wires_same_messages(const uint8_t *card, size_t n);

/* The path with the least latency to the process with this card: each wire of this process is compared with each wire
 * of the same transport on the card. Of equal ones the first in the order of TERN_TRANSPORTS, here and then there.
 * False: none reaches the process. */
bool wires_best(const uint8_t *card, size_t n, struct wire_path *);

/* All wires, and the steps of the process: messages delivered, and what else happened. */
int wires_progress(int budget);
int wires_progress_cheap(int budget); /* the same without those that need system calls */
uint32_t wires_look_ns(void);         /* what most looks cost that find nothing */

/*
 * The two halves of it, once threads share the transports (wire_lock.h).
 *   wires_poll   each wire that no other thread polls; by any thread, and 0 in a handler. `all`: also those that need system
 *                calls, in turns
 *   wires_steps  the steps of the process; `all`: also open ones, in turns. Under the lock of the first lane
 *   wires_quiet  wires_idle without the steps; by any thread. False also if another thread is polling
 */
int wires_poll(int budget, bool all);
int wires_steps(bool all);
bool wires_quiet(bool want_room);

bool wires_cores(bool gates, cpu_set_t *); /* adds those of local peers, see tp_ops.cores */
struct bell *wires_bell(void);       /* the doorbell of this process */
bool wires_idle(bool want_room);     /* see tp_ops.idle */
bool wires_drained(void);            /* see tp_ops.drained */
void wires_wait_lasts(void) TERN_COLD; /* see tp_ops.wait_lasts */

/* Where the launcher does not tell of deaths (death.md). wires_unwatched: there are processes of this job on this node
 * that the watcher has not been given yet. wires_watch gives it those whose cards are there (tp_ops.watch), and leaves
 * the words of the last failure as they are. wires_how_ended: see tp_ops.how_ended. */
extern TERN_HIDDEN bool wires_unwatched;
void wires_watch(void) TERN_COLD;
enum tp_end wires_how_ended(uint32_t index) TERN_COLD;

/* Sleeps as bell_announce said: until the bell rings after `ticket`, one of the gates in `words` opens, or a socket has
 * something; at most for most_ns. Without the lane's lock. */
void wires_sleep(struct bell *, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns);

/* The descriptors that say that a socket has something, at most BELL_FDS_MAX; how many. */
int wires_wait_fds(int *fds);

/* The set of descriptors that sleepers poll has changed: wakes all sleeping threads of this process, which look again.
 * On return none polls the former set. */
void wires_wake_all(void) TERN_COLD;

/* A thread of this process has taken something that another, sleeping thread may wait for: wakes the latter. */
void wires_wake_others(void);

/* For progress_open.c. wires_turns: the steps that are open have changed. wires_poll_start: from now on sleepers poll descriptors;
 * call wires_wake_all after it. 0, or a code with words: there is no socket for the bell. wires_poll_stop: sleepers poll only if a
 * transport has a descriptor; call wires_wake_all before it. */
void wires_turns(void);
int wires_poll_start(void);
void wires_poll_stop(void);

#endif
