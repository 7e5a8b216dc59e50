/* create.c - making communicators from groups; see create.h. */
#include "comm/create.h"
#include "base/err.h"
#include "coll/coll.h"
#include "comm/meeting.h"
#include "comm/talk.h"
#include "pt2pt/api.h"

static int parent_rank(const struct comm *parent, const struct group *g, int32_t rank)
{
    return rankmap_find(parent->local, rankmap_at(g->map, rank));
}

/* The context from the rank above in the tree, which may have been told of none. */
static int hear_context(struct comm *parent, const struct group *g, int32_t from, int tag, uint64_t *ctx)
{
    int rc = talk_recv(parent, ctx, sizeof *ctx, parent_rank(parent, g, from), tag);
    if (rc || *ctx) return rc;
    rc = pt_all_live(parent, g->map);
    return rc ? rc : err_set(TERN_ERR_PEER, "a member of the group has died");
}

/* Sends the context from rank 0 of the group along a binomial tree, by messages in the parent. Who has none, since a member
 * has died, tells those below: else they would wait for it. */
static int tell_group(struct comm *parent, const struct group *g, int tag, uint64_t *ctx)
{
    int32_t me = g->rank, size = g->map->size, bit = 1;
    for (; bit < size && !(me & bit); bit <<= 1) {}
    int rc = me ? hear_context(parent, g, me - bit, tag, ctx) : pt_all_live(parent, g->map);
    if (rc) *ctx = 0;
    while (bit >>= 1) {
        if (me + bit >= size) continue;
        int told = talk_send(parent, ctx, sizeof *ctx, parent_rank(parent, g, me + bit), tag);
        if (!rc) rc = told;
    }
    return rc;
}

static int from_group(struct comm *parent, struct group *g, int tag, struct comm **out)
{
    *out = NULL;
    if (g->rank == MPI_UNDEFINED) return 0;
    uint64_t ctx = g->rank == 0 ? comm_fresh_ctx_of(parent) : 0;
    int rc = tell_group(parent, g, tag, &ctx);
    if (rc) return rc;
    return comm_new(ctx, rankmap_ref(g->map), NULL, parent, out);
}

int comm_create_group(struct comm *parent, struct group *g, int tag, struct comm **out)
{
    return from_group(parent, g, TALK_GROUP | (tag & TALK_TAGS), out);
}

int comm_create(struct comm *parent, struct group *g, struct comm **out)
{
    int rc = pt_all_live(parent, parent->local);
    *out = NULL;
    if (rc) return rc;
    if (!parent->inter) return from_group(parent, g, TALK_CREATE, out);
    bool member = g->rank != MPI_UNDEFINED; /* both groups choose members: a split of one color */
    return comm_split(parent, member ? 0 : MPI_UNDEFINED, member ? g->rank : 0, out);
}

int comm_from_group(struct group *g, const char *tag, struct errhandler *errh, struct comm **out)
{
    struct comm *meeting, like = {.errh = errh, .session = g->session};
    *out = NULL;
    if (g->rank == MPI_UNDEFINED) return 0;
    int rc = meeting_open(MEETING_INTRA, tag, rankmap_ref(g->map), &like, &meeting);
    if (rc) return rc;
    rc = from_group(meeting, g, TALK_CREATE, out);
    comm_unref(meeting);
    return rc;
}

int comm_compare(const struct comm *a, const struct comm *b)
{
    if (a == b) return MPI_IDENT;
    if (a->inter != b->inter) return MPI_UNEQUAL;
    struct group ga = {.map = a->local}, gb = {.map = b->local};
    int local = group_compare(&ga, &gb);
    if (a->inter) {
        ga.map = a->map;
        gb.map = b->map;
        int remote = group_compare(&ga, &gb);
        local = local == MPI_IDENT && remote == MPI_IDENT ? MPI_IDENT
                : local == MPI_UNEQUAL || remote == MPI_UNEQUAL ? MPI_UNEQUAL : MPI_SIMILAR;
    }
    return local == MPI_IDENT ? MPI_CONGRUENT : local;
}
