/*
 * body.c - slabs of message bodies and of their payload chunks.
 *
 *   slab, 64 KB at a multiple of 64 KB:  | header, one line | item | item | ... |
 *
 * Items are handed out in address order first, so the heads of messages that
 * arrive in a row lie in a row (LHS-1) and pages are touched only when needed;
 * freed ones are handed out again, the last freed first.
 */
#include "pt2pt/match/body.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES ((size_t)65536)
#define CHUNK_MIN 64    /* payload bytes of class 1 */
#define WHERE_LARGE 255 /* body.where of a payload beyond all classes */
#define WHERE_LENT 254  /* of one that lies elsewhere; behind its address is that of its struct match_loan */

struct match_loan {
    struct link link; /* in pool.lent */
    void (*end)(void *owner);
    void *owner;
};

struct match_slab {
    struct link link;   /* in the class's list of slabs with room; a list of its own when full */
    void *free;         /* items freed, linked through their first word */
    uint32_t used;      /* items handed out */
    uint32_t untouched; /* items from here to the end were never handed out */
    uint32_t count;     /* items in all */
    uint32_t class;
};
static_assert(sizeof(struct match_slab) <= CACHE_LINE, "items begin in the second line");

static const size_t chunk_max = (size_t)CHUNK_MIN << (MATCH_CLASSES - 2);

void match_pool_init(struct match_pool *p, size_t limit, size_t head)
{
    *p = (struct match_pool){.limit = limit};
    list_init(&p->large);
    list_init(&p->lent);
    head = head < MATCH_HEAD_MIN ? MATCH_HEAD_MIN : min_size(head, MATCH_HEAD_MAX);
    p->class[0].size = (uint32_t)round_up(head, CACHE_LINE);
    for (uint32_t c = 1; c < MATCH_CLASSES; c++) p->class[c].size = (uint32_t)CHUNK_MIN << (c - 1);
    for (uint32_t c = 0; c < MATCH_CLASSES; c++) {
        list_init(&p->class[c].room);
        list_init(&p->class[c].full);
    }
}

static struct match_slab *slab_new(struct match_class *c, uint32_t index)
{
    struct match_slab *s = aligned_alloc(SLAB_BYTES, SLAB_BYTES);
    if (!s) return NULL;
    *s = (struct match_slab){.count = (uint32_t)((SLAB_BYTES - CACHE_LINE) / c->size), .class = index};
    list_push(&c->room, &s->link);
    return s;
}

static void *item_new(struct match_pool *p, uint32_t index)
{
    struct match_class *c = &p->class[index];
    struct match_slab *s =
        list_empty(&c->room) ? slab_new(c, index) : container_of(c->room.next, struct match_slab, link);
    void *item;
    if (unlikely(!s)) return NULL;
    item = s->free;
    if (item)
        memcpy(&s->free, item, sizeof s->free);
    else
        item = (char *)s + CACHE_LINE + (size_t)s->untouched++ * c->size;
    if (++s->used == s->count) {
        list_remove(&s->link);
        list_push(&c->full, &s->link);
    }
    return item;
}

static void item_free(struct match_pool *p, void *item)
{
    struct match_slab *s = (struct match_slab *)((uintptr_t)item & ~(SLAB_BYTES - 1));
    struct match_class *c = &p->class[s->class];
    memcpy(item, &s->free, sizeof s->free);
    s->free = item;
    if (s->used-- == s->count) {
        list_remove(&s->link);
        list_push(c->room.next, &s->link); /* before the first: its lines are the warmest */
    }
    if (s->used || (c->room.next == &s->link && c->room.prev == &s->link)) return;
    list_remove(&s->link);
    free(s);
}

static void list_free(struct link *slabs)
{
    for (struct link *l; (l = list_pop(slabs));) free(container_of(l, struct match_slab, link));
}

size_t match_body_inline_max(const struct match_pool *p, unsigned cookies)
{
    return p->class[0].size - sizeof(struct match_body) - cookies * sizeof(uint64_t);
}

static uint8_t where_for(const struct match_pool *p, unsigned cookies, uint32_t payload)
{
    if (payload <= match_body_inline_max(p, cookies)) return 0;
    if (payload > chunk_max) return WHERE_LARGE;
    uint8_t c = 1;
    while (payload > p->class[c].size) c++;
    return c;
}

