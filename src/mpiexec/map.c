/* map.c - see map.h. */
#include "mpiexec/map.h"
#include "mpiexec/cpus.h"
#include "mpiexec/words.h"

#include <stdio.h>
#include <stdlib.h>

/* --- hosts ------------------------------------------------------------------------------------------------------- */

/* What one program named: a list beside a file picks from the file. */
static int settle_app(struct app_spec *a)
{
    bool pick = a->file.n && a->list.n;
    struct hosts *named = a->file.n ? &a->file : &a->list;
    a->hosts = *named;
    *named = (struct hosts){0}; /* a list has one owner */
    return pick ? hosts_pick(&a->hosts, &a->list) : 0;
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

/* --nolocal */
static int drop_local(struct spec *s)
{
    bool none = false;
    for (int i = 0; i < s->napps; i++) {
        none |= s->apps[i].hosts.n == 1 && s->apps[i].hosts.v[0].self;
        hosts_drop_self(&s->apps[i].hosts);
    }
    hosts_drop_self(&s->hosts);
    if (s->hosts.n && !none) return 0;
    say("--nolocal leaves no host to run on: name others by -hosts or -hostfile");
    return EXIT_USAGE;
}

static void sort_hosts(struct spec *s)
{
    bool descending = s->host_order == HOSTS_DOWN;
    for (int i = 0; i < s->napps; i++) hosts_sort(&s->apps[i].hosts, descending);
    hosts_sort(&s->hosts, descending);
}

int map_hosts(struct spec *s)
{
    int rc = 0;
    for (int i = 0; i < s->napps && !rc; i++) {
        rc = settle_app(&s->apps[i]);
        if (!rc) rc = merge(&s->hosts, &s->apps[i].hosts);
    }
    if (!rc && !s->hosts.n && !s->no_manager) rc = hosts_environment(&s->hosts);
    if (!rc) rc = merge(&s->hosts, &s->rankfile.hosts);
    if (rc) return rc;
    s->hosts_named = s->hosts.n > 0;
    if (s->no_local && (rc = drop_local(s))) return rc;
    if (!s->hosts_named) rc = hosts_add(&s->hosts, hosts_self(), 0, "this host");
    if (s->host_order) sort_hosts(s);
    if (!s->hosts_named) s->slots = cpus_usable();
    else for (int i = 0; i < s->hosts.n && s->slots <= SLOTS_MAX; i++) s->slots += s->hosts.v[i].slots;
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
    if (s->rankfile.n && s->napps == 1) return s->rankfile.n;
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

/* Ranks that a host gets before the next one has its turn: by node 1, by the units of all nodes as many as it has of
 * them; 0: all of its round. */
static int step_of(const struct place_spec *p)
{
    if (p->span && p->map_units) return p->map_units * (p->per_unit ? p->per_unit : 1);
    return p->map == UNIT_NODE && !p->per_unit;
}

/* The host that the next rank goes to: one of those that are in the earliest round; of these the first, or if they take
 * turns the one that has had fewest. */
static const struct place_of *next_place(const struct place_of *p, int n, const int *used, int step)
{
    const struct place_of *best = NULL;
    int best_round = 0, best_turn = 0;
    for (int i = 0; i < n; i++) {
        int round = used[p[i].node] / p[i].chunk, turn = step ? used[p[i].node] % p[i].chunk / step : 0;
        if (best && (round > best_round || (round == best_round && turn >= best_turn))) continue;
        best = &p[i];
        best_round = round;
        best_turn = turn;
    }
    return best;
}

static void map_app(const struct spec *s, const struct app_spec *a, int first, int *used, int *node_of)
{
    int n, step = step_of(&s->place);
    struct place_of *places = places_of(s, a, &n);
    for (int r = first; r < first + a->n;) {
        const struct place_of *p = next_place(places, n, used, step);
        int had = used[p->node] % p->chunk, more = p->chunk - had; /* to the end of its round */
        if (step && step - had % step < more) more = step - had % step;
        for (; more && r < first + a->n; more--, r++) {
            used[p->node]++;
            node_of[r] = p->node;
        }
    }
    free(places);
}

/* --rank-by: the ranks of a program stay where they were mapped to, but get their numbers anew: so many of a host, then
 * of the next. */
static void number_app(const struct spec *s, const struct app_spec *a, int first, int *node_of)
{
    const struct place_spec *p = &s->place;
    int *left = xcalloc((size_t)s->hosts.n, sizeof *left);
    int turn = p->order == RANK_BY_NODE ? 1 : p->order_span && p->order_units ? p->order_units : a->n;
    for (int r = first; r < first + a->n; r++) left[node_of[r]]++;
    for (int r = first; r < first + a->n;)
        for (int i = 0; i < s->hosts.n; i++)
            for (int k = 0; k < turn && left[i]; k++, left[i]--) node_of[r++] = i;
    free(left);
}

/* --rankfile */
static int map_file(const struct spec *s, int *used, int *node_of)
{
    for (int r = 0; r < s->size; r++) {
        node_of[r] = rankfile_host(&s->rankfile, r, &s->hosts);
        if (node_of[r] < 0) {
            say("rank file %s: rank %d is to run on %s, which is none of the job's hosts (%d)", s->rankfile.path, r,
                s->rankfile.v[r].host, s->hosts.n);
            return EXIT_USAGE;
        }
        used[node_of[r]]++;
    }
    return 0;
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

/* --nooversubscribe. Where no host was named, the cores of this one are its slots. */
static int check_slots(const struct spec *s, const int *used)
{
    for (int i = 0; s->place.refuse_more && i < s->hosts.n; i++) {
        int slots = s->hosts_named || !s->place.cores ? s->hosts.v[i].slots : s->place.cores;
        if (used[i] <= slots) continue;
        say("%d ranks on %s, which has %d slot%s: more than that was forbidden (nooversubscribe)", used[i],
            s->hosts.v[i].name, slots, slots == 1 ? "" : "s");
        return EXIT_USAGE;
    }
    return 0;
}

int map_ranks(const struct spec *s, struct map *m)
{
    int rc = 0, *used = xcalloc((size_t)s->hosts.n, sizeof *used);
    *m = (struct map){.node = xcalloc((size_t)s->size, sizeof(int)), .local = xcalloc((size_t)s->size, sizeof(int))};
    if (s->rankfile.path)
        rc = map_file(s, used, m->node);
    else
        for (int i = 0, first = 0; i < s->napps; first += s->apps[i++].n) {
            map_app(s, &s->apps[i], first, used, m->node);
            if (s->place.order) number_app(s, &s->apps[i], first, m->node);
        }
    if (!rc) rc = check_slots(s, used);
    if (rc)
        map_free(m);
    else
        make_nodes(s, m, used);
    free(used);
    return rc;
}

void map_free(struct map *m)
{
    for (int i = 0; i < m->nnodes; i++) free(m->nodes[i].ranks);
    free(m->nodes);
    free(m->node);
    free(m->local);
    *m = (struct map){0};
}

/* --- words ------------------------------------------------------------------------------------------------------- */

/* "(host:0,1,2)", as Hydra prints it. */
static void show_rank_map(const struct map_node *n)
{
    printf("(%s:", n->host->name);
    for (int i = 0; i < n->nranks; i++) printf(i ? ",%d" : "%d", n->ranks[i]);
    puts(")");
}

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
    for (int i = 0; s->show_rank_map && i < m->nnodes; i++) show_rank_map(&m->nodes[i]);
    fflush(stdout);
}
