/*
 * part.c - see part.h.
 *
 * Each side waits for the other's last word, so either all processes part, or none does: they agree first. A process is
 * against it while it has another communicator with processes of the remote group's jobs.
 */
#include "comm/part.h"
#include "base/err.h"
#include "coll/coll.h"
#include "pt2pt/disconnect.h"
#include "type/op.h"

static bool connects(const struct comm *c, const void *arg)
{
    const struct comm *gone = arg;
    if (c == gone || c == gone->within) return false;
    return rankmap_shares_job(c->map, gone->map) || rankmap_shares_job(c->local, gone->map);
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

static int ask_all(struct comm *c, bool *all)
{
    int32_t mine = !comm_exists(connects, c), local = 0, remote = 0;
    int rc = least(c->within, &mine, &local);
    if (!rc) rc = least(c, &local, &remote);
    *all = !rc && local && remote;
    return rc;
}

int comm_part_agree(struct comm *c, struct parting *p)
{
    bool all = false;
    *p = (struct parting){NULL, NULL};
    if (!c->inter || !rankmap_has_others(c->map) || rankmap_has_others(c->local)) return coll_barrier(c);
    int rc = ask_all(c, &all);
    if (!all) return rc;
    p->within = comm_ref(c->within);
    p->other = rankmap_ref(c->map);
    return 0;
}

int comm_part(struct parting *p)
{
    if (!p->within) return 0;
    pt_disconnect(p->other);
    int rc = coll_barrier(p->within);
    rankmap_unref(p->other);
    comm_unref(p->within);
    return rc;
}
