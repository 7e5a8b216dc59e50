/*
 * comm.h - communicators: a context and a group (or two), MPI-5.0 chapter 7.
 *
 * This is the noun: it never communicates. Making one that others agree on is
 * src/comm; its matching state belongs to src/pt2pt and its schedules to src/coll,
 * which hang their own structures here and are told through the hooks when a
 * communicator appears and goes.
 *
 * Context ids are 64 bits, made by one process of the new communicator (its
 * leader) and told to the others, so they never collide and cost nothing to find:
 *
 *     63                      28 27  26            1   0
 *     | leader rank             | 0 | leader's count | collective? |    all members are of one job
 *     | 36 bits of a hash       | 1 | 26 more        | collective? |    "wide"
 *
 * Wide ones are for communicators with members of several jobs, whose ranks and counts are the same in each: the hash
 * is of the leader's job, rank and count. They are also for processes that have to find each other first
 * (src/comm/meeting.h).
 *
 * MPI_COMM_WORLD exists between MPI_Init and MPI_Finalize only: communicators of
 * sessions come before it, beside it and after it.
 *
 * Threads: immutable after comm_new but for name, error handler and hints (under
 * handle_state_lock), attributes (under the lock of attr.h), what pt2pt and coll keep
 * here (under the lane's lock) and the reference count; the list of all has its lock.
 */
#ifndef TERN_OBJ_COMM_H
#define TERN_OBJ_COMM_H

#include "base/handle.h"
#include "base/hash.h"
#include "base/list.h"
#include "obj/errhandler.h"
#include "obj/rankmap.h"
#include <mpi.h>

struct lane;
struct machine_place;
struct pt_comm;
struct coll_comm;
struct pt_call_log;
struct group;
struct session;
struct win;

#define CTX_COLL ((uint64_t)1) /* the collective half of a context */
#define CTX_WIDE ((uint64_t)1 << 27)

struct comm {
    struct handle h;
    int32_t rank, size;   /* mine and all, of the local group */
    uint64_t ctx;         /* even; with CTX_COLL the collective context */
    uint64_t rank_high;   /* rank in the upper half: half of an envelope */
    struct pt_comm *pt;   /* matching state of both contexts (src/pt2pt) */
    struct lane *lane;
    struct rankmap *map;  /* processes that ranks in calls name: the remote group's for intercommunicators */
    struct rankmap *local; /* the local group's; == map for intracommunicators */
    struct comm *within;   /* of an intercommunicator: the local group's own, for its part of collective work */
    struct comm *around;   /* of that one, while it is being made: the intercommunicator; else NULL */
    struct coll_comm *coll; /* schedules and node-local memory (src/coll), NULL until the first collective */
    _Atomic bool collective;  /* there are `coll` and `calls`, they have not failed, and it has one group: the fast way in */
    struct pt_call_log *call_log; /* part of coll: the collectives called so far (src/pt2pt/call_log.h), or NULL */
    struct errhandler *errh;
    struct session *session; /* that it was made from, referred to; NULL: of the world model */
    bool inter;
    uintptr_t predefined; /* MPI_COMM_WORLD/SELF value, 0 for others */
    struct link all;      /* in the list of live communicators */
    struct hash_link by_ctx; /* in the table of them */
    void *attrs;          /* cached attributes (src/obj/attr) */
    struct info *info;    /* hints that the user gave, owned; NULL: none */
    void *topo;           /* virtual topology (src/topo), NULL: none */
    struct machine_place *places; /* where its processes are, once that was asked (src/topo), else NULL; malloc'ed */
    struct win *win;      /* the window that it was duplicated for (src/rma), NULL: none */
    void *bsend;          /* buffer attached to this communicator (src/pt2pt/bsend) */
    char name[MPI_MAX_OBJECT_NAME]; /* by comm_set_name and comm_name only */
};

static inline struct comm *comm_of(MPI_Comm c) { return handle_get(c, HANDLE_COMM); }

/*
 * Also one that is still being duplicated (comm_reserve). Its groups, attributes, error handler, name, hints and
 * topology are complete, and calls that need nothing else are allowed; it lacks the context by which it communicates.
 */
