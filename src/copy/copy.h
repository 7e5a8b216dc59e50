/*
 * copy.h - moving plain memory: the direct call of the data path, and copy engines.
 *
 * copy_memory is the call to use, or copy_part for a piece of something larger: memcpy, or, where it has been found to be
 * better for so large a whole, stores that bypass the caches (choose.h). Both ends are mapped here: memory of this process, arenas of
 * others, windows. Copies that the system makes between processes (CMA) are the kernel's, and nothing here is about them.
 *
 * An engine takes copies off the caller's hands (RMA-11, OMX-5, OMX-7; so far those of one-sided communication, src/rma): copies are
 * queued, issued together, and each has a cookie. Cookies count 1, 2, 3 ... per
 * queue and finish in that order, so the last finished cookie says which copies are
 * done and how many are outstanding. An engine itself sees a stream of pieces (a
 * copy may be cut at page borders for it) and a running count of finished ones,
 * which is one memory read: hardware rings, a helper core and plain software fit.
 *
 *     queued   copy_submit      the queue has it
 *     issued   copy_issue       the engine has it
 *     claimed                   the engine, or a caller who waits (copy_ops.help), is copying it
 *     done     copy_poll        the cookie has finished
 *
 * Nobody waits for a cookie but whoever needs all that was queued (copy_wait_all), and sleeps until the engine should be done.
 * A device that stands still is given up: the processor copies what it has left, and from then on all (copy_fault).
 *
 * A child of fork has none of the copies that are outstanding: they are its parent's. Its queues copy by the processor.
 *
 * Threads: a queue belongs to one thread at a time; copy_memory may be called by any.
 */
#ifndef TERN_COPY_COPY_H
#define TERN_COPY_COPY_H

#include "copy/budget.h"
#include <sched.h>
#include <string.h>

/* ---- the direct call ---- */

/* Wholes from so many bytes on are looked at more closely: TERN_COPY_NT, or COPY_CHOOSE_FROM; SIZE_MAX before copy_open. */
extern TERN_HIDDEN size_t copy_large_min;

/* Needs var_open. Reads TERN_COPY_NT. */
void copy_open(void);

void copy_large(void *dst, const void *src, size_t n, size_t whole); /* copy_part, from there on */

/* Stores bypass the caches; complete (globally visible in order with later stores) on return. */
void copy_nontemporal(void *dst, const void *src, size_t n);

/* n bytes of `whole` that are copied in pieces, by this process or by others too. The buffers must not overlap. */
static inline void copy_part(void *dst, const void *src, size_t n, size_t whole)
{
    if (likely(whole < copy_large_min))
        memcpy(dst, src, n);
    else
        copy_large(dst, src, n, whole);
}

static inline void copy_memory(void *dst, const void *src, size_t n) { copy_part(dst, src, n, n); }

/* ---- engines ---- */

enum copy_flag {
    COPY_ASYNC = 1, /* works while the processor does something else; without it the copying is done in `issue` */
    COPY_PAGES = 2, /* a piece must not cross a page border of source or destination: copies are cut there */
    COPY_PIN = 4    /* memory must be pinned: pin and unpin are there */
};

/* By the engine, in a thread of its own: all that was issued has finished. */
typedef void (*copy_told_fn)(void *arg);

/* The contract of an engine. All calls for one state come from one thread at a time; none blocks unless it says so. */
struct copy_ops {
    const char *name;
    unsigned flags; /* enum copy_flag */

    /* Makes an engine whose ring has `depth` pieces, or as many as it can have. TERN_ERR_UNSUPPORTED: not on this
     * machine (no words needed). */
    int (*open)(size_t depth, void **state_p);
    void (*close)(void *state); /* nothing is outstanding then */

    size_t (*most)(void *state); /* bytes of the largest piece; NULL: any */

    /* Takes one piece, not yet started. TERN_AGAIN: the ring is full, nothing was taken. The memory stays the caller's
     * and must not be touched until the piece has finished. */
    int (*push)(void *state, void *dst, const void *src, size_t n);
    void (*issue)(void *state);        /* starts everything pushed */
    uint64_t (*finished)(void *state); /* pieces finished since open, in order of push; one memory read */

    /* COPY_PIN only, else NULL: the caller keeps the token until the copies of that memory have finished. */
    int (*pin)(void *state, const void *p, size_t n, void **token_p);
    void (*unpin)(void *state, void *token);

