/*
 * dynamic_rank.c - a rank that asks its launcher what dynamic processes need (src/proc/dynamic.h), without MPI:
 *   dynamic_rank names         each rank publishes names, looks up those of the others, and takes its own back
 *   dynamic_rank odd           publishes texts that begin like values that the PMIx server packs (pmix_rank odd)
 *   dynamic_rank waiting       rank 0 waits for a name that the last rank publishes later; then one that nobody does
 *   dynamic_rank threads       lookups that wait in several threads, while the main one publishes
 *   dynamic_rank cards         the cards of all ranks by the launcher, asked for before they are there
 *   dynamic_rank connect       connects to its own job, twice
 *   dynamic_rank spawn N       rank 0 spawns N processes, and all are connected; each side gets the other's cards
 *   dynamic_rank child         what it spawns
 *   dynamic_rank files         each rank has a file of memory, which the others get by the launcher; so has a spawned job
 *   dynamic_rank keeper        what it spawns
 *   dynamic_rank parent COMMAND...   rank 0 spawns two processes with this command, and one that is not there
 *   dynamic_rank orphan        prints the name of the job that spawned it
 *   dynamic_rank failures      jobs that cannot be spawned
 *   dynamic_rank start COMMAND...   rank 0 spawns a process with this command, and all end; or if START_WAITS is set,
 *                              call pause(); if START_FAILS is set, exit with code 7. START_INFO is a value of the
 *                              info key START_KEY, tern_failure if that is not set; START_N: so many processes
 *   dynamic_rank watch         rank 0 spawns four processes and watches them: one is killed, one exits with 3, two leave
 *   dynamic_rank victim        what it spawns
 *   dynamic_rank deaths        the last rank is killed, and the others are told
 *   dynamic_rank kin [JOB]     spawns itself, with its own job's name; both are connected
 *   dynamic_rank missing       jobs, ranks and cards that are not there, or not yet
 *   dynamic_rank mute          what it spawns
 *   dynamic_rank rate [N]      how long a question takes, and a job of N that is spawned and ends at once
 *   dynamic_rank quiet         asks nothing: how many sockets are open?
 *   dynamic_rank strangers     connects to the launcher's socket and says what it may not
 *   dynamic_rank unsupported   without a launcher, and without an mpiexec to be started: codes and words
 * Prints "good" as the last line if all is as it should be.
 */
#include "base/err.h"
#include "base/memfile.h"
#include "base/sleep.h"
#include "base/var.h"
#include "proc/ask.h"
#include "proc/dynamic.h"
#include "proc/job_block.h"
#include "proc/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The name and the size of what was spawned; left alone if nothing was. */
static int spawn_job(const struct proc_app *apps, int napps, char job[PROC_NAME_MAX], uint32_t *size)
{
    struct proc_spawned s;
    int rc = proc_spawn(apps, napps, &s);
    if (rc) return rc;
    strcpy(job, s.job);
    *size = s.size;
    return 0;
}

static const struct proc_info *me;

