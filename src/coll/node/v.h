/*
 * v.h - gatherv, scatterv, alltoallv and alltoallw inside a node: blocks whose lengths only sender and receiver
 * know.
 *
 * All ranks take part by slots, whatever the lengths. A block that has room lies in the sender's slot (scatterv: in the
 * receiver's) with its length beside the flag. Of a longer one the slot says so:
 *
 *   lent        blocking calls, once all ranks know that all may copy: where it is in the sender's memory, and its
 *               length. The receiver copies it, and takes one from the sender's count of blocks that it has lent
 *               (struct node_done), which the sender waits for. Both have nothing else pending.
 *   by pairs    (pairs.h) nonblocking calls, once all know that
 *   by message  before: such blocks are one call more, of the same kind, in which the others are empty (node_v_rest)
 *
 *   gatherv, scatterv   length = bytes, BY_MESSAGE or LENT; the payload as in all operations
 *   alltoallv, -w       lengths[to] = bytes, in the slot's own line with an equal share for each rank; IN_BIG;
 *                       IN_MESSAGE (more than 8 ranks: always in the big slot)
 *                       big slot: an equal share for each rank: | length, BY_MESSAGE or LENT (4) | 4 unused | payload |
 *   LENT                payload = | address (8) | bytes (8) |
 */
#ifndef TERN_COLL_NODE_V_H
#define TERN_COLL_NODE_V_H

#include "coll/node/block.h"

#define NODE_V_PREFIX 8 /* bytes before the payload of a share of the big slot */

static inline bool node_v_is(enum coll_kind k)
{
    return k == COLL_GATHERV || k == COLL_SCATTERV || k == COLL_ALLTOALLV || k == COLL_ALLTOALLW;
}

static inline bool node_v_to_all(enum coll_kind k) { return k == COLL_ALLTOALLV || k == COLL_ALLTOALLW; }

/* Have the big slots of so many ranks room for what this kind needs at least? */
bool node_v_suits(enum coll_kind, int ranks);

void node_v_shares(struct node *); /* sets share and small_share */

/* Does this rank write to big slots? */
bool node_v_big(const struct node *, const struct coll_call *);

/*
 * Are all blocks of this rank so short that nothing else has to be asked about the call: they lie in lines and slots of middle
 * size? Not before the first blocking call of the kind, which settles how long blocks go, has said so.
 */
bool node_v_is_short(const struct node *, const struct coll_call *);
void node_v_open_short(struct node *, enum coll_kind);

/*
 * Does this rank send or get blocks that have no room? Then *rest is a call of those alone, for messages, and *mem what
 * it lives in, the caller's to free; NULL: memory is out.
 */
bool node_v_long(const struct node *, const struct coll_call *);
void node_v_rest(const struct node *, const struct coll_call *, struct coll_call *rest, int64_t **mem);

/* The same blocks, for pairs.h. */
struct node_ends;
void node_v_ends(const struct node *, const struct coll_call *, struct node_ends *);

/* May the long blocks of this blocking call be lent? All ranks know that alike. */
bool node_v_may_lend(const struct node *, const struct coll_call *);

/* Does one that has long blocks here so; 0 or a code. Nothing is pending. */
int node_v_lend(struct node *, const struct coll_call *);

/* In a payload, by the sender: where its block for a rank is; by the receiver: takes it, and gives it back. */
void node_v_say_lent(const struct node *, char *payload, int to);
int node_v_take_lent(struct node *, int from, const char *payload);

/* The halves, as in struct node_op. A take fails (TERN_ERR_TRUNCATE) when sender and receiver disagree. */
int node_put_gatherv(struct node *, uint32_t seq, const struct coll_call *);
int node_put_scatterv(struct node *, uint32_t seq, const struct coll_call *);
int node_put_alltoallv(struct node *, uint32_t seq, const struct coll_call *);
int node_take_v(struct node *, uint32_t seq, const struct coll_call *); /* of gatherv, alltoallv, -w */
int node_take_scatterv(struct node *, uint32_t seq, const struct coll_call *);

/*
 * After a take that failed: of rank r, a message comes that nobody expects (1), or one is expected that will not come
 * (-1).
 */
int node_v_disagrees(struct node *, uint32_t seq, const struct coll_call *, int r);

#endif
