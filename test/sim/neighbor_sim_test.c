/*
 * neighbor_sim_test.c - the neighbourhood collectives on random graphs (several edges between two ranks, edges to oneself,
 * MPI_PROC_NULL, no edges) and grids (dimensions of one and two processes, periodic or not) of 1..16 ranks, in the
 * simulator: every block arrives where MPI-5.0 8.6 says, and nothing else is touched.
 */
#include "coll/select.h"
#include "sim.h"

#include "base/err.h"
#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 16, DEGREE = 24, TRIALS = 150, BLOCK = 48 };

struct node { /* one rank */
    int in, out, sources[DEGREE], destinations[DEGREE];
    int64_t send_len[DEGREE], send_off[DEGREE], recv_len[DEGREE], recv_off[DEGREE];
    char send[DEGREE * BLOCK], recv[DEGREE * BLOCK], want[DEGREE * BLOCK];
};

static struct node node[RANKS];
static uint64_t seed, state;
static bool grid;
static int P;

static int draw(int n) { return (int)(sim_random(&state) % (uint64_t)n); }

/* ---- topologies --------------------------------------------------------- */

static void shuffle(int *a, int n)
{
    for (int i = 0; i < n; i++) {
        int k = i + draw(n - i), x = a[i];
        a[i] = a[k];
        a[k] = x;
    }
}

static void add_edge(int from, int to)
{
    if (from >= 0 && node[from].out == DEGREE) return;
    if (to >= 0 && node[to].in == DEGREE) return;
    if (from >= 0) node[from].destinations[node[from].out++] = to;
    if (to >= 0) node[to].sources[node[to].in++] = from;
}

static void make_graph(void)
{
    for (int edges = draw(4 * P), from = 0, to = 0; edges > 0; edges--) {
        if (draw(3)) from = draw(P), to = draw(P); /* else another one beside the last */
        add_edge(from, to);
        if (draw(8) == 0) add_edge(MPI_PROC_NULL, to);
        if (draw(8) == 0) add_edge(from, MPI_PROC_NULL);
    }
    for (int r = 0; r < P; r++) {
        shuffle(node[r].sources, node[r].in);
        shuffle(node[r].destinations, node[r].out);
    }
}

/* Dimensions of random sizes whose product is P; the last one runs fastest. */
static void make_grid(void)
{
    int left = P, ndims = 1 + draw(3), after = P;
    for (int d = 0; d < ndims; d++) {
        int size = d == ndims - 1 ? left : 1 + draw(left), periodic = draw(2);
        while (left % size) size--;
        left /= size;
        after /= size;
        for (int r = 0; r < P; r++) {
            int at = r / after % size, down = r - at * after, up = down;
            down = at > 0 ? r - after : periodic ? down + (size - 1) * after : MPI_PROC_NULL;
            up = at < size - 1 ? r + after : periodic ? up : MPI_PROC_NULL;
            struct node *n = &node[r];
            n->sources[n->in++] = n->destinations[n->out++] = down;
            n->sources[n->in++] = n->destinations[n->out++] = up;
        }
    }
}

/* Whose block comes to slot i of rank r: the sender's number of it. */
static int sent_as(int r, int i)
{
    if (grid) return i ^ 1; /* it went up to come from below */
    int p = node[r].sources[i], nth = 0;
    for (int k = 0; k < i; k++) nth += node[r].sources[k] == p;
    for (int k = 0; k < node[p].out; k++)
        if (node[p].destinations[k] == r && nth-- == 0) return k;
    fail_msg("an edge has one end only");
    return -1;
}

/* ---- blocks --------------------------------------------------------------- */

static bool gathers(enum coll_kind k) { return k == COLL_NEIGHBOR_ALLGATHER || k == COLL_NEIGHBOR_ALLGATHERV; }

/* Blocks of a side lie one behind the other, or, in the v-collectives, in places of any order. */
static void place(int64_t *off, int n, int64_t step, bool anywhere)
{
    int at[DEGREE];
    for (int i = 0; i < n; i++) at[i] = i;
    if (anywhere) shuffle(at, n);
    for (int i = 0; i < n; i++) off[i] = at[i] * (anywhere ? BLOCK : step);
}

static void make_blocks(enum coll_kind kind)
{
    bool v = coll_has_blocks(kind);
    int64_t equal = draw(4) ? draw(BLOCK + 1) : 0;
    for (int r = 0; r < P; r++) {
        struct node *n = &node[r];
        int64_t own = v ? draw(BLOCK + 1) : equal;
        place(n->send_off, n->out, equal, v);
        place(n->recv_off, n->in, equal, v);
        for (int i = 0; i < n->out; i++) {
            n->send_len[i] = v && !gathers(kind) ? draw(BLOCK + 1) * (draw(4) > 0) : own;
            if (gathers(kind)) n->send_off[i] = 0;
        }
        for (size_t i = 0; i < sizeof n->send; i++) n->send[i] = (char)sim_random(&state);
        memset(n->recv, 0x5a, sizeof n->recv);
        memset(n->want, 0x5a, sizeof n->want);
    }
}

