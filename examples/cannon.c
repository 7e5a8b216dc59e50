/*
 * cannon.c - the product of two square matrices by Cannon's method, on a square number of ranks.
 *
 * The ranks form a grid of q x q. Each matrix is cut into as many blocks; rank (i, j) holds a block of A, one of B,
 * and computes the block of C. At first the blocks of A in row i move i places to the left, and those of B in column
 * j move j places up; then, q times, each rank adds the product of the two blocks that it has, and the blocks of A
 * move one place to the left and those of B one place up. The move is under way while the product is computed: each
 * matrix has two buffers.
 *
 * The elements are small integers, so that every sum is exact, in whatever order it was taken: --check compares with
 * a serial product, and the elements have to be equal.
 */
#include "allocate.h"
#include "options.h"
#include <math.h>
#include <mpi.h>

enum { TAG_A, TAG_B, TAG_C };

static long size = 720;
static bool check = false;

static const struct option options[] = {
    {.name = "size", .number = &size, .min = 1, .max = 30000, .help = "rows and columns of the matrices (720)"},
    {.name = "check", .flag = &check, .help = "compares with a serial product; exit code 1 when they differ"},
    {.name = NULL}};

/* The grid: this rank's place, and communicators of the ranks of its row (by column) and of its column (by row). */
struct grid {
    int q, row, column;
    MPI_Comm in_row, in_column;
};

/* The matrices have whole blocks: elements beyond size are 0. */
static double element_a(long i, long j) { return i < size && j < size ? (double)((i * 31 + j * 17) % 13 - 6) : 0; }

static double element_b(long i, long j) { return i < size && j < size ? (double)((i * 7 + j * 29) % 11 - 5) : 0; }

static double *numbers(size_t count) { return allocate(count, sizeof(double)); }

static void fill(double *block, long n, long row, long column, double (*element)(long, long))
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) block[i * n + j] = element(row * n + i, column * n + j);
}

/* c += a * b, for blocks of n x n, in strips of rows of b that stay in the cache. */
static void multiply(double *restrict c, const double *restrict a, const double *restrict b, long n)
{
    enum { STRIP = 64 };
    for (long k0 = 0; k0 < n; k0 += STRIP) {
        long k1 = k0 + STRIP < n ? k0 + STRIP : n;
        for (long i = 0; i < n; i++) {
            double *restrict ci = &c[i * n];
            for (long k = k0; k < k1; k++) {
                double aik = a[i * n + k];
                const double *restrict bk = &b[k * n];
                for (long j = 0; j < n; j++) ci[j] += aik * bk[j];
            }
        }
    }
}

static int wrap(int x, int q) { return (x % q + q) % q; }

