/*
 * goal_stencil.c - a five-point stencil as a schedule: exchange of borders and computation in one graph that runs by itself.
 *
 * A grid of numbers is shared among the ranks, each of which has a rectangle with a frame around it for its neighbours'
 * borders. In a step every point becomes the mean of its four neighbours. All of that is a schedule made once: sends of
 * the borders, receives into the frame, and for each row a chain of five operations,
 *
 *     new = above;  new += below;  new += left;  new += right;  new /= 4
 *
 * which for rows inside depend on the frame's columns only, for the first and last one on a neighbour's row, too. Columns
 * travel as lists of pieces. The two grids are GOAL_BUFFER(0), read, and GOAL_BUFFER(1), written: binding them the other
 * way round turns one step into the next. Two time stamps say how long a step took from within.
 *
 * Any number of ranks gives the same bits; --check compares with the same steps done plainly by one rank.
 */
#include "options.h"
#include <goal.h>
#include <math.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES };
#define OLD GOAL_BUFFER(0)
#define NEW GOAL_BUFFER(1)

static long size = 240, steps = 100;
static bool check = false;

static const struct option options[] = {
    {.name = "size", .number = &size, .min = 8, .max = 8000, .help = "points in each direction (240)"},
    {.name = "steps", .number = &steps, .min = 1, .max = 1000000, .help = "how often each point is computed (100)"},
    {.name = "check", .flag = &check, .help = "compares with plain steps of one rank; exit code 1 when they differ"},
    {.name = NULL}};

struct part { /* points y0 .. y0 + h - 1 of columns x0 .. x0 + w - 1, and a frame */
    long x0, y0, w, h;
    int neighbour[SIDES];
    GOAL_Op came[SIDES]; /* receives of the frame */
};

/* Where point (y, x) lies in bytes, counted from the corner of the frame; a row has w + 2 of them. */
static MPI_Count at(const struct part *p, long y, long x) { return 8 * (y * (p->w + 2) + x); }

static double start_value(long y, long x) { return sin(0.1 * (double)y) + cos(0.07 * (double)x); }

/* ---- the schedule ---- */

static void exchange_row(GOAL_Schedule s, struct part *p, int side, long mine, long frame)
{
    GOAL_Send(s, GOAL_AT(at(p, mine, 1)), OLD, 8 * p->w, p->neighbour[side], side, NULL);
    GOAL_Recv(s, GOAL_AT(at(p, frame, 1)), OLD, 8 * p->w, p->neighbour[side], side ^ 1, &p->came[side]);
}

static void exchange_column(GOAL_Schedule s, struct part *p, int side, long mine, long frame)
{
    GOAL_Piece *out = malloc((size_t)p->h * sizeof *out), *in = malloc((size_t)p->h * sizeof *in);
    if (!out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long y = 0; y < p->h; y++) {
        out[y] = (GOAL_Piece){GOAL_AT(at(p, y + 1, mine)), OLD, 8};
        in[y] = (GOAL_Piece){GOAL_AT(at(p, y + 1, frame)), OLD, 8};
    }
    GOAL_Sendv(s, (int)p->h, out, p->neighbour[side], side, NULL);
    GOAL_Recvv(s, (int)p->h, in, p->neighbour[side], side ^ 1, &p->came[side]);
    free(out); /* the schedule has its own copy */
    free(in);
}

/* One row: a chain of operations. Returns the last of them. */
static GOAL_Op compute_row(GOAL_Schedule s, const struct part *p, long y)
{
    const MPI_Count from[4] = {at(p, y - 1, 1), at(p, y + 1, 1), at(p, y, 0), at(p, y, 2)};
    GOAL_Op op[5];
    void *to = GOAL_AT(at(p, y, 1));
    GOAL_Copy(s, GOAL_AT(from[0]), OLD, to, NEW, 8 * p->w, &op[0]);
    for (int i = 1; i < 4; i++) GOAL_Add(s, GOAL_FLOAT64, p->w, GOAL_AT(from[i]), OLD, to, NEW, &op[i]);
    GOAL_Div(s, GOAL_FLOAT64, p->w, GOAL_AT(0), GOAL_BUFFER(2), to, NEW, &op[4]); /* a row of fours */
    for (int i = 1; i < 5; i++) GOAL_Requires(s, op[i], op[i - 1]);
    if (y == 1) GOAL_Requires(s, op[0], p->came[NORTH]);
    if (y == p->h) GOAL_Requires(s, op[1], p->came[SOUTH]);
    GOAL_Requires(s, op[2], p->came[WEST]);
    GOAL_Requires(s, op[3], p->came[EAST]);
    return op[4];
}

