/*
 * vectors.c - the collectives with blocks of varying size (MPI-5.0 sections 6.5 to 6.8): random counts (many zero) and
 * displacements with holes between the blocks, which stay untouched; every root, in place, strided types.
 */
#include "../check.h"

enum { MAXBLOCK = 3000, ROUNDS = 60, UNTOUCHED = -7, MAXRANKS = 64 };

static uint64_t state;
static int *out, *in, gap;
static MPI_Datatype unit;

static int value(int r, int to, int i) { return r * 1000003 + to * 10007 + i * 3 + 1; }

/* All ranks draw the same numbers: counts[r][s] is what r sends to s; holes of a few elements between blocks. */
static int counts[MAXRANKS][MAXRANKS];

static void draw_counts(void)
{
    int limit = (int)(check_random(&state) % 3 ? 40 : MAXBLOCK);
    for (int r = 0; r < check_size; r++)
        for (int s = 0; s < check_size; s++) counts[r][s] = check_random(&state) % 4 ? (int)(check_random(&state) % (unsigned)limit) : 0;
}

/* Displacements of blocks with these lengths, in a shuffled order, with holes. Returns the elements in all. */
static int place(const int *len, int *displs)
{
    int at = 0, shift = (int)(check_random(&state) % (unsigned)check_size);
    for (int k = 0; k < check_size; k++) {
        int r = (k * (check_size > 1 ? check_size - 1 : 1) + shift) % check_size;
        displs[r] = at;
        at += len[r] + (int)(check_random(&state) % 3);
    }
    return at;
}

static void clear(int *buf, int n)
{
    for (int i = 0; i < (n + 1) * gap; i++) buf[i] = UNTOUCHED;
}

static void fill(int *buf, int at, int n, int r, int to)
{
    for (int i = 0; i < n; i++) buf[(at + i) * gap] = value(r, to, i);
}

/* Checks that `buf` has exactly the blocks: rank r's block is at displs[r], everything else is untouched. */
static void check_blocks(const char *what, int total, const int *len, const int *displs, int to)
{
    int bad = 0, seen = 0, data = 0;
    for (int r = 0; r < check_size; r++) {
        for (int i = 0; i < len[r]; i++) bad += in[(displs[r] + i) * gap] != value(r, to, i);
        data += len[r];
    }
    for (int i = 0; i < (total + 1) * gap; i++) seen += in[i] != UNTOUCHED;
    CHECK(bad == 0 && seen == data, "%s: %d wrong, %d written instead of %d", what, bad, seen, data);
}

