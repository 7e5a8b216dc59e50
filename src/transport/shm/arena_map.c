/*
 * arena_map.c - the memory arena of a peer (transport/arena.h) mapped into this process, at the first operation on memory
 * that lies in it.
 *
 *     arena       | mapped | reserved address space |
 *     older       | mapped | -> older
 *
 * When the arena has grown, the new part is mapped behind the old one, so pointers into it stay valid until the way is
 * closed. If the reservation is too short, the whole arena is mapped once more elsewhere, and the older mapping stays.
 */
#include "transport/shm/shm.h"
#include "base/memfile.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVE_TIMES 16                  /* an arena doubles, so it may grow four times ... */
#define RESERVE_LEAST ((uint64_t)4 << 30) /* ... or this large, in bytes of address space */

struct shm_arena_map {
    struct shm_arena_map *older;
    char *reserved, *at;   /* at: the border of a large page in it, so that pages of the file can be large ones */
    uint64_t range, bytes; /* reserved from `at` on, and mapped of it */
};

/* The peer's memfd; -1 if it has none, or will not let us. */
static int open_arena(const struct shm_ep *e)
{
    const struct arena_note *note = &e->segment->arena;
    uint32_t told = atomic_load_explicit(&note->fd, memory_order_acquire); /* pairs with the release in arena.c */
    if (!told) return -1;
    uint64_t file = memfile_key(atomic_load_explicit(&note->id, memory_order_relaxed));
    if (file == shm_dom.file) return shm_open_node();
    uint32_t pid = e->open_to_us ? (uint32_t)e->pid : 0;
    int fd = shm_open_foreign(e->peer->index, pid, told - 1, file, e->near);
    if (fd < 0) shm_note_end(e->peer->index, pid);
    return fd;
}

static void *address_space(uint64_t range)
{
    void *p = mmap(NULL, range + ARENA_HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Address space for an arena of so many bytes that may grow; where it is limited, for no more than that. */
static bool reserve(struct shm_arena_map *w, uint64_t bytes)
{
    struct rlimit r;
    bool limited = getrlimit(RLIMIT_AS, &r) || r.rlim_cur != RLIM_INFINITY;
    w->range = limited ? bytes : max_size(RESERVE_TIMES * bytes, RESERVE_LEAST);
    w->reserved = address_space(w->range);
    if (!w->reserved && !limited) w->reserved = address_space(w->range = bytes);
    w->at = (char *)round_up((uintptr_t)w->reserved, ARENA_HUGE);
    return w->reserved != NULL;
}

static void give_back(struct shm_arena_map *w)
{
    munmap(w->reserved, w->range + ARENA_HUGE);
    free(w);
}

static struct shm_arena_map *new_map(struct shm_arena_map *older, uint64_t bytes)
{
    struct shm_arena_map *w = malloc(sizeof *w);
    if (!w) return NULL;
    *w = (struct shm_arena_map){.older = older};
    if (reserve(w, bytes)) return w;
    free(w);
    return NULL;
}

/* Maps [w->bytes, bytes) of the arena, which begins at `offset` of the file, behind what is mapped. */
static bool extend(struct shm_arena_map *w, int fd, uint64_t offset, uint64_t bytes)
{
    uint64_t more = bytes - w->bytes;
    void *p = more ? mmap(w->at + w->bytes, more, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
                          (off_t)(offset + w->bytes))
                   : w->at;
    if (p == MAP_FAILED) return false;
    if (more) madvise(p, more, MADV_DONTDUMP); /* as in shm_memory_mmap */
    w->bytes = bytes;
    return true;
}

static bool map_more(struct shm_ep *e, int fd, uint64_t offset, uint64_t bytes)
{
    struct shm_arena_map *w = e->arena_map && bytes <= e->arena_map->range ? e->arena_map : new_map(e->arena_map, bytes);
    if (!w) return false;
    bool good = extend(w, fd, offset, bytes);
    if (!good && w != e->arena_map) give_back(w);
    if (!good) return false;
    e->arena_map = w;
    return true;
}

/* Maps all that there is now. True if that is `need` bytes or more. */
static bool map_arena(struct shm_ep *e, uint64_t need)
{
    struct stat st;
    int fd = open_arena(e);
    if (fd < 0) return false;
    uint64_t offset = atomic_load_explicit(&e->segment->arena.offset, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&e->segment->arena.bytes, memory_order_relaxed);
    bool there =
        !fstat(fd, &st) && bytes >= need && offset <= (uint64_t)st.st_size && bytes <= (uint64_t)st.st_size - offset;
    if (there) there = map_more(e, fd, offset, bytes);
    close(fd);
    return there;
}

void *shm_map_arena(struct tp_ep *ep, uint64_t place, size_t n)
{
    struct shm_ep *e = ep->priv;
    uint64_t bytes = e->arena_map ? e->arena_map->bytes : 0;
    bool there = place < bytes && n <= bytes - place;
    if (unlikely(!there) && (n > UINT64_MAX - place || !map_arena(e, place + n))) {
        ep->caps &= ~(uint32_t)TP_CAP_ARENA;
        return NULL;
    }
    return e->arena_map->at + place;
}

void shm_arena_unmap(struct shm_ep *e)
{
    while (e->arena_map) {
        struct shm_arena_map *w = e->arena_map;
        e->arena_map = w->older;
        give_back(w);
    }
}
