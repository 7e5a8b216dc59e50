/* dsa.c - see dsa.h. */
#include "copy/dsa.h"
#include "base/err.h"
#include "base/sanitizer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/idxd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define QUEUES "/sys/bus/dsa/devices"
#define DEVICES "/dev/dsa"
#define PORTAL 4096  /* bytes; a descriptor may be written anywhere in it */
#define DEEPEST 1024 /* pieces of a ring */

/* The first byte of a completion record, which the device writes last; 0 before. */
typedef _Atomic uint8_t status_word;

union record {
    TERN_ALIGNED(32) struct dsa_completion_record r;
    status_word status;
};
static_assert(sizeof(union record) == 32 && sizeof(struct dsa_hw_desc) == 64, "as the device has it");
static_assert(sizeof(status_word) == 1 && offsetof(struct dsa_completion_record, status) == 0, "the status is a byte that is read as one");

struct dsa;

/* Hands one descriptor over. False: not now. */
typedef bool (*submit_fn)(struct dsa *, const struct dsa_hw_desc *);

struct dsa {
    int fd;
    char *portal; /* NULL: by write(2) */
    submit_fn submit;
    bool shared; /* several processes use the queue */
    size_t depth;   /* of the ring: no more than the queue has places, so none is ever refused for want of one */
    size_t most;    /* bytes of a piece */
    uint64_t pushed, submitted, finished, completed_by_processor;
    struct dsa_hw_desc *ring;
    union record *records;
};

static const char *queues = QUEUES, *devices = DEVICES;

void copy_dsa_at(const char *q, const char *d)
{
    queues = q ? q : QUEUES;
    devices = d ? d : DEVICES;
}

/* ---- handing over ---- */

/* The record of a descriptor that the device does not take: the processor copies. */
static bool refused(struct dsa *d)
{
    atomic_store_explicit(&d->records[d->submitted % d->depth].status, DSA_COMP_HW_ERR1, memory_order_relaxed);
    return true;
}

static bool by_write(struct dsa *d, const struct dsa_hw_desc *desc)
{
    ssize_t n;
    while ((n = write(d->fd, desc, sizeof *desc)) < 0 && errno == EINTR) continue;
    return n == sizeof *desc || (errno != EAGAIN && refused(d));
}

#if defined(__x86_64__)

static char *place_in_portal(struct dsa *d) { return d->portal + d->submitted * sizeof(struct dsa_hw_desc) % PORTAL; }

__attribute__((target("movdir64b"))) static bool by_movdir(struct dsa *d, const struct dsa_hw_desc *desc)
{
    _mm_sfence(); /* the device sees what was written before */
    _movdir64b(place_in_portal(d), desc);
    return true;
}

__attribute__((target("enqcmd"))) static bool by_enqcmd(struct dsa *d, const struct dsa_hw_desc *desc)
{
    _mm_sfence();
    return !_enqcmd(place_in_portal(d), desc);
}

/* NULL: this processor cannot. */
static submit_fn by_portal(bool shared)
{
    unsigned a, b, c = 0, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return NULL;
    if (shared) return c & 1u << 29 ? by_enqcmd : NULL;
    return c & 1u << 28 ? by_movdir : NULL;
}

#else

static submit_fn by_portal(bool shared)
{
    (void)shared;
    return NULL;
}

#endif

static void submit(struct dsa *d)
{
    for (; d->submitted < d->pushed; d->submitted++) {
        size_t i = d->submitted % d->depth;
        sanitizer_released(&d->records[i]);
        if (!d->submit(d, &d->ring[i])) return; /* the next look tries again */
    }
}

/* ---- finding a queue ---- */

/* The first line of a file of the queue's; false: there is none. */
static bool read_word(const char *queue, const char *file, char *to, size_t room)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s/%s", queues, queue, file);
    FILE *f = fopen(path, "re");
    bool there = f && fgets(to, (int)room, f);
    if (f) fclose(f);
    if (there) to[strcspn(to, "\n")] = 0;
    return there;
}

static bool says(const char *queue, const char *file, const char *word)
{
    char is[64];
    return read_word(queue, file, is, sizeof is) && !strcmp(is, word);
}

static uint64_t number_in(const char *queue, const char *file)
{
    char is[64];
    return read_word(queue, file, is, sizeof is) ? strtoull(is, NULL, 0) : 0;
}

static int allocate(struct dsa *d)
{
    d->ring = aligned_alloc(64, d->depth * sizeof *d->ring);
    d->records = aligned_alloc(32, d->depth * sizeof *d->records);
    if (d->ring && d->records) return 0;
    return err_set(TERN_ERR_NOMEM, "no memory for a ring of %zu descriptors", d->depth);
}

/* The kernel waits for what the device has of this queue, or takes it away from it. */
static void leave(struct dsa *d)
{
    if (d->portal) munmap(d->portal, PORTAL);
    if (d->fd >= 0) close(d->fd);
    d->portal = NULL;
    d->fd = -1;
}

static void dsa_close(void *state)
{
    struct dsa *d = state;
    leave(d);
    free(d->ring);
    free(d->records);
    free(d);
}

/* The portal, if the kernel gives it and the processor can write to it; else write(2) takes its place. */
static void choose_way(struct dsa *d)
{
    submit_fn way = by_portal(d->shared);
    void *page = way ? mmap(NULL, PORTAL, PROT_WRITE, MAP_SHARED | MAP_POPULATE, d->fd, 0) : MAP_FAILED;
    d->submit = page == MAP_FAILED ? by_write : way;
    if (page == MAP_FAILED) return;
    d->portal = page;
    (void)madvise(page, PORTAL, MADV_DONTFORK);
}

