/* native.c - bootstrap through the job block inherited from Tern's mpiexec (job.h). */
#include "base/err.h"
#include "base/sleep.h"
#include "proc/job.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct job_head *job;
static uint32_t my_rank;
static struct stat bell; /* of the descriptor job->bell as it was at the start; st_ino 0: there is none */

/* A number from the environment, -1 when absent or not a number. */
static long env_number(const char *name)
{
    const char *s = getenv(name);
    char *end;
    if (!s || !*s) return -1;
    long v = strtol(s, &end, 10);
    return *end ? -1 : v;
}

static bool block_ok(const struct job_head *j, uint64_t bytes, uint32_t rank)
{
    uint64_t place, card;
    return j->magic == JOB_MAGIC && j->version == JOB_VERSION && j->bytes == bytes && rank < j->size &&
           job_layout(j->size, &place, &card) <= bytes && j->place_off == place && j->card_off == card;
}

/* The last byte of the names is a zero, so that none runs out of the block. */
static bool psets_ok(struct job_head *j)
{
    if (!j->pset_bytes) return true;
    return j->pset_off <= j->bytes && j->pset_bytes <= j->bytes - j->pset_off && !job_psets(j)[j->pset_bytes - 1];
}

static int map_block(int fd, uint32_t rank)
{
    struct stat st;
    if (fstat(fd, &st)) return err_sys("the job block (descriptor %d, from %s) is not open", fd, JOB_ENV_FD);
    if ((size_t)st.st_size < sizeof *job)
        return err_set(TERN_ERR_SYSTEM, "descriptor %d, from %s, is not a job block", fd, JOB_ENV_FD);
    struct job_head *j = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (j == MAP_FAILED) return err_sys("cannot map the job block");
    if (!block_ok(j, (uint64_t)st.st_size, rank) || !psets_ok(j)) {
        munmap(j, (size_t)st.st_size);
        return err_set(TERN_ERR_SYSTEM, "the job block is not one of this version of Tern (rank %u)", rank);
    }
    job = j;
    return 0;
}

static int native_open(struct proc_info *p)
{
    long fd = env_number(JOB_ENV_FD), rank = env_number(JOB_ENV_RANK);
    if (fd < 0 || rank < 0) return TERN_ERR_NOT_FOUND;
    int rc = map_block((int)fd, (uint32_t)rank);
    if (rc) return rc;
    my_rank = (uint32_t)rank;
    if (!job->bell || fstat(job->bell, &bell) || !S_ISFIFO(bell.st_mode)) memset(&bell, 0, sizeof bell);
    const struct job_place *me = &job_places(job)[rank];
    snprintf(p->job, sizeof p->job, "%.*s", (int)sizeof job->name, job->name);
    p->rank = my_rank;
    p->size = job->size;
    p->local_rank = me->local_rank;
    p->local_size = job->local_size;
    p->node = me->node;
    p->nodes = job->nodes;
    p->universe = job->universe;
    p->appnum = me->appnum;
    p->usable_cpus = job->usable_cpus;
    p->bound = me->bound;
    return 0;
}

/* ---- cards ---- */

/* A program may have closed what it did not open, and the number may be one of its own files now. */
static bool bell_is_there(void)
{
    struct stat now;
    return bell.st_ino && !fstat(job->bell, &now) && now.st_ino == bell.st_ino && now.st_dev == bell.st_dev;
}

/* Has the launcher look at the card of a rank. A full bell rings already. */
static int tell_launcher(uint32_t rank)
{
    ssize_t n;
    /* release: pairs with the launcher's acquire, after which it looks at the card's state */
    atomic_fetch_or_explicit(&job_wanted(job)[rank / 64], (uint64_t)1 << rank % 64, memory_order_release);
    if (!bell_is_there())
        return err_set(TERN_ERR_SYSTEM, "the descriptor %d, which leads to the launcher, is not open any more: the address of rank %u cannot be asked for (does the program close descriptors that it did not open?)",
                       job->bell, rank);
    do n = write(job->bell, "", 1);
    while (n < 0 && errno == EINTR);
    return n < 0 && errno != EAGAIN ? err_sys("cannot ask the launcher for the address of rank %u", rank) : 0;
}

