/*
 * copy.c - queues in front of copy engines.
 *
 * A queue remembers, for each copy that is outstanding, how many pieces had been
 * pushed when it was complete; the engine's count of finished pieces then tells
 * which copies are done. Both counts only grow.
 *
 * When an engine should be done (q->due) follows from the bytes that it was given and what is known of it (budget.h). Who waits sleeps
 * until shortly before, and looks in short steps from then on:
 *
 *     |------------------ asleep ------------------|---|---|---|---|----|----|      looks: 1/32 of the time so far apart
 *   issue                                     due - 1/8       due      end
 *
 * The end corrects the prediction, here and where a batch is sampled (watch): it lies between the last look that found the engine copying
 * and the first that did not. An engine that tells its owner says exactly when.
 */
#include "copy/copy.h"
#include "base/clock.h"
#include "base/err.h"
#include "copy/count.h"
#include "copy/dsa.h"
#include "copy/now.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

uint64_t (*copy_now)(void) = clock_ns;

const struct copy_ops *const copy_engines[] = {&copy_inline_ops, &copy_nontemporal_ops, &copy_core_ops, &copy_dsa_ops, NULL};

const struct copy_ops *copy_engine_named(const char *name)
{
    for (const struct copy_ops *const *e = copy_engines; *e; e++)
        if (!strcmp((*e)->name, name)) return *e;
    return NULL;
}

/* ---- queues ---- */

#define PATIENCE ((uint64_t)2000 * 1000 * 1000)
#define SHORTEST_SLEEP 60000                   /* ns: what the system adds to a sleep; a shorter one is a yield */
#define LOOKS 64                               /* without news between looks at the clock */

/* A batch whose end is observed. */
struct watch {
    copy_cookie until;     /* its last copy; 0: none is watched */
    uint64_t from, before; /* its issue; the last look that found it copying */
    uint64_t predicted;    /* ns from its issue on */
    enum copy_place place;
};

struct copy_queue {
    const struct copy_ops *ops;
    void *state;
    size_t page; /* bytes; SIZE_MAX if the engine does not mind borders */
    size_t most; /* of a piece */
    size_t depth;
    unsigned forks;  /* as many as when it was opened: it is this process's */
    uint64_t pushed; /* pieces given to the engine */
    copy_cookie last, finished;
    /* Of the last copy, what the engine could not take yet: it is pushed before anything else. */
    bool feeding; /* it has been issued: poll goes on with it */
    char *dst;
    const char *src;
    size_t left;
    /* When the engine should be done. Only of one that works on its own. */
    struct copy_budget budget;
    enum copy_place place; /* where the sources of what is submitted are */
    size_t fresh;          /* bytes since the last issue */
    uint64_t from, due;    /* ns; since when something is outstanding; due 0: nothing is */
    struct watch watch;
    /* Told by the engine, in its thread. */
    _Atomic uint64_t told_at; /* ns: when all that had been issued was finished, at last */
    copy_told_fn told;
    void *told_arg;
    /* For count.h: by the engine, and in its place. */
    uint64_t copies, bytes, here, here_bytes;
    /* Of a device: how long it has finished nothing. */
    uint64_t patience, stuck, looked; /* ns */
    uint64_t seen;        /* pieces finished at the last look */
    unsigned looks;
    bool given_up;
    uint64_t ends[]; /* of copy c at [c % depth]: pieces pushed when it was complete */
};

static _Atomic unsigned forks; /* since this process's first ancestor opened a queue */

static void count_fork(void) { atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed); } /* a child has one thread */

static int watch_forks(void)
{
    static bool watched;
    if (!watched && pthread_atfork(NULL, NULL, count_fork)) return err_set(TERN_ERR_NOMEM, "no memory for a queue of copies");
    watched = true;
    return 0;
}

/* This is a child of the process that opened it. */
static bool is_inherited(const struct copy_queue *q) { return unlikely(q->forks != atomic_load_explicit(&forks, memory_order_relaxed)); }

int copy_queue_open(const struct copy_ops *ops, size_t depth, struct copy_queue **q_p)
{
    struct copy_queue *q = calloc(1, sizeof *q + depth * sizeof q->ends[0]);
    if (!q || depth == 0) {
        free(q);
        return err_set(TERN_ERR_NOMEM, "no memory for a queue of %zu copies", depth);
    }
    int rc = watch_forks();
    if (!rc) rc = ops->open(depth, &q->state);
    if (rc) {
        free(q);
        return rc;
    }
    q->ops = ops;
    q->depth = depth;
    q->most = ops->most ? ops->most(q->state) : SIZE_MAX;
    q->page = ops->flags & COPY_PAGES ? (size_t)sysconf(_SC_PAGESIZE) : SIZE_MAX;
    q->forks = atomic_load_explicit(&forks, memory_order_relaxed);
    q->place = COPY_FAR;
    budget_open(&q->budget);
    q->patience = PATIENCE;
    *q_p = q;
    return 0;
}

