/* comm.c - the life of communicators as objects. */
#include "obj/comm.h"
#include "base/err.h"
#include "base/scratch.h"
#include "obj/info.h"
#include "obj/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ATTRIBUTES = 2, TOPOLOGY = 3, LAYERS = 5 };

static const struct comm_hooks *hooks[LAYERS];
static struct comm world, self_comm;
static struct link live = LIST_INIT(live);
static struct hash live_ctx;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t leader_part; /* the upper field of the context ids made here for the own job */

/* Contexts made so far; relaxed: only uniqueness matters. World and self have the first two. Goes on when the library is
 * closed and opened again: what others have may be from before. */
static _Atomic uint64_t leader_count = 2;

#define COUNT_MASK (((uint64_t)1 << 26) - 1)

void comm_set_hooks(int layer, const struct comm_hooks *h)
{
    assert(layer < LAYERS);
    hooks[layer] = h;
}

bool comm_exists(bool (*is_it)(const struct comm *, const void *arg), const void *arg)
{
    bool found = false;
    pthread_mutex_lock(&live_lock);
    for (struct link *l = live.next; l != &live && !found; l = l->next) found = is_it(container_of(l, struct comm, all), arg);
    pthread_mutex_unlock(&live_lock);
    return found;
}

static TERN_COLD bool in_use(uint64_t ctx)
{
    pthread_mutex_lock(&live_lock);
    bool found = hash_find(&live_ctx, ctx);
    pthread_mutex_unlock(&live_lock);
    return found;
}

