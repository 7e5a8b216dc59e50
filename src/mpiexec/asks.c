/* asks.c - see asks.h. */
#include "mpiexec/asks.h"
#include "base/err.h"
#include "mpiexec/tree.h"
#include "mpiexec/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A question that has no answer yet. */
struct open_ask {
    uint32_t id;
    struct route route;
    asks_done_fn done;
    void *arg;
    struct open_ask *next;
};

/* A question of somebody else that was passed on. */
struct forward {
    struct asker asker;
    struct forward *next;
};

static struct {
    const struct asks_calls *calls;
    struct open_ask *open;
    struct forward *forwards;
    uint32_t last_id;
    int *lost_node, lost; /* nodes that are asked no more: how many */
} self;

static void put(struct route route, enum tree_type type, const struct ask_head *h, const void *bytes)
{
    if (route.line) {
        struct line *l = line_of(route.line);
        if (l) line_send(l, h, bytes);
        return;
    }
    struct ask_head wire = ask_swap(*h);
    char *all = xcalloc(1, sizeof wire + h->length);
    memcpy(all, &wire, sizeof wire);
    if (h->length) memcpy(all + sizeof wire, bytes, h->length);
    tree_send(route.node, type, all, sizeof wire + h->length);
    free(all);
}

/* ---- who asks ---- */

static struct open_ask *unlink_ask(struct open_ask **at)
{
    struct open_ask *o = *at;
    *at = o->next;
    return o;
}

static struct open_ask *take_open_of(struct route route)
{
    struct open_ask **at = &self.open;
    while (*at && !asks_same_route((*at)->route, route)) at = &(*at)->next;
    return *at ? unlink_ask(at) : NULL;
}

/* What was asked by this route has no answer. */
static void fail_asks_of(struct route route)
{
    static const char why[] = "the launcher that was asked has ended";
    uint8_t room[sizeof why + 4];
    struct ask_out words = {.bytes = room, .room = sizeof room};
    ask_put_text(&words, why);
    for (struct open_ask *o; (o = take_open_of(route)); free(o)) o->done(o->arg, TERN_ERR_PEER, words.bytes, words.n);
}

static bool is_lost(struct route route)
{
    if (route.line) return !line_of(route.line);
    for (int i = 0; i < self.lost; i++)
        if (self.lost_node[i] == route.node) return true;
    return false;
}

void asks_lose_node(int node)
{
    struct route route = {.node = node};
    if (is_lost(route)) return;
    self.lost_node = xrealloc(self.lost_node, (size_t)(self.lost + 1) * sizeof *self.lost_node);
    self.lost_node[self.lost++] = node;
    fail_asks_of(route);
}

void asks_send(struct route route, enum ask_type type, uint32_t rank, const void *bytes, size_t n, asks_done_fn done,
               void *arg)
{
    struct open_ask *o = xcalloc(1, sizeof *o);
    *o = (struct open_ask){.id = ++self.last_id, .route = route, .done = done, .arg = arg, .next = self.open};
    self.open = o;
    if (is_lost(route)) {
        fail_asks_of(route);
        return;
    }
    struct ask_head h = {.length = (uint32_t)n, .type = (uint16_t)type, .id = o->id, .rank = rank};
    put(route, TREE_ASK, &h, bytes);
}

void asks_cancel(const void *arg)
{
    for (struct open_ask **at = &self.open; *at;) {
        if ((*at)->arg != arg) {
            at = &(*at)->next;
            continue;
        }
        struct open_ask *o = unlink_ask(at);
        put(o->route, TREE_ASK, &(struct ask_head){.type = ASK_CANCEL, .id = o->id}, NULL);
        free(o);
        at = &self.open; /* if it was for this process itself, that has cancelled others */
    }
}

/* False: nobody has asked that. An answer may come to a question that was cancelled meanwhile. */
static bool take_answer(struct route route, const struct ask_head *h, const void *bytes)
{
    struct open_ask **at = &self.open;
    while (*at && (*at)->id != h->id) at = &(*at)->next;
    if (!*at) return h->id && h->id <= self.last_id;
    if (!asks_same_route((*at)->route, route)) return false;
    struct open_ask *o = unlink_ask(at);
    o->done(o->arg, h->status, bytes, h->length);
    free(o);
    return true;
}

