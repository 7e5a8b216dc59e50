/*
 * direct.c - see direct.h. Each rank combines its share of the elements, reading it from all others' buffers piece by piece, in the
 * order of the ranks; so the result has the same bits everywhere, and operators need not commute.
 */
#include "coll/node/direct.h"
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/lane.h"
#include "transport/endpoint.h"

#include <stdlib.h>
#include <string.h>

/* ---- among the ranks ---- */

/* Two words of each rank. */
struct said {
    uint64_t place[NODE_RANKS_MAX][2];
};

static int say_all(struct node *n, uint64_t first, uint64_t second, struct said *said)
{
    uint32_t seq;
    uint64_t words[2] = {first, second};
    int rc = node_begin(n, false, NODE_BY_PLACES, &seq);
    if (rc) return rc;
    memcpy(node_slot(n, seq, n->rank)->payload, words, sizeof words);
    node_contribute(n, seq);
    rc = node_wait_for(n, seq, NODE_ALL);
    for (int r = 0; r < n->size; r++) memcpy(said->place[r], node_slot(n, seq, r)->payload, sizeof said->place[r]);
    node_finish(n, seq, true);
    return rc;
}

/* Returns when all ranks have come here, or never will (node_failed). */
static void meet(struct node *n)
{
    uint32_t seq;
    if (node_begin(n, false, NODE_BY_PLACES, &seq)) return;
    node_contribute(n, seq);
    node_wait_for(n, seq, NODE_ALL);
    node_finish(n, seq, true);
}

/* Bytes of one system call. Between two of them other messages have their turn. */
#define PIECE ((size_t)512 << 10)

static int move(struct node *n, int rank, uint64_t there, char *here, size_t bytes, bool out)
{
    struct lane *l = n->comm->lane;
    int rc = 0;
    lane_enter(l);
    struct peer *p = peer_get(comm_index(n->comm, rank));
    if (!p) rc = err_code();
    for (size_t at = 0; at < bytes && !rc; at += PIECE) {
        size_t part = min_size(PIECE, bytes - at);
        struct iovec mine = {here + at, part}, its = {(void *)(uintptr_t)(there + at), part};
        if (at) lane_progress(l);
        if (!(p->ep.caps & TP_CAP_GETPUT))
            rc = TERN_ERR_UNSUPPORTED;
        else
            rc = out ? ep_put(&p->ep, &mine, 1, &its, 1) : ep_get(&p->ep, &mine, 1, &its, 1);
    }
    lane_leave(l);
    return rc == TERN_ERR_UNSUPPORTED
               ? err_set(TERN_ERR_SYSTEM, "the system no longer lets rank %d's memory be reached", rank)
               : rc;
}

/* n bytes from, or to, `place` of a rank's memory. */
static int fetch(struct node *n, int rank, void *to, uint64_t place, size_t bytes)
{
    return bytes ? move(n, rank, place, to, bytes, false) : 0;
}

static int store(struct node *n, int rank, uint64_t place, const void *from, size_t bytes)
{
    return bytes ? move(n, rank, place, (char *)(uintptr_t)from, bytes, true) : 0;
}

/* ---- combining ---- */

/* Two pieces of this size stay in a core's own cache. */
#define WORK ((int64_t)64 << 10)

struct work {
    struct node *n;
    const struct coll_call *a;
    const struct said *said; /* where the inputs are */
    char *input, *sum;            /* a piece of an input, of the result */
    char *room;
};

static int open_work(struct work *w, struct node *n, const struct coll_call *a, const struct said *said)
{
    size_t piece = (size_t)(WORK + a->rtype->size); /* elements may be larger than that */
    *w = (struct work){n, a, said, .room = malloc(2 * piece)};
    if (!w->room) return err_set(TERN_ERR_NOMEM, "no memory to combine the pieces of a reduction");
    w->input = w->room;
    w->sum = w->room + piece;
    return 0;
}

/* Elements of a piece. */
static int64_t piece_of(const struct type *t) { return t->size < WORK ? WORK / t->size : 1; }

static int get_input(struct work *w, int rank, char *to, size_t off, size_t bytes)
{
    uint64_t place = w->said->place[rank][0] + off;
    if (rank != w->n->rank) return fetch(w->n, rank, to, place, bytes);
    copy_memory(to, (const void *)(uintptr_t)place, bytes);
    return 0;
}