static void expect(void)
{
    for (int r = 0; r < P; r++)
        for (int i = 0; i < node[r].in; i++) {
            struct node *n = &node[r];
            n->recv_len[i] = 0;
            if (n->sources[i] < 0) continue;
            const struct node *p = &node[n->sources[i]];
            int k = sent_as(r, i);
            n->recv_len[i] = p->send_len[k];
            memcpy(n->want + n->recv_off[i], p->send + p->send_off[k], (size_t)p->send_len[k]);
        }
}

/* ---- runs ------------------------------------------------------------------ */

static struct goal_prog *program(int alg, int r)
{
    enum coll_kind kind = coll_algs[alg].kind;
    struct node *n = &node[r];
    struct coll_shape s = {.kind = (uint8_t)kind, .alg = (uint8_t)alg, .rank = r, .size = P, .nodes = 1, .radix = 2, .grain = 1};
    struct coll_given v = {.in = n->in, .out = n->out, .sources = n->sources, .destinations = n->destinations, .grid = grid};
    if (coll_has_blocks(kind)) v.recv_len = n->recv_len, v.recv_off = n->recv_off;
    if (coll_has_blocks(kind) && !gathers(kind)) v.send_len = n->send_len, v.send_off = n->send_off;
    if (!v.send_len) s.bytes = n->out ? n->send_len[0] : 0;
    if (!coll_has_blocks(kind))
        for (int k = 0; k < P; k++)
            if (node[k].out) s.bytes = node[k].send_len[0];
    struct goal_prog *prog;
    assert_int_equal(coll_compile(&s, &v, &prog), 0);
    assert_int_equal(goal_verify(&prog->head, prog->head.bytes), 0);
    return prog;
}

static void bind(struct sim *sim, int r, bool each)
{
    struct node *n = &node[r];
    if (!each) {
        sim_bind(sim, r, GOAL_SEND_BUF, n->send, NULL);
        sim_bind(sim, r, GOAL_RECV_BUF, n->recv, NULL);
        return;
    }
    for (int i = 0; i < n->out; i++) sim_bind(sim, r, (unsigned)coll_slot_w(i, false), n->send + n->send_off[i], NULL);
    for (int i = 0; i < n->in; i++) sim_bind(sim, r, (unsigned)coll_slot_w(i, true), n->recv + n->recv_off[i], NULL);
}

static void trial(int alg)
{
    enum coll_kind kind = coll_algs[alg].kind;
    struct goal_prog *prog[RANKS];
    for (int r = 0; r < P; r++) node[r].in = node[r].out = 0;
    if (grid) make_grid();
    else make_graph();
    make_blocks(kind);
    expect();
    for (int r = 0; r < P; r++) prog[r] = program(alg, r);
    struct sim *sim = sim_open(P, prog, sim_random(&state));
    for (int r = 0; r < P; r++) bind(sim, r, coll_has_types(kind));
    int rc = sim_run(sim);
    for (int r = 0; r < P; r++) {
        if (!rc && !memcmp(node[r].recv, node[r].want, sizeof node[r].want)) continue;
        fail_msg("%s, %d ranks, %s, seed %llu: %s", coll_kind_name(kind), P, grid ? "grid" : "graph", (unsigned long long)seed,
                 rc ? err_words() : "wrong data");
    }
    sim_close(sim);
    for (int r = 0; r < P; r++) goal_unref(prog[r]);
}

static void run_alg(void **arg)
{
    int alg = (int)(intptr_t)*arg;
    state = seed + (uint64_t)alg;
    for (P = 1; P <= RANKS; P++)
        for (int i = 0; i < TRIALS; i++) {
            grid = i & 1;
            trial(alg);
        }
}

int main(void)
{
    static struct CMUnitTest test[16];
    size_t n = 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = sim_seed();
    for (int i = 0; i < coll_algs_count; i++)
        if (coll_has_neighbors(coll_algs[i].kind))
            test[n++] = (struct CMUnitTest){
                .name = coll_kind_name(coll_algs[i].kind), .test_func = run_alg, .initial_state = (void *)(intptr_t)i};
    return _cmocka_run_group_tests("neighbourhoods in the simulator", test, n, NULL, NULL);
}
