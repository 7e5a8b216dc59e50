/* native.c - bootstrap through the job block inherited from Tern's mpiexec (job_block.h). */
#include "base/clock.h"
#include "base/err.h"
#include "base/memfile.h"
#include "base/sleep.h"
#include "proc/channel.h"
#include "proc/inherit.h"
#include "proc/job_map.h"
#include "proc/native_dynamic.h"
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct job_head *job;
static uint32_t my_rank;
static uint32_t my_turn; /* job_card.turns once the card is put: how many processes have been this rank */
static int wanted_pipe;       /* by which the launcher is told of wanted bits, 0: there is none */
static uint64_t wanted_pipe_id;
static struct proc_shared shared; /* fd -1: there is none */

/* The block is kept open for the lock (claim); the library never closes it, which would give the lock up. */
static int open_block(int number, int *fd, int *launcher)
{
    uint64_t id = 0;
    *launcher = 0;
    inherit_source(launcher, &id);
    *fd = inherit_fd(number, id, *launcher);
    if (*fd >= 0) return 0;
    return err_sys("the descriptor %d (%s), by which mpiexec tells this program of its job, is not open, and cannot be "
                   "opened anew at mpiexec (pid %d). The program that started this one has closed it: let it be kept "
                   "(in Python: close_fds=False, or pass_fds=[%d])",
                   number, JOB_ENV_FD, *launcher, number);
}

static void native_close(void)
{
    native_events_close();
    channel_close();
    if (job) job_unmap(job);
    job = NULL;
}

/* Makes this process the rank. The lock goes with the process, however it ends. */
static int claim(int fd, uint32_t rank)
{
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)rank, .l_len = 1}, other = byte;
    if (!fcntl(fd, F_SETLK, &byte) || (errno != EAGAIN && errno != EACCES)) return 0;
    if (fcntl(fd, F_GETLK, &other) || other.l_type == F_UNLCK) other.l_pid = 0;
    return err_set(
        TERN_ERR_SYSTEM,
        "rank %u of this job is the process %d, which still runs, and a rank can be one MPI program at a time: "
        "start this one by `mpiexec -n 1`, or with TERN_BOOTSTRAP=single, as a job of its own",
        rank, (int)other.l_pid);
}

static void open_shared(int launcher)
{
    shared = (struct proc_shared){.fd = job->memory ? inherit_fd(job->memory, job->memory_id, launcher) : -1,
                                  .slot_bytes = JOB_SLOT_BYTES,
                                  .arenas = job->local_size * JOB_SLOT_BYTES,
                                  .arena_bytes = JOB_ARENA_BYTES,
                                  .host = &job->host,
                                  .apart = &job->apart,
                                  .own = job_places(job)[my_rank].local_rank,
                                  .slots = job->local_size,
                                  .fresh = !atomic_load_explicit(&job_cards(job)[my_rank].turns, memory_order_relaxed)};
}

static void open_wanted_pipe(int launcher)
{
    struct stat st;
    wanted_pipe = job->wanted_pipe ? inherit_fd(job->wanted_pipe, job->wanted_pipe_id, launcher) : 0;
    if (wanted_pipe <= 0 || fstat(wanted_pipe, &st) || !S_ISFIFO(st.st_mode)) wanted_pipe = 0;
    wanted_pipe_id = wanted_pipe ? memfile_id_of(wanted_pipe) : 0;
}

static int native_open(struct proc_info *p)
{
    int fd, launcher;
    long number = proc_env_number(JOB_ENV_FD), rank = proc_env_number(JOB_ENV_RANK);
    if (number < 0 || rank < 0) return TERN_ERR_NOT_FOUND;
    int rc = open_block((int)number, &fd, &launcher);
    if (!rc) rc = job_map(fd, JOB_ENV_FD, (uint32_t)rank, &job);
    if (!rc && (rc = claim(fd, (uint32_t)rank))) native_close();
    if (rc) return rc;
    my_rank = (uint32_t)rank;
    my_turn = 0;
    if (job->boot) memfile_boot_is(job->boot);
    open_shared(launcher);
    open_wanted_pipe(launcher);
    channel_open(job, my_rank);
    const struct job_place *me = &job_places(job)[rank];
    snprintf(p->job, sizeof p->job, "%.*s", (int)sizeof job->name, job->name);
    snprintf(p->parent, sizeof p->parent, "%.*s", (int)sizeof job->parent, job->parent);
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
    p->launcher = inherit_is_at(launcher, (int)number, fd) ? launcher : 0;
    return 0;
}

