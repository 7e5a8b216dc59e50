/* disconnect.c - see disconnect.h. */
#include "pt2pt/disconnect.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

struct search {
    const struct peer *peer;
    bool found;
};

static void compare(void *what, int src, int tag, void *arg)
{
    const struct match_body *b = what;
    struct search *s = arg;
    (void)src, (void)tag;
    s->found |= b->peer == s->peer;
}

static bool has_sent(struct pt_comm *pt, const struct peer *p)
{
    struct search s = {p, pt->lost == p};
    for (int i = 0; i < 2; i++) match_each(&pt->match[i].unexpected, compare, &s);
    return s.found;
}

bool pt_is_referred_to(struct lane *l, const struct peer *p)
{
    uint32_t at = 0;
    bool found = ids_next(&l->ids, p, &at) != NULL;
    list_each(a, next_a, &l->incoming) found |= container_of(a, struct request, link)->peer == p;
    list_each(b, next_b, &l->outgoing) found |= container_of(b, struct request, link)->peer == p;
    for (uint32_t i = 0; i <= l->ctx_mask && !found; i++)
        for (struct pt_comm *pt = l->ctx_table[i]; pt && !found; pt = pt->next) found = has_sent(pt, p);
    return found;
}

void pt_forget(struct peer *p)
{
    pt_lost_forget(p);
    pt_credit_forget(p);
}

/* A peer that is busy, or not closed at the other side yet, is tried again in the next turn. */
static bool closed(struct peer *p) { return !pt_is_referred_to(&lane0, p) && !peer_close(p->index); }

static bool all_closed(void *arg)
{
    const struct rankmap *map = arg;
    bool all = true;
    for (int32_t r = 0; r < map->size; r++) {
        uint32_t index = rankmap_at(map, r);
        struct peer *p = index < peer_count ? peer_table[index] : NULL;
        if (p && p->ep.ops != &tp_self) all &= closed(p);
    }
    return all;
}

void pt_disconnect(const struct rankmap *map)
{
    lane_enter(&lane0);
    lane_wait(&lane0, all_closed, (void *)(uintptr_t)map, NULL);
    lane_leave(&lane0);
}