#define CHECK(x)                                                                                                       \
    do                                                                                                                 \
        if (!(x)) {                                                                                                    \
            printf("rank %u: line %d: %s does not hold (%s)\n", me->rank, __LINE__, #x, err_words());                  \
            return false;                                                                                              \
        }                                                                                                              \
    while (0)

/* By PMIx some things have less to say: it has a code where the launcher has words. */
static bool by_pmix(void) { return !strcmp(me->bootstrap, "pmix"); }

static bool says(const char *words) { return strstr(err_words(), words) != NULL; }

/* All ranks come to here before any goes on: by names, each of which one rank publishes. */
static bool meet(const char *where)
{
    char name[320], value[16];
    snprintf(name, sizeof name, "%s %u", where, me->rank);
    CHECK(!proc_publish(name, "here"));
    for (uint32_t r = 0; r < me->size; r++) {
        snprintf(name, sizeof name, "%s %u", where, r);
        CHECK(!proc_lookup(name, 20000, value, sizeof value) && !strcmp(value, "here"));
    }
    return true;
}

static bool names(void)
{
    char name[64], value[PROC_VALUE_MAX], *large = malloc(PROC_VALUE_MAX + 1);
    memset(large, 'v', PROC_VALUE_MAX);
    large[PROC_VALUE_MAX] = 0;
    CHECK(proc_publish("large", large) == TERN_ERR_ARG && proc_publish("", "x") == TERN_ERR_ARG);
    large[PROC_VALUE_MAX - 1] = 0;
    snprintf(name, sizeof name, "name %u", me->rank);
    CHECK(!proc_publish(name, large));
    CHECK(proc_publish(name, "again") == TERN_ERR_DUPLICATE && says("is published already"));
    CHECK(meet("published"));
    for (uint32_t r = 0; r < me->size; r++) {
        snprintf(name, sizeof name, "name %u", r);
        CHECK(!proc_lookup(name, 0, value, sizeof value) && !strcmp(value, large));
        CHECK(proc_lookup(name, 0, value, 8) == TERN_ERR_TRUNCATE);
    }
    CHECK(meet("looked up"));
    snprintf(name, sizeof name, "name %u", me->rank);
    CHECK(!proc_unpublish(name));
    CHECK(proc_lookup(name, 0, value, sizeof value) == TERN_ERR_NOT_FOUND && says("no name"));
    CHECK(proc_unpublish(name) == TERN_ERR_NOT_FOUND);
    CHECK(!proc_publish(name, "") && !proc_lookup(name, 0, value, sizeof value) && !*value);
    CHECK(!proc_unpublish(name) && !proc_publish(name, "\1zz")); /* looks like what the PMIx server packs, and is not */
    CHECK(!proc_lookup(name, 0, value, sizeof value) && !strcmp(value, "\1zz"));
    free(large);
    return true;
}

static bool odd(void)
{
    static const char *const texts[] = {"\1", "\1zz", "\1zzzz", "\1zzzzzzzz", "\1-0-0-0-0", "\1 0 0"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char name[64];
        snprintf(name, sizeof name, "odd %zu", i);
        CHECK(!proc_publish(name, texts[i]));
    }
    return true;
}

static bool waiting(void)
{
    char value[64];
    if (me->rank == me->size - 1) {
        if (me->size > 1) usleep(200000);
        CHECK(!proc_publish("late", "there"));
    }
    CHECK(!proc_lookup("late", -1, value, sizeof value) && !strcmp(value, "there"));
    CHECK(proc_lookup("never", 100, value, sizeof value) == TERN_ERR_NOT_FOUND && says("within 100 ms"));
    return true;
}

static void *look(void *arg)
{
    char name[32], value[64];
    snprintf(name, sizeof name, "thread %d", *(int *)arg);
    return proc_lookup(name, -1, value, sizeof value) || strcmp(value, name) ? NULL : arg;
}

static bool threads(void)
{
    enum { THREADS = 8 };
    pthread_t t[THREADS];
    int number[THREADS];
    char name[32];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        CHECK(!pthread_create(&t[i], NULL, look, &number[i]));
    }
    for (int i = THREADS - 1; i >= 0 && !me->rank; i--) {
        snprintf(name, sizeof name, "thread %d", i);
        CHECK(!proc_publish(name, name));
    }
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        CHECK(!pthread_join(t[i], &good) && good);
    }
    return true;
}

/* The first rank asks before the others have put their cards; the last one never puts one. */
static bool cards(void)
{
    char card[64], got[512];
    snprintf(card, sizeof card, "card of %u", me->rank);
    if (me->rank && me->rank == me->size - 1) return true;
    if (me->rank) usleep(100000);
    CHECK(!proc_card_put(card, strlen(card) + 1));
    for (uint32_t r = 0; r < me->size; r++) {
        bool last = r && r == me->size - 1;
        int n = proc_job_card(me->job, r, got, sizeof got);
        snprintf(card, sizeof card, "card of %u", r);
        CHECK(last ? n == TERN_ERR_PEER && says("without calling MPI_Init")
                   : n == (int)strlen(card) + 1 && !strcmp(got, card));
    }
    CHECK(proc_job_card(me->job, me->size, got, sizeof got) == TERN_ERR_RANK);
    CHECK(proc_job_card("tern.none", 0, got, sizeof got) == TERN_ERR_NOT_FOUND && says("no job 'tern.none'"));
    return true;
}

static void hex(char *text, const uint8_t key[PROC_KEY])
{
    for (int i = 0; i < PROC_KEY; i++) sprintf(text + 2 * i, "%02x", key[i]);
}

