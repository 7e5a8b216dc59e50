/*
 * some_helped.c - only ranks with an even number have a helper thread (a session's info key): large nonblocking collectives
 * between them and the others go on while all compute, whoever starts last. One who starts last finds the other's part
 * there already; nobody but its own helper can go on then, and it used to sleep over it (50 ms, later up to a second).
 *
 * Compared within the run: where the rank with the helper starts last, its data may not take much longer than where it
 * starts first and waits for the other for DELAY.
 */
#include "../check.h"

#include <unistd.h>

enum { PART = 64 << 10, ROUNDS = 15, DELAY_US = 3000 };
#define LIMIT 0.1 /* s that nobody calls MPI, at most */

static unsigned char *in, *out;

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Until all of the data is there, or the limit is over; looks at what another thread writes, on purpose. */
__attribute__((no_sanitize_thread)) static double looked_for(unsigned char value)
{
    const volatile unsigned char *p = in;
    double start = MPI_Wtime(), lasted = 0;
    for (size_t i = 0; i < (size_t)check_size * PART && lasted < LIMIT; i++)
        while (p[i] != value && (lasted = MPI_Wtime() - start) < LIMIT) usleep(100);
    return MPI_Wtime() - start;
}

/* Started by those with a helper first or last; seconds until the data was there. */
static double one(int last, unsigned char value)
{
    MPI_Request req;
    memset(out, value, (size_t)check_size * PART);
    memset(in, 0, (size_t)check_size * PART);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank % 2 != last) usleep(DELAY_US);
    CHECK_OK(MPI_Ialltoall(out, PART, MPI_BYTE, in, PART, MPI_BYTE, MPI_COMM_WORLD, &req));
    double seconds = looked_for(value);
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < check_size * PART; i += 997) CHECK(in[i] == value, "byte %d is %d, not %d", i, in[i], value);
    return seconds;
}

static double median(double *seconds)
{
    qsort(seconds, ROUNDS, sizeof *seconds, order);
    return seconds[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    double first[ROUNDS], last[ROUNDS];
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info;
    check_start_thread(&argc, &argv, MPI_THREAD_FUNNELED);
    in = malloc((size_t)check_size * PART);
    out = malloc((size_t)check_size * PART);
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE");
    MPI_Info_set(info, "tern_progress", check_rank % 2 ? "caller" : "helper");
    CHECK_OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    MPI_Info_free(&info);
    one(0, 255); /* whether all may copy is found out */
    for (int i = 0; i < ROUNDS; i++) {
        first[i] = one(0, (unsigned char)(2 * i + 1));
        last[i] = one(1, (unsigned char)(2 * i + 2));
    }
    if (check_rank % 2 == 0) {
        double a = median(first), b = median(last);
        printf("rank %d: started first %.2f ms, last %.2f ms\n", check_rank, 1e3 * a, 1e3 * b);
        /* where memory cannot be copied from process to process, the others have to call MPI in any case */
        CHECK(a > LIMIT / 2 || b < 5 * a, "where it starts last the data comes after %.2f ms, where it starts first after %.2f", 1e3 * b, 1e3 * a);
    }
    MPI_Session_finalize(&session);
    free(in);
    free(out);
    return check_done();
}
