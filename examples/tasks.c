/*
 * tasks.c - the queens problem, by a pool of tasks that ranks without work steal from each other.
 *
 * In how many ways can n queens stand on a board of n x n squares, so that none attacks another? A task is a board with
 * a queen in each of its first rows. A rank replaces it by one task for each free square of the next row; if --grain
 * rows or fewer are empty, the rank searches it to the end instead. The work behind a task is not known in advance, and
 * at first rank 0 has the only task, the empty board.
 *
 * Each rank has a stack of tasks in memory of its own, and offers tasks in its window. The ranks exchange them by
 * one-sided communication alone: a rank is not asked for its tasks, and sends none.
 *
 *        the window of a rank      changed by
 *        offered   a count         its rank, which has put so many tasks into slots since the start
 *        taken     a count         each rank that takes some of these tasks, by compare and swap
 *        copied    a count         each rank that has got the tasks it took out of their slots
 *        slot[]    tasks           its rank; task number i is in slot[i % SLOTS]
 *        busy      a count         all ranks, in the window of rank 0: how many ranks may have tasks
 *
 * To take tasks, a rank reads `taken`, which is t, and `offered`, and swaps `taken` from t to t + k. If `taken` is
 * still t then, the tasks t to t + k - 1 are its own: it gets them and adds k to `copied`. `taken` never falls, so no
 * other rank has taken any of them. The owner puts new tasks into slots when all earlier ones are copied.
 *
 * A rank that has no task left subtracts 1 from `busy`, and adds 1 before it takes any. So `busy` is not 0 while there
 * is a task, and a rank that reads 0 ends its work.
 *
 * Several ranks access the counts at the same time, so they use accumulate functions only. MPI may assume that those on
 * one count are all the same operation, or MPI_NO_OP (info key accumulate_ops): so `taken` is also read by compare and
 * swap, and the other counts are changed by sums. Slots are put and got; the counts say which rank may access them,
 * and a rank changes a count when the puts and gets before it are flushed. A rank accesses its own window as others
 * do, never by loads and stores, so the program is right in both memory models.
 */
#include "allocate.h"
#include "options.h"
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { LARGEST = 20, SLOTS = 64, STACK = SLOTS + LARGEST * LARGEST };
enum { SHORTEST_PAUSE = 20000, LONGEST_PAUSE = 500000 }; /* nanoseconds between two attempts to steal */
enum { BAR = 40, BARS = 32 };                            /* the chart: characters of the longest bar, ranks at most */

static long size = 14, grain = 9;
static bool check = false;

static const struct option options[] = {
    {.name = "size", .number = &size, .min = 1, .max = LARGEST, .help = "rows and columns of the board (14)"},
    {.name = "grain", .number = &grain, .min = 1, .max = LARGEST, .help = "empty rows that one task searches (9)"},
    {.name = "check", .flag = &check, .help = "compares with a serial search; exit code 1 when they differ"},
    {.name = NULL}};

/* The number of solutions, by size: sequence A000170 of the On-Line Encyclopedia of Integer Sequences. */
static const int64_t known[LARGEST + 1] = {1,      1,       0,        0,        2,         10,         4,
                                           40,     92,      352,      724,      2680,      14200,      73712,
                                           365596, 2279184, 14772512, 95815104, 666090624, 4968057848, 39029188884};

/* A board with queens in its first `row` rows. Squares of the next row that they attack along the columns and both
 * diagonals: one bit each. */
struct task {
    uint32_t row, columns, left, right;
};
enum { TASK_NUMBERS = 4 };

/* What the window of a rank contains: see above. */
struct shared {
    int64_t busy, offered, taken, copied;
    struct task slot[SLOTS];
};

/* What a rank has done. */
struct tally {
    int64_t boards, solutions, tasks, steals;
};
enum { TALLY_NUMBERS = 4 };

/* STACK is enough: tasks are taken, at most SLOTS, when there are none; in each row, n - 1 others wait for one task. */
struct pool {
    MPI_Win win;
    int rank, ranks, height;
    struct task stack[STACK];
    int64_t offered;
    uint64_t random;
    struct tally done;
};

/* ---- queens ---- */

static struct task next_row(struct task t, uint32_t square)
{
    return (struct task){t.row + 1, t.columns | square, (t.left | square) << 1, (t.right | square) >> 1};
}

/* The squares of the next row that no queen attacks. */
static uint32_t free_squares(struct task t) { return ((1u << size) - 1) & ~(t.columns | t.left | t.right); }

static void search(struct task t, struct tally *done)
{
    done->boards++;
    if (t.row == size) done->solutions++;
    if (t.row == size) return;
    for (uint32_t open = free_squares(t); open; open &= open - 1) search(next_row(t, open & -open), done);
}

