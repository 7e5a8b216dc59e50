/*
 * jacobi.c - the temperature of a plate with warm and cold spots, by Jacobi's method.
 *
 * The plate is a square of size x size points. Its left edge is warm, its other edges are cold, and some discs in it
 * are kept warm or cold; every other point becomes, in each step, the mean of its four neighbours, until a step
 * changes no point by more than 10^-tolerance or the iterations are used up. The result is drawn with isotherms.
 *
 * The ranks form a grid of py rows and px columns, each with a rectangle of points and a frame of width one around
 * it for the neighbours' points. In a step a rank starts the exchange of the frame, computes the points that do
 * not need it, waits, and computes the rest:
 *
 *        . n n n n .        n s w e: from the neighbours north, south, west, east
 *        w b b b b e        b: needs the frame, computed after the exchange
 *        w b i i b e        i: computed while it is under way
 *        w b b b b e
 *        . s s s s .
 *
 * A point's value depends on nothing but its neighbours', so a run with any number of ranks gives the very same
 * bits. --check compares with a serial run.
 */
#include "allocate.h"
#include "options.h"
#include "picture.h"
#include <math.h>
#include <mpi.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES };
enum { REPORT_STEPS = 50 }; /* steps between two looks at the largest change */

static long size = 480, iterations = 5000, tolerance = 6;
static const char *output = NULL;
static bool check = false;

static const struct option options[] = {
    {.name = "size", .number = &size, .min = 8, .max = 20000, .help = "points in each direction (480)"},
    {.name = "iterations", .number = &iterations, .min = 1, .max = 1000000000, .help = "steps at most (5000)"},
    {.name = "tolerance", .number = &tolerance, .min = 1, .max = 15, .help = "ends when changes are below 10^-N (6)"},
    {.name = "output", .text = &output, .help = "the picture, .png or .ppm"},
    {.name = "check", .flag = &check, .help = "compares with a serial run; exit code 1 when they differ"},
    {.name = NULL}};

/* Discs of fixed temperature, in parts of the plate. */
static const struct disc {
    double x, y, radius, temperature;
} discs[] = {{0.62, 0.30, 0.09, 1.0}, {0.28, 0.22, 0.05, 0.0},  {0.30, 0.68, 0.10, 0.85}, {0.74, 0.70, 0.12, 0.0},
             {0.52, 0.52, 0.03, 1.0}, {0.86, 0.16, 0.03, 0.88}, {0.50, 0.88, 0.04, 0.73}, {0.90, 0.46, 0.04, 1.0}};

/* The part of a rank: points y0..y0+h-1 of columns x0..x0+w-1, with a frame. (y, x) of the part, counted from its
 * frame's corner, is at y * (w + 2) + x. */
struct part {
    long x0, y0, w, h;
    double *now, *next;
    bool *fixed;
    int neighbour[SIDES]; /* ranks, or MPI_PROC_NULL at the plate's edge */
    MPI_Datatype column;  /* h points below each other */
};

static size_t at(const struct part *p, long y, long x) { return (size_t)y * (size_t)(p->w + 2) + (size_t)x; }

/* The plate around the points is an edge of fixed points, at -1 and size. */
static bool fixed_point(long y, long x, double *temperature)
{
    *temperature = x < 0 ? 1.0 : 0.0;
    if (x < 0 || y < 0 || x >= size || y >= size) return true;
    for (size_t d = 0; d < sizeof discs / sizeof *discs; d++) {
        double dx = ((double)x + 0.5) / (double)size - discs[d].x, dy = ((double)y + 0.5) / (double)size - discs[d].y;
        *temperature = discs[d].temperature;
        if (dx * dx + dy * dy < discs[d].radius * discs[d].radius) return true;
    }
    *temperature = 0.0;
    return false;
}