static bool connect_self(void)
{
    static const uint8_t zero[PROC_KEY];
    struct proc_job j = {0};
    char key[2 * PROC_KEY + 1], other[2 * PROC_KEY + 1];
    for (int round = 0; round < 2; round++) {
        char name[16], where[16];
        snprintf(name, sizeof name, "key %d", round);
        snprintf(where, sizeof where, "keys %d", round);
        CHECK(!proc_connect(me->job, &j) && j.size == me->size && memcmp(j.key, zero, sizeof zero));
        hex(key, j.key);
        if (!me->rank) CHECK(!proc_publish(name, key));
        CHECK(!proc_lookup(name, -1, other, sizeof other) && !strcmp(key, other));
        if (round && !by_pmix()) CHECK(!proc_lookup("key 0", 0, other, sizeof other) && strcmp(key, other));
        CHECK(meet(where));
        CHECK(!proc_disconnect(me->job));
        CHECK(proc_disconnect(me->job) == TERN_ERR_NOT_FOUND && says("not connected"));
        where[0] = 'K';
        CHECK(meet(where));
    }
    CHECK(proc_connect("tern.none", &j) == TERN_ERR_NOT_FOUND);
    return true;
}

/* ---- spawning ---- */

static char *program, *argument;

static bool put_card(void)
{
    char card[320];
    snprintf(card, sizeof card, "card of %u of %s", me->rank, me->job);
    CHECK(!proc_card_put(card, strlen(card) + 1));
    return true;
}

/* The cards of all ranks of a job are those that their owners have put. */
static bool cards_of(const char *job, uint32_t size)
{
    char card[320], got[512];
    for (uint32_t r = 0; r < size; r++) {
        snprintf(card, sizeof card, "card of %u of %s", r, job);
        CHECK(proc_job_card(job, r, got, sizeof got) == (int)strlen(card) + 1 && !strcmp(got, card));
    }
    return true;
}

/* A job of two: the first puts its card late, the second never. */
static bool mute(void)
{
    char value[16];
    if (me->rank) return true;
    usleep(300000);
    CHECK(put_card());
    CHECK(!proc_lookup("heard", 20000, value, sizeof value));
    return true;
}

static bool await_job(const char *job);

static bool missing(void)
{
    const char *argv[] = {program, "mute", NULL};
    char job[PROC_NAME_MAX], card[320], got[512] = "untouched";
    struct proc_job j = {.size = 77};
    uint32_t size;
    CHECK(put_card());
    CHECK(proc_connect("tern.none", &j) == TERN_ERR_NOT_FOUND && says("there is no job 'tern.none'") && j.size == 77);
    CHECK(proc_job_card("tern.none", 0, got, sizeof got) == TERN_ERR_NOT_FOUND && says("no job 'tern.none'"));
    CHECK(proc_disconnect("tern.none") == TERN_ERR_NOT_FOUND && says("not connected"));
    CHECK(!spawn_job(&(struct proc_app){.n = 2, .argv = argv}, 1, job, &size) && size == 2);
    CHECK(proc_job_card(job, 2, got, sizeof got) == TERN_ERR_RANK && says("has no rank 2"));
    CHECK(proc_job_card(job, 1, got, sizeof got) == TERN_ERR_PEER && says("without calling MPI_Init"));
    CHECK(!strcmp(got, "untouched"));
    snprintf(card, sizeof card, "card of 0 of %s", job);
    CHECK(proc_job_card(job, 0, got, sizeof got) == (int)strlen(card) + 1 && !strcmp(got, card)); /* waits for it */
    CHECK(!proc_publish("heard", ""));
    CHECK(await_job(job));
    CHECK(proc_connect(job, &j) == TERN_ERR_NOT_FOUND && j.size == 77);
    return true;
}

