/* modex.c - see modex.h. */
#include "mpiexec/modex.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (TREE_MESSAGE_MAX - 64)
#define LAST_WORDS_MS 500 /* for what a rank that has ended has put last: the library may still be reading it */

/* A question of a client here. */
struct question {
    struct post post; /* first: it is posted as that */
    uint32_t id, rank;
    pmix_modex_cbfunc_t done;
    void *arg;
    struct question *next;
};

/* A question of another node, while the library looks for the answer. */
struct answer {
    struct post post; /* first */
    int node;
    uint32_t id, rank;
    int status;
    char *bytes;
    size_t n;
    bool sent;           /* what the library says now is nobody's */
    struct event *limit; /* of a rank that has ended; NULL: it lives */
    struct answer *next;
};

static struct {
    struct job *job;
    struct question *open;
    struct answer *owed; /* the library has them until it calls `found` */
    uint32_t last_id;
} self;

/* ---- who asks ---- */

static void send_question(struct post *post)
{
    struct question *q = (struct question *)post;
    struct wire_out w = {0};
    q->id = ++self.last_id;
    q->next = self.open;
    self.open = q;
    wire_put32(&w, q->id);
    wire_put32(&w, q->rank);
    tree_send(self.job->ranks[q->rank].node, TREE_MODEX_ASK, w.bytes, w.n);
    wire_free(&w);
}

void modex_ask(uint32_t rank, pmix_modex_cbfunc_t done, void *arg)
{
    struct question *q = xcalloc(1, sizeof *q);
    q->rank = rank;
    q->done = done;
    q->arg = arg;
    post_run(&q->post, send_question);
}

static bool on_answer(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t id = wire_get32(&w);
    int status = (int)wire_get32(&w);
    struct question **at = &self.open;
    while (*at && (*at)->id != id) at = &(*at)->next;
    struct question *q = *at;
    if (w.bad || !q || self.job->ranks[q->rank].node != launch_node_of(self.job, from)) return false;
    *at = q->next;
    size_t left = wire_left(&w);
    char *copy = left ? xcalloc(left, 1) : NULL;
    if (copy) memcpy(copy, w.at, left);
    q->done(status, copy, left, q->arg, free, copy); /* the library frees the bytes when it has used them */
    free(q);
    return true;
}

/* ---- who answers ---- */

static void send_answer(struct answer *a)
{
    struct wire_out w = {0};
    if (a->sent) return;
    a->sent = true;
    wire_put32(&w, a->id);
    wire_put32(&w, (uint32_t)a->status);
    wire_put_raw(&w, a->bytes, a->n);
    tree_send(a->node, TREE_MODEX, w.bytes, w.n);
    wire_free(&w);
}

static void pay(struct post *post)
{
    struct answer *a = (struct answer *)post, **at = &self.owed;
    send_answer(a);
    while (*at != a) at = &(*at)->next;
    *at = a->next;
    if (a->limit) event_free(a->limit);
    free(a->bytes);
    free(a);
}

/* The library says nothing of a rank that has ended without what it is asked for. */
static void refuse(struct answer *a)
{
    struct answer none = {.node = a->node, .id = a->id, .status = PMIX_ERR_PROC_TERM_WO_SYNC, .sent = a->sent};
    send_answer(&none);
    a->sent = true;
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    refuse(arg);
}

static void limit(struct answer *a)
{
    struct timeval after = {.tv_usec = LAST_WORDS_MS * 1000};
    if (a->limit) return;
    a->limit = evtimer_new(self.job->base, on_limit, a);
    if (!a->limit || evtimer_add(a->limit, &after)) refuse(a);
}

void modex_rank_ended(uint32_t rank)
{
    for (struct answer *a = self.owed; a; a = a->next)
        if (a->rank == rank) limit(a);
}

/* On the library's thread; the data are its own. */
static void found(pmix_status_t status, char *data, size_t n, void *arg)
{
    struct answer *a = arg;
    a->status = status == PMIX_SUCCESS && n > BYTES_MAX ? PMIX_ERR_OUT_OF_RESOURCE : status;
    if (a->status == PMIX_SUCCESS && n) {
        a->bytes = xcalloc(n, 1);
        memcpy(a->bytes, data, n);
        a->n = n;
    }
    post_run(&a->post, pay);
}

static bool on_question(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t id = wire_get32(&w), rank = wire_get32(&w);
    int node = launch_node_of(self.job, from);
    if (!wire_done(&w) || node == NODE_NONE || rank >= (uint32_t)self.job->size) return false;
    if (self.job->ranks[rank].node != self.job->node) return false;
    struct answer *a = xcalloc(1, sizeof *a);
    *a = (struct answer){.node = node, .id = id, .rank = rank, .next = self.owed};
    self.owed = a;
    pmix_proc_t p;
    PMIX_PROC_LOAD(&p, self.job->name, rank);
    pmix_status_t rc = PMIx_server_dmodex_request(&p, found, a);
    if (rc == PMIX_SUCCESS) {
        if (self.job->ranks[rank].exited) limit(a);
        return true;
    }
    a->status = rc;
    pay(&a->post);
    return true;
}

void modex_open(struct job *j)
{
    self.job = j;
    tree_handlers[TREE_MODEX_ASK] = on_question;
    tree_handlers[TREE_MODEX] = on_answer;
}
