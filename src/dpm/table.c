/* table.c - see table.h. */
#include "dpm/table.h"
#include "base/err.h"
#include "coll/coll.h"
#include "dpm/ends.h"
#include "dpm/keys.h"
#include "proc/dynamic.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

#include <stdlib.h>
#include <string.h>

/* What each member tells its root. */
struct told_member {
    int32_t code; /* 0, or why there is no card */
    uint32_t card_bytes;
    struct proc_name name;
    uint8_t card[PEER_CARD_MAX];
};

/* The same of its job, where the members are of several. */
struct told_job {
    char name[PROC_NAME_MAX];
    uint32_t size;
    uint8_t public[CRYPTO_KEY];
};

/* ---- making ---- */

static int tell_member(struct told_member *m)
{
    memset(m, 0, sizeof *m);
    m->name = jobs_own_name();
    lane_enter(lanes_first());
    int n = peers_meet_others();
    if (!n) n = peer_card(m->card, sizeof m->card);
    lane_leave(lanes_first());
    if (n < 0) return m->code = n;
    m->card_bytes = (uint32_t)n;
    return 0;
}

static int tell_job(struct told_job *j)
{
    memset(j, 0, sizeof *j);
    snprintf(j->name, sizeof j->name, "%s", proc_self()->job);
    j->size = proc_self()->size;
    const struct crypto *c = ends_crypto();
    return c ? keys_public(c, j->public) : err_code();
}

/* `bytes` of each member; *all_p is malloc'ed, at the root. */
static int gather(struct comm *c, int root, const void *mine, size_t bytes, void **all_p)
{
    struct coll_call a = {.kind = COLL_GATHER, .sendbuf = mine, .scount = (int64_t)bytes, .rcount = (int64_t)bytes,
                          .stype = type_of(MPI_BYTE), .rtype = type_of(MPI_BYTE), .root = root};
    if (c->rank == root && !(*all_p = malloc((size_t)c->size * bytes)))
        return err_set(TERN_ERR_NOMEM, "no memory for what %d processes tell of themselves", c->size);
    a.recvbuf = *all_p;
    return coll_run(c, &a);
}

/* The jobs of the members, each once, in front; how many. The members' names say which. */
static uint32_t put_jobs_first(struct told_job *all, uint32_t n)
{
    uint32_t jobs = 0;
    for (uint32_t i = 0, k; i < n; i++) {
        for (k = 0; k < jobs && strcmp(all[k].name, all[i].name); k++) {}
        if (k == jobs) all[jobs++] = all[i];
    }
    return jobs;
}

static uint32_t job_of(const struct told_job *job, uint32_t jobs, uint64_t id)
{
    uint32_t k = 0;
    while (k + 1 < jobs && jobs_id(job[k].name) != id) k++;
    return k;
}

static int write_table(struct ask_out *o, uint32_t root, const struct told_job *job, uint32_t jobs,
                       const struct told_member *m, uint32_t n)
{
    size_t room = 64 + jobs * (sizeof *job + 16);
    for (uint32_t i = 0; i < n; i++) room += 12 + m[i].card_bytes;
    *o = (struct ask_out){.bytes = malloc(room), .room = room};
    if (!o->bytes) return err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", n);
    ask_put32(o, n);
    ask_put32(o, root);
    ask_put32(o, jobs);
    for (uint32_t k = 0; k < jobs; k++) {
        ask_put_text(o, job[k].name);
        ask_put32(o, job[k].size);
        ask_put(o, job[k].public, sizeof job[k].public);
    }
    for (uint32_t i = 0; i < n; i++) {
        ask_put32(o, job_of(job, jobs, m[i].name.job));
        ask_put32(o, m[i].name.rank);
        ask_put32(o, m[i].card_bytes);
        ask_put(o, m[i].card, m[i].card_bytes);
    }
    return 0;
}

/* The root: is something wrong with a member? */
static int check_members(const struct told_member *m, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (m[i].code)
            return err_set(m[i].code, "rank %d cannot be reached by processes of other jobs: that process has the reason", i);
    return 0;
}

int table_make(struct comm *c, int root, void **bytes_p, size_t *n_p)
{
    struct told_member mine, *members = NULL;
    struct told_job job, *jobs = NULL;
    struct ask_out o = {0};
    uint32_t n = 1;
    void *all = NULL, *all_jobs = NULL;
    int bad = tell_member(&mine), bad_job = c->rank == root || comm_has_others(c) ? tell_job(&job) : 0;
    if (!bad) bad = mine.code = bad_job;
    int rc = gather(c, root, &mine, sizeof mine, &all);
    members = all;
    if (comm_has_others(c) && !rc) rc = gather(c, root, &job, sizeof job, &all_jobs);
    jobs = all_jobs ? all_jobs : &job;
    if (all_jobs) n = put_jobs_first(jobs, (uint32_t)c->size);
    if (!rc) rc = bad;
    if (!rc && c->rank == root) rc = check_members(members, c->size);
    if (!rc && c->rank == root) rc = write_table(&o, (uint32_t)root, jobs, n, members, (uint32_t)c->size);
    *bytes_p = o.bytes;
    *n_p = o.n;
    free(all);
    free(all_jobs);
    return rc;
}

/* ---- reading ---- */

static int no_table(void) { return err_set(TERN_ERR_SYSTEM, "what the other group has told of its processes is damaged"); }

static bool read_jobs(struct table *t, struct ask_in *in)
{
    for (uint32_t k = 0; k < t->jobs; k++) {
        t->job[k].name = ask_get_text(in, PROC_NAME_MAX);
        t->job[k].size = ask_get32(in);
        t->job[k].public = ask_get(in, CRYPTO_KEY);
        if (in->bad || !t->job[k].size || t->job[k].size > JOBS_PLACES) return false;
    }
    return true;
}

static void read_member(struct ask_in *in, struct table_member *m)
{
    m->job = ask_get32(in);
    m->rank = ask_get32(in);
    m->card_bytes = ask_get32(in);
    m->card = m->card_bytes <= PEER_CARD_MAX ? ask_get(in, m->card_bytes) : NULL;
    if (!m->card) in->bad = true;
}

static bool check_table(struct table *t, struct ask_in *in)
{
    struct table_member m;
    if (!read_jobs(t, in)) return false;
    t->members = *in;
    for (uint32_t i = 0; i < t->size && !in->bad; i++) {
        read_member(in, &m);
        if (in->bad || m.job >= t->jobs || m.rank >= t->job[m.job].size) return false;
    }
    return ask_done(in);
}

int table_open(struct table *t, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    *t = (struct table){0};
    t->size = ask_get32(&in);
    t->root = ask_get32(&in);
    t->jobs = ask_get32(&in);
    /* each takes some bytes: so much memory for what there is */
    if (in.bad || !t->size || t->root >= t->size || !t->jobs || t->jobs > t->size || t->size > n) return no_table();
    t->job = calloc(t->jobs, sizeof *t->job);
    if (!t->job) return err_set(TERN_ERR_NOMEM, "no memory for a table of %u jobs", t->jobs);
    if (check_table(t, &in)) return 0;
    table_close(t);
    return no_table();
}

void table_close(struct table *t)
{
    free(t->job);
    t->job = NULL;
}

void table_member(struct table *t, struct table_member *m) { read_member(&t->members, m); }

struct proc_name table_root(const struct table *t)
{
    struct table copy = *t;
    struct table_member m = {0};
    for (uint32_t i = 0; i <= t->root; i++) table_member(&copy, &m);
    return (struct proc_name){jobs_id(t->job[m.job].name), m.rank, 0};
}
