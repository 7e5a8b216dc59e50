/*
 * contexts.c - see contexts.h. The matching state of a communicator is made and dropped with it.
 *
 * What a thread remembers of a context is as good as the table while no communicator has gone since (table.gone). One that goes
 * is counted with its lane held, so the thread that has a lane knows of all that have gone from it: what it remembers of that
 * lane and finds unchanged is there.
 */
#include "pt2pt/contexts.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/closing.h"
#include "pt2pt/early.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "transport/wire_lock.h"

#include <stdlib.h>
#include <string.h>

struct lock contexts_lock;

static struct {
    struct pt_comm **bucket; /* by hash of the context; chains */
    uint32_t mask, count;
    struct pt_comm *spare; /* one that was freed, or NULL */
    _Atomic uint64_t gone; /* entries that have gone so far, and 1. Changed with the lock, and the entry's lane */
} table = {.gone = 1};

/* A context that this thread has found in the table. */
struct known {
    uint64_t ctx;  /* even */
    uint64_t gone; /* table.gone, when it was there; 0: nothing is known */
    struct pt_comm *pt;
    struct lane *lane;
};

/* By the low bits of the count in a context: duplicates of a communicator are numbered in turn. */
#define KNOWN 8
static _Thread_local struct known known[KNOWN] __attribute__((tls_model("initial-exec")));

static struct pt_comm none = {.ctx = CTX_COLL}; /* no context, as it is odd */
struct pt_comm *context_last = &none;
static bool no_last; /* it stays that */

static struct pt_comm **bucket_of(uint64_t ctx)
{
    return &table.bucket[(uint32_t)((ctx >> 1) * 0x9e3779b97f4a7c15u >> 32) & table.mask];
}

static bool grow_table(void)
{
    uint32_t before = table.bucket ? table.mask + 1 : 0, size = before ? 2 * before : 16;
    struct pt_comm **old = table.bucket, **t = calloc(size, sizeof *t);
    if (!t) return false;
    table.bucket = t;
    table.mask = size - 1;
    for (uint32_t i = 0; i < before; i++)
        for (struct pt_comm *p = old[i], *next; p; p = next) {
            next = p->next;
            p->next = *bucket_of(p->ctx);
            *bucket_of(p->ctx) = p;
        }
    free(old);
    return true;
}

/* The one that was freed last is kept for the next: the system's aligned memory costs more than all else here. */
static struct pt_comm *alloc_entry(void)
{
    struct pt_comm *p = table.spare;
    table.spare = NULL;
    return p ? p : aligned_alloc(CACHE_LINE, round_up(sizeof *p, CACHE_LINE));
}

static struct pt_comm *new_entry(uint64_t ctx)
{
    struct pt_comm *p = table.count <= table.mask || grow_table() ? alloc_entry() : NULL;
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    match_init(&p->match[PT_USER]);
    match_init(&p->match[PT_COLL]);
    list_init(&p->takers);
    p->ctx = ctx;
    return p;
}

struct pt_comm *context_add(struct lane *l, struct comm *c, uint64_t ctx)
{
    leaf_take(&contexts_lock);
    struct pt_comm *p = new_entry(ctx);
    if (p) {
        p->comm = c;
        p->lane = l;
        p->next = *bucket_of(ctx);
        *bucket_of(ctx) = p;
        table.count++;
        if (unlikely(early_contexts && wires_threaded)) early_post(p); /* before another thread finds the communicator */
    }
    leaf_give(&contexts_lock);
    if (p) list_push(&l->contexts, &p->in_lane);
    return p;
}

struct pt_comm *context_find_locked(uint64_t ctx)
{
    struct pt_comm *p = table.bucket ? *bucket_of(ctx) : NULL;
    while (p && p->ctx != (ctx & ~CTX_COLL)) p = p->next;
    return p;
}

struct pt_comm *context_find(uint64_t ctx)
{
    leaf_take(&contexts_lock);
    struct pt_comm *p = context_find_locked(ctx);
    if (p && !no_last) context_last = p;
    leaf_give(&contexts_lock);
    return p;
}

/* NULL: there is no such entry. */
static TERN_COLD const struct known *learn(struct known *k, uint64_t ctx)
{
    leaf_take(&contexts_lock);
    struct pt_comm *p = context_find_locked(ctx);
    if (p) *k = (struct known){p->ctx, atomic_load_explicit(&table.gone, memory_order_relaxed), p, p->lane};
    leaf_give(&contexts_lock);
    return p ? k : NULL;
}

/* relaxed: who has the lane that an entry went from has the lock under which that was counted */
static inline const struct known *know(uint64_t ctx)
{
    struct known *k = &known[ctx >> 1 & (KNOWN - 1)];
    bool is_good = k->ctx == (ctx & ~CTX_COLL) && k->gone == atomic_load_explicit(&table.gone, memory_order_relaxed);
    return likely(is_good) ? k : learn(k, ctx);
}

