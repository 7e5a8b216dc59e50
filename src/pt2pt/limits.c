/* limits.c - see limits.h. */
#include "pt2pt/limits.h"
#include "base/var.h"
#include "pt2pt/ways.h"
#include "transport/find.h"
#include "transport/wires.h"

#include <assert.h>
#include <string.h>

#define TRANSPORTS_MAX 16

static struct limits table[TRANSPORTS_MAX];
static size_t count;

static int64_t eager_max(const struct tp_cost *c)
{
    for (int id = 0; id < VAR_COUNT && c->eager_variable; id++)
        if (!strcmp(var_table[id].name, c->eager_variable)) return var_int((enum var_id)id);
    return c->eager_max;
}

static const struct limits *find(const struct tp_ops *ops)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].transport == ops) return &table[i];
    return NULL;
}

static void add(const struct tp_ops *ops)
{
    if (find(ops)) return;
    assert(count < TRANSPORTS_MAX);
    table[count++] = (struct limits){ops, eager_max(&ops->cost), ops->cost.bulk_min};
}

void limits_open(void)
{
    const struct wire *w;
    count = 0;
    for (const struct tp_ops *const *t = tp_built_in; *t; t++) add(*t);
    for (int i = 0; (w = wires_at(i)); i++) add(w->ops);
}

int64_t limits_eager_least(void)
{
    int64_t least = table[0].eager_max;
    for (size_t i = 1; i < count; i++)
        if (table[i].eager_max < least) least = table[i].eager_max;
    return least;
}

const struct limits *limits_find(struct peer *p)
{
    add(p->ep.ops); /* one that was opened later */
    p->limits = find(p->ep.ops);
    peer_learn_quota(p);
    ways_learn(p);
    return p->limits;
}