/* Sleeps by the descriptor, or by the word. Milliseconds; -1: nothing came within 5 s. */
static int await_event(struct proc_event *e, bool by_word)
{
    struct proc_signal s;
    struct timespec from, to;
    proc_event_signal(&s);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 50; i++) {
        uint32_t word = atomic_load(s.word);
        int rc = proc_event(e);
        clock_gettime(CLOCK_MONOTONIC, &to);
        if (rc) return rc < 0 ? -1 : (int)((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
        if (by_word)
            futex_sleep(s.word, word, 1000000000);
        else
            poll(&(struct pollfd){.fd = s.fd, .events = POLLIN}, 1, 1000);
    }
    return -1;
}

static bool await_job(const char *job)
{
    struct proc_event e = {0};
    CHECK(!proc_watch(job));
    while (!e.ended) CHECK(await_event(&e, false) >= 0);
    return true;
}

/* By both sides: connected by the same key, which is published under the name of the side that says it. */
static bool connect_both(const char *other, uint32_t size, const char *mine, const char *theirs)
{
    char own[2 * PROC_KEY + 1], key[2 * PROC_KEY + 1], name[320];
    struct proc_job j;
    CHECK(!proc_connect(other, &j) && j.size == size);
    hex(own, j.key);
    snprintf(name, sizeof name, "%s of %s", mine, mine[0] == 'p' ? other : me->job);
    if (!me->rank) CHECK(!proc_publish(name, own));
    snprintf(name, sizeof name, "%s of %s", theirs, mine[0] == 'p' ? other : me->job);
    CHECK(!proc_lookup(name, 20000, key, sizeof key) && !strcmp(key, own));
    CHECK(cards_of(other, size));
    return true;
}

static bool child(void)
{
    char value[64], name[320];
    uint32_t size;
    CHECK(*me->parent && strcmp(me->parent, me->job) && getenv("GIVEN") && !strcmp(getenv("GIVEN"), "a value: x"));
    CHECK(put_card());
    snprintf(name, sizeof name, "size of %s", me->parent);
    CHECK(!proc_lookup(name, 20000, value, sizeof value));
    size = (uint32_t)atoi(value);
    CHECK(connect_both(me->parent, size, "child", "parent"));
    CHECK(meet(me->job));
    snprintf(name, sizeof name, "done with %s", me->job);
    CHECK(!proc_lookup(name, 20000, value, sizeof value));
    CHECK(!proc_disconnect(me->parent));
    return true;
}

static bool spawn(void)
{
    const char *argv[] = {program, "child", NULL}, *env[] = {"GIVEN=a value: x", NULL},
               *info[] = {"meaning", "nothing", NULL};
    struct proc_app app = {.n = (uint32_t)atoi(argument), .argv = argv, .env = env, .info = info};
    char job[PROC_NAME_MAX], name[320], value[16];
    uint32_t size;
    CHECK(!*me->parent && put_card());
    snprintf(value, sizeof value, "%u", me->size);
    snprintf(name, sizeof name, "size of %s", me->job);
    if (me->rank) {
        CHECK(!proc_lookup("spawned", 20000, job, sizeof job));
        size = app.n;
    } else {
        CHECK(!proc_publish(name, value));
        CHECK(!spawn_job(&app, 1, job, &size) && size == app.n && strcmp(job, me->job));
        CHECK(!proc_publish("spawned", job));
    }
    CHECK(connect_both(job, size, "parent", "child"));
    CHECK(meet("all connected"));
    snprintf(name, sizeof name, "done with %s", job);
    if (!me->rank) CHECK(!proc_publish(name, ""));
    int rc = proc_disconnect(job);
    CHECK(!rc || rc == TERN_ERR_NOT_FOUND); /* it may have ended by now */
    return await_job(job);                  /* with this job its names would go, which the other one still needs */
}

static bool fails(struct proc_app app, const char *words)
{
    char job[PROC_NAME_MAX] = "untouched";
    uint32_t size = 77;
    CHECK(spawn_job(&app, 1, job, &size) == TERN_ERR_SPAWN && says(words) && size == 77 && !strcmp(job, "untouched"));
    return true;
}

/* The number of programs has no limit of its own: what fails is the last of many, when all have been read and looked for. */
static bool fails_at_the_last_of_many(void)
{
    static struct proc_app apps[1500];
    const char *good[] = {"true", NULL}, *missing[] = {"./the-last-one", NULL};
    char job[PROC_NAME_MAX];
    uint32_t size = 77;
    int n = sizeof apps / sizeof *apps;
    for (int i = 0; i < n; i++) apps[i] = (struct proc_app){.n = 1, .argv = i < n - 1 ? good : missing};
    CHECK(spawn_job(apps, n, job, &size) == TERN_ERR_SPAWN && says("cannot execute ./the-last-one") && size == 77);
    return true;
}

static bool failures(void)
{
    const char *missing[] = {"./no-such-program", NULL}, *text[] = {"/etc/passwd", NULL}, *good[] = {"true", NULL};
    const char *colon[] = {"true", ":", NULL}, *binding[] = {"bind_to", "nonsense", NULL};
    char job[PROC_NAME_MAX];
    uint32_t size;
    CHECK(fails((struct proc_app){.n = 2, .argv = missing}, "cannot execute ./no-such-program: No such file"));
    CHECK(fails((struct proc_app){.n = 2, .argv = text}, "/etc/passwd: Permission denied"));
    CHECK(fails((struct proc_app){.n = 1, .argv = good, .wdir = "/no/such/dir"}, "/no/such/dir"));
    CHECK(fails((struct proc_app){.n = 1, .argv = good, .info = binding}, "nonsense"));
    CHECK(fails((struct proc_app){.n = 1000000, .argv = good}, "1000000"));
    CHECK(spawn_job(&(struct proc_app){.n = 1, .argv = colon}, 1, job, &size) == TERN_ERR_ARG && says("separates"));
    CHECK(spawn_job(&(struct proc_app){.argv = good}, 1, job, &size) == TERN_ERR_ARG);
    CHECK(spawn_job(&(struct proc_app){.n = (1 << 20) + 1, .argv = good}, 1, job, &size) == TERN_ERR_ARG && says("more than 1048576"));
    CHECK(fails_at_the_last_of_many());
    for (int i = 0; i < 5; i++)
        CHECK(!spawn_job(&(struct proc_app){.n = 1, .argv = good}, 1, job, &size) && size == 1);
    return true;
}

/* ---- events ---- */

static bool victim(void)
{
    char value[16], name[320];
    snprintf(name, sizeof name, "pid %u of %s", me->rank, me->job);
    snprintf(value, sizeof value, "%d", (int)getpid());
    CHECK(!proc_publish(name, value));
    CHECK(!proc_watch(me->parent));
    if (me->rank == 0)
        for (;;) pause();
    if (me->rank == 1) exit(3);
    CHECK(!proc_lookup("leave", 20000, value, sizeof value));
    return true;
}

static bool watch(void)
{
    const char *argv[] = {program, "victim", NULL};
    char job[PROC_NAME_MAX], name[320], value[16];
    struct proc_event e = {0};
    uint32_t size;
    CHECK(proc_event(&e) == 0);
    CHECK(!spawn_job(&(struct proc_app){.n = 4, .argv = argv}, 1, job, &size));
    CHECK(!proc_watch(job) && proc_watch(job) == TERN_ERR_ARG && says("watched already"));
    CHECK(await_event(&e, false) >= 0 && !e.ended && !e.clean && e.rank == 1 && e.status == 3 << 8 &&
          !strcmp(e.job, job));
    snprintf(name, sizeof name, "pid 0 of %s", job);
    CHECK(!proc_lookup(name, 20000, value, sizeof value));
    CHECK(proc_event(&e) == 0);
    CHECK(!kill(atoi(value), SIGKILL));
    int ms = await_event(&e, true);
    CHECK(ms >= 0 && ms < 1000 && !e.ended && !e.clean && e.rank == 0 && e.status == SIGKILL);
    CHECK(!proc_unwatch(job) && proc_unwatch(job) == TERN_ERR_NOT_FOUND);
    CHECK(!proc_watch(job)); /* again: what is known comes once more */
    for (int i = 0; i < 2; i++) CHECK(await_event(&e, false) >= 0 && !e.ended && e.rank == (i ? 0 : 1));
    CHECK(!proc_publish("leave", ""));
    for (int i = 0; i < 2; i++) CHECK(await_event(&e, i) >= 0 && !e.ended && e.clean && e.rank >= 2);
    CHECK(await_event(&e, false) >= 0 && e.ended && !strcmp(e.job, job));
    CHECK(proc_lookup(name, 0, value, sizeof value) == TERN_ERR_NOT_FOUND); /* its names have gone with it */
    CHECK(proc_event(&e) == 0 && !proc_watch("tern.none"));
    CHECK(await_event(&e, false) >= 0 && e.ended && !strcmp(e.job, "tern.none"));
    return true;
}

/* As little as launchers of others can do: without a parent's name, each side has the other's, its key and its card. */
static bool kin(void)
{
    bool parent = !argument || !*argument || !strcmp(argument, "1");
    const char *argv[] = {program, "kin", me->job, NULL};
    char other[PROC_NAME_MAX], own[2 * PROC_KEY + 1], key[2 * PROC_KEY + 1], card[320], got[512];
    struct proc_job j;
    uint32_t size;
    CHECK(me->size == 1 && put_card());
    snprintf(other, sizeof other, "%s", argument);
    if (parent) CHECK(!spawn_job(&(struct proc_app){.n = 1, .argv = argv}, 1, other, &size) && size == 1);
    CHECK(!proc_connect(other, &j) && j.size == 1);
    hex(own, j.key);
    CHECK(!proc_publish(parent ? "the parent's key" : "the child's key", own));
    CHECK(!proc_lookup(parent ? "the child's key" : "the parent's key", 20000, key, sizeof key) && !strcmp(own, key));
    snprintf(card, sizeof card, "card of 0 of %s", other);
    CHECK(proc_job_card(other, 0, got, sizeof got) == (int)strlen(card) + 1 && !strcmp(got, card));
    if (!parent) { /* which ends last: its names go with it, and it is connected for as long as it lives */
        CHECK(!proc_publish("the child is done", ""));
        CHECK(!proc_lookup("the parent is done", 20000, key, sizeof key));
    } else
        CHECK(!proc_lookup("the child is done", 20000, key, sizeof key));
    CHECK(!proc_disconnect(other) && proc_disconnect(other) == TERN_ERR_NOT_FOUND);
    if (parent) CHECK(!proc_publish("the parent is done", ""));
    return parent && getenv(JOB_ENV_RANK) ? await_job(other) : true; /* its names go with it; others tell of no ends */
}

/* The last rank is killed, and all others are told of that one; 5 s is far more than that takes. */
static bool deaths(void)
{
    uint32_t last = me->size - 1;
    CHECK(put_card() && !proc_has_died(last));
    proc_state(JOB_LIFE_INITIALISED); /* from here on an end is a death */
    CHECK(meet("alive"));
    if (me->rank == last) raise(SIGKILL);
    for (int i = 0; i < 500 && !proc_has_died(last); i++) usleep(10000);
    CHECK(proc_has_died(last) && atomic_load(proc_deaths().count) == 1);
    proc_state(JOB_LIFE_FINALISED);
    return true;
}

/* A file of memory with a text in it, of which others are told by a name. */
static bool show_file(int *fd)
{
    char name[320], value[64];
    *fd = memfd_create("shown", MFD_CLOEXEC);
    snprintf(name, sizeof name, "file of %u of %s", me->rank, me->job);
    CHECK(*fd >= 0 && write(*fd, name, sizeof name) == sizeof name);
    snprintf(value, sizeof value, "%d %llx", *fd, (unsigned long long)memfile_key(memfile_id_of(*fd)));
    CHECK(!proc_publish(name, value));
    return true;
}

/* `job`: "" is the own one. */
static bool get_file(const char *job, uint32_t rank)
{
    char name[320], value[64], got[320] = "";
    unsigned long long key;
    int fd, own = -1;
    snprintf(name, sizeof name, "file of %u of %s", rank, *job ? job : me->job);
    CHECK(!proc_lookup(name, 20000, value, sizeof value) && sscanf(value, "%d %llx", &fd, &key) == 2);
    CHECK(!proc_open_file(job, rank, (uint32_t)fd, key, &own));
    CHECK(pread(own, got, sizeof got, 0) == sizeof got && !strcmp(got, name));
    CHECK(memfile_key(memfile_id_of(own)) == key && fcntl(own, F_GETFD) == FD_CLOEXEC);
    close(own);
    own = -7;
    CHECK(proc_open_file(job, rank, (uint32_t)fd, key + 1, &own) == TERN_ERR_PEER && own == -7 && says("Bad file descriptor"));
    CHECK(proc_open_file(job, rank, 1000000, key, &own) == TERN_ERR_PEER && own == -7 && says("descriptor 1000000"));
    CHECK(proc_open_file(job, 99, (uint32_t)fd, key, &own) == TERN_ERR_RANK && own == -7);
    return true;
}

static bool keeper(void)
{
    int fd;
    char name[320], value[16];
    CHECK(show_file(&fd));
    CHECK(get_file(me->parent, 0));
    snprintf(name, sizeof name, "seen %s", me->job);
    CHECK(!proc_lookup(name, 20000, value, sizeof value));
    return true;
}

static bool files(void)
{
    const char *argv[] = {program, "keeper", NULL};
    char job[PROC_NAME_MAX], name[320];
    struct proc_event e = {0};
    uint32_t size;
    int fd, own;
    CHECK(show_file(&fd));
    for (uint32_t r = 0; r < me->size; r++) CHECK(get_file("", r));
    if (!me->rank) {
        CHECK(!spawn_job(&(struct proc_app){.n = 2, .argv = argv}, 1, job, &size));
        for (uint32_t r = 0; r < size; r++) CHECK(get_file(job, r));
        snprintf(name, sizeof name, "seen %s", job);
        CHECK(!proc_publish(name, ""));
        CHECK(!proc_watch(job)); /* a published name goes with the job that has published it */
        while (!e.ended) CHECK(await_event(&e, false) >= 0);
        CHECK(proc_open_file("tern.none", 0, 1, 1, &own) == TERN_ERR_NOT_FOUND && says("no job 'tern.none'"));
    }
    return meet("files");
}

static char **command;

static bool start(void)
{
    const char *key = getenv("START_KEY") ? getenv("START_KEY") : "tern_failure";
    const char *const info[] = {getenv("START_INFO") ? key : NULL, getenv("START_INFO"), NULL};
    uint32_t size, n = getenv("START_N") ? (uint32_t)atoi(getenv("START_N")) : 1;
    char job[PROC_NAME_MAX];
    if (!me->rank) CHECK(!spawn_job(&(struct proc_app){.n = n, .argv = (const char *const *)command, .info = info}, 1, job, &size));
    if (!me->rank && getenv("START_WAITS")) printf("waiting\n");
    fflush(stdout);
    while (getenv("START_WAITS")) pause();
    if (getenv("START_FAILS")) exit(7);
    return true;
}

static bool parent(void)
{
    const char *const missing[] = {"./no-such-program", NULL}, *const env[] = {"GIVEN=a value", NULL};
    char job[PROC_NAME_MAX] = "untouched";
    uint32_t size = 77;
    printf("job %s\n", me->job);
    if (me->rank) return true;
    CHECK(spawn_job(&(struct proc_app){.n = 1, .argv = missing}, 1, job, &size) == TERN_ERR_SPAWN && size == 77);
    CHECK(!spawn_job(&(struct proc_app){.n = 2, .argv = (const char *const *)command, .env = env}, 1, job, &size));
    return size == 2 && strcmp(job, me->job);
}

static bool orphan(void)
{
    const char *given = getenv("GIVEN");
    printf("parent %s given %s\n", me->parent, given ? given : "nothing");
    return true;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool rate(void)
{
    enum { QUESTIONS = 10000, JOBS = 50 };
    const char *argv[] = {"true", NULL};
    char value[16], job[PROC_NAME_MAX];
    uint32_t size, n = (uint32_t)atoi(argument);
    CHECK(!proc_publish("rate", "value"));
    double from = seconds();
    for (int i = 0; i < QUESTIONS; i++) CHECK(!proc_lookup("rate", 0, value, sizeof value));
    printf("a lookup: %.1f us\n", (seconds() - from) / QUESTIONS * 1e6);
    from = seconds();
    for (int i = 0; i < JOBS; i++) {
        CHECK(!spawn_job(&(struct proc_app){.n = n, .argv = argv}, 1, job, &size));
        CHECK(await_job(job));
    }
    printf("a job of %u spawned and ended: %.1f ms\n", n, (seconds() - from) / JOBS * 1e3);
    return true;
}

static int sockets(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        n += !fstatat(dirfd(d), e->d_name, &st, 0) && S_ISSOCK(st.st_mode);
    }
    closedir(d);
    return n;
}

static bool quiet(void)
{
    char value[16];
    int before = sockets();
    CHECK(!proc_card_put("card", 5));
    CHECK(sockets() == before);
    CHECK(proc_lookup("nothing", 0, value, sizeof value) == TERN_ERR_NOT_FOUND);
    CHECK(sockets() == before + 1);
    return true;
}

/* ---- strangers: the socket's name and the secret as the job block has them ---- */

static const struct job_head *block(void)
{
    int fd = atoi(getenv(JOB_ENV_FD));
    struct stat st;
    fstat(fd, &st);
    return mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
}

static int stranger(const struct job_head *j)
{
    struct sockaddr_un a;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&a, ask_address(&a, j->socket_id)) ? -1 : fd;
}

