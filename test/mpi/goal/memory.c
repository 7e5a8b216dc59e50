/*
 * memory.c - where the buffers of schedules are: the same schedule in all places (GOAL-4); scratchpads that nobody frees
 * (GOAL-5); lists of 1 to 64 pieces (GOAL-6); buffers that are written again as soon as an operation is complete (GOAL-11);
 * a block that another process runs (GOAL-12); buffers whose pages are others in each run, none of them pinned (GOAL-24).
 */
#include "../check.h"

#include <goal.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N = 50 };

static int left(void) { return (check_rank + check_size - 1) % check_size; }
static int right(void) { return (check_rank + 1) % check_size; }

static void run_once(GOAL_Schedule s)
{
    GOAL_Request r = GOAL_REQUEST_INIT;
    CHECK_OK(GOAL_Run(s, &r));
    CHECK_OK(GOAL_Wait(&r));
}

/* The stack of the function that was called before is no longer what it was. */
static __attribute__((noinline)) void spoil_stack(void)
{
    volatile char room[32768];
    for (size_t i = 0; i < sizeof room; i++) room[i] = (char)i;
}

/* ---- places ---- */

/* Mine goes to the right, and what comes from the left is added to it when it has gone. In the scratchpad, mine is a copy,
 * and the sum is copied back. */
static __attribute__((noinline)) GOAL_Schedule ring(int64_t *mine, int place)
{
    GOAL_Schedule s;
    GOAL_Op send, recv, add, in = -1, out;
    void *at = place == GOAL_USERSPACE ? (void *)mine : place == GOAL_SCRATCHPAD ? GOAL_AT(N * 8) : GOAL_AT(0);
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 2 * N * 8, &s));
    CHECK_OK(GOAL_Send(s, at, place, N * 8, right(), 7, &send));
    CHECK_OK(GOAL_Recv(s, GOAL_AT(0), GOAL_SCRATCHPAD, N * 8, left(), 7, &recv));
    CHECK_OK(GOAL_Add(s, GOAL_INT64, N, GOAL_AT(0), GOAL_SCRATCHPAD, at, place, &add));
    CHECK_OK(GOAL_Requires(s, add, send));
    CHECK_OK(GOAL_Requires(s, add, recv));
    if (place == GOAL_SCRATCHPAD) {
        CHECK_OK(GOAL_Copy(s, mine, GOAL_USERSPACE, at, place, N * 8, &in));
        CHECK_OK(GOAL_Requires(s, send, in));
        CHECK_OK(GOAL_Copy(s, at, place, mine, GOAL_USERSPACE, N * 8, &out));
        CHECK_OK(GOAL_Requires(s, out, add));
    }
    CHECK_OK(GOAL_Compile(s));
    return s;
}

static void places(void)
{
    static const struct {
        int place;
        const char *name;
    } is[] = {{GOAL_USERSPACE, "user space"}, {GOAL_SCRATCHPAD, "the scratchpad"}, {GOAL_BUFFER(5), "a buffer"}};
    for (int k = 0; k < 3; k++) {
        int64_t v[N];
        GOAL_Schedule s = ring(v, is[k].place);
        spoil_stack();
        for (int i = 0; i < N; i++) v[i] = check_rank * 1000 + i;
        if (is[k].place == GOAL_BUFFER(5)) CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(5), v, sizeof v));
        run_once(s);
        for (int i = 0; i < N; i++)
            CHECK(v[i] == (check_rank + left()) * 1000 + 2 * i, "%s: element %d is %lld", is[k].name, i, (long long)v[i]);
        CHECK_OK(GOAL_Free(&s));
        CHECK(s == GOAL_SCHEDULE_NULL, "freed schedule");
    }
}

/* ---- scratchpads ---- */

enum { BLOCK = 512, PAD = 1 << 20 };

