/*
 * coll_mutant_test.c - would the simulator notice? Correct schedules are made wrong by leaving out one dependency,
 * every one in turn that alone keeps two operations in order of which one writes what the other touches; each such
 * schedule must be found wrong under some order of events.
 */
#include "trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 256, TRIES = 400 };

static uint64_t seed;

/* The operations of one program, and its edges as a matrix. */
struct view {
    const struct goal_op *op[OPS];
    int n;
    bool edge[OPS][OPS], reach[OPS][OPS];
};

struct mutant { /* the program of `rank` without the edge between two of its operations */
    int rank, from, to;
};

static void view_open(struct view *w, const struct goal_prog *prog)
{
    const struct goal_head *h = &prog->head;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    memset(w, 0, sizeof *w);
    w->n = (int)h->op_count;
    assert_true(w->n <= OPS);
    for (int i = 0; i < w->n; i++, op = goal_op_next(op)) {
        w->op[i] = op;
        for (int k = 0; k < op->n_finish; k++) w->edge[i][goal_op_at(h, goal_edges(op)[k])->index] = true;
    }
}

/* Which operations can be reached from which; the block is in an order that respects the edges. */
static void find_reach(struct view *w)
{
    memset(w->reach, 0, sizeof w->reach);
    for (int i = w->n - 1; i >= 0; i--)
        for (int k = i + 1; k < w->n; k++) {
            if (!w->edge[i][k]) continue;
            w->reach[i][k] = true;
            for (int j = k + 1; j < w->n; j++) w->reach[i][j] |= w->reach[k][j];
        }
}

static bool pieces_meet(const struct goal_op *a, const struct goal_op *b, int a_from, int b_from)
{
    for (int i = a_from; i < a->n_in + a->n_out; i++)
        for (int k = b_from; k < b->n_in + b->n_out; k++) {
            const struct goal_piece *x = &a->piece[i], *y = &b->piece[k];
            if (goal_piece_slot(x) == goal_piece_slot(y) && x->off < y->off + goal_piece_len(y) &&
                y->off < x->off + goal_piece_len(x))
                return true;
        }
    return false;
}

static bool is_message(const struct goal_op *op) { return op->type == GOAL_OP_SEND || op->type == GOAL_OP_RECV; }

/*
 * Does one of them write what the other touches? Without memory, in a barrier: has one heard what the other tells? Two
 * local operations do not count: each is done at once, and combining is associative.
 */
static bool conflict(const struct goal_op *a, const struct goal_op *b)
{
    if (!is_message(a) && !is_message(b)) return false;
    if (a->type == GOAL_OP_RECV && b->type == GOAL_OP_SEND && !a->n_out) return true;
    return pieces_meet(a, b, a->n_in, 0) || pieces_meet(a, b, 0, b->n_in);
}

/* Is the edge the only thing that keeps two conflicting operations apart? */
static bool matters(struct view *w, int from, int to)
{
    static bool whole[OPS][OPS];
    bool wrong = false;
    find_reach(w);
    memcpy(whole, w->reach, sizeof whole);
    w->edge[from][to] = false;
    find_reach(w);
    for (int i = 0; i < w->n && !wrong; i++) {
        if (!is_message(w->op[i]) && !w->op[i]->dependencies) continue; /* it is done at the start in any case */
        for (int k = i + 1; k < w->n && !wrong; k++)
            wrong = whole[i][k] && !w->reach[i][k] && conflict(w->op[i], w->op[k]);
    }
    w->edge[from][to] = true;
    return wrong;
}

static goal_id add_again(struct goal_build *b, const struct goal_op *op)
{
    static struct goal_part part[4096];
    int n = op->n_in + op->n_out;
    assert_true(n <= (int)ARRAY_LEN(part));
    for (int i = 0; i < n; i++) {
        const struct goal_piece *p = &op->piece[i];
        part[i] = (struct goal_part){goal_mem((int)goal_piece_slot(p), p->off), goal_piece_len(p)};
    }
    switch (op->type) {
    case GOAL_OP_SEND:
        return goal_sendv(b, op->peer, op->tag, part, n);
    case GOAL_OP_RECV:
        return goal_recvv(b, op->peer, op->tag, part, n);
    case GOAL_OP_COPY:
        return goal_copyv(b, part, op->n_in, part + op->n_in, op->n_out);
    case GOAL_OP_REDUCE:
        return goal_reducev(b, part, op->n_in, part + op->n_in, op->n_out);
    case GOAL_OP_REDUCE3:
        return goal_reduce3(b, part[0].at, part[1].at, part[2].at, part[0].len);
    default:
        return goal_join(b);
    }
}

static void make_mutant(void *ctx, struct goal_prog *prog[])
{
    const struct mutant *m = ctx;
    const struct goal_head *h = &prog[m->rank]->head;
    struct goal_build *b = goal_build_open(h->rank, h->size, h->flags);
    const struct goal_op *op = goal_op_at(h, h->first_op);
    struct goal_prog *changed;
    goal_scratch(b, h->scratch);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op)) add_again(b, op);
    op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
        for (int k = 0; k < op->n_finish + op->n_start; k++) {
            int to = (int)goal_op_at(h, goal_edges(op)[k])->index;
            if (k >= op->n_finish)
                goal_after_start(b, to, (goal_id)i);
            else if ((int)i != m->from || to != m->to)
                goal_after(b, to, (goal_id)i);
        }
    assert_int_equal(goal_seal(b, &changed), 0);
    goal_build_close(b);
    goal_unref(prog[m->rank]);
    prog[m->rank] = changed;
}

