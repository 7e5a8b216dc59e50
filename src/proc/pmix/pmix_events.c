/*
 * pmix_events.c - the events by which PMIx tells of the ends of processes and jobs. Deaths in the own job go to the
 * list that proc_deaths shows. Ends in watched jobs are queued as struct proc_event; the ends before the watch began
 * are asked for once (PMIX_QUERY_PROC_TABLE).
 *
 * The PMIx library calls on_event and on_table on its thread, one after the other; it may still do so when this process
 * has left PMIx (a program that uses PMIx as well keeps it alive), and after pmix_events_close.
 */
#include "base/err.h"
#include "proc/event_queue.h"
#include "proc/pmix/pmix_module.h"
#include "proc/proc.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TABLE_S 10           /* seconds that a launcher may take to say what it knows of a job */
#define RANKS_MAX (1u << 24) /* no event is of a rank beyond */

struct watch {
    char job[PROC_NAME_MAX];
    uint8_t *told; /* by rank: its end is queued */
    uint32_t room; /* of told */
    struct watch *next;
};

/* A question for what a launcher knows of a job. Whichever comes second, the answer or the end of the wait, frees it.
 */
struct table {
    pmix_query_t *query;
    pmix_status_t status;
    bool answered, left;
};

void (*pmix_ring)(uint64_t name);

static struct {
    pthread_mutex_t lock; /* guards what follows, but for the atomics */
    pthread_cond_t answered;
    struct watch *watches;
    struct event_queue events;
    bool registered;       /* the library has the handler */
    pmix_status_t refused; /* why it will never call it; PMIX_SUCCESS: it will */
    bool missed;           /* an event could not be queued, and nobody has been told of that */
    bool cut;              /* the launcher has ended */
    int fd;                /* readable while there are events; -1 before the first watch */
    _Atomic uint32_t word;
    _Atomic uint32_t *died; /* ranks of the own job, [ndied] of them; [pmix_job_size] */
    _Atomic uint32_t ndied;
    _Atomic uint8_t *gone; /* by rank of the own job: it has ended, in whatever way; [pmix_job_size] */
    _Atomic uint64_t bell;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .fd = -1};

/* ---- ends in the own job ---- */

/* A process that ends before it has joined is no death of an MPI process: Tern's launcher says so by an event of its
 * own, others end the job. */
static bool is_death(pmix_status_t event)
{
    return event != PMIX_EVENT_PROC_TERMINATED && (event != PMIX_ERR_PROC_TERM_WO_SYNC || !pmix_by_tern());
}

/* With the lock. */
static void note_end(uint32_t rank)
{
    if (!self.gone || rank >= pmix_job_size) return;
    atomic_store_explicit(&self.gone[rank], 1, memory_order_relaxed); /* stands for nothing else */
    pmix_get_wake();
}

bool pmix_gone(const pmix_proc_t *p)
{
    bool known = self.gone && !strcmp(p->nspace, pmix_me.nspace) && p->rank < pmix_job_size;
    return known && atomic_load_explicit(&self.gone[p->rank], memory_order_relaxed);
}

/* With the lock. */
static void note_death(uint32_t rank)
{
    uint32_t n = atomic_load_explicit(&self.ndied, memory_order_relaxed);
    if (!self.died || rank >= pmix_job_size || rank == pmix_me.rank) return;
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load_explicit(&self.died[i], memory_order_relaxed) == rank) return;
    atomic_store_explicit(&self.died[n], rank, memory_order_relaxed);
    /* release: pairs with the acquire of those who compare the number, after which the rank is read */
    atomic_store_explicit(&self.ndied, n + 1, memory_order_release);
    uint64_t bell = atomic_load_explicit(&self.bell, memory_order_relaxed);
    if (bell && pmix_ring) pmix_ring(bell);
}

/* Not every launcher tells, and who sleeps on a futex is not woken. */
struct proc_deaths pmix_deaths(void) { return (struct proc_deaths){self.died ? &self.ndied : NULL, self.died, false}; }

/* The place is one in the memory that the launcher has made for a node: here there is none. */
void pmix_bell(uint64_t place, uint64_t name)
{
    (void)place;
    atomic_store_explicit(&self.bell, name, memory_order_relaxed); /* a name is a number, and complete */
}

/* ---- the queue: all with the lock ---- */