/* A gather to rank 0 along a binomial tree. The subtree is gathered in the scratchpad, the pieces are named on the stack. */
static __attribute__((noinline)) GOAL_Schedule tree_gather(char *mine, char *all)
{
    GOAL_Schedule s;
    GOAL_Op ready, op;
    int k = 1;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, PAD, &s));
    CHECK_OK(GOAL_Join(s, &ready));
    GOAL_Piece from = {mine, GOAL_USERSPACE, BLOCK}, to = {GOAL_AT(0), GOAL_SCRATCHPAD, BLOCK};
    CHECK_OK(GOAL_Copyv(s, 1, &from, 1, &to, &op));
    CHECK_OK(GOAL_Requires(s, ready, op));
    for (; !(check_rank & k) && k < check_size; k *= 2) {
        int child = check_rank + k, n = check_size - child < k ? check_size - child : k;
        if (n <= 0) continue;
        to = (GOAL_Piece){GOAL_AT(k * BLOCK), GOAL_SCRATCHPAD, (MPI_Count)n * BLOCK};
        CHECK_OK(GOAL_Recvv(s, 1, &to, child, 0, &op));
        CHECK_OK(GOAL_Requires(s, ready, op));
    }
    int n = check_size - check_rank < k ? check_size - check_rank : k;
    if (check_rank) CHECK_OK(GOAL_Send(s, GOAL_AT(0), GOAL_SCRATCHPAD, (MPI_Count)n * BLOCK, check_rank - k, 0, &op));
    else CHECK_OK(GOAL_Copy(s, GOAL_AT(0), GOAL_SCRATCHPAD, all, GOAL_USERSPACE, (MPI_Count)n * BLOCK, &op));
    CHECK_OK(GOAL_Requires(s, op, ready));
    CHECK_OK(GOAL_Compile(s));
    return s;
}

/* Bytes that malloc has given out; nothing with sanitizers, which look for leaks themselves. */
static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void pads(void)
{
    enum { TIMES = 40 };
    char mine[BLOCK], *all = malloc((size_t)check_size * BLOCK);
    size_t before = 0;
    for (int t = 0; t < TIMES; t++) {
        GOAL_Schedule s = tree_gather(mine, all);
        spoil_stack();
        for (int again = 0; again < 2; again++) {
            check_fill(mine, BLOCK, (uint64_t)(check_rank + 100 * t + again));
            memset(all, 0, (size_t)check_size * BLOCK);
            run_once(s);
            for (int r = 0; r < check_size && !check_rank; r++)
                CHECK(!check_differ(all + r * BLOCK, BLOCK, (uint64_t)(r + 100 * t + again)), "block of rank %d", r);
        }
        CHECK_OK(GOAL_Free(&s));
        if (t == TIMES / 4) before = allocated();
    }
    CHECK(allocated() < before + PAD, "%zu bytes allocated, %d schedules ago %zu", allocated(), TIMES - TIMES / 4, before);
    free(all);
}

/* ---- lists ---- */

enum { PIECES = 64, BYTES = 2080, GAP = 3, ROOM = BYTES + PIECES * GAP };

/* Cuts BYTES into n pieces of random lengths, with gaps between them. */
static void cut(unsigned char *memory, int n, uint64_t *random, GOAL_Piece piece[])
{
    int left_over = BYTES - n, at = 0;
    for (int i = 0; i < n; i++) {
        int more = i == n - 1 ? left_over : (int)(check_random(random) % (uint64_t)(2 * (left_over / (n - i)) + 1));
        piece[i] = (GOAL_Piece){memory + at, GOAL_USERSPACE, 1 + more};
        at += 1 + more + GAP;
        left_over -= more;
    }
}

static void fill_pieces(const GOAL_Piece piece[], int n, uint64_t seed)
{
    size_t at = 0;
    for (int i = 0; i < n; i++)
        for (MPI_Count k = 0; k < piece[i].bytes; k++) ((unsigned char *)piece[i].buf)[k] = check_byte(seed, at++);
}

static int differ_pieces(const GOAL_Piece piece[], int n, uint64_t seed)
{
    size_t at = 0;
    int bad = 0;
    for (int i = 0; i < n; i++)
        for (MPI_Count k = 0; k < piece[i].bytes; k++) bad += ((unsigned char *)piece[i].buf)[k] != check_byte(seed, at++);
    return bad;
}