/* Does the newest task of the stack. */
static void do_task(struct pool *p)
{
    struct task t = p->stack[--p->height];
    p->done.tasks++;
    if (size - t.row <= grain) {
        search(t, &p->done);
        return;
    }
    p->done.boards++;
    for (uint32_t open = free_squares(t); open; open &= open - 1) p->stack[p->height++] = next_row(t, open & -open);
}

/* ---- the window ---- */

/* Adds to a count in the window of a rank; the sum is there when this returns. */
static void add(struct pool *p, int rank, MPI_Aint count, int64_t x)
{
    MPI_Accumulate(&x, 1, MPI_INT64_T, rank, count, 1, MPI_INT64_T, MPI_SUM, p->win);
    MPI_Win_flush(rank, p->win);
}

static int64_t read_count(struct pool *p, int rank, MPI_Aint count)
{
    int64_t none = 0, x;
    MPI_Fetch_and_op(&none, &x, MPI_INT64_T, rank, count, MPI_NO_OP, p->win);
    MPI_Win_flush(rank, p->win);
    return x;
}

static MPI_Aint slot_of(int64_t number)
{
    return (MPI_Aint)(offsetof(struct shared, slot) + (size_t)(number % SLOTS) * sizeof(struct task));
}

/* Tasks that a rank offers and nobody has taken: first to end - 1; none if first >= end. */
struct range {
    int64_t first, end;
};

static struct range look(struct pool *p, int rank)
{
    struct range r;
    int64_t zero = 0, none = 0; /* `taken` is read by a swap that changes nothing: 0 becomes 0 */
    MPI_Compare_and_swap(&zero, &zero, &r.first, MPI_INT64_T, rank, offsetof(struct shared, taken), p->win);
    MPI_Fetch_and_op(&none, &r.end, MPI_INT64_T, rank, offsetof(struct shared, offered), MPI_NO_OP, p->win);
    MPI_Win_flush(rank, p->win);
    return r;
}

/* Takes the older half of a range; false: another rank has taken some of it since look. The stack is empty. */
static bool take(struct pool *p, int rank, struct range r)
{
    int64_t after = r.first + (r.end - r.first + 1) / 2, before;
    MPI_Compare_and_swap(&after, &r.first, &before, MPI_INT64_T, rank, offsetof(struct shared, taken), p->win);
    MPI_Win_flush(rank, p->win);
    if (before != r.first) return false;
    for (int64_t i = r.first; i < after; i++)
        MPI_Get(&p->stack[p->height++], TASK_NUMBERS, MPI_UINT32_T, rank, slot_of(i), TASK_NUMBERS, MPI_UINT32_T,
                p->win);
    MPI_Win_flush(rank, p->win);
    add(p, rank, offsetof(struct shared, copied), after - r.first);
    return true;
}

/* Offers the older half of the stack, whose boards have the most empty rows, if the last offer is copied. */
static void offer(struct pool *p)
{
    int n = p->height / 2 < SLOTS ? p->height / 2 : SLOTS;
    if (n == 0 || read_count(p, p->rank, offsetof(struct shared, copied)) < p->offered) return;
    for (int i = 0; i < n; i++)
        MPI_Put(&p->stack[i], TASK_NUMBERS, MPI_UINT32_T, p->rank, slot_of(p->offered + i), TASK_NUMBERS, MPI_UINT32_T,
                p->win);
    MPI_Win_flush(p->rank, p->win);
    add(p, p->rank, offsetof(struct shared, offered), n);
    p->offered += n;
    p->height -= n;
    memmove(p->stack, &p->stack[n], (size_t)p->height * sizeof p->stack[0]);
}

/* ---- work ---- */

/* Takes tasks of the rank's own offer; false: others have taken all of them. */
static bool take_back(struct pool *p)
{
    for (struct range r = look(p, p->rank); r.first < r.end; r = look(p, p->rank))
        if (take(p, p->rank, r)) return true;
    return false;
}

static bool steal_from(struct pool *p, int rank)
{
    struct range r = look(p, rank);
    if (r.first >= r.end) return false;
    add(p, 0, offsetof(struct shared, busy), 1);
    if (take(p, rank, r)) return true;
    add(p, 0, offsetof(struct shared, busy), -1);
    return false;
}

/* Another rank, chosen at random. */
static int victim(struct pool *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (p->rank + 1 + (int)((p->random >> 33) % (uint64_t)(p->ranks - 1))) % p->ranks;
}

