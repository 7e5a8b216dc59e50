/* directory.c - see directory.h. */
#include "mpiexec/directory.h"
#include "base/err.h"
#include "base/hex.h"
#include "mpiexec/asks.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/xalloc.h"

#include <limits.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED '\1' /* begins a value that is no string */

struct item {
    char *key, *value; /* value: to be published, or what was found (NULL: nothing) */
    pmix_proc_t owner; /* of what was found */
    struct call *call; /* of a lookup that waits: whose it is, until it is answered; NULL then */
};

/* A client's call that is on its way. */
struct call {
    struct post post; /* first: it is posted as that */
    enum ask_type type;
    uint32_t rank;
    struct item *items;
    size_t n, at; /* items, and the one that is asked for */
    pmix_status_t status;
    pmix_op_cbfunc_t done;
    pmix_lookup_cbfunc_t found;
    void *arg;
    /* a lookup that waits (PMIX_WAIT): */
    size_t wanted; /* values that end it; 0: it does not wait */
    int seconds;   /* PMIX_TIMEOUT, 0: without end */
    bool asking;   /* not all questions have been sent */
    struct event *limit;
    struct call *next;
};

static struct {
    struct event_base *base;
    struct call *waiting;
} self;

void directory_open(struct event_base *base) { self.base = base; }

/* ---- values as texts ---- */

/* malloc'ed; NULL: the library cannot pack it. */
static char *packed_text(const pmix_value_t *v)
{
    pmix_data_buffer_t b;
    PMIX_DATA_BUFFER_CONSTRUCT(&b);
    char *text = NULL;
    if (PMIx_Data_pack(NULL, &b, (void *)(uintptr_t)v, 1, PMIX_VALUE) == PMIX_SUCCESS) {
        text = xcalloc(2 * b.bytes_used + 2, 1);
        text[0] = PACKED;
        hex_put(text + 1, b.base_ptr, b.bytes_used);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&b);
    return text;
}

static char *text_of(const pmix_value_t *v)
{
    if (v->type == PMIX_STRING && v->data.string && *v->data.string != PACKED) return xstrdup(v->data.string);
    return packed_text(v);
}

/* The bytes that the digits stand for; NULL: they stand for none. */
static char *bytes_of(const char *digits, size_t *n_p)
{
    size_t n = strlen(digits) / 2;
    if (!n || digits[2 * n]) return NULL;
    char *bytes = xcalloc(n, 1);
    if (!hex_get(digits, bytes, n)) {
        free(bytes);
        return NULL;
    }
    *n_p = n;
    return bytes;
}

static bool unpack_text(pmix_value_t *v, const char *digits)
{
    size_t n;
    int32_t one = 1;
    char *bytes = bytes_of(digits, &n); /* the library frees those of a buffer */
    if (!bytes) return false;
    pmix_data_buffer_t b;
    PMIX_DATA_BUFFER_CONSTRUCT(&b);
    PMIX_DATA_BUFFER_LOAD(&b, bytes, n);
    bool good = PMIx_Data_unpack(NULL, &b, v, &one, PMIX_VALUE) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&b);
    return good;
}

static void load_value(pmix_value_t *v, const char *text)
{
    if (*text != PACKED || !unpack_text(v, text + 1)) PMIX_VALUE_LOAD(v, (void *)(uintptr_t)text, PMIX_STRING);
}

/* ---- on the main thread ---- */

static pmix_status_t status_of(int code)
{
    switch (code) {
    case 0:
        return PMIX_SUCCESS;
    case TERN_ERR_DUPLICATE:
        return PMIX_ERR_DUPLICATE_KEY;
    case TERN_ERR_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case TERN_ERR_NOMEM:
        return PMIX_ERR_OUT_OF_RESOURCE;
    default:
        return PMIX_ERROR;
    }
}

static void free_call(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].key);
        free(c->items[i].value);
    }
    free(c->items);
    free(c);
}

