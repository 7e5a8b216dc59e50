/*
 * pack - how fast MPI_Pack and MPI_Unpack move data with gaps, beside loops written by hand.
 *
 *   SHAPE_SIZE_pack_GBs      bytes packed a second (10^9)
 *   SHAPE_SIZE_pack_hand     its ratio to the loop that a programmer would write for this shape: 1 as fast
 *   SHAPE_SIZE_unpack_GBs, SHAPE_SIZE_unpack_hand   the other way
 *   tiny_WHAT_ns             one MPI_Pack or MPI_Unpack of a few bytes
 *   make_WHAT_us             making, committing and freeing a type
 *
 * SIZE is small (packed and unpacked data stay in the core's caches) or big (they do not fit the last one). Library
 * and loop take turns, a figure is the median of many turns, a ratio the median of each turn's ratio. Both must give
 * the same bytes. One rank. A name as argument takes only the shapes whose names begin with it.
 */
#include "bench.h"
#include <stddef.h>

enum { TURNS = 25, BIG_TURNS = 7 };
#define SOURCE ((size_t)64 << 20) /* of the unpacked data at most */
#define MOVED ((size_t)16 << 20)  /* packed bytes at most */

/* The loops by hand. Sizes of blocks are known to the compiler where a programmer would know them. */
enum loop {
    INTS,      /* n ints, step bytes apart */
    DOUBLES,   /* the same of doubles */
    PAIRS,     /* of complex numbers, 16 bytes */
    BLOCKS,    /* n blocks of `block` bytes, step apart */
    GRID,      /* planes x n doubles, step apart, the planes plane bytes apart */
    GRID_FIVE, /* the same of 5 doubles */
    GRID_ROWS, /* the same of `block` bytes */
    LISTED,    /* n blocks of lens[i] doubles at offs[i] */
    LISTED_1,  /* n doubles at offs[i] */
    LISTED_4,  /* n blocks of 4 ints at offs[i] */
    PARTICLES, /* n of struct particle */
    ARRAYS,    /* a struct of three arrays of n */
    COLUMNS,   /* an int and a double column of a table of n rows */
    WEATHER    /* FIELDS fields of planes x n rows of 3 floats */
};

struct particle {
    double x[3];
    char tag;
    int id;
};
enum { FIELDS = 5 };

struct shape {
    const char *name;
    enum loop loop;
    MPI_Datatype type;
    int count;
    size_t n, block, step, planes, plane;
    int *lens, *offs; /* in units of doubles, of ints for LISTED_4 */
    size_t bytes;     /* packed */
};

static char *user, *packed, *check;
static const char *only = "";

/* ---- by hand: both ways are the same loop with the roles of the sides changed ---- */

#define INLINE static inline __attribute__((always_inline))

INLINE char *move(char *p, char *u, size_t n, const int packing)
{
    memcpy(packing ? p : u, packing ? u : p, n);
    return p + n;
}

INLINE void by_hand(const struct shape *s, char *p, char *u, const int packing)
{
    size_t n = s->n, step = s->step, block = s->block;
    switch (s->loop) {
    case INTS:
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step, 4, packing);
        break;
    case DOUBLES:
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step, 8, packing);
        break;
    case PAIRS:
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step, 16, packing);
        break;
    case BLOCKS:
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step, block, packing);
        break;
    case GRID:
        for (size_t k = 0; k < s->planes; k++)
            for (size_t i = 0; i < n; i++) p = move(p, u + k * s->plane + i * step, 8, packing);
        break;
    case GRID_FIVE:
        for (size_t k = 0; k < s->planes; k++)
            for (size_t i = 0; i < n; i++) p = move(p, u + k * s->plane + i * step, 40, packing);
        break;
    case GRID_ROWS:
        for (size_t k = 0; k < s->planes; k++)
            for (size_t i = 0; i < n; i++) p = move(p, u + k * s->plane + i * step, block, packing);
        break;
    case LISTED:
        for (size_t i = 0; i < n; i++) p = move(p, u + 8 * (size_t)s->offs[i], 8 * (size_t)s->lens[i], packing);
        break;
    case LISTED_1:
        for (size_t i = 0; i < n; i++) p = move(p, u + 8 * (size_t)s->offs[i], 8, packing);
        break;
    case LISTED_4:
        for (size_t i = 0; i < n; i++) p = move(p, u + 4 * (size_t)s->offs[i], 16, packing);
        break;
    case PARTICLES:
        for (size_t i = 0; i < n; i++, u += sizeof(struct particle)) {
            p = move(p, u, 24, packing);
            p = move(p, u + offsetof(struct particle, tag), 1, packing);
            p = move(p, u + offsetof(struct particle, id), 4, packing);
        }
        break;
    case ARRAYS:
        p = move(p, u, 4 * n, packing);
        p = move(p, u + 4 * n + 64, 8 * n, packing);
        move(p, u + 12 * n + 128, n, packing);
        break;
    case COLUMNS:
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step, 4, packing);
        for (size_t i = 0; i < n; i++) p = move(p, u + i * step + 8, 8, packing);
        break;
    case WEATHER:
        for (size_t f = 0; f < FIELDS; f++)
            for (size_t k = 0; k < s->planes; k++)
                for (size_t i = 0; i < n; i++) p = move(p, u + (f * s->planes + k) * s->plane + i * step, 12, packing);
        break;
    }
}