/* sum = input of rank 0 op ... op input of the last rank, `count` elements at byte `off` of them. */
static int combine(struct work *w, size_t off, int64_t count)
{
    struct type *t = w->a->rtype;
    size_t bytes = (size_t)(count * t->size);
    int rc = get_input(w, w->n->size - 1, w->sum, off, bytes);
    for (int r = w->n->size - 2; r >= 0 && !rc; r--) {
        rc = get_input(w, r, w->input, off, bytes);
        if (!rc) rc = op_apply(w->a->op, w->input - t->true_lb, w->sum - t->true_lb, count, t);
    }
    return rc;
}

/* Combines elements [from, to) and puts them at the same place of the result of rank `whose`, which begins at `result`.
 */
static int combine_share(struct work *w, int64_t from, int64_t to, int whose, uint64_t result)
{
    const struct type *t = w->a->rtype;
    int rc = 0;
    for (int64_t at = from, step = piece_of(t); at < to && !rc; at += step) {
        int64_t count = to - at < step ? to - at : step;
        size_t off = (size_t)(at * t->size), bytes = (size_t)(count * t->size);
        rc = combine(w, off, count);
        if (rc) break;
        if (whose == w->n->rank)
            copy_memory((void *)(uintptr_t)(result + off), w->sum, bytes);
        else
            rc = store(w->n, whose, result + off, w->sum, bytes);
    }
    return rc;
}

/* The elements that a rank combines. */
static int64_t share(const struct node *n, int64_t count, int rank)
{
    return count / n->size * rank + (count % n->size < rank ? count % n->size : rank);
}

/* Allreduce: the shares of the others, where they have combined them. */
static int collect_shares(struct node *n, const struct coll_call *a, const struct said *said)
{
    int rc = 0;
    for (int i = 1; i < n->size && !rc; i++) {
        int r = (n->rank + i) % n->size;
        size_t from = (size_t)(share(n, a->rcount, r) * a->rtype->size),
               to = (size_t)(share(n, a->rcount, r + 1) * a->rtype->size);
        rc = fetch(n, r, (char *)(uintptr_t)said->place[n->rank][1] + from, said->place[r][1] + from, to - from);
    }
    return rc;
}

int node_direct_reduce(struct node *n, const struct coll_call *a)
{
    struct said said;
    struct work w;
    bool all = a->kind == COLL_ALLREDUCE, gets = all || n->rank == a->root;
    const void *input = a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf;
    int whose = all ? n->rank : a->root;
    int rc = say_all(n, (uintptr_t)input + (uintptr_t)a->rtype->true_lb,
                          gets ? (uintptr_t)a->recvbuf + (uintptr_t)a->rtype->true_lb : 0, &said);
    int opened = open_work(&w, n, a, &said);
    if (!rc) rc = opened;
    if (!rc)
        rc = combine_share(&w, share(n, a->rcount, n->rank), share(n, a->rcount, n->rank + 1), whose,
                           said.place[whose][1]);
    meet(n);
    if (all) {
        if (!rc) rc = collect_shares(n, a, &said);
        meet(n);
    }
    free(w.room);
    return rc;
}

int node_direct_reduce_scatter(struct node *n, const struct coll_call *a)
{
    struct said said;
    struct work w;
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    const struct type *t = a->rtype;
    size_t bytes = (size_t)(a->rcount * t->size), first = bytes * (size_t)n->rank;
    char *own = (char *)a->recvbuf + t->true_lb,
         *result = in_place ? malloc(bytes) : own; /* others read recvbuf until the end */
    int rc = say_all(n, (uintptr_t)(in_place ? a->recvbuf : a->sendbuf) + (uintptr_t)t->true_lb, 0, &said);
    int opened = open_work(&w, n, a, &said);
    if (!rc) rc = opened;
    if (!result) rc = err_set(TERN_ERR_NOMEM, "no memory for the result of a reduce_scatter in place");
    if (!rc) rc = combine_share(&w, a->rcount * n->rank, a->rcount * (n->rank + 1), n->rank, (uintptr_t)result - first);
    meet(n);
    if (in_place && !rc) copy_memory(own, result, bytes);
    if (in_place) free(result);
    free(w.room);
    return rc;
}
