/*
 * request.c - memory of requests.
 *
 * A thread keeps the requests that it has given back for the next that it needs, so no lock is taken for most of them. Where
 * several threads call it keeps SPARE_MAX, as requests may always be given back by another thread than the one that
 * takes them; what is more, and what a thread has when it ends, goes to the arena.
 */
#include "obj/request.h"
#include "base/err.h"
#include "base/list.h"

#include <pthread.h>
#include <string.h>

struct request *request_done;

#define SPARE_MAX 128

/* Of one thread. */
static _Thread_local struct spares {
    struct request *first; /* the last one given back; linked by `xfer` */
    uint32_t n;
    bool known;       /* it is in `all` */
    struct link link;
} spares __attribute__((tls_model("initial-exec")));

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* of `all`, and of the making of the key */
static struct link all = LIST_INIT(all);
static pthread_key_t at_exit;
static bool have_key;
static _Atomic bool threads_take_turns; /* relaxed: a thread that has not heard of it keeps some more */

static_assert(sizeof(struct request) % 16 == 0, "cleared by vectors of 16 bytes");

/* Piece by piece: for the whole at once gcc takes a string instruction, which costs 8 ns before its first byte. */
static inline void clear(struct request *r)
{
#pragma GCC unroll 12
    for (char *p = (char *)r; p < (char *)(r + 1); p += 16) {
        memset(p, 0, 16);
        atomic_signal_fence(memory_order_seq_cst); /* or the compiler makes the whole of it again */
    }
}

static struct request *take(void)
{
    struct request *r = spares.first;
    if (unlikely(!r)) return handle_alloc(HANDLE_REQUEST, sizeof *r);
    spares.first = r->xfer;
    spares.n--;
    clear(r);
    r->h.kind = HANDLE_REQUEST;
    return r;
}

struct request *request_new(uint8_t kind)
{
    struct request *r = take();
    if (unlikely(!r)) {
        err_set(TERN_ERR_NOMEM, "no memory for a request");
        return NULL;
    }
    r->kind = kind;
    r->flags = REQ_HEAP;
    return r;
}

/* The thread ends. */
static void give_back(void *spares_of_thread)
{
    struct spares *s = spares_of_thread;
    pthread_mutex_lock(&all_lock);
    list_remove(&s->link);
    while (s->first) {
        struct request *r = s->first;
        s->first = r->xfer;
        handle_release(r, sizeof *r);
    }
    s->known = false;
    pthread_mutex_unlock(&all_lock);
}

/* The thread's first request is given back. Without a key what it keeps is known, but stays behind when it ends. */
static TERN_COLD void make_known(void)
{
    pthread_mutex_lock(&all_lock);
    if (!have_key) have_key = !pthread_key_create(&at_exit, give_back);
    spares.known = have_key && !pthread_setspecific(at_exit, &spares);
    if (spares.known) list_push(&all, &spares.link);
    pthread_mutex_unlock(&all_lock);
}

static bool is_alone(void)
{
    return !handle_is_threaded() && !atomic_load_explicit(&threads_take_turns, memory_order_relaxed);
}

/* May the thread keep one more? */
static TERN_COLD bool has_place(void)
{
    if (!spares.known) make_known();
    return spares.known && (spares.n < SPARE_MAX || is_alone());
}

void request_free(struct request *r)
{
    if (r->flags & REQ_KEPT) {
        r->hooks->keep(r);
        return;
    }
    if (!(r->flags & REQ_HEAP)) return;
    if (unlikely(!spares.known || spares.n >= SPARE_MAX) && !has_place()) {
        handle_release(r, sizeof *r);
        return;
    }
    r->h.kind = HANDLE_DEAD;
    r->xfer = spares.first;
    spares.first = r;
    spares.n++;
}

/* What threads keep lies in an arena that is gone, or will be. */
static void forget_spares(void)
{
    pthread_mutex_lock(&all_lock);
    list_each(a, next, &all)
    {
        struct spares *s = container_of(a, struct spares, link);
        s->first = NULL;
        s->n = 0;
    }
    pthread_mutex_unlock(&all_lock);
}

void request_of_threads(void) { atomic_store_explicit(&threads_take_turns, true, memory_order_relaxed); }

void request_close(void)
{
    forget_spares();
    atomic_store_explicit(&threads_take_turns, false, memory_order_relaxed);
}

/* The library is unloaded: threads that end later call nothing of it. */
static __attribute__((destructor)) void forget_key(void)
{
    if (have_key) pthread_key_delete(at_exit);
    have_key = false;
}

int request_open(void)
{
    struct request *r = request_new(REQ_NONE);
    if (!r) return TERN_ERR_NOMEM;
    r->flags = REQ_SHARED;
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed);
    request_done = r;
    return 0;
}
