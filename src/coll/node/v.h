/*
 * v.h - gatherv, scatterv, alltoallv and alltoallw inside a node: blocks whose lengths only sender and receiver
 * know.
 *
 * All ranks take part by slots, whatever the lengths. A block that has room lies in the sender's slot (scatterv: in the
 * receiver's) with its length beside the flag. Of a longer one the slot says so:
 *
 *   by pairs    (pairs.h) if all ranks reach all others' memory
 *   by message  if not: such blocks are one call more, of the same kind, in which the others are empty
 *
 * What a rank has for itself goes the same way if it is as long.
 *
 *   gatherv, scatterv   length = bytes, BY_MESSAGE; the payload as in all operations
 *   alltoallv, -w       lengths[to] = bytes, in the slot's own line with an equal share for each rank; IN_BIG;
 *                       IN_MESSAGE (more than 8 ranks: always in the big slot)
 *                       big slot: an equal share for each rank: | length, BY_MESSAGE (4) | 4 unused | payload |
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

/* Does this rank send or get blocks that have no room, or has it one for itself? */
bool node_v_long(const struct node *, const struct coll_call *);

/* Bytes of the largest block that goes through the slots. */
size_t node_v_room(const struct node *, const struct coll_call *);

/* The halves, as in struct node_op. A take fails (TERN_ERR_TRUNCATE) when sender and receiver disagree. */
int node_put_gatherv(struct node *, uint32_t seq, const struct coll_call *);
int node_put_scatterv(struct node *, uint32_t seq, const struct coll_call *);
int node_put_alltoallv(struct node *, uint32_t seq, const struct coll_call *);
int node_take_v(struct node *, uint32_t seq, const struct coll_call *); /* of gatherv, alltoallv, -w */
int node_take_scatterv(struct node *, uint32_t seq, const struct coll_call *);

#endif
