/* cart.c - grids (MPI-5.0 8.5.1, 8.5.2, 8.5.5 to 8.5.8): all of them that fit, with all periods. */
#include "../check.h"

enum { MOST = 6 };

static int product(int n, const int d[])
{
    int p = 1;
    for (int i = 0; i < n; i++) p *= d[i];
    return p;
}

/* What the shift by disp must find: from coordinates, by hand. */
static int neighbour(int ndims, const int d[], const int per[], const int at[], int dim, long disp)
{
    int rank = 0;
    for (int i = 0; i < ndims; i++) {
        long x = at[i] + (i == dim ? disp : 0);
        if (per[i])
            while (x < 0) x += d[i];
        if (per[i]) x %= d[i];
        if (x < 0 || x >= d[i]) return MPI_PROC_NULL;
        rank = rank * d[i] + (int)x;
    }
    return rank;
}

static void shifts(MPI_Comm c, int ndims, const int d[], const int per[], const int at[])
{
    static const int disp[] = {0, 1, -1, 2, -3, 7};
    for (int dim = 0; dim < ndims; dim++)
        for (size_t i = 0; i < sizeof disp / sizeof disp[0]; i++) {
            int from = -5, to = -5;
            CHECK_OK(MPI_Cart_shift(c, dim, disp[i], &from, &to));
            CHECK(to == neighbour(ndims, d, per, at, dim, disp[i]), "to %d by %d along %d", to, disp[i], dim);
            CHECK(from == neighbour(ndims, d, per, at, dim, -disp[i]), "from %d by %d along %d", from, disp[i], dim);
        }
}

/* The topology says what was asked for, and messages go where it says. */
static void is_grid(MPI_Comm c, int ndims, const int d[], const int per[])
{
    int kind, n, rank, size, dd[MOST], pp[MOST], at[MOST], back, other[MOST];
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    CHECK_OK(MPI_Topo_test(c, &kind));
    CHECK(kind == MPI_CART, "kind %d", kind);
    CHECK_OK(MPI_Cartdim_get(c, &n));
    CHECK(n == ndims && size == product(ndims, d), "%d dimensions, %d processes", n, size);
    CHECK_OK(MPI_Cart_get(c, MOST, dd, pp, at));
    for (int i = 0; i < ndims; i++)
        CHECK(dd[i] == d[i] && pp[i] == (per[i] != 0) && at[i] >= 0 && at[i] < d[i], "dimension %d", i);
    CHECK_OK(MPI_Cart_rank(c, at, &back));
    CHECK(back == rank, "rank %d of my coordinates, I am %d", back, rank);
    for (int r = 0; r < size; r++) {
        CHECK_OK(MPI_Cart_coords(c, r, ndims, other));
        int row_major = 0;
        for (int i = 0; i < ndims; i++) row_major = row_major * d[i] + other[i];
        CHECK(row_major == r, "coordinates of %d give %d", r, row_major);
    }
    for (int i = 0; i < ndims; i++) {
        if (!per[i]) continue;
        memcpy(other, at, sizeof at);
        other[i] -= 2 * d[i];
        CHECK_OK(MPI_Cart_rank(c, other, &back));
        CHECK(back == rank, "a periodic coordinate below zero: %d", back);
    }
    shifts(c, ndims, d, per, at);
    for (int i = 0; i < ndims; i++) {
        int from, to, got = -1;
        MPI_Cart_shift(c, i, 1, &from, &to);
        CHECK_OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 3, &got, 1, MPI_INT, from, 3, c, MPI_STATUS_IGNORE));
        CHECK(got == (from == MPI_PROC_NULL ? -1 : from), "%d came from %d", got, from);
    }
}

/* Each subset of dimensions. */
static void sub_grids(MPI_Comm c, int ndims, const int d[], const int per[])
{
    int at[MOST];
    MPI_Cart_get(c, MOST, (int[MOST]){0}, (int[MOST]){0}, at);
    for (int mask = 0; mask < 1 << ndims; mask++) {
        int remain[MOST], sd[MOST], sp[MOST], sat[MOST], n = 0, mine[MOST], sum = 0, want = 0, fixed = 0;
        for (int i = 0; i < ndims; i++) {
            remain[i] = mask >> i & 1;
            if (remain[i]) sd[n] = d[i], sp[n] = per[i], mine[n++] = at[i];
            else fixed = fixed * d[i] + at[i];
        }
        MPI_Comm s;
        CHECK_OK(MPI_Cart_sub(c, remain, &s));
        is_grid(s, n, sd, sp);
        CHECK_OK(MPI_Cart_get(s, MOST, (int[MOST]){0}, (int[MOST]){0}, sat));
        CHECK(!memcmp(sat, mine, (size_t)n * sizeof(int)), "the coordinates of what remains changed");
        want = fixed * product(n, sd);
        CHECK_OK(MPI_Allreduce(&fixed, &sum, 1, MPI_INT, MPI_SUM, s));
        CHECK(sum == want, "somebody of another sub-grid: %d instead of %d", sum, want);
        MPI_Comm_free(&s);
    }
}

