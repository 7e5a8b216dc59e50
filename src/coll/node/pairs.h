/*
 * pairs.h - large collectives inside a node: one transfer for each pair of ranks that have something for each other,
 * copied from memory to memory by either of the two, whichever is inside the library. Of what goes one way each side copies
 * half; where both ranks have something for each other each side receives, and helps when that is over.
 *
 *   in the block, behind the big slots, for each of `places` operations:
 *
 *     pair[P][P]   row: the sender, column: the receiver; a line each
 *                  | from, bytes, chunk, sent | to, room, taken | next, done | unused |
 *                    the sender's               receiver's        anybody's
 *     tally[P]     | left | error | unused |           transfers of a rank that are not over; a line each
 *
 * A rank writes the halves that it has something for in its row and column, with the number of the operation (`sent`,
 * `taken`), and its tally, then sets its flag (node_signal). When both halves of a pair are there, either side takes
 * the next chunk by adding 1 to `next`, copies it, and adds 1 to `done`; who copies the last one takes the transfer out
 * of both tallies, and wakes the other side if that was its last. An operation is over at a rank whose tally is 0. So a
 * rank that computes has all done by those that wait for it.
 *
 * A transfer counts for a rank only if its own half is not empty. If the other half is (the lengths differ, which is an
 * error of the program's), it is over as soon as that is known: the other's flag is set, and the half is not there.
 *
 * Operation s uses the lines s modulo `places`, when all ranks have finished s - places (node_free_slots); a rank
 * touches them only until it has finished itself. What a rank has for itself is not in the lines.
 *
 * Nothing is copied before it is known that all ranks reach all others' memory (NODE_REACHES), which each says of itself
 * before its first such operation. If it is not so, these operations are messages, see background.c.
 *
 * Threads: everything but the shared lines is under the lane's lock.
 */
#ifndef TERN_COLL_NODE_PAIRS_H
#define TERN_COLL_NODE_PAIRS_H

#include "coll/node/block.h"

#define NODE_PAIRS_RANKS 64   /* the lines grow with the square of the ranks */
#define NODE_PAIRS_LINES 4096 /* of pairs in a block, about: with many ranks there are places for fewer operations */

struct node_pair {
    TERN_ALIGNED(CACHE_LINE) uint64_t from; /* address at the sender; 0: it had no memory to pack */
    uint64_t bytes;
    uint64_t to; /* address at the receiver; 0 as above */
    uint64_t room;
    _Atomic uint32_t next;        /* chunk that nobody has claimed yet */
    _Atomic uint32_t done;        /* chunks copied */
    uint32_t chunk;               /* bytes of one */
    _Atomic uint32_t sent, taken; /* the operation that the sender's and the receiver's half are of */
    uint32_t pad[3];
};
static_assert(sizeof(struct node_pair) == CACHE_LINE, "shared layout");

struct node_tally {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t left;
    _Atomic int32_t error; /* the first one of its transfers */
};
static_assert(sizeof(struct node_tally) == CACHE_LINE, "shared layout");

static inline uint64_t node_pair_bytes(const struct node_pair *p) { return p->bytes < p->room ? p->bytes : p->room; }

static inline uint32_t node_pair_chunks(const struct node_pair *p)
{
    uint64_t n = node_pair_bytes(p);
    return n ? (uint32_t)((n - 1) / p->chunk) + 1 : 0;
}

/* The next chunk of so many, or `chunks`: none is left. relaxed: only who gets which matters; addresses came with the
 * flags. */
static inline uint32_t node_pair_claim(struct node_pair *p, uint32_t chunks)
{
    if (atomic_load_explicit(&p->next, memory_order_relaxed) >= chunks) return chunks;
    uint32_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
    return i < chunks ? i : chunks;
}

/* A claimed chunk is there. True: it was the last one. acq_rel: who says so answers for the copies of the other. */
static inline bool node_pair_done(struct node_pair *p, uint32_t chunks)
{
    return atomic_fetch_add_explicit(&p->done, 1, memory_order_acq_rel) + 1 == chunks;
}

/* Takes one transfer out. True: it was the last one. release: pairs with the acquire of the rank that looks for 0. */
static inline bool node_tally_less(struct node_tally *t)
{
    return atomic_fetch_sub_explicit(&t->left, 1, memory_order_acq_rel) == 1;
}

/* The first error counts. relaxed: ordered by the count. */
static inline void node_tally_note(struct node_tally *t, int error)
{
    int32_t none = 0;
    atomic_compare_exchange_strong_explicit(&t->error, &none, error, memory_order_relaxed, memory_order_relaxed);
}

static inline struct node_tally *node_tally_of(struct node *n, uint32_t seq, int rank)
{
    return &n->tallies[(size_t)(seq % n->places) * (size_t)n->size + (size_t)rank];
}

/* The lines behind `base`, or NULL to measure; bytes. Sets what the node keeps of them. */
size_t node_pairs_layout(struct node *, char *base);

/* ---- one of them ---- */

struct node_pairs;

/* Says whether this rank reaches the memory of all others, unless it has done so. Takes the lane's lock. */
void node_tell_reach(struct node *);

/* What this rank has to do in operation `seq`, which is this call; the arrays are not needed any more on return. The
 * call's types are held by the caller. NULL: memory is out. */
struct node_pairs *node_pairs_new(struct node *, const struct coll_call *, bool blocking, uint32_t seq);
void node_pairs_free(struct node_pairs *);

enum node_pairs_state { NODE_PAIRS_GO_ON, NODE_PAIRS_OVER, NODE_PAIRS_REFUSED /* not all may reach all */ };

/*
 * Of a v-collective, whose flags are those of its slots: says where the long blocks are, if the lines are free (else
 * false); when the flags are set, wakes who waits; copies a chunk, true when all is over, with its result in *rc_p if
 * that is 0.
 */
bool node_pairs_begin(struct node_pairs *);
void node_pairs_wake(struct node_pairs *);

/* Is there something to copy between this rank and one without a helper? Nobody but this rank's helper may do it while
 * both compute. */
bool node_pairs_are_ours(const struct node_pairs *) TERN_COLD;

bool node_pairs_go_on(struct node_pairs *, int *rc_p);

/* Sender and receiver disagree: rank `from` has a long block where this one expects a short one, or the other way
 * round. */
void node_pairs_refuse(struct node *, uint32_t seq, int from);
void node_pairs_expect_none(struct node_pairs *, int from);

/* One step: says where the buffers are, or copies a chunk. Over or refused: the operation is finished in the node, and
 * *rc_p is its result. Lock held. */
enum node_pairs_state node_pairs_step(struct node_pairs *, int *rc_p);

/* ---- what a rank sends and receives (pairs_ends.c) ---- */

struct node_end {
    char *at; /* packed data; NULL: there is none, or no memory for it */
    uint64_t bytes;
    const void *buf; /* the user's block */
    int64_t count;
    struct type *type;
    bool own;  /* a send: a copy is made in any case, the block is received into */
    bool copy; /* at is one */
};

struct node_ends {
    struct node_end *send, *recv; /* one for each rank */
    int size, rank;
};

/* Of a call, with both columns zeroed; nothing is packed yet. */
void node_ends_fill(struct node_ends *, const struct coll_call *);
void node_ends_free(struct node_ends *);

void node_ends_open(struct node_ends *);   /* packs what has gaps; not what a rank has for itself */
void node_ends_unpack(struct node_ends *); /* all has come */

#endif
