/*
 * shm.c - the shared-memory transport: its segment, its card, connecting.
 */
#include "transport/shm/shm.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memfile.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/arena.h"
#include "transport/shared.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

struct shm_dom shm_dom = {.fd = -1};
static uint64_t probe_word; /* what peers try to read; private memory on purpose */

static size_t rx_bytes(uint32_t boxes) { return ((size_t)boxes + 1) * sizeof *shm_dom.rx; }

/* From the system, which gives memory for those that are used. */
static int make_rx(void)
{
    struct shm_segment *s = shm_dom.segment;
    void *rx = mmap(NULL, rx_bytes(s->boxes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rx == MAP_FAILED) return err_set(TERN_ERR_NOMEM, "no memory for %u shared-memory rings", s->boxes + 1);
    shm_dom.rx = rx;
    shm_dom.mask = s->box_bytes - 1;
    shm_dom.boxes = s->boxes;
    shm_dom.senders = s->senders;
    return 0;
}

/* Valgrind does not see what another process writes into this one, and would call it uninitialised. */
static bool under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "/vgpreload");
}

static bool cma_wanted(void) { return strcmp(var_text(VAR_CMA), "off") && !under_valgrind(); }

/* A word that no other process has: a process number may mean another one to the peer, with the same program in it. */
static void make_probe(void)
{
    if (getrandom(&probe_word, sizeof probe_word, GRND_NONBLOCK) != sizeof probe_word)
        probe_word = memfile_mix(clock_ns(), (uint64_t)getpid() << 32 | proc_self()->rank);
}

static void connect_cma(struct tp_ep *ep, const struct shm_card *c)
{
    if (!cma_wanted() || !shm_is_open_to(c)) return;
    if (shm_cma_works((pid_t)c->pid, c->probe_at, c->probe)) ep->caps |= TP_CAP_GETPUT;
}

static void shm_close(struct tp_dom *dom)
{
    (void)dom;
    arena_publish(NULL);
    if (shm_dom.segment) {
        atomic_store_explicit(&shm_dom.segment->left, 1, memory_order_release); /* pairs with the acquire in shm_left */
    }
    shm_kept_close();
    shm_neighbours_close();
    shm_memory_close();
    if (shm_dom.rx) munmap(shm_dom.rx, rx_bytes(shm_dom.boxes));
    shm_dom = (struct shm_dom){.fd = -1};
}

static int shm_open_dom(struct tp_dom **dom, const struct tp_env *env, const char *domain)
{
    (void)env, (void)domain;
    list_init(&shm_dom.eps);
    int rc = shm_memory_open();
    if (!rc) rc = make_rx();
    if (rc) {
        shm_close(NULL);
        return rc;
    }
    const struct proc_info *me = proc_self();
    bool sleeps_often = me->oversubscribed || !strcmp(var_text(VAR_SPIN), "never");
    bell_open(&shm_dom.segment->bell, sleeps_often);
    shared_open((char *)shm_dom.segment, shm_dom.segment->heap_off, shm_dom.segment->bytes - shm_dom.segment->heap_off);
    if (!shm_dom.own_file) shared_in_node(shm_dom.offset);
    if (me->local_size > 1 && strcmp(var_text(VAR_ARENA), "off")) arena_publish(&shm_dom.segment->arena);
    if (me->local_size > 1 && cma_wanted()) shm_cma_allow();
    make_probe();
    *dom = (struct tp_dom *)&shm_dom;
    return 0;
}

static int shm_card_write(struct tp_dom *dom, void *buf, size_t cap)
{
    (void)dom;
    struct shm_card c = {.host = shm_dom.host,
                         .file = shm_dom.file,
                         .offset = shm_dom.offset,
                         .bytes = shm_dom.segment->bytes,
                         .pid = (uint32_t)getpid(),
                         .fd = (uint32_t)shm_dom.fd,
                         .probe_at = (uintptr_t)&probe_word,
                         .probe = probe_word,
                         .near = shm_dom.near};
    if (cap < sizeof c) return err_set(TERN_ERR_INTERN, "no room for the card of shm");
    memcpy(buf, &c, sizeof c);
    return (int)sizeof c;
}

static bool shm_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    struct shm_card c;
    if (n != sizeof c) return false;
    memcpy(&c, card, sizeof c);
    return shm_memory_reaches(&c);
}

static int shm_ep_open(struct tp_dom *dom, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    (void)dom;
    struct shm_card c;
    if (n != sizeof c) return err_set(TERN_ERR_ABSENT, "the shm card of %s has %zu bytes", jobs_words(peer->index), n);
    memcpy(&c, card, sizeof c);
    struct shm_ep *e = aligned_alloc(CACHE_LINE, round_up(sizeof *e, CACHE_LINE));
    if (!e) return err_set(TERN_ERR_NOMEM, "no memory to connect to %s", jobs_words(peer->index));
    memset(e, 0, sizeof *e);
    int rc = shm_memory_map(&c, peer->index, &e->segment);
    if (rc) {
        free(e);
        return rc;
    }
    e->mapped = c.bytes;
    e->pid = (pid_t)c.pid;
    e->open_to_us = shm_is_open_to(&c);
    e->near = shm_is_near(&c);
    e->peer = peer;
    e->bell = &e->segment->bell;
    e->fence = atomic_load_explicit(&e->bell->fenced, memory_order_relaxed) || !sleep_membarrier_open();
    rc = shm_sender_enter(e);
    if (rc) {
        shm_memory_unmap(e->segment, e->mapped);
        free(e);
        return rc;
    }
    if (shm_dom.threads) shm_share_ep(e);
    shm_eps_lock();
    list_push(&shm_dom.eps, &e->in_all);
    shm_eps_unlock();
    ep->ops = &tp_shm;
    ep->am_short = shm_way_of(e);
    ep->priv = e;
    ep->max_short = e->segment->box_bytes / 2 - SHM_RECORD_HEAD;
    ep->caps = TP_CAP_MAP | TP_CAP_ARENA | TP_CAP_REMOTE | TP_CAP_KEEP | (e->common ? 0 : TP_CAP_BCOPY);
    connect_cma(ep, &c);
    shm_neighbour_open(e);
    return 0;
}

