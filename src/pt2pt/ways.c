/* ways.c - see ways.h. */
#include "pt2pt/ways.h"
#include "base/var.h"
#include "pt2pt/api.h"
#include "pt2pt/limits.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t needs; /* enum tp_cap, all of them */
    bool one_piece;
} table[WAYS] = {
    [WAY_MAPPED] = {"mapped", TP_CAP_MAP | TP_CAP_ARENA, true},
    [WAY_DIRECT] = {"direct", TP_CAP_MAP | TP_CAP_GETPUT, true},
    [WAY_BULK] = {"bulk", TP_CAP_BULK, true},
    [WAY_IN_PLACE] = {"in_place", TP_CAP_ZCOPY, true},
    [WAY_PACKED] = {"packed", 0, false},
};

static bool is_allowed(enum way w) { return w != WAY_BULK || strcmp(var_text(VAR_BULK), "off"); }

/* Of a wire with these capabilities. */
static uint32_t row(uint32_t caps)
{
    uint32_t ways = 0;
    for (enum way w = 0; w < WAYS; w++)
        if (!(table[w].needs & ~caps) && is_allowed(w)) ways |= (uint32_t)1 << w;
    return ways;
}

void ways_learn(struct peer *p) { p->ways = row(p->ep.caps); }

static bool is_there(const struct peer *p, enum way w) { return p->ways >> w & 1 && !(table[w].needs & ~p->ep.caps); }

bool ways_has(struct peer *p, enum way w)
{
    if (!peer_is_connected(p) && !peer_connect(p->index)) return false;
    limits_of(p);
    return is_there(p, w);
}

enum way ways_best(struct peer *p, enum way first, bool one_piece, int64_t bytes)
{
    enum way w = first;
    int64_t bulk_min = limits_of(p)->bulk_min;
    while (w != WAY_PACKED && (!is_there(p, w) || (table[w].one_piece && !one_piece) || (w == WAY_BULK && bytes < bulk_min))) w++;
    return w;
}

/* What the members of a wire are good for, if no process finds that the system refuses it. */
static uint32_t caps_of(const struct tp_ops *o)
{
    uint32_t caps = 0;
    if (o->map) caps |= TP_CAP_MAP;
    if (o->map_arena) caps |= TP_CAP_ARENA;
    if (o->get && o->put) caps |= TP_CAP_GETPUT;
    if (o->bulk_send) caps |= TP_CAP_BULK;
    if (o->am_zcopy) caps |= TP_CAP_ZCOPY;
    return caps;
}

const char *pt_ways(const struct tp_ops *o, char *text, size_t room)
{
    uint32_t ways = row(caps_of(o));
    size_t n = 0;
    *text = 0;
    for (enum way w = 0; w < WAYS && n < room; w++)
        if (ways >> w & 1) n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "", table[w].name);
    return text;
}
