/* server_jobs.c - see server_jobs.h. */
#include "mpiexec/server_jobs.h"
#include "base/err.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/xalloc.h"

#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define EVERYBODY UINT32_MAX /* the rank that the server of a node connects for: never ends before its job */
#define LAST_WORDS_MS 500    /* for what a rank that has ended has said last: the library may still be reading it */

struct end {
    uint32_t rank;
    int status; /* as of waitpid */
    bool clean;
};

/* Another job, or the own one that a client watches. */
struct other {
    char name[ASK_NAME_MAX];
    uint32_t size;        /* 0: the registry has not answered yet */
    bool connects, known; /* it has been asked; and the library knows the job */
    bool watches, ended;  /* a question for its ends lies at the registry; and none will follow */
    struct call *waiting; /* calls that need it to be known */
    struct end *ends;     /* of its processes: all that have ended */
    uint32_t nends;
    struct other *next;
};

/* A client's call. */
struct call {
    struct post post; /* first: it is posted as that */
    pmix_proc_t proc;
    pmix_modex_cbfunc_t modex;
    pmix_info_cbfunc_t table;
    void *arg;
    struct call *next;
    struct call *next_open; /* of those of PMIx_Get that have no answer */
};

/* A question of another job about a rank of this node. */
struct given {
    struct post post; /* first */
    struct asker asker;
    uint32_t rank;
    pmix_status_t status;
    char *bytes;
    size_t n;
    bool refused;        /* answered: what the library says now is nobody's */
    struct event *limit; /* of a rank that has ended; NULL: it lives */
    struct given *next;
};

static struct {
    struct job *job; /* NULL: no server */
    struct other *others;
    struct given *given;
    pthread_mutex_t lock; /* guards the next */
    struct call *open;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

void server_jobs_open(struct job *j) { self.job = j; }

/* ---- events for the clients ---- */

#define EVENT_INFOS 4

static void free_infos(pmix_status_t status, void *arg)
{
    pmix_info_t *infos = arg;
    (void)status;
    PMIX_INFO_FREE(infos, EVENT_INFOS);
}

/* The infos live until the library has used them. Of anything but a death in the own job those clients hear that have
 * registered for it: default handlers, such as Open MPI's, take every event for an error. */
static void notify(pmix_status_t code, const char *job, uint32_t rank, const int *exit_code)
{
    bool registered_only = code != PMIX_ERR_PROC_ABORTED;
    pmix_proc_t p;
    pmix_info_t *info;
    bool yes = true;
    PMIX_PROC_LOAD(&p, job, rank);
    PMIX_INFO_CREATE(info, EVENT_INFOS);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_AFFECTED_PROC, &p, PMIX_PROC);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_DO_NOT_CACHE, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[2], PMIX_EVENT_NON_DEFAULT, &registered_only, PMIX_BOOL);
    if (exit_code) PMIX_INFO_LOAD(&info[3], PMIX_EXIT_CODE, exit_code, PMIX_INT);
    pmix_status_t rc = PMIx_Notify_event(code, &p, PMIX_RANGE_LOCAL, info, exit_code ? 4 : 3, free_infos, info);
    if (rc != PMIX_SUCCESS) free_infos(rc, info); /* it will not be called */
}

/* As shells count. */
static int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

static void notify_end(const char *job, const struct end *e)
{
    int code = exit_code(e->status);
    notify(WIFSIGNALED(e->status) ? PMIX_ERR_PROC_ABORTED_BY_SIG
           : code                 ? PMIX_ERR_EXIT_NONZERO_TERM
           : e->clean             ? PMIX_EVENT_PROC_TERMINATED
                                  : PMIX_ERR_PROC_TERM_WO_SYNC,
           job, e->rank, &code);
}

/* No exit code: those who watch the job are told with it by notify_end. */
void server_jobs_tell_death(uint32_t rank)
{
    if (self.job) notify(PMIX_ERR_PROC_ABORTED, self.job->name, rank, NULL);
}

/* ---- other jobs ---- */

