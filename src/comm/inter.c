/*
 * inter.c - making and merging intercommunicators.
 *
 * The two leaders exchange what their groups are and a context id each; the one
 * whose leader has the lower process index is used. Inside a group the leader tells
 * the others by a broadcast. Each group also gets an intracommunicator of its own
 * (comm.within), in which later collective work on the intercommunicator is agreed.
 */
#include "base/err.h"
#include "coll/coll.h"
#include "comm/agree.h"
#include "comm/create.h"
#include "comm/talk.h"

#include <stdlib.h>

static int broadcast(struct comm *local, void *buf, size_t bytes, int leader)
{
    return coll_bcast(local, buf, (int64_t)bytes, type_of(MPI_BYTE), leader);
}

static uint32_t *index_list(const struct comm *c)
{
    uint32_t *list = malloc((size_t)c->size * sizeof *list);
    for (int32_t r = 0; r < c->size && list; r++) list[r] = rankmap_at(c->local, r);
    return list;
}

/* Leader: swaps sides, then lists. *theirs_p is malloc'ed. */
static int swap_groups(struct comm *local, struct comm *peer, int remote_leader, int tag, struct news *n, uint32_t **theirs_p)
{
    struct side mine = {comm_fresh_ctx(), comm_index(local, local->rank), local->size, 0, 0};
    uint32_t *list = index_list(local), *theirs = NULL;
    mine.failed = !list;
    n->within = comm_fresh_ctx();
    int rc = talk_swap(peer, &mine, sizeof mine, &n->remote, sizeof n->remote, remote_leader, tag);
    if (!rc && !mine.failed && !n->remote.failed) {
        n->ctx = side_context(&mine, &n->remote);
        theirs = malloc((size_t)n->remote.size * sizeof *theirs);
        if (theirs)
            rc = talk_swap(peer, list, (size_t)mine.size * sizeof *list, theirs, (size_t)n->remote.size * sizeof *theirs,
                           remote_leader, tag);
    }
    free(list);
    *theirs_p = theirs;
    if (!rc && !theirs) rc = err_set(TERN_ERR_NOMEM, "no memory for the groups of an intercommunicator");
    return rc;
}

/* Every member: the communicator from what the leader told. The list is freed. */
static int make_inter(struct comm *local, const struct news *n, uint32_t *theirs, struct comm **out)
{
    struct comm *inter = NULL;
    struct rankmap *remote = rankmap_list(n->remote.size, theirs);
    free(theirs);
    if (!remote) return err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", n->remote.size);
    int rc = comm_new(n->ctx, rankmap_ref(local->local), remote, local, &inter);
    if (!rc) rc = comm_new(n->within, rankmap_ref(local->local), NULL, local, &inter->within);
    if (rc && inter) comm_unref(inter);
    if (!rc) *out = inter;
    return rc;
}

int comm_inter_create(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag, struct comm **out)
{
    struct news n = {0};
    uint32_t *theirs = NULL;
    if (local->rank == leader)
        n.rc = swap_groups(local, peer, remote_leader, TALK_INTER | (tag & TALK_TAGS), &n, &theirs);
    int rc = broadcast(local, &n, sizeof n, leader);
    if (rc || n.rc) {
        free(theirs);
        return rc ? rc : n.rc;
    }
    if (local->rank != leader) theirs = malloc((size_t)n.remote.size * sizeof *theirs);
    if (!theirs) return err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", n.remote.size);
    rc = broadcast(local, theirs, (size_t)n.remote.size * sizeof *theirs, leader);
    if (rc) {
        free(theirs);
        return rc;
    }
    return make_inter(local, &n, theirs, out);
}

/* The ranks 0 of both groups swap a word over the intercommunicator; all members of this one learn the result. */
static int confer(struct comm *inter, bool high, struct side *mine, struct news *n)
{
    *n = (struct news){0};
    *mine = (struct side){0, rankmap_at(inter->local, 0), inter->size, high, 0};
    if (inter->rank == 0) {
        mine->ctx = comm_fresh_ctx();
        n->within = comm_fresh_ctx();
        n->rc = talk_swap(inter, mine, sizeof *mine, &n->remote, sizeof n->remote, 0, TALK_INTER);
        n->ctx = side_context(mine, &n->remote);
        mine->high = high;
    }
    int rc = broadcast(inter->within, n, sizeof *n, 0);
    if (!rc) rc = broadcast(inter->within, mine, sizeof *mine, 0); /* rank 0's `high` speaks for the group */
    return rc ? rc : n->rc;
}

/* Appends the processes of a map to a list. */
static uint32_t *append(uint32_t *at, const struct rankmap *m)
{
    for (int32_t r = 0; r < m->size; r++) *at++ = rankmap_at(m, r);
    return at;
}

int comm_inter_merge(struct comm *inter, bool high, struct comm **out)
{
    struct side mine;
    struct news n;
    int rc = confer(inter, high, &mine, &n);
    if (rc) return rc;
    /* Both the same: any order will do as long as both sides take the same. */
    bool first = mine.high == n.remote.high ? mine.leader < n.remote.leader : !mine.high;
    int32_t size = inter->size + inter->map->size;
    uint32_t *list = malloc((size_t)size * sizeof *list);
    if (!list) return err_set(TERN_ERR_NOMEM, "no memory for a group of %d ranks", size);
    append(append(list, first ? inter->local : inter->map), first ? inter->map : inter->local);
    rc = comm_new(n.ctx, rankmap_list(size, list), NULL, inter, out);
    free(list);
    return rc;
}