static GOAL_Schedule make_step(MPI_Comm grid, struct part *p)
{
    GOAL_Schedule s;
    GOAL_Op begin, end;
    GOAL_Create(grid, 0, &s);
    GOAL_Timestamp(s, GOAL_AT(0), GOAL_BUFFER(3), &begin);
    GOAL_Timestamp(s, GOAL_AT(8), GOAL_BUFFER(3), &end);
    exchange_row(s, p, NORTH, 1, 0);
    exchange_row(s, p, SOUTH, p->h, p->h + 1);
    exchange_column(s, p, WEST, 1, 0);
    exchange_column(s, p, EAST, p->w, p->w + 1);
    for (long y = 1; y <= p->h; y++) {
        GOAL_Op row = compute_row(s, p, y);
        GOAL_Requires(s, end, row);
    }
    GOAL_Requires(s, end, begin);
    GOAL_Compile(s);
    return s;
}

/* ---- running it ---- */

static struct part make_part(MPI_Comm grid)
{
    struct part p;
    int dims[2], periods[2], coords[2];
    MPI_Cart_get(grid, 2, dims, periods, coords);
    MPI_Cart_shift(grid, 0, 1, &p.neighbour[NORTH], &p.neighbour[SOUTH]);
    MPI_Cart_shift(grid, 1, 1, &p.neighbour[WEST], &p.neighbour[EAST]);
    p.y0 = size * coords[0] / dims[0];
    p.h = size * (coords[0] + 1) / dims[0] - p.y0;
    p.x0 = size * coords[1] / dims[1];
    p.w = size * (coords[1] + 1) / dims[1] - p.x0;
    return p;
}

static double *grid_new(long h, long w, long y0, long x0)
{
    double *v = calloc((size_t)((h + 2) * (w + 2)), sizeof *v);
    if (!v) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long y = 1; y <= h; y++)
        for (long x = 1; x <= w; x++) v[y * (w + 2) + x] = start_value(y0 + y - 1, x0 + x - 1);
    return v;
}

/* All steps; the result is in *v. Returns the nanoseconds that they took by their stamps. */
static double run_steps(GOAL_Schedule s, const struct part *p, double **v, double **next)
{
    MPI_Count bytes = at(p, p->h + 2, 0);
    double fours[8000], ns = 0;
    int64_t stamp[2];
    for (long x = 0; x < p->w; x++) fours[x] = 4;
    GOAL_Bind(s, GOAL_BUFFER(2), fours, 8 * p->w);
    GOAL_Bind(s, GOAL_BUFFER(3), stamp, sizeof stamp);
    for (long i = 0; i < steps; i++) {
        GOAL_Request r;
        GOAL_Bind(s, OLD, *v, bytes);
        GOAL_Bind(s, NEW, *next, bytes);
        GOAL_Run(s, &r);
        GOAL_Wait(&r);
        ns += (double)(stamp[1] - stamp[0]);
        double *swap = *v;
        *v = *next;
        *next = swap;
    }
    return ns;
}

/* The same by one rank, without schedules; how many points of this part differ. */
static long differences(const struct part *p, const double *v)
{
    double *a = grid_new(size, size, 0, 0), *b = grid_new(size, size, 0, 0);
    long n = size + 2, bad = 0;
    for (long i = 0; i < steps; i++) {
        for (long y = 1; y <= size; y++)
            for (long x = 1; x <= size; x++)
                b[y * n + x] = (a[(y - 1) * n + x] + a[(y + 1) * n + x] + a[y * n + x - 1] + a[y * n + x + 1]) / 4;
        double *swap = a;
        a = b;
        b = swap;
    }
    for (long y = 1; y <= p->h; y++)
        for (long x = 1; x <= p->w; x++) bad += v[y * (p->w + 2) + x] != a[(p->y0 + y) * n + p->x0 + x];
    free(a);
    free(b);
    return bad;
}

int main(int argc, char **argv)
{
    int rank, ranks, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm grid;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = options_read(argc, argv, options, "goal_stencil - a five-point stencil as a schedule", rank == 0);
    if (code != OPTIONS_RUN) {
        MPI_Finalize();
        return code;
    }
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    struct part p = make_part(grid);
    double *v = grid_new(p.h, p.w, p.y0, p.x0), *next = grid_new(p.h, p.w, p.y0, p.x0);
    GOAL_Schedule s = make_step(grid, &p);
    double ns = run_steps(s, &p, &v, &next);
    if (rank == 0) printf("%d ranks, %ld x %ld points, %ld steps: %.1f us a step\n", ranks, size, size, steps, ns / 1e3 / (double)steps);
    long bad = check ? differences(&p, v) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (check && rank == 0) printf(bad ? "check: %ld points differ\n" : "check: the same as plain steps\n", bad);
    GOAL_Free(&s);
    free(v);
    free(next);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return bad != 0;
}