static struct other *other_of(const char *name)
{
    struct other *o = self.others;
    while (o && strcmp(o->name, name)) o = o->next;
    if (o) return o;
    o = xcalloc(1, sizeof *o);
    snprintf(o->name, sizeof o->name, "%s", name);
    o->next = self.others;
    return self.others = o;
}

/* Of a job that has ended: the library knows nothing of it any more. */
static void forget_data(struct other *o)
{
    if (o->known) PMIx_server_deregister_nspace(o->name, NULL, NULL);
    if (o->known) o->known = o->connects = false;
}

/* When it has ended, and nobody's answer is awaited. */
static void check_over(struct other *o)
{
    struct other **at = &self.others;
    if (!o->ended || (o->connects && !o->known)) return;
    while (*at != o) at = &(*at)->next;
    *at = o->next;
    forget_data(o);
    free(o->ends);
    free(o);
}

static void ask_name(enum ask_type type, const struct other *o, const uint32_t *number, asks_done_fn answered)
{
    uint8_t room[ASK_NAME_MAX + 16];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    if (number) ask_put32(&q, *number);
    ask_put_text(&q, o->name);
    asks_send((struct route){.node = TREE_ROOT}, type, EVERYBODY, q.bytes, q.n, answered, (void *)(uintptr_t)o);
}

static void watched(void *arg, int status, const void *bytes, size_t n)
{
    struct other *o = arg;
    struct ask_in in = ask_of(bytes, n);
    bool ended = status || ask_get32(&in);
    uint32_t more = status ? 0 : ask_get32(&in);
    for (; more && !in.bad; more--) {
        struct end e = {.rank = ask_get32(&in)};
        e.status = (int)ask_get32(&in);
        e.clean = ask_get32(&in);
        if (in.bad) break;
        o->ends = xrealloc(o->ends, (o->nends + 1) * sizeof e);
        o->ends[o->nends++] = e;
        notify_end(o->name, &e);
    }
    if (!ended && !in.bad) {
        ask_name(ASK_WATCH, o, &o->nends, watched);
        return;
    }
    forget_data(
        o); /* before the event: a client that asks when it has heard the end is told that there is no such job */
    notify(PMIX_EVENT_JOB_END, o->name, PMIX_RANK_WILDCARD, NULL);
    o->ended = true;
    check_over(o);
}

static void watch(struct other *o)
{
    if (o->watches) return;
    o->watches = true;
    ask_name(ASK_WATCH, o, &o->nends, watched);
}

/* ---- what processes of other jobs have put ---- */

static pmix_status_t status_of(int code)
{
    switch (code) {
    case TERN_ERR_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case TERN_ERR_RANK:
        return PMIX_ERR_BAD_PARAM;
    case TERN_ERR_PEER:
        return PMIX_ERR_PROC_TERM_WO_SYNC;
    case TERN_ERR_UNSUPPORTED:
        return PMIX_ERR_NOT_SUPPORTED;
    default:
        return PMIX_ERROR;
    }
}

static struct call **find_open(const void *arg)
{
    struct call **at = &self.open;
    while (*at && (*at)->arg != arg) at = &(*at)->next_open;
    return at;
}

/* On the library's thread. False: it has been asked. When a job becomes known, the library asks once more for all that
 * its clients wait for; a second answer would be one to freed memory. */
static bool open_call(struct call *c)
{
    pthread_mutex_lock(&self.lock);
    bool fresh = !*find_open(c->arg);
    if (fresh) {
        c->next_open = self.open;
        self.open = c;
    }
    pthread_mutex_unlock(&self.lock);
    return fresh;
}

static void give(struct call *c, pmix_status_t status, const void *bytes, size_t n)
{
    pthread_mutex_lock(&self.lock);
    *find_open(c->arg) = c->next_open;
    pthread_mutex_unlock(&self.lock);
    char *copy = n ? xcalloc(n, 1) : NULL;
    if (copy) memcpy(copy, bytes, n);
    c->modex(status, copy, n, c->arg, free, copy); /* the library frees the bytes when it has used them */
    free(c);
}

static void fetched(void *arg, int status, const void *bytes, size_t n)
{
    give(arg, status ? status_of(status) : PMIX_SUCCESS, bytes, status ? 0 : n);
}