uint64_t comm_fresh_ctx(void)
{
    uint64_t n, ctx;
    do { /* once, but for a process that has made 67 million communicators: an old one may live */
        n = atomic_fetch_add_explicit(&leader_count, 1, memory_order_relaxed);
        ctx = leader_part | (n & COUNT_MASK) << 1;
    } while (unlikely(n > COUNT_MASK) && in_use(ctx));
    return ctx;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

uint64_t comm_fresh_wide_ctx(void)
{
    struct proc_name own = jobs_own_name();
    uint64_t maker = mix(mix(0x3d, own.job), own.rank), ctx;
    do {
        ctx =
            comm_meeting_ctx(mix(mix(maker, atomic_fetch_add_explicit(&leader_count, 1, memory_order_relaxed)), maker));
    } while (unlikely(in_use(ctx)));
    return ctx;
}

bool comm_ctx_is_possible(uint64_t ctx) { return comm_ctx_is_wide(ctx) && !(ctx & CTX_COLL) && !in_use(ctx); }

bool comm_has_others(const struct comm *c) { return rankmap_has_others(c->map) || rankmap_has_others(c->local); }
uint64_t comm_fresh_ctx_of(const struct comm *parent)
{
    return comm_has_others(parent) ? comm_fresh_wide_ctx() : comm_fresh_ctx();
}

uint64_t comm_meeting_ctx(uint64_t number) { return (number | CTX_WIDE) & ~CTX_COLL; }

static int run_made(struct comm *c)
{
    for (int i = 0; i < LAYERS; i++) {
        int rc = hooks[i] && hooks[i]->made ? hooks[i]->made(c) : 0;
        if (!rc) continue;
        while (--i >= 0)
            if (hooks[i] && hooks[i]->gone) hooks[i]->gone(c);
        return rc;
    }
    return 0;
}

static void run_gone(struct comm *c)
{
    for (int i = LAYERS; i-- > 0;)
        if (hooks[i] && hooks[i]->gone) hooks[i]->gone(c);
}

/* Fills a zeroed communicator, all but its context; takes over the maps. my_rank: in `local`. */
static void fill(struct comm *c, struct rankmap *local, struct rankmap *remote, int32_t my_rank)
{
    atomic_store_explicit(&c->h.refs, 1, memory_order_relaxed);
    c->local = local;
    c->map = remote ? remote : rankmap_ref(local);
    c->inter = remote != NULL;
    c->rank = my_rank;
    c->rank_high = (uint64_t)(uint32_t)my_rank << 32;
    c->size = local->size;
    if (!c->errh) c->errh = errh_ref(errh_initial());
}

int comm_found(struct comm *c, uint64_t ctx)
{
    c->h.kind = HANDLE_COMM;
    c->ctx = ctx;
    int rc = run_made(c);
    if (rc) return rc;
    pthread_mutex_lock(&live_lock);
    list_push(&live, &c->all);
    hash_add(&live_ctx, &c->by_ctx, ctx);
    pthread_mutex_unlock(&live_lock);
    return 0;
}

static void drop(struct comm *c)
{
    rankmap_unref(c->map);
    rankmap_unref(c->local);
    if (c->errh) errh_unref(c->errh);
    session_unref(c->session);
    info_free(c->info);
    if (c->predefined) memset(c, 0, sizeof *c);
    else handle_release(c, sizeof *c);
}

static uint32_t own_index;

int comm_reserve(struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out)
{
    struct comm *c = local ? handle_alloc(HANDLE_COMM_RESERVED, sizeof *c) : NULL;
    if (!c) {
        rankmap_unref(local);
        rankmap_unref(remote);
        return err_set(TERN_ERR_NOMEM, "no memory for a communicator");
    }
    c->errh = like ? errh_get(&like->errh) : errh_ref(errh_initial());
    c->session = session_ref(like ? like->session : NULL);
    fill(c, local, remote, rankmap_find_once(local, own_index));
    *out = c;
    return 0;
}

void comm_discard(struct comm *c)
{
    if (c->within) comm_unref(c->within);
    if (c->attrs) hooks[ATTRIBUTES]->gone(c); /* other layers have not seen it */
    if (c->topo) hooks[TOPOLOGY]->gone(c);
    drop(c);
}

int comm_new(uint64_t ctx, struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out)
{
    struct comm *c;
    int rc = comm_reserve(local, remote, like, &c);
    if (!rc && (rc = comm_found(c, ctx))) comm_discard(c);
    if (!rc) *out = c;
    return rc;
}

/* Together, so that the layers above can treat them as one. */
int comm_found_inter(struct comm *c, uint64_t ctx, uint64_t within)
{
    struct comm *own;
    int rc = comm_reserve(rankmap_ref(c->local), NULL, c, &own);
    if (rc) return rc;
    own->around = c;
    rc = comm_found(own, within);
    own->around = NULL;
    if (rc) {
        comm_discard(own);
        return rc;
    }
    c->within = own; /* comm_discard lets it go, too */
    return comm_found(c, ctx);
}

int comm_new_inter(uint64_t ctx, uint64_t within, struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out)
{
    struct comm *c;
    int rc = comm_reserve(local, remote, like, &c);
    if (!rc && (rc = comm_found_inter(c, ctx, within))) comm_discard(c);
    if (!rc) *out = c;
    return rc;
}

void comm_destroy(struct comm *c)
{
    if (c->within) comm_unref(c->within);
    run_gone(c);
    pthread_mutex_lock(&live_lock);
    list_remove(&c->all);
    hash_remove(&live_ctx, &c->by_ctx);
    pthread_mutex_unlock(&live_lock);
    drop(c);
}

/* ---- names ---- */

void comm_set_name(struct comm *c, const char *name)
{
    handle_state_lock();
    snprintf(c->name, sizeof c->name, "%s", name);
    handle_state_unlock();
}

const char *comm_name(const struct comm *c)
{
    static char common[sizeof c->name];
    static struct scratch names = SCRATCH_INIT(common);
    char *name = scratch(&names);
    handle_state_lock();
    memcpy(name, c->name, sizeof c->name);
    handle_state_unlock();
    return name;
}

/* ---- the predefined ones ---- */

/* World and self have contexts that all agree on without talking: counts 0 and 1 of leader 0 and of oneself. */
static int open_one(struct comm *c, MPI_Comm handle, uint64_t ctx, struct rankmap *map, int32_t rank, const char *name)
{
    if (!map) return err_set(TERN_ERR_NOMEM, "no memory for %s", name);
    memset(c, 0, sizeof *c);
    c->predefined = (uintptr_t)handle;
    comm_set_name(c, name);
    fill(c, map, NULL, rank);
    int rc = comm_found(c, ctx);
    if (rc) drop(c);
    return rc;
}

int comm_open(uint32_t my_rank)
{
    own_index = my_rank;
    leader_part = (uint64_t)my_rank << 28;
    return open_one(&self_comm, MPI_COMM_SELF, leader_part | 1 << 1, rankmap_line(1, my_rank, 1), 0, "MPI_COMM_SELF");
}

int comm_world_open(uint32_t job_size)
{
    int rc = open_one(&world, MPI_COMM_WORLD, 0, rankmap_line((int32_t)job_size, 0, 1), (int32_t)own_index,
                      "MPI_COMM_WORLD");
    if (rc) return rc;
    handle_define((uintptr_t)MPI_COMM_WORLD, &world);
    handle_define((uintptr_t)MPI_COMM_SELF, &self_comm);
    return 0;
}

/* A communicator that the user did not free goes, whatever still refers to it. */
static void end(struct comm *c)
{
    atomic_store_explicit(&c->h.refs, 1, memory_order_relaxed);
    comm_unref(c);
}

/* The latest one first: it may hold earlier ones. */
static struct comm *last_one(bool of_sessions)
{
    for (struct link *l = live.prev; l != &live; l = l->prev) {
        struct comm *c = container_of(l, struct comm, all);
        if (c != &self_comm && (of_sessions || !c->session)) return c;
    }
    return NULL;
}

static void end_all(bool of_sessions)
{
    struct comm *c;
    while ((c = last_one(of_sessions))) end(c);
}

/* What the user made of MPI_COMM_SELF is forgotten: from now on it is the library's. */
static void reset_self(void)
{
    struct comm *c = &self_comm;
    errh_set(&c->errh, errh_initial());
    info_free(c->info);
    c->info = NULL;
    comm_set_name(c, "MPI_COMM_SELF");
}

void comm_world_close(void)
{
    handle_define((uintptr_t)MPI_COMM_WORLD, NULL);
    handle_define((uintptr_t)MPI_COMM_SELF, NULL);
    end_all(false);
    reset_self();
}

void comm_drop_left(void) { end_all(true); }

void comm_close(void)
{
    end_all(true);
    if (self_comm.h.kind) end(&self_comm);
    handle_define((uintptr_t)MPI_COMM_WORLD, NULL);
    handle_define((uintptr_t)MPI_COMM_SELF, NULL);
}

struct comm *comm_world(void) { return world.h.kind ? &world : NULL; }
struct comm *comm_self(void) { return &self_comm; }
struct link *comm_all(void) { return &live; }
