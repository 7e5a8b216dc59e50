/*
 * split.c - splitting communicators by color and key (MPI-5.0 section 7.4.2), of both
 * kinds: the members of a color on each side become a group.
 */
#include "base/err.h"
#include "coll/coll.h"
#include "comm/create.h"
#include "comm/talk.h"
#include "proc/proc.h"

#include <stdlib.h>

/* What each rank says; known to all. The fresh contexts are used if the rank becomes the first of its color. */
struct vote {
    int32_t color, key;
    uint64_t ctx, within;
};

struct member {
    int32_t key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int no_memory(int32_t size) { return err_set(TERN_ERR_NOMEM, "no memory to split a communicator of %d ranks", size); }

/* The processes of a group that voted for `color`, in their new order, and the vote of the first. An empty map: none. */
static int choose(const struct vote *votes, const struct rankmap *group, int32_t color, struct rankmap **map_p,
                  const struct vote **first_p)
{
    size_t size = (size_t)group->size;
    struct member *m = malloc(size * sizeof *m);
    uint32_t *index = malloc(size * sizeof *index);
    int32_t n = 0;
    *map_p = NULL;
    for (int32_t r = 0; r < group->size && m && index; r++)
        if (votes[r].color == color) m[n++] = (struct member){votes[r].key, r};
    if (m && index) {
        qsort(m, (size_t)n, sizeof *m, by_key);
        for (int32_t i = 0; i < n; i++) index[i] = rankmap_at(group, m[i].rank);
        *first_p = n ? &votes[m[0].rank] : NULL;
        *map_p = rankmap_list(n, index);
    }
    free(index);
    free(m);
    return *map_p ? 0 : no_memory(group->size);
}

/* Everybody's vote in the communicator `c`, malloc'ed. */
static int gather_votes(struct comm *c, int color, int key, struct vote **votes_p)
{
    struct vote mine = {color, key, 0, 0};
    struct type *byte = type_of(MPI_BYTE);
    if (color != MPI_UNDEFINED) mine.ctx = comm_fresh_ctx(), mine.within = comm_fresh_ctx();
    *votes_p = malloc((size_t)c->size * sizeof mine);
    if (!*votes_p) return no_memory(c->size);
    return coll_allgather(c, &mine, sizeof mine, byte, *votes_p, sizeof mine, byte);
}

static int split_intra(struct comm *parent, int color, int key, struct comm **out)
{
    struct vote *votes = NULL;
    const struct vote *first;
    struct rankmap *map;
    int rc = gather_votes(parent, color, key, &votes);
    if (!rc && color != MPI_UNDEFINED) {
        rc = choose(votes, parent->local, color, &map, &first);
        if (!rc) rc = comm_new(first->ctx, map, NULL, parent, out);
    }
    free(votes);
    return rc;
}

/* The votes of the other group: the ranks 0 swap them, the others are told. Malloc'ed. */
static int remote_votes(struct comm *inter, const struct vote *ours, struct vote **theirs_p)
{
    size_t out = (size_t)inter->size * sizeof *ours, in = (size_t)inter->map->size * sizeof *ours;
    int rc = 0;
    *theirs_p = malloc(in);
    if (!*theirs_p) return no_memory(inter->map->size);
    if (inter->rank == 0) rc = talk_swap(inter, ours, out, *theirs_p, in, 0, TALK_INTER);
    int told = coll_bcast(inter->within, *theirs_p, (int64_t)in, type_of(MPI_BYTE), 0);
    return rc ? rc : told;
}

/* The two groups of a color, both with members, become an intercommunicator. The maps are taken over. */
static int join(struct comm *parent, struct rankmap *local, const struct vote *ours, struct rankmap *remote,
                const struct vote *theirs, struct comm **out)
{
    struct comm *made = NULL;
    uint64_t ctx = rankmap_at(local, 0) < rankmap_at(remote, 0) ? ours->ctx : theirs->ctx;
    int rc = comm_new(ctx, rankmap_ref(local), remote, parent, &made);
    if (!rc) rc = comm_new(ours->within, rankmap_ref(local), NULL, parent, &made->within);
    if (rc && made) comm_unref(made);
    if (!rc) *out = made;
    rankmap_unref(local);
    return rc;
}

static int split_inter(struct comm *parent, int color, int key, struct comm **out)
{
    struct vote *ours = NULL, *theirs = NULL;
    const struct vote *our_first, *their_first;
    struct rankmap *local, *remote;
    int rc = gather_votes(parent->within, color, key, &ours);
    if (!rc) rc = remote_votes(parent, ours, &theirs);
    if (!rc && color != MPI_UNDEFINED) {
        rc = choose(ours, parent->local, color, &local, &our_first);
        if (!rc) rc = choose(theirs, parent->map, color, &remote, &their_first);
        if (rc) rankmap_unref(local);
        else if (remote->size) rc = join(parent, local, our_first, remote, their_first, out);
        else rankmap_unref(local), rankmap_unref(remote); /* nobody there: no communicator (7.4.2) */
    }
    free(theirs);
    free(ours);
    return rc;
}

int comm_split(struct comm *parent, int color, int key, struct comm **out)
{
    *out = NULL;
    return parent->inter ? split_inter(parent, color, key, out) : split_intra(parent, color, key, out);
}

int comm_split_node(struct comm *parent, int key, struct comm **out)
{
    return comm_split(parent, (int)proc_self()->node, key, out);
}