/* The job is known: its own data are those that it was registered with. */
static void fetch(struct call *c, const struct other *o)
{
    uint8_t room[ASK_NAME_MAX + 16];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    if (c->proc.rank == PMIX_RANK_WILDCARD || c->proc.rank >= o->size) {
        give(c, c->proc.rank == PMIX_RANK_WILDCARD ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM, NULL, 0);
        return;
    }
    ask_put32(&q, c->proc.rank);
    ask_put_text(&q, o->name);
    asks_send((struct route){.node = TREE_ROOT}, ASK_MODEX, EVERYBODY, q.bytes, q.n, fetched, c);
}

static bool make_known(struct other *o, const void *key)
{
    pmix_info_t info[2];
    pmix_byte_object_t bytes = {.bytes = (char *)(uintptr_t)key, .size = ASK_PAIR_KEY};
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_SIZE, &o->size, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[1], ASK_PAIR_NAME, &bytes, PMIX_BYTE_OBJECT);
    pmix_status_t rc =
        PMIx_server_register_nspace(o->name, 0, info, 2, NULL, NULL); /* waits for the library's thread */
    explicit_bzero(info[1].value.data.bo.bytes, ASK_PAIR_KEY);
    for (int i = 0; i < 2; i++) PMIX_INFO_DESTRUCT(&info[i]);
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
}

static void connected(void *arg, int status, const void *bytes, size_t n)
{
    struct other *o = arg;
    struct ask_in in = ask_of(bytes, n);
    if (!status) {
        o->size = ask_get32(&in);
        const void *key = ask_get(&in, ASK_PAIR_KEY);
        o->known = ask_done(&in) && make_known(o, key);
    }
    struct call *c = o->waiting;
    o->waiting = NULL;
    for (struct call *next; c; c = next) {
        next = c->next;
        if (o->known)
            fetch(c, o);
        else
            give(c, status ? status_of(status) : PMIX_ERROR, NULL, 0);
    }
    o->connects = o->known;
    check_over(o);
}

static void take_modex(struct post *post)
{
    struct call *c = (struct call *)post;
    struct other *o = other_of(c->proc.nspace);
    if (o->known) {
        fetch(c, o);
        return;
    }
    c->next = o->waiting;
    o->waiting = c;
    if (o->connects) return;
    o->connects = true;
    watch(o);
    ask_name(ASK_CONNECT, o, NULL, connected);
}

pmix_status_t server_jobs_modex(const pmix_proc_t *p, pmix_modex_cbfunc_t done, void *arg)
{
    if (!self.job || !done || strlen(p->nspace) >= ASK_NAME_MAX || !*p->nspace) return PMIX_ERR_NOT_FOUND;
    struct call *c = xcalloc(1, sizeof *c);
    *c = (struct call){.proc = *p, .modex = done, .arg = arg};
    if (open_call(c))
        post_run(&c->post, take_modex);
    else
        free(c);
    return PMIX_SUCCESS;
}

/* ---- tables of processes ---- */

static pmix_proc_state_t state_of(const struct end *e)
{
    if (WIFSIGNALED(e->status)) return PMIX_PROC_STATE_ABORTED_BY_SIG;
    if (exit_code(e->status)) return PMIX_PROC_STATE_TERM_NON_ZERO;
    return e->clean ? PMIX_PROC_STATE_TERMINATED : PMIX_PROC_STATE_TERM_WO_SYNC;
}

static void release(void *infos)
{
    pmix_info_t *info = infos;
    PMIX_INFO_FREE(info, 1);
}

static void take_table(struct post *post)
{
    struct call *c = (struct call *)post;
    struct other *o = other_of(c->proc.nspace);
    pmix_info_t *info;
    pmix_data_array_t *a;
    PMIX_INFO_CREATE(info, 1);
    PMIX_DATA_ARRAY_CREATE(a, o->nends, PMIX_PROC_INFO);
    pmix_proc_info_t *p = a->array;
    for (uint32_t i = 0; i < o->nends; i++) {
        PMIX_PROC_LOAD(&p[i].proc, o->name, o->ends[i].rank);
        p[i].state = state_of(&o->ends[i]);
        p[i].exit_code = exit_code(o->ends[i].status);
    }
    PMIX_LOAD_KEY(info->key, PMIX_QUERY_PROC_TABLE);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = a;
    c->table(PMIX_SUCCESS, info, 1, c->arg, release, info);
    free(c);
    watch(o); /* after the answer: what is told from here on comes by events */
}

