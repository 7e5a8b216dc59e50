/* map.c - see map.h. */
#include "mpiexec/map.h"
#include "mpiexec/words.h"

#include <stdio.h>
#include <stdlib.h>

/* --- hosts ------------------------------------------------------------------------------------------------------- */

/* What one program named: a list beside a file picks from the file. */
static int settle_app(struct app_spec *a)
{
    a->hosts = a->file.n ? a->file : a->list;
    return a->file.n && a->list.n ? hosts_pick(&a->hosts, &a->list) : 0;
}

/* A host that several programs name has the slots of the one that gives it most. */
static int merge(struct hosts *all, const struct hosts *more)
{
    int rc = 0;
    for (int i = 0; i < more->n && !rc; i++) {
        struct host *old = hosts_find(all, more->v[i].name);
        if (!old)
            rc = hosts_add(all, more->v[i].name, more->v[i].slots, "the hosts of all programs");
        else if (old->slots < more->v[i].slots)
            old->slots = more->v[i].slots;
    }
    return rc;
}

int map_hosts(struct spec *s)
{
    int rc = 0;
    for (int i = 0; i < s->napps && !rc; i++) {
        rc = settle_app(&s->apps[i]);
        if (!rc) rc = merge(&s->hosts, &s->apps[i].hosts);
    }
    if (!rc && !s->hosts.n && !s->no_manager) rc = hosts_environment(&s->hosts);
    if (rc) return rc;
    s->hosts_named = s->hosts.n > 0;
    if (!s->hosts_named) rc = hosts_add(&s->hosts, hosts_self(), 0, "this host");
    for (int i = 0; i < s->hosts.n && s->slots <= SLOTS_MAX; i++) s->slots += s->hosts_named ? s->hosts.v[i].slots : 0;
    return rc;
}

static const struct hosts *hosts_of(const struct spec *s, const struct app_spec *a)
{
    return a->hosts.n ? &a->hosts : &s->hosts;
}

int64_t map_default_size(const struct spec *s, const struct app_spec *a)
{
    const struct hosts *h = hosts_of(s, a);
    int64_t slots = 0;
    if (s->ppn) return (int64_t)h->n * s->ppn;
    for (int i = 0; i < h->n; i++) slots += h->v[i].slots;
    return slots;
}

/* --- ranks ------------------------------------------------------------------------------------------------------- */

/* Where a program's ranks may go while they are being placed. */
struct place_of {
    int node;  /* in the list of all hosts */
    int chunk; /* ranks a round */
};

static struct place_of *places_of(const struct spec *s, const struct app_spec *a, int *n)
{
    const struct hosts *h = hosts_of(s, a);
    struct place_of *p = xcalloc((size_t)h->n, sizeof *p);
    *n = h->n;
    for (int i = 0; i < h->n; i++) {
        const struct host *all = h == &s->hosts ? &h->v[i] : hosts_find(&s->hosts, h->v[i].name);
        p[i] = (struct place_of){.node = (int)(all - s->hosts.v), .chunk = s->ppn ? s->ppn : h->v[i].slots};
    }
    return p;
}

/* The host that the next rank goes to: one of those that are in the earliest round; of these the first, or by node the
 * one that has got least in it. */
static const struct place_of *next_place(const struct place_of *p, int n, const int *used, bool by_node)
{
    const struct place_of *best = NULL;
    int best_round = 0, best_turn = 0;
    for (int i = 0; i < n; i++) {
        int round = used[p[i].node] / p[i].chunk, turn = by_node ? used[p[i].node] % p[i].chunk : 0;
        if (best && (round > best_round || (round == best_round && turn >= best_turn))) continue;
        best = &p[i];
        best_round = round;
        best_turn = turn;
    }
    return best;
}

static void map_app(const struct spec *s, const struct app_spec *a, int first, int *used, int *node_of)
{
    bool by_node = s->place.map == UNIT_NODE && !s->place.per_unit;
    int n;
    struct place_of *places = places_of(s, a, &n);
    for (int r = first; r < first + a->n;) {
        const struct place_of *p = next_place(places, n, used, by_node);
        int more = by_node ? 1 : p->chunk - used[p->node] % p->chunk; /* to the end of its round */
        for (; more && r < first + a->n; more--, r++) {
            used[p->node]++;
            node_of[r] = p->node;
        }
    }
    free(places);
}

/* Numbers of nodes: hosts without ranks are left out. */
static void make_nodes(const struct spec *s, struct map *m, const int *used)
{
    int *number = xcalloc((size_t)s->hosts.n, sizeof *number);
    m->nodes = xcalloc((size_t)s->hosts.n, sizeof *m->nodes);
    for (int i = 0; i < s->hosts.n; i++) {
        number[i] = m->nnodes;
        if (!used[i]) continue;
        m->nodes[m->nnodes++] =
            (struct map_node){.host = &s->hosts.v[i], .ranks = xcalloc((size_t)used[i], sizeof(int))};
    }
    for (int r = 0; r < s->size; r++) {
        struct map_node *n = &m->nodes[m->node[r] = number[m->node[r]]];
        m->local[r] = n->nranks;
        n->ranks[n->nranks++] = r;
    }
    free(number);
}

void map_ranks(const struct spec *s, struct map *m)
{
    int *used = xcalloc((size_t)s->hosts.n, sizeof *used);
    *m = (struct map){.node = xcalloc((size_t)s->size, sizeof(int)), .local = xcalloc((size_t)s->size, sizeof(int))};
    for (int i = 0, first = 0; i < s->napps; first += s->apps[i++].n) map_app(s, &s->apps[i], first, used, m->node);
    make_nodes(s, m, used);
    free(used);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

/* "0-3,8" */
static void show_ranks(const struct map_node *n)
{
    for (int i = 0; i < n->nranks; i++) {
        int last = i;
        while (last + 1 < n->nranks && n->ranks[last + 1] == n->ranks[last] + 1) last++;
        printf(last > i ? "%s%d-%d" : "%s%d", i ? "," : " ", n->ranks[i], n->ranks[last]);
        i = last;
    }
}

void map_show(const struct spec *s, const struct map *m)
{
    for (int i = 0; s->show_hosts && i < s->hosts.n; i++)
        printf("host %s: slots %d\n", s->hosts.v[i].name, s->hosts.v[i].slots);
    for (int i = 0; s->show_map && i < m->nnodes; i++) {
        printf("node %d on %s: ranks", i, m->nodes[i].host->name);
        show_ranks(&m->nodes[i]);
        putchar('\n');
    }
    fflush(stdout);
}