/* ---- who answers ---- */

void asks_answer(const struct asker *a, int status, const void *bytes, size_t n)
{
    struct ask_head h = {.length = (uint32_t)n, .type = ASK_ANSWER, .status = (int16_t)status, .id = a->id};
    put(a->route, TREE_ANSWER, &h, bytes);
    if (a->rings) self.calls->ring();
}

void asks_refuse(const struct asker *a, int status, const char *fmt, ...)
{
    char words[1024];
    uint8_t room[sizeof words + 8];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    ask_put_text(&o, words);
    asks_answer(a, status, o.bytes, o.n);
}

/* ---- between ---- */

static void forget_forward(struct forward *f)
{
    struct forward **at = &self.forwards;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    free(f);
}

static void answered(void *arg, int status, const void *bytes, size_t n)
{
    struct forward *f = arg;
    asks_answer(&f->asker, status, bytes, n);
    forget_forward(f);
}

void asks_forward(const struct asker *a, struct route to, enum ask_type type, const void *bytes, size_t n)
{
    struct forward *f = xcalloc(1, sizeof *f);
    *f = (struct forward){.asker = *a, .next = self.forwards};
    self.forwards = f;
    asks_send(to, type, a->rank, bytes, n, answered, f);
}

static void cancel(const struct asker *a)
{
    struct forward *f = self.forwards;
    while (f && !asks_same(&f->asker, a)) f = f->next;
    if (f) {
        asks_cancel(f);
        forget_forward(f);
    } else {
        self.calls->cancel(a);
    }
}

static void take(const struct asker *a, enum ask_type type, const void *bytes, size_t n)
{
    if (type == ASK_CANCEL)
        cancel(a);
    else
        self.calls->take(a, type, bytes, n);
}

/* ---- lines ---- */

void asks_take(struct line *l, const struct ask_head *h, bool rings, const void *bytes)
{
    struct asker a = {.route = {.line = line_number(l)}, .id = h->id, .rank = h->rank, .rings = rings};
    if (h->type != ASK_ANSWER)
        take(&a, h->type, bytes, h->length);
    else if (!take_answer(a.route, h, bytes))
        line_refuse(l, h->id, TERN_ERR_ARG, "the launcher got an answer that it has not asked for");
}

/* The next of the questions that came by this line and were passed on. */
static struct forward *forward_of(uint32_t line)
{
    struct forward *f = self.forwards;
    while (f && f->asker.route.line != line) f = f->next;
    return f;
}

void asks_lose(struct line *l)
{
    uint32_t line = line_number(l);
    for (struct forward *f; (f = forward_of(line));) {
        asks_cancel(f);
        forget_forward(f);
    }
    self.calls->cancel(&(struct asker){.route = {.line = line}});
    fail_asks_of((struct route){.line = line});
}

/* ---- the tree ---- */

static bool get_head(struct ask_head *h, const void *bytes, size_t n)
{
    if (n < sizeof *h) return false;
    memcpy(h, bytes, sizeof *h);
    *h = ask_swap(*h);
    return h->length == n - sizeof *h && h->length <= ASK_BYTES_MAX && h->type > ASK_NONE && h->type < ASK_TYPES;
}

static bool on_ask(int from, const void *bytes, size_t n)
{
    struct ask_head h;
    if (!get_head(&h, bytes, n) || h.type == ASK_ANSWER) return false;
    struct asker a = {.route = {.node = from}, .id = h.id, .rank = h.rank};
    take(&a, h.type, (const char *)bytes + sizeof h, h.length);
    return true;
}

static bool on_answer(int from, const void *bytes, size_t n)
{
    struct ask_head h;
    struct route route = {.node = from};
    return get_head(&h, bytes, n) && h.type == ASK_ANSWER && take_answer(route, &h, (const char *)bytes + sizeof h);
}

void asks_open(const struct asks_calls *calls)
{
    self.calls = calls;
    tree_handlers[TREE_ASK] = on_ask;
    tree_handlers[TREE_ANSWER] = on_answer;
}