/* What is sent as n pieces is received as some others, copied to others again, and combined with yet others. */
static void lists(int n, uint64_t *random)
{
    static unsigned char memory[4][ROOM];
    GOAL_Piece out[PIECES], in[PIECES], copy[PIECES], both[PIECES];
    int n_in = 1 + (int)(check_random(random) % PIECES), n_copy = 1 + (int)(check_random(random) % PIECES), n_both = PIECES + 1 - n;
    GOAL_Schedule s;
    GOAL_Op recv, copied, mixed;
    memset(memory, 0xaa, sizeof memory);
    cut(memory[0], n, random, out);
    cut(memory[1], n_in, random, in);
    cut(memory[2], n_copy, random, copy);
    cut(memory[3], n_both, random, both);
    fill_pieces(out, n, (uint64_t)check_rank);
    fill_pieces(both, n_both, (uint64_t)left());
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Sendv(s, n, out, right(), 0, NULL));
    CHECK_OK(GOAL_Recvv(s, n_in, in, left(), 0, &recv));
    CHECK_OK(GOAL_Copyv(s, n_in, in, n_copy, copy, &copied));
    CHECK_OK(GOAL_Requires(s, copied, recv));
    CHECK_OK(GOAL_Arithv(s, GOAL_XOR, GOAL_UINT8, n_copy, copy, n_both, both, &mixed));
    CHECK_OK(GOAL_Requires(s, mixed, copied));
    CHECK_OK(GOAL_Compile(s));
    run_once(s);
    CHECK(!differ_pieces(in, n_in, (uint64_t)left()), "%d pieces as %d", n, n_in);
    CHECK(!differ_pieces(copy, n_copy, (uint64_t)left()), "a copy of %d pieces as %d", n_in, n_copy);
    int not_zero = 0, touched = 0;
    for (int i = 0; i < n_both; i++)
        for (MPI_Count k = 0; k < both[i].bytes; k++) not_zero += ((unsigned char *)both[i].buf)[k] != 0;
    for (int i = 0; i < n_in - 1; i++)
        for (int k = 0; k < GAP; k++) touched += ((unsigned char *)in[i].buf)[in[i].bytes + k] != 0xaa;
    CHECK(!not_zero && !touched, "%d pieces xor %d: %d bytes not 0; %d between pieces written", n_copy, n_both, not_zero, touched);
    CHECK_OK(GOAL_Free(&s));
}

static void all_lists(uint64_t seed)
{
    uint64_t random = seed + (uint64_t)check_rank;
    for (int n = 1; n <= PIECES; n++) lists(n, &random);
}

/* ---- complete means free ---- */

/* As soon as the message has gone, other bytes are written over it; what came is copied, and written over, too. */
static void overwritten(int bytes)
{
    size_t n = (size_t)bytes;
    unsigned char *out = malloc(4 * n), *in = out + n, *kept = in + n, *other = kept + n;
    GOAL_Op send, recv, copied, last;
    GOAL_Schedule s;
    memset(other, 0x5a, n);
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Send(s, out, GOAL_USERSPACE, bytes, right(), 0, &send));
    CHECK_OK(GOAL_Recv(s, in, GOAL_USERSPACE, bytes, left(), 0, &recv));
    CHECK_OK(GOAL_Copy(s, other, GOAL_USERSPACE, out, GOAL_USERSPACE, bytes, &last));
    CHECK_OK(GOAL_Requires(s, last, send));
    CHECK_OK(GOAL_Copy(s, in, GOAL_USERSPACE, kept, GOAL_USERSPACE, bytes, &copied));
    CHECK_OK(GOAL_Requires(s, copied, recv));
    CHECK_OK(GOAL_Copy(s, other, GOAL_USERSPACE, in, GOAL_USERSPACE, bytes, &last));
    CHECK_OK(GOAL_Requires(s, last, copied));
    CHECK_OK(GOAL_Compile(s));
    for (int t = 0; t < 15; t++) {
        check_fill(out, n, (uint64_t)(check_rank + 10 * t));
        if ((t + check_rank) % 3 == 0) usleep(300); /* the message is there before its receive, or the other way round */
        run_once(s);
        CHECK(!check_differ(kept, n, (uint64_t)(left() + 10 * t)), "%d bytes, run %d", bytes, t);
        CHECK(!memcmp(out, other, n) && !memcmp(in, other, n), "%d bytes, run %d: what is written last", bytes, t);
    }
    CHECK_OK(GOAL_Free(&s));
    free(out);
}