static bool caught(const struct trial *t, struct mutant *m)
{
    struct trial again = *t;
    struct trial_change change = {make_mutant, m};
    uint64_t state = t->seed;
    char words[TRIAL_WORDS];
    for (int i = 0; i < TRIES; i++) {
        again.seed = sim_random(&state);
        if (!trial_run(&again, &change, words)) return true;
    }
    return false;
}

/* Two nodes with two domains each. */
static void place(struct trial *t)
{
    t->nodes = 2;
    t->domains = 4;
    for (int r = 0; r < t->P; r++) {
        t->domain[r] = r * 4 / t->P;
        t->node[r] = t->domain[r] / 2;
    }
}

static struct trial case_of(enum coll_kind kind, const char *name, int P, bool in_place)
{
    struct trial t = {
        .alg = coll_alg_find(kind, name), .P = P, .in_place = in_place, .elems = 6, .esize = 8, .radix = 3, .nodes = 1};
    assert_true(t.alg >= 0);
    t.ordered = coll_reduces(kind);
    if (t.ordered) t.esize = 16;
    t.segment = 2 * t.esize;
    t.root = trial_has_root(kind) ? P / 2 : 0;
    t.seed = seed;
    if (coll_algs[t.alg].flags & ALG_DOMAINS) place(&t);
    return t;
}

/* All edges that matter of all ranks. Returns how many there are. */
static int try_all(const struct trial *t)
{
    static struct view w;
    struct goal_prog *prog[TRIAL_RANKS];
    int mutants = 0;
    assert_true(trial_compile(t, prog));
    for (int r = 0; r < t->P; r++) {
        view_open(&w, prog[r]);
        for (int i = 0; i < w.n; i++)
            for (int k = i + 1; k < w.n; k++) {
                struct mutant m = {r, i, k};
                if (!w.edge[i][k] || !matters(&w, i, k)) continue;
                mutants++;
                if (!caught(t, &m)) {
                    char *text = goal_print(&prog[r]->head);
                    print_error(
                        "%s %s, %d ranks%s: rank %d without the edge from operation %d to %d is not found wrong:\n%s",
                        coll_kind_name(coll_algs[t->alg].kind), coll_algs[t->alg].name, t->P,
                        t->in_place ? ", in place" : "", r, i, k, text ? text : "");
                    free(text);
                    fail();
                }
            }
    }
    for (int r = 0; r < t->P; r++) goal_unref(prog[r]);
    return mutants;
}

static void edges(void **state)
{
    static const struct {
        enum coll_kind kind;
        const char *name;
        bool in_place;
    } is[] = {
        {COLL_BARRIER, "linear", false},
        {COLL_BARRIER, "tree", false},
        {COLL_BARRIER, "domain_leaders", false},
        {COLL_BCAST, "domain_leaders", false},
        {COLL_REDUCE, "domain_leaders", true},
        {COLL_ALLREDUCE, "domain_leaders", true},
        {COLL_GATHER, "domain_leaders", false},
        {COLL_SCATTER, "domain_leaders", false},
        {COLL_ALLGATHER, "domain_leaders", true},
        {COLL_BCAST, "binomial", false},
        {COLL_BCAST, "split_binary", false},
        {COLL_BCAST, "scatter_doubling", false},
        {COLL_REDUCE, "binomial", true},
        {COLL_REDUCE, "two_tree", false},
        {COLL_REDUCE, "halving", true},
        {COLL_ALLREDUCE, "doubling", true},
        {COLL_ALLREDUCE, "halving", true},
        {COLL_ALLREDUCE, "knomial", true},
        {COLL_ALLREDUCE, "deposit", true},
        {COLL_GATHER, "binomial", false},
        {COLL_SCATTER, "binomial", false},
        {COLL_ALLGATHER, "bruck", false},
        {COLL_ALLGATHER, "ring", true},
        {COLL_ALLTOALL, "bruck", true},
        {COLL_ALLTOALL, "pairwise", true},
        {COLL_REDUCE_SCATTER_BLOCK, "halving", true},
        {COLL_SCAN, "binomial", true},
        {COLL_EXSCAN, "doubling", true},
    };
    (void)state;
    int mutants = 0;
    for (size_t i = 0; i < ARRAY_LEN(is); i++)
        for (int P = 4; P <= 7; P += 3) {
            struct trial t = case_of(is[i].kind, is[i].name, P, is[i].in_place);
            if (t.domains == P) continue; /* who releases one rank only need not have heard from it */
            int n = try_all(&t);
            assert_true(n > 0);
            mutants += n;
        }
    printf("# wrong schedules found: %d\n", mutants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    return cmocka_run_group_tests_name("wrong schedules", tests, NULL, NULL);
}
