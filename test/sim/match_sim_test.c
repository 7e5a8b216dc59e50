/*
 * match_sim_test.c - the messages of schedules through the matcher of the library and through one that is obviously right,
 * a list searched from its oldest entry (GOAL-19). Random schedules of some ranks run again and again, several runs of
 * several schedules at once, under the tags that the library gives them (schedule.h): a run's tags are those of the
 * eighth run before. Between two ranks messages keep their order, and take their time; many are there before their
 * receive has been started. Both matchers must say the same each time, and each run must receive its own words.
 */
#include "sim.h"

#include "base/list.h"
#include "coll/goal/build.h"
#include "coll/schedule.h"
#include "pt2pt/match/match.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 6, SCHEDULES = 3, RUNS = 20, MESSAGES = 40 };

/* A message on its way or unexpected, or a receive. */
struct note {
    struct link link;
    int src, tag;
    struct goal_frame *frame;
    const struct goal_op *op;
    int64_t word;
    bool waits; /* a send that is over when it is matched */
};

struct ending { /* an operation whose end is to be reported */
    struct goal_frame *frame;
    const struct goal_op *op;
};

struct side { /* a rank */
    struct match match;
    struct link posted, unexpected; /* the same, as lists */
    struct goal_prog *prog[SCHEDULES];
    struct goal_frame *frame[SCHEDULES][RUNS];
    int64_t out[SCHEDULES][RUNS][MESSAGES], in[SCHEDULES][RUNS][MESSAGES];
    int next[SCHEDULES]; /* the run to be started */
};

static struct side rank[RANKS];
static struct link channel[RANKS][RANKS]; /* [source][destination], oldest first */
static struct ending ending[4 * RANKS * SCHEDULES * SCHEDULE_RUNS * MESSAGES];
static int ranks, endings;
static long early, awaited;
static uint64_t seed, rng;

static uint64_t draw(uint64_t below) { return sim_random(&rng) % below; }

/* The word of a message: who sends it, in which run of which schedule. */
static int64_t word_of(int src, int s, int run, int message)
{
    return ((int64_t)src << 48) + ((int64_t)s << 32) + ((int64_t)run << 16) + message + 1;
}

static int rank_of(const struct goal_frame *f) { return (int)((struct side *)f->ctx - rank); }
static int tag_of(const struct goal_frame *f, const struct goal_op *op) { return (int)((uint32_t)f->tag << 16 | op->tag); }

static struct note *note_new(struct goal_frame *f, const struct goal_op *op, int src)
{
    struct note *n = calloc(1, sizeof *n);
    assert_non_null(n);
    *n = (struct note){.src = src, .tag = tag_of(f, op), .frame = f, .op = op};
    return n;
}

static struct note *oldest(struct link *list, int src, int tag)
{
    list_each(l, next, list)
    {
        struct note *n = container_of(l, struct note, link);
        if (n->src == src && n->tag == tag) return n;
    }
    return NULL;
}

static void ends(struct goal_frame *f, const struct goal_op *op)
{
    assert_true(endings < (int)ARRAY_LEN(ending));
    ending[endings++] = (struct ending){f, op};
}

static void matched(struct note *message, struct note *receive)
{
    memcpy(goal_piece_buf(receive->frame, receive->op->piece).buf, &message->word, 8);
    ends(receive->frame, receive->op);
    if (message->waits) ends(message->frame, message->op);
    free(message);
    free(receive);
}

static int send(struct goal_frame *f, const struct goal_op *op)
{
    struct note *n = note_new(f, op, rank_of(f));
    memcpy(&n->word, goal_piece_buf(f, op->piece).buf, 8);
    n->waits = draw(2);
    list_push(&channel[n->src][op->peer], &n->link);
    return n->waits ? GOAL_LATER : GOAL_DONE;
}

static int recv(struct goal_frame *f, const struct goal_op *op)
{
    struct side *r = f->ctx;
    struct note *n = note_new(f, op, op->peer), *m = oldest(&r->unexpected, n->src, n->tag);
    assert_ptr_equal(match_take(&r->match, n->src, n->tag), m);
    if (m) {
        list_remove(&m->link);
        matched(m, n);
        early++;
    } else {
        list_push(&r->posted, &n->link);
        assert_int_equal(match_post(&r->match, n->src, n->tag, n), 0);
    }
    return GOAL_LATER;
}

/* The oldest message of a channel arrives. */
static void arrive(struct link *from, int to)
{
    struct side *r = &rank[to];
    struct note *m = container_of(from->next, struct note, link), *n = oldest(&r->posted, m->src, m->tag);
    list_remove(&m->link);
    assert_ptr_equal(match_arrive(&r->match, m->src, m->tag), n);
    if (n) {
        list_remove(&n->link);
        matched(m, n);
        awaited++;
    } else {
        list_push(&r->unexpected, &m->link);
        assert_int_equal(match_store(&r->match, m->src, m->tag, m), 0);
    }
}

static void on_done(struct goal_frame *f) { assert_int_equal(f->status, 0); }

static const struct goal_port port = {.send = send, .recv = recv};

/* Messages between random ranks, which are the same for all that draw from `state`. An operation comes after earlier ones of
 * its rank or after none, so no rank waits for what waits for it. */