/* Says it; the launcher answers with words, and closes the connection. */
static bool is_refused(int fd, struct ask_head h, const void *bytes, size_t n, const char *words)
{
    char got[1024] = "";
    struct ask_head wire = ask_swap(h);
    CHECK(write(fd, &wire, sizeof wire) == sizeof wire);
    CHECK(!n || write(fd, bytes, n) == (ssize_t)n);
    CHECK(recv(fd, &wire, sizeof wire, MSG_WAITALL) == sizeof wire);
    h = ask_swap(wire);
    CHECK(h.type == ASK_ANSWER && h.status == TERN_ERR_ARG && h.length < sizeof got);
    CHECK(recv(fd, got, h.length, MSG_WAITALL) == (ssize_t)h.length && strstr(got + 4, words));
    CHECK(read(fd, got, 1) == 0);
    close(fd);
    return true;
}

static bool strangers(void)
{
    static const char bad[] = "a message that cannot be", secret[] = "its own job's processes only";
    const struct job_head *j = block();
    uint8_t wrong[sizeof j->secret];
    char value[16];
    CHECK(proc_lookup("nothing", 0, value, sizeof value) == TERN_ERR_NOT_FOUND); /* from here on the socket is there */
    memcpy(wrong, j->secret, sizeof wrong);
    wrong[31] ^= 1;
    CHECK(is_refused(stranger(j), (struct ask_head){.type = ASK_LOOK}, NULL, 0, secret));
    CHECK(is_refused(stranger(j), (struct ask_head){.type = ASK_HELLO}, NULL, 0, secret));
    CHECK(is_refused(stranger(j), (struct ask_head){.type = ASK_HELLO, .length = 32}, wrong, 32, secret));
    CHECK(is_refused(stranger(j), (struct ask_head){.type = ASK_TYPES}, NULL, 0, bad));
    CHECK(is_refused(stranger(j), (struct ask_head){.type = ASK_HELLO, .length = ASK_BYTES_MAX + 1}, NULL, 0, bad));
    int taker = stranger(j); /* a ticket that nobody was given: no words, and nothing else */
    struct ask_head take = ask_swap((struct ask_head){.type = ASK_TAKE, .length = ASK_TICKET});
    CHECK(write(taker, &take, sizeof take) == sizeof take && write(taker, wrong, ASK_TICKET) == ASK_TICKET);
    CHECK(read(taker, value, 1) == 0);
    close(taker);
    const struct ask_head after[] = {
        {.type = ASK_FETCH}, {.type = ASK_HELLO}, {.type = ASK_ANSWER}, {.type = ASK_LOOK, .rank = j->size}};
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        int fd = stranger(j);
        struct ask_head hello = ask_swap((struct ask_head){.type = ASK_HELLO, .length = sizeof j->secret});
        CHECK(write(fd, &hello, sizeof hello) == sizeof hello && write(fd, j->secret, sizeof j->secret) == 32);
        CHECK(is_refused(fd, after[i], NULL, 0, bad));
    }
    CHECK(proc_lookup("nothing", 0, value, sizeof value) == TERN_ERR_NOT_FOUND);
    return true;
}

