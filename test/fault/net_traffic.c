/*
 * net_traffic.c - messages of random sizes between all ranks, checked, while net.test does something to the network:
 *
 *     net_traffic [seconds=2] [seed=1] [largest=1000000] [fan=1] [burst=1] [nap=0]
 *
 * In each round every rank sends `burst` messages to each of `fan` others (0: to all), and receives as many, which it
 * posts only after a nap of up to `nap` ms. Every eighth round is followed by an allreduce. Rank 0 prints "going" after
 * the first rounds, and ends it all when the seconds have passed.
 */
#include "../mpi/check.h"
#include <stdbool.h>
#include <unistd.h>

enum { WORDS = 6 };
static struct {
    const char *name;
    long value;
} words[WORDS] = {
    {"seconds", 2}, {"seed", 1}, {"largest", 1000000}, {"fan", 1}, {"burst", 1}, {"nap", 0},
};
static long seconds, largest, fan, burst, nap;
static unsigned char *out, *in; /* fan * burst messages of at most `largest` bytes each */
static MPI_Request *requests;

static void read_words(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t n = strcspn(argv[i], "=");
        int k = 0;
        while (k < WORDS && (strncmp(argv[i], words[k].name, n) || words[k].name[n])) k++;
        if (k == WORDS || !argv[i][n]) {
            fprintf(stderr, "net_traffic: what is '%s'?\n", argv[i]);
            exit(2);
        }
        words[k].value = atol(argv[i] + n + 1);
    }
    seconds = words[0].value, largest = words[2].value, fan = words[3].value, burst = words[4].value,
    nap = words[5].value;
    if (fan < 1 || fan > check_size - 1) fan = check_size - 1;
}

/* The size of a message, which sender and receiver work out alike: any order of magnitude is as likely as another. */
static size_t size_of(uint64_t seed, int from, int to, long k)
{
    uint64_t state = seed ^ ((uint64_t)from << 40) ^ ((uint64_t)to << 20) ^ (uint64_t)k;
    uint64_t bits = 1;
    while ((1L << bits) <= largest) bits++;
    size_t n = (size_t)(check_random(&state) & ((1UL << (check_random(&state) % (bits + 1))) - 1));
    return n < (size_t)largest ? n : (size_t)largest;
}

static uint64_t pattern(uint64_t seed, int from, int to, long k)
{
    return seed + (uint64_t)(from * 1009 + to * 31) + (uint64_t)k;
}

static void send_to(int to, uint64_t seed, long k, unsigned char *buf, MPI_Request *r)
{
    size_t n = size_of(seed, check_rank, to, k);
    check_fill(buf, n, pattern(seed, check_rank, to, k));
    CHECK_OK(MPI_Isend(buf, (int)n, MPI_BYTE, to, (int)k, MPI_COMM_WORLD, r));
}

static void check_from(int from, uint64_t seed, long k, const unsigned char *buf, MPI_Status *s)
{
    size_t n = size_of(seed, from, check_rank, k);
    int count = -1;
    CHECK_OK(MPI_Get_count(s, MPI_BYTE, &count));
    CHECK((size_t)count == n, "%d bytes from rank %d, not %zu", count, from, n);
    CHECK(check_differ(buf, n, pattern(seed, from, check_rank, k)) == 0, "%zu bytes from rank %d are wrong", n, from);
}

/* The others that a rank sends to are `shift`, 2 * shift ... further, so that as many send to it. */
static int other(long way, long shift)
{
    return (int)((check_rank + way * shift % check_size + check_size) % check_size);
}

static void exchange(uint64_t seed, long first)
{
    long all = fan * burst;
    MPI_Status *s = malloc((size_t)all * sizeof *s);
    if (!s) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long i = 0; i < all; i++)
        send_to(other(1, first + i / burst), seed, i % burst, out + i * largest, &requests[i]);
    if (nap) {
        uint64_t state = seed + (uint64_t)check_rank;
        usleep((useconds_t)(check_random(&state) % (uint64_t)(nap * 1000)));
    }
    for (long i = 0; i < all; i++)
        CHECK_OK(MPI_Irecv(in + i * largest, (int)largest, MPI_BYTE, other(-1, first + i / burst), (int)(i % burst),
                           MPI_COMM_WORLD, &requests[all + i]));
    CHECK_OK(MPI_Waitall((int)all, requests + all, s));
    CHECK_OK(MPI_Waitall((int)all, requests, MPI_STATUSES_IGNORE));
    for (long i = 0; i < all; i++) check_from(other(-1, first + i / burst), seed, i % burst, in + i * largest, &s[i]);
    free(s);
}

/* Do all go on? */
static bool agree(double until)
{
    int mine[2] = {check_rank, check_rank == 0 && MPI_Wtime() < until}, sum[2] = {-1, 0};
    CHECK_OK(MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum[0] == check_size * (check_size - 1) / 2, "sum of the ranks %d", sum[0]);
    return sum[1] > 0;
}

static void going(void)
{
    if (check_rank) return;
    puts("going");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    read_words(argc, argv);
    size_t bytes = (size_t)(fan * burst * largest);
    out = malloc(bytes + 1);
    in = malloc(bytes + 1);
    requests = malloc(2 * (size_t)(fan * burst + 1) * sizeof *requests);
    if (!out || !in || !requests) MPI_Abort(MPI_COMM_WORLD, 1);
    uint64_t seed = (uint64_t)words[1].value, state = seed;
    double until = MPI_Wtime() + (double)seconds;
    for (long round = 0;; round++) {
        long spare = check_size - 1 - fan;
        if (fan) exchange(check_random(&state), 1 + (long)(check_random(&state) % (uint64_t)(spare + 1)));
        if (round % 8 != 7) continue;
        if (round == 7) going();
        if (!agree(until)) break;
    }
    free(out);
    free(in);
    free(requests);
    return check_done();
}
