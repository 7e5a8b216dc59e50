/* create.c - duplicating, splitting, and making communicators from groups; see create.h. */
#include "comm/create.h"
#include "base/err.h"
#include "coll/coll.h"
#include "comm/talk.h"
#include "proc/proc.h"

#include <stdlib.h>

int comm_dup(struct comm *parent, struct comm **out)
{
    if (parent->inter) return comm_inter_dup(parent, out);
    uint64_t ctx = parent->rank == 0 ? comm_fresh_ctx() : 0;
    int rc = coll_bcast(parent, &ctx, sizeof ctx, type_of(MPI_BYTE), 0);
    if (rc) return rc;
    return comm_new(ctx, rankmap_ref(parent->local), NULL, parent, out);
}

/* ---- split ---- */

/* What each rank says; gathered by all. The fresh context is used if the rank becomes the first of its color. */
struct vote {
    int32_t color, key;
    uint64_t ctx;
};

struct member {
    int32_t key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The ranks with `color` in the order of the new communicator; returns how many. */
static int32_t sort_members(const struct vote *votes, int32_t size, int32_t color, struct member *members)
{
    int32_t n = 0;
    for (int32_t r = 0; r < size; r++)
        if (votes[r].color == color) members[n++] = (struct member){votes[r].key, r};
    qsort(members, (size_t)n, sizeof *members, by_key);
    return n;
}

static int make_from(struct comm *parent, const struct vote *votes, const struct member *members, int32_t n, struct comm **out)
{
    uint32_t *index = malloc((size_t)n * sizeof *index);
    if (!index) return err_set(TERN_ERR_NOMEM, "no memory for a communicator of %d ranks", n);
    for (int32_t i = 0; i < n; i++) index[i] = rankmap_at(parent->local, members[i].rank);
    int rc = comm_new(votes[members[0].rank].ctx, rankmap_list(n, index), NULL, parent, out);
    free(index);
    return rc;
}

static int no_inter(const char *what)
{
    return err_set(TERN_ERR_UNSUPPORTED, "%s of an intercommunicator is not supported in this version", what);
}

int comm_split(struct comm *parent, int color, int key, struct comm **out)
{
    if (parent->inter) return no_inter("a split");
    int32_t size = parent->size;
    struct vote mine = {color, key, color == MPI_UNDEFINED ? 0 : comm_fresh_ctx()};
    struct vote *votes = malloc((size_t)size * sizeof *votes);
    struct member *members = malloc((size_t)size * sizeof *members);
    int rc = votes && members ? 0 : err_set(TERN_ERR_NOMEM, "no memory to split a communicator of %d ranks", size);
    if (!rc) rc = coll_allgather(parent, &mine, sizeof mine, type_of(MPI_BYTE), votes, sizeof mine, type_of(MPI_BYTE));
    *out = NULL;
    if (!rc && color != MPI_UNDEFINED) {
        int32_t n = sort_members(votes, size, color, members);
        rc = make_from(parent, votes, members, n, out);
    }
    free(members);
    free(votes);
    return rc;
}

int comm_split_node(struct comm *parent, int key, struct comm **out)
{
    return comm_split(parent, (int)proc_self()->node, key, out);
}

/* ---- from a group ---- */

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

int comm_create_group(struct comm *parent, struct group *g, int tag, struct comm **out)
{
    *out = NULL;
    if (parent->inter) return no_inter("a subgroup");
    if (g->rank == MPI_UNDEFINED) return 0;
    uint64_t ctx = g->rank == 0 ? comm_fresh_ctx() : 0;
    int rc = tell_group(parent, g, TALK_GROUP | (tag & TALK_TAGS), &ctx);
    if (rc) return rc;
    return comm_new(ctx, rankmap_ref(g->map), NULL, parent, out);
}

int comm_create(struct comm *parent, struct group *g, struct comm **out)
{
    return comm_create_group(parent, g, 0, out);
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
