/* levels.c - see levels.h. */
#include "coll/alg/levels.h"

static bool together(const struct coll_levels *x, int level, int a, int b)
{
    return coll_level_group(x, level, a) == coll_level_group(x, level, b);
}

/* Does the rank lead its group of this level? */
static bool leads(const struct coll_levels *x, int level)
{
    if (together(x, level, x->rank, x->first)) return x->rank == x->first;
    for (int r = 0; r < x->rank; r++)
        if (together(x, level, r, x->rank)) return false;
    return true;
}

void coll_levels_open(struct coll_levels *x, const struct coll_shape *s, const struct coll_given *v, int first)
{
    *x = (struct coll_levels){.last = 1, .rank = s->rank, .size = s->size, .first = first};
    if (s->nodes > 1) x->of[x->last++] = v->node;
    if (coll_algs[s->alg].flags & ALG_DOMAINS) x->of[x->last++] = v->domain;
    x->top = x->last;
    while (x->top && leads(x, x->top - 1)) x->top--;
}

/* The next rank from r that is the first of a group of the level within mine above it; `group`: the one before, which
 * it replaces. x->size: there is none. */
static int next_group(const struct coll_levels *x, int level, int r, int *group)
{
    for (; r < x->size; r++) {
        if (!together(x, level - 1, r, x->rank) || coll_level_group(x, level, r) <= *group) continue;
        *group = coll_level_group(x, level, r);
        break;
    }
    return r;
}

struct coll_level coll_level_look(const struct coll_levels *x, int level)
{
    struct coll_level l = {0, 0, 0};
    int mine = coll_level_group(x, level, x->rank), group = -1;
    int home = together(x, level - 1, x->rank, x->first) ? coll_level_group(x, level, x->first) : -1;
    for (int r = next_group(x, level, 0, &group); r < x->size; r = next_group(x, level, r + 1, &group), l.n++) {
        if (group == mine) l.me = l.n;
        if (group == home) l.home = l.n;
    }
    return l;
}

int coll_level_leaders(const struct coll_levels *x, int level, int *leader)
{
    int n = 0, group = -1;
    for (int r = next_group(x, level, 0, &group); r < x->size; r = next_group(x, level, r + 1, &group))
        leader[n++] = together(x, level, r, x->first) ? x->first : r;
    return n;
}

int coll_level_leader(const struct coll_levels *x, int level, int i)
{
    int group = -1, r = next_group(x, level, 0, &group);
    while (i--) r = next_group(x, level, r + 1, &group);
    return together(x, level, r, x->first) ? x->first : r;
}

int coll_levels_above(const struct coll_levels *x)
{
    return coll_level_leader(x, x->top, coll_level_look(x, x->top).home);
}
