/* party.c - see party.h. */
#include "party.h"
#include "../seed.h"
#include "base/err.h"
#include "base/sleep.h"
#include "base/var.h"
#include "proc/job_block.h"
#include "proc/proc.h"
#include "proc/usable.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct party *party;
uint32_t party_rank, party_job;

bool party_failed(const char *file, int line, const char *cond)
{
    const char *base = strrchr(file, '/');
    fprintf(stderr, "# %s:%d: rank %u of job %u: not true: %s (last words: %s)\n", base ? base + 1 : file, line, party_rank, party_job, cond,
            err_words());
    return false;
}

static void name_job(char *name, size_t n, uint32_t job) { snprintf(name, n, "party%u.%d", job, (int)getpgrp()); }

/* A job block on one node, as the launcher makes it; its descriptor. */
static int make_block(uint32_t job, uint32_t n)
{
    uint64_t place_off, card_off, bytes = job_layout(n, &place_off, &card_off);
    int fd = memfd_create("tern-test-job", 0);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) return -1;
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (h == MAP_FAILED) return -1;
    h->magic = JOB_MAGIC;
    atomic_store_explicit(&h->socket_state, JOB_SOCKET_CLOSED, memory_order_relaxed); /* there is no launcher */
    h->version = JOB_VERSION;
    h->bytes = bytes;
    h->size = h->local_size = n;
    h->nodes = 1;
    h->usable_cpus = usable_here();
    h->place_off = place_off;
    h->card_off = card_off;
    name_job(h->name, sizeof h->name, job);
    for (size_t i = 0; i < sizeof h->secret; i++) h->secret[i] = (uint8_t)(7 * i + 1 + job);
    for (uint32_t r = 0; r < n; r++) job_places(h)[r] = (struct job_place){.local_rank = r, .l3 = -1, .numa = -1};
    munmap(h, bytes);
    return fd;
}

/* The modules lie where they were built. */
static void find_modules(void)
{
    char dir[4096];
    const char *top = getenv("top_builddir");
    snprintf(dir, sizeof dir, "%s/lib/tern", top ? top : ".");
    setenv("TERN_MODULE_DIR", dir, 1);
    snprintf(dir, sizeof dir, "%s/test/wire/.libs", top ? top : ".");
    setenv("TERN_MODULE_PATH", dir, 1);
}

