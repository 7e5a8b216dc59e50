/*
 * shares.c - large reductions inside a node by shares of the elements: the ranks say where their buffers are, and each combines one
 * share, which it reads from all others' memory piece by piece, in the order of the ranks; so the result has the same bits everywhere,
 * and operators need not commute. It writes its share where it is wanted: to the root, or into its own result. Of an allreduce it reads
 * the other shares then.
 *
 * Blocking calls with nothing else pending, once it is known that all ranks reach all others' memory (NODE_REACHES).
 */
#include "base/clock.h"
#include "base/err.h"
#include "coll/node/block.h"
#include "coll/node/blocks.h"
#include "copy/copy.h"
#include "proc/jobs.h"
#include "pt2pt/lane.h"
#include "transport/endpoint.h"

#include <stdlib.h>

/* What a rank says: where its operands lie, 0: it has no memory to combine; and its result. Then, in place of the operands, the code with
 * which it has failed, negated; and in place of the result 1 + the rank whose loss is the reason, 0: there is another one. */
struct buffers {
    union {
        uint64_t operand, failed;
    };
    union {
        uint64_t result, because_of;
    };
};

struct reduction {
    struct node *n;
    const struct coll_call *a;
    const struct buffers *of; /* each rank */
    char *input, *sum;        /* a piece of an operand, of the result */
    int lost;                 /* 1 + the rank whose memory could not be reached, as it has died; or 0 */
};

/* Two pieces of this size stay in a core's own cache. */
#define WORK ((int64_t)64 << 10)

/* A rank is lost: those that live are inside the call, and may be copying. */
static TERN_COLD void await_living(struct node *n, uint32_t seq)
{
    uint64_t start = clock_ns();
    lane_enter(n->comm->lane);
    for (int r = 0; r < n->size && clock_ns() - start < NODE_LEAVE_NS; r++)
        while (!node_has_come(n, seq, r) && !peer_is_lost(comm_index(n->comm, r)) && clock_ns() - start < NODE_LEAVE_NS)
            lane_progress(n->comm->lane);
    lane_leave(n->comm->lane);
}

/* Returns when all ranks have come here, or never will (a code). `said`, if not NULL, has the own word, and gets those of all. `copying`:
 * they may be copying from and to this one's memory until they come, so those that live are waited for in any case. */
static int meet(struct node *n, struct buffers *said, bool copying)
{
    uint32_t seq;
    int rc = node_begin(n, false, NODE_BY_SHARES, &seq);
    if (rc) return rc;
    if (said) memcpy(node_slot(n, seq, n->rank)->payload, &said[n->rank], sizeof *said);
    node_contribute(n, seq);
    rc = node_wait_for(n, seq, NODE_ALL);
    if (unlikely(rc && node_has_come(n, seq, NODE_ALL))) rc = 0; /* so it is for the others: they begin to copy */
    if (unlikely(rc && copying)) await_living(n, seq);
    for (int r = 0; r < n->size && said; r++) memcpy(&said[r], node_slot(n, seq, r)->payload, sizeof *said);
    node_finish(n, seq, true);
    return rc;
}

/* Bytes of one system call. Between two of them other messages have their turn. */
#define PIECE ((size_t)512 << 10)

/* To (`out`) or from the memory of another rank. */
static int move_far(struct reduction *w, int rank, uint64_t there, char *here, size_t bytes, bool out)
{
    struct lane *l = w->n->comm->lane;
    int rc = 0;
    lane_enter(l);
    struct peer *p = peer_get(comm_index(w->n->comm, rank));
    if (!p) rc = err_code();
    for (size_t at = 0; at < bytes && !rc; at += PIECE) {
        size_t part = min_size(PIECE, bytes - at);
        struct iovec mine = {here + at, part}, its = {(void *)(uintptr_t)(there + at), part};
        if (at) lane_progress(l);
        if (!(p->ep.caps & TP_CAP_GETPUT)) rc = TERN_ERR_UNSUPPORTED;
        else rc = out ? ep_put(&p->ep, &mine, 1, &its, 1) : ep_get(&p->ep, &mine, 1, &its, 1);
    }
    lane_leave(l);
    if (unlikely(err_is_of_peer(rc))) w->lost = 1 + rank;
    return rc == TERN_ERR_UNSUPPORTED ? err_set(TERN_ERR_SYSTEM, "the system no longer lets rank %d's memory be reached", rank) : rc;
}

