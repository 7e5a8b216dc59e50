/*
 * exec_test.c - the interpreter against random graphs: every operation once, never before its
 * predecessors, at once when they are met (GOAL-2, 14, 15); runs again and side by side (GOAL-16);
 * stamps (GOAL-9). Errors: exec_errors_test.c.
 */
#include "frame.h"
#include "../seed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 200, FRAMES = 3 };

static uint64_t rng;

static uint64_t draw(void) { return seed_next(&rng); }

static bool finish_edge[NODES][NODES], start_edge[NODES][NODES]; /* [from][to] */
static int nodes;

struct run {
    int started[NODES], finished[NODES];
    const struct goal_op *pending[NODES];
    int pending_count, done;
};

/* Nodes are sends; the tag says which. */
static void check_start(const struct run *r, int id)
{
    assert_int_equal(r->started[id], 1);
    for (int p = 0; p < nodes; p++) {
        if (finish_edge[p][id]) assert_int_equal(r->finished[p], 1);
        if (start_edge[p][id]) assert_int_equal(r->started[p], 1);
    }
}

static int port_send(struct goal_frame *f, const struct goal_op *op)
{
    struct run *r = f->ctx;
    r->started[op->tag]++;
    check_start(r, op->tag);
    if (draw() % 3 == 0) {
        r->finished[op->tag]++;
        return GOAL_DONE;
    }
    if (draw() % 4 == 0) { /* reported before the port returns */
        r->finished[op->tag]++;
        goal_op_done(f, op, 0);
        return GOAL_LATER;
    }
    r->pending[r->pending_count++] = op;
    return GOAL_LATER;
}

static int port_copy(struct goal_frame *f, const struct goal_buf *from, const struct goal_buf *to)
{
    (void)f;
    memcpy(to->buf, from->buf, (size_t)from->len);
    return 0;
}

static const struct goal_port port = {.send = port_send, .recv = port_send, .copy = port_copy};

static void on_done(struct goal_frame *f) { ((struct run *)f->ctx)->done++; }

/* GOAL-15: nothing that could run is waiting. */
static void check_eager(const struct run *r)
{
    for (int id = 0; id < nodes; id++) {
        bool ready = true;
        for (int p = 0; p < nodes; p++)
            if ((finish_edge[p][id] && !r->finished[p]) || (start_edge[p][id] && !r->started[p])) ready = false;
        assert_int_equal(r->started[id], ready);
    }
}

static void finish(struct goal_frame *f, struct run *r)
{
    int k = (int)(draw() % (uint64_t)r->pending_count);
    const struct goal_op *op = r->pending[k];
    r->pending[k] = r->pending[--r->pending_count];
    r->finished[op->tag]++;
    goal_op_done(f, op, 0);
    if (draw() % 8 == 0) check_eager(r);
}

static struct goal_prog *random_program(void)
{
    struct goal_build *b = goal_build_open(0, 2, 0);
    struct goal_prog *prog;
    nodes = 1 + (int)(draw() % NODES);
    memset(finish_edge, 0, sizeof finish_edge);
    memset(start_edge, 0, sizeof start_edge);
    for (int i = 0; i < nodes; i++) goal_sendv(b, 1, i, NULL, 0);
    int edges = (int)(draw() % (uint64_t)(3 * nodes));
    for (int e = 0; e < edges; e++) {
        int x = (int)(draw() % (uint64_t)nodes), y = (int)(draw() % (uint64_t)nodes);
        /* creation order is not a topological order: odd numbers come last, counted down */
        int kx = x & 1 ? 2 * NODES - x : x, ky = y & 1 ? 2 * NODES - y : y;
        if (kx == ky) continue;
        int from = kx < ky ? x : y, to = kx < ky ? y : x;
        bool start = draw() & 1;
        if ((start ? start_edge : finish_edge)[from][to]) continue;
        (start ? start_edge : finish_edge)[from][to] = true;
        (start ? goal_after_start : goal_after)(b, to, from);
    }
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    assert_int_equal(goal_verify(&prog->head, prog->head.bytes), 0);
    return prog;
}