static void be_member(uint32_t job, uint32_t rank, int fd, bool (*member)(void))
{
    char text[16];
    party_job = job;
    party_rank = rank;
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    snprintf(text, sizeof text, "%u", rank);
    setenv(JOB_ENV_RANK, text, 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    find_modules();
    alarm(60);
    bool good = member();
    if (good && peer_table) {
        party_meet();
        peers_close();
        proc_close();
        var_close();
    }
    exit(good ? 0 : 1);
}

/* Waits for the members; when one fails the others go too. */
static bool gather(uint32_t n, const pid_t pid[])
{
    bool good = true;
    for (uint32_t left = n; left; left--) {
        int status = 0;
        pid_t who = wait(&status);
        bool well = who > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (well || !good) continue;
        good = false;
        if (WIFSIGNALED(status)) fprintf(stderr, "# a member died of signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
        for (uint32_t i = 0; i < n; i++)
            if (pid[i] != who) kill(pid[i], SIGKILL);
    }
    return good;
}

/* Starts the members of one job; false: nothing was started. */
static bool start_job(uint32_t job, uint32_t n, bool (*member)(void), pid_t *pid)
{
    int fd = make_block(job, n);
    if (fd < 0) return false;
    fflush(NULL);
    for (uint32_t r = 0; r < n; r++) {
        pid[r] = fork();
        if (!pid[r]) be_member(job, r, fd, member);
    }
    close(fd);
    return true;
}

bool party_run_two(const uint32_t n[2], bool (*member)(void))
{
    pid_t pid[2 * PARTY_MAX];
    if (n[0] > PARTY_MAX || n[1] > PARTY_MAX) return false;
    party = mmap(NULL, sizeof *party, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (party == MAP_FAILED) return false;
    party->size = n[0] + n[1];
    memcpy(party->job_size, n, sizeof party->job_size);
    bool good = start_job(0, n[0], member, pid) && (!n[1] || start_job(1, n[1], member, pid + n[0]));
    good = good && gather(party->size, pid);
    munmap(party, sizeof *party);
    return good;
}

bool party_run(uint32_t n, bool (*member)(void)) { return party_run_two((const uint32_t[]){n, 0}, member); }

void party_put_card(void)
{
    struct party_card *c = &party->card[party_job][party_rank];
    int n = proc_card_get(party_rank, c->bytes, sizeof c->bytes);
    c->n = n > 0 ? (uint32_t)n : 0;
}

struct job_entry *party_learn(void)
{
    static const uint8_t key[JOBS_KEY] = "of two parties of the tests";
    uint32_t other = 1 - party_job, index;
    char name[64];
    name_job(name, sizeof name, other);
    struct job_entry *job = job_add(name, party->job_size[other], key, NULL);
    bool good = job != NULL;
    for (uint32_t r = 0; r < party->job_size[other] && good; r++)
        good = !peer_add(job, r, party->card[other][r].bytes, party->card[other][r].n, &index);
    if (!good) party_failed(__FILE__, __LINE__, "the other job becomes known");
    return good ? job : NULL;
}

struct job_entry *party_connect(void)
{
    party_put_card();
    party_meet();
    return party_learn();
}

bool party_open(const char *transports)
{
    setenv("TERN_TRANSPORTS", transports, 1);
    PARTY_CHECK(var_open() == 0);
    PARTY_CHECK(proc_open() == 0);
    PARTY_CHECK(peers_open() == 0);
    return true;
}

bool party_takes(tp_handler_fn handler, tp_sink_fn sink)
{
    const struct tp_am number = {AM_NUMBER, "number", handler, sink, false, 0};
    PARTY_CHECK(tp_am_register(&number, 1) == 0);
    return true;
}

void party_meet(void)
{
    uint32_t round = atomic_load(&party->round);
    if (atomic_fetch_add(&party->arrived, 1) + 1 == party->size) {
        atomic_store(&party->arrived, 0);
        atomic_fetch_add(&party->round, 1);
        futex_wake_all(&party->round);
        return;
    }
    while (atomic_load(&party->round) == round) futex_sleep(&party->round, round, 0);
}

void party_look(void)
{
    if (!wires_progress(64)) sched_yield();
}

void party_meet_looking(void)
{
    uint32_t round = atomic_load(&party->round);
    if (atomic_fetch_add(&party->arrived, 1) + 1 == party->size) {
        atomic_store(&party->arrived, 0);
        atomic_fetch_add(&party->round, 1);
        futex_wake_all(&party->round); /* some may be in party_meet */
    }
    while (atomic_load(&party->round) == round) party_look();
}

/* ---- what a member has ---- */

static long lines_of(const char *path)
{
    FILE *f = fopen(path, "re");
    long n = 0;
    for (int c; f && (c = getc(f)) != EOF;) n += c == '\n';
    if (f) fclose(f);
    return n;
}

static struct party_usage usage_now(void)
{
    struct party_usage u = {0, lines_of("/proc/self/maps"), 0};
    FILE *f = fopen("/proc/self/statm", "re");
    long size = 0;
    if (!f || fscanf(f, "%ld %ld", &size, &u.pages) < 2) u.pages = -1;
    if (f) fclose(f);
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) u.files++;
    if (d) closedir(d);
    return u;
}

struct party_usage party_usage_at_rest(void)
{
    party_meet_looking();
    for (int i = 0; i < 2000; i++) party_look();
    usage_now(); /* brings in what it needs itself */
    struct party_usage u = usage_now();
    party_meet_looking();
    return u;
}

uint64_t party_seed(void) { return seed_open(); }

uint64_t party_random(uint64_t *state) { return seed_next(state); }
