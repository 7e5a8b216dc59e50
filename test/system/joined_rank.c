/*
 * joined_rank.c - a rank of one of two jobs that two calls of mpiexec have started and that this program connects, as a
 * layer for dynamic processes would: each process tells its card, and the first rank of one job a key and a context.
 *
 *     joined_rank FOLDER SELF OTHER [ROUNDS]   by files in this folder; SELF and OTHER are a and b, or b and a
 *     joined_rank spawn N [ROUNDS]             spawns N processes of itself; by names at the launcher, who gives the
 * key joined_rank beyond FOLDER SELF OTHER     as the first, for jobs that no transport connects: words
 *
 * Each round connects, communicates and disconnects. Prints by which transports the other job was reached, and "good".
 */
#include "base/err.h"
#include "comm/disconnect.h"
#include "obj/comm.h"
#include "proc/dynamic.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 300000, WAIT_MS = 40000 };

static const char *folder; /* NULL: by names at the launcher */
static char self[PROC_NAME_MAX], other[PROC_NAME_MAX];
static int rank, size, others;

#define CHECK(x)                                                                                                       \
    do                                                                                                                 \
        if (!(x)) {                                                                                                    \
            printf("rank %d of %s: line %d: %s does not hold (%s)\n", rank, self, __LINE__, #x, err_words());          \
            fflush(stdout);                                                                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    while (0)

/* ---- what the jobs tell each other ---- */

static void put_file(const char *name, const void *bytes, size_t n)
{
    char path[4096], part[4096 + 8];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(part, sizeof part, "%s.part", path);
    int fd = open(part, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && !close(fd) && !rename(part, path));
}

static size_t get_file(const char *name, void *bytes, size_t cap)
{
    char path[4096];
    int fd = -1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int ms = 0; ms < WAIT_MS && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0; ms++) usleep(1000);
    ssize_t n = fd >= 0 ? read(fd, bytes, cap) : -1;
    CHECK(n > 0);
    close(fd);
    return (size_t)n;
}

static void put_name(const char *name, const unsigned char *bytes, size_t n)
{
    char text[PROC_VALUE_MAX];
    CHECK(2 * n < sizeof text);
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    CHECK(!proc_publish(name, text));
}

static size_t get_name(const char *name, unsigned char *bytes, size_t cap)
{
    char text[PROC_VALUE_MAX];
    CHECK(!proc_lookup(name, WAIT_MS, text, sizeof text));
    size_t n = strlen(text) / 2;
    CHECK(n <= cap);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        CHECK(sscanf(text + 2 * i, "%2x", &byte) == 1);
        bytes[i] = (unsigned char)byte;
    }
    return n;
}

static void put(const char *who, const char *what, int number, int round, const void *bytes, size_t n)
{
    char name[PROC_NAME_MAX + 64];
    snprintf(name, sizeof name, "%s.%s.%d.%d", who, what, number, round);
    if (folder)
        put_file(name, bytes, n);
    else
        put_name(name, bytes, n);
}

static size_t get(const char *who, const char *what, int number, int round, void *bytes, size_t cap)
{
    char name[PROC_NAME_MAX + 64];
    snprintf(name, sizeof name, "%s.%s.%d.%d", who, what, number, round);
    return folder ? get_file(name, bytes, cap) : get_name(name, bytes, cap);
}

/* ---- connecting ---- */

struct head { /* by the first rank of each job */
    char name[PROC_NAME_MAX];
    int32_t size, zero;
    uint64_t ctx;          /* the context of the intercommunicator is the one of the job that comes first ... */
    uint8_t key[JOBS_KEY]; /* ... as is the key, where no launcher has one for both */
};

static bool is_first(void) { return strcmp(self, other) < 0; }

static void tell(int round, struct head *mine)
{
    uint8_t card[PEER_CARD_MAX];
    lane_enter(lanes_first());
    CHECK(!peers_meet_others());
    int n = peer_card(card, sizeof card);
    lane_leave(lanes_first());
    CHECK(n > 0);
    put(self, "card", rank, round, card, (size_t)n);
    MPI_Barrier(MPI_COMM_WORLD); /* all cards are there before the head */
    memset(mine, 0, sizeof *mine);
    if (rank) return;
    snprintf(mine->name, sizeof mine->name, "%s", proc_self()->job);
    mine->size = size;
    mine->ctx = comm_fresh_wide_ctx();
    CHECK(getrandom(mine->key, sizeof mine->key, 0) == sizeof mine->key);
    put(self, "head", 0, round, mine, sizeof *mine);
}

static struct job_entry *learn(int round, const struct head *theirs, const uint8_t *key)
{
    uint8_t card[PEER_CARD_MAX];
    uint32_t index;
    struct job_entry *job = job_add(theirs->name, (uint32_t)theirs->size, key, NULL);
    CHECK(job);
    for (int r = 0; r < theirs->size; r++) {
        size_t n = get(other, "card", r, round, card, sizeof card);
        CHECK(!peer_add(job, (uint32_t)r, card, n, &index));
    }
    return job;
}

