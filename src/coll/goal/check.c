/*
 * check.c - see check.h. Messages are sorted by who sends to whom under which tag, which
 * pairs them; then all programs run in thought, where a message is over when both of its
 * sides have been started, and what is left at the end is a deadlock.
 */
#include "coll/goal/check.h"

#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>

struct side { /* a send or a receive */
    int32_t src, dst; /* the first group's ranks, then those of the second one if there are two */
    uint32_t tag, op; /* op: number among the operations of all ranks */
    int64_t len;
};

static int compare(const void *x, const void *y)
{
    const struct side *a = x, *b = y;
    if (a->src != b->src) return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst) return a->dst < b->dst ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

struct place { /* of a program among all: its own, how many the first group has, and how many there are */
    int32_t me, near, n;
};

/* Where an operation's peer is: a program names its own group's ranks first. */
static int32_t peer_of(struct place p, int32_t peer)
{
    int32_t own = p.n - p.near; /* the second group's */
    if (p.me < p.near) return peer;
    return peer < own ? p.near + peer : peer - own;
}

static struct side side_of(struct place p, const struct goal_op *op, uint32_t number)
{
    bool send = op->type == GOAL_OP_SEND;
    int32_t peer = peer_of(p, op->peer);
    struct side s = {send ? p.me : peer, send ? peer : p.me, op->tag, number, 0};
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) s.len += goal_piece_len(&op->piece[i]);
    return s;
}

/* Appends the messages of one type; returns how many there are now. */
static size_t collect(const struct goal_head *h, struct place p, unsigned type, uint32_t base, struct side *to, size_t n)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
        if (op->type == type) to[n++] = side_of(p, op, base + i);
    return n;
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to check a schedule"); }

/* Two neighbours that are the same message; NULL: there are none. */
static const struct side *twice(const struct side *s, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!compare(&s[i - 1], &s[i])) return &s[i];
    return NULL;
}

/* A rank in words. */
struct who {
    char words[48];
};

static struct who who(int32_t rank, int near, int n)
{
    struct who w;
    if (near == n) snprintf(w.words, sizeof w.words, "rank %d", rank);
    else snprintf(w.words, sizeof w.words, "rank %d of the %s group", rank < near ? rank : rank - near, rank < near ? "first" : "second");
    return w;
}

static int same_tag(const struct side *s, int near, int n, const char *what)
{
    return err_set(TERN_ERR_PROGRAM, "schedule has two %s from %s to %s under tag %u", what, who(s->src, near, n).words,
                   who(s->dst, near, n).words, s->tag);
}

static void nowhere(struct goal_spot spot[2])
{
    for (int i = 0; spot && i < 2; i++) spot[i] = (struct goal_spot){-1, 0};
}

int goal_check_tags(const struct goal_head *h, struct goal_spot spot[2])
{
    nowhere(spot);
    struct side *s = malloc(((size_t)h->op_count + 1) * sizeof *s);
    if (!s) return no_memory();
    int rc = 0;
    for (unsigned type = GOAL_OP_SEND; type <= GOAL_OP_RECV && !rc; type++) {
        size_t n = collect(h, (struct place){h->rank, h->size, h->size}, type, 0, s, 0);
        qsort(s, n, sizeof *s, compare);
        const struct side *bad = twice(s, n);
        if (bad) rc = same_tag(bad, h->size, h->size, type == GOAL_OP_SEND ? "sends" : "receives");
        for (int i = 0; bad && spot && i < 2; i++) spot[i] = (struct goal_spot){0, bad[-i].op};
    }
    free(s);
    return rc;
}

/* ---- all ranks ------------------------------------------------------------- */

#define NO_PARTNER UINT32_MAX

struct world {
    int n, near;
    struct goal_spot *spot; /* of what is wrong; NULL: nobody wants it */
    const struct goal_head *const *block;
    size_t ops;               /* of all ranks */
    uint32_t *base;           /* number of each rank's first operation */
    const struct goal_op **op; /* by number */
    int32_t *rank;            /* whose */
    uint32_t *partner;        /* the other side of its message */
    uint32_t *met;            /* predecessors met */
    bool *started;
    uint32_t *queue, tail;
    struct side *send, *recv;
    size_t sends, recvs;
};

static void world_close(struct world *w)
{
    free(w->base);
    free(w->op);
    free(w->rank);
    free(w->partner);
    free(w->met);
    free(w->started);
    free(w->queue);
    free(w->send);
    free(w->recv);
}

static bool world_room(struct world *w)
{
    size_t n = w->ops + 1;
    w->op = calloc(n, sizeof *w->op);
    w->rank = calloc(n, sizeof *w->rank);
    w->partner = calloc(n, sizeof *w->partner);
    w->met = calloc(n, sizeof *w->met);
    w->started = calloc(n, sizeof *w->started);
    w->queue = calloc(n, sizeof *w->queue);
    w->send = calloc(n, sizeof *w->send);
    w->recv = calloc(n, sizeof *w->recv);
    return w->op && w->rank && w->partner && w->met && w->started && w->queue && w->send && w->recv;
}

static struct who name(const struct world *w, int32_t rank) { return who(rank, w->near, w->n); }

static void take_program(struct world *w, int r)
{
    const struct goal_head *h = w->block[r];
    const struct goal_op *op = goal_op_at(h, h->first_op);
    struct place p = {r, w->near, w->n};
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op)) {
        w->op[w->base[r] + i] = op;
        w->rank[w->base[r] + i] = r;
    }
    w->sends = collect(h, p, GOAL_OP_SEND, w->base[r], w->send, w->sends);
    w->recvs = collect(h, p, GOAL_OP_RECV, w->base[r], w->recv, w->recvs);
}

