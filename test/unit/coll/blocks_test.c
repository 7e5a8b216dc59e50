/*
 * blocks_test.c - the blocks of collectives inside a node (coll/node/blocks.h), against the standard's text: data is moved
 * among the buffers of all ranks by either, and must be the same behind it, also where nothing is to be written. All
 * kinds, roots, 1 to 5 ranks, in place or not, types with and without gaps.
 */
#include "coll/node/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5, ROOM = 1024, UNIT = 8 /* bytes of data */ };

/* A rank: `recv` is what the code at hand moves data to, `expected` what the standard says of it. */
static struct rank {
    struct coll_call call;
    char send[ROOM], recv[ROOM], expected[ROOM];
    int64_t scounts[MOST], sdispls[MOST], rcounts[MOST], rdispls[MOST];
    struct type *stypes[MOST], *rtypes[MOST];
} rank[MOST];

static int ranks, root;
static bool in_place;
static enum coll_kind kind;
static struct type *types[2]; /* one integer, half a unit; a unit of two integers with gaps */

static bool is_alltoall(void) { return kind == COLL_ALLTOALL || kind == COLL_ALLTOALLV || kind == COLL_ALLTOALLW; }
static bool sends_each(void) { return is_alltoall() || kind == COLL_SCATTER || kind == COLL_SCATTERV; }
static bool gets_each(void) { return kind != COLL_BCAST && kind != COLL_SCATTER && kind != COLL_SCATTERV; }
static bool is_v(void) { return coll_has_blocks(kind); }

static int64_t elements(int64_t units, const struct type *t) { return units * UNIT / t->size; }

/* Units of data from one rank to another: blocks of v-collectives differ, and some are empty. In place, an alltoall needs
 * as much in either direction. */
static int64_t units(int from, int to)
{
    switch (kind) {
    case COLL_GATHERV:
    case COLL_ALLGATHERV:
        return (from + 2) % 3;
    case COLL_SCATTERV:
        return (to + 1) % 3;
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
        return (from + to) % 3;
    default:
        return 2;
    }
}

/* ---- by the standard ---- */

/* A send from sendbuf, or from recvbuf in place, and its receive: at byte `from_at` and `to_at`. */
static void message(int from, bool from_recv, int64_t from_at, int64_t scount, struct type *stype, int to, int64_t to_at,
                    int64_t rcount, struct type *rtype)
{
    const char *source = from_recv ? rank[from].recv : rank[from].send;
    type_copy_across(rank[to].expected + to_at, rcount, rtype, source + from_at, scount, stype);
}

/* 6.4: the contents of root's buffer is copied to all other processes. */
static void standard_bcast(void)
{
    for (int r = 0; r < ranks; r++) {
        const struct coll_call *s = &rank[root].call, *d = &rank[r].call;
        if (r != root) message(root, true, 0, s->rcount, s->rtype, r, 0, d->rcount, d->rtype);
    }
}

/* 6.5: each process executes MPI_Send(sendbuf, sendcount, sendtype, root), the root n times MPI_Recv(recvbuf + i *
 * recvcount * extent(recvtype), recvcount, recvtype, i), or from recvbuf + displs[i] * extent, recvcounts[i]. 6.7: as if all
 * processes executed n of these, for root = 0 to n - 1; in place, the input is where the process would receive its own. */
static void standard_gather(int at, bool for_all)
{
    const struct coll_call *d = &rank[at].call;
    for (int i = 0; i < ranks; i++) {
        const struct coll_call *s = &rank[i].call;
        int64_t offset = d->rcounts ? d->rdispls[i] * d->rtype->extent : i * d->rcount * d->rtype->extent;
        int64_t count = d->rcounts ? d->rcounts[i] : d->rcount;
        if (in_place && i == at) continue; /* it is there already */
        if (in_place && for_all)
            message(i, true, s->rcounts ? s->rdispls[i] * s->rtype->extent : i * s->rcount * s->rtype->extent,
                    s->rcounts ? s->rcounts[i] : s->rcount, s->rtype, at, offset, count, d->rtype);
        else
            message(i, false, 0, s->scount, s->stype, at, offset, count, d->rtype);
    }
}

/* 6.6: the root executes n times MPI_Send(sendbuf + i * sendcount * extent(sendtype), sendcount, sendtype, i), each process
 * MPI_Recv(recvbuf, recvcount, recvtype, root). In place, root sends itself nothing. */
static void standard_scatter(void)
{
    const struct coll_call *s = &rank[root].call;
    for (int i = 0; i < ranks; i++) {
        const struct coll_call *d = &rank[i].call;
        int64_t offset = s->scounts ? s->sdispls[i] * s->stype->extent : i * s->scount * s->stype->extent;
        if (in_place && i == root) continue;
        message(root, false, offset, s->scounts ? s->scounts[i] : s->scount, s->stype, i, 0, d->rcount, d->rtype);
    }
}

