/*
 * probe.c - probing and matched probing.
 *
 * What a search finds is the caller's own only if it was taken out of matching (`take`). Otherwise another thread may
 * receive the message as soon as the lock is given up, and its body is used for another one: so the message is
 * described where it is found. That may be in another thread (lane_wait): words are said by the caller.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lanes.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

#include <stdio.h>

struct looking {
    struct pt_comm *pt;
    int source, tag;
    bool take;
    struct link link; /* in pt->takers: it does not search any more, but is given a message */
    int rc; /* nothing can come any more */
    bool lost; /* the same, not put in words yet */
    struct match_body *found;     /* after the search: only whether it is NULL counts, unless it was taken */
    struct request_result result; /* describes it */
};

static void describe(const struct match_body *b, struct request_result *res)
{
    *res = (struct request_result){.source = b->src, .tag = b->tag, .bytes = (int64_t)b->length};
}

/* The words of this thread may be another failure's. */
static TERN_COLD bool is_lost(const struct looking *k)
{
    struct peer *who;
    char words[512];
    int code = err_code();
    snprintf(words, sizeof words, "%s", err_words());
    bool lost = pt_source_lost(k->pt, 0, k->source, k->tag, &who);
    err_set(code, "%s", words);
    return lost;
}

/* For lane_wait: is not called again once it has said true. */
static bool look(void *arg)
{
    struct looking *k = arg;
    struct match *m = &k->pt->match[PT_USER];
    if (unlikely(k->rc)) return true;
    k->found = k->take ? match_take(m, k->source, k->tag) : match_peek(m, k->source, k->tag);
    if (k->found) describe(k->found, &k->result);
    else if (unlikely(k->pt->gone)) k->lost = is_lost(k);
    return k->found || k->lost;
}

static void doubt(void *arg)
{
    struct looking *k = arg;
    if (k->source != MPI_ANY_SOURCE) k->rc = pt_doubt_rank(k->pt->comm, k->source, k->tag);
}

/* ---- waiting ---- */

static bool suits(const struct looking *k, const struct match_body *b)
{
    return (k->source == MPI_ANY_SOURCE || k->source == b->src) && (k->tag == MPI_ANY_TAG || k->tag == b->tag);
}

/* To the thread that has waited longest. If it were left to whoever looks first, that would be the thread that has just taken
 * one, and runs, while those that wait are asleep or have given up the core. */
bool pt_hand_over(struct pt_comm *pt, struct match_body *b)
{
    list_each(at, next, &pt->takers)
    {
        struct looking *k = container_of(at, struct looking, link);
        if (!suits(k, b) || k->found || k->rc || k->lost) continue;
        k->found = b;
        describe(b, &k->result);
        lane_changed(pt->lane);
        return true;
    }
    return false;
}

static bool is_given(void *arg)
{
    struct looking *k = arg;
    if (unlikely(k->pt->gone) && !k->found && !k->rc) k->lost = is_lost(k);
    return k->found || k->rc || k->lost;
}

static void wait_to_take(struct lane *l, struct looking *k)
{
    list_push(&k->pt->takers, &k->link);
    lane_wait_doubting(l, is_given, k, doubt);
    list_remove(&k->link);
}

/* Why nothing can come any more, in words. Lane held. */
static TERN_COLD int why_lost(struct looking *k)
{
    struct peer *who;
    return pt_source_lost(k->pt, 0, k->source, k->tag, &who);
}

/* 0, and `found` is set if there is a message; or a code. The look is cheap; progress is made between two looks. */
static int search(struct comm *c, struct looking *k, bool blocking)
{
    struct lane *l = c->lane;
    lane_enter(l);
    if (!look(k)) {
        if (!blocking) {
            if (unlikely(jobs_others()) && l == lanes_first() && k->source != MPI_ANY_SOURCE) pt_looks_for(comm_index(c, k->source));
            lane_poll(l);
            look(k);
        } else if (k->take) {
            wait_to_take(l, k);
        } else {
            lane_wait_doubting(l, look, k, doubt);
        }
    }
    if (unlikely(k->lost)) k->rc = why_lost(k);
    if (k->take && k->found && k->found->kind == BODY_OFFER) l->rndv.probed++;
    lane_leave(l);
    return k->found ? 0 : k->rc;
}

static const struct request_result from_nobody = {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};

int pt_probe(struct comm *c, int source, int tag, bool blocking, bool *found_p, struct request_result *res)
{
    if (source == MPI_PROC_NULL) {
        *res = from_nobody;
        *found_p = true;
        return 0;
    }
    struct looking k = {.pt = c->pt, .source = source, .tag = tag};
    int rc = search(c, &k, blocking);
    *found_p = k.found != NULL;
    if (*found_p) *res = k.result;
    return rc;
}

int pt_mprobe(struct comm *c, int source, int tag, bool blocking, bool *found_p, struct pt_message **msg_p,
              struct request_result *res)
{
    struct pt_message *m = handle_alloc(HANDLE_MESSAGE, sizeof *m);
    if (!m) return err_set(TERN_ERR_NOMEM, "no memory for a message handle");
    struct looking k = {.pt = c->pt, .source = source, .tag = tag, .take = true};
    int rc = search(c, &k, blocking);
    *found_p = k.found != NULL;
    if (!*found_p) {
        handle_release(m, sizeof *m);
        return rc;
    }
    *res = k.result;
    m->comm = comm_ref(c);
    m->body = k.found;
    m->source = res->source;
    m->tag = res->tag;
    *msg_p = m;
    return 0;
}

int pt_imrecv(struct pt_message *m, void *buf, int64_t count, struct type *t, struct request **req_p)
{
    struct request *r = request_new(REQ_RECV);
    if (!r) return TERN_ERR_NOMEM;
    struct comm *c = m->comm; /* its reference goes over to the request */
    struct match_body *b = m->body;
    pt_prepare(r, REQ_RECV, c, PT_USER, buf, count, t, m->source, m->tag, PT_STANDARD);
    r->bytes = count * t->size;
    type_ref(t);
    lane_enter(c->lane);
    if (b->kind == BODY_OFFER) c->lane->rndv.probed--;
    pt_take_body(r, b);
    lane_leave(c->lane);
    handle_release(m, sizeof *m);
    *req_p = r;
    return 0;
}
