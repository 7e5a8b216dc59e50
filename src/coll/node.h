/*
 * node.h - small collectives inside a node: flags and payloads in one shared block
 * for each communicator, instead of messages (DESIGN: "signal / wait-flag").
 *
 * Every operation is single-stage: who has something leaves it in its slot, who
 * needs something waits for the slots and takes it. Nothing passes through a third
 * rank, so a rank that came late finds everything there.
 *
 *   block:  | struct node_head | done[P] | slots[K][P] of one line | big slots[K][P] |
 *
 *   slot:   | flag (4) | bytes (4) | 8 unused | payload (48) |   a longer payload lies in the big slot
 *
 * Operation number s of the communicator uses the slots k = s mod K. A slot is
 * written again K operations later; the writer first makes sure that every rank has
 * finished operation s - K, from `done` or from having met all ranks since.
 *
 * Waiting, with a core for each rank: on the flags themselves. With more ranks than
 * cores: arrivals are counted and only the last one wakes the others, all by one
 * system call, so that each rank is switched in once.
 *
 * Threads: collectives on one communicator come one after the other; the lane's lock
 * is taken for waiting only.
 */
#ifndef TERN_COLL_NODE_H
#define TERN_COLL_NODE_H

#include "coll/coll.h"

struct node;

/*
 * The node-local memory of `c` if an operation in which no rank contributes more than
 * `bytes` can go through it; NULL otherwise (then use messages). Collective at first use:
 * all ranks must ask with equal `bytes`. *rc_p: a code if making the memory failed.
 */
struct node *node_for(struct comm *c, int64_t bytes, int *rc_p);

/* At the end of the library: blocks not given back yet are forgotten. */
void node_forget_retired(void);

/* Nobody uses the library here any more: returns when all ranks have had what they want from blocks of this process. */
void node_settle(void);

/* The operations. Arguments as in coll.h; reductions: contiguous types only. */
int node_barrier(struct node *);
int node_bcast(struct node *, void *buf, int64_t count, struct type *, int root);
int node_reduce(struct node *, const void *sendbuf, void *recvbuf, int64_t count, struct type *, const struct op *,
                int root, bool all);
int node_gather(struct node *, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                struct type *rtype, int root, bool all);
int node_scatter(struct node *, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                 struct type *rtype, int root);
int node_alltoall(struct node *, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                  int64_t rcount, struct type *rtype);
int node_scan(struct node *, const void *sendbuf, void *recvbuf, int64_t count, struct type *, const struct op *,
              bool exclusive);
int node_reduce_scatter_block(struct node *, const void *sendbuf, void *recvbuf, int64_t rcount, struct type *,
                              const struct op *);

/*
 * Does the call through the node if it can: true, and its result in *rc_p. `bytes`: packed size of the buffer (bcast,
 * reductions) or of one rank's block (others), the same at all ranks.
 */
bool node_run(struct comm *, const struct coll_call *, int64_t bytes, int *rc_p);

#endif