    /* Of an engine with COPY_ASYNC: called once, before the first push. NULL: it tells nobody, and is asked. */
    void (*tell)(void *state, copy_told_fn, void *arg);

    /* The caller waits, and copies one piece that was issued and nobody has begun. False: there is none. NULL: it cannot. */
    bool (*help)(void *state);

    /* Of a device, which may stand still: gives it up. It touches no memory any more when this returns, and the processor
     * has copied all that was issued; it does so with what comes later. May block. NULL: a thread of this process copies,
     * which cannot be taken away in the middle of a piece, and needs nothing but a core. */
    void (*stop)(void *state);
};

extern const struct copy_ops copy_inline_ops;      /* memcpy */
extern const struct copy_ops copy_nontemporal_ops; /* copy_nontemporal */
extern const struct copy_ops copy_core_ops;        /* a thread of its own, which runs on ... */
void copy_core_on(const cpu_set_t *);              /* ... these cpus, from its start; an empty set: where its maker runs */

/* Those compiled in, NULL at the end; and one of them by name, or NULL. */
extern const struct copy_ops *const copy_engines[];
const struct copy_ops *copy_engine_named(const char *name);

struct copy_queue;
struct copy_record;
typedef uint64_t copy_cookie; /* 0: none yet */

/* `depth`: copies that may be outstanding. */
int copy_queue_open(const struct copy_ops *, size_t depth, struct copy_queue **q_p);
void copy_queue_close(struct copy_queue *); /* waits for what is outstanding */

/* Queues a copy of n > 0 bytes; 0 and its cookie. TERN_AGAIN: no room, nothing queued; issue, poll and try again. */
int copy_submit(struct copy_queue *, void *dst, const void *src, size_t n, copy_cookie *cookie_p);
void copy_issue(struct copy_queue *); /* starts everything queued; what is too much for the engine now, poll feeds */
copy_cookie copy_poll(struct copy_queue *);       /* the last finished cookie; never blocks, but to give up a device */
copy_cookie copy_last(const struct copy_queue *); /* the last cookie given out: copy_last - copy_poll are outstanding */
bool copy_tells(struct copy_queue *, copy_told_fn, void *arg); /* once, with nothing outstanding; false: the engine tells nobody */
bool copy_is_async(const struct copy_queue *);    /* COPY_ASYNC */
const struct copy_ops *copy_engine_of(const struct copy_queue *);
void copy_wait_all(struct copy_queue *);          /* issues, and returns when all have finished */

/* When all that was issued should have finished (clock_ns): by the speed that was measured, and is corrected at each end that a waiter
 * sees, and at that of one batch in some. In the past, but not 0, if it is late; 0: nothing is outstanding, or the engine copies in the
 * caller. */
uint64_t copy_due(const struct copy_queue *);

/*
 * What is worth leaving to an engine that works on its own (budget.h). Of a new queue, and of an engine that copies in the caller, all is.
 *
 *     copy_pays says yes   copy_submit, copy_submit ..., copy_issue
 *     copy_pays says no    copy_here, copy_here ...
 */
void copy_measured(struct copy_queue *, const struct copy_engine_cost *); /* what was measured says it, corrected from now on */
void copy_fix(struct copy_queue *, size_t least);                         /* batches of so many bytes and more; never corrected */
void copy_from(struct copy_queue *, enum copy_place); /* where sources are, as far as the caller knows; COPY_FAR at first */
bool copy_pays(struct copy_queue *, size_t n);        /* a batch of n bytes should be left to the engine */

/* memcpy in the engine's place, which is counted, and timed now and then. */
void copy_here(struct copy_queue *, void *dst, const void *src, size_t n);

struct copy_record copy_record_of(const struct copy_queue *); /* what has been observed so far (count.h) */

/* The device has been given up: nothing is lost, the processor copies. copy_fault: 0, or a code with words. */
bool copy_given_up(const struct copy_queue *);
int copy_fault(const struct copy_queue *);
void copy_patience(struct copy_queue *, uint64_t ns); /* a device that finishes nothing for so long is given up; 2 s at first */

/* Locks the pages of memory that an engine will read or write; nothing happens where the engine does not need it. The
 * token is given back when the copies of that memory have finished. */
int copy_pin(struct copy_queue *, const void *p, size_t n, void **token_p);
void copy_unpin(struct copy_queue *, void *token);

#endif
