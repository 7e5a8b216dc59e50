/*
 * inter.c - making and merging intercommunicators.
 *
 * The two leaders exchange what their groups are and a context id each; the one
 * whose leader has the lower name (proc/jobs.h) is used. Inside a group the leader tells
 * the others by a broadcast. Each group also gets an intracommunicator of its own
 * (comm.within), in which later collective work on the intercommunicator is agreed.
 *
 * If there are processes of several jobs, that is not enough: who is not connected with a job knows nothing of it. Then the leaders find
 * only that, and dpm (comm_inter_fn) makes the communicator.
 */
#include "base/err.h"
#include "comm/agree.h"
#include "comm/create.h"
#include "comm/meeting.h"
#include "comm/talk.h"
#include "obj/rankset.h"

#include <stdlib.h>

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory for the groups of an intercommunicator"); }

/* Leader: are the groups disjoint? Both leaders find the same. */
static int check_apart(const struct comm *local, const struct side *s, const void *packed)
{
    struct rankmap *theirs = rankmap_unpack(&s->form, packed), *both = theirs ? rankset_common(local->local, theirs) : NULL;
    int rc = 0;
    if (!theirs) rc = err_code();
    else if (!both) rc = no_memory();
    else if (both->size)
        rc = err_set(TERN_ERR_COMM, "%d processes are in both groups (the first is rank %d in the local one); they have to be disjoint",
                     both->size, rankmap_find_once(local->local, rankmap_at(both, 0)));
    rankmap_unref(both);
    rankmap_unref(theirs);
    return rc;
}

/* Are all members of both groups of one job? */
static bool are_one_job(const struct side *mine, const struct side *theirs) { return mine->form.job && mine->form.job == theirs->form.job; }

/* Leader: swaps sides, then the groups, if they are of one job. *theirs_p, the other group packed, is malloc'ed. */
static int swap_groups(struct comm *local, struct comm *peer, int remote_leader, int tag, struct news *n, void **theirs_p)
{
    const struct rankmap *m = local->local;
    struct side mine = {.ctx = comm_fresh_ctx(), .leader = jobs_own_name(), .form = rankmap_form_of(m)};
    size_t bytes = rankmap_packed(&mine.form);
    void *ours = malloc(bytes);
    if (!ours) mine.form.size = -1;
    n->within = comm_fresh_ctx_of(local);
    int rc = talk_swap(peer, &mine, sizeof mine, &n->remote, sizeof n->remote, remote_leader, tag);
    if (!rc && (!ours || n->remote.form.size < 0)) rc = no_memory(); /* here or there: both leaders stop */
    n->several_jobs = !rc && !are_one_job(&mine, &n->remote);
    if (!rc && !n->several_jobs) {
        size_t their_bytes = rankmap_packed(&n->remote.form);
        n->ctx = side_context(&mine, &n->remote);
        rankmap_pack(m, ours);
        *theirs_p = malloc(their_bytes);
        rc = talk_swap(peer, ours, bytes, *theirs_p, *theirs_p ? their_bytes : 0, remote_leader, tag);
        if (!*theirs_p) rc = no_memory();
    }
    free(ours);
    return rc || n->several_jobs ? rc : check_apart(local, &n->remote, *theirs_p);
}

/* Every member: the communicator from what the leader told. */
static int make_inter(struct comm *local, const struct news *n, const void *theirs, struct comm **out)
{
    struct rankmap *remote = rankmap_unpack(&n->remote.form, theirs);
    if (!remote) return err_code();
    return comm_new_inter(n->ctx, n->within, rankmap_ref(local->local), remote, local, out);
}

/* Every member: the other group's list from the leader, who has it, and the communicator. */
static int join_leader(struct comm *local, int leader, const struct news *n, void **theirs_p, struct comm **out)
{
    size_t bytes = rankmap_packed(&n->remote.form);
    int rc = talk_spread_new(local, theirs_p, bytes, leader);
    return rc ? rc : make_inter(local, n, *theirs_p, out);
}