static void shm_ep_close(struct tp_dom *dom, struct tp_ep *ep)
{
    (void)dom;
    struct shm_ep *e = ep->priv;
    shm_eps_lock();
    list_remove(&e->in_all);
    shm_eps_unlock();
    if (!jobs_is_own(e->peer->index)) shm_neighbour_close(e->peer->index);
    shm_leaving(e, false);
    shm_arena_unmap(e);
    shm_memory_unmap(e->segment, e->mapped);
    free(e);
    ep->ops = NULL;
}

static void *shm_map(struct tp_ep *ep, uint64_t offset, size_t n)
{
    struct shm_ep *e = ep->priv;
    return offset <= e->mapped && n <= e->mapped - offset ? (char *)e->segment + offset : NULL;
}

static void shm_nudge(struct tp_ep *ep, bool helper)
{
    struct shm_ep *e = ep->priv;
    bell_check(e->bell, e->fence);
    if (helper) bell_check_again(e->bell);
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

static bool shm_sees(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    return shm_helped(ep) && atomic_load_explicit(&e->bell->asleep, memory_order_relaxed) == BELL_AWAKE;
}

/* The bell of a process that has ended still names its last core. */
static bool has_ended(const struct shm_ep *e)
{
    return e->peer->lost || atomic_load_explicit(&e->segment->left, memory_order_relaxed);
}

static bool shm_cores(struct tp_dom *dom, bool gates, cpu_set_t *cores)
{
    bool crowded = false;
    (void)dom;
    shm_eps_lock();
    list_each(a, next, &shm_dom.eps)
    {
        const struct shm_ep *e = container_of(a, struct shm_ep, in_all);
        if (has_ended(e)) continue;
        int core = bell_core(e->bell, gates);
        if (core >= 0 && core < CPU_SETSIZE) CPU_SET((size_t)core, cores);
        crowded |= bell_is_crowded(e->bell) && (jobs_is_own(e->peer->index) || e->peer->flags & PEER_NEIGHBOUR);
    }
    shm_eps_unlock();
    return crowded;
}

/* Where the process's number is not known here, it may. */
static bool shm_shares_cores(const struct tp_ep *ep)
{
    const struct shm_ep *e = ep->priv;
    cpu_set_t ours, its;
    if (!e->open_to_us) return true;
    if (sched_getaffinity(0, sizeof ours, &ours) || sched_getaffinity(e->pid, sizeof its, &its)) return false;
    CPU_AND(&its, &its, &ours);
    return CPU_COUNT(&its) > 0;
}

static void shm_share(struct tp_dom *dom)
{
    (void)dom;
    shm_dom.threads = true;
    list_each(a, next, &shm_dom.eps)
    {
        struct shm_ep *e = container_of(a, struct shm_ep, in_all);
        shm_share_ep(e);
        e->peer->ep.am_short = shm_way_of(e);
    }
}

static struct bell *shm_bell(struct tp_dom *dom)
{
    (void)dom;
    return &shm_dom.segment->bell;
}

static void shm_wait_lasts(struct tp_dom *dom)
{
    shm_trim(dom);
    watcher_look();
}

const struct tp_ops tp_shm = {
    .name = "shm",
    .cost = {.locality = TP_NODE, .latency_ns = 100, .send_ns = 50, .poll_ns = 40, .mb_per_s = 8000,
             .eager_max = 32 << 10, .eager_variable = "TERN_EAGER_SHM"},
    .open = shm_open_dom,
    .close = shm_close,
    .card = shm_card_write,
    .reach = shm_reach,
    .ep_open = shm_ep_open,
    .ep_close = shm_ep_close,
    .peer_close = shm_peer_close,
    .threads = TP_THREADS_SEND | TP_THREADS_COPY | TP_THREADS_LOOK | TP_THREADS_POLL,
    .share = shm_share,
    .sent = shm_sent,
    .handled = shm_handled,
    .await_handled = shm_await_handled,
    .am_short = shm_am_short,
    .am_bcopy = shm_am_bcopy,
    .get = shm_get,
    .put = shm_put,
    .map = shm_map,
    .map_arena = shm_map_arena,
    .remote = &shm_remote,
    .keep = shm_keep,
    .nudge = shm_nudge,
    .left = shm_left,
    .helped = shm_helped,
    .sees = shm_sees,
    .progress = shm_progress,
    .cores = shm_cores,
    .shares_cores = shm_shares_cores,
    .bell = shm_bell,
    .idle = shm_idle,
    .wait_lasts = shm_wait_lasts,
    .watch = shm_watch,
    .how_ended = shm_how_ended,
};
