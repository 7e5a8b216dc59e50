/*
 * shm.c - the shared-memory transport: its segment, its card, connecting.
 */
#include "transport/shm.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/arena.h"
#include "transport/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct shm_dom shm_dom = {.fd = -1};
static uint64_t probe_word; /* what peers try to read; private memory on purpose */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Equal on two processes if one can open the other's descriptors and map its memory. */
static uint64_t host_key(void)
{
    static const char *const spaces[] = {"/proc/self/ns/pid", "/proc/self/ns/ipc", "/proc/self/ns/uts", "/proc/self/ns/user"};
    uint64_t key = 1;
    char boot[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, boot, sizeof boot - 1) < 0) boot[0] = 0;
        close(fd);
    }
    for (const char *c = boot; *c; c++) key = mix(key, (uint64_t)*c);
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        struct stat st;
        if (!stat(spaces[i], &st)) key = mix(key, st.st_ino);
    }
    return key;
}

#define BOXES_MAX 65536

static uint64_t plan(struct shm_segment *s)
{
    s->magic = SHM_MAGIC;
    s->version = 2;
    s->boxes = (uint32_t)var_int(VAR_SHM_BOXES);
    s->box_bytes = 4096;
    while (s->box_bytes < (uint64_t)var_int(VAR_SHM_BOX) && s->box_bytes < 8u << 20) s->box_bytes *= 2;
    s->box_off = sizeof *s;
    s->ring_off = round_up(s->box_off + (s->boxes + 1) * sizeof(struct shm_box), 4096);
    s->heap_off = s->ring_off + (uint64_t)(s->boxes + 1) * s->box_bytes;
    s->bytes = s->heap_off + SHM_HEAP_BYTES;
    return s->bytes;
}

static int make_segment(void)
{
    struct shm_segment head = {0};
    int64_t boxes = var_int(VAR_SHM_BOXES);
    if (boxes < 0 || boxes > BOXES_MAX)
        return err_set(TERN_ERR_ARG, "variable TERN_SHM_BOXES: %lld is not between 0 and %d", (long long)boxes, BOXES_MAX);
    uint64_t bytes = plan(&head);
    shm_dom.fd = memfd_create("tern-segment", MFD_CLOEXEC);
    if (shm_dom.fd < 0) return err_sys("cannot create shared memory (memfd)");
    if (ftruncate(shm_dom.fd, (off_t)bytes)) return err_sys("cannot size shared memory to %llu bytes", (unsigned long long)bytes);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shm_dom.fd, 0);
    if (p == MAP_FAILED) return err_sys("cannot map shared memory of %llu bytes", (unsigned long long)bytes);
    head.pid = (uint32_t)getpid();
    head.index = proc_self()->rank;
    memcpy(p, &head, sizeof head);
    shm_dom.segment = p;
    return 0;
}

static int make_rx(void)
{
    struct shm_segment *s = shm_dom.segment;
    shm_dom.rx = calloc(s->boxes + 1, sizeof *shm_dom.rx);
    if (!shm_dom.rx) return err_set(TERN_ERR_NOMEM, "no memory for %u shared-memory rings", s->boxes + 1);
    for (uint32_t i = 0; i <= s->boxes; i++) {
        shm_dom.rx[i].ring = shm_ring_at(s, i);
        shm_dom.rx[i].box = shm_box_at(s, i);
    }
    shm_dom.mask = s->box_bytes - 1;
    return 0;
}

static void shm_close(struct tp_dom *dom)
{
    (void)dom;
    arena_publish(NULL);
    if (shm_dom.segment) {
        atomic_store_explicit(&shm_dom.segment->left, 1, memory_order_release); /* pairs with the acquire in shm_left */
        munmap(shm_dom.segment, shm_dom.segment->bytes);
    }
    if (shm_dom.fd >= 0) close(shm_dom.fd);
    free(shm_dom.rx);
    shm_dom = (struct shm_dom){.fd = -1};
}

static int shm_open_dom(struct tp_dom **dom)
{
    list_init(&shm_dom.eps);
    int rc = make_segment();
    if (!rc) rc = make_rx();
    if (rc) {
        shm_close(NULL);
        return rc;
    }
    const struct proc_info *me = proc_self();
    bool sleeps_often = me->oversubscribed || !strcmp(var_text(VAR_SPIN), "never");
    bell_open(&shm_dom.segment->bell, sleeps_often);
    shared_open((char *)shm_dom.segment, shm_dom.segment->heap_off, SHM_HEAP_BYTES);
    if (me->local_size > 1 && strcmp(var_text(VAR_ARENA), "off")) arena_publish(&shm_dom.segment->arena);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where Yama restricts: peers of the same user may copy */
    probe_word = mix((uint64_t)getpid(), 0x7e52);
    *dom = (struct tp_dom *)&shm_dom;
    return 0;
}

static int shm_card_write(struct tp_dom *dom, void *buf, size_t cap)
{
    (void)dom;
    struct shm_card c = {host_key(), (uint32_t)getpid(), (uint32_t)shm_dom.fd, shm_dom.segment->bytes,
                         (uintptr_t)&probe_word, probe_word};
    if (cap < sizeof c) return err_set(TERN_ERR_INTERN, "no room for the card of shm");
    memcpy(buf, &c, sizeof c);
    return (int)sizeof c;
}

