/*
 * disconnect.c - see disconnect.h.
 *
 * A peer is closed when neither side needs it. A process that waits for that relies on all others, so they agree first:
 * one is against it while it has another communicator with processes of those jobs, or refers to this one, by a
 * persistent request for instance.
 */
#include "comm/disconnect.h"
#include "base/err.h"
#include "coll/coll.h"
#include "pt2pt/api.h"
#include "pt2pt/closing.h"
#include "type/op.h"

/* rankmap_shares_job: of other jobs than the own one. */
static bool share_job(const struct comm *a, const struct comm *b)
{
    return rankmap_shares_job(a->map, b->map) || rankmap_shares_job(a->map, b->local) ||
           rankmap_shares_job(a->local, b->map) || rankmap_shares_job(a->local, b->local);
}

static bool connects(const struct comm *c, const void *arg)
{
    const struct comm *gone = arg;
    return c != gone && c != gone->within && share_job(c, gone);
}

static bool is_last_reference(const struct comm *c)
{
    return !c || atomic_load_explicit(&c->h.refs, memory_order_relaxed) == 1;
}

/* The least of all that is given; between two groups, by the other one. */
static int least(struct comm *c, const int32_t *given, int32_t *least_p)
{
    struct type *t = type_of(MPI_INT32_T);
    return coll_run(c, &(struct coll_call){.kind = COLL_ALLREDUCE,
                                           .sendbuf = given,
                                           .recvbuf = least_p,
                                           .scount = 1,
                                           .rcount = 1,
                                           .stype = t,
                                           .rtype = t,
                                           .op = op_of(MPI_MIN)});
}

static int ask_all(struct comm *c, int32_t mine, bool *all)
{
    int32_t local = 0, remote = 0;
    int rc = least(c->inter ? c->within : c, &mine, &local);
    if (!rc && c->inter) rc = least(c, &local, &remote);
    *all = !rc && local && (remote || !c->inter);
    return rc;
}

int comm_disconnect_agree(struct comm *c, bool goes, struct disconnecting *d)
{
    bool all = false;
    *d = (struct disconnecting){NULL, NULL};
    if (!comm_has_others(c)) return coll_barrier(c);
    if (goes) pt_let_go(c);
    bool last = goes && is_last_reference(c) && is_last_reference(c->within) && !comm_exists(connects, c);
    int rc = ask_all(c, last, &all);
    if (rc || !all) return rc;
    *d = (struct disconnecting){rankmap_ref(c->map), rankmap_ref(c->local)};
    return 0;
}

void comm_disconnect_wait(struct disconnecting *d)
{
    if (!d->map) return;
    pt_await_closed(d->map);
    pt_await_closed(d->local);
    rankmap_unref(d->map);
    rankmap_unref(d->local);
}
