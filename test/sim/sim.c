/* sim.c - the simulator's port and its event loop. */
#include "sim_data.h"

#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct msg { /* one side of a message, waiting for the other */
    struct goal_frame *frame;
    const struct goal_op *op;
    char *data; /* send side, buffered: the content, owned */
    int64_t len;
    int src;
    struct msg *next;
};

struct event { /* something that will happen at a random time */
    struct msg *send, *recv; /* data moves from one to the other; recv NULL: a buffered send completes */
};

struct sim {
    int n, active, error;
    int near;           /* programs of the first group: all, if there is one group only */
    bool *begun;        /* by rank: it has been started */
    bool early;         /* a rank was done before all (with two groups: of the other one) had started */
    uint64_t rng;
    struct goal_frame **frame;
    struct msg **sends; /* by destination: sends without a receive ... */
    struct msg **recvs; /* ... and receives without a send */
    struct event *event;
    size_t events, event_cap;
};

/* ---- messages --------------------------------------------------------------- */

/* A frame's place among all: its rank, behind the first group's if it is of the second one. */
static int rank_of(const struct goal_frame *f) { return f->tag; }

/* The place of an operation's peer: with two groups the own one comes first. */
static int peer_of(const struct goal_frame *f, const struct goal_op *op)
{
    const struct sim *s = f->ctx;
    int own = s->n - s->near;
    if (rank_of(f) < s->near) return op->peer;
    return op->peer < own ? s->near + op->peer : op->peer - own;
}

static int push_event(struct sim *s, struct msg *send, struct msg *recv)
{
    if (s->events == s->event_cap) {
        size_t cap = s->event_cap ? 2 * s->event_cap : 64;
        struct event *e = realloc(s->event, cap * sizeof *e);
        if (!e) return TERN_ERR_NOMEM;
        s->event = e;
        s->event_cap = cap;
    }
    s->event[s->events++] = (struct event){send, recv};
    return 0;
}

static void msg_free(struct msg *m)
{
    if (m) free(m->data);
    free(m);
}

static struct msg *msg_new(struct goal_frame *f, const struct goal_op *op, int src)
{
    struct msg *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    *m = (struct msg){.frame = f, .op = op, .len = sim_op_len(op), .src = src};
    return m;
}

/* Removes and returns the message of that identity from a list. */
static struct msg *take(struct msg **list, int src, int tag)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->src == src && (*list)->op->tag == tag) {
            struct msg *m = *list;
            *list = m->next;
            return m;
        }
    return NULL;
}

static int put(struct msg **list, struct msg *m)
{
    for (struct msg *x = *list; x; x = x->next)
        if (x->src == m->src && x->op->tag == m->op->tag)
            return err_set(TERN_ERR_PROGRAM, "two messages from rank %d under tag %u are under way", m->src, m->op->tag);
    m->next = *list;
    *list = m;
    return 0;
}

/* A buffered send keeps its data apart and completes on its own, at once or later. */
static int buffer_send(struct sim *s, struct msg *m, bool *now)
{
    m->data = malloc((size_t)m->len + 1);
    if (!m->data) return TERN_ERR_NOMEM;
    sim_move_pieces(m->frame, m->op, m->data, m->len, true);
    *now = sim_random(&s->rng) & 1;
    if (*now) return 0;
    struct msg *done = msg_new(m->frame, m->op, m->src);
    return done ? push_event(s, done, NULL) : TERN_ERR_NOMEM;
}

static int sim_send(struct goal_frame *f, const struct goal_op *op)
{
    struct sim *s = f->ctx;
    struct msg *m = msg_new(f, op, rank_of(f));
    bool now = false;
    if (!m) return TERN_ERR_NOMEM;
    if ((sim_random(&s->rng) & 1) && buffer_send(s, m, &now)) return TERN_ERR_NOMEM;
    int to = peer_of(f, op);
    struct msg *recv = take(&s->recvs[to], m->src, op->tag);
    int rc = recv ? push_event(s, m, recv) : put(&s->sends[to], m);
    if (rc) msg_free(m);
    return rc ? rc : now ? GOAL_DONE : GOAL_LATER;
}

static int sim_recv(struct goal_frame *f, const struct goal_op *op)
{
    struct sim *s = f->ctx;
    struct msg *m = msg_new(f, op, peer_of(f, op));
    if (!m) return TERN_ERR_NOMEM;
    sim_poison(f, op);
    struct msg *send = take(&s->sends[rank_of(f)], m->src, op->tag);
    int rc = send ? push_event(s, send, m) : put(&s->recvs[rank_of(f)], m);
    if (rc) msg_free(m);
    return rc ? rc : GOAL_LATER;
}

static const struct goal_port sim_port = {sim_send, sim_recv, sim_copy, sim_reduce, sim_reduce3, NULL, NULL};

/* ---- runs ------------------------------------------------------------------- */

/* The data of a pair moves into the memory of the receive. */
static int transfer(struct msg *send, struct msg *recv)
{
    int rank = rank_of(recv->frame);
    if (send->len > recv->len)
        return err_set(TERN_ERR_TRUNCATE, "%lld bytes from rank %d to %d under tag %u where %lld are expected",
                       (long long)send->len, send->src, rank, recv->op->tag, (long long)recv->len);
    if (!sim_still_poisoned(recv->frame, recv->op))
        return err_set(TERN_ERR_PROGRAM, "rank %d wrote where it receives from rank %d under tag %u", rank, send->src,
                       recv->op->tag);
    char *data = send->data ? send->data : malloc((size_t)send->len + 1);
    if (!data) return TERN_ERR_NOMEM;
    if (!send->data) sim_move_pieces(send->frame, send->op, data, send->len, true);
    sim_move_pieces(recv->frame, recv->op, data, send->len, false);
    if (!send->data) free(data);
    return 0;
}

