/* rma.c - operations, and the messages of this folder; see rma.h. */
#include "rma/rma.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/lost.h"
#include "rma/checking.h"
#include "rma/epoch.h"
#include "rma/far.h"
#include "rma/moves.h"
#include "rma/near.h"
#include "rma/serve.h"

/* ---- operations ---- */

static struct request *request_for(struct win *w, struct type *t)
{
    struct request *r = request_new(REQ_WIN);
    if (!r) return NULL;
    r->comm = comm_ref(w->comm);
    r->type = t;
    type_ref(t);
    return r;
}

/* By messages, for which a request may have to be waited for. */
static int start_far(struct win_target *t, const struct win_op *a, struct request **req_p)
{
    struct request *r = NULL;
    bool lasts = win_op_fetches(a) || moves_suit(t, a); /* else what goes out is copied */
    if (!req_p || !lasts) return far_start(t, a, NULL);
    r = request_for(t->win, a->rtype ? a->rtype : a->otype);
    if (!r) return TERN_ERR_NOMEM;
    *req_p = r;
    return far_start(t, a, r);
}

/* In a dynamic window, accumulates on several pieces go by messages, and those on one piece are near. They are done in their order
 * (MPI-5.0 section 12.7.2). */
static bool is_near(const struct win_target *t, const struct win_op *a)
{
    return t->exposure && checking_lets_near(t) && !(a->kind >= WIN_ACCUMULATE && far_accumulates(t));
}

static int do_it(struct win_target *t, const struct win_op *a, struct request **req_p)
{
    int rc = is_near(t, a) ? near_do(t, a) : TERN_ERR_UNSUPPORTED;
    if (rc == TERN_ERR_UNSUPPORTED) return start_far(t, a, req_p);
    if (!rc && req_p) rc = near_flush(t);
    return rc || likely(!t->win->checking) ? rc : checking_own(t, a);
}

/* A small put to an open target, while threads do not share the lanes. */
static bool note(const struct win *w, const struct win_op *a)
{
    struct win_target *t = win_target_last(w, a->rank);
    return t && !lane_threaded() && !t->exposure && win_target_is_open(w, t) && far_note(t, a);
}

int win_access(struct win *w, const struct win_op *a, struct request **req_p)
{
    struct lane *l = w->comm->lane;
    if (req_p) *req_p = request_done;
    else if (note(w, a)) return 0;
    if (a->rank == MPI_PROC_NULL) return 0;
    lane_enter(l);
    uint32_t sends = w->sends;
    struct win_target *t = win_target(w, a->rank);
    int rc = t ? 0 : err_code();
    bool open = !rc && likely(win_target_is_open(w, t));
    if (!rc && !open) rc = epoch_admit(w, t);
    if (!rc && req_p && t->open < WIN_LOCKED_SHARED)
        rc = err_set(TERN_ERR_WIN_SYNC, "operations with requests are for the epochs of MPI_Win_lock and MPI_Win_lock_all");
    if (!rc && a->tcount && a->ttype->size) rc = do_it(t, a, req_p);
    if (open && !t->exposure && sends == w->sends) lane_leave_noted(l);
    else lane_leave(l);
    return rc;
}

/* ---- messages ---- */

static void on_ops(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)l, (void)h0, (void)h1;
    if (pt->comm->win) serve_on_ops(pt->comm->win, from, data, n);
    else pt_violation(from, "operations on a communicator that is no window");
}

static void on_answers(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)l, (void)h0, (void)h1;
    if (pt->comm->win) far_on_answers(pt->comm->win, from, data, n);
    else pt_violation(from, "answers about a communicator that is no window");
}

static const struct pt_kind ops = {AM_RMA_OPS, PT_BY_CONTEXT, on_ops}, answers = {AM_RMA_ANSWERS, PT_BY_CONTEXT, on_answers};

static void rma_on_ops(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { dispatch(&ops, from, h0, h1, data, n); }
static void rma_on_answers(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&answers, from, h0, h1, data, n);
}

static const struct tp_am messages[] = {
    {AM_RMA_OPS, "operations on a window", rma_on_ops, NULL, false, sizeof(struct win_record)},
    {AM_RMA_ANSWERS, "answers about a window", rma_on_answers, NULL, false, sizeof(struct win_answer)},
};

/* The same with notes in them: by these names processes find that they do not have the same TERN_CHECK. */
static const struct tp_am checked[] = {
    {AM_RMA_OPS, "operations on a window, with notes", rma_on_ops, NULL, false, sizeof(struct win_record)},
    {AM_RMA_ANSWERS, "answers about a window, with conflicts", rma_on_answers, NULL, false, sizeof(struct win_answer)},
};

int rma_register(void)
{
    return checking_wanted() ? tp_am_register(checked, ARRAY_LEN(checked)) : tp_am_register(messages, ARRAY_LEN(messages));
}

void rma_unregister(void) { tp_am_unregister(messages, ARRAY_LEN(messages)); }
