/*
 * direct.h - large collectives inside a node: ranks say where their buffers are,
 * and read and write each other's memory by single copies.
 *
 *     publish addresses (slots) -> copy straight from or to the others -> arrive; who was read or written waits for all
 *
 * Blocking calls only: somebody has to copy. For ranks with a core each; where they share cores wide slots are faster
 * (wide.h). Of what only one of two ranks gets each copies half, as of a message, instead.
 */
#ifndef TERN_COLL_NODE_DIRECT_H
#define TERN_COLL_NODE_DIRECT_H

#include "coll/node/block.h"

/* Is a call with so many bytes (as in node_run) for this? By what all ranks know alike. */
bool node_direct_suits(const struct comm *, const struct coll_call *, int64_t bytes);

/* Does it. Collective. False: the system does not let all ranks reach all others' memory, use messages; or *rc_p is a
 * code. */
bool node_direct_run(struct node *, const struct coll_call *, int *rc_p);

/* Of a call with an array of lengths that all ranks know (coll_has_blocks): the longest, else `bytes` as in node_run. */
int64_t node_longest_block(const struct coll_call *, int ranks, int64_t bytes);

/* ---- for the operations ---- */

/* Packed data of (count x type) as one piece of memory: the user's own, or a copy. */
struct node_flat {
    char *at;   /* NULL: memory is out */
    char *copy; /* at, if it is one */
    size_t bytes;
};

struct node_flat node_flat(const void *buf, int64_t count, const struct type *, bool packed, bool own);
void node_flat_end(struct node_flat *, void *buf, int64_t count, const struct type *, bool unpacked);

/* What all ranks have said in an operation that publishes. */
struct node_said {
    uint64_t place[NODE_RANKS_MAX][2];
};

/* 0 or a code (node_failed); node_say: a place of 0 bytes.
 * One rank says a place and a length to all, or each says two words; returned when it is known here. */
struct node_place {
    uint64_t at, bytes;
};
struct node_place node_say(struct node *, int root, struct node_place);
int node_say_all(struct node *, uint64_t first, uint64_t second, struct node_said *);

/* Arrives behind the copies; with `wait` returns when all have. */
void node_close(struct node *, bool wait);

/* n bytes from, or to, `place` of a rank's memory. 0 or a code with words. */
int node_fetch(struct node *, int rank, void *to, uint64_t place, size_t n);
int node_store(struct node *, int rank, uint64_t place, const void *from, size_t n);

int node_direct_reduce(struct node *, const struct coll_call *);         /* to a root, or to all */
int node_direct_reduce_scatter(struct node *, const struct coll_call *); /* blocks of one size */

#endif