static void part_open(struct part *p, long y0, long x0, long h, long w)
{
    size_t points = (size_t)(w + 2) * (size_t)(h + 2);
    *p = (struct part){.x0 = x0, .y0 = y0, .w = w, .h = h};
    p->now = allocate(points, sizeof(double));
    p->next = allocate(points, sizeof(double));
    p->fixed = allocate(points, sizeof(bool));
    for (long y = 0; y < h + 2; y++) {
        for (long x = 0; x < w + 2; x++) {
            double t;
            p->fixed[at(p, y, x)] = fixed_point(y0 + y - 1, x0 + x - 1, &t);
            p->now[at(p, y, x)] = p->next[at(p, y, x)] = t;
        }
    }
    for (int side = 0; side < SIDES; side++) p->neighbour[side] = MPI_PROC_NULL;
    MPI_Type_vector((int)h, 1, (int)(w + 2), MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
}

static void part_close(struct part *p)
{
    free(p->now);
    free(p->next);
    free(p->fixed);
    MPI_Type_free(&p->column);
}

/* The rows y1..y2 (inclusive) of columns x1..x2 of the next step; the largest change. */
static double compute(struct part *p, long y1, long y2, long x1, long x2)
{
    double largest = 0;
    for (long y = y1; y <= y2; y++) {
        const double *c = &p->now[at(p, y, 0)], *n = c - (p->w + 2), *s = c + (p->w + 2);
        const bool *fixed = &p->fixed[at(p, y, 0)];
        double *out = &p->next[at(p, y, 0)];
        for (long x = x1; x <= x2; x++) {
            double mean = 0.25 * ((n[x] + s[x]) + (c[x - 1] + c[x + 1]));
            out[x] = fixed[x] ? c[x] : mean;
            double change = fabs(out[x] - c[x]);
            if (change > largest) largest = change;
        }
    }
    return largest;
}

/* Starts to send the part's outer points to the four neighbours and to receive theirs into the frame. */
static void exchange_start(struct part *p, MPI_Request request[2 * SIDES])
{
    long w = p->w, h = p->h;
    struct {
        long y, x;
    } mine[SIDES] = {{1, 1}, {h, 1}, {1, 1}, {1, w}}, frame[SIDES] = {{0, 1}, {h + 1, 1}, {1, 0}, {1, w + 1}};
    for (int side = 0; side < SIDES; side++) {
        bool row = side == NORTH || side == SOUTH;
        int count = row ? (int)w : 1, tag = side, opposite = side ^ 1;
        MPI_Datatype type = row ? MPI_DOUBLE : p->column;
        MPI_Irecv(&p->now[at(p, frame[side].y, frame[side].x)], count, type, p->neighbour[side], opposite,
                  MPI_COMM_WORLD, &request[side]);
        MPI_Isend(&p->now[at(p, mine[side].y, mine[side].x)], count, type, p->neighbour[side], tag, MPI_COMM_WORLD,
                  &request[SIDES + side]);
    }
}

/* One step; the largest change of the part. */
static double step(struct part *p)
{
    MPI_Request request[2 * SIDES];
    long w = p->w, h = p->h;
    exchange_start(p, request);
    double largest = compute(p, 2, h - 1, 2, w - 1);
    MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE);
    largest = fmax(largest, compute(p, 1, 1, 1, w));
    if (h > 1) largest = fmax(largest, compute(p, h, h, 1, w));
    largest = fmax(largest, compute(p, 2, h - 1, 1, 1));
    if (w > 1) largest = fmax(largest, compute(p, 2, h - 1, w, w));
    double *old = p->now;
    p->now = p->next;
    p->next = old;
    return largest;
}

/* Steps until nothing changes much or the iterations are over; how many there were. */
static long solve(struct part *p, MPI_Comm comm, bool speak)
{
    double small = pow(10, -(double)tolerance), shown = MPI_Wtime();
    for (long i = 1; i <= iterations; i++) {
        double mine = step(p), largest;
        if (i % REPORT_STEPS != 0) continue;
        MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, comm);
        if (speak && MPI_Wtime() - shown > 2) {
            shown = MPI_Wtime();
            printf("step %ld: largest change %.2e\n", i, largest);
            fflush(stdout);
        }
        if (largest < small) return i;
    }
    return iterations;
}

/* The grid of ranks, py rows and px columns, as square as their number allows. */
static void grid_of(int ranks, int *py, int *px)
{
    *py = (int)sqrt(ranks);
    while (ranks % *py != 0) --*py;
    *px = ranks / *py;
}

/* Where the k-th of n nearly equal pieces of the plate begins. */
static long begin(int k, int n) { return size * k / n; }

static void part_of_rank(int rank, int ranks, long *y0, long *x0, long *h, long *w)
{
    int py, px;
    grid_of(ranks, &py, &px);
    *y0 = begin(rank / px, py);
    *x0 = begin(rank % px, px);
    *h = begin(rank / px + 1, py) - *y0;
    *w = begin(rank % px + 1, px) - *x0;
}

static void find_neighbours(struct part *p, int rank, int ranks)
{
    int py, px;
    grid_of(ranks, &py, &px);
    int y = rank / px, x = rank % px;
    if (y > 0) p->neighbour[NORTH] = rank - px;
    if (y < py - 1) p->neighbour[SOUTH] = rank + px;
    if (x > 0) p->neighbour[WEST] = rank - 1;
    if (x < px - 1) p->neighbour[EAST] = rank + 1;
}

