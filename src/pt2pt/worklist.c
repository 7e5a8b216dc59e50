/* worklist.c - see worklist.h. */
#include "pt2pt/lane.h"

void worklist_open(struct progress *p, struct worklist *w, const struct step_ops *ops)
{
    list_init(&w->requests);
    w->step = (struct step){.ops = ops};
    step_add(p, &w->step);
}

static struct request *entry_of(struct link *l) { return container_of(l, struct request, link); }

static void rest_if_empty(struct worklist *w)
{
    if (list_empty(&w->requests)) step_off(&w->step);
}

void worklist_push(struct progress *p, struct worklist *w, struct request *r)
{
    list_push(&w->requests, &r->link);
    step_on(p, &w->step);
}

/* While the step walks through the list, that is not empty: the walk turns the step off. */
void worklist_remove(struct worklist *w, struct request *r)
{
    list_remove(&r->link);
    rest_if_empty(w);
}

/* The place is kept by a link of our own. */
int worklist_all(struct worklist *w, int (*go_on)(struct request *))
{
    struct link place, *head = &w->requests;
    int n = 0;
    list_insert(head, &place);
    while (place.next != head && !lane_in_the_way(lane_of_step(&w->step))) {
        struct link *l = place.next;
        list_remove(&place);
        list_insert(l, &place);
        n += go_on(entry_of(l));
    }
    list_remove(&place);
    rest_if_empty(w);
    return n;
}

int worklist_some(struct worklist *w, int (*go_on)(struct request *), int most)
{
    struct link end, *head = &w->requests;
    int n = 0;
    list_push(head, &end);
    while (most-- && head->next != &end && !lane_in_the_way(lane_of_step(&w->step))) {
        struct link *l = head->next;
        list_remove(l);
        list_push(head, l);
        n += go_on(entry_of(l));
    }
    list_remove(&end);
    rest_if_empty(w);
    return n;
}

bool worklist_is_empty(const struct step *s) { return list_empty(&worklist_of(s)->requests); }

bool worklist_has(const struct step *s, const struct peer *p)
{
    list_each(a, next, &worklist_of(s)->requests)
        if (entry_of(a)->peer == p) return true;
    return false;
}

void worklist_end(struct worklist *w, const struct peer *p, void (*end)(struct request *))
{
    struct link mine = LIST_INIT(mine);
    list_each(a, next, &w->requests)
    {
        struct request *r = entry_of(a);
        if (r->peer != p) continue;
        worklist_remove(w, r);
        list_push(&mine, &r->link);
    }
    for (struct link *a; (a = list_pop(&mine));) end(entry_of(a));
}

void worklist_forget(struct worklist *w, const struct comm *c)
{
    list_each(a, next, &w->requests)
    {
        struct request *r = entry_of(a);
        if (r->comm != c) continue;
        if (r->id) ids_drop(&lane_of(r)->ids, r);
        worklist_remove(w, r);
    }
}