/* Row i of blocks of A moves i to the left, column j of blocks of B moves j up. */
static void skew(const struct grid *g, double *a, double *b, int count)
{
    MPI_Sendrecv_replace(a, count, MPI_DOUBLE, wrap(g->column - g->row, g->q), TAG_A, wrap(g->column + g->row, g->q),
                         TAG_A, g->in_row, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(b, count, MPI_DOUBLE, wrap(g->row - g->column, g->q), TAG_B, wrap(g->row + g->column, g->q),
                         TAG_B, g->in_column, MPI_STATUS_IGNORE);
}

/* Starts to move the blocks one place: those in from go, the next ones come into to. */
static void move_start(const struct grid *g, double *const from[2], double *const to[2], int count,
                       MPI_Request request[4])
{
    int left = wrap(g->column - 1, g->q), right = wrap(g->column + 1, g->q);
    int up = wrap(g->row - 1, g->q), down = wrap(g->row + 1, g->q);
    MPI_Irecv(to[0], count, MPI_DOUBLE, right, TAG_A, g->in_row, &request[0]);
    MPI_Irecv(to[1], count, MPI_DOUBLE, down, TAG_B, g->in_column, &request[1]);
    MPI_Isend(from[0], count, MPI_DOUBLE, left, TAG_A, g->in_row, &request[2]);
    MPI_Isend(from[1], count, MPI_DOUBLE, up, TAG_B, g->in_column, &request[3]);
}

/* This rank's block of A * B, n x n. */
static double *product(const struct grid *g, long n, bool speak)
{
    size_t count = (size_t)(n * n);
    double *now[2] = {numbers(count), numbers(count)}, *next[2] = {numbers(count), numbers(count)};
    double *c = numbers(count), shown = MPI_Wtime();
    fill(now[0], n, g->row, g->column, element_a);
    fill(now[1], n, g->row, g->column, element_b);
    skew(g, now[0], now[1], (int)count);
    for (int s = 0; s < g->q; s++) {
        MPI_Request request[4];
        bool last = s == g->q - 1;
        if (!last) move_start(g, now, next, (int)count, request);
        multiply(c, now[0], now[1], n);
        if (!last) MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        for (int m = 0; m < 2; m++) {
            double *old = now[m];
            now[m] = next[m];
            next[m] = old;
        }
        if (speak && MPI_Wtime() - shown > 2) {
            shown = MPI_Wtime();
            printf("step %d of %d\n", s + 1, g->q);
            fflush(stdout);
        }
    }
    for (int m = 0; m < 2; m++) {
        free(now[m]);
        free(next[m]);
    }
    return c;
}

/* All blocks of C in rank 0, in an array of the grid's blocks; NULL in others. */
static double *collect(const double *block, long n, int rank, int ranks)
{
    size_t count = (size_t)(n * n);
    if (rank > 0) {
        MPI_Send(block, (int)count, MPI_DOUBLE, 0, TAG_C, MPI_COMM_WORLD);
        return NULL;
    }
    double *all = numbers(count * (size_t)ranks);
    memcpy(all, block, count * sizeof(double));
    for (int r = 1; r < ranks; r++)
        MPI_Recv(&all[count * (size_t)r], (int)count, MPI_DOUBLE, r, TAG_C, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return all;
}

/* Whether the blocks are the product of the two matrices, computed as one block. */
static bool same_as_serial(const double *blocks, long n, int q)
{
    size_t count = (size_t)(size * size);
    double *a = numbers(count), *b = numbers(count), *c = numbers(count);
    long different = 0;
    fill(a, size, 0, 0, element_a);
    fill(b, size, 0, 0, element_b);
    multiply(c, a, b, size);
    for (long i = 0; i < size; i++) {
        for (long j = 0; j < size; j++) {
            const double *block = &blocks[((i / n) * q + j / n) * n * n];
            different += block[(i % n) * n + j % n] != c[i * size + j];
        }
    }
    free(a);
    free(b);
    free(c);
    if (different == 0)
        printf("check: equal to the serial product\n");
    else
        fprintf(stderr, "cannon: check failed: %ld of %zu elements differ from the serial product\n", different, count);
    return different == 0;
}

static int run(int rank, int ranks, int q)
{
    struct grid g = {.q = q, .row = rank / q, .column = rank % q};
    MPI_Comm_split(MPI_COMM_WORLD, g.row, g.column, &g.in_row);
    MPI_Comm_split(MPI_COMM_WORLD, g.column, g.row, &g.in_column);
    long n = (size + q - 1) / q;
    int good = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    double *c = product(&g, n, rank == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    double *all = collect(c, n, rank, ranks);
    if (rank == 0) {
        double operations = 2.0 * (double)size * (double)size * (double)size;
        printf("%ld x %ld, %d x %d ranks: %.2f s, %.2f GFlop/s\n", size, size, q, q, seconds,
               1e-9 * operations / seconds);
        if (check) good = same_as_serial(all, n, q);
    }
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(c);
    free(all);
    MPI_Comm_free(&g.in_row);
    MPI_Comm_free(&g.in_column);
    return !good;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int q = (int)lround(sqrt(ranks));
    int code = options_read(argc, argv, options, "cannon - a matrix product on a square number of ranks", rank == 0);
    if (code == OPTIONS_RUN && q * q != ranks) {
        if (rank == 0) fprintf(stderr, "cannon: %d is not a square; start 1, 4, 9, 16 ... ranks\n", ranks);
        code = OPTIONS_BAD;
    }
    if (code == OPTIONS_RUN) code = run(rank, ranks, q);
    MPI_Finalize();
    return code;
}