static struct watch **find(const char *job)
{
    struct watch **at = &self.watches;
    while (*at && strcmp((*at)->job, job)) at = &(*at)->next;
    return at;
}

static void forget(struct watch **at)
{
    struct watch *w = *at;
    *at = w->next;
    free(w->told);
    free(w);
}

static void wake(void)
{
    uint64_t one = 1;
    if (self.fd >= 0) (void)!write(self.fd, &one, sizeof one);      /* the counter cannot overflow */
    atomic_fetch_add_explicit(&self.word, 1, memory_order_release); /* who looks at the word takes the lock then */
    syscall(SYS_futex, &self.word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* This is the library's thread: whoever asks for the next event is told. */
static void miss(void)
{
    self.missed = true;
    wake();
}

static void queue(const struct proc_event *e)
{
    if (event_queue_push(&self.events, e))
        wake();
    else
        miss();
}

static void drain(void)
{
    uint64_t count;
    if (self.fd >= 0) (void)!read(self.fd, &count, sizeof count); /* what comes later makes it readable again */
}

static void drop_events(const char *job)
{
    event_queue_drop(&self.events, job);
    if (!self.events.first) drain();
}

/* Once for each rank, whether a table or an event says it. */
static bool is_new(struct watch *w, uint32_t rank)
{
    if (rank >= RANKS_MAX) return false;
    if (rank >= w->room) {
        uint32_t room = 2 * rank + 64;
        uint8_t *longer = realloc(w->told, room);
        if (!longer) {
            miss();
            return false;
        }
        memset(longer + w->room, 0, room - w->room);
        w->told = longer;
        w->room = room;
    }
    bool first = !w->told[rank];
    w->told[rank] = 1;
    return first;
}

static void queue_end(const char *job, uint32_t rank, int status, bool clean)
{
    struct watch *w = *find(job);
    struct proc_event e = {.rank = rank, .status = status, .clean = clean};
    if (!w || !is_new(w, rank)) return;
    snprintf(e.job, sizeof e.job, "%s", job);
    queue(&e);
}

static void queue_over(const char *job)
{
    struct watch **at = find(job);
    struct proc_event e = {.ended = true};
    if (!*at) return;
    snprintf(e.job, sizeof e.job, "%s", job);
    forget(at);
    queue(&e);
}

/* ---- what PMIx says, on its thread ---- */

/* Launchers count as shells do: 128 and the signal. */
static int signalled(int code) { return code > 128 && code <= 128 + SIGRTMAX ? code - 128 : code & 0x7f; }
static int exited(int code) { return (code & 0xff) << 8; }

static int status_of(pmix_status_t event, int code)
{
    if (event == PMIX_ERR_PROC_ABORTED_BY_SIG) return signalled(code);
    return event == PMIX_ERR_PROC_ABORTED && code > 128 ? signalled(code) : exited(code);
}

static void take_end(pmix_status_t event, const pmix_proc_t *p, const int *code)
{
    bool own = !strcmp(p->nspace, pmix_me.nspace);
    pthread_mutex_lock(&self.lock);
    if (own && is_death(event)) note_death(p->rank);
    if (own) note_end(p->rank);
    if (code || !pmix_by_tern()) /* else another event says more to those who watch */
        queue_end(p->nspace, p->rank, status_of(event, code ? *code : 0), event == PMIX_EVENT_PROC_TERMINATED);
    pthread_mutex_unlock(&self.lock);
}

static void take_cut(void)
{
    pthread_mutex_lock(&self.lock);
    self.cut = true;
    wake();
    pthread_mutex_unlock(&self.lock);
}

static void take_over(const char *job)
{
    pthread_mutex_lock(&self.lock);
    queue_over(job);
    pthread_mutex_unlock(&self.lock);
}

static void on_event(size_t handler, pmix_status_t event, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    const pmix_proc_t *p = source;
    size_t n = source != NULL;
    const int *code = NULL;
    (void)handler, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++) {
        const pmix_value_t *v = &info[i].value;
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && v->type == PMIX_PROC && v->data.proc) {
            p = v->data.proc;
            n = 1;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROCS) && v->type == PMIX_DATA_ARRAY &&
                   v->data.darray && v->data.darray->type == PMIX_PROC) {
            p = v->data.darray->array;
            n = v->data.darray->size;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE) && v->type == PMIX_INT) {
            code = &v->data.integer;
        }
    }
    if (event == PMIX_ERR_LOST_CONNECTION) take_cut();
    for (size_t i = 0; i < n && event != PMIX_ERR_LOST_CONNECTION; i++)
        if (event == PMIX_EVENT_JOB_END)
            take_over(p[i].nspace);
        else if (p[i].rank <= PMIX_RANK_VALID)
            take_end(event, &p[i], code);
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void take_row(const pmix_proc_info_t *row)
{
    int code = row->exit_code;
    if (row->state < PMIX_PROC_STATE_TERMINATED) return;
    bool by_signal = row->state == PMIX_PROC_STATE_ABORTED_BY_SIG;
    queue_end(row->proc.nspace, row->proc.rank, by_signal ? signalled(code) : exited(code),
              row->state == PMIX_PROC_STATE_TERMINATED && !code);
}

