/* fence.c - see fence.h. */
#include "mpiexec/fence.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (TREE_MESSAGE_MAX / 2) /* of all contributions to a fence; the rest is for the head */

/* A fence that this node has entered. */
struct entered {
    struct post post; /* first: it is posted as that */
    struct wire_out head, body;
    fence_done_fn done;
    void *arg;
    struct entered *next;
};

/* The root: a fence that not all have entered. */
struct gather {
    uint8_t *head;
    size_t nhead;
    bool *owes; /* by node: takes part, and has not entered */
    int missing;
    bool all; /* nodes take part */
    int status;
    struct wire_out bytes;
    bool *member; /* by node */
    struct gather *next;
};

static struct {
    struct job *job;
    struct entered *entered; /* in the order of entering */
    struct gather *gathers;  /* in the order of their first contribution */
} self;

/* ---- messages ---- */

/* Skips the head. False: it is none. */
static bool read_head(struct wire_in *w)
{
    uint8_t kind = wire_get8(w);
    uint32_t n = wire_get_count(w, sizeof n);
    int64_t last = -1;
    for (uint32_t i = 0; i < n && !w->bad; i++) {
        uint32_t rank = wire_get32(w);
        if (rank <= last || rank >= (uint32_t)self.job->size) return false;
        last = rank;
    }
    return !w->bad && kind < FENCE_KINDS;
}

/* The nodes of the ranks of a head; returns how many. */
static int find_members(const uint8_t *head, size_t nhead, bool *member)
{
    struct wire_in w = wire_of(head, nhead);
    int count = 0;
    wire_get8(&w);
    uint32_t n = wire_get_count(&w, sizeof n);
    for (int i = 0; i < self.job->nnodes && !n; i++) member[i] = true;
    if (!n) return self.job->nnodes;
    while (n--) {
        int node = self.job->ranks[wire_get32(&w)].node;
        count += !member[node];
        member[node] = true;
    }
    return count;
}

/* ---- the root ---- */

static struct gather *gather_new(const uint8_t *head, size_t nhead)
{
    struct gather *g = xcalloc(1, sizeof *g), **at = &self.gathers;
    g->head = xcalloc(nhead, 1);
    memcpy(g->head, head, nhead);
    g->nhead = nhead;
    g->owes = xcalloc((size_t)self.job->nnodes, sizeof *g->owes);
    g->member = xcalloc((size_t)self.job->nnodes, sizeof *g->member);
    g->missing = find_members(head, nhead, g->member);
    g->all = g->missing == self.job->nnodes;
    memcpy(g->owes, g->member, (size_t)self.job->nnodes * sizeof *g->member);
    while (*at) at = &(*at)->next;
    return *at = g;
}

/* The fence that `node` enters with this head: the first of those with it that lacks the node. */
static struct gather *gather_for(const uint8_t *head, size_t nhead, int node)
{
    for (struct gather *g = self.gathers; g; g = g->next)
        if (g->nhead == nhead && !memcmp(g->head, head, nhead) && g->owes[node]) return g;
    return gather_new(head, nhead);
}

static void gather_free(struct gather *g)
{
    struct gather **at = &self.gathers;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    wire_free(&g->bytes);
    free(g->head);
    free(g->owes);
    free(g->member);
    free(g);
}

static void gather_over(struct gather *g)
{
    struct wire_out w = {0};
    wire_put_raw(&w, g->head, g->nhead);
    wire_put32(&w, (uint32_t)g->status);
    if (!g->status) wire_put_raw(&w, g->bytes.bytes, g->bytes.n);
    int own = self.job->node;
    if (g->all) tree_send(TREE_ALL, TREE_FENCE_DONE, w.bytes, w.n);
    for (int i = 0; i < self.job->nnodes && !g->all; i++)
        if (g->member[i] && i != own) tree_send(i, TREE_FENCE_DONE, w.bytes, w.n);
    bool ours = own != NODE_NONE && g->member[own];
    gather_free(g);
    if (ours) tree_send(own, TREE_FENCE_DONE, w.bytes, w.n); /* last: it may begin the next one */
    wire_free(&w);
}

static bool on_contribution(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    int node = launch_node_of(self.job, from);
    if (node == NODE_NONE || !read_head(&w)) return false;
    struct gather *g = gather_for(bytes, (size_t)(w.at - (const uint8_t *)bytes), node);
    if (!g->owes[node]) { /* a new one, of other nodes */
        gather_free(g);
        return false;
    }
    int status = (int)wire_get32(&w);
    if (w.bad) return false;
    size_t more = wire_left(&w);
    if (!status && more > BYTES_MAX - g->bytes.n) status = PMIX_ERR_OUT_OF_RESOURCE;
    if (!status)
        wire_put_raw(&g->bytes, w.at, more);
    else if (!g->status)
        g->status = status;
    g->owes[node] = false;
    if (!--g->missing) gather_over(g);
    return true;
}

/* ---- a node ---- */

static void enter(struct post *post)
{
    struct entered *e = (struct entered *)post, **at = &self.entered;
    while (*at) at = &(*at)->next;
    *at = e;
    struct wire_out w = {0};
    wire_put_raw(&w, e->head.bytes, e->head.n);
    wire_put_raw(&w, e->body.bytes, e->body.n);
    wire_free(&e->body);
    tree_send(TREE_ROOT, TREE_FENCE, w.bytes, w.n);
    wire_free(&w);
}

void fence_enter(enum fence_kind kind, const uint32_t *ranks, uint32_t nranks, const char *bytes, size_t n,
                 fence_done_fn done, void *arg)
{
    struct entered *e = xcalloc(1, sizeof *e);
    bool fits = n <= BYTES_MAX;
    e->done = done;
    e->arg = arg;
    wire_put8(&e->head, (uint8_t)kind);
    wire_put32(&e->head, nranks);
    for (uint32_t i = 0; i < nranks; i++) wire_put32(&e->head, ranks[i]);
    wire_put32(&e->body, (uint32_t)(fits ? PMIX_SUCCESS : PMIX_ERR_OUT_OF_RESOURCE));
    if (fits) wire_put_raw(&e->body, bytes, n);
    post_run(&e->post, enter);
}

static bool on_done(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    struct entered **at = &self.entered;
    if (from != TREE_ROOT && !(from >= 0 && from < self.job->nnodes && self.job->nodes[from].own)) return false;
    if (!read_head(&w)) return false;
    size_t nhead = (size_t)(w.at - (const uint8_t *)bytes);
    while (*at && ((*at)->head.n != nhead || memcmp((*at)->head.bytes, bytes, nhead))) at = &(*at)->next;
    struct entered *e = *at;
    int status = (int)wire_get32(&w);
    if (!e || w.bad) return false;
    *at = e->next;
    size_t left = wire_left(&w);
    char *copy = left ? xcalloc(left, 1) : NULL;
    if (copy) memcpy(copy, w.at, left);
    e->done(e->arg, status, copy, left);
    wire_free(&e->head);
    free(e);
    return true;
}

void fence_open(struct job *j)
{
    self.job = j;
    if (j->root) tree_handlers[TREE_FENCE] = on_contribution;
    if (j->node != NODE_NONE) tree_handlers[TREE_FENCE_DONE] = on_done;
}
