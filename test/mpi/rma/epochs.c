/*
 * epochs.c - whoever gets the lock of a target sees all that the one before has put there (RMA-10): each origin in turn checks the
 * data, puts other data of a random size, in one piece or several, and says in the same epoch what it has put. The target computes, waits,
 * forks and writes beside the window, in the same pages (RMA-15), in turns.
 *
 *     epochs [EPOCHS]     of all origins together; default 3000. TERN_TEST_SEED
 */
#include "windows.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 96 << 10, WORDS = MOST / 8, PAGE = 4096, BESIDE = 64 };

/* What an origin says of its data: in the window's first words. */
struct head {
    uint64_t number, words, from, seed; /* of the epoch; of data, beginning where; what they are */
};
enum { HEAD_WORDS = sizeof(struct head) / 8, ROOM = HEAD_WORDS + WORDS };

static uint64_t word(uint64_t seed, uint64_t i) { return (seed + i) * 0x9e3779b97f4a7c15u ^ i; }

/* ---- origins ---- */

/* In pieces, as letters, batches and moves carry them: each origin's way of the moment. */
static void put_pieces(MPI_Win win, uint64_t *state, const uint64_t *data, const struct head *h)
{
    static const int most[] = {WORDS, 32, 800, 3000};
    uint64_t piece = (uint64_t)most[check_random(state) % 4];
    if (h->words / piece > 64) piece = h->words / 64 + 1;
    for (uint64_t i = 0; i < h->words; i += piece) {
        int n = (int)(h->words - i < piece ? h->words - i : piece);
        CHECK_OK(MPI_Put(data + i, n, MPI_UINT64_T, 0, HEAD_WORDS + (MPI_Aint)(h->from + i), n, MPI_UINT64_T, win));
    }
    CHECK_OK(MPI_Put(h, HEAD_WORDS, MPI_UINT64_T, 0, 0, HEAD_WORDS, MPI_UINT64_T, win));
}

static struct head some_data(uint64_t *state, uint64_t number, uint64_t *data)
{
    struct head h = {.number = number, .seed = check_random(state)};
    h.words = check_random(state) % (check_random(state) % 4 ? 64 : WORDS);
    h.from = check_random(state) % (WORDS - h.words);
    for (uint64_t i = 0; i < h.words; i++) data[i] = word(h.seed, i);
    return h;
}

/* False: all epochs are over. */
static bool one_epoch(MPI_Win win, uint64_t *state, uint64_t epochs)
{
    static uint64_t got[ROOM], data[WORDS];
    struct head *h = (struct head *)got, next;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK_OK(MPI_Get(h, HEAD_WORDS, MPI_UINT64_T, 0, 0, HEAD_WORDS, MPI_UINT64_T, win));
    CHECK_OK(MPI_Win_flush(0, win));
    bool sane = h->words <= WORDS && h->from <= WORDS - h->words && h->number <= epochs;
    CHECK(sane, "the head of an epoch: %llu words from %llu", (unsigned long long)h->words, (unsigned long long)h->from);
    if (sane && h->words) {
        CHECK_OK(MPI_Get(got + HEAD_WORDS, (int)h->words, MPI_UINT64_T, 0, HEAD_WORDS + (MPI_Aint)h->from, (int)h->words, MPI_UINT64_T, win));
        CHECK_OK(MPI_Win_flush(0, win));
    }
    uint64_t wrong = 0;
    for (uint64_t i = 0; sane && i < h->words; i++) wrong += got[HEAD_WORDS + i] != word(h->seed, i);
    CHECK(!wrong, "epoch %llu: %llu of %llu words are not those of the one before", (unsigned long long)h->number, (unsigned long long)wrong,
          (unsigned long long)h->words);
    bool goes_on = sane && !wrong && h->number < epochs;
    if (goes_on) {
        next = some_data(state, h->number + 1, data);
        put_pieces(win, state, data, &next);
    }
    CHECK_OK(MPI_Win_unlock(0, win));
    return goes_on;
}

/* ---- the target ---- */

/* A child that shares its pages for a moment: what the parent then writes, or others write for it, is in new ones. */
static void fork_once(void)
{
    pid_t child = fork();
    if (!child) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
}

/* Memory comes and goes in the neighbourhood. */
static void map_once(void)
{
    char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    p[0] = p[2 * PAGE] = 1;
    char *q = mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    munmap(q == MAP_FAILED ? p : q, (q == MAP_FAILED ? 4 : 8) * PAGE);
}

/* Words in the same pages as the window's first and last ones, which nobody else writes. */
static void write_beside(char *all, unsigned char round)
{
    memset(all, round, BESIDE);
    memset(all + BESIDE + ROOM * 8, round, BESIDE);
    int wrong = 0;
    for (int i = 0; i < BESIDE; i++) wrong += all[i] != (char)round || all[BESIDE + ROOM * 8 + i] != (char)round;
    CHECK(!wrong, "%d bytes beside the window are not what the target has written", wrong);
}

static void be_target(char *all, const uint64_t *number, uint64_t epochs)
{
    int over = 0;
    MPI_Request r;
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    for (unsigned round = 0; !over; round++) {
        double until = MPI_Wtime() + 0.002;
        while (MPI_Wtime() < until && (uint64_t)window_look(number) < epochs) write_beside(all, (unsigned char)round); /* it computes */
        if (round % 8 == 0) fork_once();
        if (round % 8 == 4) map_once();
        until = MPI_Wtime() + 0.002;
        do MPI_Test(&r, &over, MPI_STATUS_IGNORE);
        while (!over && MPI_Wtime() < until);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    uint64_t epochs = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000, state = check_seed() + (uint64_t)check_rank;
    char *all = aligned_alloc(PAGE, (2 * BESIDE + ROOM * 8 + PAGE - 1) / PAGE * PAGE);
    if (!all) return 1;
    memset(all, 0, 2 * BESIDE + ROOM * 8);
    MPI_Win win;
    MPI_Win_create(all + BESIDE, check_rank ? 0 : ROOM * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (check_rank) {
        while (one_epoch(win, &state, epochs)) continue;
        MPI_Request r;
        MPI_Ibarrier(MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else {
        be_target(all, (const uint64_t *)(all + BESIDE), epochs);
        CHECK(check_size == 1 || *(uint64_t *)(all + BESIDE) == epochs, "epochs are missing");
    }
    MPI_Win_free(&win);
    free(all);
    return check_done();
}
