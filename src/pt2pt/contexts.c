/*
 * contexts.c - the lane's table of contexts: the matching state of each communicator, made by its first message or by its
 * own making, whichever comes first.
 */
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/closing.h"
#include "pt2pt/lane.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_ctx(uint64_t ctx) { return (uint32_t)((ctx >> 1) * 0x9e3779b97f4a7c15u >> 32); }

static bool grow_table(struct lane *l)
{
    uint32_t size = l->ctx_table ? 2 * (l->ctx_mask + 1) : 16;
    struct pt_comm **t = calloc(size, sizeof *t);
    if (!t) return false;
    for (uint32_t i = 0; l->ctx_table && i <= l->ctx_mask; i++)
        for (struct pt_comm *p = l->ctx_table[i], *next; p; p = next) {
            next = p->next;
            uint32_t h = hash_ctx(p->ctx) & (size - 1);
            p->next = t[h];
            t[h] = p;
        }
    free(l->ctx_table);
    l->ctx_table = t;
    l->ctx_mask = size - 1;
    return true;
}

/* The one that was freed last is kept for the next: the system's aligned memory costs more than all else here. */
static struct pt_comm *alloc_ctx(struct lane *l)
{
    struct pt_comm *p = l->ctx_spare;
    l->ctx_spare = NULL;
    return p ? p : aligned_alloc(CACHE_LINE, round_up(sizeof *p, CACHE_LINE));
}

static void free_ctx(struct lane *l, struct pt_comm *p)
{
    free(l->ctx_spare);
    l->ctx_spare = p;
}

static struct pt_comm *make_ctx(struct lane *l, uint64_t ctx)
{
    if ((!l->ctx_table || l->ctx_count > l->ctx_mask) && !grow_table(l)) return NULL;
    struct pt_comm *p = alloc_ctx(l);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    match_init(&p->match[PT_USER]);
    match_init(&p->match[PT_COLL]);
    p->ctx = ctx;
    uint32_t h = hash_ctx(ctx) & l->ctx_mask;
    p->next = l->ctx_table[h];
    l->ctx_table[h] = p;
    l->ctx_count++;
    l->ctx_early++;
    return p;
}

struct pt_comm *lane_known_ctx(struct lane *l, uint64_t ctx)
{
    struct pt_comm *p = l->ctx_table ? l->ctx_table[hash_ctx(ctx & ~CTX_COLL) & l->ctx_mask] : NULL;
    while (p && p->ctx != (ctx & ~CTX_COLL)) p = p->next;
    return p;
}

struct pt_comm *lane_find_ctx(struct lane *l, uint64_t ctx)
{
    struct pt_comm *p = lane_known_ctx(l, ctx);
    if (!p) p = make_ctx(l, ctx);
    if (p) l->last_ctx = p;
    return p;
}

static void free_body(void *body, int src, int tag, void *lane)
{
    (void)src;
    (void)tag;
    (void)lane;
    pt_drop_body(body);
}

/* Of a collective that not all have called alike: the sender does not wait for a communicator that is gone here. */
static void swallow_body(void *body, int src, int tag, void *lane)
{
    (void)src;
    (void)tag;
    (void)lane;
    pt_swallow(body);
}

void lane_drop_ctx(struct lane *l, struct pt_comm *p)
{
    struct pt_comm **at = &l->ctx_table[hash_ctx(p->ctx) & l->ctx_mask];
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    l->ctx_count--;
    l->ctx_early -= !p->comm;
    if (l->last_ctx == p) l->last_ctx = NULL;
    for (int i = 0; i < 2; i++) {
        match_each(&p->match[i].unexpected, i == PT_COLL && p->comm ? swallow_body : free_body, l);
        match_fini(&p->match[i]);
    }
    free_ctx(l, p);
}

static int comm_made(struct comm *c)
{
    c->lane = &lane0;
    lane_enter(&lane0);
    struct pt_comm *p = lane_find_ctx(&lane0, c->ctx); /* maybe made before by early messages */
    if (p) {
        lane0.ctx_early -= !p->comm;
        p->comm = c;
        if (unlikely(comm_has_others(c))) closing_comm_made(c);
        pt_check_early(p);
        if (unlikely(lane0.lost_count || peer_local_only())) pt_lost_members(p);
    }
    lane_leave(&lane0);
    c->pt = p;
    return p ? 0 : err_set(TERN_ERR_NOMEM, "no memory for the matching state of a communicator");
}

static void comm_gone(struct comm *c)
{
    lane_enter(&lane0);
    lane_drop_ctx(&lane0, c->pt);
    if (unlikely(comm_has_others(c))) closing_comm_gone(c);
    lane_leave(&lane0);
    c->pt = NULL;
}

static const struct comm_hooks hooks = {comm_made, comm_gone};

int contexts_open(struct lane *l)
{
    comm_set_hooks(0, &hooks);
    return grow_table(l) ? 0 : err_set(TERN_ERR_NOMEM, "no memory for a table of communicators");
}

void contexts_close(struct lane *l)
{
    for (uint32_t i = 0; l->ctx_table && i <= l->ctx_mask; i++)
        while (l->ctx_table[i]) lane_drop_ctx(l, l->ctx_table[i]); /* of communicators never made here */
    free(l->ctx_table);
    free(l->ctx_spare);
    l->ctx_table = NULL;
    l->ctx_spare = NULL;
    comm_set_hooks(0, NULL);
}
