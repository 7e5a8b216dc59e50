/* reference.c - see reference.h. */
#include "reference.h"
#include "../seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(e)                                                                                                        \
    do {                                                                                                               \
        if (!(e)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #e);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void add_item(struct ref *r, struct ref_item item)
{
    if (r->n == r->room) {
        r->room = r->room ? 2 * r->room : 16;
        r->items = realloc(r->items, (size_t)r->room * sizeof *r->items);
        MUST(r->items);
    }
    r->items[r->n++] = item;
}

void ref_open(struct ref *r) { *r = (struct ref){.align = 1}; }

void ref_close(struct ref *r)
{
    free(r->items);
    *r = (struct ref){0};
}

/* The C structs behind the pair types, independent of the table under test. */
static const struct pair {
    MPI_Datatype pair, first, second;
    size_t at, extent;
} pairs[] = {
#define PAIR(p, f, s, a, b)                                                                                            \
    {                                                                                                                  \
        p, f, s,                                                                                                       \
            offsetof(                                                                                                  \
                struct {                                                                                               \
                    a x;                                                                                               \
                    b y;                                                                                               \
                },                                                                                                     \
                y),                                                                                                    \
            sizeof(struct {                                                                                            \
                a x;                                                                                                   \
                b y;                                                                                                   \
            })                                                                                                         \
    }
    PAIR(MPI_DOUBLE_INT, MPI_DOUBLE, MPI_INT, double, int),
    PAIR(MPI_SHORT_INT, MPI_SHORT, MPI_INT, short, int),
    PAIR(MPI_LONG_INT, MPI_LONG, MPI_INT, long, int),
    PAIR(MPI_2INT, MPI_INT, MPI_INT, int, int),
    PAIR(MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_INT, long double, int),
#undef PAIR
};

void ref_basic(struct ref *r, MPI_Datatype basic)
{
    struct type *t = type_of(basic);
    ref_open(r);
    r->any = true;
    r->align = t->align;
    r->ub = t->size;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (pairs[i].pair != basic) continue;
        add_item(r, (struct ref_item){0, type_of(pairs[i].first)->size, pairs[i].first});
        add_item(r, (struct ref_item){(int64_t)pairs[i].at, type_of(pairs[i].second)->size, pairs[i].second});
        r->ub = (int64_t)pairs[i].extent;
        return;
    }
    add_item(r, (struct ref_item){0, t->size, basic});
}

void ref_add(struct ref *r, int64_t disp, const struct ref *part)
{
    if (!part->any) return;
    int64_t lo = disp + part->lb, hi = disp + part->ub;
    for (int64_t i = 0; i < part->n; i++) {
        struct ref_item item = part->items[i];
        item.disp += disp;
        add_item(r, item);
    }
    if (part->align > r->align) r->align = part->align;
    if (!r->any || (part->lb_set && !r->lb_set) || (part->lb_set == r->lb_set && lo < r->lb)) r->lb = lo;
    if (!r->any || (part->ub_set && !r->ub_set) || (part->ub_set == r->ub_set && hi > r->ub)) r->ub = hi;
    r->lb_set = r->lb_set || part->lb_set;
    r->ub_set = r->ub_set || part->ub_set;
    r->any = true;
}

void ref_add_n(struct ref *r, int64_t disp, int64_t n, const struct ref *part)
{
    for (int64_t i = 0; i < n; i++) ref_add(r, disp + i * ref_extent(part), part);
}

void ref_seal(struct ref *r)
{
    if (!r->ub_set)
        while ((r->ub - r->lb) % r->align) r->ub++;
}

int64_t ref_extent(const struct ref *r) { return r->ub - r->lb; }

int64_t ref_size(const struct ref *r)
{
    int64_t size = 0;
    for (int64_t i = 0; i < r->n; i++) size += r->items[i].size;
    return size;
}

void ref_true(const struct ref *r, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const struct ref_item *it = &r->items[i];
        if (i == 0 || it->disp < *lo) *lo = it->disp;
        if (i == 0 || it->disp + it->size > *hi) *hi = it->disp + it->size;
    }
}

void ref_pack(const struct ref *r, int64_t count, const char *buf, char *out)
{
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < r->n; i++)
            for (int64_t b = 0; b < r->items[i].size; b++) *out++ = buf[k * ref_extent(r) + r->items[i].disp + b];
}

void ref_unpack(const struct ref *r, int64_t count, char *buf, const char *in)
{
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < r->n; i++)
            for (int64_t b = 0; b < r->items[i].size; b++) buf[k * ref_extent(r) + r->items[i].disp + b] = *in++;
}

/* ---- random numbers ---- */

static uint64_t state;

void random_open(void) { state = seed_open(); }

void random_seed(uint64_t seed) { state = seed; }

uint64_t random_u64(void) { return seed_next(&state); }

