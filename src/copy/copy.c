/*
 * copy.c - queues in front of copy engines.
 *
 * A queue remembers, for each copy that is outstanding, how many pieces had been
 * pushed when it was complete; the engine's count of finished pieces then tells
 * which copies are done. Both counts only grow.
 *
 * When an engine should be done (q->due) follows from the bytes that it was given and its pace. Who waits sleeps until shortly before,
 * looks in short steps from then on, and corrects the pace by the end that it sees:
 *
 *     |------------------ asleep ------------------|---|---|---|---|----|----|      looks: 1/32 of the time so far apart
 *   issue                                     due - 1/8       due      end
 */
#include "copy/copy.h"
#include "base/clock.h"
#include "base/err.h"
#include "copy/dsa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

const struct copy_ops *const copy_engines[] = {&copy_inline_ops, &copy_nontemporal_ops, &copy_core_ops, &copy_dsa_ops, NULL};

const struct copy_ops *copy_engine_named(const char *name)
{
    for (const struct copy_ops *const *e = copy_engines; *e; e++)
        if (!strcmp((*e)->name, name)) return *e;
    return NULL;
}

/* ---- queues ---- */

#define FIRST_PACE 0.125                       /* ns for a byte, before an end was observed: of a core, about */
#define PATIENCE ((uint64_t)2000 * 1000 * 1000)
#define SHORTEST_SLEEP 60000                   /* ns: what the system adds to a sleep; a shorter one is a yield */
#define LOOKS 64                               /* without news between looks at the clock */

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
    double pace;          /* ns for a byte */
    size_t fresh, busy;   /* bytes since the last issue; issued since nothing was outstanding, at `from` */
    uint64_t from, due;   /* ns; due 0: nothing is outstanding */
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
    q->pace = FIRST_PACE;
    q->patience = PATIENCE;
    *q_p = q;
    return 0;
}

void copy_queue_close(struct copy_queue *q)
{
    if (!is_inherited(q)) { /* else the engine's thread and device are the parent's */
        copy_wait_all(q);
        q->ops->close(q->state);
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
    push_rest(q);
    *cookie_p = q->last;
    return 0;
}

/* More has been issued. */
static void expect(struct copy_queue *q)
{
    uint64_t now = clock_ns();
    if (!q->due) {
        q->from = q->looked = now;
        q->busy = 0;
        q->stuck = 0;
    }
    q->busy += q->fresh;
    q->due = (q->due > now ? q->due : now) + (uint64_t)((double)q->fresh * q->pace) + 1;
    q->fresh = 0;
}

void copy_issue(struct copy_queue *q)
{
    if (is_inherited(q)) return;
    q->feeding = !push_rest(q);
    q->ops->issue(q->state);
    if (q->fresh && copy_is_async(q)) expect(q);
}

/* ---- a device that stands still ---- */

/* Time in which this process does not run is not the device's: so no look counts for more than an eighth of the patience. */
static TERN_COLD void doubt(struct copy_queue *q, uint64_t done)
{
    uint64_t now = clock_ns(), since = now - q->looked;
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
    if (q->finished == q->last) q->due = 0;
    return q->finished;
}

copy_cookie copy_last(const struct copy_queue *q) { return q->last; }

bool copy_tells(struct copy_queue *q, copy_told_fn told, void *arg)
{
    if (q->ops->tell) q->ops->tell(q->state, told, arg);
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

/* The waiter has seen the end at `now`, and at `before`, its last look, there was none. */
static void correct(struct copy_queue *q, uint64_t before, uint64_t now)
{
    double seen = (double)(now - q->from) / ((double)q->busy + 1);
    if (q->given_up) return;
    if (seen < q->pace) q->pace = seen; /* it is no slower than that, whenever the end was */
    else if (now - before <= (now - q->from) / 8) q->pace += (seen - q->pace) / 4;
}

/* Not the whole time: who looks only when all should be over does not learn that the engine is faster. */
static uint64_t first_look(const struct copy_queue *q) { return q->due - (q->due > q->from ? (q->due - q->from) / 8 : 0); }

void copy_wait_all(struct copy_queue *q)
{
    uint64_t before = 0; /* the last look */
    while (copy_poll(q) < q->last) {
        copy_issue(q);
        if (q->ops->help && q->ops->help(q->state)) continue;
        if (!q->due) continue; /* copied by copy_issue */
        uint64_t now = clock_ns();
        sleep_until(q, now, !before && first_look(q) > now ? first_look(q) : now + (now - q->from) / 32);
        before = now;
    }
    if (before) correct(q, before, clock_ns());
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
