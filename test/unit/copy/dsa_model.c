/* dsa_model.c - see dsa_model.h. */
#include "dsa_model.h"
#include "base/sanitizer.h"
#include "copy/dsa.h"

#include <fcntl.h>
#include <linux/idxd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORTAL 4096
#define SLOTS (PORTAL / sizeof(struct dsa_hw_desc))
#define HELD 4 /* descriptors that the device works on at a time, and finishes in any order */

static struct {
    struct dsa_model *m;
    char folder[64];
    char *page;
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    size_t next; /* place in the portal */
    struct dsa_hw_desc held[HELD];
    unsigned n;
} dev;

static unsigned rnd(unsigned below)
{
    dev.m->seed = dev.m->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dev.m->seed >> 33) % below;
}

/* ---- the device ---- */

static bool take_from_page(struct dsa_hw_desc *d)
{
    struct dsa_hw_desc *at = (struct dsa_hw_desc *)(void *)(dev.page + dev.next * sizeof *d);
    _Atomic uint64_t *record = (_Atomic uint64_t *)(void *)((char *)at + offsetof(struct dsa_hw_desc, completion_addr));
    if (!atomic_load_explicit(record, memory_order_acquire)) return false; /* 64 bytes come at once */
    *d = *at;
    atomic_store_explicit(record, 0, memory_order_release);
    dev.next = (dev.next + 1) % SLOTS;
    return true;
}

static bool take(struct dsa_hw_desc *d)
{
    if (dev.page) return take_from_page(d);
    return read(dev.fd, d, sizeof *d) == sizeof *d;
}

static void complete(const struct dsa_hw_desc *d, uint8_t status, size_t done)
{
    struct dsa_completion_record *r = (void *)(uintptr_t)d->completion_addr;
    memcpy((void *)(uintptr_t)d->dst_addr, (const void *)(uintptr_t)d->src_addr, done);
    r->bytes_completed = (uint32_t)done;
    sanitizer_released(r);
    atomic_store_explicit((_Atomic uint8_t *)(uintptr_t)d->completion_addr, status, memory_order_release);
}

static bool is_right(const struct dsa_hw_desc *d)
{
    return d->opcode == DSA_OPCODE_MEMMOVE && d->flags & IDXD_OP_FLAG_CRAV && d->flags & IDXD_OP_FLAG_RCR && d->completion_addr % 32 == 0 &&
           d->xfer_size && d->xfer_size <= dev.m->most;
}

static bool one_in(unsigned every) { return every && rnd(every) == 0; }

static void execute(const struct dsa_hw_desc *d)
{
    sanitizer_acquired((void *)(uintptr_t)d->completion_addr);
    dev.m->copies++;
    if (d->xfer_size > dev.m->longest) dev.m->longest = d->xfer_size;
    if (!is_right(d) || one_in(dev.m->bad_every)) {
        dev.m->bad++;
        complete(d, DSA_COMP_INVALID_FLAGS, 0);
    } else if (one_in(dev.m->fault_every)) {
        dev.m->faults++;
        complete(d, (uint8_t)(DSA_COMP_PAGE_FAULT_NOBOF | (rnd(2) ? 0x80 : 0)), rnd(d->xfer_size));
    } else {
        complete(d, DSA_COMP_SUCCESS, d->xfer_size);
    }
}

static void *run(void *unused)
{
    while (!atomic_load_explicit(&dev.stop, memory_order_acquire)) {
        while (dev.n < HELD && take(&dev.held[dev.n])) dev.n++;
        if (!dev.n || (dev.m->dies_after && dev.m->copies >= dev.m->dies_after)) {
            sched_yield();
            continue;
        }
        unsigned i = rnd(dev.n);
        execute(&dev.held[i]);
        dev.held[i] = dev.held[--dev.n];
    }
    return unused;
}

/* ---- its files ---- */

static bool write_file(const char *name, const char *word)
{
    char path[160];
    snprintf(path, sizeof path, "%s/queues/wq0.0/%s", dev.folder, name);
    FILE *f = fopen(path, "w");
    bool good = f && fprintf(f, "%s\n", word) > 0;
    return f && !fclose(f) && good;
}

static bool write_number(const char *name, size_t n)
{
    char word[32];
    snprintf(word, sizeof word, "%zu", n);
    return write_file(name, word);
}

static bool make_folder(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s%s", dev.folder, name);
    return !mkdir(path, 0700);
}

static bool make_device(void)
{
    char path[160];
    snprintf(path, sizeof path, "%s/devices/wq0.0", dev.folder);
    if (!dev.m->portal) return !mkfifo(path, 0600) && (dev.fd = open(path, O_RDWR | O_NONBLOCK)) >= 0;
    dev.fd = open(path, O_RDWR | O_CREAT, 0600);
    if (dev.fd < 0 || ftruncate(dev.fd, PORTAL)) return false;
    dev.page = mmap(NULL, PORTAL, PROT_READ | PROT_WRITE, MAP_SHARED, dev.fd, 0);
    return dev.page != MAP_FAILED;
}

bool dsa_model_open(struct dsa_model *m)
{
    static char queues[80], devices[80];
    const char *sysfs[][2] = {{"type", m->type ? m->type : "user"}, {"state", m->state ? m->state : "enabled"},
                              {"mode", m->mode ? m->mode : "dedicated"}};
    memset(&dev, 0, sizeof dev);
    dev.m = m;
    strcpy(dev.folder, "/tmp/tern-dsa-XXXXXX");
    if (!mkdtemp(dev.folder) || !make_folder("/queues") || !make_folder("/queues/wq0.0") || !make_folder("/devices")) return false;
    for (int i = 0; i < 3; i++)
        if (!write_file(sysfs[i][0], sysfs[i][1])) return false;
    if (!write_number("size", m->size) || !write_number("max_transfer_size", m->most) || !make_device()) return false;
    snprintf(queues, sizeof queues, "%s/queues", dev.folder);
    snprintf(devices, sizeof devices, "%s/devices", dev.folder);
    copy_dsa_at(queues, devices);
    return !pthread_create(&dev.thread, NULL, run, NULL);
}

void dsa_model_hide(struct dsa_model *m)
{
    char path[160];
    (void)m;
    snprintf(path, sizeof path, "%s/devices/wq0.0", dev.folder);
    unlink(path);
}

void dsa_model_close(struct dsa_model *m)
{
    char command[120];
    (void)m;
    atomic_store_explicit(&dev.stop, true, memory_order_release);
    pthread_join(dev.thread, NULL);
    if (dev.page) munmap(dev.page, PORTAL);
    close(dev.fd);
    copy_dsa_at(NULL, NULL);
    snprintf(command, sizeof command, "rm -r %s", dev.folder);
    if (system(command)) fprintf(stderr, "%s is left\n", dev.folder);
}
