/* table.c - see table.h. */
#include "dpm/table.h"
#include "base/err.h"
#include "proc/dynamic.h"

#include <stdlib.h>
#include <string.h>

#define HEAD 20       /* bytes of the first five numbers */
#define RUN 12        /* of a run */
#define CARD_LEAST 5  /* of a card in a pack */
#define JOBS_MOST 65536

/* ---- writing ---- */

/* Whole cards by the node that they are from, of which there may be many: of two that have the same place the later one stays. */
struct bases {
    struct known {
        uint64_t node; /* job and node */
        struct card_base base;
    } *place;
    uint32_t mask;
};

static struct known *known_of(const struct bases *b, const struct table_entry *e)
{
    return &b->place[(e->node * 0x9e3779b1u ^ e->job * 0x85ebca6bu) & b->mask];
}

static void put_card(struct ask_out *o, size_t begin, const struct bases *b, const struct table_entry *e)
{
    struct known *k = known_of(b, e);
    uint64_t node = (uint64_t)e->job << 32 | e->node;
    bool whole;
    const struct card_base *base = k->base.card && k->node == node ? &k->base : NULL;
    uint32_t place = card_pack_put(o, begin, base, e->card, e->card_bytes, &whole);
    if (whole) *k = (struct known){node, {place, e->card_bytes, e->card}};
}

static bool follows(const struct table_entry *e) { return e[1].job == e[0].job && e[1].rank == e[0].rank + 1; }

/* The run that begins with member i: how many. */
static uint32_t run_from(const struct table_entry *e, uint32_t i, uint32_t n)
{
    uint32_t count = 1;
    while (i + count < n && follows(&e[i + count - 1])) count++;
    return count;
}

static void put_head(struct ask_out *o, const struct table_job *job, uint32_t jobs, const struct table_entry *e, uint32_t n, uint32_t root,
                     uint32_t padding)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < n; i += run_from(e, i, n)) runs++;
    ask_put32(o, n);
    ask_put32(o, root);
    ask_put32(o, jobs);
    ask_put32(o, runs);
    ask_put32(o, padding);
    if (o->room - o->n >= padding) memset(o->bytes + o->n, 0, padding);
    o->n += padding;
    for (uint32_t k = 0; k < jobs; k++) {
        ask_put_text(o, job[k].name);
        ask_put32(o, job[k].size);
        ask_put(o, job[k].public, CRYPTO_KEY);
    }
    for (uint32_t i = 0, count; i < n; i += count) {
        count = run_from(e, i, n);
        ask_put32(o, e[i].job);
        ask_put32(o, e[i].rank);
        ask_put32(o, count);
    }
}

int table_write(const struct table_job *job, uint32_t jobs, const struct table_entry *e, uint32_t n, uint32_t root, uint32_t padding,
                void **bytes_p, size_t *n_p)
{
    struct bases b = {.mask = 1};
    size_t room = HEAD + padding + jobs * (PROC_NAME_MAX + CRYPTO_KEY + (size_t)8);
    for (uint32_t i = 0; i < n; i++) room += e[i].card_bytes + CARD_PACK_EXTRA + RUN;
    while (b.mask < n && b.mask < 65535) b.mask = 2 * b.mask + 1;
    struct ask_out o = {.bytes = malloc(room), .room = room};
    b.place = calloc((size_t)b.mask + 1, sizeof *b.place);
    if (!o.bytes || !b.place) {
        free(o.bytes);
        free(b.place);
        return err_set(TERN_ERR_NOMEM, "no memory for a table of %u processes", n);
    }
    put_head(&o, job, jobs, e, n, root, padding);
    size_t cards = o.n;
    for (uint32_t i = 0; i < n; i++) put_card(&o, cards, &b, &e[i]);
    free(b.place);
    void *fits = realloc(o.bytes, o.n);
    *bytes_p = fits ? fits : o.bytes;
    *n_p = o.n;
    return 0;
}

/* ---- reading ---- */

