/* rankmap.c - see rankmap.h. */
#include "obj/rankmap.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* A run costs 32 bytes, a rank in a table 4 (bench/group_bench.c); every step that occurs costs a search. */
enum { RANKS_PER_RUN = 8, STEPS_MAX = 8, SCAN_MAX = 8 };

/* ---- the jobs of its processes ---- */

struct job_list {
    uint32_t n, room;
    struct job_entry *job[];
};

static void unhold(struct job_list *l)
{
    for (uint32_t i = 0; l && i < l->n; i++) job_unref(l->job[i]);
    free(l);
}

static bool add_job(struct job_list **l, struct job_entry *job)
{
    struct job_list *old = *l;
    for (uint32_t i = 0; old && i < old->n; i++)
        if (old->job[i] == job) {
            job_unref(job);
            return true;
        }
    if (!old || old->n == old->room) {
        uint32_t room = old ? 2 * old->room : 2;
        struct job_list *more = realloc(old, sizeof *more + room * sizeof(struct job_entry *));
        if (!more) {
            job_unref(job);
            return false;
        }
        if (!old) more->n = 0;
        more->room = room;
        *l = old = more;
    }
    old->job[old->n++] = job;
    return true;
}

static TERN_COLD bool hold_run(struct job_list **l, const struct rank_run *r)
{
    uint32_t first = 0, size = 0; /* indices of the job found last */
    for (int32_t i = 0; i < r->count; i++) {
        uint32_t index = run_at(r, i);
        struct job_entry *job = index - first < size ? NULL : jobs_of_index(index);
        if (!job) continue;
        first = job_index(job, 0);
        size = job_entry_size(job);
        if (!add_job(l, job)) return false;
    }
    return true;
}

/* NULL, and the map is freed: memory is out. */
static struct rankmap *hold_jobs(struct rankmap *m, const struct rank_run *run, uint32_t n)
{
    for (uint32_t i = 0; m && i < n; i++)
        if (unlikely(!jobs_is_own(run_high(&run[i]))) && !hold_run(&m->jobs, &run[i])) {
            rankmap_unref(m);
            return NULL;
        }
    return m;
}

bool rankmap_shares_job(const struct rankmap *a, const struct rankmap *b)
{
    bool found = false;
    for (uint32_t i = 0; a->jobs && b->jobs && i < a->jobs->n; i++)
        for (uint32_t k = 0; k < b->jobs->n; k++) found |= a->jobs->job[i] == b->jobs->job[k];
    return found;
}

/* ---- making ---- */

static struct rankmap *make(int32_t size, size_t more)
{
    struct rankmap *m = malloc(sizeof *m + more);
    if (!m) return NULL;
    *m = (struct rankmap){.size = size, .stride = 1};
    atomic_init(&m->refs, 1);
    atomic_init(&m->inverse, NULL);
    return m;
}

struct rankmap *rankmap_line(int32_t size, uint32_t first, int32_t stride)
{
    struct rankmap *m = make(size, 0);
    if (!m) return NULL;
    m->runs = m->grids = 1;
    m->first = first;
    m->stride = size > 1 ? stride : 1;
    return hold_jobs(m, &(struct rank_run){0, size, first, m->stride}, size > 0);
}

static struct rankmap *table_of(const struct run_list *l)
{
    struct rankmap *m = make(l->size, (size_t)l->size * sizeof(uint32_t));
    if (!m) return NULL;
    uint32_t *table = (uint32_t *)(m + 1);
    for (const struct rank_run *r = l->run; r < l->run + l->n; r++)
        for (int32_t i = 0; i < r->count; i++) table[r->rank + i] = run_at(r, i);
    m->table = table;
    return m;
}

static int order(uint32_t a, uint32_t b) { return a < b ? -1 : a > b; }

static int by_key(const void *x, const void *y)
{
    const struct rank_key *a = x, *b = y;
    int c = order(a->step, b->step);
    if (!c) c = order(a->residue, b->residue);
    return c ? c : order(a->low, b->low);
}

