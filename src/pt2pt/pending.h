/*
 * pending.h - operations that wait for room at a peer: sends, and messages of the library's own and of layers above
 * (say.h).
 *
 * They belong to a lane and a peer (struct peer_lane). Those of one lane go out in the order in which they came, and what
 * the lane sends to the peer later waits behind them. Between lanes there is no order: nothing that one lane sends refers to
 * what another one has sent, but for the word that all is over (doubt.c, pending_elsewhere). A peer is also held as a whole while its connection is being closed
 * (closing.h), for which no lane sends anything.
 *
 * While operations of any lane wait, or the peer is held, the short way is closed (peer.short_max): it looks at no lane.
 * Lanes are counted for that (peer.waiting), before the call that parks an operation returns, and until the last operation
 * of the lane is out. So a send that follows a parked one by the order of the program finds the short way closed, in whatever
 * thread. The count and short_max change together, under a leaf lock where there are threads: a lane that opens the
 * short way must not overwrite that another one has just closed it.
 *
 * An operation contains a struct pending (obj/request.h), and has a table of what is done with it. Neither the queue
 * (pending.c), the end of a peer (lost.c) nor the end of a connection (closing.c) knows what the operation is:
 *
 *     pending_park ----> waits ----> attempt: true      out of the way
 *                        ^   |       attempt: false     it waits on, at the front
 *                        |   +-----> end                the peer is lost
 *                        |   +-----> pending_withdraw   its owner takes it back
 *                        +---------- anew               the connection was closed, and it may wait for the next one
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_PENDING_H
#define TERN_PT2PT_PENDING_H

#include "obj/request.h"
#include "pt2pt/lane.h"
#include "transport/peer.h"

/* What is done with an operation of one kind. All members are there. They are called when the operation is in no list;
 * none blocks, and all of them may start, park and end other operations. */
struct pending_ops {
    /* One attempt to send it to the peer, which is connected and not lost. True: it is out of the way, sent or failed for
     * good, and its memory may be gone. False: there is no room (TERN_AGAIN). */
    bool (*attempt)(struct lane *, struct peer *, struct pending *);

    /* The peer is lost, and peer.lost says why: ends the operation. */
    void (*end)(struct lane *, struct peer *, struct pending *);

    /* The connection was closed in order before the operation went out, and the struct peer may be gone. Parks the
     * operation at the peer that has this index now, which peer_get connects, or ends it. */
    void (*anew)(struct lane *, uint32_t index, struct pending *);
};

/* Nothing of this lane waits for the peer, and the peer is not held: an operation may be attempted at once. */
bool pending_is_clear_long(struct lane *, struct peer *) TERN_COLD;
static inline bool pending_is_clear(struct lane *l, struct peer *p) { return likely(!peer_waiting(p)) || pending_is_clear_long(l, p); }

/* Queues an operation behind others of the lane for the same peer: progress attempts it when there is room. 0, or
 * TERN_ERR_NOMEM in words; in the first lane, and behind pending_prepare, it does not fail. */
int pending_park(struct lane *, struct peer *, struct pending *, const struct pending_ops *) __attribute__((warn_unused_result));

/* From now on operations of the lane can wait for the peer. 0, or TERN_ERR_NOMEM in words. */
int pending_prepare(struct lane *, struct peer *);

/* Takes the operation out of the queue, if it is there: false if it is not, and has gone out. */
bool pending_withdraw(struct lane *, struct peer *, struct pending *);

/* Ends all operations of the lane that wait for a peer, which is lost. */
void pending_end_all(struct lane *, struct peer *) TERN_COLD;

/* Operations of lanes beside the first wait for the peer. */
static inline bool pending_elsewhere(const struct peer *p) { return peer_waiting(p) > p->held + p->first.waits; }

/*
 * For closing.c, which works in the first lane: all that is sent to peers of other jobs is.
 *   pending_hold      nothing is attempted from now on
 *   pending_let_go    what waits is, again
 *   pending_any       an operation waits, whether the peer is held or not
 *   pending_take      the operations that wait are moved to a list, and the peer is not held any more. The short way stays closed
 *   pending_give      the same back
 *   pending_all_anew  the connection to the process with this index has been closed: what waited for it, the list of which
 *                     is `waiting`, goes out by the next connection, or is void
 */
void pending_hold(struct peer *) TERN_COLD;
void pending_let_go(struct lane *, struct peer *) TERN_COLD;
static inline bool pending_any(const struct peer *p) { return !list_empty(&p->first.ops); }
void pending_take(struct peer *, struct link *waiting) TERN_COLD;
void pending_give(struct peer *, struct link *waiting) TERN_COLD;
void pending_all_anew(struct lane *, uint32_t index, struct link *waiting) TERN_COLD;

#endif