/* TERN_ERR_UNSUPPORTED without words: it is not for users, or not open. */
static int open_queue(const char *name, size_t depth, struct dsa **d_p)
{
    char path[600];
    uint64_t size = number_in(name, "size"), most = number_in(name, "max_transfer_size");
    if (!says(name, "type", "user") || !says(name, "state", "enabled") || !size || !most) return TERN_ERR_UNSUPPORTED;
    snprintf(path, sizeof path, "%s/%s", devices, name);
    struct dsa *d = calloc(1, sizeof *d);
    if (!d) return err_set(TERN_ERR_NOMEM, "no memory for a copy engine");
    d->depth = min_size(min_size(depth, size), DEEPEST);
    d->shared = says(name, "mode", "shared");
    d->most = min_size(most, UINT32_MAX);
    d->fd = open(path, O_RDWR | O_CLOEXEC);
    int rc = d->fd < 0 ? err_set(TERN_ERR_SYSTEM, "the copy engine %s cannot be opened: %s", path, strerror(errno)) : allocate(d);
    if (rc) {
        dsa_close(d);
        return rc;
    }
    choose_way(d);
    *d_p = d;
    return 0;
}

/* The first one that can be opened; else why the last one could not. */
static int dsa_open(size_t depth, void **state_p)
{
    struct dsa *d = NULL;
    int rc = TERN_ERR_UNSUPPORTED;
    DIR *all = opendir(queues);
    for (struct dirent *e; all && !d && (e = readdir(all));)
        if (!strncmp(e->d_name, "wq", 2)) {
            int one = open_queue(e->d_name, depth, &d);
            if (one != TERN_ERR_UNSUPPORTED) rc = one;
        }
    if (all) closedir(all);
    *state_p = d;
    return rc;
}

/* ---- copying ---- */

static size_t dsa_most(void *state) { return ((struct dsa *)state)->most; }

static int dsa_push(void *state, void *dst, const void *src, size_t n)
{
    struct dsa *d = state;
    if (d->pushed - d->finished == d->depth) return TERN_AGAIN;
    size_t i = d->pushed++ % d->depth;
    memset(&d->records[i], 0, sizeof d->records[i]);
    d->ring[i] = (struct dsa_hw_desc){
        .opcode = DSA_OPCODE_MEMMOVE,
        .flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CC, /* a record, and the data into the cache */
        .completion_addr = (uintptr_t)&d->records[i],
        .src_addr = (uintptr_t)src,
        .dst_addr = (uintptr_t)dst,
        .xfer_size = (uint32_t)n,
    };
    return 0;
}

static void dsa_issue(void *state) { submit(state); }

/* What the device has left. */
static TERN_COLD void finish_by_processor(struct dsa *d, size_t i)
{
    const struct dsa_hw_desc *desc = &d->ring[i];
    const struct dsa_completion_record *r = &d->records[i].r;
    bool part = (r->status & 0x3f) == DSA_COMP_PAGE_FAULT_NOBOF && r->bytes_completed <= desc->xfer_size;
    size_t done = part ? r->bytes_completed : 0;
    memcpy((char *)(uintptr_t)desc->dst_addr + done, (const char *)(uintptr_t)desc->src_addr + done, desc->xfer_size - done);
    d->completed_by_processor++;
}

static uint64_t dsa_finished(void *state)
{
    struct dsa *d = state;
    for (; d->finished < d->submitted; d->finished++) {
        size_t i = d->finished % d->depth;
        /* acquire: the data and the rest of the record are there */
        uint8_t status = atomic_load_explicit(&d->records[i].status, memory_order_acquire);
        if (!status) break;
        sanitizer_acquired(&d->records[i]);
        if (unlikely(status != DSA_COMP_SUCCESS)) finish_by_processor(d, i);
    }
    submit(d);
    return d->finished;
}

static bool refuse_all(struct dsa *d, const struct dsa_hw_desc *desc)
{
    (void)desc;
    return refused(d);
}

/* What the device has finished until the kernel took it away has its record, the rest is refused. */
static void dsa_stop(void *state)
{
    struct dsa *d = state;
    leave(d);
    d->submit = refuse_all;
    for (uint64_t at = d->finished; at < d->submitted; at++) {
        uint8_t none = 0;
        /* relaxed: dsa_finished acquires what it finds */
        atomic_compare_exchange_strong_explicit(&d->records[at % d->depth].status, &none, DSA_COMP_HW_ERR1, memory_order_relaxed,
                                                memory_order_relaxed);
    }
    submit(d);
    dsa_finished(d);
}

uint64_t copy_dsa_by_processor(const void *state) { return ((const struct dsa *)state)->completed_by_processor; }

const char *copy_dsa_way(const void *state)
{
    const struct dsa *d = state;
    return d->submit == by_write ? "write" : d->shared ? "ENQCMD" : "MOVDIR64B";
}

const struct copy_ops copy_dsa_ops = {
    .name = "dsa",
    .flags = COPY_ASYNC,
    .open = dsa_open,
    .close = dsa_close,
    .most = dsa_most,
    .push = dsa_push,
    .issue = dsa_issue,
    .finished = dsa_finished,
    .stop = dsa_stop,
};
