/*
 * sync.c - put, get and accumulates in each kind of epoch, on each kind of window: what an origin has done is there when the
 * synchronisation says so.
 */
#include "windows.h"

#include <stddef.h>

enum { N = 1000 }; /* ints a rank */

static int next(void) { return (check_rank + 1) % check_size; }
static int before(void) { return (check_rank + check_size - 1) % check_size; }

static MPI_Aint place(const struct window *w, int rank, MPI_Aint byte) { return window_place(w, rank, byte); }

static int value(int rank, int round, int i) { return rank * 1000000 + round * 10000 + i; }

static void fill(int *data, int rank, int round)
{
    for (int i = 0; i < N; i++) data[i] = value(rank, round, i);
}

static int differ(const int *data, int rank, int round)
{
    int bad = 0;
    for (int i = 0; i < N; i++) bad += data[i] != value(rank, round, i);
    return bad;
}

static void by_fence(struct window *w)
{
    int data[N], got[N];
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
    for (int round = 0; round < 3; round++) {
        fill(data, check_rank, round);
        CHECK_OK(MPI_Put(data, N, MPI_INT, next(), place(w, next(), 0), N, MPI_INT, w->win));
        CHECK_OK(MPI_Win_fence(0, w->win));
        CHECK(!differ((int *)w->base, before(), round), "%s: what rank %d has put is not there", kind_name[w->kind], before());
        CHECK_OK(MPI_Get(got, N, MPI_INT, next(), place(w, next(), 0), N, MPI_INT, w->win));
        CHECK_OK(MPI_Win_fence(0, w->win));
        CHECK(!differ(got, check_rank, round), "%s: what was put is not what is got", kind_name[w->kind]);
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

static void by_post(struct window *w)
{
    MPI_Group all, to, from;
    int data[N], flag = 0, a = next(), b = before();
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &a, &to);
    MPI_Group_incl(all, 1, &b, &from);
    for (int round = 3; round < 6; round++) {
        fill(data, check_rank, round);
        CHECK_OK(MPI_Win_post(from, 0, w->win));
        CHECK_OK(MPI_Win_start(to, 0, w->win));
        CHECK_OK(MPI_Put(data, N, MPI_INT, next(), place(w, next(), 0), N, MPI_INT, w->win));
        CHECK_OK(MPI_Win_complete(w->win));
        if (round == 4)
            while (!flag) CHECK_OK(MPI_Win_test(w->win, &flag));
        else CHECK_OK(MPI_Win_wait(w->win));
        CHECK(!differ((int *)w->base, before(), round), "%s: what rank %d has put is not there", kind_name[w->kind], before());
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each adds to each, alone. */
static void by_exclusive_locks(struct window *w)
{
    int *own = (int *)w->base;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    own[0] = 0;
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 20; round++)
        for (int r = 0; r < check_size; r++) {
            int target = (check_rank + r) % check_size, got = -1;
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
            CHECK_OK(MPI_Get(&got, 1, MPI_INT, target, place(w, target, 0), 1, MPI_INT, w->win));
            CHECK_OK(MPI_Win_flush(target, w->win));
            got++;
            CHECK_OK(MPI_Put(&got, 1, MPI_INT, target, place(w, target, 0), 1, MPI_INT, w->win));
            CHECK_OK(MPI_Win_unlock(target, w->win));
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    CHECK(own[0] == 20 * check_size, "%s: %d of %d additions under the lock", kind_name[w->kind], own[0], 20 * check_size);
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each adds to each at the same time, by accumulates: integers, floating point numbers, and pairs. */
static void by_accumulates(struct window *w)
{
    struct cell {
        long whole;
        double real;
        struct {
            double value;
            int at;
        } pair;
        long counter, swaps;
    } *own = (struct cell *)w->base;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, w->win);
    memset(own, 0, sizeof *own);
    own->pair.value = -1;
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    long tickets = 0;
    for (int round = 0; round < 50; round++) {
        int target = (check_rank + round) % check_size;
        long one = 1, got = -1, zero = 0, was;
        double half = 0.5;
        struct {
            double value;
            int at;
        } pair = {check_rank * 100 + round, check_rank};
        MPI_Aint at = offsetof(struct cell, pair);
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, target, place(w, target, 0), 1, MPI_LONG, MPI_SUM, w->win));
        CHECK_OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, target, place(w, target, sizeof(long)), 1, MPI_DOUBLE, MPI_SUM, w->win));
        CHECK_OK(MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, target, place(w, target, at), 1, MPI_DOUBLE_INT, MPI_MAXLOC, w->win));
        CHECK_OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, place(w, 0, offsetof(struct cell, counter)), MPI_SUM, w->win));
        CHECK_OK(MPI_Win_flush(0, w->win));
        tickets += got;
        do CHECK_OK(MPI_Compare_and_swap(&one, &zero, &was, MPI_LONG, target, place(w, target, offsetof(struct cell, swaps)), w->win)), MPI_Win_flush(target, w->win);
        while (was);
        CHECK_OK(MPI_Fetch_and_op(&zero, &was, MPI_LONG, target, place(w, target, offsetof(struct cell, swaps)), MPI_REPLACE, w->win));
        CHECK_OK(MPI_Win_flush(target, w->win));
        CHECK(was == 1, "%s: the word that was set is %ld", kind_name[w->kind], was);
    }
    CHECK_OK(MPI_Win_unlock_all(w->win));
    MPI_Barrier(MPI_COMM_WORLD);
    long sums[2], all[2];
    double real;
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w->win);
    sums[0] = own->whole;
    sums[1] = tickets;
    MPI_Allreduce(sums, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&own->real, &real, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    long n = 50L * check_size;
    CHECK(all[0] == n, "%s: a sum of %ld, not %ld", kind_name[w->kind], all[0], n);
    CHECK(real == 0.5 * (double)n, "%s: a sum of %g, not %g", kind_name[w->kind], real, 0.5 * (double)n);
    CHECK(all[1] == n * (n - 1) / 2, "%s: the tickets are not 0 to %ld", kind_name[w->kind], n - 1);
    CHECK(own->pair.value >= 0 && (int)own->pair.value / 100 == own->pair.at, "%s: a pair of %g and %d", kind_name[w->kind], own->pair.value,
          own->pair.at);
    MPI_Win_unlock(check_rank, w->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Derived types at both sides, and requests. */
static void by_types(struct window *w)
{
    MPI_Datatype stripes, pairs;
    int data[N], got[N], *own = (int *)w->base;
    MPI_Type_vector(100, 2, 5, MPI_INT, &stripes);
    MPI_Type_vector(50, 4, 7, MPI_INT, &pairs);
    MPI_Type_commit(&stripes);
    MPI_Type_commit(&pairs);
    fill(data, check_rank, 7);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < N; i++) own[i] = 0;
    MPI_Win_fence(0, w->win);
    CHECK_OK(MPI_Put(data, 1, stripes, next(), place(w, next(), 0), 1, pairs, w->win));
    MPI_Win_fence(0, w->win);
    for (int k = 0; k < 200; k++) {
        int at = k / 4 * 7 + k % 4, of = k / 2 * 5 + k % 2;
        CHECK(own[at] == value(before(), 7, of), "%s: element %d is %d", kind_name[w->kind], k, own[at]);
    }
    MPI_Win_fence(0, w->win);
    CHECK_OK(MPI_Accumulate(data, 1, stripes, next(), place(w, next(), 0), 1, pairs, MPI_SUM, w->win));
    MPI_Win_fence(0, w->win);
    for (int k = 0; k < 200; k++) {
        int at = k / 4 * 7 + k % 4, of = k / 2 * 5 + k % 2;
        CHECK(own[at] == 2 * value(before(), 7, of), "%s: element %d of the sum is %d", kind_name[w->kind], k, own[at]);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    MPI_Request r;
    memset(got, 0, sizeof got);
    CHECK_OK(MPI_Rget(got, 1, stripes, next(), place(w, next(), 0), 1, pairs, w->win, &r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    for (int k = 0; k < 200; k++) {
        int of = k / 2 * 5 + k % 2;
        CHECK(got[of] == 2 * value(check_rank, 7, of), "%s: element %d that is got is %d", kind_name[w->kind], k, got[of]);
    }
    CHECK_OK(MPI_Win_unlock_all(w->win));
    MPI_Type_free(&stripes);
    MPI_Type_free(&pairs);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The same types again and again, at different places: a target may be told of them once (outline.h), but there are more than it
 * keeps. */
static void by_types_again(struct window *w)
{
    enum { TYPES = 40, ROUNDS = 3, STRIPES = 6 };
    static long data[STRIPES + TYPES], got[STRIPES + TYPES], sum[STRIPES + TYPES];
    MPI_Datatype type[TYPES];
    int to = next();
    for (int t = 0; t < TYPES; t++) {
        MPI_Type_vector(STRIPES + t, 1, 2 + t % 3, MPI_LONG, &type[t]);
        MPI_Type_commit(&type[t]);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int t = 0; t < TYPES; t++) {
            int n = STRIPES + t;
            for (int i = 0; i < n; i++) data[i] = 1000 * check_rank + 100 * round + t + i, got[i] = sum[i] = -1;
            MPI_Aint at = window_place(w, to, (MPI_Aint)(round * 16 + t % 2 * 8));
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->win));
            CHECK_OK(MPI_Put(data, n, MPI_LONG, to, at, 1, type[t], w->win));
            CHECK_OK(MPI_Win_flush(to, w->win));
            CHECK_OK(MPI_Get(got, n, MPI_LONG, to, at, 1, type[t], w->win));
            CHECK_OK(MPI_Win_flush(to, w->win));
            CHECK_OK(MPI_Accumulate(data, n, MPI_LONG, to, at, 1, type[t], MPI_SUM, w->win));
            CHECK_OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, sum, n, MPI_LONG, to, at, 1, type[t], MPI_NO_OP, w->win));
            CHECK_OK(MPI_Win_unlock(to, w->win));
            for (int i = 0; i < n; i++)
                CHECK(got[i] == data[i] && sum[i] == 2 * data[i], "%s, type %d, round %d: %ld and %ld of %ld", kind_name[w->kind], t, round,
                      got[i], sum[i], data[i]);
        }
    for (int t = 0; t < TYPES; t++) MPI_Type_free(&type[t]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Several pieces of an operation, each with runs of its own. */
static void by_a_large_type(struct window *w)
{
    enum { MANY = 5000 };
    static int data[MANY], got[MANY];
    MPI_Datatype holes;
    int to = next();
    MPI_Type_vector(MANY, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) data[i] = value(check_rank, round, i), got[i] = -1;
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->win));
        CHECK_OK(MPI_Put(data, MANY, MPI_INT, to, window_place(w, to, 4 * round), 1, holes, w->win));
        CHECK_OK(MPI_Win_flush(to, w->win));
        CHECK_OK(MPI_Get(got, MANY, MPI_INT, to, window_place(w, to, 4 * round), 1, holes, w->win));
        CHECK_OK(MPI_Win_unlock(to, w->win));
        CHECK(!memcmp(data, got, sizeof data), "%s: round %d of a large type", kind_name[w->kind], round);
    }
    MPI_Type_free(&holes);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        if (window_open(&w, kind, MPI_COMM_WORLD, N * sizeof(int), sizeof(int))) {
            by_fence(&w);
            by_post(&w);
            by_exclusive_locks(&w);
            by_types(&w);
            window_close(&w);
        }
        if (window_open(&w, kind, MPI_COMM_WORLD, 256, 1)) {
            by_accumulates(&w);
            window_close(&w);
        }
        if (window_open(&w, kind, MPI_COMM_WORLD, 48 << 10, 1)) {
            by_types_again(&w);
            by_a_large_type(&w);
            window_close(&w);
        }
    }
    return check_done();
}
