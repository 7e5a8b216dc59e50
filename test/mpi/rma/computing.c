/*
 * computing.c - rank 0 computes, and calls nothing, until all others have done their operations on its memory: it looks for what they
 * store there at the end. So every operation of an origin ends without it. Where the windows put off what they can
 * (TERN_RMA_PASSIVE=copy), nothing of an epoch is there before it must be.
 */
#include "windows.h"

#include <sched.h>

enum { SLOT = 256 << 10, PATIENCE = 30 }; /* bytes that an origin has for itself; seconds */

/* Its parts, in bytes from the start. */
enum { DONE = 0, NUMBER = 64, SUM = 128, SWAP = 192, LARGE = 4096, LARGE_BYTES = 200000 };

static MPI_Aint at(const struct window *w, int part) { return window_place(w, 0, (MPI_Aint)(check_rank - 1) * SLOT + part); }

static void in_epoch(const struct window *w, int lock)
{
    if (lock) CHECK_OK(MPI_Win_lock(lock, 0, 0, w->win));
}
static void out_of_epoch(const struct window *w, int lock) { CHECK_OK(lock ? MPI_Win_unlock(0, w->win) : MPI_Win_flush(0, w->win)); }

static void each_operation(const struct window *w, int lock, long round)
{
    const char *kind = kind_name[w->kind];
    long put = check_rank * 100 + round, got = -1, one = 1, was = -1, next = round + 1;
    in_epoch(w, lock);
    CHECK_OK(MPI_Put(&put, 1, MPI_LONG, 0, at(w, NUMBER), 1, MPI_LONG, w->win));
    out_of_epoch(w, lock);
    in_epoch(w, lock);
    CHECK_OK(MPI_Get(&got, 1, MPI_LONG, 0, at(w, NUMBER), 1, MPI_LONG, w->win));
    out_of_epoch(w, lock);
    CHECK(got == put, "%s: put %ld, and got %ld", kind, put, got);
    in_epoch(w, lock);
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, at(w, SUM), 1, MPI_LONG, MPI_SUM, w->win));
    CHECK_OK(MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, at(w, SUM), MPI_SUM, w->win));
    out_of_epoch(w, lock);
    CHECK(was == 2 * round + 1, "%s: the sum was %ld in round %ld", kind, was, round);
    in_epoch(w, lock);
    CHECK_OK(MPI_Compare_and_swap(&next, &round, &was, MPI_LONG, 0, at(w, SWAP), w->win));
    out_of_epoch(w, lock);
    CHECK(was == round, "%s: %ld was to be swapped in round %ld", kind, was, round);
}

/* In so many pieces: by a move, by batches of what a copy engine takes, by letters. */
static void large(const struct window *w, int lock, int pieces)
{
    static char data[LARGE_BYTES], back[LARGE_BYTES];
    int each = LARGE_BYTES / pieces;
    for (int i = 0; i < LARGE_BYTES; i++) data[i] = (char)(i * (check_rank + pieces) + (lock ? 1 : 0));
    in_epoch(w, lock);
    for (int i = 0; i < LARGE_BYTES; i += each) CHECK_OK(MPI_Put(data + i, each, MPI_BYTE, 0, at(w, LARGE + i), each, MPI_BYTE, w->win));
    out_of_epoch(w, lock);
    in_epoch(w, lock);
    for (int i = 0; i < LARGE_BYTES; i += each) CHECK_OK(MPI_Get(back + i, each, MPI_BYTE, 0, at(w, LARGE + i), each, MPI_BYTE, w->win));
    out_of_epoch(w, lock);
    CHECK(!memcmp(data, back, LARGE_BYTES), "%s: the large data differ, in %d pieces", kind_name[w->kind], pieces);
}

static void operate(const struct window *w)
{
    static const int pieces[] = {1, 20, 500};
    long done = 1;
    long round = 0;
    for (; round < 20; round++) each_operation(w, round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, round);
    for (int i = 0; i < 3; i++) large(w, MPI_LOCK_SHARED, pieces[i]);
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    for (; round < 40; round++) each_operation(w, 0, round);
    for (int i = 0; i < 3; i++) large(w, 0, pieces[i]);
    CHECK_OK(MPI_Put(&done, 1, MPI_LONG, 0, at(w, DONE), 1, MPI_LONG, w->win));
    CHECK_OK(MPI_Win_unlock_all(w->win));
}

static void compute(const struct window *w)
{
    double end = MPI_Wtime() + PATIENCE; /* needs nothing of the others */
    int n = 0;
    while (n < check_size - 1 && MPI_Wtime() < end) {
        n = 0;
        for (int r = 1; r < check_size; r++) n += (int)window_look(w->base + (MPI_Aint)(r - 1) * SLOT + DONE);
        sched_yield();
    }
    CHECK(n == check_size - 1, "%s: %d of %d have come to their end while rank 0 calls nothing", kind_name[w->kind], n, check_size - 1);
}

/* Two windows, as what rank 1 does in the one tells rank 0 how far it is in the other. */
static void put_off(void)
{
    enum { FIRST = 0, BEGUN = 8, OVER = 16 };
    static long data[SLOT / sizeof(long)];
    struct window w, clock;
    if (!window_open(&w, ALLOCATED, MPI_COMM_WORLD, SLOT, 1) || !window_open(&clock, ALLOCATED, MPI_COMM_WORLD, 64, 1)) return;
    long *first = (long *)w.base, *told = (long *)clock.base;
    if (check_rank == 1) {
        long one = data[0] = 1;
        CHECK_OK(MPI_Win_lock_all(0, clock.win));
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
        CHECK_OK(MPI_Put(data, SLOT, MPI_BYTE, 0, FIRST, SLOT, MPI_BYTE, w.win));
        CHECK_OK(MPI_Put(&one, 1, MPI_LONG, 0, FIRST, 1, MPI_LONG, w.win));
        CHECK_OK(MPI_Put(&one, 1, MPI_LONG, 0, BEGUN, 1, MPI_LONG, clock.win));
        CHECK_OK(MPI_Win_flush(0, clock.win));
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Win_unlock(0, w.win));
        CHECK_OK(MPI_Put(&one, 1, MPI_LONG, 0, OVER, 1, MPI_LONG, clock.win));
        CHECK_OK(MPI_Win_unlock_all(clock.win));
    } else if (check_rank == 0) {
        double end = MPI_Wtime() + PATIENCE;
        while (!window_look(&told[BEGUN / 8]) && MPI_Wtime() < end) sched_yield();
        CHECK(!window_look(first), "what was put has come before its epoch ended");
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        while (!window_look(&told[OVER / 8]) && MPI_Wtime() < end) sched_yield();
        CHECK(window_look(first) == 1, "what was put has not come");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    window_close(&clock);
    window_close(&w);
}

static bool puts_off(void)
{
    const char *how = getenv("TERN_RMA_PASSIVE"), *by = getenv("TERN_TRANSPORTS");
    return how && by && !strcmp(how, "copy") && !strstr(by, "shm");
}

int main(int argc, char **argv)
{
    struct window w;
    check_start(&argc, &argv);
    for (enum kind k = 0; k < KINDS; k++) {
        if (!window_open(&w, k, MPI_COMM_WORLD, check_rank ? SLOT : (MPI_Aint)SLOT * check_size, 8)) continue;
        if (check_rank) operate(&w);
        else compute(&w);
        MPI_Barrier(MPI_COMM_WORLD);
        window_close(&w);
    }
    if (puts_off()) put_off();
    return check_done();
}
