/*
 * copy.c - the threshold of copy_memory, and queues in front of copy engines.
 *
 * A queue remembers, for each copy that is outstanding, how many pieces had been
 * pushed when it was complete; the engine's count of finished pieces then tells
 * which copies are done. Both counts only grow.
 */
#include "copy/copy.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/dsa.h"

#include <stdlib.h>
#include <unistd.h>

size_t copy_nontemporal_min = SIZE_MAX;

int copy_open(void)
{
    copy_nontemporal_min = (size_t)var_int(VAR_COPY_NT);
    return 0;
}

const struct copy_ops *const copy_engines[] = {&copy_inline_ops, &copy_nontemporal_ops, &copy_core_ops, &copy_dsa_ops, NULL};

const struct copy_ops *copy_engine_named(const char *name)
{
    for (const struct copy_ops *const *e = copy_engines; *e; e++)
        if (!strcmp((*e)->name, name)) return *e;
    return NULL;
}

/* ---- queues ---- */

struct copy_queue {
    const struct copy_ops *ops;
    void *state;
    size_t page; /* bytes; SIZE_MAX if the engine does not mind borders */
    size_t most; /* of a piece */
    size_t depth;
    uint64_t pushed; /* pieces given to the engine */
    copy_cookie last, finished;
    /* Of the last copy, what the engine could not take yet: it is pushed before anything else. */
    bool feeding; /* it has been issued: poll goes on with it */
    char *dst;
    const char *src;
    size_t left;
    uint64_t ends[]; /* of copy c at [c % depth]: pieces pushed when it was complete */
};

int copy_queue_open(const struct copy_ops *ops, size_t depth, struct copy_queue **q_p)
{
    struct copy_queue *q = calloc(1, sizeof *q + depth * sizeof q->ends[0]);
    if (!q || depth == 0) {
        free(q);
        return err_set(TERN_ERR_NOMEM, "no memory for a queue of %zu copies", depth);
    }
    int rc = ops->open(depth, &q->state);
    if (rc) {
        free(q);
        return rc;
    }
    q->ops = ops;
    q->depth = depth;
    q->most = ops->most ? ops->most(q->state) : SIZE_MAX;
    q->page = ops->flags & COPY_PAGES ? (size_t)sysconf(_SC_PAGESIZE) : SIZE_MAX;
    *q_p = q;
    return 0;
}

void copy_queue_close(struct copy_queue *q)
{
    copy_wait_all(q);
    q->ops->close(q->state);
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
        q->dst += n;
        q->src += n;
        q->left -= n;
    }
    q->ends[q->last % q->depth] = q->pushed;
    return true;
}

int copy_submit(struct copy_queue *q, void *dst, const void *src, size_t n, copy_cookie *cookie_p)
{
    if (q->last - q->finished == q->depth || !push_rest(q)) return TERN_AGAIN;
    q->last++;
    q->dst = dst;
    q->src = src;
    q->left = n;
    push_rest(q);
    *cookie_p = q->last;
    return 0;
}

void copy_issue(struct copy_queue *q)
{
    q->feeding = !push_rest(q);
    q->ops->issue(q->state);
}

copy_cookie copy_poll(struct copy_queue *q)
{
    if (q->feeding) copy_issue(q);
    uint64_t done = q->ops->finished(q->state);
    while (q->finished < q->last) {
        copy_cookie next = q->finished + 1;
        bool complete = next < q->last || q->left == 0; /* of the last copy, pieces may still be held back here */
        if (!complete || q->ends[next % q->depth] > done) break;
        q->finished = next;
    }
    return q->finished;
}

copy_cookie copy_last(const struct copy_queue *q) { return q->last; }

bool copy_tells(struct copy_queue *q, copy_told_fn told, void *arg)
{
    if (q->ops->tell) q->ops->tell(q->state, told, arg);
    return q->ops->tell;
}

bool copy_is_async(const struct copy_queue *q) { return q->ops->flags & COPY_ASYNC; }

void copy_wait_all(struct copy_queue *q)
{
    for (unsigned looks = 1; copy_poll(q) < q->last; looks++) {
        copy_issue(q);
        if (looks % 64) cpu_relax();
        else sched_yield(); /* an engine may be a thread that needs the core */
    }
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
