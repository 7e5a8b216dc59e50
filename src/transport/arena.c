/*
 * arena.c - the memfd, and the blocks in it: extents of whole pages, whose two ends
 * are written down in a table by page (so neighbours are found at once), the free ones
 * in lists by the power of two of their length.
 */
#include "transport/arena.h"
#include "base/memfile.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGE_MAX ((uintptr_t)1 << 38)  /* address space reserved, not memory ... */
#define RANGE_MIN ((uintptr_t)1 << 27)  /* ... less where a limit (ulimit -v) forbids so much */
#define FIRST_SIZE ((uintptr_t)64 << 20) /* of the memfd, sparse */
#define ASK_MIN ((size_t)1 << 20)       /* blocks from here on: the system is asked whether it has so much */
#define CLASSES 40

/* What is known of the first and the last page of an extent; of others it is all zero. Page 0 is never free: 0 is none. */
struct page {
    uint32_t n; /* pages of the extent */
    bool first, free;
    uint32_t next, prev; /* first page of a free extent only: the list of its class */
};

_Atomic uintptr_t arena_base, arena_bytes;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena_note *published;
static struct arena_room room = {.fd = -1};
static int fd = -1;
/* memfile_id_of what fd was opened for: the program may have closed it, and the number be its own. */
static uint64_t fd_id;
static uint64_t start_at; /* of the arena in the file */
static bool unusable;        /* making it failed once: it is not tried again */
static uintptr_t range, page_size;
static struct page *pages;   /* of the whole range; untouched parts cost nothing */
static uint32_t lists[CLASSES];
static size_t warm;          /* bytes of free extents that the system may not have back yet */

/* ---- extents ---- */

static unsigned class_of(uint32_t n) { return 31u - (unsigned)__builtin_clz(n); }

static void mark(uint32_t first, uint32_t n, bool is_free)
{
    pages[first + n - 1] = (struct page){.n = n, .free = is_free};
    pages[first] = (struct page){.n = n, .free = is_free, .first = true};
}

/* The two ends are to become inner pages of another extent, or its ends. */
static void forget(uint32_t first)
{
    uint32_t last = first + pages[first].n - 1;
    pages[first] = pages[last] = (struct page){0};
}

static void put_free(uint32_t first, uint32_t n)
{
    uint32_t *head = &lists[class_of(n)];
    mark(first, n, true);
    pages[first].next = *head;
    if (*head) pages[*head].prev = first;
    *head = first;
}

static void take_free(uint32_t first)
{
    struct page *p = &pages[first];
    if (p->next) pages[p->next].prev = p->prev;
    if (p->prev) pages[p->prev].next = p->next;
    else lists[class_of(p->n)] = p->next;
    forget(first);
}

/* Adds an extent to the free ones, together with free neighbours. `end`: pages that there are. */
static void give_back(uint32_t first, uint32_t n, uint32_t end)
{
    if (pages[first - 1].free) {
        uint32_t before = pages[first - 1].n;
        take_free(first - before);
        first -= before;
        n += before;
    }
    if (first + n < end && pages[first + n].free) {
        uint32_t behind = pages[first + n].n;
        take_free(first + n);
        n += behind;
    }
    put_free(first, n);
}

/* The first page from `first` on whose address is a multiple of `align` pages. */
static uint32_t align_up(uint32_t first, uint32_t align)
{
    uintptr_t base = arena_base / page_size;
    return (uint32_t)(round_up(base + first, align) - base);
}

/* n pages, aligned, out of the free extent at `first`, the rest given back; 0: it is too small. */
static uint32_t carve(uint32_t first, uint32_t n, uint32_t align)
{
    uint32_t have = pages[first].n, at = align_up(first, align), skip = at - first;
    if (have < skip || have - skip < n) return 0;
    take_free(first);
    mark(at, n, false);
    if (skip) put_free(first, skip);
    if (have - skip > n) put_free(at + n, have - skip - n);
    return at;
}

static uint32_t find(uint32_t n, uint32_t align)
{
    for (unsigned c = class_of(n); c < CLASSES; c++)
        for (uint32_t first = lists[c]; first; first = pages[first].next) {
            uint32_t at = carve(first, n, align);
            if (at) return at;
        }
    return 0;
}

/* ---- memory of the system ---- */

static void *reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool make_table(void)
{
    size_t bytes = range / page_size * sizeof *pages;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pages = p == MAP_FAILED ? NULL : p;
    return pages != NULL;
}

static void tell_peers(void)
{
    if (!published) return;
    atomic_store_explicit(&published->id, fd_id, memory_order_relaxed);
    atomic_store_explicit(&published->offset, start_at, memory_order_relaxed);
    atomic_store_explicit(&published->bytes, arena_bytes, memory_order_relaxed);
    /* release: pairs with the acquire in shm/arena_map.c */
    atomic_store_explicit(&published->fd, (uint32_t)fd + 1, memory_order_release);
}