static struct goal_prog *draw_program(int me, uint64_t state)
{
    struct goal_build *b = goal_build_open(me, ranks, 0);
    struct goal_prog *prog;
    goal_id op[MESSAGES];
    int ops = 0;
    for (int i = 0; i < MESSAGES; i++) {
        int src = (int)(sim_random(&state) % (uint64_t)ranks), dst = (int)(sim_random(&state) % (uint64_t)ranks);
        uint64_t after = sim_random(&state);
        if (src == dst || (me != src && me != dst)) continue;
        op[ops] = me == src ? goal_send(b, dst, i, goal_mem(GOAL_SEND_BUF, i * 8), 8) : goal_recv(b, src, i, goal_mem(GOAL_RECV_BUF, i * 8), 8);
        if (ops && after % 3) goal_after(b, op[ops], op[(after >> 8) % (uint64_t)ops]);
        ops++;
    }
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    return prog;
}

static void open_rank(int me, uint64_t case_seed)
{
    struct side *r = &rank[me];
    match_init(&r->match);
    list_init(&r->posted);
    list_init(&r->unexpected);
    for (int to = 0; to < ranks; to++) list_init(&channel[me][to]);
    memset(r->in, 0, sizeof r->in);
    for (int s = 0; s < SCHEDULES; s++) {
        r->prog[s] = draw_program(me, case_seed + (uint64_t)s);
        r->next[s] = 0;
        for (int k = 0; k < RUNS; k++) {
            struct goal_frame *f = r->frame[s][k] = goal_frame_new(r->prog[s], &port);
            f->ctx = r;
            f->done = on_done;
            f->tag = SCHEDULE_TAGS | (s + 1) << 3 | k % SCHEDULE_RUNS;
            goal_bind(f, GOAL_SEND_BUF, r->out[s][k]);
            goal_bind(f, GOAL_RECV_BUF, r->in[s][k]);
            for (int i = 0; i < MESSAGES; i++) r->out[s][k][i] = word_of(me, s, k, i);
        }
    }
}

/* Starts the next run of a schedule, if the one of the same number is over. */
static bool start_run(struct side *r, int s)
{
    int k = r->next[s];
    if (k == RUNS || (k >= SCHEDULE_RUNS && r->frame[s][k - SCHEDULE_RUNS]->active)) return false;
    r->next[s]++;
    goal_start(r->frame[s][k]);
    return true;
}

static bool report_one(void)
{
    if (!endings) return false;
    int k = (int)draw((uint64_t)endings);
    struct ending e = ending[k];
    ending[k] = ending[--endings];
    goal_op_done(e.frame, e.op, 0);
    return true;
}

/* One of all things that can happen does; false: nothing can. */
static bool step(void)
{
    uint64_t first = draw((uint64_t)(ranks * ranks));
    if (draw(2) && report_one()) return true;
    if (draw(8) == 0 && start_run(&rank[draw((uint64_t)ranks)], (int)draw(SCHEDULES))) return true;
    for (int i = 0; i < ranks * ranks; i++) {
        int at = (int)((first + (uint64_t)i) % (uint64_t)(ranks * ranks));
        struct link *c = &channel[at / ranks][at % ranks];
        if (list_empty(c)) continue;
        arrive(c, at % ranks);
        return true;
    }
    if (report_one()) return true;
    for (int i = 0; i < ranks * SCHEDULES; i++)
        if (start_run(&rank[i / SCHEDULES], i % SCHEDULES)) return true;
    return false;
}

static void check_words(int me, int s, uint64_t state)
{
    for (int i = 0; i < MESSAGES; i++) {
        int src = (int)(sim_random(&state) % (uint64_t)ranks), dst = (int)(sim_random(&state) % (uint64_t)ranks);
        sim_random(&state);
        for (int k = 0; k < RUNS; k++)
            assert_int_equal(rank[me].in[s][k][i], src != dst && dst == me ? word_of(src, s, k, i) : 0);
    }
}

static void close_rank(int me, uint64_t case_seed)
{
    struct side *r = &rank[me];
    assert_int_equal(match_posted_count(&r->match) + match_unexpected_count(&r->match), 0);
    match_fini(&r->match);
    for (int s = 0; s < SCHEDULES; s++) {
        check_words(me, s, case_seed + (uint64_t)s);
        for (int k = 0; k < RUNS; k++) {
            assert_false(r->frame[s][k]->active);
            goal_frame_free(r->frame[s][k]);
        }
        goal_unref(r->prog[s]);
    }
}

static void traffic(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 200; n++) {
        uint64_t case_seed = seed + n * SCHEDULES;
        rng = case_seed;
        ranks = 2 + (int)draw(RANKS - 1);
        for (int i = 0; i < ranks; i++) open_rank(i, case_seed);
        while (step()) continue;
        for (int i = 0; i < ranks; i++) close_rank(i, case_seed);
    }
    print_message("# %ld messages found their receive, %ld were there before it\n", awaited, early);
    assert_true(awaited > 1000 && early > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(traffic)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    return cmocka_run_group_tests_name("messages of schedules, matched", tests, NULL, NULL);
}