static void give_found(struct call *c)
{
    pmix_pdata_t *data = xcalloc(c->n + 1, sizeof *data);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];
        if (!item->value) continue;
        PMIX_PDATA_CONSTRUCT(&data[n]);
        data[n].proc = item->owner;
        PMIX_LOAD_KEY(data[n].key, item->key);
        load_value(&data[n++].value, item->value);
    }
    if (c->status == PMIX_SUCCESS && !n) c->status = PMIX_ERR_NOT_FOUND;
    c->found(c->status, n ? data : NULL, n, c->arg); /* copies */
    for (size_t i = 0; i < n; i++) PMIX_PDATA_DESTRUCT(&data[i]);
    free(data);
}

static void give_answer(struct call *c)
{
    if (c->found)
        give_found(c);
    else
        c->done(c->status, c->arg);
    free_call(c);
}

static void ask(struct call *c, enum ask_type type, const struct item *item, asks_done_fn answered, void *arg)
{
    uint8_t room[ASK_NAME_MAX + ASK_VALUE_MAX + 32];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    if (type == ASK_LOOKUP) ask_put32(&q, c->wanted != 0);
    ask_put_text(&q, item->key);
    if (type == ASK_PUBLISH) ask_put_text(&q, item->value);
    asks_send((struct route){.node = TREE_ROOT}, type, c->rank, q.bytes, q.n, answered, arg);
}

/* A call that is refused leaves nothing behind: takes back what it has published. */
static void withdrawn(void *arg, int status, const void *bytes, size_t n)
{
    struct call *c = arg;
    (void)status, (void)bytes, (void)n;
    if (!c->at)
        give_answer(c);
    else
        ask(c, ASK_WITHDRAW, &c->items[--c->at], withdrawn, c);
}

static void take_found(struct item *item, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    const char *value = ask_get_text(&in, ASK_VALUE_MAX);
    uint32_t rank = ask_get32(&in);
    const char *job = ask_get_text(&in, ASK_NAME_MAX);
    if (!ask_done(&in)) return;
    item->value = xstrdup(value);
    PMIX_PROC_LOAD(&item->owner, job, rank);
}

static void answered(void *arg, int status, const void *bytes, size_t n)
{
    struct call *c = arg;
    if (!status && c->found) take_found(&c->items[c->at], bytes, n);
    if (status && !(c->found && status == TERN_ERR_NOT_FOUND)) {
        c->status = status_of(status);
        if (c->type == ASK_PUBLISH)
            withdrawn(c, 0, NULL, 0);
        else
            give_answer(c);
    } else if (++c->at == c->n) {
        give_answer(c);
    } else {
        ask(c, c->type, &c->items[c->at], answered, c);
    }
}

static void begin(struct post *post)
{
    struct call *c = (struct call *)post;
    ask(c, c->type, &c->items[0], answered, c);
}

/* ---- a lookup that waits: all keys are asked for at the same time ---- */

static void stop_waiting(struct call *c)
{
    struct call **at = &self.waiting;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    if (c->limit) event_free(c->limit);
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].call) asks_cancel(&c->items[i]);
}

static void check_waiting(struct call *c)
{
    size_t found = 0, open = 0;
    for (size_t i = 0; i < c->n; i++) {
        found += c->items[i].value != NULL;
        open += c->items[i].call != NULL;
    }
    if (c->asking || (found < c->wanted && open && c->status == PMIX_SUCCESS)) return;
    stop_waiting(c);
    give_answer(c);
}

static void waited(void *arg, int status, const void *bytes, size_t n)
{
    struct item *item = arg;
    struct call *c = item->call;
    item->call = NULL;
    if (!status) take_found(item, bytes, n);
    if (status && status != TERN_ERR_NOT_FOUND) c->status = status_of(status);
    check_waiting(c);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    struct call *c = arg;
    (void)fd, (void)what;
    c->status = PMIX_ERR_TIMEOUT;
    check_waiting(c);
}

static void set_limit(struct call *c)
{
    struct timeval after = {.tv_sec = c->seconds};
    if (!c->seconds) return;
    c->limit = evtimer_new(self.base, on_limit, c);
    if (!c->limit || evtimer_add(c->limit, &after)) c->status = PMIX_ERR_OUT_OF_RESOURCE;
}