int64_t random_int(int64_t lo, int64_t hi) { return lo + (int64_t)(random_u64() % (uint64_t)(hi - lo + 1)); }

void random_fill(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) ((unsigned char *)p)[i] = (unsigned char)random_u64();
}

int64_t test_count(int64_t dflt)
{
    const char *count = getenv("TERN_TEST_COUNT");
    return count ? strtoll(count, NULL, 0) : dflt;
}

/* ---- random types ---- */

#define MOST 200 /* blocks or members of one constructor */

static const MPI_Datatype basics[] = {
    MPI_CHAR, MPI_SHORT,     MPI_INT,  MPI_DOUBLE,          MPI_FLOAT,    MPI_C_DOUBLE_COMPLEX, MPI_LONG, MPI_WCHAR,
    MPI_BYTE, MPI_SHORT_INT, MPI_2INT, MPI_LONG_DOUBLE_INT, MPI_LONG_INT, MPI_DOUBLE_INT};

static struct type *random_basic(struct ref *r)
{
    MPI_Datatype d = basics[random_int(0, (int64_t)ARRAY_LEN(basics) - 1)];
    ref_basic(r, d);
    return type_of(d);
}

/* How many of a part with n items may be taken: mostly few, sometimes many, never too many. */
static int64_t some(int64_t n, int64_t max_items)
{
    int64_t most = n ? max_items / n : 8;
    int64_t want = random_int(0, 9) ? random_int(0, 6) : random_int(0, MOST);
    return want < most ? want : most;
}

static struct type *random_vector(struct type *old, const struct ref *part, int64_t max, struct ref *r)
{
    enum type_unit unit = random_u64() & 1 ? TYPE_BYTES : TYPE_ELEMENTS;
    int64_t n = some(part->n, max), len = some(part->n * (n ? n : 1), max);
    int64_t stride = random_u64() & 3 ? len + random_int(0, 3) : random_int(-9, 9);
    int64_t step = unit == TYPE_BYTES ? stride : stride * ref_extent(part);
    struct type *t;
    MUST(!type_vector(n, len, stride, unit, old, &t));
    for (int64_t i = 0; i < n; i++) ref_add_n(r, i * step, len, part);
    return t;
}

static struct type *random_indexed(struct type *old, const struct ref *part, int64_t max, struct ref *r)
{
    enum type_unit unit = random_u64() & 1 ? TYPE_BYTES : TYPE_ELEMENTS;
    int64_t lens[MOST], displs[MOST], n = some(part->n, max), at = random_int(-20, 20);
    bool same = random_u64() & 1;
    struct type *t;
    int64_t len = some(part->n * (n ? n : 1), max);
    for (int64_t i = 0; i < n; i++) {
        lens[i] = same ? len : random_int(0, len);
        displs[i] = at;
        at += random_u64() & 3 ? lens[i] * (unit == TYPE_BYTES ? ref_extent(part) : 1) + random_int(0, 2) : -7;
        ref_add_n(r, displs[i] * (unit == TYPE_BYTES ? 1 : ref_extent(part)), lens[i], part);
    }
    if (same)
        MUST(!type_indexed_block(n, len, displs, unit, old, &t));
    else
        MUST(!type_indexed(n, lens, displs, unit, old, &t));
    return t;
}

static struct type *random_struct(int depth, int64_t max, struct ref *r)
{
    struct type *members[8] = {NULL}, *t;
    struct ref parts[8];
    int64_t n = random_int(0, 8), lens[8] = {0}, displs[8] = {0}, at = random_int(-5, 5);
    for (int64_t i = 0; i < n; i++) {
        members[i] = random_type(depth - 1, max / n, &parts[i]);
        lens[i] = some(parts[i].n, max / n);
        displs[i] = at + random_int(0, 3);
        at = displs[i] + lens[i] * ref_extent(&parts[i]);
        if (!random_int(0, 5)) at = random_int(-50, 50);
        ref_add_n(r, displs[i], lens[i], &parts[i]);
    }
    MUST(!type_struct(n, lens, displs, members, &t));
    for (int64_t i = 0; i < n; i++) {
        type_unref(members[i]);
        ref_close(&parts[i]);
    }
    return t;
}

static struct type *random_resized(struct type *old, const struct ref *part, struct ref *r)
{
    int64_t lb = random_int(-9, 9), extent = ref_extent(part) + random_int(-4, 24);
    struct type *t;
    MUST(!type_resized(old, lb, extent, &t));
    ref_add(r, 0, part);
    r->any = r->lb_set = r->ub_set = true;
    r->lb = lb;
    r->ub = lb + extent;
    return t;
}