struct lane *context_lane(uint64_t ctx)
{
    const struct known *k = know(ctx);
    return likely(k != NULL) ? k->lane : NULL;
}

struct pt_comm *context_in(struct lane *l, uint64_t ctx)
{
    const struct known *k = know(ctx);
    return likely(k && k->lane == l) ? k->pt : NULL;
}

#define REFS_AHEAD 256

void context_refs_ahead(struct pt_comm *p)
{
    p->refs_ahead = REFS_AHEAD;
    handle_ref_many(&p->comm->h, REFS_AHEAD);
}

void pt_give_back_ahead(struct comm *c)
{
    struct pt_comm *p = c->pt;
    lane_enter(c->lane);
    int32_t left = p->refs_ahead;
    p->refs_ahead = 0;
    lane_leave(c->lane);
    if (left) comm_unref_many(c, left); /* not the last: the caller has one */
}

void contexts_no_last(void)
{
    no_last = true;
    context_last = &none;
}

static void free_body(void *body, int src, int tag, void *lane)
{
    (void)src;
    (void)tag;
    pt_drop_body(lane, body);
}

/* Of a collective that not all have called alike: the sender does not wait for a communicator that is gone here. */
static void swallow_body(void *body, int src, int tag, void *lane)
{
    (void)src;
    (void)tag;
    pt_swallow(lane, body);
}

static void forget(struct pt_comm *p)
{
    struct pt_comm **at = bucket_of(p->ctx);
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    table.count--;
    atomic_fetch_add_explicit(&table.gone, 1, memory_order_relaxed);
    if (context_last == p) context_last = &none;
}

void context_drop(struct pt_comm *p)
{
    leaf_take(&contexts_lock);
    forget(p);
    leaf_give(&contexts_lock);
    list_remove(&p->in_lane);
    match_each(&p->match[PT_USER].unexpected, free_body, p->lane);
    match_each(&p->match[PT_COLL].unexpected, swallow_body, p->lane);
    match_fini(&p->match[PT_USER]);
    match_fini(&p->match[PT_COLL]);
    leaf_take(&contexts_lock);
    struct pt_comm *spare = table.spare;
    table.spare = p;
    leaf_give(&contexts_lock);
    free(spare);
}

/* The one that is chosen; or, for a thread that is in another lane (MPI_Comm_idup), that one if the chosen one is busy. An
 * intercommunicator and the communicator of its local group, which is made first, are in the same lane: the thread gets the one that
 * it is in for both, as another thread may take any other lane in between. */
static struct lane *enter_chosen(const struct comm *c)
{
    struct lane *here = lane_here(), *l = unlikely(here && c->around) ? here : lanes_choose(c);
    if (unlikely(here && !lane_is_mine(l))) {
        if (lane_try(l)) return l;
        l = here;
    }
    lane_enter(l);
    return l;
}

static int comm_made(struct comm *c)
{
    struct lane *l = c->lane = enter_chosen(c);
    struct pt_comm *p = context_add(l, c, c->ctx);
    if (p) {
        if (unlikely(comm_has_others(c))) closing_comm_made(c);
        if (unlikely(!wires_threaded && early_contexts)) early_open(p);
        if (unlikely(!inbox_is_empty(&l->inbox))) lane_drain(l);
        if (unlikely(losses.count || peer_local_only())) pt_lost_members(p);
    }
    lane_leave(l);
    c->pt = p;
    return p ? 0 : err_set(TERN_ERR_NOMEM, "no memory for the matching state of a communicator");
}

static void comm_gone(struct comm *c)
{
    struct lane *l = c->lane;
    lane_enter(l);
    worklist_forget(&l->rndv.incoming, c);
    worklist_forget(&l->rndv.outgoing, c);
    ahead_forget(c);
    context_drop(c->pt);
    if (unlikely(comm_has_others(c))) closing_comm_gone(c);
    lane_leave(l);
    c->pt = NULL;
}

static const struct comm_hooks hooks = {comm_made, comm_gone};

bool contexts_are_open(void) { return table.bucket != NULL; }
uint32_t contexts_count(void) { return table.count; }

int contexts_open(void)
{
    comm_set_hooks(0, &hooks);
    no_last = false;
    return grow_table() ? 0 : err_set(TERN_ERR_NOMEM, "no memory for a table of communicators");
}

void contexts_close(void)
{
    early_close();
    for (uint32_t i = 0; table.bucket && i <= table.mask; i++)
        while (table.bucket[i]) context_drop(table.bucket[i]);
    free(table.bucket);
    free(table.spare);
    table.bucket = NULL;
    table.spare = NULL;
    comm_set_hooks(0, NULL);
}