static void begin_waiting(struct post *post)
{
    struct call *c = (struct call *)post;
    c->next = self.waiting;
    self.waiting = c;
    set_limit(c);
    c->asking = true; /* an answer may come within the question */
    for (size_t i = 0; i < c->n; i++) {
        c->items[i].call = c;
        ask(c, ASK_LOOKUP, &c->items[i], waited, &c->items[i]);
    }
    c->asking = false;
    check_waiting(c);
}

/* Nobody is there to be answered. */
void directory_rank_ended(uint32_t rank)
{
    for (struct call *c = self.waiting, *next; c; c = next) {
        next = c->next;
        if (c->rank != rank) continue;
        stop_waiting(c);
        free_call(c);
    }
}

/* ---- upcalls ---- */

/* Keys of the library's own say how to publish (range, persistence). */
static bool is_directive(const pmix_info_t *i) { return !strncmp(i->key, "pmix.", 5); }

static struct call *call_new(enum ask_type type, const pmix_proc_t *p, size_t room, void *arg)
{
    struct call *c = xcalloc(1, sizeof *c);
    *c = (struct call){.type = type, .rank = p->rank, .arg = arg};
    c->items = xcalloc(room + 1, sizeof *c->items);
    return c;
}

static pmix_status_t start(struct call *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct item *item = &c->items[i];
        bool fits = *item->key && strlen(item->key) < ASK_NAME_MAX; /* without a name, all are withdrawn */
        if (c->type == ASK_PUBLISH) fits = fits && item->value && strlen(item->value) < ASK_VALUE_MAX;
        if (fits) continue;
        free_call(c);
        return PMIX_ERR_BAD_PARAM;
    }
    post_run(&c->post, c->wanted ? begin_waiting : begin);
    return PMIX_SUCCESS;
}

pmix_status_t directory_publish(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                void *arg)
{
    struct call *c = call_new(ASK_PUBLISH, p, ninfo, arg);
    c->done = done;
    for (size_t i = 0; i < ninfo; i++)
        if (!is_directive(&info[i]))
            c->items[c->n++] = (struct item){.key = xstrdup(info[i].key), .value = text_of(&info[i].value)};
    if (c->n) return start(c);
    free_call(c);
    return PMIX_OPERATION_SUCCEEDED;
}

static void add_keys(struct call *c, char **keys)
{
    for (; keys && *keys; keys++) c->items[c->n++].key = xstrdup(*keys);
}

static size_t count(char **keys)
{
    size_t n = 0;
    while (keys && keys[n]) n++;
    return n;
}

/* Of a directive; 0 also if it is none. */
static int number_of(const pmix_value_t *v)
{
    switch (v->type) {
    case PMIX_INT:
        return v->data.integer > 0 ? v->data.integer : 0;
    case PMIX_INT32:
        return v->data.int32 > 0 ? v->data.int32 : 0;
    case PMIX_UINT32:
        return v->data.uint32 <= INT_MAX ? (int)v->data.uint32 : INT_MAX;
    case PMIX_SIZE:
        return v->data.size <= INT_MAX ? (int)v->data.size : INT_MAX;
    default:
        return 0;
    }
}

/* PMIX_WAIT of 0 values is one of all. */
static void take_directives(struct call *c, const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        size_t n = (size_t)number_of(&info[i].value);
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) c->wanted = n && n < c->n ? n : c->n;
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) c->seconds = (int)n;
    }
}

pmix_status_t directory_lookup(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_lookup_cbfunc_t found, void *arg)
{
    if (!count(keys)) return PMIX_ERR_BAD_PARAM;
    struct call *c = call_new(ASK_LOOKUP, p, count(keys), arg);
    c->found = found;
    add_keys(c, keys);
    take_directives(c, info, ninfo);
    return start(c);
}

pmix_status_t directory_unpublish(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    struct call *c = call_new(ASK_WITHDRAW, p, count(keys), arg);
    c->done = done;
    add_keys(c, keys);
    if (c->n) return start(c);
    c->items[c->n++].key = xstrdup(""); /* all */
    post_run(&c->post, begin);
    return PMIX_SUCCESS;
}
