/* places.c - see places.h. */
#include "coll/places.h"

#include "base/err.h"
#include "base/list.h"
#include "base/var.h"
#include "proc/machine.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "transport/find.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the user wants ------------------------------------------------------- */

enum { NARROWEST = 0, NONE = -1, BY_L3 = -2, BY_NUMA = -3 };
static int32_t wanted; /* one of these, or so many ranks of a node are a domain, then as many more */

int coll_places_open(void)
{
    static const struct {
        const char *word;
        int32_t means;
    } known[] = {{"auto", NARROWEST}, {"none", NONE}, {"l3", BY_L3}, {"numa", BY_NUMA}};
    const char *text = var_text(VAR_COLL_DOMAINS);
    char *end;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(text, known[i].word)) {
            wanted = known[i].means;
            return 0;
        }
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > INT32_MAX)
        return err_set(TERN_ERR_ARG,
                       "variable TERN_COLL_DOMAINS: '%s' is not auto, none, l3, numa or a number of ranks", text);
    wanted = (int32_t)n;
    return 0;
}

/* ---- nodes ----------------------------------------------------------------------- */

/*
 * The node of a rank of this group. Members must find the same nodes, and where processes of other jobs are is not known:
 * in a group of several jobs each job counts as a node. The numbers are only used to tell nodes apart.
 */
static uint32_t node_of(const struct comm *c, int rank)
{
    uint32_t index = rankmap_at(c->local, rank);
    return rankmap_has_others(c->local) && jobs_is_own(index) ? 0 : jobs_node_of(index);
}

/* Between two groups: is one of the others elsewhere than the first of this one? */
static bool others_far(const struct comm *c, uint32_t first)
{
    bool far = false;
    for (int r = 0; c->inter && r < c->map->size; r++) far |= jobs_node_of(comm_index(c, r)) != first;
    return far;
}

static bool find_nodes(const struct comm *c, struct coll_comm *cc)
{
    uint32_t first = node_of(c, 0), top = 0;
    bool one = true;
    for (int r = 0; r < c->size; r++) {
        uint32_t node = node_of(c, r);
        one &= node == first;
        if (node > top) top = node;
    }
    cc->nodes = 1;
    cc->far = !one || others_far(c, first) || ((c->size > 1 || c->inter) && !tp_list_shares(var_text(VAR_TRANSPORTS)));
    if (one) return true;
    int32_t *number = calloc((size_t)top + 1, sizeof *number); /* of a node, plus 1 */
    cc->node_of = malloc((size_t)c->size * sizeof *cc->node_of);
    cc->nodes = 0;
    for (int r = 0; r < c->size && number && cc->node_of; r++) {
        int32_t *n = &number[node_of(c, r)];
        if (!*n) *n = ++cc->nodes;
        cc->node_of[r] = *n - 1;
        cc->mixed |= r && cc->node_of[r] < cc->node_of[r - 1];
    }
    free(number);
    return cc->nodes > 0;
}

/* ---- domains ----------------------------------------------------------------------- */

/* By number: on each node the first ranks, the next ones, and so on, in the order of the communicator. */
static bool deal_out(const struct comm *c, struct coll_comm *cc)
{
    struct {
        int32_t domain, left; /* the one that is being filled, and how many it still takes */
    } *node = calloc((size_t)cc->nodes, sizeof *node);
    for (int r = 0; r < c->size && node; r++) {
        int32_t n = cc->node_of ? cc->node_of[r] : 0;
        if (!node[n].left) {
            node[n].left = wanted;
            node[n].domain = cc->domains++;
        }
        node[n].left--;
        cc->domain_of[r] = node[n].domain;
    }
    free(node);
    return node != NULL;
}

/* A number for where the rank is bound; -1: not known, or more widely than one such piece of hardware. */
static int64_t piece_of(const struct machine_domain *d, int32_t level)
{
    if (level == BY_NUMA) return d->numa;
    if (level == BY_L3) return d->l3;
    return d->l3 < 0 ? -1 : (int64_t)d->l3 << 32 | (uint32_t)(d->numa + 1); /* a cache may serve several NUMA domains */
}

/* By one kind of hardware. False, and no domains: some rank's piece of it is not known. */
static bool by_hardware(const struct comm *c, struct coll_comm *cc, int32_t level, int64_t *piece)
{
    cc->domains = 0;
    for (int r = 0; r < c->size; r++) {
        struct machine_domain d;
        int64_t mine = machine_domain_of(rankmap_at(c->local, r), &d) ? piece_of(&d, level) : -1;
        int32_t n = 0;
        if (mine < 0) return false;
        while (n < cc->domains && piece[n] != mine) n++;
        if (n == cc->domains) piece[cc->domains++] = mine;
        cc->domain_of[r] = n;
    }
    return true;
}

