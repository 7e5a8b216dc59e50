/*
 * split.c - splitting communicators by color and key (MPI-5.0 section 7.4.2), of both
 * kinds: the members of a color on each side become a group.
 */
#include "comm/split.h"
#include "base/err.h"
#include "coll/coll.h"
#include "comm/talk.h"

#include <stdlib.h>

struct member {
    int32_t key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int no_memory(int32_t size) { return err_set(TERN_ERR_NOMEM, "no memory to split a communicator of %d ranks", size); }

/* ---- votes ---- */

struct vote split_vote(const struct comm *parent, int64_t color, int key, int type)
{
    return (struct vote){color, key, type, comm_fresh_ctx_of(parent), comm_fresh_ctx_of(parent)};
}

static int gather_own(struct comm *c, const void *mine, size_t bytes, void **all_p)
{
    struct type *byte = type_of(MPI_BYTE);
    *all_p = malloc((size_t)c->size * bytes);
    if (!*all_p) return no_memory(c->size);
    return coll_allgather(c, mine, (int64_t)bytes, byte, *all_p, (int64_t)bytes, byte);
}

/* What the other group said: the ranks 0 swap, the others are told. */
static int gather_remote(struct comm *inter, const void *ours, size_t bytes, void **theirs_p)
{
    size_t out = (size_t)inter->size * bytes, in = (size_t)inter->map->size * bytes;
    int32_t rc = 0;
    *theirs_p = malloc(in);
    if (!*theirs_p) return no_memory(inter->map->size);
    if (inter->rank == 0) rc = talk_swap(inter, ours, out, *theirs_p, in, 0, TALK_INTER);
    int32_t its = err_keep(&rc, rc);
    int told = coll_bcast(inter->within, &its, sizeof its, type_of(MPI_BYTE), 0);
    err_recall(&rc, rc);
    if (rc || told) return rc ? rc : told;
    if (its) return err_set(its, "rank 0 of the group has no answer of the other group");
    return coll_bcast(inter->within, *theirs_p, (int64_t)in, type_of(MPI_BYTE), 0);
}

int split_gather(struct comm *c, const void *mine, size_t bytes, void **ours_p, void **theirs_p)
{
    *ours_p = *theirs_p = NULL;
    int rc = gather_own(c->inter ? c->within : c, mine, bytes, ours_p);
    if (!rc && c->inter) rc = gather_remote(c, *ours_p, bytes, theirs_p);
    if (!rc) return 0;
    free(*ours_p);
    free(*theirs_p);
    *ours_p = *theirs_p = NULL;
    return rc;
}

/* ---- parts ---- */

/* The processes of a group that voted for `color`, in their new order, and the vote of the first. An empty map: none. */
static int choose(const struct vote *votes, const struct rankmap *group, int64_t color, struct rankmap **map_p,
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

/* The two groups of a color, both with members, become an intercommunicator. The maps are taken over. */
static int join(struct comm *parent, struct rankmap *local, const struct vote *ours, struct rankmap *remote,
                const struct vote *theirs, struct comm **out)
{
    uint64_t ctx = jobs_before(rankmap_at(local, 0), rankmap_at(remote, 0)) ? ours->ctx : theirs->ctx;
    return comm_new_inter(ctx, ours->within, local, remote, parent, out);
}

int split_make(struct comm *parent, const struct vote *ours, const struct vote *theirs, struct comm **out)
{
    const struct vote *our_first, *their_first;
    struct rankmap *local, *remote;
    int64_t color = ours[parent->rank].color;
    if (color == SPLIT_NONE) return 0;
    int rc = choose(ours, parent->local, color, &local, &our_first);
    if (rc) return rc;
    if (!theirs) return comm_new(our_first->ctx, local, NULL, parent, out);
    rc = choose(theirs, parent->map, color, &remote, &their_first);
    if (!rc && remote->size) return join(parent, local, our_first, remote, their_first, out);
    rankmap_unref(local);
    if (!rc) rankmap_unref(remote); /* nobody there: no communicator (7.4.2) */
    return rc;
}

int comm_split(struct comm *parent, int color, int key, struct comm **out)
{
    struct vote mine = split_vote(parent, color == MPI_UNDEFINED ? SPLIT_NONE : color, key, 0);
    void *ours, *theirs;
    *out = NULL;
    int rc = split_gather(parent, &mine, sizeof mine, &ours, &theirs);
    if (!rc) rc = split_make(parent, ours, theirs, out);
    free(theirs);
    free(ours);
    return rc;
}