static bool in_room(void) { return fd >= 0 && fd == room.fd; }

static bool open_file(void)
{
    bool shared = room.fd >= 0 && atomic_load_explicit(room.apart, memory_order_relaxed);
    fd = shared ? room.fd : memfd_create("tern-arena", MFD_CLOEXEC);
    if (fd < 0 || !(fd_id = memfile_id_of(fd))) return false;
    start_at = shared ? room.offset : 0;
    return true;
}

static bool is_open(void) { return memfile_id_of(fd) == fd_id; }

static bool start(void)
{
    char *p = NULL;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (range = RANGE_MAX; range >= RANGE_MIN && !(p = reserve(range + ARENA_HUGE)); range /= 4) continue;
    if (!p) return false;
    if (!open_file() || !make_table()) {
        munmap(p, range + ARENA_HUGE);
        if (fd >= 0 && !in_room()) close(fd);
        fd = -1;
        return false;
    }
    arena_base = round_up((uintptr_t)p, ARENA_HUGE); /* so that pages of the file can be large ones, here and at peers */
    pages[0].n = 1;                                  /* place 0 stands for none */
    return true;
}

/* The file is made to have so many bytes of the arena. */
static bool extend(uintptr_t bytes)
{
    return is_open() && (in_room() ? bytes <= room.bytes : memfile_resize(fd, bytes));
}

/* Makes the memfd longer by at least n pages, or twice as long. */
static bool grow(uint32_t n)
{
    uintptr_t old = arena_bytes, want = old ? 2 * old : FIRST_SIZE;
    while (want < old + ((uintptr_t)n + 1) * page_size) want *= 2;
    if (want > range || !extend(want)) return false;
    void *p = mmap((void *)(arena_base + old), want - old, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)(start_at + old));
    if (p == MAP_FAILED) return false;
    madvise(p, want - old, MADV_HUGEPAGE); /* where the system gives large pages to shared memory */
    uint32_t first = old ? (uint32_t)(old / page_size) : 1, end = (uint32_t)(want / page_size);
    atomic_store_explicit(&arena_bytes, want, memory_order_relaxed);
    tell_peers();
    give_back(first, end - first, end);
    return true;
}

/* Would the system give so much private memory? Shared memory is promised without looking, and missed when touched. */
static bool system_has(size_t bytes)
{
    if (bytes < ASK_MIN) return true;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    munmap(p, bytes);
    return true;
}

static void return_pages(uint32_t first, uint32_t n)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(start_at + first * page_size),
              (off_t)(n * page_size));
}

static void cool(void)
{
    if (!is_open()) return;
    for (unsigned c = 0; c < CLASSES; c++)
        for (uint32_t first = lists[c]; first; first = pages[first].next) return_pages(first, pages[first].n);
    warm = 0;
}

/* ---- blocks ---- */

void arena_offer(const struct arena_room *r)
{
    pthread_mutex_lock(&lock);
    room = *r;
    pthread_mutex_unlock(&lock);
}

void arena_publish(struct arena_note *where)
{
    pthread_mutex_lock(&lock);
    published = where;
    if (fd >= 0 && where)
        tell_peers();
    else if (fd >= 0) cool();
    pthread_mutex_unlock(&lock);
}

/* With the lock. */
static uint32_t alloc_pages(uint32_t n, uint32_t align)
{
    if (!published || unusable) return 0;
    if (fd < 0 && !start()) {
        unusable = true;
        return 0;
    }
    uint32_t at = find(n, align);
    return at || !grow(n + align) ? at : find(n, align);
}

void *arena_alloc(size_t bytes, size_t align)
{
    if (bytes > RANGE_MAX / 2 || align > RANGE_MAX / 2 || !system_has(bytes)) return NULL;
    pthread_mutex_lock(&lock);
    size_t page = page_size ? page_size : (size_t)sysconf(_SC_PAGESIZE);
    if (bytes >= ARENA_HUGE) align = max_size(align, ARENA_HUGE);
    uint32_t at = alloc_pages((uint32_t)(round_up(max_size(bytes, 1), page) / page), (uint32_t)(max_size(align, page) / page));
    pthread_mutex_unlock(&lock);
    return at ? (void *)(arena_base + at * page_size) : NULL;
}

enum arena_result arena_free(void *block)
{
    uintptr_t place = arena_place(block, 1);
    if (!place) return ARENA_FOREIGN;
    uint32_t first = (uint32_t)(place / page_size);
    pthread_mutex_lock(&lock);
    bool good = place % page_size == 0 && pages[first].first && !pages[first].free;
    if (good) {
        uint32_t n = pages[first].n;
        forget(first);
        give_back(first, n, (uint32_t)(arena_bytes / page_size));
        warm += n * page_size;
        if (warm > ARENA_WARM) cool();
    }
    pthread_mutex_unlock(&lock);
    return good ? ARENA_FREED : ARENA_WRONG;
}
