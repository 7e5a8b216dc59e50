/* proc.c - chooses the bootstrap and holds what it found out. */
#include "proc/proc.h"
#include "base/err.h"
#include "base/sleep.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/machine.h"
#include "proc/module.h"
#include "proc/stray.h"
#include "proc/usable.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct proc_info self;
static const struct proc_boot *boot;

long proc_env_number(const char *name)
{
    const char *s = getenv(name);
    char *end;
    if (!s || *s < '0' || *s > '9') return -1;
    long n = strtol(s, &end, 10);
    return *end ? -1 : n;
}

static const struct proc_boot *pmix_module(void)
{
    const struct proc_boot *b = module_load("pmix", PROC_BOOT_SYMBOL);
    if (b) *b->fail = err_set;
    if (b && b->ring) *b->ring = bell_ring_name;
    return b;
}

/* Under launchers of others the bootstrap does not know. For tests: TERN_TEST_CPUS=N, and ranks share N cpus, so that a small machine
 * goes the ways of a large one, or of one that has too few. */
static void count_cpus(const struct proc_boot *b)
{
    long wanted = proc_env_number("TERN_TEST_CPUS");
    if (b == &proc_single) self.usable_cpus = usable_here();
    else if (!self.usable_cpus) self.usable_cpus = usable_by_launcher(&self.bound);
    if (wanted > 0) self.usable_cpus = (uint32_t)wanted;
    self.oversubscribed = self.local_size > self.usable_cpus;
}

static int try_boot(const struct proc_boot *b)
{
    memset(&self, 0, sizeof self);
    int rc = b->open(&self);
    if (rc) return rc;
    boot = b;
    self.bootstrap = b->name;
    count_cpus(b);
    jobs_open(self.job, self.rank, self.size);
    return 0;
}

static bool under_pmix(void) { return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK"); }

/* The launchers of others, in the order of how much they tell. */
static int try_others(const char *want, bool any)
{
    if ((any && under_pmix()) || !strcmp(want, "pmix")) {
        const struct proc_boot *b = pmix_module();
        return b ? try_boot(b) : TERN_ERR_SYSTEM; /* a launcher waits for us: running alone would be wrong */
    }
    if (any && pmi_guess()) return try_boot(pmi_guess());
    if (!strcmp(want, proc_pmi2.name)) return try_boot(&proc_pmi2);
    if (!strcmp(want, proc_pmi1.name)) return try_boot(&proc_pmi1);
    return TERN_ERR_NOT_FOUND;
}

static int try_single(void)
{
    int rc = stray_check();
    return rc ? rc : try_boot(&proc_single);
}

int proc_open(void)
{
    const char *want = var_text(VAR_BOOTSTRAP);
    bool any = !strcmp(want, "auto");
    int rc = TERN_ERR_NOT_FOUND;
    if (any || !strcmp(want, proc_native.name)) rc = try_boot(&proc_native);
    if (rc == TERN_ERR_NOT_FOUND) rc = try_others(want, any);
    if (rc == TERN_ERR_NOT_FOUND && any) rc = try_single();
    if (!strcmp(want, proc_single.name)) rc = try_boot(&proc_single);
    if (rc == TERN_ERR_NOT_FOUND) err_set(rc, "TERN_BOOTSTRAP=%s: no launcher of that kind started this process", want);
    return rc;
}

void proc_close(void)
{
    if (boot) boot->close();
    boot = NULL;
    jobs_close();
    machine_close();
}

const struct proc_info *proc_self(void) { return &self; }
const struct proc_boot *proc_booted(void) { return boot; }
int proc_card_put(const void *card, size_t len) { return boot->card_put(card, len); }
int proc_card_get(uint32_t rank, void *buf, size_t cap) { return boot->card_get(rank, buf, cap); }
bool proc_never_came(uint32_t rank) { return boot->never_came && boot->never_came(rank); }
bool proc_card_there(uint32_t rank) { return boot->card_there && boot->card_there(rank); }
uint32_t proc_node_of(uint32_t rank) { return boot->node_of(rank); }

bool proc_seat_of(uint32_t rank, struct proc_seat *seat)
{
    if (boot->seat_of) boot->seat_of(rank, seat);
    return boot->seat_of != NULL;
}
int proc_secret(uint8_t key[32]) { return boot->secret(key); }

const struct proc_shared *proc_shared(void) { return boot->shared ? boot->shared() : NULL; }

int proc_psets(void (*each)(void *arg, const char *name), void *arg) { return boot->psets ? boot->psets(each, arg) : 0; }

int proc_pset_ranks(const char *name, uint32_t *ranks)
{
    return boot->pset_ranks ? boot->pset_ranks(name, ranks) : TERN_ERR_NOT_FOUND;
}

void proc_state(int state)
{
    if (boot) boot->state(state);
}

void proc_leave(void)
{
    if (boot && boot->leave) boot->leave();
}

static struct proc_deaths told_deaths(void)
{
    return boot && boot->deaths ? boot->deaths() : (struct proc_deaths){NULL, NULL, false};
}

bool proc_tells_deaths(void) { return told_deaths().sure; }

struct proc_deaths proc_deaths(void)
{
    static const _Atomic uint32_t none;
    struct proc_deaths d = told_deaths();
    return d.count ? d : (struct proc_deaths){&none, &none, false};
}

bool proc_has_died(uint32_t rank)
{
    struct proc_deaths d = proc_deaths();
    uint32_t n = atomic_load_explicit(d.count, memory_order_acquire), i = 0; /* pairs with whoever tells */
    while (i < n && atomic_load_explicit(&d.rank[i], memory_order_relaxed) != rank) i++;
    return i < n;
}

void proc_bell(uint64_t place, uint64_t name)
{
    if (boot && boot->bell) boot->bell(place, name);
}

/* The rank that was lost last, plus 1; 0: none. Relaxed: a thread that fails by a loss has noted it, or has been told
 * by the one that did. */
static _Atomic uint32_t lost;

void proc_note_loss(uint32_t rank) { atomic_store_explicit(&lost, rank + 1, memory_order_relaxed); }

void proc_await_end(void)
{
    uint32_t rank = atomic_load_explicit(&lost, memory_order_relaxed);
    if (rank && boot && boot->await_end) boot->await_end(rank - 1);
}

static void say(const char *words) { fprintf(stderr, "tern: %s\n", words); }

#define LET_OUT_MS 200

/* Waits until the launcher has read what this process has written to one of its pipes, for a moment at most. */
static void let_out(int fd)
{
    struct stat st;
    int unread;
    if (fstat(fd, &st) || !S_ISFIFO(st.st_mode)) return;
    for (int ms = 0; ms < LET_OUT_MS && !ioctl(fd, FIONREAD, &unread) && unread > 0; ms++) usleep(1000);
}

void proc_abort_by(const struct proc_boot *b, int code, const char *words)
{
    bool mute = b && b->mute && b->mute();
    fflush(NULL);
    if (mute) {
        say(words);
        let_out(STDOUT_FILENO);
        let_out(STDERR_FILENO);
    }
    bool first = !b || b->abort(code, words);
    if (first && !mute) say(words);
    if (first && b && b->aborted) b->aborted(code);
    _exit(code & 0xff ? code & 0xff : 1);
}

void proc_abort(int code, const char *words) { proc_abort_by(boot, code, words); }
