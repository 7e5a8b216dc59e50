/*
 * many_large.c - thousands of large messages at once, in both directions, that go out in fragments: what one of them
 * costs does not grow with their number. Processor time is compared inside the run, so that a busy machine does not
 * matter.
 */
#include "../check.h"
#include <time.h>

enum { FEW = 250, MANY = 4000, BYTES = 40000, ROUNDS = 3 };

static char *sent, *got;
static MPI_Request request[2 * MANY];

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Receives in the opposite order of the sends. Returns processor time of one message. */
static double exchange(int n)
{
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    memset(got, 0, (size_t)n * BYTES);
    for (int i = 0; i < n; i++) memcpy(sent + (size_t)i * BYTES, &i, sizeof i);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = cpu_seconds();
    for (int i = 0; i < n; i++)
        MPI_Irecv(got + (size_t)(n - 1 - i) * BYTES, BYTES, MPI_BYTE, left, n - 1 - i, MPI_COMM_WORLD, &request[i]);
    for (int i = 0; i < n; i++)
        MPI_Isend(sent + (size_t)i * BYTES, BYTES, MPI_BYTE, right, i, MPI_COMM_WORLD, &request[n + i]);
    CHECK_OK(MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE));
    double one = (cpu_seconds() - start) / n;
    CHECK(!memcmp(sent, got, (size_t)n * BYTES), "%d messages: the data is not what was sent", n);
    return one;
}

static double least(int n)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double one = exchange(n);
        if (one < best) best = one;
    }
    return best;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    sent = malloc((size_t)MANY * BYTES);
    got = malloc((size_t)MANY * BYTES);
    memset(sent, check_rank + 1, (size_t)MANY * BYTES);
    for (int i = 0; i < MANY; i++) memset(sent + (size_t)i * BYTES, i, BYTES);
    double many = least(MANY), few = least(FEW);
    CHECK(many < 4 * few, "one of %d messages takes %.1f us of processor time, one of %d takes %.1f", MANY, many * 1e6,
          FEW, few * 1e6);
    if (getenv("TEST_PRINT")) printf("%d: %.1f us, %d: %.1f us\n", MANY, many * 1e6, FEW, few * 1e6);
    free(sent);
    free(got);
    return check_done();
}
