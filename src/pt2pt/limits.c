/* limits.c - see limits.h. */
#include "pt2pt/limits.h"
#include "base/var.h"
#include "copy/copy.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/ways.h"
#include "transport/find.h"
#include "transport/wire_lock.h"

#include <assert.h>
#include <string.h>

#define TRANSPORTS_MAX 16

#define CHUNK_MAX ((size_t)1 << 30)

struct limits_chunk limits_chunk;

static struct limits table[TRANSPORTS_MAX];
static size_t count;
static struct lock lock; /* a leaf: of the table, whose rows do not change once they are there */

/* What the variable of that name says; `otherwise`: there is none. */
static int64_t said_by(const char *name, int64_t otherwise)
{
    for (int id = 0; id < VAR_COUNT && name; id++)
        if (!strcmp(var_table[id].name, name)) return var_int((enum var_id)id);
    return otherwise;
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
    const struct tp_cost *c = &ops->cost;
    table[count++] = (struct limits){.transport = ops,
                                     .eager_max = said_by(c->eager_variable, c->eager_max),
                                     .ahead_max = min_int64(said_by(c->ahead_variable, 0), AHEAD_LARGEST),
                                     .bulk_min = c->bulk_min};
}

static int64_t chunk_size(enum var_id variable)
{
    int64_t n = var_int(variable);
    return n > 4096 ? (int64_t)min_size((size_t)n, CHUNK_MAX) : 4096;
}

void limits_open(void)
{
    const struct wire *w;
    copy_open();
    limits_chunk = (struct limits_chunk){chunk_size(VAR_CHUNK_CMA), chunk_size(VAR_CHUNK_STREAM)};
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
    peer_learn_quota(p);
    leaf_take(&lock);
    add(p->ep.ops); /* one that was opened later */
    const struct limits *found = find(p->ep.ops);
    if (!p->limits) ways_learn(p);
    __atomic_store_n(&p->limits, found, __ATOMIC_RELEASE); /* pairs with limits_of: ways and quota are there */
    leaf_give(&lock);
    return found;
}
