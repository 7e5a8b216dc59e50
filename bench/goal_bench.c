/*
 * goal_bench.c - what schedules cost by themselves: no network, all messages complete at once.
 *
 *   run_<collective>_<ranks>_ns_per_op      a run of rank 1's cached program, by operation
 *   size_<collective>_<ranks>_bytes_per_op  the block without its head, by operation
 *   build_..._ns_per_op                     compiling it
 *   verify_..._ns_per_op                    judging it
 *   cache_hit_ns                            finding it again among 32 programs
 *   restart_empty_ns                        starting a program without operations
 *   stamp_ns                                a time stamp in a chain of stamps (GOAL-9)
 *   release_ns                              from the end of a message to the start of the one after it (GOAL-14)
 *   max_caller_<n>_ns, max_executor_<n>_ns  the maximum of two vectors of n floats: a loop of the caller's, and a schedule
 *                                           with one operation
 *   max_loss_ns, max_crossover_floats       how much longer the schedule takes at most, and the size from which on it
 *                                           is not slower any more (GOAL-31: at most 100 ns; 0: there is no such size)
 * Bounds (GOAL-12..14): 30 ns and 64 bytes per operation.
 *
 *     goal_bench --count
 *
 * runs the programs a hundred times in measured_run, for callgrind, and prints operations_measured (the port does
 * nothing then): bench/instructions.sh.
 */
#include "base/var.h"
#include "coll/cache.h"
#include "coll/goal/exec.h"
#include "type/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int message(struct goal_frame *f, const struct goal_op *op)
{
    (void)f, (void)op;
    return GOAL_DONE;
}

static int local(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b)
{
    (void)f;
    memcpy(b->buf, a->buf, (size_t)a->len);
    return 0;
}

static int local3(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b, const struct goal_buf *out)
{
    (void)f, (void)b;
    memcpy(out->buf, a->buf, (size_t)a->len);
    return 0;
}

static const struct goal_port port = {message, message, local, local, local3, NULL, NULL};
static void done(struct goal_frame *f) { (void)f; }

static int nothing(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b)
{
    (void)f, (void)a, (void)b;
    return GOAL_DONE;
}

static int nothing3(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b, const struct goal_buf *out)
{
    (void)f, (void)a, (void)b, (void)out;
    return GOAL_DONE;
}

static const struct goal_port idle_port = {message, message, nothing, nothing, nothing3, NULL, NULL};
static bool counting;
static double operations; /* counted */

__attribute__((noinline)) void measured_run(struct goal_frame *, int runs);
void measured_run(struct goal_frame *f, int runs)
{
    for (int i = 0; i < runs; i++) goal_start(f);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median over 15 blocks of the nanoseconds of one call. */
static double measure(void (*call)(void *), void *arg, int calls)
{
    double t[15];
    for (int k = 0; k < 15; k++) {
        double start = now_ns();
        for (int i = 0; i < calls; i++) call(arg);
        t[k] = (now_ns() - start) / calls;
    }
    qsort(t, 15, sizeof *t, by_value);
    return t[7];
}

static struct coll_shape shape(enum coll_kind kind, const char *alg, int ranks, int64_t bytes)
{
    struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)coll_alg_find(kind, alg), .rank = 1, .size = ranks, .nodes = 1};
    s.flags = COLL_EXACT;
    s.bytes = bytes;
    s.grain = coll_reduces(kind) ? 8 : 1;
    s.segment = 1024;
    s.radix = 4;
    return s;
}

static void run(void *f) { goal_start(f); }

static void build(void *s)
{
    struct goal_prog *prog;
    if (coll_compile(s, &coll_given_nothing, &prog)) exit(1);
    goal_unref(prog);
}

static void verify(void *prog)
{
    const struct goal_head *h = &((struct goal_prog *)prog)->head;
    if (goal_verify(h, h->bytes)) exit(1);
}

static void report(struct goal_frame *f, struct coll_shape *s, struct goal_prog *prog, const char *alg)
{
    double ops = prog->head.op_count;
    int calls = (int)(200000 / ops) + 1;
    const char *name = coll_kind_name((enum coll_kind)s->kind);
    printf("run_%s_%s_%d_ns_per_op %.1f\n", name, alg, s->size, measure(run, f, calls) / ops);
    printf("size_%s_%s_%d_bytes_per_op %.1f\n", name, alg, s->size, (prog->head.bytes - prog->head.first_op) / ops);
    printf("build_%s_%s_%d_ns_per_op %.1f\n", name, alg, s->size, measure(build, s, calls / 8 + 1) / ops);
    printf("verify_%s_%s_%d_ns_per_op %.1f\n", name, alg, s->size, measure(verify, prog, calls / 8 + 1) / ops);
}

static void one(enum coll_kind kind, const char *alg, int ranks, int64_t bytes)
{
    struct coll_shape s = shape(kind, alg, ranks, bytes);
    struct goal_prog *prog;
    char *memory = calloc(2, (size_t)ranks * (size_t)bytes + 1);
    if (!memory || coll_compile(&s, &coll_given_nothing, &prog)) exit(1);
    struct goal_frame *f = goal_frame_new(prog, counting ? &idle_port : &port);
    f->done = done;
    goal_bind(f, GOAL_SEND_BUF, memory);
    goal_bind(f, GOAL_RECV_BUF, memory + (size_t)ranks * (size_t)bytes);
    if (coll_reduces(kind) && goal_bind_scratch(f, NULL, 1, 1, 0, 1)) exit(1);
    if (counting) measured_run(f, 100);
    else report(f, &s, prog, alg);
    operations += 100.0 * prog->head.op_count;
    goal_frame_free(f);
    goal_unref(prog);
    free(memory);
}