/* The whole plate in rank 0 (NULL in others): each part is received straight into its place. */
static double *collect(struct part *p, int rank, int ranks)
{
    MPI_Datatype rectangle;
    MPI_Type_vector((int)p->h, (int)p->w, (int)(p->w + 2), MPI_DOUBLE, &rectangle);
    MPI_Type_commit(&rectangle);
    MPI_Request sent;
    MPI_Isend(&p->now[at(p, 1, 1)], 1, rectangle, 0, SIDES, MPI_COMM_WORLD, &sent);
    double *plate = rank == 0 ? allocate((size_t)(size * size), sizeof(double)) : NULL;
    for (int r = 0; r < ranks && rank == 0; r++) {
        long y0, x0, h, w;
        MPI_Datatype place;
        part_of_rank(r, ranks, &y0, &x0, &h, &w);
        MPI_Type_vector((int)h, (int)w, (int)size, MPI_DOUBLE, &place);
        MPI_Type_commit(&place);
        MPI_Recv(&plate[y0 * size + x0], 1, place, r, SIDES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&place);
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Type_free(&rectangle);
    return plate;
}

/* From dark blue through red and yellow to white; every tenth of the scale is an isotherm. */
static void colour(double t, unsigned char pixel[3])
{
    static const double scale[][3] = {{8, 12, 48},   {48, 40, 140},  {160, 40, 120},
                                      {235, 90, 50}, {250, 200, 70}, {255, 255, 235}};
    double x = fmin(fmax(t, 0), 1) * 5;
    int k = x >= 5 ? 4 : (int)x;
    double distance = fabs(t * 10 - round(t * 10)), shade = distance < 0.05 && t > 0.02 && t < 0.98 ? 0.75 : 1;
    for (int c = 0; c < 3; c++)
        pixel[c] = (unsigned char)(shade * (scale[k][c] + (x - k) * (scale[k + 1][c] - scale[k][c])));
}

static bool draw(const double *plate)
{
    unsigned char *pixels = allocate((size_t)(size * size), 3);
    for (long i = 0; i < size * size; i++) colour(plate[i], &pixels[3 * i]);
    bool good = picture_write(output, (int)size, (int)size, pixels);
    if (good)
        printf("the picture is %s\n", output);
    else
        fprintf(stderr, "jacobi: cannot write %s: %s\n", output, strerror(errno));
    free(pixels);
    return good;
}

/* The same in one piece, by rank 0 alone: true when all points have the same bits. */
static bool same_as_serial(const double *plate, long steps)
{
    struct part whole;
    long different = 0;
    part_open(&whole, 0, 0, size, size);
    long serial_steps = solve(&whole, MPI_COMM_SELF, true);
    for (long y = 0; y < size; y++)
        for (long x = 0; x < size; x++)
            different += memcmp(&plate[y * size + x], &whole.now[at(&whole, y + 1, x + 1)], sizeof(double)) != 0;
    part_close(&whole);
    if (different == 0 && serial_steps == steps) {
        printf("check: the same as the serial run\n");
        return true;
    }
    fprintf(stderr, "jacobi: check failed: %ld of %ld points differ from the serial run, which took %ld steps\n",
            different, size * size, serial_steps);
    return false;
}

/* What rank 0 does with the result; true when all went well. */
static bool finish(const double *plate, long steps)
{
    bool good = !output || draw(plate);
    if (check) good &= same_as_serial(plate, steps);
    return good;
}

static int run(int rank, int ranks)
{
    struct part mine;
    long y0, x0, h, w;
    int py, px, good = 1;
    grid_of(ranks, &py, &px);
    part_of_rank(rank, ranks, &y0, &x0, &h, &w);
    part_open(&mine, y0, x0, h, w);
    find_neighbours(&mine, rank, ranks);
    double start = MPI_Wtime();
    long steps = solve(&mine, MPI_COMM_WORLD, rank == 0);
    double seconds = MPI_Wtime() - start, points = (double)(size * size) * (double)steps;
    double *plate = collect(&mine, rank, ranks);
    if (rank == 0) {
        printf("%ld x %ld points, %d x %d ranks: %ld steps in %.2f s, %.0f million points a second\n", size, size, py,
               px, steps, seconds, 1e-6 * points / seconds);
        good = finish(plate, steps);
    }
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(plate);
    part_close(&mine);
    return !good;
}

int main(int argc, char **argv)
{
    int rank, ranks, py, px;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = options_read(argc, argv, options, "jacobi - heat in a plate with warm and cold spots", rank == 0);
    grid_of(ranks, &py, &px);
    if (code == OPTIONS_RUN && (size < py || size < px)) {
        if (rank == 0) fprintf(stderr, "jacobi: %ld points in each direction are too few for %d ranks\n", size, ranks);
        code = OPTIONS_BAD;
    }
    if (code == OPTIONS_RUN) code = run(rank, ranks);
    MPI_Finalize();
    return code;
}