struct copy_record copy_record_of(const struct copy_queue *q)
{
    const struct copy_budget *b = &q->budget;
    return (struct copy_record){.engine = q->ops->name,
                                .issue_ns = {(float)b->issue_first, (float)b->issue},
                                .worth = {budget_least(b, COPY_NEAR), budget_least(b, COPY_FAR)},
                                .ends = b->ends,
                                .predicted_ns = b->predicted,
                                .observed_ns = b->observed,
                                .corrections = b->corrections,
                                .trials = b->trials};
}

static enum copy_means means_of(const struct copy_ops *ops)
{
    if (ops->flags & COPY_ASYNC) return COPY_BY_ENGINE;
    return ops == &copy_nontemporal_ops ? COPY_BY_NONTEMPORAL : COPY_BY_MEMCPY;
}

static void count(const struct copy_queue *q)
{
    struct copy_record r = copy_record_of(q);
    copy_count(means_of(q->ops), q->copies, q->bytes);
    copy_count(COPY_BY_MEMCPY, q->here, q->here_bytes);
    if (copy_is_async(q)) copy_count_engine(&r);
}

void copy_queue_close(struct copy_queue *q)
{
    if (!is_inherited(q)) { /* else the engine's thread and device are the parent's */
        copy_wait_all(q);
        q->ops->close(q->state);
        count(q);
    }
    free(q);
}

/* How much of n bytes from p on lies before the next border. */
static size_t before_border(const void *p, size_t n, size_t page)
{
    return page == SIZE_MAX ? n : min_size(n, page - ((uintptr_t)p & (page - 1)));
}

/* Pushes what remains of the last copy; false: the engine has no room for all of it now. */
static bool push_rest(struct copy_queue *q)
{
    if (!q->left) return true;
    while (q->left) {
        size_t n = before_border(q->src, before_border(q->dst, min_size(q->left, q->most), q->page), q->page);
        if (q->ops->push(q->state, q->dst, q->src, n)) return false;
        q->pushed++;
        q->fresh += n;
        q->dst += n;
        q->src += n;
        q->left -= n;
    }
    q->ends[q->last % q->depth] = q->pushed;
    return true;
}

/* In a child of fork. */
static TERN_COLD int copy_alone(struct copy_queue *q, void *dst, const void *src, size_t n, copy_cookie *cookie_p)
{
    memcpy(dst, src, n);
    q->left = 0;
    q->finished = *cookie_p = ++q->last;
    return 0;
}

int copy_submit(struct copy_queue *q, void *dst, const void *src, size_t n, copy_cookie *cookie_p)
{
    if (is_inherited(q)) return copy_alone(q, dst, src, n, cookie_p);
    if (q->last - q->finished == q->depth || !push_rest(q)) return TERN_AGAIN;
    q->last++;
    q->dst = dst;
    q->src = src;
    q->left = n;
    q->copies++;
    q->bytes += n;
    push_rest(q);
    *cookie_p = q->last;
    return 0;
}

/* More was issued at `now`. */
static void expect(struct copy_queue *q, uint64_t now)
{
    bool copying = q->due;
    if (!copying) {
        q->from = q->looked = now;
        q->stuck = 0;
    }
    q->due = (q->due > now ? q->due : now) + budget_predict(&q->budget, q->fresh, q->place, copying);
    q->fresh = 0;
}

/* The end of what is outstanding is to be observed. */
static void watch(struct copy_queue *q)
{
    if (q->watch.until || !q->due || q->left) return; /* left: more will be issued, which is not in the prediction yet */
    q->watch = (struct watch){q->last, q->from, q->from, q->due - q->from, q->place};
}

void copy_issue(struct copy_queue *q)
{
    if (is_inherited(q)) return;
    q->feeding = !push_rest(q);
    bool expected = q->fresh && copy_is_async(q), sampled = expected && budget_samples(&q->budget);
    uint64_t now = expected ? copy_now() : 0;
    q->ops->issue(q->state);
    if (!expected) return;
    expect(q, now);
    if (!sampled) return;
    budget_issued(&q->budget, copy_now() - now);
    watch(q);
}

/* ---- a device that stands still ---- */

/* Time in which this process does not run is not the device's: so no look counts for more than an eighth of the patience. */
static TERN_COLD void doubt(struct copy_queue *q, uint64_t done)
{
    uint64_t now = copy_now(), since = now - q->looked;
    q->looked = now;
    q->stuck = done != q->seen ? 0 : q->stuck + (since < q->patience / 8 ? since : q->patience / 8);
    q->seen = done;
    if (q->stuck < q->patience) return;
    q->ops->stop(q->state);
    q->given_up = true;
}

bool copy_given_up(const struct copy_queue *q) { return q->given_up; }

int copy_fault(const struct copy_queue *q)
{
    if (!q->given_up) return 0;
    return err_set(TERN_ERR_SYSTEM, "the copy engine '%s' has finished nothing for %.3f s: the processor copies in its place from now on",
                   q->ops->name, 1e-9 * (double)q->patience);
}

