/*
 * list.h - an intrusive doubly linked list. A list head is a link of its own; an
 * element embeds a struct link and is found back with container_of.
 */
#ifndef TERN_BASE_LIST_H
#define TERN_BASE_LIST_H

#include "base/compiler.h"

struct link {
    struct link *next, *prev;
};

#define LIST_INIT(head) {&(head), &(head)}

static inline void list_init(struct link *head) { head->next = head->prev = head; }
static inline bool list_empty(const struct link *head) { return head->next == head; }

static inline void list_push(struct link *head, struct link *l) /* at the end */
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void list_insert(struct link *at, struct link *l) /* behind `at`; behind the head: at the front */
{
    list_push(at->next, l); /* which is: before at->next */
}

/* Takes `l` out of its list; it is then a list of its own, so taking it out again does no harm. */
static inline void list_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

static inline struct link *list_pop(struct link *head) /* the first, NULL when empty */
{
    struct link *l = head->next;
    if (l == head) return NULL;
    list_remove(l);
    return l;
}

/* Visits every element; the one visited may be removed. `next` is a struct link * of the caller. */
#define list_each(l, next_l, head) \
    for (struct link *l = (head)->next, *next_l = l->next; l != (head); l = next_l, next_l = l->next)

#endif