/* The keys of a list of runs, sorted. Returns the number of steps that occur. */
static uint32_t make_keys(const struct run_list *l, struct rank_key *key, uint32_t *grids_p)
{
    uint32_t steps = 1, grids = 1;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t step = run_step(&l->run[i]), low = run_low(&l->run[i]);
        key[i] = (struct rank_key){step, low % step, low, i};
    }
    qsort(key, l->n, sizeof *key, by_key);
    for (uint32_t i = 1; i < l->n; i++) {
        steps += key[i].step != key[i - 1].step;
        grids += key[i].step != key[i - 1].step || key[i].residue != key[i - 1].residue;
    }
    *grids_p = grids;
    return steps;
}

/* NULL also if it would not pay. */
static struct rankmap *runs_of(const struct run_list *l)
{
    size_t run_bytes = l->n * sizeof *l->run;
    if ((int64_t)l->n * RANKS_PER_RUN > l->size) return NULL;
    struct rankmap *m = make(l->size, run_bytes + l->n * sizeof(struct rank_key));
    if (!m) return NULL;
    struct rank_key *key = (struct rank_key *)((char *)(m + 1) + run_bytes);
    m->run = memcpy(m + 1, l->run, run_bytes);
    m->key = key;
    m->runs = l->n;
    if (make_keys(l, key, &m->grids) <= STEPS_MAX) return m;
    free(m);
    return NULL;
}

struct rankmap *rankmap_runs(struct run_list *l)
{
    struct rankmap *m = NULL;
    if (!l->failed && l->n == 0) m = rankmap_line(0, 0, 1);
    else if (!l->failed && l->n == 1) m = rankmap_line(l->size, l->run->first, l->run->stride);
    else if (!l->failed && ((m = runs_of(l)) || (m = table_of(l)))) m = hold_jobs(m, l->run, l->n);
    runs_free(l);
    return m;
}

struct rankmap *rankmap_list(int32_t size, const uint32_t *index)
{
    struct run_list l = {0};
    for (int32_t i = 0; i < size; i++) runs_add(&l, index[i], 1, 1);
    return rankmap_runs(&l);
}

struct rankmap *rankmap_ref(struct rankmap *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed); /* the caller holds one already */
    return m;
}

void rankmap_unref(struct rankmap *m)
{
    /* acq_rel: the last one sees what the others did with the map before they let go */
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    free(atomic_load_explicit(&m->inverse, memory_order_relaxed));
    unhold(m->jobs);
    free(m);
}

/* ---- rank to index ---- */

const struct rank_run *rankmap_run_of(const struct rankmap *m, int32_t rank)
{
    const struct rank_run *at = m->run; /* it is one of the `left` from here on */
    for (uint32_t left = m->runs; left > 1;) {
        uint32_t half = left / 2;
        at += at[half].rank <= rank ? half : 0;
        left -= half;
    }
    return at;
}

uint32_t rankmap_at_other(const struct rankmap *m, int32_t rank)
{
    if (m->table) return m->table[rank];
    const struct rank_run *r = rankmap_run_of(m, rank);
    return run_at(r, rank - r->rank);
}

/* ---- index to rank ---- */

uint32_t rankmap_key_above(const struct rankmap *m, uint32_t from, uint32_t step, uint32_t residue, uint32_t low)
{
    struct rank_key key = {step, residue, low, 0};
    uint32_t to = m->runs;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (by_key(&m->key[middle], &key) > 0) to = middle;
        else from = middle + 1;
    }
    return from;
}

static int32_t find_in_runs(const struct rankmap *m, uint32_t index)
{
    for (uint32_t at = 0; at < m->runs;) { /* the first key of each step */
        uint32_t step = m->key[at].step, above = rankmap_key_above(m, at, step, index % step, index);
        if (above > at) {
            const struct rank_run *r = &m->run[m->key[above - 1].run];
            int32_t i = run_find(r, index);
            if (i >= 0) return r->rank + i;
        }
        at = rankmap_key_above(m, above, step, UINT32_MAX, UINT32_MAX);
    }
    return -1;
}