static void free_table(struct table *t)
{
    PMIX_QUERY_FREE(t->query, 1);
    free(t);
}

static void on_table(pmix_status_t status, pmix_info_t *info, size_t ninfo, void *arg, pmix_release_cbfunc_t release,
                     void *release_arg)
{
    struct table *t = arg;
    pthread_mutex_lock(&self.lock);
    for (size_t i = 0; i < ninfo && status == PMIX_SUCCESS; i++) {
        const pmix_value_t *v = &info[i].value;
        const pmix_data_array_t *a = v->type == PMIX_DATA_ARRAY ? v->data.darray : NULL;
        const pmix_proc_info_t *rows = a && a->type == PMIX_PROC_INFO ? a->array : NULL;
        for (size_t r = 0; rows && r < a->size; r++) take_row(&rows[r]);
    }
    t->status = status;
    t->answered = true;
    bool left = t->left;
    pthread_cond_broadcast(&self.answered);
    pthread_mutex_unlock(&self.lock);
    if (release) release(release_arg);
    if (left) free_table(t);
}

/* ---- what is called ---- */

/* With a function to call, the library does not wait. */
static void on_registered(pmix_status_t status, size_t handler, void *arg)
{
    (void)handler, (void)arg;
    pthread_mutex_lock(&self.lock);
    self.refused = status;
    pthread_mutex_unlock(&self.lock);
}

void pmix_events_join(void)
{
    static pmix_status_t codes[] = {PMIX_ERR_PROC_ABORTED,      PMIX_ERR_PROC_ABORTED_BY_SIG,
                                    PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_EXIT_NONZERO_TERM,
                                    PMIX_EVENT_PROC_TERMINATED, PMIX_EVENT_JOB_END,
                                    PMIX_ERR_LOST_CONNECTION};
    pthread_mutex_lock(&self.lock);
    if (!self.died) self.died = calloc(pmix_job_size, sizeof *self.died);
    if (!self.gone) self.gone = calloc(pmix_job_size, sizeof *self.gone);
    bool have = self.registered;
    self.registered = true;
    self.refused = PMIX_SUCCESS;
    self.cut = false;
    pthread_mutex_unlock(&self.lock);
    pmix_status_t rc =
        have ? PMIX_SUCCESS
             : PMIx_Register_event_handler(codes, ARRAY_LEN(codes), NULL, 0, on_event, on_registered, NULL);
    if (rc < 0) on_registered(rc, 0, NULL); /* it will not be called */
}

void pmix_events_part(void) { self.registered = PMIx_Initialized(); }

static struct table *new_table(const char *job)
{
    bool yes = true;
    struct table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    PMIX_QUERY_CREATE(t->query, 1);
    PMIX_ARGV_APPEND((int){0}, t->query->keys, PMIX_QUERY_PROC_TABLE);
    PMIX_QUERY_QUALIFIERS_CREATE(t->query, 2);
    PMIX_INFO_LOAD(&t->query->qualifiers[0], PMIX_NSPACE, job, PMIX_STRING);
    PMIX_INFO_LOAD(&t->query->qualifiers[1], PMIX_QUERY_REFRESH_CACHE, &yes, PMIX_BOOL);
    return t;
}

