/*
 * shm_window.c - the memory arena of a peer (transport/arena.h) mapped into this
 * process: at the first large message that lies in it, and again when it has grown.
 */
#include "transport/shm.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The peer's memfd; -1 if it has none, or will not let us. */
static int open_arena(const struct shm_ep *e)
{
    char path[64];
    uint32_t told = atomic_load_explicit(&e->segment->arena, memory_order_acquire); /* pairs with the release in arena.c */
    if (!told) return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%u", (int)e->pid, told - 1);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Maps all that there is now, in place of what was mapped. True if that is `need` bytes or more. */
static bool map_arena(struct shm_ep *e, uint64_t need)
{
    struct stat st;
    void *p = MAP_FAILED;
    int fd = open_arena(e);
    if (fd < 0) return false;
    if (!fstat(fd, &st) && (uint64_t)st.st_size >= need)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return false;
    shm_window_close(e);
    e->arena = p;
    e->arena_bytes = (uint64_t)st.st_size;
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