/* GOAL-14: whatever order they end in, each operation is carried out once. */
static void random_graphs(void **state)
{
    (void)state;
    static struct run run[FRAMES];
    for (int i = 0; i < 300; i++) {
        struct goal_prog *prog = random_program();
        struct goal_frame *f[FRAMES];
        memset(run, 0, sizeof run);
        for (int k = 0; k < FRAMES; k++) { /* side by side */
            f[k] = goal_frame_new(prog, &port);
            f[k]->ctx = &run[k];
            f[k]->done = on_done;
            goal_start(f[k]);
            check_eager(&run[k]);
        }
        goal_unref(prog); /* the frames keep it */
        for (;;) {
            int k = (int)(draw() % FRAMES), tries = 0;
            while (!run[k].pending_count && tries++ < FRAMES) k = (k + 1) % FRAMES;
            if (!run[k].pending_count) break;
            finish(f[k], &run[k]);
        }
        for (int k = 0; k < FRAMES; k++) {
            assert_int_equal(run[k].done, 1);
            assert_int_equal(f[k]->status, 0);
            for (int id = 0; id < nodes; id++) assert_true(run[k].started[id] == 1 && run[k].finished[id] == 1);
            goal_frame_free(f[k]);
        }
    }
}

/* Nothing ends before the test says so. */
static int hold(struct goal_frame *f, const struct goal_op *op)
{
    struct run *r = f->ctx;
    r->started[op->tag]++;
    r->pending[op->tag] = op;
    return GOAL_LATER;
}

static const struct goal_port holding = {.send = hold, .recv = hold, .copy = port_copy};

/* GOAL-2: of two chains, one goes to its end while the other stands; an edge between them makes it wait. */
static void chains(void **state)
{
    enum { LINKS = 5 };
    bool tied = *state;
    struct goal_build *b = goal_build_open(0, 2, 0);
    struct run run = {0};
    goal_id op[2 * LINKS];
    for (int i = 0; i < 2 * LINKS; i++) {
        op[i] = goal_sendv(b, 1, i, NULL, 0);
        if (i % LINKS) goal_after(b, op[i], op[i - 1]);
    }
    if (tied) goal_after(b, op[LINKS], op[LINKS - 1]);
    struct goal_frame *f = frame_of(b, &holding, &run, on_done);
    goal_start(f);
    assert_int_equal(run.started[0], 1);
    assert_int_equal(run.started[LINKS], !tied);
    for (int k = 0; k < 2 * LINKS; k++) {
        int i = tied ? k : (k + LINKS) % (2 * LINKS); /* the second chain first, if it can be */
        assert_int_equal(run.started[i], 1);
        assert_int_equal(run.done, 0);
        goal_op_done(f, run.pending[i], 0);
        assert_int_equal(run.started[1], tied ? 1 : k >= LINKS);
    }
    assert_int_equal(run.done, 1);
    goal_frame_free(f);
}

/* GOAL-16: 10^5 restarts of one frame, each a full run. */
static int sends;
static int count_send(struct goal_frame *f, const struct goal_op *op)
{
    (void)f, (void)op;
    sends++;
    return GOAL_DONE;
}

static void restarts(void **state)
{
    (void)state;
    static const struct goal_port counting = {.send = count_send, .recv = count_send, .copy = port_copy};
    struct goal_build *b = goal_build_open(0, 2, 0);
    struct run run = {0};
    int64_t memory[2] = {0, 0};
    goal_id first = goal_send(b, 1, 0, goal_mem(0, 0), 8), copy = goal_copy(b, goal_mem(0, 0), goal_mem(1, 0), 8);
    goal_after(b, copy, first);
    goal_after(b, goal_send(b, 1, 1, goal_mem(1, 0), 8), copy);
    struct goal_frame *f = frame_of(b, &counting, &run, on_done);
    goal_bind(f, 0, &memory[0]);
    goal_bind(f, 1, &memory[1]);
    sends = 0;
    for (int i = 1; i <= 100000; i++) {
        memory[0] = i;
        goal_start(f);
        assert_int_equal(memory[1], i);
    }
    assert_int_equal(run.done, 100000);
    assert_int_equal(sends, 200000);
    goal_frame_free(f);
}