static inline struct comm *comm_of_local(MPI_Comm c)
{
    struct comm *made = handle_get(c, HANDLE_COMM);
    return likely(made != NULL) ? made : handle_get(c, HANDLE_COMM_RESERVED);
}
static inline MPI_Comm comm_handle(struct comm *c)
{
    return c->predefined ? (MPI_Comm)c->predefined : (MPI_Comm)c;
}
static inline uint32_t comm_index(const struct comm *c, int32_t rank) { return rankmap_at(c->map, rank); }
static inline int32_t comm_peers(const struct comm *c) { return c->map->size; } /* size of the group that ranks name */

/* Called for every communicator made and freed, set by the layers above. A failing `made` undoes the making. */
struct comm_hooks {
    int (*made)(struct comm *);
    void (*gone)(struct comm *);
};
void comm_set_hooks(int layer, const struct comm_hooks *); /* layer 0: pt2pt, 1: coll, 2: attributes, 3: topo, 4: windows */

/* From here on communicators can be made. There is one already, of this process alone. */
int comm_open(uint32_t my_rank);
void comm_close(void);

/* The world model begins: makes MPI_COMM_WORLD, and MPI_COMM_SELF of the one of this process alone. */
int comm_world_open(uint32_t job_size);
/* It ends, and with it all communicators that were made from its own and not freed. */
void comm_world_close(void);

/* The last session ends: communicators that nobody freed go. */
void comm_drop_left(void);

/* A communicator with this context over `local` (and `remote` for an intercommunicator, else NULL), whose references
 * are taken over, also on failure. `like`: where error handler and session come from; NULL for the initial error handler
 * and no session. */
int comm_new(uint64_t ctx, struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out);

/* The same of an intercommunicator, with a communicator of its local group (comm.within), which has the context `within`. */
int comm_new_inter(uint64_t ctx, uint64_t within, struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out);

/*
 * The same in two steps, when the context is to be found out in between. comm_reserve makes the object and its handle,
 * which comm_of does not take for a communicator until comm_found has given it its context. One that is not wanted any
 * more before that, or that comm_found failed for, goes by comm_discard. comm_found_inter is for intercommunicators, and makes
 * comm.within.
 */
int comm_reserve(struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out);
int comm_found(struct comm *, uint64_t ctx);
int comm_found_inter(struct comm *, uint64_t ctx, uint64_t within);
void comm_discard(struct comm *);

void comm_destroy(struct comm *) TERN_COLD; /* by comm_unref only */
static inline struct comm *comm_ref(struct comm *c)
{
    handle_ref(&c->h);
    return c;
}
/* References of several operations at once. */
static inline void comm_unref_many(struct comm *c, int32_t n)
{
    if (unlikely(handle_unref_many(&c->h, n))) comm_destroy(c);
}
static inline void comm_unref(struct comm *c) /* frees with the last reference: operations pending hold one */
{
    if (unlikely(handle_unref(&c->h))) comm_destroy(c);
}

/* Cut to what has room. */
void comm_set_name(struct comm *, const char *);

/* A copy, valid until this thread asks for another name. */
const char *comm_name(const struct comm *);

/* A context id that this process has not given out before, or not for a very long time and no communicator here has it. */
uint64_t comm_fresh_ctx(void);

/* The same for a communicator with members of several jobs; and for one whose members are of `parent`. */
uint64_t comm_fresh_wide_ctx(void);
uint64_t comm_fresh_ctx_of(const struct comm *parent);
static inline bool comm_ctx_is_wide(uint64_t ctx) { return ctx & CTX_WIDE; }

/* May a communicator with members of other jobs have this one, which another process has made? */
bool comm_ctx_is_possible(uint64_t ctx);
bool comm_has_others(const struct comm *); /* members of other jobs, in either group */

/* The one for a meeting that all members name by this number; never one that comm_fresh_ctx gives. */
uint64_t comm_meeting_ctx(uint64_t number);

/* Is there a live communicator for which `is_it` says so? `is_it` makes and frees none. */
bool comm_exists(bool (*is_it)(const struct comm *, const void *arg), const void *arg);

struct comm *comm_world(void); /* MPI_COMM_WORLD; NULL outside the world model */
struct comm *comm_self(void);  /* of this process alone; it is MPI_COMM_SELF as long as there is a world model */
struct link *comm_all(void);   /* live communicators, by comm.all; for tests, while no other thread makes any */

#endif