static size_t bytes_of(const struct match_pool *p, uint8_t where, uint32_t payload)
{
    return p->class[0].size + (!where                 ? 0
                               : where == WHERE_LENT  ? sizeof(struct match_loan) + payload
                               : where == WHERE_LARGE ? sizeof(struct link) + payload
                                                      : p->class[where].size);
}

/* A payload beyond all classes: from malloc, behind a link, so that match_pool_fini finds it. */
static void *large_new(struct match_pool *p, size_t payload)
{
    struct link *l = malloc(sizeof *l + payload);
    if (!l) return NULL;
    list_push(&p->large, l);
    return l + 1;
}

static void large_free(void *payload)
{
    struct link *l = (struct link *)payload - 1;
    list_remove(l);
    free(l);
}

/* The payload's chunk, whose address goes behind the cookies. False when memory is out. */
static bool chunk_new(struct match_pool *p, struct match_body *b)
{
    void *chunk = b->where == WHERE_LARGE ? large_new(p, b->held) : item_new(p, b->where);
    b->cookie[b->cookies] = (uintptr_t)chunk;
    return chunk;
}

static void count_body(struct match_pool *p, size_t bytes)
{
    p->used += bytes;
    p->bodies++;
    if (p->used > p->peak) p->peak = p->used;
}

struct match_body *match_body_new(struct match_pool *p, unsigned cookies, uint32_t payload)
{
    uint8_t where = where_for(p, cookies, payload);
    size_t bytes = bytes_of(p, where, payload);
    assert(cookies <= MATCH_COOKIES_MAX && (!where || cookies < MATCH_COOKIES_MAX));
    if (unlikely(bytes > p->limit - p->used)) return NULL;
    struct match_body *b = item_new(p, 0);
    if (unlikely(!b)) return NULL;
    b->held = payload;
    b->cookies = (uint8_t)cookies;
    b->where = where;
    if (where && !chunk_new(p, b)) {
        item_free(p, b);
        return NULL;
    }
    count_body(p, bytes);
    return b;
}

struct match_body *match_body_lend(struct match_pool *p, unsigned cookies, uint32_t payload, const void *data,
                                   void (*end)(void *owner), void *owner)
{
    size_t bytes = bytes_of(p, WHERE_LENT, payload);
    assert(cookies < MATCH_COOKIES_MAX - 1);
    if (unlikely(bytes > p->limit - p->used)) return NULL;
    struct match_loan *loan = malloc(sizeof *loan);
    struct match_body *b = loan ? item_new(p, 0) : NULL;
    if (unlikely(!b)) {
        free(loan);
        return NULL;
    }
    *loan = (struct match_loan){.end = end, .owner = owner};
    list_push(&p->lent, &loan->link);
    b->held = payload;
    b->cookies = (uint8_t)cookies;
    b->where = WHERE_LENT;
    b->cookie[cookies] = (uintptr_t)data;
    b->cookie[cookies + 1] = (uintptr_t)loan;
    count_body(p, bytes);
    return b;
}

static void loan_end(struct match_loan *loan)
{
    list_remove(&loan->link);
    loan->end(loan->owner);
    free(loan);
}

void match_body_free(struct match_pool *p, struct match_body *b)
{
    p->used -= bytes_of(p, b->where, b->held);
    p->bodies--;
    if (b->where == WHERE_LARGE)
        large_free(match_body_payload(b));
    else if (b->where == WHERE_LENT)
        loan_end((struct match_loan *)(uintptr_t)b->cookie[b->cookies + 1]);
    else if (b->where)
        item_free(p, match_body_payload(b));
    item_free(p, b);
}

void match_pool_fini(struct match_pool *p)
{
    for (struct link *l; (l = list_pop(&p->large));) free(l);
    while (!list_empty(&p->lent)) loan_end(container_of(p->lent.next, struct match_loan, link));
    for (size_t i = 0; i < MATCH_CLASSES; i++) {
        list_free(&p->class[i].room);
        list_free(&p->class[i].full);
    }
    p->used = 0;
    p->bodies = 0;
}
