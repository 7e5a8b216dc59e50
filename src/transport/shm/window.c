/*
 * window.c - the memory arena of a peer (transport/arena.h) mapped into this
 * process: at the first large message that lies in it, and again when it has grown.
 */
#include "transport/shm/shm.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The peer's memfd; -1 if it has none, or will not let us. */
static int open_arena(const struct shm_ep *e)
{
    const struct arena_note *note = &e->segment->arena;
    uint32_t told = atomic_load_explicit(&note->fd, memory_order_acquire); /* pairs with the release in arena.c */
    if (!told) return -1;
    uint64_t file = shm_file_key(atomic_load_explicit(&note->id, memory_order_relaxed));
    if (file == shm_dom.file) return shm_open_node();
    return e->open_to_us ? shm_open_foreign((uint32_t)e->pid, told - 1, file) : -1;
}

/* Maps all that there is now, in place of what was mapped. True if that is `need` bytes or more. */
static bool map_arena(struct shm_ep *e, uint64_t need)
{
    struct stat st;
    int fd = open_arena(e);
    if (fd < 0) return false;
    uint64_t offset = atomic_load_explicit(&e->segment->arena.offset, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&e->segment->arena.bytes, memory_order_relaxed);
    bool there =
        !fstat(fd, &st) && bytes >= need && offset <= (uint64_t)st.st_size && bytes <= (uint64_t)st.st_size - offset;
    void *p = there ? shm_memory_mmap(fd, offset, bytes) : NULL;
    close(fd);
    if (!p) return false;
    shm_window_close(e);
    e->arena = p;
    e->arena_bytes = bytes;
    return true;
}

void *shm_window(struct tp_ep *ep, uint64_t place, size_t n)
{
    struct shm_ep *e = ep->priv;
    bool there = place < e->arena_bytes && n <= e->arena_bytes - place;
    if (unlikely(!there) && !map_arena(e, place + n)) {
        ep->caps &= ~(uint32_t)TP_CAP_WINDOW;
        return NULL;
    }
    return e->arena + place;
}

void shm_window_close(struct shm_ep *e)
{
    if (e->arena) munmap(e->arena, e->arena_bytes);
    e->arena = NULL;
    e->arena_bytes = 0;
}