static int fetch(struct reduction *w, int rank, uint64_t from, char *to, size_t bytes)
{
    if (rank != w->n->rank) return bytes ? move_far(w, rank, from, to, bytes, false) : 0;
    copy_memory(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static int store(struct reduction *w, int rank, uint64_t to, char *from, size_t bytes)
{
    if (rank != w->n->rank) return bytes ? move_far(w, rank, to, from, bytes, true) : 0;
    copy_memory((void *)(uintptr_t)to, from, bytes);
    return 0;
}

/* sum = operand of rank 0 op ... op operand of the last rank, `count` elements at byte `off` of them. */
static int combine(struct reduction *w, size_t off, int64_t count)
{
    struct type *t = w->a->rtype;
    size_t bytes = (size_t)(count * t->size);
    int last = w->n->size - 1, rc = fetch(w, last, w->of[last].operand + off, w->sum, bytes);
    for (int r = last - 1; r >= 0 && !rc; r--) {
        rc = fetch(w, r, w->of[r].operand + off, w->input, bytes);
        if (!rc) rc = op_apply(w->a->op, w->input - t->true_lb, w->sum - t->true_lb, count, t);
    }
    return rc;
}

/* The share of a rank begins with this element. */
static int64_t share(const struct reduction *w, int rank)
{
    int64_t count = node_operand(w->a, w->n->size).count, more = count % w->n->size;
    return count / w->n->size * rank + (more < rank ? more : rank);
}

/* The own one, to the result of a rank, which begins there. */
static int combine_share(struct reduction *w, int whose, uint64_t result)
{
    const struct type *t = w->a->rtype;
    int64_t step = t->size < WORK ? WORK / t->size : 1, end = share(w, w->n->rank + 1);
    int rc = 0;
    for (int64_t at = share(w, w->n->rank); at < end && !rc; at += step) {
        int64_t count = end - at < step ? end - at : step;
        size_t off = (size_t)(at * t->size);
        rc = combine(w, off, count);
        if (!rc) rc = store(w, whose, result + off, w->sum, (size_t)(count * t->size));
    }
    return rc;
}

/* The others, where they have been combined. */
static int collect_shares(struct reduction *w)
{
    int rc = 0;
    for (int i = 1; i < w->n->size && !rc; i++) {
        int r = (w->n->rank + i) % w->n->size;
        size_t from = (size_t)(share(w, r) * w->a->rtype->size), to = (size_t)(share(w, r + 1) * w->a->rtype->size);
        rc = fetch(w, r, w->of[r].result + from, (char *)(uintptr_t)w->of[w->n->rank].result + from, to - from);
    }
    return rc;
}

/* All ranks find the same, here and below. */
static int check_memory(const struct node *n, const struct buffers *of)
{
    for (int r = 0; r < n->size; r++)
        if (!of[r].operand) return err_set(TERN_ERR_NOMEM, "rank %d has no memory to combine its share of a reduction", r);
    return 0;
}

static int check_shares(const struct node *n, const struct buffers *of)
{
    for (int r = 0; r < n->size; r++) {
        if (!of[r].failed) continue;
        int code = -(int)of[r].failed, lost = (int)of[r].because_of - 1;
        if (lost < 0) return err_set(code, "rank %d could not combine its share of a reduction; it has the reason", r);
        jobs_note_loss(comm_index(n->comm, lost));
        return err_set(code, "rank %d was lost in the middle of a reduction", lost);
    }
    return 0;
}

/* meet, behind work that may have failed with `rc`: that is returned then, and its words stay. */
static int meet_behind(struct node *n, struct buffers of[], int rc)
{
    if (!rc) return meet(n, of, true);
    err_keep(n, rc);
    (void)meet(n, of, true);
    err_recall(n, rc);
    return rc;
}

int node_reduce_by_shares(struct node *n, const struct coll_call *a)
{
    struct buffers of[NODE_RANKS_MAX];
    const struct type *t = a->rtype;
    int64_t before;
    struct node_block result = node_result(a, n->rank, &before);
    uintptr_t operand = (uintptr_t)node_operand(a, n->size).buf + (uintptr_t)t->true_lb;
    uintptr_t own = (uintptr_t)result.buf + (uintptr_t)t->true_lb;
    size_t piece = (size_t)(WORK + t->size), bytes = node_bytes(&result); /* elements may be larger than WORK */
    bool all = a->kind == COLL_ALLREDUCE, aside = a->kind == COLL_REDUCE_SCATTER_BLOCK && node_in_place(a);
    char *room = malloc(2 * piece), *copy = aside ? malloc(bytes) : NULL; /* others read the operands until the end */
    of[n->rank].operand = room && (copy || !aside) ? operand : 0;
    of[n->rank].result = (aside ? (uintptr_t)copy : own) - (uintptr_t)(before * t->size);
    int rc = meet(n, of, false), whose = a->kind == COLL_REDUCE ? a->root : n->rank;
    if (!rc) rc = check_memory(n, of);
    if (!rc) {
        struct reduction w = {n, a, of, room, room + piece, 0};
        rc = combine_share(&w, whose, of[whose].result);
        of[n->rank].failed = (uint64_t)-rc;
        if (rc) of[n->rank].because_of = (uint64_t)w.lost;
        rc = meet_behind(n, of, rc);
        if (!rc) rc = check_shares(n, of);
        if (all && !rc) rc = collect_shares(&w);
        if (all) (void)meet_behind(n, NULL, rc);
    }
    if (copy && !rc) copy_memory((void *)own, copy, bytes);
    free(copy);
    free(room);
    return rc;
}