static __attribute__((noinline)) void pack_by_hand(const struct shape *s) { by_hand(s, packed, user, 1); }
static __attribute__((noinline)) void unpack_by_hand(const struct shape *s) { by_hand(s, packed, user, 0); }

static void pack(const struct shape *s)
{
    int at = 0;
    MPI_Pack(user, s->count, s->type, packed, (int)s->bytes, &at, MPI_COMM_SELF);
}

static void unpack(const struct shape *s)
{
    int at = 0;
    MPI_Unpack(packed, (int)s->bytes, &at, user, s->count, s->type, MPI_COMM_SELF);
}

/* ---- measuring ---- */

typedef void work_fn(const struct shape *);

static double seconds(work_fn *f, const struct shape *s, int runs)
{
    double t = now();
    for (int i = 0; i < runs; i++) f(s);
    return (now() - t) / runs;
}

static void compare(const struct shape *s, const char *size, const char *way, work_fn *lib, work_fn *hand)
{
    double speed[TURNS], ratio[TURNS];
    int turns = s->bytes > 1u << 20 ? BIG_TURNS : TURNS;
    double once = seconds(hand, s, 3); /* a turn takes some 50 us at least */
    int runs = once < 50e-6 ? (int)(50e-6 / once) + 1 : 1;
    seconds(lib, s, runs);
    for (int i = 0; i < turns; i++) {
        double h = seconds(hand, s, runs), l = seconds(lib, s, runs);
        speed[i] = 1e-9 * (double)s->bytes / l;
        ratio[i] = h / l;
    }
    printf("%s_%s_%s_GBs %.3f\n", s->name, size, way, median(speed, turns));
    printf("%s_%s_%s_hand %.3f\n", s->name, size, way, median(ratio, turns));
    fflush(stdout);
}

static void fill(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (char)(i * 2654435761u >> 13);
}

static void must(int ok, const struct shape *s, const char *words)
{
    if (ok) return;
    fprintf(stderr, "%s: %s\n", s->name, words);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Takes the type. */
static void measure(struct shape *s, const char *size)
{
    int bytes;
    MPI_Type_commit(&s->type);
    MPI_Type_size(s->type, &bytes);
    s->bytes = (size_t)bytes * (size_t)s->count;
    if (!strncmp(s->name, only, strlen(only))) {
        must(s->bytes <= MOVED, s, "too large");
        pack_by_hand(s);
        memcpy(check, packed, s->bytes);
        memset(packed, 0, s->bytes);
        pack(s);
        must(!memcmp(check, packed, s->bytes), s, "MPI_Pack and the loop differ");
        compare(s, size, "pack", pack, pack_by_hand);
        compare(s, size, "unpack", unpack, unpack_by_hand);
    }
    MPI_Type_free(&s->type);
}

/* ---- the shapes ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* n blocks, step bytes apart, of the size that the loop or `block` says. */
static void vector(const char *size, const char *name, size_t block, size_t step, size_t limit)
{
    struct shape s = {.name = name, .count = 1, .block = block, .step = step};
    s.loop = block == 4 ? INTS : block == 8 ? DOUBLES : block == 16 ? PAIRS : BLOCKS;
    s.n = least(limit / block, (limit > 1 << 20 ? SOURCE : limit * 8) / step);
    if (s.n < 2) return;
    if (block == 4)
        MPI_Type_create_hvector((int)s.n, 1, (MPI_Aint)step, MPI_INT, &s.type);
    else
        MPI_Type_create_hvector((int)s.n, (int)block / 8, (MPI_Aint)step, MPI_DOUBLE, &s.type);
    measure(&s, size);
}

static void vectors(const char *size, size_t limit)
{
    static const int blocks[] = {4, 8, 16, 32, 64, 128, 256, 1024, 4096};
    char name[32];
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        snprintf(name, sizeof name, "vec%d", blocks[i]);
        vector(size, name, (size_t)blocks[i], 2 * (size_t)blocks[i], limit);
    }
    vector(size, "vecfar8", 8, 1032, limit);
    vector(size, "vecfar24", 24, 1032, limit);
    vector(size, "vecfar64", 64, 4160, limit);
    vector(size, "vecfar512", 512, 8256, limit);
}