/* ---- cards ---- */

/* A program may have closed what it did not open, and the number may be one of its own files now. */
static bool wanted_pipe_is_there(void) { return wanted_pipe && memfile_id_of(wanted_pipe) == wanted_pipe_id; }

/* In a job of one node, which has no pipe of wanted cards: only other jobs want cards by the launcher. */
static int ask_to_look(void)
{
    struct channel_answer a;
    int rc = channel_ask(ASK_LOOK, &(struct ask_out){0}, -1, &a);
    free(a.bytes);
    return rc;
}

/* Has the launcher look at the card of a rank. A full pipe has told it already. */
static int tell_launcher(uint32_t rank)
{
    ssize_t n;
    /* release: pairs with the launcher's acquire, after which it looks at the card's state */
    atomic_fetch_or_explicit(&job_wanted(job)[rank / 64], (uint64_t)1 << rank % 64, memory_order_release);
    if (!job->wanted_pipe) return ask_to_look();
    if (!wanted_pipe_is_there())
        return err_set(TERN_ERR_SYSTEM,
                       "the descriptor %d, which leads to the launcher, is not open any more: the address of rank %u "
                       "cannot be asked for (does the program close descriptors that it did not open?)",
                       job->wanted_pipe, rank);
    do n = write(wanted_pipe, "", 1);
    while (n < 0 && errno == EINTR);
    return n < 0 && errno != EAGAIN ? err_sys("cannot ask the launcher for the address of rank %u", rank) : 0;
}

/* From here on the card of the process that was this rank before is not valid any more. */
static void take_turn(struct job_card *c)
{
    uint32_t here = JOB_CARD_HERE;
    atomic_compare_exchange_strong_explicit(&c->state, &here, JOB_CARD_EMPTY, memory_order_relaxed,
                                            memory_order_relaxed);
    /* release: who sees the new turn does not take the old card for it (acquire in card_is_there) */
    my_turn = 1 + atomic_fetch_add_explicit(&c->turns, 1, memory_order_release);
}

static int native_card_put(const void *card, size_t len)
{
    struct job_card *c = &job_cards(job)[my_rank];
    if (len > sizeof c->data) return err_set(TERN_ERR_INTERN, "card of %zu bytes does not fit", len);
    take_turn(c);
    memcpy(c->data, card, len);
    c->len = (uint32_t)len;
    /* release: pairs with the acquire in await_card (and the launcher's), after which data and len are read */
    uint32_t before = atomic_exchange_explicit(&c->state, JOB_CARD_HERE, memory_order_release);
    futex_wake_all(&c->state);
    return before == JOB_CARD_WANTED ? tell_launcher(my_rank) : 0;
}

/* Has it fetched, if it does not come by itself and the launcher has not asked for it yet. Other ranks may have told the
 * launcher before; but one that has died may have been killed just before its byte was in the pipe. */
static int want_card(struct job_card *c, uint32_t rank)
{
    bool ask = atomic_load_explicit(&c->state, memory_order_relaxed) == JOB_CARD_EMPTY && job->wanted_pipe &&
               job_places(job)[rank].node != job->node;
    return ask ? tell_launcher(rank) : 0;
}

/* Of another node the launcher brings what it has. */
static bool is_local(uint32_t rank) { return job_places(job)[rank].node == job->node; }

/* Is the card there, of a process that is its rank in the same turn as this one, or in a later one? */
static bool card_is_there(const struct job_card *c, uint32_t rank, uint32_t *state)
{
    uint32_t turns = atomic_load_explicit(&c->turns, memory_order_acquire); /* pairs with take_turn */
    *state = atomic_load_explicit(&c->state, memory_order_acquire);
    return *state == JOB_CARD_HERE && (my_turn < 2 || turns >= my_turn || !is_local(rank));
}

/* When a rank ends, the launcher wakes those who wait for its card. One that was just about to wait looks again then. */
#define AWAIT_NS 1000000000u

static bool has_ended(const struct job_card *c)
{
    return atomic_load_explicit(&c->life, memory_order_acquire) & JOB_ENDED;
}