pmix_status_t server_jobs_table(const pmix_query_t *q, pmix_info_cbfunc_t done, void *arg)
{
    const char *name = NULL;
    for (size_t i = 0; i < q->nqual; i++)
        if (PMIX_CHECK_KEY(&q->qualifiers[i], PMIX_NSPACE) && q->qualifiers[i].value.type == PMIX_STRING)
            name = q->qualifiers[i].value.data.string;
    if (!self.job || !name || !*name || strlen(name) >= ASK_NAME_MAX) return PMIX_ERR_BAD_PARAM;
    struct call *c = xcalloc(1, sizeof *c);
    *c = (struct call){.table = done, .arg = arg};
    PMIX_PROC_LOAD(&c->proc, name, PMIX_RANK_WILDCARD);
    post_run(&c->post, take_table);
    return PMIX_SUCCESS;
}

/* ---- what ranks of this node have put ---- */

static void drop(struct given *g)
{
    struct given **at = &self.given;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    if (g->limit) event_free(g->limit);
    free(g->bytes);
    free(g);
}

static void refuse(struct given *g)
{
    asks_refuse(&g->asker, TERN_ERR_PEER, "the process has ended without calling MPI_Init");
    g->refused = true;
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    struct given *g = arg;
    (void)fd, (void)what;
    if (!g->refused) refuse(g);
}

static void limit(struct given *g)
{
    struct timeval after = {.tv_usec = LAST_WORDS_MS * 1000};
    if (g->limit || g->refused) return;
    g->limit = evtimer_new(self.job->base, on_limit, g);
    if (!g->limit || evtimer_add(g->limit, &after)) refuse(g);
}

static void answer(struct post *post)
{
    struct given *g = (struct given *)post;
    if (!g->refused && g->status == PMIX_SUCCESS)
        asks_answer(&g->asker, 0, g->bytes, g->n);
    else if (!g->refused)
        asks_refuse(&g->asker, TERN_ERR_SYSTEM, "PMIx does not know what rank %u has put: %s", g->rank,
                    PMIx_Error_string(g->status));
    drop(g);
}

/* On the library's thread; the data are its own. */
static void found(pmix_status_t status, char *data, size_t n, void *arg)
{
    struct given *g = arg;
    g->status = n > ASK_BYTES_MAX ? PMIX_ERR_OUT_OF_RESOURCE : status;
    if (g->status == PMIX_SUCCESS && n) {
        g->bytes = xcalloc(n, 1);
        memcpy(g->bytes, data, n);
        g->n = n;
    }
    post_run(&g->post, answer);
}

void server_jobs_give(const struct asker *a, uint32_t rank)
{
    pmix_proc_t p;
    if (!self.job) {
        asks_refuse(a, TERN_ERR_UNSUPPORTED, "the job has no PMIx server");
        return;
    }
    struct given *g = xcalloc(1, sizeof *g);
    *g = (struct given){.asker = *a, .rank = rank, .next = self.given};
    self.given = g;
    PMIX_PROC_LOAD(&p, self.job->name, rank);
    pmix_status_t rc = PMIx_server_dmodex_request(&p, found, g);
    if (rc != PMIX_SUCCESS) {
        g->status = rc;
        answer(&g->post);
    } else if (self.job->ranks[rank].exited) {
        limit(g);
    }
}

void server_jobs_rank_ended(uint32_t rank, bool joined)
{
    if (self.job) notify(joined ? PMIX_EVENT_PROC_TERMINATED : PMIX_ERR_PROC_TERM_WO_SYNC, self.job->name, rank, NULL);
    for (struct given *g = self.given; g; g = g->next)
        if (g->rank == rank) limit(g);
}
