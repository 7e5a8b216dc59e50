/*
 * handle.c - the arena of handle objects: a reserved address range that grows by
 * chunks, and a free list for each slot size (multiples of a cache line).
 */
#include "base/handle.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_MIN ((uintptr_t)1 << 22)  /* where a limit (ulimit -v) forbids HANDLE_RANGE_MAX */
#define CHUNK ((uintptr_t)64 << 10)     /* the arena grows by this: 64 KiB, one mprotect call */
#define CLASSES 64                      /* slots of 1..64 cache lines */

struct handle *handle_predefined[1024];
struct handle handle_none;
_Atomic uintptr_t handle_base, handle_used;
_Thread_local struct handle_bounds handle_bounds = {.odd = UINTPTR_MAX};
void (*handle_thread_came)(void);

struct slot {
    struct handle h;
    struct slot *next;
};

static struct slot *freed[CLASSES + 1];
static uintptr_t range;    /* bytes reserved */
static uintptr_t open_end; /* bytes of the range that are readable */
_Atomic bool handle_threaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool reserve(void)
{
    void *p = MAP_FAILED;
    for (range = HANDLE_RANGE_MAX; range >= RANGE_MIN && p == MAP_FAILED; range /= 4)
        p = mmap(NULL, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    range *= 4; /* the step that worked */
    handle_base = (uintptr_t)p;
    return true;
}

static bool grow(size_t bytes)
{
    if (!handle_base && !reserve()) return false;
    uintptr_t want = round_up(handle_used + bytes, CHUNK);
    if (want > range) return false;
    if (want > open_end) {
        if (mprotect((void *)(handle_base + open_end), want - open_end, PROT_READ | PROT_WRITE)) return false;
        open_end = want;
    }
    return true;
}

static struct slot *take(size_t lines)
{
    struct slot *s = freed[lines];
    if (s) {
        freed[lines] = s->next;
        return s;
    }
    size_t bytes = lines * CACHE_LINE;
    if (handle_used + bytes > open_end && !grow(bytes)) return NULL;
    s = (struct slot *)(handle_base + handle_used);
    atomic_store_explicit(&handle_used, handle_used + bytes, memory_order_relaxed); /* one writer: under the lock */
    return s;
}

static size_t lines_of(size_t size) { return (size + CACHE_LINE - 1) / CACHE_LINE; }

void *handle_alloc(uint32_t kind, size_t size)
{
    size_t lines = lines_of(size);
    assert(lines <= CLASSES);
    handle_know_thread();
    pthread_mutex_lock(&lock);
    struct slot *s = take(lines);
    pthread_mutex_unlock(&lock);
    if (unlikely(!s)) return NULL;
    memset(s, 0, size);
    s->h.kind = kind;
    atomic_store_explicit(&s->h.refs, 1, memory_order_relaxed);
    return s;
}

void handle_release(void *object, size_t size)
{
    struct slot *s = object;
    size_t lines = lines_of(size);
    pthread_mutex_lock(&lock);
    s->h.kind = HANDLE_DEAD;
    s->next = freed[lines];
    freed[lines] = s;
    pthread_mutex_unlock(&lock);
}

void handle_thread_is_own(void)
{
    handle_bounds = (struct handle_bounds){ARRAY_LEN(handle_predefined), handle_predefined, HANDLE_SLOT - 1};
}

void handle_thread_comes(void)
{
    handle_thread_is_own(); /* before: what is called looks up handles itself */
    if (handle_thread_came) handle_thread_came();
}

void *handle_get_anew(const void *h, uint32_t kind)
{
    handle_know_thread();
    struct handle *o = handle_at(h);
    return o->kind == kind ? o : NULL;
}

/* Of a slot, or of whatever else lies in the arena. Another thread may be writing there; of an object that the caller may look at,
 * no thread writes the kind. So what it writes is no matter, and thread sanitizers need not look. */
static __attribute__((noinline, no_sanitize("thread"))) uint32_t kind_unseen(const struct handle *h)
{
    return __atomic_load_n(&h->kind, __ATOMIC_RELAXED);
}

void *handle_next(uint32_t kind, uintptr_t *at)
{
    while (*at < handle_used) {
        struct handle *h = (struct handle *)(handle_base + *at);
        *at += HANDLE_SLOT;
        if (kind_unseen(h) == kind) return h;
    }
    return NULL;
}

void handle_define(uintptr_t value, void *object)
{
    assert(value < ARRAY_LEN(handle_predefined));
    handle_predefined[value] = object ? object : &handle_none;
}

/* Also when the library is loaded: a handle may be asked for before anything is opened. */
static __attribute__((constructor(101))) void forget_predefined(void)
{
    for (size_t i = 0; i < ARRAY_LEN(handle_predefined); i++) handle_predefined[i] = &handle_none;
}

void handle_close(void)
{
    if (handle_base) munmap((void *)handle_base, range);
    handle_base = handle_used = open_end = 0;
    memset(freed, 0, sizeof freed);
    forget_predefined();
}

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;

void handle_state_lock(void) { pthread_mutex_lock(&state_lock); }
void handle_state_unlock(void) { pthread_mutex_unlock(&state_lock); }

void handle_set_threaded(bool on) { atomic_store_explicit(&handle_threaded, on, memory_order_relaxed); }