static void gatherv(int root, int place_flag, int large)
{
    int len[MAXRANKS] = {0}, displs[MAXRANKS], n = counts[check_rank][0];
    MPI_Count wide[MAXRANKS];
    MPI_Aint at[MAXRANKS];
    for (int r = 0; r < check_size; r++) len[r] = counts[r][0];
    int total = place(len, displs), in_place = place_flag && check_rank == root;
    for (int r = 0; r < check_size; r++) wide[r] = len[r], at[r] = displs[r];
    clear(in, total);
    clear(out, n);
    fill(in_place ? in : out, in_place ? displs[root] : 0, n, check_rank, 5);
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (large) CHECK_OK(MPI_Gatherv_c(from, n, unit, in, wide, at, unit, root, MPI_COMM_WORLD));
    else if (check_rank == root) CHECK_OK(MPI_Gatherv(from, n, unit, in, len, displs, unit, root, MPI_COMM_WORLD));
    else CHECK_OK(MPI_Gatherv(from, n, unit, NULL, NULL, NULL, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
    if (check_rank == root) check_blocks("gatherv", total, len, displs, 5);
}

static void scatterv(int root, int place_flag, int large)
{
    int len[MAXRANKS] = {0}, displs[MAXRANKS], n = counts[check_rank][0], bad = 0;
    MPI_Count wide[MAXRANKS];
    MPI_Aint at[MAXRANKS];
    for (int r = 0; r < check_size; r++) len[r] = counts[r][0];
    int total = place(len, displs), in_place = place_flag && check_rank == root;
    for (int r = 0; r < check_size; r++) wide[r] = len[r], at[r] = displs[r];
    clear(in, n);
    clear(out, total);
    for (int r = 0; r < check_size; r++) fill(out, displs[r], len[r], root, r);
    void *to = in_place ? MPI_IN_PLACE : in;
    if (large) CHECK_OK(MPI_Scatterv_c(out, wide, at, unit, to, n, unit, root, MPI_COMM_WORLD));
    else if (check_rank == root) CHECK_OK(MPI_Scatterv(out, len, displs, unit, to, n, unit, root, MPI_COMM_WORLD));
    else CHECK_OK(MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, to, n, unit, root, MPI_COMM_WORLD));
    for (int i = 0; i < n && !in_place; i++) bad += in[i * gap] != value(root, check_rank, i);
    CHECK(bad == 0 && in[n * gap] == UNTOUCHED, "scatterv from %d: %d of %d wrong", root, bad, n);
}

static void allgatherv(int in_place, int large)
{
    int len[MAXRANKS] = {0}, displs[MAXRANKS], n = counts[check_rank][0];
    MPI_Count wide[MAXRANKS];
    MPI_Aint at[MAXRANKS];
    for (int r = 0; r < check_size; r++) len[r] = counts[r][0];
    int total = place(len, displs);
    for (int r = 0; r < check_size; r++) wide[r] = len[r], at[r] = displs[r];
    clear(in, total);
    clear(out, n);
    fill(in_place ? in : out, in_place ? displs[check_rank] : 0, n, check_rank, 6);
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (large) CHECK_OK(MPI_Allgatherv_c(from, n, unit, in, wide, at, unit, MPI_COMM_WORLD));
    else CHECK_OK(MPI_Allgatherv(from, n, unit, in, len, displs, unit, MPI_COMM_WORLD));
    check_blocks("allgatherv", total, len, displs, 6);
}

/* In place: what goes to a rank lies where its answer will be, so both are of one size. w: displacements in bytes, types for each. */
static void alltoallv(int in_place, int large, int w)
{
    int sl[MAXRANKS], sd[MAXRANKS], rl[MAXRANKS], rd[MAXRANKS], bytes = gap * (int)sizeof(int);
    MPI_Count ws[MAXRANKS], wr[MAXRANKS];
    MPI_Aint as[MAXRANKS], ar[MAXRANKS];
    MPI_Datatype types[MAXRANKS];
    for (int r = 0; r < check_size; r++) {
        sl[r] = counts[check_rank][r];
        rl[r] = counts[r][check_rank];
        if (in_place) sl[r] = rl[r] = check_rank < r ? counts[check_rank][r] : counts[r][check_rank];
        types[r] = unit;
    }
    int stotal = place(sl, sd), rtotal = place(rl, rd);
    clear(out, stotal);
    clear(in, rtotal);
    for (int r = 0; r < check_size; r++) fill(in_place ? in : out, in_place ? rd[r] : sd[r], sl[r], check_rank, r);
    int blocks[MAXRANKS];
    memcpy(blocks, rd, sizeof blocks);
    for (int r = 0; r < check_size; r++) {
        if (w) sd[r] *= bytes, rd[r] *= bytes;
        ws[r] = sl[r], wr[r] = rl[r], as[r] = sd[r], ar[r] = rd[r];
    }
    const void *from = in_place ? MPI_IN_PLACE : out;
    if (w && large) CHECK_OK(MPI_Alltoallw_c(from, ws, as, types, in, wr, ar, types, MPI_COMM_WORLD));
    else if (w) CHECK_OK(MPI_Alltoallw(from, sl, sd, types, in, rl, rd, types, MPI_COMM_WORLD));
    else if (large) CHECK_OK(MPI_Alltoallv_c(from, ws, as, unit, in, wr, ar, unit, MPI_COMM_WORLD));
    else CHECK_OK(MPI_Alltoallv(from, sl, sd, unit, in, rl, rd, unit, MPI_COMM_WORLD));
    check_blocks(w ? "alltoallw" : "alltoallv", rtotal, rl, blocks, check_rank);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    size_t room = 2 * ((size_t)check_size * (MAXBLOCK + 4) + 8);
    out = malloc(room * sizeof(int));
    in = malloc(room * sizeof(int));
    state = check_seed();
    MPI_Datatype wide;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide);
    MPI_Type_commit(&wide);
    for (int k = 0; k < ROUNDS; k++) {
        gap = 1 + k % 2;
        unit = gap == 1 ? MPI_INT : wide;
        draw_counts();
        int root = (int)(check_random(&state) % (unsigned)check_size), large = k / 2 % 2, flag = k / 4 % 2;
        gatherv(root, flag, large);
        scatterv(root, flag, large);
        allgatherv(flag, large);
        alltoallv(flag, large, 0);
        alltoallv(flag, large, 1);
    }
    MPI_Type_free(&wide);
    free(in);
    free(out);
    return check_done();
}
