/*
 * idle_rings.c - the ring of a sender that filled it once, and then waits, is given back to the system: the memory of
 * the receiver comes back. The ring works as before afterwards. TERN_SHM_BOX in the list makes it large.
 */
#include "../check.h"
#include <unistd.h>

enum { BURST = 64, BYTES = 16384, WAIT_US = 1200000, ROUNDS = 3 };

/* Memory of the segments that this process has mapped, its own too, in KB. */
static long segments_kb(void)
{
    char line[512];
    long sum = 0, kb;
    int ours = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strchr(line, ':') && !strstr(line, " kB")) ours = strstr(line, "memfd:tern-") != NULL;
        if (ours && sscanf(line, "Rss: %ld kB", &kb) == 1) sum += kb;
    }
    if (f) fclose(f);
    return sum;
}

static void send_burst(int round)
{
    static char data[BYTES];
    for (int i = 0; i < BURST; i++) {
        memset(data, round + i, sizeof data);
        MPI_Send(data, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD);
    }
}

static void recv_burst(int from, int round)
{
    static char data[BYTES], expected[BYTES];
    for (int i = 0; i < BURST; i++) {
        MPI_Recv(data, BYTES, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(expected, round + i, sizeof expected);
        CHECK(!memcmp(data, expected, sizeof data), "message %d of rank %d in round %d", i, from, round);
    }
}

/* The others have sent, and wait for rank 0, which lets them. */
static void receive_all(int round)
{
    for (int r = 1; r < check_size; r++) recv_burst(r, round);
    long busy = segments_kb();
    usleep(WAIT_US);
    long idle = segments_kb(), rings = 1024L * (check_size - 1);
    CHECK(busy - idle >= rings / 2, "%ld KB are mapped when the senders are busy, and %ld when they have waited", busy,
          idle);
    for (int r = 1; r < check_size; r++) MPI_Send(&r, 1, MPI_INT, r, 7, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int got;
    check_start(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        if (!check_rank) {
            receive_all(round);
            continue;
        }
        send_burst(round);
        MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == check_rank, "%d", got);
    }
    return check_done();
}
