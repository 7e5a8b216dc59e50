/*
 * group.h - MPI groups: an ordered set of processes (MPI-5.0 chapter 7).
 */
#ifndef TERN_OBJ_GROUP_H
#define TERN_OBJ_GROUP_H

#include "base/handle.h"
#include "obj/rankmap.h"
#include "obj/session.h"
#include <mpi.h>

struct group {
    struct handle h;
    struct rankmap *map;
    int32_t rank; /* of this process, MPI_UNDEFINED when it is not a member */
    struct session *session; /* that it comes from, referred to; NULL: from the world model */
};

static inline struct group *group_of(MPI_Group g) { return handle_get(g, HANDLE_GROUP); }
MPI_Group group_handle(struct group *); /* MPI_GROUP_EMPTY for the empty one */

/* The process index of this process, which groups compare with. Set once at start. */
void group_open(uint32_t my_index);
void group_close(void);

/* A group over `map`, whose reference is taken over; NULL when memory is out (the map is then released). Groups made from
 * others belong to the same session. */
struct group *group_new(struct rankmap *map);
struct group *group_new_in(struct session *, struct rankmap *map);
struct group *group_ref(struct group *);
void group_unref(struct group *);
struct group *group_empty(void); /* the predefined one, not counted */

/* Results: 0 or a code; *out has a reference of its own. Ranks are checked by the caller. What they cost: rankset.h. */
int group_pick(const struct group *, const struct rankmap *ranks, struct group **out); /* the members with these ranks */
int group_drop(const struct group *, const struct rankmap *ranks, struct group **out); /* all others */
int group_incl(const struct group *, int n, const int ranks[], struct group **out);
int group_union(const struct group *, const struct group *, struct group **out);
int group_intersection(const struct group *, const struct group *, struct group **out);
int group_difference(const struct group *, const struct group *, struct group **out);

/* The first rank of a that is no member of b; -1: a is a subset of b. */
int32_t group_outside(const struct group *a, const struct group *b);

/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int group_compare(const struct group *, const struct group *);

/* to[i] = rank in b of the process that is from[i] in a; MPI_UNDEFINED, MPI_PROC_NULL as the standard says. */
int group_translate(const struct group *a, int n, const int from[], const struct group *b, int to[]);

#endif
