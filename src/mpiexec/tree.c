/* tree.c - how messages find their way in the tree, whose shape is in tree_shape.h. */
#include "mpiexec/tree.h"
#include "mpiexec/boot.h"
#include "mpiexec/grow.h"
#include "mpiexec/tree_shape.h"
#include "mpiexec/wire.h"
#include "mpiexec/words.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAVE_S 5 /* for the daemons below, which have little to do then */
#define AGENT_S 1 /* and for the agents to notice */

tree_handler_fn tree_handlers[TREE_TYPES];

static struct {
    struct job *job; /* NULL: its description has not come yet */
    struct event_base *base;
    const struct boot *boot;
    struct tree_shape shape;
    int vertex;
    int *vertex_of; /* by node */
    struct tree_link *up;
    void (*orphaned)(const char *);
    struct child *children;
    int nchildren;
    const void *description;
    size_t description_bytes;
    /* Leaving. */
    void (*left)(void);
    struct event *patience;
} self;

/* --- shape ------------------------------------------------------------------------------------------------------- */

static int vertex_of(int node) { return node == TREE_ROOT ? 0 : self.vertex_of[node]; }

/* The child on the way to a vertex; NULL: the way goes up. */
static struct child *child_towards(int vertex)
{
    int first, child = tree_towards(&self.shape, self.vertex, vertex);
    return child && tree_children(&self.shape, self.vertex, &first) ? &self.children[child - first] : NULL;
}

bool tree_is_below(int node, int top) { return tree_has_below(&self.shape, vertex_of(top), vertex_of(node)); }

static void make_shape(const struct job *j)
{
    int first = 0;
    self.shape = (struct tree_shape){.width = j->spec->launcher.width, .vertices = 1};
    self.vertex_of = xcalloc((size_t)j->nnodes, sizeof *self.vertex_of);
    for (int i = 0; i < j->nnodes; i++) self.vertex_of[i] = j->nodes[i].own ? 0 : self.shape.vertices++;
    self.vertex = j->root ? 0 : self.vertex_of[j->node];
    self.nchildren = tree_children(&self.shape, self.vertex, &first);
    self.children = xcalloc((size_t)self.nchildren + 1, sizeof *self.children);
    for (int i = 0; i < j->nnodes; i++) {
        int at = self.vertex_of[i] - first;
        if (at >= 0 && at < self.nchildren) self.children[at] = (struct child){.vertex = self.vertex_of[i], .node = i};
    }
}

/* --- messages ---------------------------------------------------------------------------------------------------- */

static void pass_on(struct tree_link *l, const struct tree_link *but, const struct link_head *h, const void *bytes)
{
    if (l && l != but) link_send(l, h, bytes);
}

static void pass_to_all(const struct tree_link *but, const struct link_head *h, const void *bytes)
{
    pass_on(self.up, but, h, bytes);
    for (int i = 0; i < self.nchildren; i++) pass_on(self.children[i].link, but, h, bytes);
}

static void pass_to_one(const struct tree_link *but, const struct link_head *h, const void *bytes)
{
    struct child *c = child_towards(vertex_of(h->to));
    pass_on(c ? c->link : self.up, but, h, bytes);
}

static bool deliver(const struct link_head *h, const void *bytes)
{
    return tree_handlers[h->type] && tree_handlers[h->type](h->from, bytes, h->length);
}

static bool is_me(int to) { return to != TREE_ALL && vertex_of(to) == self.vertex; }

void tree_send(int to, enum tree_type type, const void *bytes, size_t n)
{
    struct link_head h = {.length = (uint32_t)n, .type = (uint16_t)type, .to = to};
    if (n > TREE_MESSAGE_MAX) {
        say("a message of %zu bytes to other hosts is longer than can be", n);
        _exit(EXIT_RESOURCE); /* the guard cleans up */
    }
    if (!self.job) { /* the root alone */
        h.from = TREE_ROOT;
        if (to != TREE_ALL) deliver(&h, bytes);
        return;
    }
    h.from = self.job->root ? TREE_ROOT : self.job->node;
    if (to == TREE_ALL)
        pass_to_all(NULL, &h, bytes);
    else if (is_me(to))
        deliver(&h, bytes);
    else
        pass_to_one(NULL, &h, bytes);
}

