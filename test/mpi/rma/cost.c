/*
 * cost.c - what a window costs a process in private memory, over communicators of 2, 4, 8 ... ranks of the job: it grows with the
 * logarithm of the number of ranks at most (the steps of its collectives), so that one over 100,000 ranks, of which none is on
 * this process's node, costs 64 KB at most.
 *
 *     cost      16 ranks, each of them on a host of its own (cost.test)
 */
#include "windows.h"

#include <malloc.h>

enum { WINDOWS = 32, LIMIT = 64 << 10, RANKS = 100000 };

/* Each has been in its epochs: with what is made at first use. */
static void use(MPI_Win win)
{
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_OK(MPI_Win_unlock_all(win));
}

static double bytes_of_window(MPI_Comm comm, enum kind kind)
{
    struct window w[WINDOWS];
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < WINDOWS; i++) {
        if (kind == ATTACHED) CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w[i].win)); /* with nothing */
        else CHECK(window_open(&w[i], kind, comm, 64, 1), "no window");
        use(w[i].win);
    }
    size_t after = mallinfo2().uordblks;
    for (int i = 0; i < WINDOWS; i++) {
        if (kind == ATTACHED) CHECK_OK(MPI_Win_free(&w[i].win));
        else window_close(&w[i]);
    }
    return (double)(after - before) / WINDOWS;
}

static double measure(int n, enum kind kind)
{
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK_OK(MPI_Comm_split(MPI_COMM_WORLD, rank / n, rank, &comm));
    bytes_of_window(comm, kind); /* what stays, of connections and so on */
    double bytes = bytes_of_window(comm, kind);
    CHECK_OK(MPI_Comm_free(&comm));
    return bytes;
}

/* Arrays of a schedule double at times, by SLACK at most. What grew by 600 bytes with each rank would be found by the last step; that
 * no places are kept for each window is in test/unit/coll/places_test. */
static void growth_is_logarithmic(enum kind kind)
{
    enum { SLACK = 4096 };
    double bytes = measure(2, kind), most = 0, last = 0;
    int n = 2;
    while (2 * n <= check_size) {
        double more = measure(2 * n, kind);
        if (last > most) most = last;
        last = more - bytes;
        bytes = more;
        n *= 2;
    }
    CHECK(last <= most + SLACK, "the last doubling cost %.0f bytes, those before %.0f", last, most);
    double step = last > most ? last : most, far = bytes;
    for (int to = n; to < RANKS; to *= 2) far += step;
    if (!check_rank)
        printf("a window, %s: %.0f bytes at %d ranks, at most %.0f more with each doubling: %.0f at %d\n", kind_name[kind], bytes, n, step,
               far, RANKS);
    CHECK(far <= LIMIT, "a window would cost %.0f bytes", far);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (!mallinfo2().uordblks) return check_skip("there are no figures of malloc");
    growth_is_logarithmic(CREATED);
    growth_is_logarithmic(ALLOCATED);
    growth_is_logarithmic(ATTACHED);
    return check_done();
}
