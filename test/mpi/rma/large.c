/*
 * large.c - accumulates of many elements beside those of one: however each is done, none is lost.
 */
#include "windows.h"

enum { N = 20000, ROUNDS = 30, TARGET = 0 };

static const int lengths[] = {1, 31, 32, 100, 4095, 4096, 4097, N};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Each process adds 1 to the first so many numbers, by turns at one, and to all by one call. */
static void all_add(struct window *w)
{
    static int32_t ones[N], before[N];
    uint64_t random = 77 + (uint64_t)check_rank;
    static int64_t all[N], own[N];
    int one = 1, was; /* of operations that go on until a flush */
    memset(own, 0, sizeof own);
    for (int i = 0; i < N; i++) ones[i] = 1;
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    for (int round = 0; round < ROUNDS; round++) {
        int n = lengths[(round + check_rank) % LENGTHS];
        MPI_Aint start = window_place(w, TARGET, 0);
        if (round % 3) {
            CHECK_OK(MPI_Accumulate(ones, n, MPI_INT32_T, TARGET, start, n, MPI_INT32_T, MPI_SUM, w->win));
        } else {
            CHECK_OK(MPI_Get_accumulate(ones, n, MPI_INT32_T, before, n, MPI_INT32_T, TARGET, start, n, MPI_INT32_T, MPI_SUM, w->win));
            CHECK_OK(MPI_Win_flush(TARGET, w->win));
            CHECK(before[0] >= own[0] && before[n - 1] >= own[n - 1], "%s: numbers before what was added are less than that", kind_name[w->kind]);
        }
        for (int i = 0; i < n; i++) own[i]++;
        for (int k = 0, singles = round % 4 ? 5 : 200; k < singles; k++) { /* few in turn, or many: see rma/atomics.h */
            int at = (int)(check_random(&random) % 64);
            CHECK_OK(MPI_Fetch_and_op(&one, &was, MPI_INT32_T, TARGET, window_place(w, TARGET, 4 * at), MPI_SUM, w->win));
            if (k % 20 == 0) CHECK_OK(MPI_Win_flush(TARGET, w->win));
            own[at]++;
        }
    }
    CHECK_OK(MPI_Win_unlock_all(w->win));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(own, all, N, MPI_INT64_T, MPI_SUM, TARGET, MPI_COMM_WORLD);
    if (check_rank != TARGET) return;
    const int32_t *sum = (int32_t *)w->base;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, w->win));
    int bad = 0;
    for (int i = 0; i < N; i++) bad += sum[i] != all[i];
    CHECK(!bad, "%s: %d of %d sums are wrong; the first number is %d, not %ld", kind_name[w->kind], bad, N, sum[0], (long)all[0]);
    CHECK_OK(MPI_Win_unlock(TARGET, w->win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        if (!window_open(&w, kind, MPI_COMM_WORLD, 4 * N, 4)) continue;
        all_add(&w);
        MPI_Barrier(MPI_COMM_WORLD);
        window_close(&w);
    }
    return check_done();
}
