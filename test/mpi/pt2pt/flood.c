/*
 * flood.c - regression: unexpected messages were bounded for each sender alone. Here all ranks but 0 send more than
 * TERN_EAGER_STORE together before rank 0 receives any: its memory stays within that bound, and all arrives in order.
 */
#include "../check.h"

enum { MESSAGES = 1024, BYTES = 8192, DATA = 1, READY = 2 };

/* Bytes of memory for each byte that is used: the thread sanitizer keeps four of its own. */
#ifdef __SANITIZE_THREAD__
enum { COST = 5 };
#else
enum { COST = 1 };
#endif

static long store_bytes(void)
{
    const char *text = getenv("TERN_EAGER_STORE");
    return (text ? atol(text) : 64) << 20;
}

/* Bytes of memory of this process that it shares with nobody. */
static long own_memory(void)
{
    char line[200];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %ld", &kb) == 1) break;
    if (f) fclose(f);
    return kb < 0 ? -1 : kb << 10;
}

static uint64_t seed_of(int rank, int i) { return (uint64_t)(rank * MESSAGES + i); }

/* Says that all is sent by a message behind the others: when it is there, so is what was sent eagerly. */
static void sender(MPI_Comm other)
{
    static MPI_Request r[MESSAGES];
    char *buf = malloc((size_t)MESSAGES * BYTES);
    for (int i = 0; i < MESSAGES; i++) {
        check_fill(buf + (size_t)i * BYTES, BYTES, seed_of(check_rank, i));
        CHECK_OK(MPI_Isend(buf + (size_t)i * BYTES, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &r[i]));
    }
    CHECK_OK(MPI_Send(NULL, 0, MPI_BYTE, 0, READY, other));
    CHECK_OK(MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE));
    free(buf);
}

static void receiver(MPI_Comm other)
{
    char buf[BYTES];
    long before = own_memory(), most = COST * (2 * store_bytes() + (4 << 20));
    for (int r = 1; r < check_size; r++) CHECK_OK(MPI_Recv(NULL, 0, MPI_BYTE, r, READY, other, MPI_STATUS_IGNORE));
    long grown = own_memory() - before;
    CHECK(before > 0 && grown < most, "%ld bytes of memory for unreceived messages, at most %ld were expected", grown,
          most);
    for (int i = 0; i < MESSAGES; i++)
        for (int r = check_size - 1; r > 0; r--) {
            CHECK_OK(MPI_Recv(buf, BYTES, MPI_BYTE, r, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(!check_differ(buf, BYTES, seed_of(r, i)), "message %d of rank %d is another", i, r);
        }
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    check_start(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int round = 0; round < 2; round++) { /* the second time with quotas that have grown */
        if (check_rank)
            sender(other);
        else
            receiver(other);
        CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI_Comm_free(&other);
    return check_done();
}
