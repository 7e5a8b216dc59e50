/*
 * core.c - the engine that is another core: a thread that copies what it is told to, and sleeps between. The caller goes on meanwhile.
 *
 *     caller   push: pieces[pushed]     issue: issued = pushed, wakes the thread
 *     thread   copies pieces[finished], finished + 1; when all that was issued is done it tells the queue's owner
 */
#include "base/err.h"
#include "copy/copy.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct piece {
    void *dst;
    const void *src;
    size_t n;
};

struct core {
    pthread_t thread;
    sem_t issues;
    _Atomic bool stop;
    copy_told_fn told;
    void *told_arg;
    uint64_t pushed;           /* the caller's */
    _Atomic uint64_t issued, finished;
    size_t depth;
    struct piece pieces[];
};

static cpu_set_t cpus; /* where such threads run; empty: where their makers do */

void copy_core_on(const cpu_set_t *on) { cpus = *on; }

/* All that has been issued. */
static void work(struct core *c)
{
    uint64_t at = atomic_load_explicit(&c->finished, memory_order_relaxed);
    /* acquire: pairs with the release in issue; the pieces are there */
    while (at < atomic_load_explicit(&c->issued, memory_order_acquire)) {
        const struct piece *p = &c->pieces[at % c->depth];
        copy_memory(p->dst, p->src, p->n);
        /* release: who sees the count sees the copy */
        atomic_store_explicit(&c->finished, ++at, memory_order_release);
    }
}

static void *run(void *state)
{
    struct core *c = state;
    for (;;) {
        while (sem_wait(&c->issues)) continue; /* no signal is handled here; a debugger may interrupt */
        if (atomic_load_explicit(&c->stop, memory_order_acquire)) return NULL;
        work(c);
        if (c->told) c->told(c->told_arg);
    }
}

/* No signal of the program's is handled in it. */
static int begin(struct core *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, run, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) return err_set(TERN_ERR_SYSTEM, "a thread that copies cannot be made: %s", strerror(rc));
    pthread_setname_np(c->thread, "tern-copy");
    if (CPU_COUNT(&cpus)) pthread_setaffinity_np(c->thread, sizeof cpus, &cpus);
    return 0;
}

static int core_open(size_t depth, void **state_p)
{
    struct core *c = calloc(1, sizeof *c + depth * sizeof c->pieces[0]);
    if (!c) return err_set(TERN_ERR_NOMEM, "no memory for a copy engine of %zu pieces", depth);
    c->depth = depth;
    sem_init(&c->issues, 0, 0);
    int rc = begin(c);
    if (rc) {
        sem_destroy(&c->issues);
        free(c);
        return rc;
    }
    *state_p = c;
    return 0;
}

static void core_close(void *state)
{
    struct core *c = state;
    atomic_store_explicit(&c->stop, true, memory_order_release);
    sem_post(&c->issues);
    pthread_join(c->thread, NULL);
    sem_destroy(&c->issues);
    free(c);
}

static uint64_t core_finished(void *state) { return atomic_load_explicit(&((struct core *)state)->finished, memory_order_acquire); }

static int core_push(void *state, void *dst, const void *src, size_t n)
{
    struct core *c = state;
    if (c->pushed - core_finished(c) == c->depth) return TERN_AGAIN;
    c->pieces[c->pushed++ % c->depth] = (struct piece){dst, src, n};
    return 0;
}

static void core_issue(void *state)
{
    struct core *c = state;
    if (atomic_load_explicit(&c->issued, memory_order_relaxed) == c->pushed) return;
    atomic_store_explicit(&c->issued, c->pushed, memory_order_release);
    sem_post(&c->issues);
}

static void core_tell(void *state, copy_told_fn told, void *arg)
{
    struct core *c = state;
    c->told = told;
    c->told_arg = arg;
}

const struct copy_ops copy_core_ops = {
    .name = "core",
    .flags = COPY_ASYNC,
    .open = core_open,
    .close = core_close,
    .push = core_push,
    .issue = core_issue,
    .finished = core_finished,
    .tell = core_tell,
};