static unsigned random_below(unsigned n)
{
    static unsigned x = 12345;
    x = x * 1664525u + 1013904223u;
    return (x >> 8) % n;
}

/* Blocks of 1 to `longest` units with gaps up to `gap` units; every block and gap the same if regular. */
static void listed(const char *size, const char *name, enum loop loop, int longest, int gap, int regular, size_t limit)
{
    int unit = loop == LISTED_4 ? 4 : 8, at = 0;
    struct shape s = {.name = name, .loop = loop, .count = 1};
    s.n = least(limit / 2, MOVED / 2) / (size_t)(unit * longest);
    s.lens = malloc(s.n * sizeof(int));
    s.offs = malloc(s.n * sizeof(int));
    for (size_t i = 0; i < s.n; i++) {
        s.lens[i] = regular || loop != LISTED ? longest : 1 + (int)random_below((unsigned)longest);
        s.offs[i] = at;
        at += s.lens[i] + (regular ? gap : 1 + (int)random_below((unsigned)gap));
    }
    if (loop == LISTED)
        MPI_Type_indexed((int)s.n, s.lens, s.offs, MPI_DOUBLE, &s.type);
    else
        MPI_Type_create_indexed_block((int)s.n, longest, s.offs, unit == 4 ? MPI_INT : MPI_DOUBLE, &s.type);
    measure(&s, size);
    free(s.lens);
    free(s.offs);
}

/* The same as indexed, by byte displacements that go back and forth. */
static void hindexed(const char *size, size_t limit)
{
    struct shape s = {.name = "hindexed", .loop = LISTED, .count = 1, .n = limit / 64};
    MPI_Aint *bytes = malloc(s.n * sizeof *bytes);
    s.lens = malloc(s.n * sizeof(int));
    s.offs = malloc(s.n * sizeof(int));
    for (size_t i = 0; i < s.n; i++) {
        s.lens[i] = 1 + (int)(i % 7);
        s.offs[i] = 8 * (int)(i ^ 3);
        bytes[i] = 8 * (MPI_Aint)s.offs[i];
    }
    MPI_Type_create_hindexed((int)s.n, s.lens, bytes, MPI_DOUBLE, &s.type);
    measure(&s, size);
    free(bytes);
    free(s.lens);
    free(s.offs);
}

static void lists(const char *size, size_t limit)
{
    listed(size, "indexed_even", LISTED, 8, 8, 1, limit);
    listed(size, "indexed_uneven", LISTED, 16, 16, 0, limit);
    listed(size, "indexed_long", LISTED, 200, 100, 0, limit);
    listed(size, "indexed_block1", LISTED_1, 1, 6, 0, limit);
    listed(size, "indexed_block4", LISTED_4, 4, 12, 0, limit);
    hindexed(size, limit);
}

