/*
 * memory.c - memory of MPI_Alloc_mem (MPI-5.0 section 9.2): any size, aligned as asked, refused in words; large messages
 * from and into it are right whatever the other buffer is, when it is overwritten at once, freed and given out again; and
 * peers on the node look straight into it.
 */
#include "../check.h"

static void *memory(size_t n, int of_mpi)
{
    void *p = NULL;
    if (!of_mpi) p = malloc(n);
    else CHECK_OK(MPI_Alloc_mem((MPI_Aint)n, MPI_INFO_NULL, &p));
    if (!p) MPI_Abort(MPI_COMM_WORLD, 1);
    return p;
}

static void forget(void *p, int of_mpi)
{
    if (!of_mpi) free(p);
    else CHECK_OK(MPI_Free_mem(p));
}

static void sizes(void)
{
    static const MPI_Aint size[] = {0, 1, 100, 5000, 16384, 16385, 1 << 20, 3 << 20, 70 << 20};
    enum { N = sizeof size / sizeof *size };
    char *p[N];
    for (int i = 0; i < N; i++) {
        CHECK_OK(MPI_Alloc_mem(size[i], MPI_INFO_NULL, &p[i]));
        CHECK(p[i] != NULL && (uintptr_t)p[i] % 64 == 0, "%ld bytes at %p", (long)size[i], (void *)p[i]);
        if (size[i]) p[i][0] = p[i][size[i] - 1] = (char)i;
    }
    for (int i = 0; i < N; i++) {
        CHECK(!size[i] || (p[i][0] == i && p[i][size[i] - 1] == i), "block %d was written by another", i);
        CHECK_OK(MPI_Free_mem(p[i]));
    }
}

/* Are large blocks such as peers can map, all of them? */
static int is_shared(void)
{
    const char *off = getenv("TERN_ARENA"), *transports = getenv("TERN_TRANSPORTS"), *here = getenv("MPI_LOCALNRANKS");
    if (here && atoi(here) < check_size) return 0; /* several nodes */
    return check_size > 1 && !(off && !strcmp(off, "off")) && !transports;
}

static void refusals(void)
{
    char *p = (char *)1;
    CHECK_CLASS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &p), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alloc_mem(8, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alloc_mem((MPI_Aint)1 << 47, MPI_INFO_NULL, &p), MPI_ERR_NO_MEM);
    CHECK_CLASS(MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &p), MPI_ERR_NO_MEM);
    CHECK_CLASS(MPI_Alloc_mem(8, (MPI_Info)MPI_COMM_WORLD, &p), MPI_ERR_INFO);
    CHECK(p == (char *)1, "a failed call set its result");
    CHECK_CLASS(MPI_Free_mem(NULL), MPI_ERR_ARG);
    if (!is_shared()) return; /* it is malloc's */
    p = memory(100000, 1);
    CHECK_CLASS(MPI_Free_mem(p + 4096), MPI_ERR_BASE);
    CHECK_OK(MPI_Free_mem(p));
    CHECK_CLASS(MPI_Free_mem(p), MPI_ERR_BASE);
}

/* One message of n bytes around the ring, from and into memory of both kinds. */
static void one(size_t n, int from_mpi, int to_mpi, uint64_t seed, int order)
{
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    unsigned char *out = memory(n + 64, from_mpi), *in = memory(n + 64, to_mpi);
    MPI_Request r[2];
    MPI_Status s;
    int got = -1;
    check_fill(out + 3, n, seed + (unsigned)check_rank);
    memset(in, 0xaa, n + 64);
    if (order) MPI_Irecv(in + 5, (int)n, MPI_BYTE, left, 7, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out + 3, (int)n, MPI_BYTE, right, 7, MPI_COMM_WORLD, &r[1]);
    if (!order) MPI_Irecv(in + 5, (int)n, MPI_BYTE, left, 7, MPI_COMM_WORLD, &r[0]);
    CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
    memset(out, 0x55, n + 64); /* the buffer is the sender's again */
    CHECK_OK(MPI_Wait(&r[0], &s));
    MPI_Get_count(&s, MPI_BYTE, &got);
    size_t bad = check_differ(in + 5, n, seed + (unsigned)left);
    CHECK(got == (int)n && !bad, "%zu bytes, %d -> %d, order %d: %d came, %zu differ", n, from_mpi, to_mpi, order, got, bad);
    CHECK(in[4] == 0xaa && in[n + 5] == 0xaa, "%zu bytes: written beside the buffer", n);
    forget(out, from_mpi);
    forget(in, to_mpi);
}