static struct type *random_subarray(struct type *old, const struct ref *part, int64_t max, struct ref *r)
{
    int64_t size[3], sub[3], start[3], e = ref_extent(part), at[3];
    bool c = random_u64() & 1;
    struct type *t;
    for (int d = 0; d < 3; d++) {
        sub[d] = random_int(1, 3);
        start[d] = random_int(0, 2);
        size[d] = start[d] + sub[d] + random_int(0, 2);
    }
    while (part->n * sub[0] * sub[1] * sub[2] > max) sub[0] = sub[1] = sub[2] = 1, max = INT64_MAX;
    MUST(!type_subarray(3, size, sub, start, c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &t));
    for (at[0] = 0; at[0] < sub[c ? 0 : 2]; at[0]++)
        for (at[1] = 0; at[1] < sub[1]; at[1]++)
            for (at[2] = 0; at[2] < sub[c ? 2 : 0]; at[2]++) {
                int64_t slow = at[0] + start[c ? 0 : 2], mid = at[1] + start[1], fast = at[2] + start[c ? 2 : 0];
                ref_add(r, ((slow * size[1] + mid) * size[c ? 2 : 0] + fast) * e, part);
            }
    r->any = r->lb_set = r->ub_set = true;
    r->lb = 0;
    r->ub = size[0] * size[1] * size[2] * e;
    return t;
}

/* ---- a distributed array: each element goes to the process that the standard's words give it to (5.1.4) ---- */

struct dim {
    int64_t size;
    int distrib, darg, procs, coord;
};

static struct dim random_dim(void)
{
    static const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    struct dim d = {.size = random_int(1, 7), .distrib = kinds[random_int(0, 2)], .darg = MPI_DISTRIBUTE_DFLT_DARG, .procs = 1};
    if (d.distrib != MPI_DISTRIBUTE_NONE) d.procs = (int)random_int(1, 3);
    if (random_u64() & 1) return d;
    if (d.distrib == MPI_DISTRIBUTE_CYCLIC) d.darg = (int)random_int(1, 3);
    if (d.distrib == MPI_DISTRIBUTE_BLOCK) d.darg = (int)((d.size + d.procs - 1) / d.procs + random_int(0, 1));
    return d;
}

static bool owns(const struct dim *d, int64_t index)
{
    int64_t block = d->darg;
    if (d->distrib == MPI_DISTRIBUTE_NONE) return true;
    if (d->darg == MPI_DISTRIBUTE_DFLT_DARG)
        block = d->distrib == MPI_DISTRIBUTE_CYCLIC ? 1 : (d->size + d->procs - 1) / d->procs;
    return index / block % d->procs == d->coord;
}

static struct type *random_darray(struct type *old, const struct ref *part, struct ref *r)
{
    struct dim d[2] = {random_dim(), random_dim()};
    int rank = (int)random_int(0, d[0].procs * d[1].procs - 1);
    d[0].coord = rank / d[1].procs;
    d[1].coord = rank % d[1].procs;
    int64_t sizes[2] = {d[0].size, d[1].size};
    int distribs[2] = {d[0].distrib, d[1].distrib}, dargs[2] = {d[0].darg, d[1].darg}, procs[2] = {d[0].procs, d[1].procs};
    int slow = random_u64() & 1 ? 0 : 1, fast = 1 - slow;
    struct type *t;
    MUST(!type_darray(procs[0] * procs[1], rank, 2, sizes, distribs, dargs, procs, slow == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                      old, &t));
    for (int64_t i = 0; i < sizes[slow]; i++)
        for (int64_t j = 0; j < sizes[fast]; j++)
            if (owns(&d[slow], i) && owns(&d[fast], j)) ref_add(r, (i * sizes[fast] + j) * ref_extent(part), part);
    r->any = r->lb_set = r->ub_set = true;
    r->lb = 0;
    r->ub = sizes[0] * sizes[1] * ref_extent(part);
    return t;
}

struct type *random_type(int depth, int64_t max, struct ref *r)
{
    struct ref part;
    struct type *old, *t;
    if (depth == 0) return random_basic(r);
    ref_open(r);
    if (!random_int(0, 3)) {
        t = random_struct(depth, max, r);
        ref_seal(r);
        return t;
    }
    old = random_type(depth - 1, max, &part);
    if (!random_int(0, 3)) MUST(!type_commit(old)); /* parts may be in either form */
    int64_t n;
    switch (random_int(0, part.n * 49 <= max ? 6 : 5)) {
    case 0:
        n = some(part.n, max);
        MUST(!type_contiguous(n, old, &t));
        ref_add_n(r, 0, n, &part);
        break;
    case 1:
        t = random_vector(old, &part, max, r);
        break;
    case 2:
        t = random_indexed(old, &part, max, r);
        break;
    case 3:
        t = random_resized(old, &part, r);
        break;
    case 4:
        t = random_subarray(old, &part, max, r);
        break;
    case 6:
        t = random_darray(old, &part, r);
        break;
    default:
        MUST(!type_dup(old, &t));
        ref_add(r, 0, &part);
    }
    ref_seal(r);
    type_unref(old);
    ref_close(&part);
    return t;
}