static MPI_Comm connect_jobs(int round)
{
    struct comm *world = comm_world(), *made = NULL;
    struct head mine, theirs;
    struct proc_job pair = {0};
    uint64_t within = comm_fresh_ctx();
    tell(round, &mine);
    MPI_Bcast(&mine, sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&within, sizeof within, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(get(other, "head", 0, round, &theirs, sizeof theirs) == sizeof theirs);
    others = theirs.size;
    if (!folder) CHECK(!proc_connect(theirs.name, &pair) && pair.size == (uint32_t)others);
    const struct head *first = is_first() ? &mine : &theirs;
    struct job_entry *job = learn(round, &theirs, folder ? first->key : pair.key);
    CHECK(!comm_new(first->ctx, rankmap_ref(world->map), rankmap_line(others, job_index(job, 0), 1), world, &made));
    CHECK(!comm_new(within, rankmap_ref(world->map), NULL, world, &made->within));
    job_unref(job);
    return comm_handle(made);
}

static void disconnect_jobs(MPI_Comm *inter)
{
    CHECK(!MPI_Comm_disconnect(inter) && *inter == MPI_COMM_NULL);
    int rc = folder ? 0 : proc_disconnect(other);
    CHECK(!rc || rc == TERN_ERR_NOT_FOUND); /* the other job may have ended already */
    CHECK(jobs_others() == 0 && peer_count == (uint32_t)size && peer_other_quotas == 0);
}

/* ---- what goes over it ---- */

static void messages(MPI_Comm inter)
{
    static unsigned char out[LONG], in[LONG];
    for (int bytes = 0; bytes <= LONG; bytes = bytes ? bytes * 20 : 1)
        for (int r = 0; r < others; r++) {
            MPI_Request q;
            MPI_Status status;
            int got;
            memset(out, 16 * is_first() + rank, sizeof out);
            memset(in, 0, sizeof in);
            CHECK(!MPI_Irecv(in, LONG, MPI_BYTE, r, bytes % 1000, inter, &q));
            CHECK(!MPI_Send(out, bytes, MPI_BYTE, r, bytes % 1000, inter));
            CHECK(!MPI_Wait(&q, &status) && !MPI_Get_count(&status, MPI_BYTE, &got) && got == bytes);
            for (int i = 0; i < bytes; i++) CHECK(in[i] == 16 * !is_first() + r);
        }
}

static void collectives(MPI_Comm inter)
{
    int mine = 10 * is_first() + rank, sum, expected = 0, word = is_first() ? 4711 : 0, me, all;
    MPI_Comm merged;
    for (int r = 0; r < others; r++) expected += 10 * !is_first() + r;
    CHECK(!MPI_Barrier(inter));
    CHECK(!MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter) && sum == expected);
    CHECK(!MPI_Bcast(&word, 1, MPI_INT, is_first() ? rank ? MPI_PROC_NULL : MPI_ROOT : 0, inter) && word == 4711);
    CHECK(!MPI_Intercomm_merge(inter, is_first(), &merged));
    MPI_Comm_size(merged, &all);
    MPI_Comm_rank(merged, &me);
    CHECK(all == size + others && me == rank + (is_first() ? others : 0));
    CHECK(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged) && sum == all * (all - 1) / 2);
    MPI_Comm_free(&merged);
}

static void count_transports(const struct comm *c)
{
    int by_shm = 0, by_tcp = 0;
    for (int r = 0; r < others; r++) {
        const struct peer *p = peer_table[comm_index(c, r)];
        CHECK(p && p->ep.ops);
        by_shm += !strcmp(p->ep.ops->name, "shm");
        by_tcp += !strcmp(p->ep.ops->name, "tcp");
    }
    printf("%s: shm %d tcp %d\n", folder ? self : "spawn", by_shm, by_tcp);
}

static void rounds(int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Comm inter = connect_jobs(i);
        messages(inter);
        collectives(inter);
        if (!i) count_transports(comm_of(inter));
        disconnect_jobs(&inter);
    }
}

/* Each process says so by itself, at once: nobody waits for an answer. */
static void beyond(void)
{
    char words[MPI_MAX_ERROR_STRING];
    int n, one = 1;
    MPI_Comm inter = connect_jobs(0);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int rc = MPI_Send(&one, 1, MPI_INT, 0, 0, inter);
    CHECK(rc != MPI_SUCCESS && !MPI_Error_string(rc, words, &n));
    CHECK(strstr(words, "reaches rank 0 of job"));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- by the launcher ---- */

/* The name of the job that was spawned is known to its parent only, so that tells it who it is by its arguments. */
static void spawn(char *program, const char *n, const char *count)
{
    const char *argv[] = {program, "child", count, NULL};
    const struct proc_app app = {.n = (uint32_t)atoi(n), .argv = argv};
    struct proc_spawned spawned = {0};
    if (!rank) CHECK(!proc_spawn(&app, 1, &spawned) && spawned.size == app.n);
    memcpy(other, spawned.job, sizeof other);
    MPI_Bcast(other, sizeof other, MPI_CHAR, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    bool apart = argc > 1 && !strcmp(argv[1], "beyond");
    bool parent = argc > 2 && !strcmp(argv[1], "spawn"), child = argc > 2 && !strcmp(argv[1], "child");
    alarm(55);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(self, sizeof self, "%s", proc_self()->job);
    if (parent) spawn(argv[0], argv[2], argc > 3 ? argv[3] : "1");
    if (child) snprintf(other, sizeof other, "%s", proc_self()->parent);
    argv += apart;
    argc -= apart;
    if (!parent && !child) {
        CHECK(argc > 3);
        folder = argv[1];
        snprintf(self, sizeof self, "%s", argv[2]);
        snprintf(other, sizeof other, "%s", argv[3]);
    }
    if (apart)
        beyond();
    else
        rounds(child ? atoi(argv[2]) : parent ? argc > 3 ? atoi(argv[3]) : 1 : argc > 4 ? atoi(argv[4]) : 1);
    printf("good\n");
    MPI_Finalize();
    return 0;
}
