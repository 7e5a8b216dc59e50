/* create.c - making communicators from groups; see create.h. */
#include "comm/create.h"
#include "base/err.h"
#include "coll/coll.h"
#include "comm/meeting.h"
#include "comm/talk.h"

/* Sends the context from rank 0 of the group along a binomial tree, by messages in the parent. */
static int tell_group(struct comm *parent, const struct group *g, int tag, uint64_t *ctx)
{
    int32_t me = g->rank, size = g->map->size, bit = 1;
    for (; bit < size && !(me & bit); bit <<= 1) {}
    if (me) {
        int rc = talk_recv(parent, ctx, sizeof *ctx, rankmap_find(parent->local, rankmap_at(g->map, me - bit)), tag);
        if (rc) return rc;
    }
    while (bit >>= 1) {
        if (me + bit >= size) continue;
        int rc = talk_send(parent, ctx, sizeof *ctx, rankmap_find(parent->local, rankmap_at(g->map, me + bit)), tag);
        if (rc) return rc;
    }
    return 0;
}

static int from_group(struct comm *parent, struct group *g, int tag, struct comm **out)
{
    *out = NULL;
    if (g->rank == MPI_UNDEFINED) return 0;
    uint64_t ctx = g->rank == 0 ? comm_fresh_ctx() : 0;
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
