/*
 * rankset.c - see rankset.h.
 *
 * Intersection and difference are made in two steps: which ranks of a are in b, as an
 * ascending list of runs of ranks; and a's members with these ranks, or with those in
 * the gaps between them.
 */
#include "obj/rankset.h"

#include <stdlib.h>

/* ---- a set of small numbers ---- */

struct bits {
    uint64_t *word;
    int32_t size;
};

static bool bits_open(struct bits *b, int32_t size)
{
    b->size = size;
    b->word = calloc((size_t)size / 64 + 1, sizeof *b->word);
    return b->word;
}

/* False if it was set before. */
static bool bits_set(struct bits *b, int32_t i)
{
    uint64_t mask = (uint64_t)1 << (i & 63), before = b->word[i >> 6];
    b->word[i >> 6] = before | mask;
    return !(before & mask);
}

/* The first number from `from` on that is set (invert: ~0, is not); at least `size` if there is none. */
static int32_t bits_next(const struct bits *b, int32_t from, uint64_t invert)
{
    int32_t w = from >> 6, words = b->size / 64 + 1;
    uint64_t rest = w < words ? (b->word[w] ^ invert) & ~(uint64_t)0 << (from & 63) : 0;
    while (!rest && ++w < words) rest = b->word[w] ^ invert;
    return rest ? w * 64 + __builtin_ctzll(rest) : b->size;
}

/* Adds base + i for all i that are set, ascending. */
static void bits_list(const struct bits *b, int32_t base, struct run_list *out)
{
    for (int32_t at = bits_next(b, 0, 0), end; at < b->size; at = bits_next(b, end, 0)) {
        end = bits_next(b, at, ~(uint64_t)0);
        runs_add(out, (uint32_t)(base + at), 1, end - at);
    }
}

/* ---- which ranks of a are in b ---- */

static int by_place(const void *x, const void *y)
{
    const struct run_cut *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Where the runs of b meet one run; at most b->runs cuts, in no order. Of each grid only those that can reach it. */
static uint32_t meet(const struct rank_run *r, const struct rankmap *b, struct run_cut *cut)
{
    uint32_t n = 0, low = run_low(r), high = run_high(r);
    if (b->runs == 1) {
        struct rank_run line = rankmap_run(b, 0);
        return line.count && run_common(r, &line, cut);
    }
    for (uint32_t at = 0, end; at < b->runs; at = end) {
        const struct rank_key *k = &b->key[at];
        uint32_t from = rankmap_key_above(b, at, k->step, k->residue, low);
        end = rankmap_key_above(b, from, k->step, k->residue, UINT32_MAX);
        for (uint32_t i = from > at ? from - 1 : at; i < end && b->key[i].low <= high; i++)
            n += run_common(r, &b->run[b->key[i].run], &cut[n]);
    }
    return n;
}

static bool apart(const struct run_cut *cut, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if ((int64_t)cut[i - 1].at + (int64_t)(cut[i - 1].count - 1) * cut[i - 1].step >= cut[i].at) return false;
    return true;
}

/* Adds what the cuts stand for, ascending; they may be interleaved, but nothing is there twice. */
static void list_cuts(const struct rank_run *r, struct run_cut *cut, uint32_t n, struct run_list *out)
{
    struct bits b;
    qsort(cut, n, sizeof *cut, by_place);
    if (apart(cut, n)) {
        for (uint32_t i = 0; i < n; i++) runs_add(out, (uint32_t)(r->rank + cut[i].at), cut[i].step, cut[i].count);
        return;
    }
    if (!bits_open(&b, r->count)) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < cut[i].count; k++) bits_set(&b, cut[i].at + k * cut[i].step);
    bits_list(&b, r->rank, out);
    free(b.word);
}

static void positions_by_runs(const struct rankmap *a, const struct rankmap *b, struct run_list *out)
{
    struct run_cut *cut = malloc(b->runs * sizeof *cut);
    out->failed = !cut;
    for (uint32_t i = 0; i < a->runs && !out->failed; i++) {
        struct rank_run r = rankmap_run(a, i);
        if (r.count) list_cuts(&r, cut, meet(&r, b, cut), out);
    }
    free(cut);
}

