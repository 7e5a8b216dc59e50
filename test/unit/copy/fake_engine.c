/* fake_engine.c - see fake_engine.h. */
#include "fake_engine.h"
#include "base/err.h"

struct fake fake;

static struct {
    uint64_t end; /* of all that was issued */
    uint64_t finished;
    size_t n, issued;
    struct {
        void *dst;
        const void *src;
        size_t n;
        uint64_t end;
    } ring[64];
} engine;

uint64_t fake_clock(void)
{
    fake.reads++;
    return fake.now;
}

static int fake_open(size_t depth, void **state_p)
{
    (void)depth;
    memset(&engine, 0, sizeof engine);
    *state_p = &engine;
    return 0;
}

static void fake_close(void *state) { (void)state; }

static int fake_push(void *state, void *dst, const void *src, size_t n)
{
    (void)state;
    if (engine.n == ARRAY_LEN(engine.ring)) return TERN_AGAIN;
    engine.ring[engine.n].dst = dst;
    engine.ring[engine.n].src = src;
    engine.ring[engine.n++].n = n;
    fake.now += (uint64_t)fake.submit;
    return 0;
}

static void fake_issue(void *state)
{
    (void)state;
    if (engine.issued == engine.n) return;
    if (engine.end <= fake.now) engine.end = fake.now + (uint64_t)fake.lag;
    for (; engine.issued < engine.n; engine.issued++) {
        engine.end += (uint64_t)((double)engine.ring[engine.issued].n * fake.pace);
        engine.ring[engine.issued].end = engine.end;
    }
    fake.now += (uint64_t)fake.issue;
}

static uint64_t fake_finished(void *state)
{
    (void)state;
    fake.now += (uint64_t)fake.look;
    while (engine.issued && engine.ring[0].end <= fake.now) {
        if (!fake.dry) memcpy(engine.ring[0].dst, engine.ring[0].src, engine.ring[0].n);
        engine.n--;
        engine.issued--;
        memmove(engine.ring, engine.ring + 1, engine.n * sizeof engine.ring[0]);
        engine.finished++;
    }
    return engine.finished;
}

const struct copy_ops fake_ops = {
    .name = "fake",
    .flags = COPY_ASYNC,
    .open = fake_open,
    .close = fake_close,
    .push = fake_push,
    .issue = fake_issue,
    .finished = fake_finished,
};
