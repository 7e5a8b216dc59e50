/* block.c - makes the job block. */
#include "mpiexec/block.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors from here on are out of the way of programs and scripts that use fixed small numbers. */
#define FD_FLOOR 64

static int refuse(const char *what)
{
    say("cannot make the job's shared block: %s: %s", what, strerror(errno));
    return EXIT_RESOURCE;
}

static void move_up(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, FD_FLOOR);
    if (high < 0) high = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* a tight limit on descriptors */
    if (high < 0) return;
    close(*fd);
    *fd = high;
}

int block_open(struct block *b, const char *job, int size, const uint8_t secret[32], const char *psets,
               size_t pset_bytes)
{
    uint64_t place_off, card_off, pset_off = job_layout((uint32_t)size, &place_off, &card_off);
    uint64_t bytes = pset_off + round_up(pset_bytes, 4096);
    b->bell[0] = b->bell[1] = -1;
    b->fd = memfd_create("tern-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (b->fd < 0) return refuse("memfd_create");
    move_up(&b->fd);
    if (ftruncate(b->fd, (off_t)bytes)) return refuse("ftruncate");
    if (fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) return refuse("sealing");
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
    if (map == MAP_FAILED) return refuse("mmap");
    struct job_head *h = b->head = map;
    h->magic = JOB_MAGIC;
    h->version = JOB_VERSION;
    h->bytes = bytes;
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

int block_open_bell(struct block *b)
{
    if (pipe2(b->bell, O_CLOEXEC | O_NONBLOCK)) return refuse("pipe");
    move_up(&b->bell[1]);
    b->head->bell = b->bell[1];
    return 0;
}

void block_card_put(struct block *b, uint32_t rank, const void *card, size_t n)
{
    struct job_card *c = &job_cards(b->head)[rank];
    memcpy(c->data, card, n);
    c->len = (uint32_t)n;
    /* release: pairs with the acquire of the readers */
    atomic_store_explicit(&c->state, JOB_CARD_HERE, memory_order_release);
    syscall(SYS_futex, &c->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t block_aborted(const struct block *b) { return atomic_load_explicit(&b->head->aborted, memory_order_acquire); }

void block_silence(struct block *b, int code)
{
    uint32_t none = 0;
    if (b->head) atomic_compare_exchange_strong(&b->head->aborted, &none, 1 + ((uint32_t)code & 0xff));
}

enum job_life block_life(const struct block *b, int rank)
{
    /* Acquire pairs with the rank's release; it has exited, so this is its last word. */
    return atomic_load_explicit(&job_cards(b->head)[rank].life, memory_order_acquire);
}
