/*
 * node.c - the operations on a communicator's node-local block; see node.h for the
 * memory and node_block.c for how it is made.
 */
#include "coll/node.h"
#include "base/err.h"
#include "coll/node_block.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "type/cursor.h"

#include <string.h>

/* ---- waiting ---- */

struct wait_for {
    struct node *n;
    uint32_t seq;
    int rank; /* whose slot; -1: all */
};

static bool slot_is_set(struct node *n, uint32_t seq, int rank)
{
    /* acquire: pairs with the release in signal; the payload is there */
    return atomic_load_explicit(&node_slot(n, seq, rank)->flag, memory_order_acquire) == seq;
}

static bool slots_set(void *arg)
{
    struct wait_for *w = arg;
    struct node *n = w->n;
    if (w->rank >= 0) return slot_is_set(n, w->seq, w->rank);
    if (n->counted)
        return atomic_load_explicit(&n->head->round[w->seq % NODE_K].released, memory_order_acquire) == w->seq;
    for (; n->seen < n->size; n->seen++) /* those seen once need no second look */
        if (!slot_is_set(n, w->seq, n->seen)) return false;
    return true;
}

static void wait_until(struct node *n, bool (*ready)(void *), void *arg, struct gate *gate)
{
    if (ready(arg)) return;
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait(l, ready, arg, gate);
    lane_leave(l);
}

/* Waits for the contribution of one rank, or of all (rank -1). */
static void wait_slots(struct node *n, uint32_t seq, int rank)
{
    struct wait_for w = {n, seq, rank};
    n->seen = 0;
    wait_until(n, slots_set, &w, &n->head->gate);
    if (rank < 0) n->safe = seq - 1 + NODE_K; /* all have come to `seq`, so all have finished the one before */
}

static bool slots_free(void *arg)
{
    struct wait_for *w = arg;
    uint32_t least = w->seq;
    for (int r = 0; r < w->n->size; r++) {
        uint32_t done = atomic_load_explicit(&node_done(w->n, r)->seq, memory_order_acquire);
        if ((int32_t)(done - least) < 0) least = done;
    }
    if ((int32_t)(least + NODE_K - w->seq) < 0) return false;
    w->n->safe = least + NODE_K;
    return true;
}

/* Begins operation number n->seq + 1; its slots are free on return. */
static uint32_t begin(struct node *n)
{
    uint32_t seq = ++n->seq;
    if (unlikely((int32_t)(n->safe - seq) < 0)) {
        struct wait_for w = {n, seq, 0};
        wait_until(n, slots_free, &w, &n->head->room);
    }
    return seq;
}

/* ---- signalling ---- */

/* A slot of this operation has its payload. */
static inline void signal(struct node *n, uint32_t seq, int rank)
{
    atomic_store_explicit(&node_slot(n, seq, rank)->flag, seq, memory_order_release); /* pairs with slot_is_set */
}

/* Ranks that wait for sockets as well have to be woken one by one. */
static TERN_COLD void wake_pollers(struct node *n)
{
    struct lane *l = n->comm->lane;
    lane_enter(l);
    for (int r = 0; r < n->size; r++)
        if (r != n->rank) peer_wake(comm_index(n->comm, r));
    lane_leave(l);
}

/* Wakes who sleeps for what was signalled. */
static inline void announce(struct node *n)
{
    if (unlikely(gate_check(&n->head->gate, n->fenced))) wake_pollers(n);
}

/* This rank's contribution is there: where arrivals are counted, the last one speaks for all. True for the last. */
static bool arrive(struct node *n, uint32_t seq)
{
    signal(n, seq, n->rank);
    if (!n->counted) return false;
    struct node_round *r = &n->head->round[seq % NODE_K];
    /* acq_rel: the last one has seen everybody's payload and passes that on by `released` */
    if (atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel) + 1 != (uint32_t)n->size) return false;
    /* relaxed: the next count comes K operations later, behind `released` */
    atomic_store_explicit(&r->arrived, 0, memory_order_relaxed);
    return true;
}

static void release(struct node *n, uint32_t seq)
{
    atomic_store_explicit(&n->head->round[seq % NODE_K].released, seq, memory_order_release);
    announce(n);
}

