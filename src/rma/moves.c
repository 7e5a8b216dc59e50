/* moves.c - see moves.h. */
#include "rma/moves.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lane.h"
#include "transport/peer.h"

#include <mpi.h>
#include <stdlib.h>

/* One move, or one flush. It does not hold on to the target, which may go when the peer is lost. */
struct move {
    struct tp_op op;
    struct win_moves *of;
    struct lane *lane;
    struct request *req; /* NULL: none */
};

bool moves_suit(const struct win_target *t, const struct win_op *a)
{
    const struct type *here = a->kind == WIN_PUT ? a->otype : a->rtype;
    if (a->kind != WIN_PUT && a->kind != WIN_GET) return false;
    if (t->win->flavor == MPI_WIN_FLAVOR_DYNAMIC || t->win->checking || pt_may_share()) return false;
    return here->contig && a->ttype->contig && a->tcount * a->ttype->size >= t->win->moves_from;
}

int moves_open(struct win_target *t, struct win_moves *m)
{
    m->known = true;
    if (!m->shown.key_bytes) return 0;
    if (m->shown.key_bytes > sizeof m->shown.key) return err_set(TERN_ERR_ARG, "the key of a window's memory is too long");
    return remote_key_open(t->peer, m->shown.key, m->shown.key_bytes, &m->key);
}

void moves_close(struct win_moves *m)
{
    if (m->key) remote_key_close(m->key);
    m->key = NULL;
    m->known = false;
}

/* ---- one ---- */

static void done(struct tp_op *op, int rc)
{
    struct move *v = container_of(op, struct move, op);
    v->of->under_way--;
    if (rc && !v->of->code) v->of->code = rc;
    if (v->req) lane_finish(v->req, rc);
    lane_changed(v->lane);
    free(v);
}

static struct move *new_move(struct win_target *t, struct win_moves *m, struct request *req)
{
    struct move *v = malloc(sizeof *v);
    if (!v) {
        err_set(TERN_ERR_NOMEM, "no memory for an operation on a window");
        return NULL;
    }
    *v = (struct move){.op = {.done = done}, .of = m, .lane = t->win->comm->lane, .req = req};
    m->under_way++;
    return v;
}

static int attempt(struct win_target *t, const struct win_op *a, struct move *v, uint64_t offset)
{
    struct remote_key *k = v->of->key;
    size_t n = a ? (size_t)(a->tcount * a->ttype->size) : 0;
    if (!a) return remote_flush(t->peer, &v->op);
    if (a->kind == WIN_PUT) return remote_put(k, offset, (const char *)a->origin + a->otype->true_lb, n, &v->op);
    return remote_get(k, offset, (char *)a->result + a->rtype->true_lb, n, &v->op);
}

/* a NULL: a flush. Waits for room. */
static int start(struct win_target *t, struct win_moves *m, const struct win_op *a, uint64_t offset, struct request *req)
{
    struct move *v = new_move(t, m, req);
    if (!v) return TERN_ERR_NOMEM;
    int rc;
    t->win->sends++;
    while ((rc = attempt(t, a, v, offset)) == TERN_AGAIN) lane_poll(t->win->comm->lane);
    if (rc == TERN_DONE) {
        done(&v->op, 0);
        return 0;
    }
    if (!rc) return 0;
    v->req = NULL; /* its caller has the code */
    m->under_way--;
    free(v);
    return rc;
}

/* Where the operation begins in the target's memory; false: it is not within that. */
static bool find_offset(const struct win_moves *m, const struct win_op *a, uint64_t *offset)
{
    int64_t at, end;
    if (__builtin_mul_overflow(a->displacement, m->shown.unit, &at) || __builtin_add_overflow(at, a->ttype->true_lb, &at) ||
        __builtin_add_overflow(at, a->tcount * a->ttype->size, &end) || at < 0 || (uint64_t)end > m->key->bytes)
        return false;
    *offset = (uint64_t)at;
    return true;
}

int moves_start(struct win_target *t, struct win_moves *m, const struct win_op *a, struct request *req)
{
    uint64_t offset;
    if (!m->key || !find_offset(m, a, &offset)) return TERN_ERR_UNSUPPORTED;
    m->unflushed = true;
    return start(t, m, a, offset, req);
}

/* ---- all ---- */

static bool is_idle(void *moves)
{
    const struct win_moves *m = moves;
    return !m->under_way;
}

/* Nothing ends a move but the transport, which hears of a peer that is lost. */
int moves_local(struct win_target *t, struct win_moves *m)
{
    if (m->under_way) lane_wait(t->win->comm->lane, is_idle, m, NULL);
    return t->peer->lost ? err_set(TERN_ERR_PEER, "%s", t->peer->lost) : 0;
}

int moves_flush(struct win_target *t, struct win_moves *m)
{
    if (!m->unflushed) return 0;
    int rc = start(t, m, NULL, 0, NULL);
    if (!rc) rc = moves_local(t, m);
    int code = m->code;
    m->unflushed = false;
    m->code = 0;
    if (rc || !code) return rc;
    return err_set(code, "large data on the way from or to the window's memory at rank %d were lost: %s", t->rank,
                   code == TERN_ERR_NOT_FOUND ? "the window has been freed there" : "the connection has failed");
}
