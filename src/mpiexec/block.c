/* block.c - makes the job block. */
#include "mpiexec/block.h"
#include "base/memfile.h"
#include "base/sleep.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *what)
{
    say("cannot make the job's shared block: %s: %s%s", what, strerror(errno),
        errno == EFBIG ? " (the limit of `ulimit -f` holds for shared memory as well)" : "");
    return EXIT_RESOURCE;
}

int block_open(struct block *b, const char *job, int size, const uint8_t secret[32], const char *psets,
               size_t pset_bytes)
{
    uint64_t place_off, card_off, pset_off = job_layout((uint32_t)size, &place_off, &card_off);
    uint64_t bytes = pset_off + round_up(pset_bytes, 4096);
    b->wanted_pipe[0] = b->wanted_pipe[1] = b->memory = -1;
    b->fd = memfd_create("tern-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->fd < 0) return refuse("memfd_create");
    b->fd = memfile_move_up(b->fd);
    snprintf(b->id, sizeof b->id, "%d:%llx", (int)getpid(), (unsigned long long)memfile_id_of(b->fd));
    if (!memfile_resize(b->fd, bytes)) return refuse(errno == EFBIG ? "the limit for files (ulimit -f)" : "ftruncate");
    if (fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) return refuse("sealing");
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
    if (map == MAP_FAILED) return refuse("mmap");
    struct job_head *h = b->head = map;
    h->magic = JOB_MAGIC;
    h->version = JOB_VERSION;
    h->bytes = bytes;
    h->boot = memfile_boot();
    h->size = (uint32_t)size;
    h->place_off = place_off;
    h->card_off = card_off;
    h->pset_off = pset_off;
    h->pset_bytes = (uint32_t)pset_bytes;
    if (pset_bytes) memcpy(job_psets(h), psets, pset_bytes);
    strncpy(h->name, job, sizeof h->name - 1);
    memcpy(h->secret, secret, sizeof h->secret);
    return 0;
}

int block_open_wanted_pipe(struct block *b)
{
    if (pipe2(b->wanted_pipe, O_CLOEXEC | O_NONBLOCK)) return refuse("pipe");
    b->wanted_pipe[1] = memfile_move_up(b->wanted_pipe[1]);
    b->head->wanted_pipe = b->wanted_pipe[1];
    b->head->wanted_pipe_id = memfile_id_of(b->wanted_pipe[1]);
    return 0;
}

void block_open_memory(struct block *b, int nlocal)
{
    int fd = memfd_create("tern-memory", MFD_CLOEXEC);
    if (fd >= 0) fd = memfile_move_up(fd);
    if (fd < 0 || !memfile_resize(fd, (uint64_t)nlocal * (JOB_SLOT_BYTES + JOB_ARENA_BYTES))) {
        say_verbose("no memory for all ranks of a node together: %s; each makes its own", strerror(errno));
        if (fd >= 0) close(fd);
        return;
    }
    b->memory = b->head->memory = fd;
    b->head->memory_id = memfile_id_of(fd);
}

void block_card_put(struct block *b, uint32_t rank, const void *card, size_t n)
{
    struct job_card *c = &job_cards(b->head)[rank];
    memcpy(c->data, card, n);
    c->len = (uint32_t)n;
    /* release: pairs with the acquire of the readers */
    atomic_store_explicit(&c->state, JOB_CARD_HERE, memory_order_release);
    futex_wake_all(&c->state);
}

uint32_t block_aborted(const struct block *b) { return atomic_load_explicit(&b->head->aborted, memory_order_acquire); }

void block_silence(struct block *b, int code)
{
    uint32_t none = 0;
    if (!b->head) return;
    atomic_compare_exchange_strong(&b->head->aborted, &none, 1 + ((uint32_t)code & 0xff));
    futex_wake_all(&b->head->aborted);
}

enum job_life block_end(struct block *b, int rank)
{
    struct job_card *c = &job_cards(b->head)[rank];
    /* Acquire pairs with the rank's release; it has exited, so this is its last word. */
    uint32_t life = atomic_fetch_or_explicit(&c->life, JOB_ENDED, memory_order_acq_rel);
    futex_wake_all(&c->state);
    return life;
}

/* Rings a bell that lies in the memory of the node. The place is the rank's word. Asleep or not: the dead one may have
 * withdrawn the announcement, as a waker does first, and then have woken nobody. */
static void ring_at(const struct block *b, uint64_t place)
{
    struct stat st;
    uint64_t page = place & ~(uint64_t)4095;
    bool there = b->memory >= 0 && !fstat(b->memory, &st) && place % sizeof(struct bell) == 0 &&
                 page + 4096 <= (uint64_t)st.st_size;
    void *map = there ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b->memory, (off_t)page) : MAP_FAILED;
    if (map == MAP_FAILED) return;
    bell_wake_all((struct bell *)((char *)map + (place - page)));
    munmap(map, 4096);
}

static void ring(const struct block *b, struct job_bell *bell)
{
    uint64_t place = atomic_load_explicit(&bell->place, memory_order_acquire); /* pairs with native_bell: the name is there */
    uint64_t name = atomic_load_explicit(&bell->name, memory_order_relaxed);
    if (place)
        ring_at(b, place - 1);
    else if (name)
        bell_ring_name(name);
}

void block_tell_death(struct block *b, uint32_t rank)
{
    struct job_head *h = b->head;
    uint32_t n = atomic_load_explicit(&h->deaths, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load_explicit(&job_died(h)[i], memory_order_relaxed) == rank) return;
    if (n >= h->size) return;
    atomic_store_explicit(&job_died(h)[n], rank, memory_order_relaxed);
    /* release: pairs with the acquire in hear_deaths, after which the rank is read */
    atomic_store_explicit(&h->deaths, n + 1, memory_order_release);
    futex_wake_all(&h->aborted); /* who has met the death by itself, and is about to fail (native_await_end) */
    for (uint32_t i = 0; i < h->local_size; i++) ring(b, &job_bells(h)[i]);
}
