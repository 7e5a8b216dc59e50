/* choose.c - see choose.h. */
#include "copy/choose.h"
#include "base/lock.h"
#include "base/var.h"
#include "copy/count.h"
#include "copy/measure.h"
#include "copy/now.h"

#include <stdatomic.h>
#include <stdlib.h>

size_t copy_large_min = SIZE_MAX;

/* A way has been tried when it has so many samples, and two wholes. */
enum { SAMPLES = 7, SAMPLES_MAX = 32 };

/* A piece that is shorter is copied by memcpy: what a fence at its end costs would count. */
#define PIECE_MIN ((size_t)4 << 10)

/*
 * The first part of a whole in one piece is copied last, and by memcpy: who reads it next, from the front, finds this much in the
 * cache, and memory is prefetched meanwhile. The first 64 KB of 1 to 32 MB are read in 1.0 us instead of 6; copied first, they have
 * gone again: 4 to 6 us. The copy is no slower. Break-even: any; it is a part of what a core's own cache holds.
 */
#define WARM ((size_t)128 << 10)

/* An eighth is read, in blocks that are long enough to be prefetched. */
#define READ_BLOCK ((size_t)16 << 10)
#define READ_STEP ((size_t)128 << 10)

/* Where the ways are as good as equal, memcpy it is: its copies may be read more than once. */
#define BETTER 0.95F

static void plain(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }

static copy_fn ways[2] = {plain, copy_nontemporal};
static bool modelled; /* by a test */
static bool fixed;    /* by TERN_COPY_NT */

static struct class {
    struct lock lock;         /* of all but the next two */
    _Atomic bool nontemporal; /* the better way */
    _Atomic int64_t left;     /* bytes until the next trial; none: it is on */
    bool tried;
    float cost[2]; /* of the last trial */
    int64_t distance;
    /* The trial. */
    int way;
    size_t bytes; /* so far, this way */
    int n;
    float samples[SAMPLES_MAX]; /* ns for 1024 bytes, in no order */
} classes[COPY_CLASSES];

void copy_open(void)
{
    size_t n = (size_t)var_int(VAR_COPY_NT);
    fixed = n;
    copy_large_min = n ? n : COPY_CHOOSE_FROM;
}

static size_t smallest(const struct class *c) { return COPY_CHOOSE_FROM << (c - classes); }

static struct class *class_of(size_t whole)
{
    int k = 0;
    while (k < COPY_CLASSES - 1 && whole >= COPY_CHOOSE_FROM << (k + 1)) k++;
    return &classes[k];
}

static void copy_by(bool nontemporal, void *dst, const void *src, size_t n, size_t whole)
{
    size_t warm = n == whole && n >= 2 * WARM ? WARM : 0;
    bool bypasses = nontemporal && n >= PIECE_MIN;
    copy_count(bypasses ? COPY_BY_NONTEMPORAL : COPY_BY_MEMCPY, 1, n);
    if (!bypasses) {
        ways[0](dst, src, n);
        return;
    }
    ways[1]((char *)dst + warm, (const char *)src + warm, n - warm);
    if (warm) ways[0](dst, src, warm);
}

/* ---- trials ---- */

/* ns that it takes to read all of it. */
static float reading(int way, const char *p, size_t n, size_t whole)
{
    if (modelled) return 0;
    if (n < whole) {
        const struct copy_memory_cost *m = way ? copy_memory_cost() : NULL;
        return m ? (m->read[COPY_FAR] - m->read[COPY_NEAR]) * (float)(n / 1024) : 0;
    }
    uint64_t t = copy_now();
    for (size_t at = 0; at + READ_BLOCK <= n; at += READ_STEP)
        for (size_t i = 0; i < READ_BLOCK; i += CACHE_LINE) (void)*(const volatile char *)(p + at + i);
    return (float)(copy_now() - t) * (READ_STEP / READ_BLOCK);
}

/* The lower quartile: most of what disturbs makes it slower. */
static float typical(struct class *c)
{
    int n = c->n < SAMPLES_MAX ? c->n : SAMPLES_MAX;
    qsort(c->samples, (size_t)n, sizeof c->samples[0], copy_ascending);
    return c->samples[n / 4];
}

/* Enough is known of this way. The other way is tried no longer than it takes to see that it is twice as slow. */
static bool is_tried(const struct class *c)
{
    if (c->n >= SAMPLES && c->bytes >= 3 * smallest(c)) return true;
    return c->way && c->n >= 2 && c->samples[0] > 2 * c->cost[0] && c->samples[1] > 2 * c->cost[0];
}

static void decide(struct class *c)
{
    bool nontemporal = c->cost[1] < BETTER * c->cost[0], same = c->tried && nontemporal == atomic_load_explicit(&c->nontemporal, memory_order_relaxed);
    int64_t most = (int64_t)(smallest(c) * COPY_DISTANCE_MAX);
    c->distance = same ? min_int64(2 * c->distance, most) : (int64_t)(smallest(c) * COPY_DISTANCE);
    c->tried = true;
    /* relaxed: nothing else is read by who sees them */
    atomic_store_explicit(&c->nontemporal, nontemporal, memory_order_relaxed);
    atomic_store_explicit(&c->left, c->distance, memory_order_relaxed);
}

static TERN_COLD void try(struct class *c, void *dst, const void *src, size_t n, size_t whole)
{
    uint64_t t = copy_now();
    copy_by(c->way, dst, src, n, whole);
    float ns = (float)(copy_now() - t) + reading(c->way, dst, n, whole);
    c->bytes += n;
    if (c->bytes <= smallest(c)) return; /* the memory is as the other way has left it */
    c->samples[c->n++ % SAMPLES_MAX] = ns / ((float)n / 1024);
    if (!is_tried(c)) return;
    c->cost[c->way] = typical(c);
    if (c->way) decide(c);
    c->way = !c->way;
    c->n = 0;
    c->bytes = 0;
}

void copy_large(void *dst, const void *src, size_t n, size_t whole)
{
    struct class *c = class_of(whole);
    bool tries = !fixed && n >= PIECE_MIN && atomic_fetch_sub_explicit(&c->left, (int64_t)n, memory_order_relaxed) <= 0;
    if (tries && lock_try(&c->lock)) {
        /* Another thread may have ended the trial since. */
        if (atomic_load_explicit(&c->left, memory_order_relaxed) <= 0) try(c, dst, src, n, whole);
        else copy_by(atomic_load_explicit(&c->nontemporal, memory_order_relaxed), dst, src, n, whole);
        lock_give(&c->lock);
    } else {
        copy_by(fixed || atomic_load_explicit(&c->nontemporal, memory_order_relaxed), dst, src, n, whole);
    }
}

/* ---- for others ---- */

struct copy_choice copy_choice_of(int class)
{
    struct class *c = &classes[class];
    lock_take(&c->lock);
    struct copy_choice f = {smallest(c), c->tried, atomic_load_explicit(&c->nontemporal, memory_order_relaxed), {c->cost[0], c->cost[1]}};
    lock_give(&c->lock);
    return f;
}

void copy_choose_among(copy_fn cached, copy_fn nontemporal)
{
    ways[0] = cached ? cached : plain;
    ways[1] = nontemporal ? nontemporal : copy_nontemporal;
    modelled = cached || nontemporal;
    memset(classes, 0, sizeof classes);
}