/* ---- in another process ---- */

/* Rank 0 makes a schedule for a communicator of one; everybody runs its block. */
static void elsewhere(void)
{
    char block[2000];
    MPI_Count bytes = 0;
    int64_t v[2] = {5 + check_rank, 0};
    GOAL_Schedule s = GOAL_SCHEDULE_NULL;
    GOAL_Op in, add, out;
    if (check_rank == 0) {
        CHECK_OK(GOAL_Create(MPI_COMM_SELF, 8, &s));
        CHECK_OK(GOAL_Copy(s, GOAL_AT(0), GOAL_BUFFER(0), GOAL_AT(0), GOAL_SCRATCHPAD, 8, &in));
        CHECK_OK(GOAL_Add(s, GOAL_INT64, 1, GOAL_AT(0), GOAL_BUFFER(0), GOAL_AT(0), GOAL_SCRATCHPAD, &add));
        CHECK_OK(GOAL_Copy(s, GOAL_AT(0), GOAL_SCRATCHPAD, GOAL_AT(8), GOAL_BUFFER(0), 8, &out));
        CHECK_OK(GOAL_Requires(s, add, in));
        CHECK_OK(GOAL_Requires(s, out, add));
        CHECK_OK(GOAL_Compile(s));
        CHECK_OK(GOAL_Export(s, block, sizeof block, &bytes));
        CHECK_OK(GOAL_Free(&s));
    }
    CHECK_OK(MPI_Bcast(&bytes, 1, MPI_COUNT, 0, MPI_COMM_WORLD));
    CHECK_OK(MPI_Bcast(block, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_OK(GOAL_Import(MPI_COMM_SELF, block, bytes, &s));
    memset(block, 0xff, sizeof block);
    CHECK_OK(GOAL_Bind(s, GOAL_BUFFER(0), v, sizeof v));
    run_once(s);
    CHECK(v[1] == 2 * (5 + check_rank), "twice %lld is %lld", (long long)v[0], (long long)v[1]);
    CHECK_OK(GOAL_Free(&s));
}

/* ---- pages ---- */

enum { MAPPED = 1 << 20 };

/* Other pages at an address, or at one that the system chooses. */
static unsigned char *map(void *at)
{
    void *p = mmap(at, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* The line of /proc/self/status, in kilobytes; 0: there is none. */
static long status_of(const char *name)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) kb = atol(line + strlen(name) + 1);
    if (f) fclose(f);
    return kb;
}

static void remapped(int bytes)
{
    unsigned char *out = map(NULL), *in = map(NULL);
    GOAL_Schedule s;
    GOAL_Request r;
    CHECK(out && in, "memory");
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Send(s, out, GOAL_USERSPACE, bytes, right(), 0, NULL));
    CHECK_OK(GOAL_Recv(s, in, GOAL_USERSPACE, bytes, left(), 0, NULL));
    CHECK_OK(GOAL_Compile(s));
    for (int t = 0; t < 12; t++) {
        CHECK(map(out) && map(in), "other pages");
        check_fill(out, (size_t)bytes, (uint64_t)(check_rank + 10 * t));
        if (t % 3 == 1) madvise(out, MAPPED, MADV_PAGEOUT); /* out of memory, if there is where to */
        CHECK_OK(GOAL_Run(s, &r));
        CHECK(!status_of("VmLck:") && !status_of("VmPin:"), "%ld KB locked, %ld KB pinned", status_of("VmLck:"), status_of("VmPin:"));
        CHECK_OK(GOAL_Wait(&r));
        CHECK(!check_differ(in, (size_t)bytes, (uint64_t)(left() + 10 * t)), "%d bytes, run %d", bytes, t);
    }
    CHECK_OK(GOAL_Free(&s));
    munmap(out, MAPPED);
    munmap(in, MAPPED);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8, 1000, 20000, 100000, MAPPED};
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0}); /* whoever pins fails */
    check_start(&argc, &argv);
    places();
    pads();
    all_lists(check_seed());
    elsewhere();
    for (int i = 0; i < 5; i++) overwritten(sizes[i]);
    for (int i = 0; i < 5; i++) remapped(sizes[i]);
    return check_done();
}
