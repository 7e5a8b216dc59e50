/*
 * inter.h - what the builders of collectives between two groups share: who is who, and
 * trees within the own group.
 *
 * Each group has a leader, its rank 0. Within a group and between groups tags are apart
 * from each other, since the peers are.
 */
#ifndef TERN_COLL_ALG_INTER_H
#define TERN_COLL_ALG_INTER_H

#include "coll/alg/alg.h"

/* In the operations with a root: the root itself, the others of its group, which do nothing, and the other group. */
enum inter_role { INTER_ROOT, INTER_IDLE, INTER_MEMBER };
enum inter_role inter_role(const struct coll_shape *);

/* Rank i of the other group as a peer. */
static inline int inter_peer(const struct coll_shape *s, int i) { return s->size + i; }

/* The block that comes from rank i of the other group, regular or not. */
static inline struct goal_part inter_in_block(const struct coll_shape *s, const struct coll_given *v, int i)
{
    if (v->recv_len) return coll_recv_block(s, v, i);
    return (struct goal_part){goal_mem(GOAL_RECV_BUF, i * s->from), s->from};
}

/* Data that is at `at` after `ready`. */
struct inter_data {
    struct goal_mem at;
    goal_id ready;
};

/* From the leader, which has it after `have`, to all of the group down a tree. Returns what brings it here. */
goal_id inter_down(struct goal_build *, const struct coll_shape *, int tag, struct goal_mem buf, int64_t len, goal_id have);

/* The inputs of the group combined up a tree. Meaningful at the leader. */
struct inter_data inter_reduce(struct goal_build *, const struct coll_shape *, int tag, int64_t len);

/* The same in as many chunks as the group has ranks (coll_chunk): that of this rank, combined here. */
struct inter_data inter_reduce_chunk(struct goal_build *, const struct coll_shape *, int tag);

/* What all of the other group send, len bytes each, combined in their order in the receive buffer. */
void inter_fold(struct goal_build *, const struct coll_shape *, int tag, int64_t len);

/* Blocks of s->bytes in the send buffers of the group, up a tree: one behind the other at the leader. */
struct inter_data inter_gather(struct goal_build *, const struct coll_shape *, int tag);

#endif