/* What PMIx knows of the job, into the queue; with the lock, which it leaves meanwhile. */
static pmix_status_t ask_table(const char *job)
{
    struct timespec limit;
    struct table *t = new_table(job);
    if (!t) return PMIX_ERR_NOMEM;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += TABLE_S;
    pthread_mutex_unlock(&self.lock);
    pmix_status_t rc = PMIx_Query_info_nb(t->query, 1, on_table, t);
    if (rc != PMIX_SUCCESS) on_table(rc, NULL, 0, t, NULL, NULL); /* it will not be called */
    pthread_mutex_lock(&self.lock);
    while (!t->answered && !pthread_cond_timedwait(&self.answered, &self.lock, &limit)) continue;
    t->left = !t->answered;
    if (t->left) return PMIX_ERR_TIMEOUT;
    rc = t->status;
    free_table(t);
    return rc;
}

/* A launcher that does not know the job tells that it has ended. */
static bool is_known(pmix_status_t rc, const char *job)
{
    if (rc == PMIX_ERR_NOT_FOUND || rc == PMIX_ERR_INVALID_NAMESPACE) queue_over(job);
    return rc == PMIX_SUCCESS || rc == PMIX_ERR_PARTIAL_SUCCESS || rc == PMIX_ERR_NOT_FOUND ||
           rc == PMIX_ERR_INVALID_NAMESPACE;
}

static int add_watch(const char *job)
{
    if (self.fd < 0 && (self.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return pmix_fail(TERN_ERR_SYSTEM, "no descriptor for events of other jobs");
    if (*find(job)) return pmix_fail(TERN_ERR_ARG, "job '%s' is watched already", job);
    struct watch *w = calloc(1, sizeof *w);
    if (!w) return pmix_fail(TERN_ERR_NOMEM, "no memory to watch a job");
    snprintf(w->job, sizeof w->job, "%s", job);
    w->next = self.watches;
    self.watches = w;
    pmix_status_t rc = self.refused != PMIX_SUCCESS ? self.refused : ask_table(job);
    if (is_known(rc, job)) return 0;
    if (*find(job) == w) forget(find(job));
    drop_events(job);
    return pmix_fail(pmix_has_none(rc) || rc == PMIX_ERR_TIMEOUT ? TERN_ERR_UNSUPPORTED : TERN_ERR_SYSTEM,
                     "PMIx does not tell of the ends of the processes of job '%s': %s", job, PMIx_Error_string(rc));
}

int pmix_watch(const char *job)
{
    pthread_mutex_lock(&self.lock);
    int rc = add_watch(job);
    pthread_mutex_unlock(&self.lock);
    return rc;
}

int pmix_unwatch(const char *job)
{
    pthread_mutex_lock(&self.lock);
    struct watch **at = find(job);
    int rc = *at ? 0 : pmix_fail(TERN_ERR_NOT_FOUND, "job '%s' is not watched", job);
    if (*at) {
        forget(at);
        drop_events(job);
    }
    pthread_mutex_unlock(&self.lock);
    return rc;
}

/* When there is none: what has gone wrong meanwhile. */
static int no_event(void)
{
    bool missed = self.missed;
    drain();
    self.missed = false;
    if (missed) return pmix_fail(TERN_ERR_NOMEM, "no memory for the end of a process of another job, which is lost");
    if (self.cut && self.watches)
        return pmix_fail(TERN_ERR_PEER, "the launcher has ended: nothing more is told of job '%s'", self.watches->job);
    return 0;
}

int pmix_event(struct proc_event *e)
{
    pthread_mutex_lock(&self.lock);
    int rc = event_queue_pop(&self.events, e) ? 1 : no_event();
    if (rc > 0 && !self.events.first && !self.missed && !self.cut) drain();
    pthread_mutex_unlock(&self.lock);
    return rc;
}

void pmix_event_signal(struct proc_signal *s) { *s = (struct proc_signal){.word = &self.word, .fd = self.fd}; }

void pmix_events_close(void)
{
    struct proc_event e;
    pthread_mutex_lock(&self.lock);
    while (event_queue_pop(&self.events, &e)) continue;
    while (self.watches) forget(&self.watches);
    if (self.fd >= 0) close(self.fd);
    self.fd = -1;
    self.missed = self.cut = false;
    free((void *)self.died);
    free((void *)self.gone);
    self.died = NULL;
    self.gone = NULL;
    atomic_store_explicit(&self.ndied, 0, memory_order_relaxed);
    atomic_store_explicit(&self.bell, 0, memory_order_relaxed);
    pthread_mutex_unlock(&self.lock);
}
