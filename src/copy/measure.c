/* measure.c - see measure.h. */
#include "copy/measure.h"
#include "base/clock.h"
#include "base/lock.h"
#include "copy/dsa.h"

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
        uint64_t t = clock_ns();
        work(m->to, m->from, PIECE);
        t = clock_ns() - t;
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

const struct copy_memory_cost *copy_memory_cost(void)
{
    static struct copy_memory_cost found;
    static struct lock lock;
    static bool known;
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

void copy_engine_cost(struct copy_queue *q, struct copy_engine_cost *c)
{
    const struct copy_memory_cost *m = copy_memory_cost();
    char to[COPY_BATCH][LINE], from[COPY_BATCH][LINE] = {{0}};
    copy_cookie k;
    *c = (struct copy_engine_cost){1e9F, 1e9F, 0};
    for (int i = 0; i < SAMPLES; i++) {
        let_sleep();
        uint64_t t = clock_ns();
        for (int n = 0; n < COPY_BATCH; n++) (void)copy_submit(q, to[n], from[n], LINE, &k);
        uint64_t submitted = clock_ns();
        copy_issue(q);
        c->issue_ns = least_of(c->issue_ns, (float)(clock_ns() - submitted));
        c->submit_ns = least_of(c->submit_ns, (float)(submitted - t) / COPY_BATCH);
        copy_wait_all(q);
    }
    float each = m ? m->cached[COPY_FAR][COPY_FAR] : 100; /* ns for 1024 bytes: 10 GB/s */
    c->worth = (size_t)((c->submit_ns * COPY_BATCH + c->issue_ns) / each * 1024);
}

/* What cannot be opened is no choice, and no error. */
static bool pays(const struct copy_ops *ops, size_t most, size_t depth, struct copy_queue **q_p, size_t *worth_p)
{
    struct copy_engine_cost c;
    if (copy_queue_open(ops, depth, q_p)) return false;
    copy_engine_cost(*q_p, &c);
    *worth_p = c.worth;
    if (c.worth <= most && !copy_given_up(*q_p)) return true;
    copy_queue_close(*q_p);
    return false;
}

int copy_queue_open_best(bool other_core, size_t most, size_t depth, struct copy_queue **q_p, size_t *worth_p)
{
    if (pays(&copy_dsa_ops, most, depth, q_p, worth_p)) return 0;
    if (other_core && pays(&copy_core_ops, most, depth, q_p, worth_p)) return 0;
    *worth_p = 0;
    return copy_queue_open(&copy_nontemporal_ops, depth, q_p);
}