static void arrive_and_tell(struct node *n, uint32_t seq)
{
    bool last = arrive(n, seq);
    if (last) release(n, seq);
    else if (!n->counted) announce(n);
}

/* This rank needs nothing more of the operation. */
static inline void finish(struct node *n, uint32_t seq)
{
    /* release: pairs with slots_free; our reads of the slots are over */
    atomic_store_explicit(&node_done(n, n->rank)->seq, seq, memory_order_release);
    if (unlikely(gate_check(&n->head->room, n->fenced))) wake_pollers(n);
}

/* ---- payloads ---- */

static inline void pack(char *to, const void *buf, int64_t count, const struct type *t)
{
    size_t n = (size_t)(count * t->size);
    if (likely(t->contig)) {
        if (n == 8) memcpy(to, (const char *)buf + t->true_lb, 8);
        else if (n) memcpy(to, (const char *)buf + t->true_lb, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, t, count, buf);
    type_pack(&c, to, n);
}

static inline void unpack(void *buf, int64_t count, const struct type *t, const char *from)
{
    size_t n = (size_t)(count * t->size);
    if (likely(t->contig)) {
        if (n == 8) memcpy((char *)buf + t->true_lb, from, 8);
        else if (n) memcpy((char *)buf + t->true_lb, from, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, t, count, buf);
    type_unpack(&c, from, n);
}

/* Place `rank` in a user's buffer of blocks of count elements. */
static inline char *block_at(const void *buf, int rank, int64_t count, const struct type *t)
{
    return (char *)(uintptr_t)buf + rank * count * t->extent;
}

/* ---- operations ---- */

int node_barrier(struct node *n)
{
    uint32_t seq = begin(n);
    arrive_and_tell(n, seq);
    wait_slots(n, seq, -1);
    finish(n, seq);
    return 0;
}

int node_bcast(struct node *n, void *buf, int64_t count, struct type *t, int root)
{
    uint32_t seq = begin(n);
    size_t bytes = (size_t)(count * t->size);
    if (n->rank == root) {
        pack(node_payload(n, seq, root, bytes), buf, count, t);
        signal(n, seq, root);
        announce(n);
    } else {
        wait_slots(n, seq, root);
        unpack(buf, count, t, node_payload(n, seq, root, bytes));
    }
    finish(n, seq);
    return 0;
}

/* What a rank's payload of `bytes` has at offset `off`, as an element address for operators. */
static const char *operand(struct node *n, uint32_t seq, int rank, size_t bytes, size_t off, const struct type *t)
{
    return node_payload(n, seq, rank, bytes) + off - t->true_lb;
}

/* recvbuf = slot 0 op slot 1 op ... op slot last, at offset `off` of payloads of `bytes`: evaluated from the right, so
 * the same at every rank, in rank order. */
static int combine(struct node *n, uint32_t seq, int last, size_t bytes, size_t off, void *recvbuf, int64_t count,
                   struct type *t, const struct op *op)
{
    unpack(recvbuf, count, t, node_payload(n, seq, last, bytes) + off);
    for (int r = last - 1; r >= 0; r--) {
        int rc = op_apply(op, operand(n, seq, r, bytes, off, t), recvbuf, count, t);
        if (rc) return rc;
    }
    return 0;
}

/* All ranks want the result and share cores: the last one computes it, the others copy. */
static int allreduce_counted(struct node *n, uint32_t seq, void *recvbuf, int64_t count, struct type *t, const struct op *op)
{
    size_t bytes = (size_t)(count * t->size);
    int rc = 0;
    if (arrive(n, seq)) {
        rc = combine(n, seq, n->size - 1, bytes, 0, recvbuf, count, t, op);
        pack(node_payload(n, seq, 0, bytes), recvbuf, count, t); /* everybody has left its own */
        n->safe = seq - 1 + NODE_K;
        release(n, seq);
    } else {
        wait_slots(n, seq, -1);
        unpack(recvbuf, count, t, node_payload(n, seq, 0, bytes));
    }
    return rc;
}

int node_reduce(struct node *n, const void *sendbuf, void *recvbuf, int64_t count, struct type *t, const struct op *op,
                int root, bool all)
{
    uint32_t seq = begin(n);
    size_t bytes = (size_t)(count * t->size);
    int rc = 0;
    pack(node_payload(n, seq, n->rank, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, t);
    if (all && n->counted) {
        rc = allreduce_counted(n, seq, recvbuf, count, t, op);
    } else {
        arrive_and_tell(n, seq);
        if (all || n->rank == root) {
            wait_slots(n, seq, -1);
            rc = combine(n, seq, n->size - 1, bytes, 0, recvbuf, count, t, op);
        }
    }
    finish(n, seq);
    return rc;
}

int node_gather(struct node *n, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                struct type *rtype, int root, bool all)
{
    uint32_t seq = begin(n);
    bool take = all || n->rank == root, in_place = sendbuf == MPI_IN_PLACE;
    if (in_place) {
        sendbuf = block_at(recvbuf, n->rank, rcount, rtype);
        scount = rcount;
        stype = rtype;
    }
    size_t bytes = (size_t)(scount * stype->size);
    pack(node_payload(n, seq, n->rank, bytes), sendbuf, scount, stype);
    arrive_and_tell(n, seq);
    if (take) {
        wait_slots(n, seq, -1);
        for (int r = 0; r < n->size; r++)
            if (!in_place || r != n->rank) unpack(block_at(recvbuf, r, rcount, rtype), rcount, rtype, node_payload(n, seq, r, bytes));
    }
    finish(n, seq);
    return 0;
}

int node_scatter(struct node *n, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                 struct type *rtype, int root)
{
    uint32_t seq = begin(n);
    if (n->rank == root) {
        size_t bytes = (size_t)(scount * stype->size);
        for (int r = 0; r < n->size; r++) {
            const char *from = block_at(sendbuf, r, scount, stype);
            if (r != root) {
                pack(node_payload(n, seq, r, bytes), from, scount, stype);
                signal(n, seq, r);
            } else if (recvbuf != MPI_IN_PLACE) {
                type_copy_across(recvbuf, rcount, rtype, from, scount, stype);
            }
        }
        announce(n);
    } else {
        wait_slots(n, seq, n->rank);
        unpack(recvbuf, rcount, rtype, node_payload(n, seq, n->rank, (size_t)(rcount * rtype->size)));
    }
    finish(n, seq);
    return 0;
}

int node_alltoall(struct node *n, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                  int64_t rcount, struct type *rtype)
{
    uint32_t seq = begin(n);
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = recvbuf;
        scount = rcount;
        stype = rtype;
    }
    size_t one = (size_t)(scount * stype->size), all = one * (size_t)n->size;
    char *mine = node_payload(n, seq, n->rank, all);
    for (int r = 0; r < n->size; r++) pack(mine + (size_t)r * one, block_at(sendbuf, r, scount, stype), scount, stype);
    arrive_and_tell(n, seq);
    wait_slots(n, seq, -1);
    for (int r = 0; r < n->size; r++)
        unpack(block_at(recvbuf, r, rcount, rtype), rcount, rtype, node_payload(n, seq, r, all) + (size_t)n->rank * one);
    finish(n, seq);
    return 0;
}

/* Prefix reductions. An exclusive one leaves rank 0's buffer alone. */
int node_scan(struct node *n, const void *sendbuf, void *recvbuf, int64_t count, struct type *t, const struct op *op,
              bool exclusive)
{
    uint32_t seq = begin(n);
    size_t bytes = (size_t)(count * t->size);
    int last = n->rank - exclusive, rc = 0;
    pack(node_payload(n, seq, n->rank, bytes), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, t);
    arrive_and_tell(n, seq);
    wait_slots(n, seq, -1);
    if (last >= 0) rc = combine(n, seq, last, bytes, 0, recvbuf, count, t, op);
    finish(n, seq);
    return rc;
}

int node_reduce_scatter_block(struct node *n, const void *sendbuf, void *recvbuf, int64_t rcount, struct type *t,
                              const struct op *op)
{
    uint32_t seq = begin(n);
    size_t one = (size_t)(rcount * t->size), all = one * (size_t)n->size;
    pack(node_payload(n, seq, n->rank, all), sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, rcount * n->size, t);
    arrive_and_tell(n, seq);
    wait_slots(n, seq, -1);
    int rc = combine(n, seq, n->size - 1, all, one * (size_t)n->rank, recvbuf, rcount, t, op);
    finish(n, seq);
    return rc;
}
