/* measure.c - see measure.h. */
#include "copy/measure.h"
#include "base/lock.h"
#include "copy/count.h"
#include "copy/dsa.h"
#include "copy/now.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define PIECE ((size_t)32 << 10)
#define LINE 64

enum { ROUNDS = 3, SAMPLES = 5 };

#if defined(__x86_64__)
#include <immintrin.h>

enum { CAN_FLUSH = 1 };

static void flush(const char *p)
{
    for (size_t i = 0; i < PIECE; i += LINE) _mm_clflush(p + i);
    _mm_mfence();
}

#else

enum { CAN_FLUSH = 0 };
static void flush(const char *p) { (void)p; }

#endif

static void read_lines(void *unused, const void *p, size_t n)
{
    (void)unused;
    for (size_t i = 0; i < n; i += LINE) (void)*(const volatile char *)((const char *)p + i);
}

static void plain(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }

static void put(const char *p, enum copy_place where)
{
    if (where == COPY_FAR) flush(p);
    else read_lines(NULL, p, PIECE);
}

struct room {
    TERN_ALIGNED(4096) char to[PIECE], from[PIECE];
};

/* The least of some: what disturbs makes it slower only. */
static float cost(struct room *m, void (*work)(void *, const void *, size_t), enum copy_place src, enum copy_place dst)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        put(m->from, src);
        put(m->to, dst);
        uint64_t t = copy_now();
        work(m->to, m->from, PIECE);
        t = copy_now() - t;
        if (t < least) least = t;
    }
    return (float)least / (float)(PIECE / 1024);
}

static bool measure(struct copy_memory_cost *m)
{
    struct room *room = aligned_alloc(4096, sizeof *room);
    if (!room) return false;
    memset(room, 1, sizeof *room);
    for (int src = COPY_NEAR; src <= COPY_FAR; src++) {
        m->read[src] = cost(room, read_lines, src, COPY_NEAR);
        for (int dst = COPY_NEAR; dst <= COPY_FAR; dst++) {
            m->cached[src][dst] = cost(room, plain, src, dst);
            m->nontemporal[src][dst] = cost(room, copy_nontemporal, src, dst);
        }
    }
    free(room);
    return true;
}

static const struct copy_memory_cost *told; /* by a test */

void copy_memory_cost_is(const struct copy_memory_cost *m) { told = m; }

const struct copy_memory_cost *copy_memory_cost(void)
{
    static struct copy_memory_cost found;
    static struct lock lock;
    static bool known;
    if (told) return told;
    if (!CAN_FLUSH) return NULL;
    lock_take(&lock);
    if (!known) known = measure(&found);
    lock_give(&lock);
    return known ? &found : NULL;
}

/* ---- engines ---- */

static void let_sleep(void)
{
    struct timespec t = {.tv_nsec = 20000}; /* and what the system adds */
    nanosleep(&t, NULL);
}

static float least_of(float a, float b) { return a < b ? a : b; }

int copy_ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float median(float *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, copy_ascending);
    return t[n / 2];
}

/* ns from `issued` until all has been copied, by the engine alone, which may be a thread that needs this core. */
static float end_of(struct copy_queue *q, uint64_t issued)
{
    for (unsigned looks = 1; copy_poll(q) < copy_last(q); looks++) {
        if (looks % 64 == 0) sched_yield();
        else cpu_relax();
    }
    return (float)(copy_now() - issued);
}

/* Some copies of a line: what they cost the caller, and how long the engine takes to see to them. */
static void measure_start(struct copy_queue *q, struct copy_engine_cost *c)
{
    char to[COPY_BATCH][LINE], from[COPY_BATCH][LINE] = {{0}};
    float ends[SAMPLES];
    copy_cookie k;
    for (int i = 0; i < SAMPLES; i++) {
        let_sleep();
        uint64_t t = copy_now();
        for (int n = 0; n < COPY_BATCH; n++) (void)copy_submit(q, to[n], from[n], LINE, &k);
        uint64_t submitted = copy_now();
        copy_issue(q);
        c->issue_ns = least_of(c->issue_ns, (float)(copy_now() - submitted));
        c->submit_ns = least_of(c->submit_ns, (float)(submitted - t) / COPY_BATCH);
        ends[i] = end_of(q, submitted);
    }
    c->lag_ns = median(ends, SAMPLES);
}

/* ns for a byte of a longer one. */
static float pace(struct copy_queue *q, struct room *m, enum copy_place src, float lag)
{
    float ends[ROUNDS];
    copy_cookie k;
    for (int i = 0; i < ROUNDS; i++) {
        put(m->from, src);
        put(m->to, COPY_FAR);
        let_sleep();
        (void)copy_submit(q, m->to, m->from, PIECE, &k);
        uint64_t t = copy_now();
        copy_issue(q);
        ends[i] = end_of(q, t);
    }
    float all = median(ends, ROUNDS) - lag;
    return all > 0 ? all / PIECE : 0;
}

void copy_engine_cost(struct copy_queue *q, struct copy_engine_cost *c)
{
    const struct copy_memory_cost *m = copy_memory_cost();
    struct room *room = aligned_alloc(4096, sizeof *room);
    *c = (struct copy_engine_cost){.submit_ns = 1e9F, .issue_ns = 1e9F};
    measure_start(q, c);
    if (room) memset(room, 1, sizeof *room);
    for (int src = COPY_NEAR; src <= COPY_FAR; src++) {
        c->own[src] = (m ? m->cached[src][COPY_FAR] : 100) / 1024; /* 10 GB/s */
        c->pace[src] = room ? pace(q, room, (enum copy_place)src, c->lag_ns) : c->own[src];
    }
    free(room);
}

/* What cannot be opened is no choice, and no error. The border of uncached sources is the lower one; each batch is asked about again. */
static bool pays(const struct copy_ops *ops, size_t most, size_t depth, struct copy_queue **q_p)
{
    struct copy_engine_cost c;
    if (copy_queue_open(ops, depth, q_p)) return false;
    copy_engine_cost(*q_p, &c);
    copy_measured(*q_p, &c);
    if (copy_record_of(*q_p).worth[COPY_FAR] <= most && !copy_given_up(*q_p)) return true;
    copy_queue_close(*q_p);
    return false;
}

int copy_queue_open_best(bool other_core, size_t most, size_t depth, struct copy_queue **q_p)
{
    if (pays(&copy_dsa_ops, most, depth, q_p)) return 0;
    if (other_core && pays(&copy_core_ops, most, depth, q_p)) return 0;
    return copy_queue_open(&copy_nontemporal_ops, depth, q_p);
}