/* The receive of an event completes, and the send unless it is buffered: that has an event of its own. */
static int happen(struct sim *s, struct event e)
{
    bool finish_send = !e.send->data, send_first = sim_random(&s->rng) & 1;
    int rc = e.recv ? transfer(e.send, e.recv) : 0;
    if (!rc && finish_send && send_first) goal_op_done(e.send->frame, e.send->op, 0);
    if (!rc && e.recv) goal_op_done(e.recv->frame, e.recv->op, 0);
    if (!rc && finish_send && !send_first) goal_op_done(e.send->frame, e.send->op, 0);
    msg_free(e.send);
    msg_free(e.recv);
    return rc;
}

/* One of the events that can happen does. */
static void step(struct sim *s)
{
    size_t k = sim_random(&s->rng) % s->events;
    struct event e = s->event[k];
    s->event[k] = s->event[--s->events];
    int rc = happen(s, e);
    if (rc && !s->error) s->error = rc;
}

/* Is there a rank that f had to wait for in a barrier, and that has not begun? */
static bool somebody_is_missing(const struct sim *s, const struct goal_frame *f)
{
    bool near = rank_of(f) < s->near;
    for (int i = 0; i < s->n; i++)
        if (!s->begun[i] && (s->near == s->n || (i < s->near) != near)) return true;
    return false;
}

static void frame_done(struct goal_frame *f)
{
    struct sim *s = f->ctx;
    s->active--;
    s->early |= somebody_is_missing(s, f);
    if (f->status && !s->error) s->error = f->status;
}

struct sim *sim_open(int n, struct goal_prog *const progs[], uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n = s->near = n;
    s->rng = seed;
    s->begun = calloc((size_t)n, sizeof *s->begun);
    s->frame = calloc((size_t)n, sizeof *s->frame);
    s->sends = calloc((size_t)n, sizeof *s->sends);
    s->recvs = calloc((size_t)n, sizeof *s->recvs);
    for (int i = 0; i < n; i++) {
        s->frame[i] = goal_frame_new(progs[i], &sim_port);
        if (!s->frame[i]) abort();
        s->frame[i]->ctx = s;
        s->frame[i]->tag = i;
        s->frame[i]->done = frame_done;
    }
    return s;
}

static void list_free(struct msg *m)
{
    while (m) {
        struct msg *next = m->next;
        msg_free(m);
        m = next;
    }
}

void sim_close(struct sim *s)
{
    if (!s) return;
    for (int i = 0; i < s->n; i++) {
        goal_frame_free(s->frame[i]);
        list_free(s->sends[i]);
        list_free(s->recvs[i]);
    }
    for (size_t i = 0; i < s->events; i++) {
        msg_free(s->event[i].send);
        msg_free(s->event[i].recv);
    }
    free(s->begun);
    free(s->frame);
    free(s->sends);
    free(s->recvs);
    free(s->event);
    free(s);
}

void sim_two_groups(struct sim *s, int near) { s->near = near; }

struct goal_frame *sim_frame(struct sim *s, int rank) { return s->frame[rank]; }

bool sim_was_early(const struct sim *s) { return s->early; }

void sim_bind(struct sim *s, int rank, unsigned slot, void *base, const struct sim_type *type)
{
    if (type) goal_bind_typed(s->frame[rank], slot, base, (struct type *)(uintptr_t)type, type->size, type->extent);
    else goal_bind(s->frame[rank], slot, base);
}

void sim_bind_op(struct sim *s, const struct sim_op *op, const struct sim_type *type)
{
    for (int i = 0; i < s->n; i++) {
        struct goal_frame *f = s->frame[i];
        f->op = (const struct op *)op;
        f->type = (struct type *)(uintptr_t)type;
        if (!(f->block->flags & GOAL_TYPED_SCRATCH)) continue;
        int rc = type ? goal_bind_scratch(f, f->type, type->size, type->extent, 0, type->size)
                      : goal_bind_scratch(f, NULL, 1, 1, 0, 1);
        if (rc) abort();
    }
}

static int leftovers(const struct sim *s)
{
    for (int i = 0; i < s->n; i++) {
        const struct msg *m = s->sends[i];
        if (m) return err_set(TERN_ERR_PROGRAM, "nobody received the message from rank %d to %d, tag %u", m->src, i, m->op->tag);
        if (s->frame[i]->active)
            return err_set(TERN_ERR_PROGRAM, "deadlock: rank %d has %u operations left, %u pending", i,
                           s->frame[i]->left, s->frame[i]->in_flight);
    }
    return 0;
}

int sim_run(struct sim *s)
{
    /* how far the ranks that have started get before the next one does: a little, or as far as they can */
    uint64_t first = sim_random(&s->rng) % (uint64_t)s->n, haste = 1 + 2 * (sim_random(&s->rng) & 1);
    s->active = s->n;
    s->error = 0;
    s->early = false;
    for (int i = 0; i < s->n; i++) s->begun[i] = false;
    for (int i = 0; i < s->n; i++) {
        uint64_t next = (first + (uint64_t)i) % (uint64_t)s->n;
        s->begun[next] = true;
        goal_start(s->frame[next]);
        while (s->events && !s->error && sim_random(&s->rng) % haste == 0) step(s);
    }
    while (s->events && !s->error) step(s);
    return s->error ? s->error : leftovers(s);
}

uint64_t sim_seed(void)
{
    const char *text = getenv("TERN_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}