static bool unsupported(void)
{
    char value[16];
    struct proc_job j;
    CHECK(proc_publish("a", "b") == TERN_ERR_UNSUPPORTED && says("TERN_MPIEXEC"));
    CHECK(proc_unpublish("a") == TERN_ERR_UNSUPPORTED &&
          proc_lookup("a", -1, value, sizeof value) == TERN_ERR_UNSUPPORTED);
    CHECK(proc_watch("a") == TERN_ERR_UNSUPPORTED && proc_event(&(struct proc_event){0}) == 0);
    CHECK(proc_connect("a", &j) == TERN_ERR_UNSUPPORTED && proc_disconnect("a") == TERN_ERR_UNSUPPORTED);
    CHECK(proc_job_card("a", 0, value, sizeof value) == TERN_ERR_UNSUPPORTED);
    return true;
}


int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(void);
    } all[] = {{"names", names},          {"waiting", waiting}, {"threads", threads},     {"cards", cards},
               {"odd", odd},
               {"connect", connect_self}, {"spawn", spawn},     {"child", child},         {"start", start},
               {"watch", watch},          {"rate", rate}, {"deaths", deaths}, {"kin", kin}, {"missing", missing}, {"mute", mute}, {"parent", parent}, {"orphan", orphan},           {"victim", victim},
               {"files", files},          {"keeper", keeper},
               {"failures", failures},    {"quiet", quiet},     {"strangers", strangers}, {"unsupported", unsupported}};
    bool good = false;
    if (argc < 2 || var_open() || proc_open()) {
        fprintf(stderr, "%s\n", err_words());
        return 1;
    }
    me = proc_self();
    program = argv[0];
    argument = argc > 2 ? argv[2] : "1";
    command = argv + 2;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (!strcmp(argv[1], all[i].name)) good = all[i].run();
    if (good) printf("rank %u: good\n", me->rank);
    proc_close();
    var_close();
    return !good;
}