static void structs(const char *size, size_t limit)
{
    struct shape s = {.name = "particles", .loop = PARTICLES, .n = limit / 29};
    MPI_Datatype parts[] = {MPI_DOUBLE, MPI_CHAR, MPI_INT}, one, two[2];
    MPI_Datatype arrays[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    int lens[] = {3, 1, 1}, n;
    MPI_Aint at[] = {0, offsetof(struct particle, tag), offsetof(struct particle, id)};
    MPI_Type_create_struct(3, lens, at, parts, &one);
    MPI_Type_create_resized(one, 0, sizeof(struct particle), &s.type);
    MPI_Type_free(&one);
    s.count = (int)s.n;
    measure(&s, size);

    s = (struct shape){.name = "struct_of_arrays", .loop = ARRAYS, .count = 1, .n = limit / 13};
    n = (int)s.n;
    MPI_Type_create_struct(3, (int[]){n, n, n}, (MPI_Aint[]){0, 4 * n + 64, 12 * n + 128}, arrays, &s.type);
    measure(&s, size);

    s = (struct shape){.name = "struct_of_vectors", .loop = COLUMNS, .count = 1, .n = limit / 32, .step = 48};
    MPI_Type_create_hvector((int)s.n, 1, 48, MPI_INT, &two[0]);
    MPI_Type_create_hvector((int)s.n, 1, 48, MPI_DOUBLE, &two[1]);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, two, &s.type);
    measure(&s, size);
    MPI_Type_free(&two[0]);
    MPI_Type_free(&two[1]);
}

/* A box of a grid of doubles, sizes[0] the slowest; the corner is moved to the start of the buffer. */
static MPI_Datatype box(int dims, const int *sizes, const int *sub, MPI_Datatype of)
{
    MPI_Datatype t;
    int start[4] = {0};
    MPI_Type_create_subarray(dims, sizes, sub, start, MPI_ORDER_C, of, &t);
    return t;
}

static void faces(const char *size, int n)
{
    size_t row = 8 * (size_t)n, in = (size_t)n - 2;
    int cube[] = {n, n, n}, square[] = {4 * n, n}, m = n - 2;
    struct shape s = {.name = "face2d_column", .loop = DOUBLES, .n = 4 * (size_t)n, .step = row};
    s.type = box(2, square, (int[]){4 * n, 1}, MPI_DOUBLE), s.count = 1;
    measure(&s, size);
    s = (struct shape){
        .name = "face2d_strip4", .loop = BLOCKS, .n = 4 * (size_t)n, .step = row, .block = 32, .count = 1};
    s.type = box(2, square, (int[]){4 * n, 4}, MPI_DOUBLE);
    measure(&s, size);
    s = (struct shape){
        .name = "face3d_x", .loop = GRID, .n = in, .step = row, .planes = in, .plane = row * n, .count = 1};
    s.type = box(3, cube, (int[]){m, m, 1}, MPI_DOUBLE);
    measure(&s, size);
    s.name = "face3d_x2", s.loop = GRID_ROWS, s.block = 16; /* two cells deep */
    s.type = box(3, cube, (int[]){m, m, 2}, MPI_DOUBLE);
    measure(&s, size);
    s.name = "face3d_y", s.loop = BLOCKS, s.block = 8 * in, s.n = in, s.step = row * n;
    s.type = box(3, cube, (int[]){m, 1, m}, MPI_DOUBLE);
    measure(&s, size);
    s.name = "face3d_z", s.step = row;
    s.type = box(3, cube, (int[]){1, m, m}, MPI_DOUBLE);
    measure(&s, size);
}

/* Types in types: what solvers exchange. */
static void nested(const char *size, int n)
{
    size_t row = 8 * (size_t)n;
    int m = n - 2;
    MPI_Datatype inner, five;
    /* every second point of every second row, as of a coarser grid */
    struct shape s = {.name = "multigrid", .loop = GRID, .count = 1};
    s.n = (size_t)m / 2, s.step = 16, s.planes = (size_t)m * 2, s.plane = 2 * row;
    MPI_Type_vector(m / 2, 1, 2, MPI_DOUBLE, &inner);
    MPI_Type_create_hvector(2 * m, 1, (MPI_Aint)(2 * row), inner, &s.type);
    measure(&s, size);
    MPI_Type_free(&inner);
    /* five unknowns at each point of a face */
    s = (struct shape){.name = "lu_face", .loop = GRID_FIVE, .count = 1};
    s.n = (size_t)m / 4, s.step = 160, s.planes = (size_t)m, s.plane = 10 * row;
    if (s.planes * s.plane > SOURCE) s.planes = SOURCE / s.plane - 1;
    MPI_Type_contiguous(5, MPI_DOUBLE, &five);
    MPI_Type_create_hvector(m / 4, 1, 160, five, &inner);
    MPI_Type_create_hvector((int)s.planes, 1, (MPI_Aint)s.plane, inner, &s.type);
    measure(&s, size);
    MPI_Type_free(&inner);
    MPI_Type_free(&five);
    /* several fields of floats, the three outermost columns of each */
    s = (struct shape){.name = "weather", .loop = WEATHER, .count = 1};
    s.n = (size_t)m, s.step = row / 2, s.planes = 8, s.plane = row / 2 * (size_t)n;
    MPI_Datatype fields[FIELDS];
    MPI_Aint at[FIELDS];
    int one[FIELDS];
    for (int f = 0; f < FIELDS; f++) {
        fields[f] = box(3, (int[]){8, n, n}, (int[]){8, m, 3}, MPI_FLOAT);
        at[f] = (MPI_Aint)(8 * s.plane) * f;
        one[f] = 1;
    }
    MPI_Type_create_struct(FIELDS, one, at, fields, &s.type);
    measure(&s, size);
    for (int f = 0; f < FIELDS; f++) MPI_Type_free(&fields[f]);
    /* a matrix by its columns */
    s = (struct shape){.name = "transpose", .loop = GRID, .n = (size_t)n, .step = row, .planes = (size_t)n, .plane = 8};
    MPI_Type_create_hvector(n, 1, (MPI_Aint)row, MPI_DOUBLE, &inner);
    MPI_Type_create_resized(inner, 0, 8, &s.type);
    MPI_Type_free(&inner);
    s.count = n;
    measure(&s, size);
}

