/*
 * single.c - bootstrap of a process started alone: a job of one rank.
 *
 * When it needs a launcher, it starts one (own_launcher.h), and is from then on to that one what a rank is: it has a job
 * block, with its card and its state, and asks by the socket that is named there (channel.h). But its shared memory is
 * older than the launcher, so others do not get it from there.
 */
#include "base/err.h"
#include "base/sleep.h"
#include "proc/channel.h"
#include "proc/job_map.h"
#include "proc/native_dynamic.h"
#include "proc/own_launcher.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static char own_card[512];
static size_t own_len;
static char own_job[64];

/* The launcher. */
static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct job_head *job; /* NULL: it has not been started */
    int line;             /* it sees by this that we have gone */
    int state;            /* enum job_life, also before the start */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .line = -1};

static int single_open(struct proc_info *p)
{
    uint64_t random = 0; /* the number of the process may be another one's elsewhere */
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = 0;
    snprintf(own_job, sizeof own_job, "single.%d.%016llx", (int)getpid(), (unsigned long long)random);
    strcpy(p->job, own_job);
    p->appnum = PROC_NO_APPNUM;
    p->size = p->local_size = p->nodes = 1;
    return 0;
}

static int single_card_put(const void *card, size_t len)
{
    static_assert(sizeof own_card >= JOB_CARD_MAX, "a card has room");
    if (len > JOB_CARD_MAX) return err_set(TERN_ERR_INTERN, "card of %zu bytes does not fit", len);
    memcpy(own_card, card, len);
    own_len = len;
    return 0;
}

static int single_card_get(uint32_t rank, void *buf, size_t cap)
{
    if (rank || own_len > cap) return err_set(TERN_ERR_RANK, "a process started alone has no rank %u", rank);
    memcpy(buf, own_card, own_len);
    return (int)own_len;
}

static uint32_t single_node_of(uint32_t rank)
{
    (void)rank;
    return 0;
}

/* Nobody else has it. */
static int single_secret(uint8_t key[32])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint8_t secret[32];
    static bool made;
    pthread_mutex_lock(&lock);
    if (!made) made = getrandom(secret, sizeof secret, 0) == sizeof secret;
    int rc = made ? 0 : err_sys("no random numbers for the job's secret");
    memcpy(key, secret, sizeof secret);
    pthread_mutex_unlock(&lock);
    return rc;
}

static bool single_abort(int code, const char *words)
{
    (void)code;
    (void)words;
    return true;
}

/* ---- the launcher ---- */

/* With the lock. */
static void write_state(void)
{
    /* release: pairs with the launcher's acquire after the end of this process, or of the line */
    if (self.job) atomic_store_explicit(&job_cards(self.job)[0].life, (uint32_t)self.state, memory_order_release);
}

static void write_card(struct job_card *c)
{
    memcpy(c->data, own_card, own_len);
    c->len = (uint32_t)own_len;
    /* release: pairs with the launcher's acquire, after which data and len are read */
    atomic_store_explicit(&c->state, JOB_CARD_HERE, memory_order_release);
    futex_wake_all(&c->state);
}

/* With the lock. */
static int start_launcher(void)
{
    int line, block, rc = own_launcher_start(own_job, &line, &block);
    if (rc) return rc;
    rc = job_map(block, "mpiexec", 0, &self.job);
    close(block);
    if (rc) {
        close(line);
        return rc;
    }
    self.line = line;
    write_card(&job_cards(self.job)[0]);
    write_state();
    channel_open(self.job, 0);
    return 0;
}

static int single_start_launcher(void)
{
    pthread_mutex_lock(&self.lock);
    int rc = self.job ? 0 : start_launcher();
    pthread_mutex_unlock(&self.lock);
    return rc;
}

static void single_state(int state)
{
    pthread_mutex_lock(&self.lock);
    self.state = state;
    write_state();
    pthread_mutex_unlock(&self.lock);
}

static void single_close(void)
{
    native_events_close();
    channel_close();
    pthread_mutex_lock(&self.lock);
    if (self.job) {
        job_unmap(self.job);
        close(self.line);
    }
    self.job = NULL;
    pthread_mutex_unlock(&self.lock);
}

const struct proc_boot proc_single = {
    .name = "single",
    .open = single_open,
    .card_put = single_card_put,
    .card_get = single_card_get,
    .node_of = single_node_of,
    .secret = single_secret,
    .abort = single_abort,
    .state = single_state,
    .dynamic = &native_dynamic,
    .start_launcher = single_start_launcher,
    .close = single_close,
};