struct place {
    int64_t at, count;
    struct type *type;
};

static struct place place_in(bool recv, const struct coll_call *a, int i)
{
    int64_t count = recv ? a->rcount : a->scount;
    const int64_t *counts = recv ? a->rcounts : a->scounts, *displs = recv ? a->rdispls : a->sdispls;
    struct type *t = recv ? a->rtype : a->stype;
    if (kind == COLL_ALLTOALL) return (struct place){i * count * t->extent, count, t};
    if (kind == COLL_ALLTOALLV) return (struct place){displs[i] * t->extent, counts[i], t};
    return (struct place){displs[i], counts[i], (recv ? a->rtypes : a->stypes)[i]}; /* in bytes */
}

/* 6.8: each process sends to each, MPI_Send(sendbuf + sdispls[i] * extent(sendtype), sendcounts[i], sendtype, i), MPI_Recv(
 * recvbuf + rdispls[i] * extent(recvtype), recvcounts[i], recvtype, i). In place, what is sent is taken from recvbuf and
 * replaced: as much as is received, from the same place. */
static void standard_alltoall(void)
{
    for (int from = 0; from < ranks; from++)
        for (int to = 0; to < ranks; to++) {
            struct place s = place_in(in_place, &rank[from].call, to), d = place_in(true, &rank[to].call, from);
            message(from, in_place, s.at, s.count, s.type, to, d.at, d.count, d.type);
        }
}

static void by_the_standard(void)
{
    for (int r = 0; r < ranks; r++) memcpy(rank[r].expected, rank[r].recv, ROOM);
    switch (kind) {
    case COLL_BCAST:
        standard_bcast();
        return;
    case COLL_SCATTER:
    case COLL_SCATTERV:
        standard_scatter();
        return;
    case COLL_GATHER:
    case COLL_GATHERV:
        standard_gather(root, false);
        return;
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
        for (int r = 0; r < ranks; r++) standard_gather(r, true);
        return;
    default:
        standard_alltoall();
        return;
    }
}

/* ---- by blocks ---- */

static char packed[MOST][MOST][ROOM];

static void by_blocks(void)
{
    for (int from = 0; from < ranks; from++)
        for (int to = 0; to < ranks; to++) {
            if (from == to || !node_moves(&rank[from].call, from, to)) continue;
            struct node_block b = node_out(&rank[from].call, from, to);
            assert_true(node_bytes(&b) == (size_t)(units(from, to) * UNIT));
            node_pack(packed[from][to], b);
        }
    for (int to = 0; to < ranks; to++) {
        for (int from = 0; from < ranks; from++) {
            if (from == to) continue;
            assert_int_equal(node_moves(&rank[from].call, from, to), node_moves(&rank[to].call, from, to));
            if (node_moves(&rank[to].call, from, to)) node_unpack(node_in(&rank[to].call, from), packed[from][to]);
        }
        node_move_own(&rank[to].call, to);
    }
}

/* ---- the calls ---- */

/* Displacements in the opposite order of the ranks, with room in between. */
static int64_t displacement(int r, const struct type *t)
{
    int64_t extents = (MOST - 1 - r) * 10;
    return kind == COLL_ALLTOALLW ? extents * (int64_t)sizeof(int) : t == types[0] ? extents : extents / 3;
}

static void say_sent(struct rank *k, int me, struct type *t)
{
    struct coll_call *a = &k->call;
    a->sendbuf = k->send;
    a->stype = t;
    a->scount = is_v() && sends_each() ? -1 : elements(units(me, root), t);
    for (int r = 0; r < ranks; r++) {
        k->stypes[r] = kind == COLL_ALLTOALLW ? types[(me + r) % 2] : t;
        k->scounts[r] = elements(units(me, r), k->stypes[r]);
        k->sdispls[r] = displacement(r, k->stypes[r]);
    }
    if (is_v() && sends_each()) a->scounts = k->scounts, a->sdispls = k->sdispls;
    if (kind == COLL_ALLTOALLW) a->stypes = k->stypes, a->stype = NULL;
}

static void say_received(struct rank *k, int me, struct type *t)
{
    struct coll_call *a = &k->call;
    a->recvbuf = k->recv;
    a->rtype = t;
    a->rcount = is_v() && gets_each() ? -1 : elements(units(root, me), t);
    for (int r = 0; r < ranks; r++) {
        k->rtypes[r] = kind == COLL_ALLTOALLW ? types[(2 * me + r) % 2] : t;
        k->rcounts[r] = elements(units(r, me), k->rtypes[r]);
        k->rdispls[r] = displacement(r, k->rtypes[r]);
    }
    if (is_v() && gets_each()) a->rcounts = k->rcounts, a->rdispls = k->rdispls;
    if (kind == COLL_ALLTOALLW) a->rtypes = k->rtypes, a->rtype = NULL;
}