int comm_inter_create(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag, comm_inter_fn of_jobs, struct comm **out)
{
    struct news n = {.rc = TERN_ERR_COMM};
    void *theirs = NULL;
    *out = NULL;
    tag = TALK_INTER | (tag & TALK_TAGS);
    if (local->rank == leader && peer) n.rc = swap_groups(local, peer, remote_leader, tag, &n, &theirs);
    int own = local->rank == leader ? err_keep(&n, n.rc) : 0, rc = talk_spread(local, &n, sizeof n, leader);
    err_recall(&n, own); /* members that have died do not change why the leader has failed */
    if (!rc && !n.rc && n.several_jobs) return of_jobs(local, leader, peer, remote_leader, tag, out);
    if (!rc && !n.rc) rc = join_leader(local, leader, &n, &theirs, out);
    else if (!rc) rc = own ? own : err_set(n.rc, "the local leader (rank %d) came to no agreement with the remote leader", leader);
    free(theirs);
    return rc;
}

/* ---- from two groups, without any communicator ---- */

/* Leader: a meeting with the other group's leader, and that one's rank in it. NULL if something is wrong with it, in words. */
static struct comm *meet_leader(const struct group *local, const struct group *remote, int remote_leader, const char *tag,
                                const struct comm *like, int *rank_p)
{
    uint32_t mine = rankmap_at(local->map, local->rank), theirs = rankmap_at(remote->map, remote_leader);
    bool first = jobs_before(mine, theirs);
    uint32_t both[2] = {first ? mine : theirs, first ? theirs : mine};
    struct comm *leaders = NULL;
    *rank_p = first;
    if (mine == theirs) err_set(TERN_ERR_GROUP, "the leader is in both groups, which have to be disjoint");
    else meeting_open(MEETING_LEADERS, tag, rankmap_list(2, both), like, &leaders);
    return leaders;
}

int comm_inter_from_groups(struct group *local, int leader, struct group *remote, int remote_leader, const char *tag,
                           struct errhandler *errh, comm_inter_fn of_jobs, struct comm **out)
{
    struct comm like = {.errh = errh, .session = local->session}, *meeting, *leaders = NULL;
    int rank = 0, own = 0;
    *out = NULL;
    int rc = meeting_open(MEETING_LOCAL, tag, rankmap_ref(local->map), &like, &meeting);
    if (rc) return rc;
    if (local->rank == leader && remote && !(leaders = meet_leader(local, remote, remote_leader, tag, &like, &rank)))
        own = err_keep(&like, err_code());
    rc = comm_inter_create(meeting, leader, leaders, rank, 0, of_jobs, out);
    err_recall(&like, own);
    if (own) rc = own;
    if (leaders) comm_unref(leaders);
    comm_unref(meeting);
    return rc;
}

/* ---- making more of one ---- */

/* The ranks 0 of both groups swap a word over the intercommunicator; all members of this one learn the result. */
static int confer(struct comm *inter, bool high, struct side *mine, struct news *n)
{
    *n = (struct news){0};
    *mine = (struct side){.leader = side_name(rankmap_at(inter->local, 0)), .high = high};
    if (inter->rank == 0) {
        mine->ctx = comm_fresh_ctx_of(inter);
        n->within = comm_fresh_ctx_of(inter->within);
        n->rc = talk_swap(inter, mine, sizeof *mine, &n->remote, sizeof n->remote, 0, TALK_INTER);
        n->ctx = side_context(mine, &n->remote);
        mine->high = high;
    }
    int own = err_keep(n, n->rc), rc = talk_spread(inter->within, n, sizeof *n, 0);
    if (!rc) rc = talk_spread(inter->within, mine, sizeof *mine, 0); /* rank 0's `high` speaks for the group */
    err_recall(n, own);
    if (own || rc) return own ? own : rc;
    return n->rc ? err_set(n->rc, "rank 0 of the group has no answer of the other group") : 0;
}

int comm_inter_merge(struct comm *inter, bool high, struct comm **out)
{
    struct side mine;
    struct news n;
    int rc = confer(inter, high, &mine, &n);
    if (rc) return rc;
    /* Both the same: any order will do as long as both sides take the same. */
    bool first = mine.high == n.remote.high ? proc_name_before(&mine.leader, &n.remote.leader) : !mine.high;
    return comm_new(n.ctx, rankset_join(first ? inter->local : inter->map, first ? inter->map : inter->local), NULL, inter, out);
}