static int world_open(struct world *w, int n, int near, const struct goal_head *const block[], struct goal_spot *spot)
{
    *w = (struct world){.n = n, .near = near, .block = block, .spot = spot};
    nowhere(spot);
    w->base = calloc((size_t)n, sizeof *w->base);
    if (!w->base) return no_memory();
    for (int r = 0; r < n; r++) {
        const struct goal_head *h = block[r];
        if (h->rank != (r < near ? r : r - near) || h->size != n)
            return err_set(TERN_ERR_PROGRAM, "%s of %d in all has a schedule for rank %d of %d", name(w, r).words, n, h->rank, h->size);
        w->base[r] = (uint32_t)w->ops;
        w->ops += h->op_count;
    }
    if (w->ops >= NO_PARTNER) return err_set(TERN_ERR_UNSUPPORTED, "a schedule of %zu operations is too long to check", w->ops);
    if (!world_room(w)) return no_memory();
    for (int r = 0; r < n; r++) take_program(w, r);
    return 0;
}

/* What the words will be about: operations by number. */
static void point(const struct world *w, uint32_t first, uint32_t second)
{
    if (!w->spot) return;
    w->spot[0] = (struct goal_spot){w->rank[first], w->op[first]->index};
    if (second != NO_PARTNER) w->spot[1] = (struct goal_spot){w->rank[second], w->op[second]->index};
}

static int alone(const struct world *w, const struct side *s, bool send)
{
    uint32_t index = w->op[s->op]->index;
    point(w, s->op, NO_PARTNER);
    return err_set(TERN_ERR_PROGRAM, "%s %s %s under tag %u (operation %u), and nothing there %s it",
                   name(w, send ? s->src : s->dst).words, send ? "sends to" : "receives from",
                   name(w, send ? s->dst : s->src).words, s->tag, index, send ? "receives" : "sends");
}

/* Sorts the messages and makes each send and its receive partners. */
static int pair(struct world *w)
{
    qsort(w->send, w->sends, sizeof *w->send, compare);
    qsort(w->recv, w->recvs, sizeof *w->recv, compare);
    const struct side *sends = twice(w->send, w->sends), *bad = sends ? sends : twice(w->recv, w->recvs);
    if (bad) {
        point(w, bad->op, bad[-1].op);
        return same_tag(bad, w->near, w->n, sends ? "sends" : "receives");
    }
    for (size_t i = 0; i < w->sends || i < w->recvs; i++) {
        const struct side *s = i < w->sends ? &w->send[i] : NULL, *r = i < w->recvs ? &w->recv[i] : NULL;
        int which = !s ? 1 : !r ? -1 : compare(s, r);
        if (which) return alone(w, which < 0 ? s : r, which < 0);
        if (s->len > r->len) {
            point(w, s->op, r->op);
            return err_set(TERN_ERR_PROGRAM, "%s sends %lld bytes to %s under tag %u, which has room for %lld",
                           name(w, s->src).words, (long long)s->len, name(w, s->dst).words, s->tag, (long long)r->len);
        }
        w->partner[s->op] = r->op;
        w->partner[r->op] = s->op;
    }
    return 0;
}

static void release(struct world *w, uint32_t number, bool start)
{
    const struct goal_op *op = w->op[number];
    const struct goal_head *h = w->block[w->rank[number]];
    const uint32_t *to = goal_edges(op) + (start ? op->n_finish : 0);
    for (unsigned k = 0; k < (start ? op->n_start : op->n_finish); k++) {
        const struct goal_op *next = goal_op_at(h, to[k]);
        uint32_t id = w->base[w->rank[number]] + next->index;
        if (++w->met[id] == next->dependencies) w->queue[w->tail++] = id;
    }
}

/* Starts everything that can be; returns how many operations have been. */
static uint32_t run(struct world *w)
{
    uint32_t head = 0;
    for (uint32_t i = 0; i < w->ops; i++)
        if (!w->op[i]->dependencies) w->queue[w->tail++] = i;
    for (; head < w->tail; head++) {
        uint32_t id = w->queue[head];
        w->started[id] = true;
        release(w, id, true);
        if (w->op[id]->type > GOAL_OP_RECV) release(w, id, false);
        else if (w->started[w->partner[id]]) {
            release(w, id, false);
            if (w->partner[id] != id) release(w, w->partner[id], false);
        }
    }
    return w->tail;
}

static int deadlock(const struct world *w)
{
    for (uint32_t i = 0; i < w->ops; i++) {
        const struct goal_op *op = w->op[i];
        if (op->type > GOAL_OP_RECV || !w->started[i] || w->started[w->partner[i]]) continue;
        bool send = op->type == GOAL_OP_SEND;
        struct who peer = name(w, w->rank[w->partner[i]]);
        point(w, i, w->partner[i]);
        return err_set(TERN_ERR_PROGRAM,
                       "deadlock: %s %s %s under tag %u (operation %u), but what %s waits for before it %s "
                       "(operation %u) never ends", name(w, w->rank[i]).words, send ? "sends to" : "receives from", peer.words,
                       op->tag, op->index, peer.words, send ? "receives" : "sends", w->op[w->partner[i]]->index);
    }
    return err_set(TERN_ERR_PROGRAM, "deadlock: the dependencies of a schedule form a cycle");
}

int goal_check_all(int n, int near, const struct goal_head *const block[], struct goal_spot spot[2])
{
    struct world w;
    int rc = world_open(&w, n, near, block, spot);
    if (!rc) rc = pair(&w);
    if (!rc && run(&w) < w.ops) rc = deadlock(&w);
    world_close(&w);
    return rc;
}