static bool is_possible(const struct link_head *h)
{
    int n = self.job->nnodes;
    return h->from >= TREE_ROOT && h->from < n && h->to >= TREE_ALL && h->to < n && h->type != TREE_JOB;
}

static bool on_message(struct tree_link *from, const struct link_head *h, const void *bytes)
{
    if (!is_possible(h)) return false;
    if (h->to == TREE_ALL) pass_to_all(from, h, bytes);
    if (h->to == TREE_ALL || is_me(h->to)) return deliver(h, bytes);
    pass_to_one(from, h, bytes);
    return true;
}

/* --- the line up ------------------------------------------------------------------------------------------------- */

static bool from_parent(struct tree_link *l, const struct link_head *h, const void *bytes)
{
    if (self.job) return on_message(l, h, bytes);
    return h->type == TREE_JOB && deliver(h, bytes);
}

static void lost_parent(struct tree_link *l, const char *why)
{
    self.up = NULL;
    link_close(l);
    self.orphaned(why);
}

static const struct link_calls up_calls = {.message = from_parent, .lost = lost_parent};

static void joined(struct tree_link *l, const char *why)
{
    if (!l) {
        self.orphaned(why);
        return;
    }
    self.up = l;
    link_set_calls(l, &up_calls, NULL);
}

void tree_join(struct event_base *base, const struct boot *b, void (*orphaned)(const char *))
{
    self.base = base;
    self.orphaned = orphaned;
    boot_connect(base, b, joined);
}

/* --- the lines down ---------------------------------------------------------------------------------------------- */

static void finish_leaving(void)
{
    void (*left)(void) = self.left;
    evtimer_del(self.patience);
    self.left = NULL;
    left();
}

static void set_patience(int seconds)
{
    struct timeval t = {.tv_sec = seconds};
    evtimer_add(self.patience, &t);
}

static void check_left(void)
{
    if (!self.left || grow_links()) return;
    if (!grow_agents())
        finish_leaving();
    else if (!evtimer_pending(self.patience, NULL))
        set_patience(AGENT_S);
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    grow_kill_agents(SIGKILL);
    finish_leaving();
}

static void child_opened(struct child *c)
{
    struct link_head h = {
        .length = (uint32_t)self.description_bytes, .type = TREE_JOB, .from = TREE_ROOT, .to = c->node};
    link_send(c->link, &h, self.description);
}

static bool from_child(struct child *c, const struct link_head *h, const void *bytes)
{
    return h->type != TREE_BYE && on_message(c->link, h, bytes);
}

static void child_lost(struct child *c, const char *why)
{
    struct wire_out w = {0};
    if (self.left) {
        evtimer_del(self.patience);
        set_patience(grow_links() ? LEAVE_S : AGENT_S);
        check_left();
        return;
    }
    wire_put32(&w, (uint32_t)c->node);
    wire_put_text(&w, why);
    tree_send(TREE_ROOT, TREE_LOST, w.bytes, w.n);
    wire_free(&w);
}

static const struct grow_calls down_calls = {child_opened, from_child, child_lost};

bool tree_exited(pid_t pid, int status)
{
    bool ours = grow_exited(pid, status);
    if (ours) check_left();
    return ours;
}

void tree_leave(void (*done)(void))
{
    if (self.left) return;
    self.left = done;
    grow_give_up();
    for (int i = 0; i < self.nchildren; i++) {
        struct link_head h = {.type = TREE_BYE, .from = TREE_ROOT, .to = self.children[i].node};
        if (self.children[i].link) link_send(self.children[i].link, &h, NULL);
    }
    if (!self.nchildren) {
        self.left = NULL;
        done();
        return;
    }
    set_patience(LEAVE_S);
    check_left();
}

int tree_open(struct job *j, const struct boot *b, const void *description, size_t n)
{
    make_shape(j);
    self.job = j;
    self.base = j->base;
    self.description = description;
    self.description_bytes = n;
    self.patience = evtimer_new(j->base, on_patience, NULL);
    if (b && b->vertex != self.vertex) {
        say("this daemon was started as number %d of the tree, but would be %d", b->vertex, self.vertex);
        return EXIT_RESOURCE;
    }
    return grow_open(j, self.vertex, self.children, self.nchildren, &down_calls);
}