/* A copy that the port puts off holds back what follows it until it has been done. */
static const struct goal_op *later;

static bool put_off(struct goal_frame *f, const struct goal_op *op)
{
    (void)f;
    if (later) return false;
    later = op;
    return true;
}

static void copies_are_put_off(void **state)
{
    static const struct goal_port lazy = {.copy = port_copy, .put_off = put_off};
    struct goal_build *b = goal_build_open(0, 1, 0);
    struct run run = {0};
    int64_t memory[2] = {7, 0}, end = 0;
    (void)state;
    goal_id first = goal_copy(b, goal_mem(0, 0), goal_mem(0, 8), 8), second = goal_copy(b, goal_mem(0, 8), goal_mem(1, 0), 8);
    goal_after(b, second, first);
    struct goal_frame *f = frame_of(b, &lazy, &run, on_done);
    goal_bind(f, 0, memory);
    goal_bind(f, 1, &end);
    goal_start(f);
    assert_non_null(later);
    assert_int_equal(run.done, 0);
    assert_int_equal(memory[1], 0);
    goal_op_done(f, later, goal_copy_now(f, later));
    assert_int_equal(run.done, 1);
    assert_int_equal(end, 7);
    goal_frame_free(f);
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* GOAL-9: stamps around a message differ by the time that it takes, which is known from outside. */
static void stamps(void **state)
{
    (void)state;
    struct goal_build *b = goal_build_open(0, 2, 0);
    struct run run = {0};
    int64_t t[2] = {0, 0};
    goal_id first = goal_stamp(b, goal_mem(1, 0)), send = goal_sendv(b, 1, 0, NULL, 0), second = goal_stamp(b, goal_mem(1, 8));
    goal_after(b, send, first);
    goal_after(b, second, send);
    struct goal_frame *f = frame_of(b, &holding, &run, on_done);
    goal_bind(f, 1, t);
    int64_t before = now_ns();
    goal_start(f);
    int64_t started = now_ns();
    assert_int_equal(t[1], 0);
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    int64_t ended = now_ns();
    goal_op_done(f, run.pending[0], 0);
    assert_true(t[0] >= before && t[0] <= started);
    assert_true(t[1] >= ended && t[1] <= now_ns());
    assert_true(t[1] - t[0] >= ended - started && ended - started >= 3000000);
    assert_int_equal(run.done, 1);
    goal_frame_free(f);
}

/* A program without operations is done when it is started. */
static void empty(void **state)
{
    (void)state;
    struct run run = {0};
    struct goal_frame *f = frame_of(goal_build_open(0, 1, 0), &port, &run, on_done);
    goal_start(f);
    assert_int_equal(run.done, 1);
    goal_frame_free(f);
}

/* Slots bound to elements with gaps: packed offsets become addresses, negative ones too. */
static void locate(void **state)
{
    (void)state;
    char memory[100];
    struct goal_slot s = {memory + 40, (struct type *)memory, 4, 10};
    struct goal_buf b = goal_locate(&s, 8, 4);
    assert_ptr_equal(b.buf, memory + 60);
    assert_int_equal(b.skip, 0);
    b = goal_locate(&s, -4, 4);
    assert_ptr_equal(b.buf, memory + 30);
    b = goal_locate(&s, -3, 2);
    assert_ptr_equal(b.buf, memory + 30);
    assert_int_equal(b.skip, 1);
    s = (struct goal_slot){memory + 40, NULL, 1, 1};
    assert_ptr_equal(goal_locate(&s, -7, 1).buf, memory + 33);
}

int main(void)
{
    static int yes = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        {.name = "chains", .test_func = chains},
        {.name = "chains, one after the other", .test_func = chains, .initial_state = &yes},
        cmocka_unit_test(restarts),
        cmocka_unit_test(copies_are_put_off),
        cmocka_unit_test(stamps),
        cmocka_unit_test(empty),
        cmocka_unit_test(locate),
    };
    rng = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("interpreter", tests, NULL, NULL);
}
