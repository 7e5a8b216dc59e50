/* limits.c - see limits.h. */
#include "pt2pt/limits.h"
#include "base/var.h"

#include <string.h>

static struct limits table[] = {
    {.transport = "tcp", .eager_var = VAR_EAGER_TCP},
    {.transport = NULL, .eager_var = VAR_EAGER_SHM},
};

void limits_open(void)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) table[i].eager_max = var_int(table[i].eager_var);
}

int64_t limits_eager_least(void)
{
    int64_t least = table[0].eager_max;
    for (size_t i = 1; i < ARRAY_LEN(table); i++)
        if (table[i].eager_max < least) least = table[i].eager_max;
    return least;
}

const struct limits *limits_find(struct peer *p)
{
    const struct limits *l = table;
    while (l->transport && strcmp(l->transport, p->ep.ops->name)) l++;
    peer_learn_quota(p);
    return p->limits = l;
}