static int no_table(void) { return err_set(TERN_ERR_SYSTEM, "what the other group has told of its processes is damaged"); }
static int no_memory(size_t n) { return err_set(TERN_ERR_NOMEM, "no memory to read a table of %zu bytes", n); }

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Are two of the jobs the same one? Of two with the same number only one can be known (jobs.h). */
static int check_jobs(const struct table *t)
{
    uint64_t *id = malloc(t->jobs * sizeof *id);
    bool same = false;
    if (!id) return no_memory(t->jobs * sizeof *id);
    for (uint32_t k = 0; k < t->jobs; k++) id[k] = jobs_id(t->job[k].name);
    qsort(id, t->jobs, sizeof *id, by_number);
    for (uint32_t k = 1; k < t->jobs; k++) same |= id[k] == id[k - 1];
    free(id);
    return same ? no_table() : 0;
}

static bool read_jobs(struct table *t, struct ask_in *in)
{
    for (uint32_t k = 0; k < t->jobs; k++) {
        t->job[k].name = ask_get_text(in, PROC_NAME_MAX);
        t->job[k].size = ask_get32(in);
        t->job[k].public = ask_get(in, CRYPTO_KEY);
        if (in->bad || !*t->job[k].name || !t->job[k].size || t->job[k].size > JOBS_PLACES) return false;
    }
    return true;
}

struct table_run table_run(const struct table *t, uint32_t i)
{
    struct ask_in in = ask_of(t->run + (size_t)i * RUN, RUN);
    struct table_run r;
    r.job = ask_get32(&in);
    r.first = ask_get32(&in);
    r.count = ask_get32(&in);
    return r;
}

/* In the order of jobs and ranks, no run begins before the one before it has ended. */
static bool are_apart(struct table_run *r, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (r[i].job == r[i - 1].job && r[i].first - r[i - 1].first < r[i - 1].count) return false;
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct table_run *x = a, *y = b;
    if (x->job != y->job) return x->job < y->job ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Each member is a process of its job, and no process is there twice. */
static int check_runs(const struct table *t)
{
    struct table_run *all = malloc(t->runs * sizeof *all);
    uint64_t members = 0;
    if (!all) return no_memory(t->runs * sizeof *all);
    bool right = true;
    for (uint32_t i = 0; i < t->runs && right; i++) {
        struct table_run r = all[i] = table_run(t, i);
        members += r.count;
        right = r.job < t->jobs && r.count && r.first < t->job[r.job].size && r.count <= t->job[r.job].size - r.first;
    }
    right = right && members == t->size;
    if (right) qsort(all, t->runs, sizeof *all, by_place);
    right = right && are_apart(all, t->runs);
    free(all);
    return right ? 0 : no_table();
}

static int check_table(struct table *t, struct ask_in *in)
{
    if (!read_jobs(t, in)) return no_table();
    t->run = ask_get(in, (size_t)t->runs * RUN);
    if (!t->run) return no_table();
    t->cards = in->at;
    t->card_bytes = (size_t)(in->end - in->at);
    int rc = check_jobs(t);
    if (!rc) rc = check_runs(t);
    if (rc) return rc;
    size_t taken = card_pack_check(t->cards, t->card_bytes, t->size);
    return taken && taken == t->card_bytes ? 0 : no_table();
}

int table_open(struct table *t, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    *t = (struct table){0};
    t->size = ask_get32(&in);
    t->root = ask_get32(&in);
    t->jobs = ask_get32(&in);
    t->runs = ask_get32(&in);
    (void)ask_get(&in, ask_get32(&in)); /* padding */
    /* each takes some bytes: so much memory for what there is */
    if (in.bad || !t->size || t->root >= t->size || !t->jobs || t->jobs > t->size || t->jobs > JOBS_MOST || !t->runs || t->runs > t->size ||
        t->size > n / CARD_LEAST)
        return no_table();
    t->job = calloc(t->jobs, sizeof *t->job);
    if (!t->job) return no_memory(t->jobs * sizeof *t->job);
    int rc = check_table(t, &in);
    if (rc) table_close(t);
    return rc;
}

void table_close(struct table *t)
{
    free(t->job);
    t->job = NULL;
}

struct proc_name table_root(const struct table *t)
{
    uint32_t at = 0, i = 0;
    struct table_run r = table_run(t, 0);
    for (; at + r.count <= t->root; r = table_run(t, ++i)) at += r.count;
    return (struct proc_name){jobs_id(t->job[r.job].name), r.first + t->root - at, 0};
}
