/* comm.c - the life of communicators as objects. */
#include "obj/comm.h"
#include "base/err.h"
#include "obj/info.h"

#include <stdio.h>
#include <string.h>

#define LAYERS 3

static const struct comm_hooks *hooks[LAYERS];
static struct comm world, self_comm;
static struct link live = LIST_INIT(live);
static uint64_t leader_part;          /* the upper fields of every context id made here */
static _Atomic uint32_t leader_count; /* contexts made so far; relaxed: only uniqueness matters */

#define COUNT_BITS 27

void comm_set_hooks(int layer, const struct comm_hooks *h)
{
    assert(layer < LAYERS);
    hooks[layer] = h;
}

uint64_t comm_fresh_ctx(void)
{
    uint32_t n = atomic_fetch_add_explicit(&leader_count, 1, memory_order_relaxed);
    return leader_part | (uint64_t)(n & ((1u << COUNT_BITS) - 1)) << 1;
}

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

/* Fills a zeroed communicator; takes over the maps. my_rank: in `local`. */
static int setup(struct comm *c, uint64_t ctx, struct rankmap *local, struct rankmap *remote, int32_t my_rank)
{
    c->h.kind = HANDLE_COMM;
    atomic_store_explicit(&c->h.refs, 1, memory_order_relaxed);
    c->ctx = ctx;
    c->local = local;
    c->map = remote ? remote : rankmap_ref(local);
    c->inter = remote != NULL;
    c->rank = my_rank;
    c->rank_high = (uint64_t)(uint32_t)my_rank << 32;
    c->size = local->size;
    if (!c->errh) c->errh = errh_ref(errh_fatal());
    list_push(&live, &c->all);
    int rc = run_made(c);
    if (rc) list_remove(&c->all);
    return rc;
}

static void drop(struct comm *c)
{
    rankmap_unref(c->map);
    rankmap_unref(c->local);
    if (c->errh) errh_unref(c->errh);
    info_free(c->info);
    if (c->predefined) memset(c, 0, sizeof *c);
    else handle_release(c, sizeof *c);
}

static uint32_t own_index;

int comm_new(uint64_t ctx, struct rankmap *local, struct rankmap *remote, const struct comm *like, struct comm **out)
{
    struct comm *c = local ? handle_alloc(HANDLE_COMM, sizeof *c) : NULL;
    if (!c) {
        rankmap_unref(local);
        rankmap_unref(remote);
        return err_set(TERN_ERR_NOMEM, "no memory for a communicator");
    }
    c->errh = errh_ref(like ? like->errh : errh_fatal());
    int rc = setup(c, ctx, local, remote, rankmap_find(local, own_index));
    if (rc) {
        drop(c);
        return rc;
    }
    *out = c;
    return 0;
}

struct comm *comm_ref(struct comm *c)
{
    handle_ref(&c->h);
    return c;
}

void comm_unref(struct comm *c)
{
    if (!handle_unref(&c->h)) return;
    if (c->within) comm_unref(c->within);
    run_gone(c);
    list_remove(&c->all);
    drop(c);
}

/* World and self have contexts that all agree on without talking: counts 0 and 1 of leader 0 and of oneself. */
static int open_one(struct comm *c, MPI_Comm handle, uint64_t ctx, struct rankmap *map, int32_t rank, const char *name)
{
    if (!map) return err_set(TERN_ERR_NOMEM, "no memory for %s", name);
    memset(c, 0, sizeof *c);
    c->predefined = (uintptr_t)handle;
    snprintf(c->name, sizeof c->name, "%s", name);
    int rc = setup(c, ctx, map, NULL, rank);
    if (rc) drop(c);
    else handle_define((uintptr_t)handle, c);
    return rc;
}

int comm_open(uint32_t job_tag, uint32_t my_rank, uint32_t job_size)
{
    uint64_t job = (uint64_t)(job_tag & 0xfff) << 52;
    own_index = my_rank;
    leader_part = job | (uint64_t)my_rank << 28;
    atomic_store_explicit(&leader_count, 2, memory_order_relaxed);
    int rc = open_one(&world, MPI_COMM_WORLD, job, rankmap_line((int32_t)job_size, 0, 1), (int32_t)my_rank,
                      "MPI_COMM_WORLD");
    if (rc) return rc;
    return open_one(&self_comm, MPI_COMM_SELF, leader_part | 1 << 1, rankmap_line(1, my_rank, 1), 0, "MPI_COMM_SELF");
}

void comm_close(void)
{
    while (!list_empty(&live)) { /* what the user did not free goes too, the latest first: it may hold earlier ones */
        struct comm *c = container_of(live.prev, struct comm, all);
        atomic_store_explicit(&c->h.refs, 1, memory_order_relaxed);
        comm_unref(c);
    }
}

struct comm *comm_world(void) { return &world; }
struct comm *comm_self(void) { return &self_comm; }
struct link *comm_all(void) { return &live; }