static int await_card(struct job_card *c, uint32_t rank)
{
    uint32_t state;
    int rc = want_card(c, rank);
    if (rc) return rc;
    while (!card_is_there(c, rank, &state)) {
        if (has_ended(c) && !card_is_there(c, rank, &state))
            return err_set(TERN_ERR_PEER, "rank %u of the job has ended without %s MPI_Init", rank,
                           my_turn > 1 ? "another" : "calling");
        futex_sleep(&c->state, state, AWAIT_NS);
    }
    if (my_turn && is_local(rank) && atomic_load_explicit(&c->turns, memory_order_relaxed) > my_turn)
        return err_set(TERN_ERR_PEER, "rank %u of the job has ended, and runs another MPI program now", rank);
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
    uint32_t state;
    struct job_card *c = &job_cards(job)[rank];
    return has_ended(c) || (!want_card(c, rank) && card_is_there(c, rank, &state));
}

static bool native_never_came(uint32_t rank)
{
    uint32_t state;
    const struct job_card *c = &job_cards(job)[rank];
    return has_ended(c) && !card_is_there(c, rank, &state);
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

#define END_MOST_NS UINT64_C(1500000000)

#define NOBODY UINT32_MAX

/* Until somebody has aborted the job, or `lost` is known to have died, or for so long at most. */
static void await_abort(uint32_t lost)
{
    uint64_t start = clock_ns(), waited;
    while (!atomic_load_explicit(&job->aborted, memory_order_relaxed) && !proc_has_died(lost) &&
           (waited = clock_ns() - start) < END_MOST_NS)
        futex_sleep(&job->aborted, 0, END_MOST_NS - waited);
}

/* A rank that ends while another one prints the message would make the launcher end that one, too. If nothing comes of that, as
 * nobody reads the message or the first rank has died, the job is this one's to end. relaxed: see native_aborted. */
static bool native_abort(int code, const char *words)
{
    uint32_t none = 0;
    (void)code, (void)words;
    bool first = atomic_compare_exchange_strong_explicit(&job->aborting, &none, 1, memory_order_relaxed, memory_order_relaxed);
    if (!first) await_abort(NOBODY);
    return !atomic_load_explicit(&job->aborted, memory_order_relaxed);
}

/* relaxed: the launcher looks at it after it has reaped a process */
static void native_aborted(int code)
{
    uint32_t none = 0, ended = 1 + ((uint32_t)code & 0xff);
    atomic_compare_exchange_strong_explicit(&job->aborted, &none, ended, memory_order_relaxed, memory_order_relaxed);
    futex_wake_all(&job->aborted);
}

/* A rank that has finalised may end as it likes; the launcher adds JOB_ENDED when it does. */
static bool has_finalised(const struct job_card *c)
{
    /* acquire: pairs with the release in native_state of that process */
    return (atomic_load_explicit(&c->life, memory_order_acquire) & ~JOB_ENDED) == JOB_LIFE_FINALISED;
}

/* The launcher learns of a death when the parent of the dead process does, and sets `aborted` before it ends anybody. The limit is for
 * what is no death: a connection that broke between processes that live, or a launcher that is stopped. */
static void native_await_end(uint32_t lost)
{
    if (lost < job->size && has_finalised(&job_cards(job)[lost])) return;
    await_abort(lost);
}

static struct proc_deaths native_deaths(void) { return (struct proc_deaths){&job->deaths, job_died(job), true}; }

static void native_bell(uint64_t place, uint64_t name)
{
    struct job_bell *b = &job_bells(job)[job_places(job)[my_rank].local_rank];
    atomic_store_explicit(&b->name, name, memory_order_relaxed);
    atomic_store_explicit(&b->place, place, memory_order_release); /* pairs with the launcher's acquire (block.c) */
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

static const struct proc_shared *native_shared(void) { return shared.fd >= 0 ? &shared : NULL; }

const struct proc_boot proc_native = {
    .name = "native",
    .open = native_open,
    .card_put = native_card_put,
    .card_get = native_card_get,
    .card_there = native_card_there,
    .never_came = native_never_came,
    .node_of = native_node_of,
    .seat_of = native_seat_of,
    .secret = native_secret,
    .shared = native_shared,
    .abort = native_abort,
    .aborted = native_aborted,
    .await_end = native_await_end,
    .deaths = native_deaths,
    .bell = native_bell,
    .state = native_state,
    .psets = native_psets,
    .pset_ranks = native_pset_ranks,
    .dynamic = &native_dynamic,
    .close = native_close,
};
