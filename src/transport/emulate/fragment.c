/*
 * fragment.c - data on its way to a peer, in fragments from where it lies; what is kept of a peer, and the end of it.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/emulate/side.h"
#include "transport/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the first fragment, and of the largest ones: they grow as long as the transport keeps up, so that the messages of
 * others have their turn in between where it does not. By bench/remote_bench over TCP: larger ones are slower by a third,
 * as more lies in the sockets than in the caches. */
#define FIRST_FRAGMENT ((size_t)256 << 10)
#define LARGEST_FRAGMENT ((size_t)512 << 10)
static_assert(LARGEST_FRAGMENT <= EMULATE_FRAGMENT_MAX, "what peers accept");

struct link emulate_sides = LIST_INIT(emulate_sides);

/* ---- what is kept of a peer ---- */

static int retry(struct step *step)
{
    struct emulate_state *s = container_of(step, struct emulate_state, waits);
    int n = emulate_answer_waiting(s) + emulate_send_waiting(s);
    emulate_note_waiting(s);
    return n;
}

static const struct step_ops waiting = {
    .name = "operations on remote memory", .poll = retry, .room = true, .idle = step_waits, .drained = step_is_off};

struct emulate_state *emulate_state_make(struct peer *p)
{
    struct emulate_state *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(TERN_ERR_NOMEM, "no memory for operations on the memory of %s", jobs_words(p->index));
        return NULL;
    }
    s->peer = p;
    s->waits.ops = &waiting;
    list_push(&emulate_sides, &s->in_all);
    p->emulate = s;
    return s;
}

struct emulate_state *emulate_state_of_sender(struct peer *p)
{
    struct emulate_state *s = emulate_state_of(p);
    if (unlikely(!s) && tp_lost) tp_lost(p, TERN_ERR_NOMEM);
    return s;
}

static void free_idle(struct emulate_state *s)
{
    if (!s->puts.under_way && !s->answers.under_way) free(s);
}

/* The transport may still have fragments, and tells us of their end. */
void emulate_forget(struct peer *p)
{
    struct emulate_state *s = p->emulate;
    if (!s) return;
    step_off(&s->waits);
    list_remove(&s->in_all);
    p->emulate = NULL;
    s->peer = NULL;
    s->broken = true;
    free_idle(s);
}

/* ---- the end ---- */

int emulate_gone(const struct peer *p)
{
    if (p->lost) return err_set(TERN_ERR_PEER, "%s", p->lost);
    return err_set(TERN_ERR_PEER, "the way to %s is closed", jobs_long_words(p->index));
}

/* Those that are started meanwhile, by `done`, are refused. A put whose data the transport still has ends when it has not. */
void emulate_end_all(struct emulate_state *s, const char *why)
{
    char words[400];
    snprintf(words, sizeof words, "%s", why);
    s->broken = true;
    s->getting = false;
    s->putting = 0;
    s->unsent = s->end;
    s->owed_first = s->owed_end;
    step_off(&s->waits);
    for (uint32_t i = s->first; i != s->end; i++) {
        struct asked *a = asked_at(s, i);
        if (a->kind && !a->fragments) emulate_finish(s, a, err_set(TERN_ERR_PEER, "%s", words));
    }
}

/* The peer is lost: operations under way to it end with TERN_ERR_PEER, in its words. */
static void end_peer(struct step *s, struct peer *p)
{
    (void)s;
    if (p->emulate) emulate_end_all(p->emulate, p->lost ? p->lost : err_words());
}

void emulate_give_up(struct emulate_state *s, const char *words)
{
    struct peer *p = s->peer;
    if (s->broken) return;
    s->broken = true;
    (void)ep_sever(&p->ep); /* not now: who is told of the loss does it (tp_lost) */
    emulate_end_all(s, words);
    if (tp_lost) tp_lost(p, err_set(TERN_ERR_PEER, "%s", words));
}