static void positions_by_a(const struct rankmap *a, const struct rankmap *b, struct run_list *out)
{
    for (int32_t r = 0; r < a->size; r++)
        if (rankmap_find(b, rankmap_at(a, r)) >= 0) runs_add(out, (uint32_t)r, 1, 1);
}

static void positions_by_b(const struct rankmap *a, const struct rankmap *b, struct run_list *out)
{
    struct bits in;
    if (!bits_open(&in, a->size)) {
        out->failed = true;
        return;
    }
    for (int32_t r = 0; r < b->size; r++) {
        int32_t at = rankmap_find(a, rankmap_at(b, r));
        if (at >= 0) bits_set(&in, at);
    }
    bits_list(&in, 0, out);
    free(in.word);
}

static bool solid(const struct rankmap *m) { return m->runs > 1 ? m->key[m->runs - 1].step == 1 : m->stride == 1 || m->stride == -1; }

/* Is it cheaper to look at the runs than at each rank? Solid ones meet few others; any of the rest may meet all. */
static bool few_runs(const struct rankmap *a, const struct rankmap *b)
{
    if (!a->runs || !b->runs) return false;
    uint64_t meetings = solid(a) && solid(b) ? (uint64_t)a->runs + b->runs : (uint64_t)a->runs * b->runs;
    return meetings <= (uint64_t)a->size + 1;
}

static struct run_list positions(const struct rankmap *a, const struct rankmap *b)
{
    struct run_list l = {0};
    if (few_runs(a, b)) positions_by_runs(a, b, &l);
    else if (a->size <= b->size) positions_by_a(a, b, &l);
    else positions_by_b(a, b, &l);
    return l;
}

/* The numbers below `size` that are not in an ascending list, which is freed. */
static struct run_list gaps(struct run_list *in, int32_t size)
{
    struct run_list out = {.failed = in->failed};
    int32_t next = 0;
    for (const struct rank_run *r = in->run; r < in->run + in->n; r++) {
        bool solid = r->stride == 1;
        for (int32_t i = 0; i < (solid ? 1 : r->count); i++) {
            int32_t at = (int32_t)run_at(r, i);
            runs_add(&out, (uint32_t)next, 1, at - next);
            next = at + (solid ? r->count : 1);
        }
    }
    runs_add(&out, (uint32_t)next, 1, size - next);
    runs_free(in);
    return out;
}

/* ---- members by rank ---- */

/* Adds the members of a map of several runs with ranks at, at + stride ... */
static void add_across(struct run_list *out, const struct rankmap *m, int32_t at, int32_t stride, int32_t count)
{
    while (count > 0) {
        const struct rank_run *r = rankmap_run_of(m, at);
        int32_t place = at - r->rank, room = stride > 0 ? (r->count - 1 - place) / stride : place / -stride;
        int32_t n = room + 1 < count ? room + 1 : count;
        runs_add(out, run_at(r, place), n > 1 ? stride * r->stride : 1, n);
        at += n * stride;
        count -= n;
    }
}

static void add_members(struct run_list *out, const struct rankmap *m, const struct rank_run *ranks)
{
    if (m->runs == 1) runs_add(out, rankmap_at(m, (int32_t)ranks->first), ranks->stride * m->stride, ranks->count);
    else if (m->runs) add_across(out, m, (int32_t)ranks->first, ranks->stride, ranks->count);
    else
        for (int32_t i = 0; i < ranks->count; i++) runs_add(out, m->table[run_at(ranks, i)], 1, 1);
}

/* The same for a list of ranks, which is freed. */
static void add_listed(struct run_list *out, const struct rankmap *m, struct run_list *ranks)
{
    out->failed = out->failed || ranks->failed;
    for (uint32_t i = 0; i < ranks->n; i++) add_members(out, m, &ranks->run[i]);
    runs_free(ranks);
}

static struct rankmap *members(const struct rankmap *m, struct run_list *ranks)
{
    struct run_list l = {0};
    add_listed(&l, m, ranks);
    return rankmap_runs(&l);
}

static void add_all(struct run_list *out, const struct rankmap *m)
{
    struct rank_run all = {0, m->size, 0, 1};
    if (m->size) add_members(out, m, &all);
}

/* ---- operations ---- */