/* The hash table has 2^n slots, at least 1.5 for each rank. */
static int slot_bits(const struct rankmap *m) { return 32 - __builtin_clz((uint32_t)m->size * 3 / 2); }
static uint32_t slot_of(uint32_t index, int bits) { return index * 0x9e3779b1u >> (32 - bits); }

static TERN_COLD int32_t *make_inverse(const struct rankmap *m)
{
    int bits = slot_bits(m);
    uint32_t mask = (1u << bits) - 1;
    int32_t *slot = malloc(((size_t)mask + 1) * sizeof *slot), *first = NULL;
    if (!slot) return NULL;
    memset(slot, 0xff, ((size_t)mask + 1) * sizeof *slot);
    for (int32_t r = 0; r < m->size; r++) {
        uint32_t at = slot_of(m->table[r], bits);
        while (slot[at] >= 0) at = (at + 1) & mask;
        slot[at] = r;
    }
    /* release: who finds it (acquire) finds it filled. Another thread may have been faster. */
    if (atomic_compare_exchange_strong_explicit(&((struct rankmap *)(uintptr_t)m)->inverse, &first, slot,
                                                memory_order_acq_rel, memory_order_acquire))
        return slot;
    free(slot);
    return first;
}

static int32_t scan(const struct rankmap *m, uint32_t index)
{
    for (int32_t r = 0; r < m->size; r++)
        if (m->table[r] == index) return r;
    return -1;
}

static int32_t find_in_table(const struct rankmap *m, uint32_t index)
{
    if (m->size <= SCAN_MAX) return scan(m, index);
    const int32_t *slot = atomic_load_explicit(&m->inverse, memory_order_acquire); /* pairs with make_inverse */
    if (unlikely(!slot) && !(slot = make_inverse(m))) return scan(m, index);
    int bits = slot_bits(m);
    uint32_t at = slot_of(index, bits);
    while (slot[at] >= 0 && m->table[slot[at]] != index) at = (at + 1) & ((1u << bits) - 1);
    return slot[at];
}

int32_t rankmap_find(const struct rankmap *m, uint32_t index)
{
    if (m->table) return find_in_table(m, index);
    if (m->runs > 1) return find_in_runs(m, index);
    struct rank_run line = rankmap_run(m, 0);
    return run_find(&line, index);
}

int32_t rankmap_find_once(const struct rankmap *m, uint32_t index)
{
    return m->table && !atomic_load_explicit(&m->inverse, memory_order_relaxed) ? scan(m, index) : rankmap_find(m, index);
}

/* ---- comparing ---- */

static bool same_entries(const struct rankmap *a, const struct rankmap *b)
{
    for (int32_t r = 0; r < a->size; r++)
        if (rankmap_at(a, r) != rankmap_at(b, r)) return false;
    return true;
}

/* Both in step, as far as the shorter of the two runs goes each time: the same ranks may be cut into runs differently. */
static bool same_runs(const struct rankmap *a, const struct rankmap *b)
{
    uint32_t i = 0, k = 0;
    for (int32_t rank = 0; rank < a->size;) {
        struct rank_run x = rankmap_run(a, i), y = rankmap_run(b, k);
        int32_t x_end = x.rank + x.count, y_end = y.rank + y.count, end = x_end < y_end ? x_end : y_end;
        if (run_at(&x, rank - x.rank) != run_at(&y, rank - y.rank) || (end - rank > 1 && x.stride != y.stride)) return false;
        i += x_end == end;
        k += y_end == end;
        rank = end;
    }
    return true;
}