static void messages(void)
{
    static const size_t size[] = {1000, 32769, 65536, 100001, 262144, 1000003, 4 << 20};
    uint64_t seed = check_seed();
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int way = 0; way < 8; way++) one(size[i], way & 1, way >> 1 & 1, check_random(&seed), way >> 2);
}

/* Too short a buffer: the part that fits, and the error. */
static void truncation(void)
{
    char *out = memory(300000, 1), *in = memory(300000, 1);
    MPI_Request r;
    memset(out, check_rank + 1, 300000);
    memset(in, 99, 300000);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Isend(out, 300000, MPI_CHAR, right, 1, MPI_COMM_WORLD, &r);
    CHECK_CLASS(MPI_Recv(in, 100000, MPI_CHAR, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(in[0] == left + 1 && in[99999] == left + 1 && in[100000] == 99, "%d %d %d", in[0], in[99999], in[100000]);
    forget(out, 1);
    forget(in, 1);
}

/* Gaps at one side: packed, not copied as a whole. */
static void strided(void)
{
    enum { N = 40000 };
    int *out = memory(2 * N * sizeof *out, 1), *in = memory(N * sizeof *in, 1);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size, bad = 0;
    MPI_Datatype every_other;
    MPI_Type_vector(N, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < 2 * N; i++) out[i] = check_rank + i;
    MPI_Sendrecv(out, 1, every_other, right, 2, in, N, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) bad += in[i] != left + 2 * i;
    CHECK(!bad, "%d elements differ", bad);
    MPI_Type_free(&every_other);
    forget(out, 1);
    forget(in, 1);
}

/* Blocks come and go while messages do: what a peer has mapped is never taken for something else. */
static void reuse(void)
{
    enum { LIVE = 6 };
    void *live[LIVE] = {NULL};
    uint64_t state = 4711; /* the same in all ranks */
    for (int turn = 0; turn < 60; turn++) {
        int i = (int)(check_random(&state) % LIVE);
        if (live[i]) forget(live[i], 1);
        live[i] = memory(20000 + check_random(&state) % 6000000, 1);
        memset(live[i], turn, 20000);
        one(40000 + check_random(&state) % 300000, 1, (int)(check_random(&state) & 1), check_random(&state), turn & 1);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i]) forget(live[i], 1);
}

/* Bytes of arenas of other processes that this process has touched; -1: the system does not say. */
static long seen_of_others(const char *mine)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    long kb, sum = 0;
    int here = 0;
    unsigned long from, to;
    if (!f) return -1;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = strstr(line, "memfd:tern-arena") && !((uintptr_t)mine >= from && (uintptr_t)mine < to);
        else if (here && sscanf(line, "Rss: %ld", &kb) == 1) sum += kb << 10;
    }
    fclose(f);
    return sum;
}

/* Messages between rank 0 and 1 from memory of MPI go through windows: one of the two has touched the other's. */
static void is_used(void)
{
    enum { N = 8 << 20 };
    if (!is_shared()) return;
    char *p = memory(N, 1);
    memset(p, check_rank, N);
    long sum = 0, seen = 0;
    if (check_rank == 0) MPI_Send(p, N, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
    if (check_rank == 1) MPI_Recv(p, N, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (check_rank < 2) seen = seen_of_others(p);
    if (seen < 0) seen = N;
    MPI_Allreduce(&seen, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum >= N * 9 / 10, "%ld bytes of %d were copied through windows", sum, N);
    CHECK(check_rank != 1 || (p[0] == 0 && p[N - 1] == 0), "the data");
    forget(p, 1);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    is_used(); /* first: every touch is counted */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    sizes();
    refusals();
    messages();
    truncation();
    strided();
    reuse();
    return check_done();
}
