/*
 * node_block.h - the memory behind node.h: its layout, and a rank's view of it.
 */
#ifndef TERN_COLL_NODE_BLOCK_H
#define TERN_COLL_NODE_BLOCK_H

#include "base/sleep.h"
#include "obj/comm.h"

#define NODE_K 8       /* operations whose slots exist at the same time */
#define NODE_INLINE 48 /* bytes of payload that lie beside the flag */
#define NODE_RANKS_MAX 256

/* Counting arrivals of one operation in K (ranks that share cores). Every rank adds one in each counting operation. */
struct node_round {
    _Atomic uint32_t arrived;  /* ranks so far; the last one sets it back to 0 */
    _Atomic uint32_t released; /* number of the last operation that is */
};

struct node_head {
    struct gate gate; /* who waits for contributions */
    struct gate room; /* who waits for slots to be free again */
    _Atomic uint32_t fenced; /* some rank's sleep relies on the wakers' fences */
    TERN_ALIGNED(CACHE_LINE) struct node_round round[NODE_K];
};
static_assert(sizeof(struct node_head) == 2 * CACHE_LINE, "shared layout");

struct node_done {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t seq; /* last operation that this rank has finished */
};

struct node_slot {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t flag; /* number of the operation whose payload is here */
    uint32_t pad[3];
    char payload[NODE_INLINE];
};
static_assert(sizeof(struct node_slot) == CACHE_LINE, "a small contribution moves one line");

struct node {
    struct node_head *head;
    struct node_done *done;   /* [P] */
    struct node_slot *slots;  /* [K][P] */
    char *big;                /* [K][P] of big_bytes */
    size_t big_bytes;
    struct comm *comm;
    int rank, size;
    uint32_t seq;    /* the last operation begun */
    uint32_t safe;   /* slots of operations up to this number are known to be free */
    int seen;        /* scratch of the wait for all slots */
    bool counted;    /* arrivals are counted (more ranks than cores) */
    bool fenced;     /* what gate_check is told */
    void *block;     /* of the rank that owns the memory, else NULL */
    size_t bytes;
};

static inline struct node_slot *node_slot(struct node *n, uint32_t seq, int rank)
{
    return &n->slots[(seq % NODE_K) * (uint32_t)n->size + (uint32_t)rank];
}

static inline struct node_done *node_done(struct node *n, int rank) { return &n->done[rank]; }

/* Where a rank's payload of so many bytes lies. */
static inline char *node_payload(struct node *n, uint32_t seq, int rank, size_t bytes)
{
    if (bytes <= NODE_INLINE) return node_slot(n, seq, rank)->payload;
    return n->big + ((seq % NODE_K) * (size_t)n->size + (size_t)rank) * n->big_bytes;
}

#endif
