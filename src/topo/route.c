/* route.c - see route.h. */
#include "topo/route.h"
#include "base/err.h"
#include "comm/talk.h"

#include <stdlib.h>
#include <string.h>

struct load {
    struct route_edge *edge;
    int64_t n;
};

static int no_memory(int64_t n) { return err_set(TERN_ERR_NOMEM, "no memory for %lld edges of a graph", (long long)n); }

/* Moves the edges for ranks from `first` to `last` into `away`. */
static int take_out(struct load *l, int first, int last, struct load *away)
{
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < l->n; i++) n += l->edge[i].to >= first && l->edge[i].to <= last;
    *away = (struct load){malloc((size_t)(n ? n : 1) * sizeof *away->edge), 0};
    if (!away->edge) return no_memory(n);
    for (int64_t i = 0; i < l->n; i++) {
        struct route_edge e = l->edge[i];
        if (e.to >= first && e.to <= last) away->edge[away->n++] = e;
        else l->edge[kept++] = e;
    }
    l->n = kept;
    return 0;
}

/* Room for n more edges. */
static int grow(struct load *l, int64_t n)
{
    struct route_edge *more = realloc(l->edge, (size_t)(l->n + n ? l->n + n : 1) * sizeof *more);
    if (!more) return no_memory(l->n + n);
    l->edge = more;
    return 0;
}

static size_t bytes_of(int64_t n) { return (size_t)n * sizeof(struct route_edge); }

/* Both send what is the other's. */
static int swap(struct comm *c, struct load *l, const struct load *away, int peer)
{
    int64_t coming = 0;
    int rc = talk_swap(c, &away->n, sizeof away->n, &coming, sizeof coming, peer, TALK_TOPO);
    if (!rc) rc = grow(l, coming);
    if (!rc) rc = talk_swap(c, away->edge, bytes_of(away->n), l->edge + l->n, bytes_of(coming), peer, TALK_TOPO);
    if (!rc) l->n += coming;
    return rc;
}

static int give(struct comm *c, const struct load *away, int peer)
{
    int rc = talk_send(c, &away->n, sizeof away->n, peer, TALK_TOPO);
    return rc ? rc : talk_send(c, away->edge, bytes_of(away->n), peer, TALK_TOPO);
}

static int take(struct comm *c, struct load *l, int peer)
{
    int64_t coming = 0;
    int rc = talk_recv(c, &coming, sizeof coming, peer, TALK_TOPO);
    if (!rc) rc = grow(l, coming);
    if (!rc) rc = talk_recv(c, l->edge + l->n, bytes_of(coming), peer, TALK_TOPO);
    if (!rc) l->n += coming;
    return rc;
}

/* One round among the ranks [first, first + n): the lower half has h of them, the upper one h or h + 1. With h + 1, the
 * last has no partner: it gives to the first, and gets its own from the others' partners. */
static int round_of(struct comm *c, struct load *l, int first, int n)
{
    int h = n / 2, me = c->rank - first, last = n - 1;
    bool low = me < h, odd = n % 2;
    struct load away;
    int rc = take_out(l, low ? first + h : first, low ? first + last : first + h - 1, &away);
    if (!rc && odd && me == last) rc = give(c, &away, first);
    else if (!rc) rc = swap(c, l, &away, first + (low ? me + h : me - h));
    if (!rc && odd && me == 0) rc = take(c, l, first + last);
    free(away.edge);
    return rc;
}

static int by_teller(const void *a, const void *b)
{
    const struct route_edge *x = a, *y = b;
    if (x->teller != y->teller) return x->teller < y->teller ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

int route_edges(struct comm *c, struct route_edge **edges_p, int64_t *n)
{
    struct load l = {*edges_p, *n};
    int rc = 0;
    for (int first = 0, size = c->size; size > 1 && !rc;) {
        rc = round_of(c, &l, first, size);
        bool low = c->rank < first + size / 2;
        if (!low) first += size / 2;
        size = low ? size / 2 : size - size / 2;
    }
    if (!rc && l.n) qsort(l.edge, (size_t)l.n, sizeof *l.edge, by_teller);
    *edges_p = l.edge;
    *n = l.n;
    return rc;
}