void emulate_violation(struct emulate_state *s, const char *what)
{
    char words[300];
    snprintf(words, sizeof words, "%s sent a message about memory that cannot be (%s); it is given up",
             jobs_long_words(s->peer->index), what);
    emulate_give_up(s, words);
}

/* ---- fragments ---- */

/* Two of them find room in a ring. */
size_t emulate_most(const struct peer *p) { return p->ep.max_short / 2; }

/* The put has ended if that was all of it. During the call that sends the last of it, it has not counted it yet. */
static void count_out(struct emulate_state *s, struct asked *a, int rc)
{
    if (--a->fragments || !s->peer) return;
    if (s->broken)
        emulate_finish(s, a, rc == TERN_ERR_PEER ? rc : emulate_gone(s->peer));
    else if (a->moved == a->bytes)
        emulate_finish(s, a, 0);
}

static void fragment_over(struct fragment *f, int rc)
{
    struct emulate_state *s = f->side;
    f->busy = false;
    f->way->under_way--;
    if (f->put) count_out(s, f->put, rc);
    if (!s->peer) free_idle(s);
}

/* Its memory is free again. If it failed the peer is lost, which the transport says in a moment. */
static void fragment_done(struct tp_op *op, int rc)
{
    struct fragment *f = container_of(op, struct fragment, op);
    if (rc) f->side->broken = true;
    fragment_over(f, rc);
}

static struct fragment *take_fragment(struct emulate_state *s, struct data_way *w, struct asked *put)
{
    int i = 0;
    while (i < EMULATE_WINDOW && w->fragment[i].busy) i++;
    if (i == EMULATE_WINDOW) return NULL;
    struct fragment *f = &w->fragment[i];
    *f = (struct fragment){.op.done = fragment_done, .side = s, .way = w, .put = put, .busy = true};
    w->under_way++;
    if (put) put->fragments++;
    return f;
}

/* Nothing under way since the last fragment: the transport waits for us, and may have more at a time. */
static void adapt(struct data_way *w)
{
    if (!w->bytes)
        w->bytes = FIRST_FRAGMENT;
    else if (!w->under_way)
        w->bytes = min_size(2 * w->bytes, LARGEST_FRAGMENT);
}

static int send_in_place(struct emulate_state *s, struct data_way *w, unsigned id, uint64_t h0, uint64_t h1,
                         const char *from, size_t left, struct asked *put, size_t *n)
{
    struct tp_ep *ep = &s->peer->ep;
    adapt(w);
    *n = min_size(w->bytes, left);
    struct fragment *f = take_fragment(s, w, put);
    if (!f) return TERN_AGAIN;
    int rc = ep_zcopy(ep, id, h0, h1, from, *n, &f->op);
    if (rc) fragment_over(f, rc);
    return rc;
}

int emulate_send(struct emulate_state *s, struct data_way *w, unsigned id, uint64_t h0, uint64_t h1, const char *from,
                 size_t left, struct asked *put, size_t *n)
{
    struct tp_ep *ep = &s->peer->ep;
    if (left > ep->max_short && ep->caps & TP_CAP_ZCOPY) return send_in_place(s, w, id, h0, h1, from, left, put, n);
    *n = min_size(emulate_most(s->peer), left);
    return ep->am_short(ep, id, h0, h1, from, *n);
}

/* ---- life ---- */

static const struct tp_am messages[] = {
    {.id = AM_REMOTE, .name = "remote memory", .handler = emulate_on_request, .sink = emulate_request_sink},
    {.id = AM_REMOTE_BACK, .name = "answer of remote memory", .handler = emulate_on_back, .sink = emulate_back_sink},
};

static const struct step_ops all_ops = {.name = "remote memory of lost peers", .peer_end = end_peer};
static struct step all = {.ops = &all_ops}; /* never on */

int emulate_open(void)
{
    int rc = tp_am_register(messages, ARRAY_LEN(messages));
    if (!rc) step_add(&progress_process, &all);
    return rc;
}

void emulate_close(void)
{
    step_remove(&all);
    emulate_owner_close();
    tp_am_unregister(messages, ARRAY_LEN(messages));
}