struct rankmap *rankset_common(const struct rankmap *a, const struct rankmap *b)
{
    struct run_list in = positions(a, b);
    return members(a, &in);
}

struct rankmap *rankset_minus(const struct rankmap *a, const struct rankmap *b)
{
    struct run_list in = positions(a, b), others = gaps(&in, a->size);
    return members(a, &others);
}

struct rankmap *rankset_union(const struct rankmap *a, const struct rankmap *b)
{
    struct run_list l = {0}, in = positions(b, a), others = gaps(&in, b->size);
    add_all(&l, a);
    add_listed(&l, b, &others);
    return rankmap_runs(&l);
}

struct rankmap *rankset_join(const struct rankmap *a, const struct rankmap *b)
{
    struct run_list l = {0};
    add_all(&l, a);
    add_all(&l, b);
    return rankmap_runs(&l);
}

struct rankmap *rankset_pick(const struct rankmap *m, const struct rankmap *ranks)
{
    struct run_list l = {0};
    for (uint32_t i = 0; i < ranks->runs; i++) {
        struct rank_run r = rankmap_run(ranks, i);
        if (r.count) add_members(&l, m, &r);
    }
    for (int32_t i = 0; i < ranks->size && ranks->table; i++) runs_add(&l, rankmap_at(m, (int32_t)ranks->table[i]), 1, 1);
    return rankmap_runs(&l);
}

struct rankmap *rankset_drop(const struct rankmap *m, const struct rankmap *ranks)
{
    struct rankmap *all = rankmap_line(m->size, 0, 1);
    if (!all) return NULL;
    struct run_list in = positions(all, ranks), others = gaps(&in, m->size);
    rankmap_unref(all);
    return members(m, &others);
}

static int32_t outside_by_rank(const struct rankmap *a, const struct rankmap *b, int32_t from, int32_t count)
{
    for (int32_t r = from; r < from + count; r++)
        if (rankmap_find(b, rankmap_at(a, r)) < 0) return r;
    return -1;
}

/* How many of a run's members the cuts hold. */
static int64_t met(const struct run_cut *cut, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += cut[i].count;
    return sum;
}

int32_t rankset_outside(const struct rankmap *a, const struct rankmap *b)
{
    struct run_cut *cut = few_runs(a, b) ? malloc(b->runs * sizeof *cut) : NULL;
    if (!cut) return outside_by_rank(a, b, 0, a->size);
    int32_t found = -1;
    for (uint32_t i = 0; i < a->runs && found < 0; i++) {
        struct rank_run r = rankmap_run(a, i);
        if (r.count && met(cut, meet(&r, b, cut)) < r.count) found = outside_by_rank(a, b, r.rank, r.count);
    }
    free(cut);
    return found;
}

static int32_t twice_by_rank(const struct rankmap *m, int32_t limit)
{
    struct bits in;
    int32_t found = -1;
    if (!bits_open(&in, limit)) return -2;
    for (int32_t r = 0; r < m->size && found < 0; r++) {
        int32_t index = (int32_t)rankmap_at(m, r);
        if (!bits_set(&in, index)) found = index;
    }
    free(in.word);
    return found;
}

/* Two runs of one grid that overlap: then two that are neighbours by their keys do. */
static int32_t overlap(const struct rankmap *m)
{
    for (uint32_t i = 1; i < m->runs; i++) {
        const struct rank_key *k = &m->key[i];
        if (k[-1].step == k->step && k[-1].residue == k->residue && run_high(&m->run[k[-1].run]) >= k->low)
            return (int32_t)k->low;
    }
    return -1;
}

int32_t rankset_twice(const struct rankmap *m, int32_t limit)
{
    if (m->runs == 1) return -1;
    int32_t found = m->runs ? overlap(m) : -1;
    if (found >= 0) return found;
    struct run_cut *cut = few_runs(m, m) ? malloc(m->runs * sizeof *cut) : NULL;
    if (!cut) return twice_by_rank(m, limit);
    bool clean = true;
    for (uint32_t i = 0; i < m->runs && clean; i++) clean = met(cut, meet(&m->run[i], m, cut)) == m->run[i].count;
    free(cut);
    return clean ? -1 : twice_by_rank(m, limit);
}