static int shm_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    static uint64_t own;
    struct shm_card c;
    if (n != sizeof c) return 0;
    memcpy(&c, card, sizeof c);
    if (!own) own = host_key();
    return c.host == own ? 2 : 0; /* the process itself costs 1 */
}

static int map_peer(struct shm_ep *e, const struct shm_card *c, uint32_t index)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", c->pid, c->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        if (errno != ENOENT) return err_sys("cannot open the shared memory of rank %u (%s)", index, path);
        proc_await_end();
        return err_set(TERN_ERR_PEER, "cannot open the shared memory of rank %u (%s): the process is gone", index, path);
    }
    void *p = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (p == MAP_FAILED) return err_sys("cannot map the shared memory of rank %u", index);
    e->segment = p;
    e->mapped = c->bytes;
    if (e->segment->magic != SHM_MAGIC || e->segment->bytes != c->bytes || e->segment->index != index) {
        munmap(p, c->bytes);
        return err_set(TERN_ERR_PEER, "the shared memory of rank %u is not what its card says", index);
    }
    return 0;
}

/* Takes a box of the peer's, or the common one when all are given out. */
static void claim_box(struct shm_ep *e)
{
    struct shm_segment *s = e->segment;
    /* acq_rel: the receiver's acquire of `given` sees the box's fields set before its first record comes */
    uint32_t i = atomic_fetch_add_explicit(&s->given, 1, memory_order_acq_rel);
    e->common = i >= s->boxes;
    if (e->common) i = s->boxes;
    e->box = shm_box_at(s, i);
    e->ring = shm_ring_at(s, i);
    e->mask = s->box_bytes - 1;
    e->limit = s->box_bytes;
    e->next = e->ring;
    e->stop = e->ring + s->box_bytes;
    if (!e->common) e->box->owner = proc_self()->rank;
    e->box->fenced |= atomic_load_explicit(&shm_dom.segment->bell.fenced, memory_order_relaxed);
}

/* Valgrind does not see what another process writes into this one, and would call it uninitialised. */
static bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "/vgpreload");
}

static void connect_cma(struct tp_ep *ep, const struct shm_card *c)
{
    if (!strcmp(var_text(VAR_CMA), "off") || under_valgrind()) return;
    if (shm_cma_works((pid_t)c->pid, c->probe_at, c->probe)) ep->caps |= TP_CAP_GETPUT;
}

static int shm_ep_open(struct tp_dom *dom, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    (void)dom;
    struct shm_card c;
    if (n != sizeof c) return err_set(TERN_ERR_PEER, "the shm card of rank %u has %zu bytes", peer->index, n);
    memcpy(&c, card, sizeof c);
    struct shm_ep *e = aligned_alloc(CACHE_LINE, round_up(sizeof *e, CACHE_LINE));
    if (!e) return err_set(TERN_ERR_NOMEM, "no memory to connect to rank %u", peer->index);
    memset(e, 0, sizeof *e);
    int rc = map_peer(e, &c, peer->index);
    if (rc) {
        free(e);
        return rc;
    }
    e->from = (uint64_t)proc_self()->rank << 32;
    e->pid = (pid_t)c.pid;
    claim_box(e);
    e->bell = &e->segment->bell;
    e->fence = atomic_load_explicit(&e->bell->fenced, memory_order_relaxed) || !sleep_membarrier_open();
    list_push(&shm_dom.eps, &e->in_all);
    ep->ops = &tp_shm;
    ep->am_short = e->common ? shm_am_common : shm_am_short;
    ep->priv = e;
    ep->max_short = e->segment->box_bytes / 2 - SHM_RECORD_HEAD;
    ep->caps = TP_CAP_MAP | TP_CAP_WINDOW | (e->common ? 0 : TP_CAP_BCOPY);
    connect_cma(ep, &c);
    return 0;
}

static void shm_ep_close(struct tp_dom *dom, struct tp_ep *ep)
{
    (void)dom;
    struct shm_ep *e = ep->priv;
    list_remove(&e->in_all);
    shm_window_close(e);
    munmap(e->segment, e->mapped);
    free(e);
    ep->ops = NULL;
}

static void *shm_map(struct tp_ep *ep, uint64_t offset, size_t n)
{
    struct shm_ep *e = ep->priv;
    return offset <= e->mapped && n <= e->mapped - offset ? (char *)e->segment + offset : NULL;
}

static void shm_nudge(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    bell_check(e->bell, e->fence);
    bell_check_again(e->bell);
}

static bool shm_left(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    return atomic_load_explicit(&e->segment->left, memory_order_acquire);
}

static bool shm_helped(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    return atomic_load_explicit(&e->bell->helped, memory_order_relaxed);
}

static struct bell *shm_bell(struct tp_dom *dom)
{
    (void)dom;
    return &shm_dom.segment->bell;
}

const struct tp_ops tp_shm = {
    .name = "shm",
    .open = shm_open_dom,
    .close = shm_close,
    .card = shm_card_write,
    .reach = shm_reach,
    .ep_open = shm_ep_open,
    .ep_close = shm_ep_close,
    .am_short = shm_am_short,
    .am_bcopy = shm_am_bcopy,
    .get = shm_get,
    .put = shm_put,
    .map = shm_map,
    .window = shm_window,
    .nudge = shm_nudge,
    .left = shm_left,
    .helped = shm_helped,
    .progress = shm_progress,
    .bell = shm_bell,
    .idle = shm_idle,
};