void copy_patience(struct copy_queue *q, uint64_t ns) { q->patience = ns; }

/* ---- ends ---- */

/* At a batch that is watched. */
static TERN_COLD void observe(struct copy_queue *q)
{
    struct watch *w = &q->watch;
    uint64_t by = copy_now(), told = atomic_load_explicit(&q->told_at, memory_order_relaxed); /* a time only */
    if (q->finished < w->until) {
        w->before = by;
        return;
    }
    if (told > w->from && told < by) w->before = by = told; /* the waiter's own way to this look is not the engine's */
    if (!q->given_up) budget_ended(&q->budget, w->place, w->predicted, w->before - w->from, by - w->from);
    w->until = 0;
}

copy_cookie copy_poll(struct copy_queue *q)
{
    if (is_inherited(q)) return q->finished = q->last;
    if (q->feeding) copy_issue(q);
    if (q->due && q->ops->stop && !q->given_up && ++q->looks % LOOKS == 0) doubt(q, q->ops->finished(q->state));
    uint64_t done = q->ops->finished(q->state);
    while (q->finished < q->last) {
        copy_cookie next = q->finished + 1;
        bool complete = next < q->last || q->left == 0; /* of the last copy, pieces may still be held back here */
        if (!complete || q->ends[next % q->depth] > done) break;
        q->finished = next;
    }
    if (unlikely(q->watch.until)) observe(q);
    if (q->finished == q->last) q->due = 0;
    return q->finished;
}

copy_cookie copy_last(const struct copy_queue *q) { return q->last; }

/* In the engine's thread. */
static void finished_all(void *queue)
{
    struct copy_queue *q = queue;
    atomic_store_explicit(&q->told_at, copy_now(), memory_order_relaxed); /* pairs with nothing: a time only */
    q->told(q->told_arg);
}

bool copy_tells(struct copy_queue *q, copy_told_fn told, void *arg)
{
    q->told = told;
    q->told_arg = arg;
    if (q->ops->tell) q->ops->tell(q->state, finished_all, q);
    return q->ops->tell;
}

bool copy_is_async(const struct copy_queue *q) { return q->ops->flags & COPY_ASYNC; }

const struct copy_ops *copy_engine_of(const struct copy_queue *q) { return q->ops; }

uint64_t copy_due(const struct copy_queue *q) { return is_inherited(q) ? 0 : q->due; }

/* ---- waiting ---- */

/* Until about then. */
static void sleep_until(struct copy_queue *q, uint64_t now, uint64_t then)
{
    if (then < now + SHORTEST_SLEEP) {
        sched_yield(); /* an engine may be a thread that needs the core */
        return;
    }
    uint64_t ns = then - now - SHORTEST_SLEEP + 1000;
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
    q->looks = LOOKS - 1; /* the next look is one at the clock, too */
}

/* Not the whole time: who looks only when all should be over does not learn that the engine is faster. */
static uint64_t first_look(const struct copy_queue *q) { return q->due - (q->due > q->from ? (q->due - q->from) / 8 : 0); }

void copy_wait_all(struct copy_queue *q)
{
    bool slept = false;
    while (copy_poll(q) < q->last) {
        copy_issue(q);
        if (q->ops->help && q->ops->help(q->state)) {
            q->watch.until = 0; /* the end is not the engine's alone */
            continue;
        }
        if (!q->due) continue; /* copied by copy_issue */
        watch(q);
        uint64_t now = copy_now();
        sleep_until(q, now, !slept && first_look(q) > now ? first_look(q) : now + (now - q->from) / 32);
        slept = true;
    }
}

/* ---- what is left to the engine ---- */

void copy_measured(struct copy_queue *q, const struct copy_engine_cost *c) { budget_measured(&q->budget, c); }

void copy_fix(struct copy_queue *q, size_t least) { budget_fix(&q->budget, least); }

void copy_from(struct copy_queue *q, enum copy_place place) { q->place = place; }

bool copy_pays(struct copy_queue *q, size_t n) { return budget_takes(&q->budget, n, q->place); }

void copy_here(struct copy_queue *q, void *dst, const void *src, size_t n)
{
    bool timed = n >= OWN_MIN && budget_samples_own(&q->budget);
    uint64_t from = timed ? copy_now() : 0;
    memcpy(dst, src, n);
    if (timed) budget_copied(&q->budget, q->place, n, copy_now() - from);
    q->here++;
    q->here_bytes += n;
}

int copy_pin(struct copy_queue *q, const void *p, size_t n, void **token_p)
{
    *token_p = NULL;
    return q->ops->pin ? q->ops->pin(q->state, p, n, token_p) : 0;
}

void copy_unpin(struct copy_queue *q, void *token)
{
    if (q->ops->unpin) q->ops->unpin(q->state, token);
}
