/*
 * values.c - the blocking collectives that move data (MPI-5.0 sections 6.3 to 6.8), against what they must
 * give: sizes of all algorithms, contiguous and strided types, every root, in place, int and large counts, on
 * the world, a reversed copy and halves of it. Bytes that no one may write are checked as well.
 */
#include "../check.h"

static const int sizes[] = {0, 1, 3, 17, 256, 2000, 20000, 150000};
enum { SIZES = 8, LARGEST = 150000, ROOM = 2 * LARGEST * 8 };

static MPI_Comm comm;
static int rank, size;
static int *out, *in;     /* ROOM ints each */
static MPI_Datatype unit; /* one int, or one int with a gap behind it */
static int gap;           /* ints from one element to the next: 1 or 2 */

/* Element i of the block that rank r has for rank to. */
static int value(int r, int to, int i) { return r * 1000003 + to * 10007 + i * 3 + 1; }

enum { UNTOUCHED = -7 };

static void clear(int *buf, int n)
{
    for (int i = 0; i < n * gap; i++) buf[i] = UNTOUCHED;
}

static void fill(int *buf, int at, int n, int r, int to)
{
    for (int i = 0; i < n; i++) buf[(at + i) * gap] = value(r, to, i);
}

/* How many of n elements from `at` on differ from the block of r for `to`; gaps included. */
static int wrong(const int *buf, int at, int n, int r, int to)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        bad += buf[(at + i) * gap] != value(r, to, i);
        if (gap > 1) bad += buf[(at + i) * gap + 1] != UNTOUCHED;
    }
    return bad;
}

static int touched(const int *buf, int at) { return buf[at * gap] != UNTOUCHED; }

static void bcast(int n, int root, int large)
{
    clear(in, n + 1);
    if (rank == root) fill(in, 0, n, root, 0);
    if (large) CHECK_OK(MPI_Bcast_c(in, n, unit, root, comm));
    else CHECK_OK(MPI_Bcast(in, n, unit, root, comm));
    CHECK(wrong(in, 0, n, root, 0) == 0 && !touched(in, n), "bcast of %d from %d", n, root);
}

static void gather(int n, int root, int place, int large)
{
    int at_root = rank == root, in_place = place && at_root;
    clear(in, n * size + 1);
    clear(out, n);
    fill(in_place ? in : out, in_place ? rank * n : 0, n, rank, root);
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (large) CHECK_OK(MPI_Gather_c(from, n, unit, at_root ? in : NULL, n, unit, root, comm));
    else CHECK_OK(MPI_Gather(from, n, unit, at_root ? in : NULL, n, at_root ? unit : MPI_DATATYPE_NULL, root, comm));
    for (int r = 0; r < size && at_root; r++) CHECK(wrong(in, r * n, n, r, root) == 0, "gather of %d to %d: block %d", n, root, r);
    CHECK(!touched(in, n * size), "gather of %d to %d wrote too much", n, root);
}

static void scatter(int n, int root, int place, int large)
{
    int at_root = rank == root, in_place = place && at_root;
    clear(in, n + 1);
    clear(out, n * size);
    for (int r = 0; r < size && at_root; r++) fill(out, r * n, n, root, r);
    void *to = in_place ? MPI_IN_PLACE : in;
    if (large) CHECK_OK(MPI_Scatter_c(out, n, unit, to, n, unit, root, comm));
    else CHECK_OK(MPI_Scatter(at_root ? out : NULL, n, at_root ? unit : MPI_DATATYPE_NULL, to, n, unit, root, comm));
    if (in_place) CHECK(wrong(out, rank * n, n, root, rank) == 0, "scatter in place of %d from %d", n, root);
    else CHECK(wrong(in, 0, n, root, rank) == 0 && !touched(in, n), "scatter of %d from %d", n, root);
}

static void allgather(int n, int in_place, int large)
{
    clear(in, n * size + 1);
    clear(out, n);
    fill(in_place ? in : out, in_place ? rank * n : 0, n, rank, 0);
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (large) CHECK_OK(MPI_Allgather_c(from, n, unit, in, n, unit, comm));
    else CHECK_OK(MPI_Allgather(from, n, unit, in, n, unit, comm));
    for (int r = 0; r < size; r++) CHECK(wrong(in, r * n, n, r, 0) == 0, "allgather of %d: block %d", n, r);
    CHECK(!touched(in, n * size), "allgather of %d wrote too much", n);
}