/* What means nothing at a rank is left out, as by the entry points. */
static void say_call(int me, struct type *stype, struct type *rtype)
{
    struct rank *k = &rank[me];
    bool from_root = kind == COLL_BCAST || kind == COLL_SCATTER || kind == COLL_SCATTERV;
    bool to_root = kind == COLL_GATHER || kind == COLL_GATHERV, here = me == root || (!from_root && !to_root);
    bool kept = in_place && here;
    memset(k, 0, sizeof *k);
    for (int i = 0; i < ROOM; i++) {
        k->send[i] = (char)(me * 50 + i % 47 + 1);
        k->recv[i] = (char)(-me * 50 - i % 43 - 1);
    }
    k->call = (struct coll_call){.kind = kind, .root = root};
    if (kind != COLL_BCAST && (!from_root || me == root) && !(kept && !from_root)) say_sent(k, me, stype);
    if ((!to_root || me == root) && !(kept && from_root)) say_received(k, me, rtype);
    if (kept && from_root) k->call.recvbuf = MPI_IN_PLACE;
    if (kept && !from_root) k->call.sendbuf = MPI_IN_PLACE;
}

static void compare(void)
{
    by_the_standard();
    by_blocks();
    for (int r = 0; r < ranks; r++)
        if (memcmp(rank[r].recv, rank[r].expected, ROOM))
            fail_msg("%s of %d ranks, root %d%s: rank %d has other data", coll_kind_name(kind), ranks, root,
                     in_place ? ", in place" : "", r);
}

static void every_block_goes_where_the_standard_says(void **state)
{
    static const enum coll_kind kinds[] = {COLL_BCAST,     COLL_SCATTER,    COLL_SCATTERV, COLL_GATHER,    COLL_GATHERV,
                                           COLL_ALLGATHER, COLL_ALLGATHERV, COLL_ALLTOALL, COLL_ALLTOALLV, COLL_ALLTOALLW};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (ranks = 1; ranks <= MOST; ranks++)
            for (root = 0; root < ranks; root++)
                for (int variant = 0; variant < 8; variant++) {
                    kind = kinds[k];
                    in_place = variant & 4 && kind != COLL_BCAST;
                    for (int r = 0; r < ranks; r++) say_call(r, types[variant & 1], types[variant >> 1 & 1]);
                    compare();
                }
}

/* ---- reductions ---- */

/* 6.10: recvcounts[r] elements of the result, which is as long as all of them, go to rank r; recvcount elements each in the
 * block form. In all others all ranks have the same count of both. */
static void operands_and_results(void **state)
{
    int64_t counts[MOST] = {3, 0, 2, 5, 1}, sums[MOST] = {0, 3, 3, 5, 10}, before = -1;
    char in[ROOM], out[ROOM];
    (void)state;
    struct coll_call a = {.sendbuf = in, .recvbuf = out, .rcount = 4, .rtype = types[0]};
    for (int me = 0; me < MOST; me++) {
        a.kind = COLL_ALLREDUCE;
        a.rcounts = NULL;
        assert_int_equal(node_operand(&a, MOST).count, 4);
        assert_int_equal(node_result(&a, me, &before).count, 4);
        assert_int_equal(before, 0);
        a.kind = COLL_REDUCE_SCATTER_BLOCK;
        assert_int_equal(node_operand(&a, MOST).count, 20);
        assert_int_equal(node_result(&a, me, &before).count, 4);
        assert_int_equal(before, 4 * me);
        a.kind = COLL_REDUCE_SCATTER;
        a.rcounts = counts;
        assert_int_equal(node_operand(&a, MOST).count, 11);
        assert_int_equal(node_result(&a, me, &before).count, counts[me]);
        assert_int_equal(before, sums[me]);
    }
    assert_ptr_equal(node_operand(&a, MOST).buf, in);
    assert_ptr_equal(node_result(&a, 0, &before).buf, out);
    a.sendbuf = MPI_IN_PLACE;
    assert_ptr_equal(node_operand(&a, MOST).buf, out);
}

static int open_types(void **state)
{
    (void)state;
    if (type_open()) return -1;
    types[0] = type_of(MPI_INT);
    return type_vector(2, 1, 2, TYPE_ELEMENTS, types[0], &types[1]) || type_commit(types[1]);
}

static int close_types(void **state)
{
    (void)state;
    type_unref(types[1]);
    type_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_goes_where_the_standard_says),
        cmocka_unit_test(operands_and_results),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("blocks of collectives inside a node", tests, open_types, close_types);
}