bool rankmap_equal(const struct rankmap *a, const struct rankmap *b)
{
    if (a == b) return true;
    if (a->size != b->size) return false;
    return a->runs && b->runs ? same_runs(a, b) : same_entries(a, b);
}

/* ---- size, and telling others ---- */

size_t rankmap_bytes(const struct rankmap *m)
{
    size_t bytes = sizeof *m + (m->runs > 1 ? m->runs * (sizeof *m->run + sizeof *m->key) : 0);
    if (m->table) bytes += (size_t)m->size * sizeof *m->table;
    if (atomic_load_explicit(&m->inverse, memory_order_relaxed)) bytes += sizeof(int32_t) << slot_bits(m);
    return bytes;
}

/* The index of rank 0 of the job that all are of; false: they are of several. */
static bool one_job(const struct rankmap *m, uint32_t *first, uint64_t *job)
{
    struct proc_name name;
    *first = 0;
    *job = jobs_own_name().job;
    if (!rankmap_has_others(m)) return true;
    *first = job_index(m->jobs->job[0], 0);
    jobs_name_of(*first, &name);
    *job = name.job;
    uint32_t size = job_entry_size(m->jobs->job[0]);
    for (int32_t r = 0; r < m->size; r++)
        if (rankmap_at(m, r) - *first >= size) return false;
    return true;
}

struct rankmap_form rankmap_form_of(const struct rankmap *m)
{
    struct rankmap_form f = {.size = m->size, .runs = m->runs};
    uint32_t first;
    if (!one_job(m, &first, &f.job)) f.job = f.runs = 0;
    return f;
}

size_t rankmap_packed(const struct rankmap_form *f)
{
    if (f->runs) return f->runs * sizeof(struct rank_run);
    return (size_t)f->size * sizeof(uint32_t);
}

void rankmap_pack(const struct rankmap *m, void *to)
{
    struct rank_run *run = to;
    uint32_t *rank = to, first;
    uint64_t job;
    (void)one_job(m, &first, &job);
    for (int32_t r = 0; r < m->size && !m->runs; r++) rank[r] = m->table[r] - first;
    for (uint32_t i = 0; i < m->runs; i++) {
        run[i] = rankmap_run(m, i);
        run[i].first -= first;
    }
}

/* Adds ranks of a job as indices of this process. */
static bool add_run(struct run_list *l, uint64_t job, const struct rank_run *r)
{
    int64_t last = (int64_t)r->first + (int64_t)(r->count - 1) * r->stride;
    struct proc_name from = {job, r->first, 0}, to = {job, (uint32_t)last, 0};
    uint32_t first, other;
    if (!r->count) return true; /* of an empty group */
    if (r->count < 0 || last < 0 || last > UINT32_MAX || !jobs_index_of(&from, &first) || !jobs_index_of(&to, &other))
        return false;
    runs_add(l, first, r->stride, r->count);
    return true;
}

static bool add_rank(struct run_list *l, uint64_t job, uint32_t rank)
{
    uint32_t index;
    if (!jobs_index_of(&(struct proc_name){job, rank, 0}, &index)) return false;
    runs_add(l, index, 1, 1);
    return true;
}

struct rankmap *rankmap_unpack(const struct rankmap_form *f, const void *from)
{
    const struct rank_run *run = from;
    const uint32_t *rank = from;
    struct run_list l = {0};
    bool known = f->size >= 0;
    for (uint32_t i = 0; i < f->runs && known; i++) known = add_run(&l, f->job, &run[i]);
    for (int32_t r = 0; r < f->size && known && !f->runs; r++)
        known = add_rank(&l, f->job, rank[r]);
    if (!known || (!l.failed && l.size != f->size)) {
        runs_free(&l);
        err_set(TERN_ERR_PEER, "a group has processes of a job that this process is not connected with");
        return NULL;
    }
    struct rankmap *m = rankmap_runs(&l);
    if (!m) err_set(TERN_ERR_NOMEM, "no memory for a group of %d processes", f->size);
    return m;
}
