/* past.c - see past.h. */
#include "transport/dgram/past.h"

#include <stdlib.h>

static struct link *bucket_of(const struct dgram_past *past, uint64_t id)
{
    return (struct link *)&past->buckets[id % PAST_BUCKETS];
}

static void drop(struct dgram_past *past, struct past_peer *p)
{
    list_remove(&p->bucket);
    list_remove(&p->all);
    past->n--;
    free(p);
}

static struct past_peer *eldest(const struct dgram_past *past)
{
    return list_empty(&past->all) ? NULL : container_of(past->all.next, struct past_peer, all);
}

void past_open(struct dgram_past *past)
{
    for (int i = 0; i < PAST_BUCKETS; i++) list_init(&past->buckets[i]);
    list_init(&past->all);
    past->n = 0;
}

void past_close(struct dgram_past *past)
{
    while (past->n) drop(past, eldest(past));
}

struct past_peer *past_find(const struct dgram_past *past, uint64_t id)
{
    struct link *head = bucket_of(past, id);
    list_each(l, next, head)
    {
        struct past_peer *p = container_of(l, struct past_peer, bucket);
        if (p->id == id) return p;
    }
    return NULL;
}

/* Half of them at a time, so that the epoch changes rarely. */
static bool make_room(struct dgram_past *past, uint64_t now, uint64_t age)
{
    bool dropped = false;
    size_t keep = past->n >= PAST_MANY ? PAST_MANY / 2 : 0;
    if (past->n < PAST_SOME || (!keep && now - eldest(past)->when < age)) return false;
    while (past->n && (now - eldest(past)->when >= age || (keep && past->n > keep))) {
        drop(past, eldest(past));
        dropped = true;
    }
    return dropped;
}

bool past_add(struct dgram_past *past, const struct past_peer *p, uint64_t age)
{
    bool dropped = make_room(past, p->when, age);
    struct past_peer *own = malloc(sizeof *own);
    if (!own) return true; /* as if it had been dropped at once */
    *own = *p;
    list_push(bucket_of(past, p->id), &own->bucket);
    list_push(&past->all, &own->all);
    past->n++;
    return dropped;
}