/* Each node knows of its own ranks only, so this is for communicators inside one. */
static bool ask_hardware(const struct comm *c, struct coll_comm *cc)
{
    int64_t *piece = malloc((size_t)c->size * sizeof *piece);
    if (!piece) return false;
    bool known = by_hardware(c, cc, wanted, piece) || (wanted == NARROWEST && by_hardware(c, cc, BY_NUMA, piece));
    if (!known) cc->domains = 1;
    free(piece);
    return true;
}

static bool on_this_node(const struct comm *c, const struct coll_comm *cc)
{
    bool ours = cc->nodes == 1 && !rankmap_has_others(c->local);
    for (int r = 0; r < c->size && ours; r++)
        ours = jobs_is_own(rankmap_at(c->local, r)) && node_of(c, r) == proc_self()->node;
    return ours;
}

static bool find_domains(const struct comm *c, struct coll_comm *cc)
{
    struct machine_domain d;
    cc->domains = 0;
    if (wanted == NONE || c->size < 3) return true;
    if (wanted <= 0 && (!on_this_node(c, cc) || !machine_domain_of(rankmap_at(c->local, 0), &d))) return true;
    cc->domain_of = malloc((size_t)c->size * sizeof *cc->domain_of);
    if (!cc->domain_of || !(wanted > 0 ? deal_out(c, cc) : ask_hardware(c, cc))) return false;
    for (int r = 1; r < c->size; r++) cc->shuffled |= cc->domain_of[r] < cc->domain_of[r - 1];
    return true;
}

static bool find_all(const struct comm *c, struct coll_comm *cc)
{
    if (!find_nodes(c, cc) || !find_domains(c, cc)) return false;
    if (cc->domains > cc->nodes) return true;
    free(cc->domain_of);
    cc->domain_of = NULL;
    cc->domains = cc->nodes;
    cc->shuffled = false;
    return true;
}

/* ---- shared ones ------------------------------------------------------------------- */

/* Of all communicators that have the same map of ranks. */
struct shared_places {
    struct link link;
    int users;
    struct rankmap *map;    /* a reference */
    struct coll_comm found; /* its members that coll_places_find fills */
};
static struct link all_shared = LIST_INIT(all_shared);
static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;

static void copy_places(struct coll_comm *to, const struct coll_comm *from)
{
    to->far = from->far;
    to->mixed = from->mixed;
    to->shuffled = from->shuffled;
    to->nodes = from->nodes;
    to->domains = from->domains;
    to->node_of = from->node_of;
    to->domain_of = from->domain_of;
}

static struct shared_places *shared_of(const struct comm *c)
{
    list_each (l, next, &all_shared) {
        struct shared_places *p = container_of(l, struct shared_places, link);
        if (p->map == c->local) return p;
    }
    return NULL;
}

static struct shared_places *share(const struct comm *c, const struct coll_comm *cc)
{
    struct shared_places *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->map = rankmap_ref(c->local);
    copy_places(&p->found, cc);
    list_push(&all_shared, &p->link);
    return p;
}

/* Between two groups `far` is that of both. */
static bool find_or_share(const struct comm *c, struct coll_comm *cc)
{
    cc->shared = c->inter ? NULL : shared_of(c);
    if (cc->shared) copy_places(cc, &cc->shared->found);
    else if (!find_all(c, cc)) return false;
    if (!cc->shared && !c->inter && (cc->node_of || cc->domain_of) && !(cc->shared = share(c, cc))) return false;
    if (cc->shared) cc->shared->users++;
    return true;
}

bool coll_places_find(const struct comm *c, struct coll_comm *cc)
{
    pthread_mutex_lock(&sharing);
    bool found = find_or_share(c, cc);
    pthread_mutex_unlock(&sharing);
    if (!found) coll_places_drop(cc);
    return found;
}

static void drop(struct coll_comm *cc)
{
    struct shared_places *p = cc->shared;
    if (p && --p->users) return;
    free(cc->node_of);
    free(cc->domain_of);
    if (!p) return;
    list_remove(&p->link);
    rankmap_unref(p->map);
    free(p);
}

void coll_places_drop(struct coll_comm *cc)
{
    pthread_mutex_lock(&sharing);
    drop(cc);
    pthread_mutex_unlock(&sharing);
    cc->node_of = cc->domain_of = NULL;
    cc->shared = NULL;
}