static void look_up(void *cache)
{
    static int turn;
    struct coll_shape s = shape(COLL_BARRIER, "dissemination", 4, turn = (turn + 5) % 32);
    struct coll_key k = {&s, NULL, 0};
    struct goal_prog *prog;
    void *idle;
    if (!coll_cache_find(cache, &k, &prog, &idle)) {
        if (coll_compile(&s, &coll_given_nothing, &prog)) exit(1);
        coll_cache_add(cache, &k, prog);
    }
    goal_unref(prog);
}

/* ---- the maximum of two vectors ---- */

enum { FLOATS_MAX = 1 << 20 };
static float left[FLOATS_MAX], right[FLOATS_MAX];

static int reduce(struct goal_frame *f, const struct goal_buf *in, const struct goal_buf *inout)
{
    return op_apply(f->op, in->buf, inout->buf, in->len / 4, f->type);
}

static void by_caller(void *n)
{
    for (int i = 0; i < *(int *)n; i++) right[i] = left[i] > right[i] ? left[i] : right[i];
}

/* How much longer the schedule takes than the caller. */
static double maximum(int n)
{
    static const struct goal_port with_operators = {message, message, local, reduce, local3, NULL, NULL};
    struct goal_build *b = goal_build_open(0, 1, 0);
    struct goal_prog *prog;
    goal_reduce(b, goal_mem(GOAL_SEND_BUF, 0), goal_mem(GOAL_RECV_BUF, 0), (int64_t)n * 4);
    if (goal_seal(b, &prog)) exit(1);
    goal_build_close(b);
    struct goal_frame *f = goal_frame_new(prog, &with_operators);
    f->done = done;
    f->op = op_of(MPI_MAX);
    f->type = type_of(MPI_FLOAT);
    goal_bind(f, GOAL_SEND_BUF, left);
    goal_bind(f, GOAL_RECV_BUF, right);
    int calls = 4000000 / (n + 100) + 1;
    double caller = measure(by_caller, &n, calls), executor = measure(run, f, calls);
    printf("max_caller_%d_ns %.1f\n", n, caller);
    printf("max_executor_%d_ns %.1f\n", n, executor);
    goal_frame_free(f);
    goal_unref(prog);
    return executor - caller;
}

static void maxima(void)
{
    double worst = 0;
    int crossover = 0;
    for (int n = 2; n <= FLOATS_MAX; n *= 4) {
        double loss = maximum(n);
        if (loss > worst) worst = loss;
        if (loss > 0) crossover = 0;
        else if (!crossover) crossover = n;
    }
    printf("max_loss_ns %.1f\n", worst);
    printf("max_crossover_floats %d\n", crossover);
}

/* ---- chains ---- */

enum { LINKS = 1000 };
static const struct goal_op *held;

static int hold(struct goal_frame *f, const struct goal_op *op)
{
    (void)f;
    held = op;
    return GOAL_LATER;
}

/* A run whose messages are ended one after the other, from outside. */
static void run_held(void *f)
{
    goal_start(f);
    for (int i = 0; i < LINKS; i++) goal_op_done(f, held, 0);
}

static void chain(bool stamps)
{
    static const struct goal_port holding = {.send = hold, .recv = hold, .copy = local, .reduce = local, .reduce3 = local3};
    struct goal_build *b = goal_build_open(0, 2, 0);
    struct goal_prog *prog;
    goal_id before = GOAL_NONE;
    for (int i = 0; i < LINKS; i++) {
        goal_id op = stamps ? goal_stamp(b, goal_mem(GOAL_SEND_BUF, i * 8)) : goal_send(b, 1, i, goal_mem(GOAL_SEND_BUF, 0), 8);
        goal_after(b, op, before);
        before = op;
    }
    if (goal_seal(b, &prog)) exit(1);
    goal_build_close(b);
    struct goal_frame *f = goal_frame_new(prog, &holding);
    f->done = done;
    goal_bind(f, GOAL_SEND_BUF, left);
    printf("%s_ns %.1f\n", stamps ? "stamp" : "release", measure(stamps ? run : run_held, f, 200) / LINKS);
    goal_frame_free(f);
    goal_unref(prog);
}

static void programs(void)
{
    one(COLL_BARRIER, "dissemination", 16, 0);
    one(COLL_BCAST, "binomial", 16, 8);
    one(COLL_BCAST, "chain", 16, 65536);
    one(COLL_ALLREDUCE, "doubling", 16, 8);
    one(COLL_ALLREDUCE, "halving", 16, 4096);
    one(COLL_ALLREDUCE, "ring", 16, 4096);
    one(COLL_ALLGATHER, "ring", 64, 8);
    one(COLL_ALLTOALL, "direct", 64, 8);
    if (!counting) one(COLL_ALLTOALL, "bruck", 64, 8); /* has lists of many pieces, which count for themselves */
}

int main(int argc, char **argv)
{
    counting = argc > 1 && !strcmp(argv[1], "--count");
    programs();
    if (counting) {
        printf("operations_measured %.0f\n", operations);
        return 0;
    }
    struct coll_shape empty = shape(COLL_BCAST, "binomial", 4, 0);
    struct goal_prog *prog;
    if (coll_compile(&empty, &coll_given_nothing, &prog)) return 1;
    struct goal_frame *f = goal_frame_new(prog, &port);
    f->done = done;
    printf("restart_empty_ns %.1f\n", measure(run, f, 100000));
    goal_frame_free(f);
    goal_unref(prog);
    struct coll_cache *cache = coll_cache_open(64, free);
    for (int i = 0; i < 32; i++) look_up(cache);
    printf("cache_hit_ns %.1f\n", measure(look_up, cache, 100000));
    coll_cache_close(cache);
    if (var_open() || type_open() || op_open()) return 1;
    chain(true);
    chain(false);
    maxima();
    return 0;
}
