/*
 * core.c - the engine that is another core: a thread that copies what it is told to, and sleeps between. The caller goes on meanwhile,
 * and copies itself what nobody has begun if it has to wait.
 *
 *     caller    push: pieces[pushed]     issue: issued = pushed, wakes the thread
 *     thread    claims pieces[claimed], copies it, and says so in it; when nothing is left it tells the queue's owner
 *     caller    help: the same
 *     caller    finished: counts pieces that are done, in order
 *
 * Pieces are short, so that there is something to claim, and the caller waits for the thread no longer than one takes.
 */
#include "base/err.h"
#include "base/signals.h"
#include "copy/copy.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PIECE ((size_t)256 << 10) /* bytes: 20 to 60 us */

struct piece {
    void *dst;
    const void *src;
    size_t n;
    _Atomic uint64_t done; /* its number, counted from 1, when it has been copied */
};

struct core {
    pthread_t thread;
    sem_t issues;
    _Atomic bool stop;
    _Atomic copy_told_fn told; /* set once, when the thread runs already; told_arg is there before */
    void *told_arg;
    uint64_t pushed, finished; /* the caller's */
    size_t depth;
    _Atomic uint64_t issued, claimed;
    struct piece pieces[];
};

static cpu_set_t cpus; /* where such threads run; empty: where their makers do */

void copy_core_on(const cpu_set_t *on) { cpus = *on; }

/* False: nothing that was issued is left to begin. */
static bool copy_one(struct core *c)
{
    uint64_t at = atomic_load_explicit(&c->claimed, memory_order_relaxed);
    do {
        /* acquire: pairs with the release in issue; the piece is there */
        if (at >= atomic_load_explicit(&c->issued, memory_order_acquire)) return false;
        /* relaxed: only who gets which piece matters */
    } while (!atomic_compare_exchange_weak_explicit(&c->claimed, &at, at + 1, memory_order_relaxed, memory_order_relaxed));
    struct piece *p = &c->pieces[at % c->depth];
    copy_memory(p->dst, p->src, p->n);
    atomic_store_explicit(&p->done, at + 1, memory_order_release); /* who sees it sees the copy */
    return true;
}

static void *run(void *state)
{
    struct core *c = state;
    for (;;) {
        while (sem_wait(&c->issues)) continue; /* no signal is handled here; a debugger may interrupt */
        if (atomic_load_explicit(&c->stop, memory_order_acquire)) return NULL;
        while (copy_one(c)) continue;
        copy_told_fn told = atomic_load_explicit(&c->told, memory_order_acquire);
        if (told) told(c->told_arg);
    }
}

/* No signal of the program's is handled in it. */
static int begin(struct core *c)
{
    sigset_t before;
    signals_block(&before);
    int rc = pthread_create(&c->thread, NULL, run, c);
    signals_restore(&before);
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

static size_t core_most(void *state)
{
    (void)state;
    return PIECE;
}

static uint64_t core_finished(void *state)
{
    struct core *c = state;
    /* acquire: pairs with the release of who has copied it */
    while (c->finished < c->pushed &&
           atomic_load_explicit(&c->pieces[c->finished % c->depth].done, memory_order_acquire) == c->finished + 1)
        c->finished++;
    return c->finished;
}

static int core_push(void *state, void *dst, const void *src, size_t n)
{
    struct core *c = state;
    if (c->pushed - core_finished(c) == c->depth) return TERN_AGAIN;
    struct piece *p = &c->pieces[c->pushed++ % c->depth];
    p->dst = dst;
    p->src = src;
    p->n = n;
    return 0;
}

static void core_issue(void *state)
{
    struct core *c = state;
    if (atomic_load_explicit(&c->issued, memory_order_relaxed) == c->pushed) return;
    atomic_store_explicit(&c->issued, c->pushed, memory_order_release);
    sem_post(&c->issues);
}

static bool core_help(void *state) { return copy_one(state); }

static void core_tell(void *state, copy_told_fn told, void *arg)
{
    struct core *c = state;
    c->told_arg = arg;
    atomic_store_explicit(&c->told, told, memory_order_release);
}

const struct copy_ops copy_core_ops = {
    .name = "core",
    .flags = COPY_ASYNC,
    .open = core_open,
    .close = core_close,
    .most = core_most,
    .push = core_push,
    .issue = core_issue,
    .finished = core_finished,
    .tell = core_tell,
    .help = core_help,
};