static int native_card_put(const void *card, size_t len)
{
    struct job_card *c = &job_cards(job)[my_rank];
    if (len > sizeof c->data) return err_set(TERN_ERR_INTERN, "card of %zu bytes does not fit", len);
    memcpy(c->data, card, len);
    c->len = (uint32_t)len;
    /* release: pairs with the acquire in await_card (and the launcher's), after which data and len are read */
    uint32_t before = atomic_exchange_explicit(&c->state, JOB_CARD_HERE, memory_order_release);
    futex_wake_all(&c->state);
    return before == JOB_CARD_WANTED ? tell_launcher(my_rank) : 0;
}

/* Has it fetched, if it does not come by itself and nobody has asked for it yet. */
static int want_card(struct job_card *c, uint32_t rank)
{
    uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire), empty = JOB_CARD_EMPTY;
    bool ask = state == JOB_CARD_EMPTY && job->bell && job_places(job)[rank].node != job->node &&
               atomic_compare_exchange_strong_explicit(&c->state, &empty, JOB_CARD_WANTED, memory_order_relaxed,
                                                       memory_order_relaxed);
    return ask ? tell_launcher(rank) : 0;
}

static int await_card(struct job_card *c, uint32_t rank)
{
    uint32_t state;
    int rc = want_card(c, rank);
    if (rc) return rc;
    while ((state = atomic_load_explicit(&c->state, memory_order_acquire)) != JOB_CARD_HERE) futex_sleep(&c->state, state, 0);
    return 0;
}

static int native_card_get(uint32_t rank, void *buf, size_t cap)
{
    if (rank >= job->size) return err_set(TERN_ERR_RANK, "the job has no rank %u", rank);
    struct job_card *c = &job_cards(job)[rank];
    int rc = await_card(c, rank);
    if (rc) return rc;
    if (c->len > cap || c->len > sizeof c->data)
        return err_set(TERN_ERR_INTERN, "the card of rank %u has %u bytes", rank, c->len);
    memcpy(buf, c->data, c->len);
    return (int)c->len;
}

static bool native_card_there(uint32_t rank)
{
    struct job_card *c = &job_cards(job)[rank];
    return !want_card(c, rank) && atomic_load_explicit(&c->state, memory_order_acquire) == JOB_CARD_HERE;
}

static uint32_t native_node_of(uint32_t rank) { return job_places(job)[rank].node; }

static void native_seat_of(uint32_t rank, struct proc_seat *seat)
{
    const struct job_place *p = &job_places(job)[rank];
    *seat = (struct proc_seat){.local_rank = p->local_rank, .l3 = p->l3, .numa = p->numa};
}

static int native_secret(uint8_t key[32])
{
    memcpy(key, job->secret, sizeof job->secret);
    return 0;
}

static bool native_abort(int code, const char *words)
{
    (void)words;
    uint32_t none = 0;
    /* relaxed: the launcher looks at it after it has reaped this process */
    return atomic_compare_exchange_strong_explicit(&job->aborted, &none, 1 + ((uint32_t)code & 0xff),
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void native_state(int state)
{
    /* release: pairs with the launcher's acquire after it reaped this process */
    atomic_store_explicit(&job_cards(job)[my_rank].life, (uint32_t)state, memory_order_release);
}

/* The name of the set of program `app`, "" for none. */
static const char *pset_of(uint32_t app)
{
    const char *at = job_psets(job), *end = at + job->pset_bytes;
    while (at < end && app--) at += strlen(at) + 1;
    return at < end ? at : "";
}

static int native_psets(void (*each)(void *arg, const char *name), void *arg)
{
    const char *at = job_psets(job), *end = at + job->pset_bytes;
    for (; at < end; at += strlen(at) + 1)
        if (*at) each(arg, at);
    return 0;
}

static int native_pset_ranks(const char *name, uint32_t *ranks)
{
    int n = 0;
    if (!*name) return TERN_ERR_NOT_FOUND;
    const char *of_app = "";
    for (uint32_t r = 0, app = UINT32_MAX; r < job->size; r++) {
        if (job_places(job)[r].appnum != app) of_app = pset_of(app = job_places(job)[r].appnum);
        if (!strcmp(of_app, name)) ranks[n++] = r;
    }
    return n ? n : TERN_ERR_NOT_FOUND;
}

static void native_close(void)
{
    if (job) munmap(job, job->bytes);
    job = NULL;
}

const struct proc_boot proc_native = {
    .name = "native",
    .open = native_open,
    .card_put = native_card_put,
    .card_get = native_card_get,
    .card_there = native_card_there,
    .node_of = native_node_of,
    .seat_of = native_seat_of,
    .secret = native_secret,
    .abort = native_abort,
    .state = native_state,
    .psets = native_psets,
    .pset_ranks = native_pset_ranks,
    .close = native_close,
};