static void copies(MPI_Comm c, int ndims, const int d[], const int per[])
{
    MPI_Comm dup, same;
    MPI_Request started;
    int kind;
    CHECK_OK(MPI_Comm_idup(c, &dup, &started));
    CHECK_OK(MPI_Wait(&started, MPI_STATUS_IGNORE));
    is_grid(dup, ndims, d, per);
    MPI_Comm_free(&dup);
    CHECK_OK(MPI_Comm_dup_with_info(c, MPI_INFO_NULL, &dup));
    is_grid(dup, ndims, d, per);
    MPI_Comm_free(&dup);
    CHECK_OK(MPI_Comm_dup(c, &dup));
    is_grid(dup, ndims, d, per);
    CHECK_OK(MPI_Comm_split(dup, 0, 0, &same));
    CHECK_OK(MPI_Topo_test(same, &kind));
    CHECK(kind == MPI_UNDEFINED, "a split has a topology, %d", kind);
    MPI_Comm_free(&same);
    MPI_Comm_free(&dup);
}

static void grid(int ndims, const int d[], const int per[], int reorder)
{
    int in = product(ndims, d), rank, newrank = -5;
    MPI_Comm c;
    CHECK_OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, d, per, reorder, &c));
    CHECK_OK(MPI_Cart_map(MPI_COMM_WORLD, ndims, d, per, &newrank));
    CHECK((c == MPI_COMM_NULL) == (check_rank >= in), "%d processes for %d cells", check_size, in);
    CHECK((newrank == MPI_UNDEFINED) == (c == MPI_COMM_NULL), "the map says %d", newrank);
    if (c == MPI_COMM_NULL) return;
    MPI_Comm_rank(c, &rank);
    CHECK(reorder ? newrank == rank : rank == check_rank, "rank %d in the grid, %d by the map", rank, newrank);
    is_grid(c, ndims, d, per);
    sub_grids(c, ndims, d, per);
    copies(c, ndims, d, per);
    MPI_Comm_free(&c);
}

static void grids(void)
{
    static const int shapes[][4] = {{0, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 8}, {2, 2, 2}, {2, 3, 2}, {2, 1, 5}, {2, 4, 2},
                                    {3, 2, 2, 2}, {3, 1, 3, 2}, {3, 1, 1, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int ndims = shapes[s][0];
        if (product(ndims, &shapes[s][1]) > check_size) continue;
        for (int mask = 0; mask < 1 << ndims; mask++) {
            int per[3];
            for (int i = 0; i < ndims; i++) per[i] = (mask >> i & 1) * (i + 1); /* any value but zero is true */
            grid(ndims, &shapes[s][1], per, mask & 1);
        }
    }
}

/* Far displacements wrap without an overflow. */
static void far(void)
{
    int one = 1, d = check_size, from, to;
    MPI_Comm c;
    CHECK_OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &d, &one, 0, &c));
    long long far_away = INT32_MIN;
    CHECK_OK(MPI_Cart_shift(c, 0, INT32_MIN, &from, &to));
    long long want = ((check_rank + far_away) % d + d) % d, other = ((check_rank - far_away) % d + d) % d;
    CHECK(to == want && from == other, "%d and %d instead of %lld and %lld", from, to, other, want);
    MPI_Comm_free(&c);
}

static void dims(void)
{
    int d[3] = {0, 2, 0};
    CHECK_OK(MPI_Dims_create(24, 3, d));
    CHECK(d[0] == 4 && d[1] == 2 && d[2] == 3, "24 = %d x %d x %d", d[0], d[1], d[2]);
    int all[2] = {0, 0};
    CHECK_OK(MPI_Dims_create(check_size, 2, all));
    CHECK(all[0] * all[1] == check_size && all[0] >= all[1], "%d = %d x %d", check_size, all[0], all[1]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    grids();
    far();
    dims();
    return check_done();
}