static void alltoall(int n, int in_place, int large)
{
    clear(in, n * size + 1);
    clear(out, n * size);
    for (int r = 0; r < size; r++) fill(in_place ? in : out, r * n, n, rank, r);
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (large) CHECK_OK(MPI_Alltoall_c(from, n, unit, in, n, unit, comm));
    else CHECK_OK(MPI_Alltoall(from, n, unit, in, n, unit, comm));
    for (int r = 0; r < size; r++) CHECK(wrong(in, r * n, n, r, rank) == 0, "alltoall of %d: block %d", n, r);
    CHECK(!touched(in, n * size), "alltoall of %d wrote too much", n);
}

/* One side with another type of the same data: n elements here are one element there. */
static void mixed_types(int n)
{
    MPI_Datatype all;
    MPI_Type_contiguous(n, unit, &all);
    MPI_Type_commit(&all);
    clear(in, n * size + 1);
    clear(out, n);
    fill(out, 0, n, rank, 0);
    CHECK_OK(MPI_Allgather(out, 1, all, in, n, unit, comm));
    for (int r = 0; r < size; r++) CHECK(wrong(in, r * n, n, r, 0) == 0, "allgather of mixed types, %d: block %d", n, r);
    clear(in, n * size + 1);
    if (rank % 2) CHECK_OK(MPI_Gather(out, n, unit, in, 1, all, 0, comm));
    else CHECK_OK(MPI_Gather(out, 1, all, in, n, unit, 0, comm));
    for (int r = 0; r < size && rank == 0; r++) CHECK(wrong(in, r * n, n, r, 0) == 0, "gather of mixed types, %d: block %d", n, r);
    MPI_Type_free(&all);
}

static void everything(int deep)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int s = 0; s < SIZES; s++) {
        int n = sizes[s], step = n > 3000 && size > 3 ? size - 1 : 1;
        if (n > 3000 && !deep) continue;
        for (int large = 0; large < 2; large++) {
            for (int root = 0; root < size; root += step) {
                bcast(n, root, large);
                for (int place = 0; place < 2; place++) gather(n, root, place, large), scatter(n, root, place, large);
            }
            for (int place = 0; place < 2; place++) allgather(n, place, large), alltoall(n, place, large);
        }
        if (n) mixed_types(n);
        CHECK_OK(MPI_Barrier(comm));
    }
}

/* Barrier: nobody leaves before the last has come. A token shows who has come: its sender goes on only when the
 * receiver has matched it. (One that is merely sent may be overtaken by the barrier, which takes another way.) */
static void barrier(void)
{
    for (int last = 0; last < size; last++) {
        int flag = 0, token = 0;
        MPI_Request r = MPI_REQUEST_NULL;
        if (rank != last) CHECK_OK(MPI_Irecv(&token, 1, MPI_INT, last, 1, comm, &r));
        else {
            struct timespec nap = {0, 2000000};
            nanosleep(&nap, NULL);
            for (int to = 0; to < size; to++)
                if (to != rank) CHECK_OK(MPI_Ssend(&last, 1, MPI_INT, to, 1, comm));
        }
        CHECK_OK(MPI_Barrier(comm));
        CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
        CHECK(flag, "the barrier was left before rank %d came", last);
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    size_t room = (size_t)LARGEST * 2 * (unsigned)check_size + 4;
    out = malloc(room * sizeof(int));
    in = malloc(room * sizeof(int));
    MPI_Comm reversed, half;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    MPI_Datatype wide;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide);
    MPI_Type_commit(&wide);
    for (gap = 1; gap < 3; gap++) {
        unit = gap == 1 ? MPI_INT : wide;
        comm = MPI_COMM_WORLD, everything(1);
        comm = reversed, everything(0);
        comm = half, everything(0);
        comm = MPI_COMM_SELF, everything(0);
    }
    comm = MPI_COMM_WORLD, rank = check_rank, size = check_size;
    barrier();
    MPI_Type_free(&wide);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    free(in);
    free(out);
    return check_done();
}