/* ---- fixed costs ---- */

static void tiny(const char *name, MPI_Datatype type, int count, size_t bytes)
{
    struct shape s = {.name = name, .type = type, .count = count, .bytes = bytes};
    double v[TURNS];
    for (int way = 0; way < 2; way++) {
        seconds(way ? unpack : pack, &s, 1000);
        for (int i = 0; i < TURNS; i++) v[i] = seconds(way ? unpack : pack, &s, 1000);
        printf("tiny_%s_%s_ns %.2f\n", way ? "unpack" : "pack", name, 1e9 * median(v, TURNS));
    }
}

static void make_vector(const struct shape *s)
{
    MPI_Datatype t;
    MPI_Type_vector((int)s->n, 1, 2, MPI_DOUBLE, &t);
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
}

static void make_indexed(const struct shape *s)
{
    MPI_Datatype t;
    MPI_Type_indexed((int)s->n, s->lens, s->offs, MPI_DOUBLE, &t);
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
}

static void make_box(const struct shape *s)
{
    int n = (int)s->n;
    MPI_Datatype t = box(3, (int[]){n, n, n}, (int[]){n - 2, n - 2, 1}, MPI_DOUBLE);
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
}

static void make_struct(const struct shape *s)
{
    (void)s;
    MPI_Datatype t;
    MPI_Type_create_struct(3, (int[]){3, 1, 1}, (MPI_Aint[]){0, 24, 28},
                           (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR, MPI_INT}, &t);
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
}

static void making(const char *name, work_fn *f, const struct shape *s)
{
    double v[TURNS];
    seconds(f, s, 10);
    for (int i = 0; i < TURNS; i++) v[i] = seconds(f, s, 10);
    printf("make_%s_us %.3f\n", name, 1e6 * median(v, TURNS));
}

static void fixed_costs(void)
{
    MPI_Datatype three;
    MPI_Type_vector(3, 1, 2, MPI_INT, &three);
    MPI_Type_commit(&three);
    tiny("int", MPI_INT, 1, 4);
    tiny("doubles16", MPI_DOUBLE, 16, 128);
    tiny("vector3", three, 1, 12);
    MPI_Type_free(&three);
    int lens[1000], offs[1000];
    struct shape s = {.n = 1000, .lens = lens, .offs = offs};
    for (int i = 0; i < 1000; i++) lens[i] = 1 + i % 5, offs[i] = 10 * i;
    making("vector", make_vector, &s);
    making("indexed1000", make_indexed, &s);
    s.n = 64;
    making("subarray", make_box, &s);
    making("struct", make_struct, &s);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 1) only = argv[1];
    user = xalloc(4 * SOURCE); /* the faces of the large grid take all of it */
    packed = xalloc(MOVED);
    check = xalloc(MOVED);
    fill(user, 4 * SOURCE);
    vectors("small", 64 << 10);
    vectors("big", MOVED);
    lists("small", 64 << 10);
    lists("big", MOVED);
    structs("small", 64 << 10);
    structs("big", MOVED);
    faces("small", 48);
    faces("big", 300);
    nested("small", 64);
    nested("big", 1024);
    fixed_costs();
    MPI_Finalize();
    return 0;
}