/* Waits until it has stolen tasks; false: no rank has any. */
static bool steal(struct pool *p)
{
    struct timespec pause = {.tv_nsec = SHORTEST_PAUSE};
    add(p, 0, offsetof(struct shared, busy), -1);
    while (read_count(p, 0, offsetof(struct shared, busy)) > 0) {
        if (steal_from(p, victim(p))) {
            p->done.steals++;
            return true;
        }
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec * 2 < LONGEST_PAUSE ? pause.tv_nsec * 2 : LONGEST_PAUSE;
    }
    return false;
}

static void work(struct pool *p)
{
    double start = MPI_Wtime(), shown = start;
    do {
        while (p->height > 0) {
            offer(p);
            do_task(p);
            double now = MPI_Wtime();
            if (p->rank > 0 || now - shown < 2) continue;
            shown = now;
            printf("after %.0f s: %lld tasks and %lld solutions by rank 0\n", now - start, (long long)p->done.tasks,
                   (long long)p->done.solutions);
            fflush(stdout);
        }
    } while (take_back(p) || steal(p));
}

static void pool_open(struct pool *p, int rank, int ranks)
{
    struct shared *memory, start = {.busy = ranks};
    *p = (struct pool){.rank = rank, .ranks = ranks, .random = (uint64_t)rank};
    if (rank == 0) p->stack[p->height++] = (struct task){.row = 0};
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &p->win);
    MPI_Win_lock_all(0, p->win);
    MPI_Put(&start, sizeof start, MPI_BYTE, rank, 0, sizeof start, MPI_BYTE, p->win);
    MPI_Win_flush(rank, p->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pool_close(struct pool *p)
{
    MPI_Win_unlock_all(p->win);
    MPI_Win_free(&p->win);
}

/* ---- the result ---- */

static struct tally sum_of(const struct tally *done, int ranks)
{
    struct tally sum = {.boards = 0};
    for (int r = 0; r < ranks; r++) {
        sum.boards += done[r].boards;
        sum.solutions += done[r].solutions;
        sum.tasks += done[r].tasks;
    }
    return sum;
}

/* A bar for each rank: the boards that it looked at. */
static void chart(const struct tally *done, int ranks)
{
    int64_t longest = 1;
    for (int r = 0; r < ranks; r++) longest = done[r].boards > longest ? done[r].boards : longest;
    printf("  rank    tasks   steals        boards\n");
    for (int r = 0; r < ranks && r < BARS; r++) {
        char bar[BAR + 1] = "";
        memset(bar, '#', (size_t)(done[r].boards * BAR / longest));
        printf("%6d %8lld %8lld %13lld  %s\n", r, (long long)done[r].tasks, (long long)done[r].steals,
               (long long)done[r].boards, bar);
    }
    if (ranks > BARS) printf("and %d other ranks\n", ranks - BARS);
}

/* The same tasks, by rank 0 alone: true when their numbers are the same. */
static bool same_as_serial(const struct tally *sum)
{
    struct pool alone = {.height = 1};
    while (alone.height > 0) do_task(&alone);
    const struct tally *serial = &alone.done;
    if (sum->boards == serial->boards && sum->solutions == serial->solutions && sum->tasks == serial->tasks) {
        printf("check: the same as the serial search\n");
        return true;
    }
    fprintf(stderr, "tasks: check failed: %lld tasks and %lld boards, but %lld and %lld in the serial search\n",
            (long long)sum->tasks, (long long)sum->boards, (long long)serial->tasks, (long long)serial->boards);
    return false;
}

/* What rank 0 does with the result; true when it is right. */
static bool finish(const struct tally *done, int ranks, double seconds)
{
    struct tally sum = sum_of(done, ranks);
    bool good = sum.solutions == known[size];
    printf("%ld queens, %d ranks: %lld solutions, %lld boards in %.2f s, %.0f million a second\n", size, ranks,
           (long long)sum.solutions, (long long)sum.boards, seconds, 1e-6 * (double)sum.boards / seconds);
    chart(done, ranks);
    fflush(stdout);
    if (!good) fprintf(stderr, "tasks: %lld solutions would be right\n", (long long)known[size]);
    if (check) good &= same_as_serial(&sum);
    return good;
}

static int run(int rank, int ranks)
{
    struct pool p;
    int good = 1;
    pool_open(&p, rank, ranks);
    double start = MPI_Wtime();
    work(&p);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    pool_close(&p);
    struct tally *all = allocate((size_t)ranks, sizeof *all);
    MPI_Gather(&p.done, TALLY_NUMBERS, MPI_INT64_T, all, TALLY_NUMBERS, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) good = finish(all, ranks, seconds);
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(all);
    return !good;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = options_read(argc, argv, options, "tasks - the queens problem, by ranks that steal work", rank == 0);
    if (code == OPTIONS_RUN) code = run(rank, ranks);
    MPI_Finalize();
    return code;
}
