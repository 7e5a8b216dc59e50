/*
 * goal_bcast.c - a broadcast of one's own: a binomial tree whose large messages go through it in pieces, so that a rank
 * passes on a piece while the next one comes. Made once, run for many buffers.
 *
 *     ranks, counted from the root:   0 -> 1, 2, 4 ...    2 -> 3    4 -> 5, 6    6 -> 7
 *
 * --text prints the schedule of rank 1 (goal(7) says how to read it). The times are those of this broadcast and of
 * MPI_Bcast, for comparison.
 */
#include "options.h"
#include <goal.h>

static long bytes = 1000000, piece = 65536, root = 0, repeats = 50;
static bool text = false;

static const struct option options[] = {
    {.name = "bytes", .number = &bytes, .min = 0, .max = 1000000000, .help = "bytes to all (1000000)"},
    {.name = "piece", .number = &piece, .min = 1, .max = 1000000000, .help = "bytes of a message (65536)"},
    {.name = "root", .number = &root, .min = 0, .max = 1000000, .help = "rank that has them (0)"},
    {.name = "repeats", .number = &repeats, .min = 1, .max = 1000000, .help = "how often it is run (50)"},
    {.name = "text", .flag = &text, .help = "prints the schedule of rank 1"},
    {.name = NULL}};

/* One piece: it comes from the parent, if there is one, and then goes to the children. */
static void add_piece(GOAL_Schedule s, int rank, int ranks, MPI_Count at, MPI_Count n, int tag)
{
    int me = (rank - (int)root + ranks) % ranks, bit = 1;
    GOAL_Op came, send;
    while (bit < ranks && !(me & bit)) bit *= 2;
    int parent = me ? (me - bit + (int)root) % ranks : MPI_PROC_NULL;
    GOAL_Recv(s, GOAL_AT(at), GOAL_BUFFER(0), n, parent, tag, &came); /* of the root: nothing */
    for (bit /= 2; bit > 0; bit /= 2) {
        if (me + bit >= ranks) continue;
        GOAL_Send(s, GOAL_AT(at), GOAL_BUFFER(0), n, (me + bit + (int)root) % ranks, tag, &send);
        GOAL_Requires(s, send, came);
    }
}

static GOAL_Schedule make_bcast(MPI_Comm comm)
{
    int rank, ranks, tag = 0;
    GOAL_Schedule s;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    GOAL_Create(comm, 0, &s);
    for (MPI_Count at = 0; at < bytes; at += piece, tag++)
        add_piece(s, rank, ranks, at, bytes - at < piece ? bytes - at : piece, tag);
    GOAL_Compile(s);
    return s;
}

static void print_schedule(GOAL_Schedule s)
{
    MPI_Count n;
    GOAL_Print(s, NULL, 0, &n);
    char *t = malloc((size_t)n);
    if (t && GOAL_Print(s, t, n, &n) == MPI_SUCCESS) fputs(t, stdout);
    free(t);
}

static unsigned char byte_of(long run, long i) { return (unsigned char)(run * 7 + i * 31 + i / 251); }

/* Runs it once; true if all bytes have come. */
static bool run_once(GOAL_Schedule s, unsigned char *buf, long run, bool is_root)
{
    GOAL_Request r;
    for (long i = 0; i < bytes; i++) buf[i] = is_root ? byte_of(run, i) : 0;
    GOAL_Run(s, &r);
    GOAL_Wait(&r);
    for (long i = 0; i < bytes; i++)
        if (buf[i] != byte_of(run, i)) return false;
    return true;
}

/* Seconds of one broadcast, by the schedule or, if that is NULL, by MPI_Bcast. */
static double seconds(GOAL_Schedule s, unsigned char *buf)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < repeats; i++) {
        GOAL_Request r;
        if (s == GOAL_SCHEDULE_NULL) {
            MPI_Bcast(buf, (int)bytes, MPI_BYTE, (int)root, MPI_COMM_WORLD);
            continue;
        }
        GOAL_Run(s, &r);
        GOAL_Wait(&r);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / (double)repeats;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = options_read(argc, argv, options, "goal_bcast - a broadcast of one's own", rank == 0);
    if (code == OPTIONS_RUN && (root >= ranks || bytes / piece > GOAL_TAG_MAX)) {
        if (rank == 0) fprintf(stderr, root >= ranks ? "goal_bcast: there is no rank %ld\n" : "goal_bcast: too many pieces for root %ld\n", root);
        code = OPTIONS_BAD;
    }
    if (code != OPTIONS_RUN) {
        MPI_Finalize();
        return code;
    }
    unsigned char *buf = malloc((size_t)bytes + 1);
    if (!buf) MPI_Abort(MPI_COMM_WORLD, 1);
    GOAL_Schedule s = make_bcast(MPI_COMM_WORLD);
    GOAL_Bind(s, GOAL_BUFFER(0), buf, bytes);
    if (text && rank == 1) print_schedule(s);
    int good = 1;
    for (long run = 0; run < 3; run++) good &= run_once(s, buf, run, rank == root);
    double own = seconds(s, buf), mpi = seconds(GOAL_SCHEDULE_NULL, buf);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0) printf("%ld bytes to %d ranks: %.1f us, MPI_Bcast %.1f us\n", bytes, ranks, own * 1e6, mpi * 1e6);
    if (rank == 0) printf("check: %s\n", good ? "all have them" : "some bytes are wrong");
    GOAL_Free(&s);
    free(buf);
    MPI_Finalize();
    return !good;
}
