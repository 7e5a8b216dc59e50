/*
 * raytrace.c - draws spheres on a floor, with reflections and soft shadows.
 *
 * The picture is cut into square tiles; tile k is the work of rank k modulo the number of ranks, known to all in
 * advance. Rank 0 has posted a receive for every tile of the others, straight into its place in the picture (a
 * vector type skips the rest of each row), computes its own tiles, and looks from time to time what has come. Two
 * messages from one sender arrive in the order sent, so a tile needs no number.
 *
 * Rays through a pixel and towards the light are spread by numbers that depend on the pixel alone, so a run with any
 * number of ranks gives the same picture to the last bit. --check compares with a serial run.
 */
#include "allocate.h"
#include "options.h"
#include "picture.h"
#include "vectors.h"
#include <math.h>
#include <mpi.h>

enum { TILE = 32, BOUNCES = 5 };

static long width = 960, samples = 3, lights = 4;
static const char *output = NULL;
static bool check = false;

static const struct option options[] = {
    {.name = "size",
     .number = &width,
     .min = 16,
     .max = 16384,
     .help = "width of the picture; the height is 9/16 of it (960)"},
    {.name = "samples", .number = &samples, .min = 1, .max = 16, .help = "N x N rays for each pixel (3)"},
    {.name = "lights", .number = &lights, .min = 1, .max = 16, .help = "N x N rays to the light for each shadow (4)"},
    {.name = "output", .text = &output, .help = "the picture, .png or .ppm"},
    {.name = "check", .flag = &check, .help = "compares with a serial run; exit code 1 when they differ"},
    {.name = NULL}};

static long height(void) { return width * 9 / 16; }

/* The scene: y is up, the floor is y = 0. */
struct sphere {
    struct vec centre;
    double radius;
    struct vec colour;
    double mirror, shine; /* the part of the light that is reflected; the strength of the highlight */
};

static const struct sphere spheres[] = {
    {{0.0, 1.25, 0.0}, 1.25, {0.95, 0.95, 0.97}, 0.82, 1.0},
    {{-2.45, 0.80, 0.55}, 0.80, {0.85, 0.16, 0.14}, 0.18, 0.7},
    {{2.35, 0.70, 0.75}, 0.70, {0.98, 0.70, 0.14}, 0.16, 0.7},
    {{-1.15, 0.42, 2.00}, 0.42, {0.14, 0.42, 0.80}, 0.25, 0.8},
    {{0.55, 0.32, 2.45}, 0.32, {0.20, 0.64, 0.36}, 0.10, 0.5},
    {{1.55, 0.48, 1.95}, 0.48, {0.93, 0.93, 0.90}, 0.05, 0.3},
    {{-3.90, 1.10, -2.20}, 1.10, {0.30, 0.62, 0.66}, 0.30, 0.8},
    {{3.90, 1.30, -2.40}, 1.30, {0.52, 0.26, 0.60}, 0.28, 0.8},
    {{-0.25, 0.22, 3.10}, 0.22, {0.95, 0.45, 0.10}, 0.12, 0.6},
    {{-2.30, 0.25, 2.55}, 0.25, {0.80, 0.80, 0.30}, 0.35, 0.8},
    {{2.65, 0.26, 2.55}, 0.26, {0.25, 0.28, 0.75}, 0.30, 0.8},
    {{0.30, 0.60, -3.40}, 0.60, {0.90, 0.30, 0.45}, 0.10, 0.5},
};

enum { SPHERES = sizeof spheres / sizeof *spheres };

/* The light is a square, parallel to the floor. */
static const struct vec light = {-5.0, 8.5, 5.5};
static const double light_side = 2.6;

/* A number in 0..1 from the words of a seed: the same for a ray whoever computes it. */
static double spread(uint32_t seed)
{
    seed ^= seed >> 16;
    seed *= 0x7feb352du;
    seed ^= seed >> 15;
    seed *= 0x846ca68bu;
    seed ^= seed >> 16;
    return seed * (1.0 / 4294967296.0);
}

static double distance_to(const struct sphere *s, struct vec o, struct vec d) { return distance_to_ball(s->centre, s->radius, o, d, 1e-6); }

static bool in_shadow(struct vec from, struct vec to)
{
    struct vec way = sub(to, from);
    double length = sqrt(dot(way, way));
    struct vec d = scale(way, 1 / length);
    for (int i = 0; i < SPHERES; i++) {
        double t = distance_to(&spheres[i], from, d);
        if (t > 0 && t < length) return true;
    }
    return false;
}

/* The part of the light that a point sees: rays to points of the light, one in each of lights x lights cells. */
static double light_seen(struct vec p, uint32_t seed)
{
    long seen = 0;
    for (long i = 0; i < lights * lights; i++) {
        double x = ((double)(i % lights) + spread(seed + 2 * (uint32_t)i)) / (double)lights - 0.5;
        double z = ((double)(i / lights) + spread(seed + 2 * (uint32_t)i + 1)) / (double)lights - 0.5;
        seen += !in_shadow(p, add(light, vec(light_side * x, 0, light_side * z)));
    }
    return (double)seen / (double)(lights * lights);
}

/* What a ray meets: the point, a little outside; its normal; the material there. */
struct hit {
    struct vec point, normal, colour;
    double distance, mirror, shine;
};

static struct vec sky(struct vec d)
{
    double glow = fmax(0, dot(d, unit(light)));
    struct vec colour = mix(vec(0.86, 0.90, 0.95), vec(0.22, 0.42, 0.74), sqrt(fmax(0, d.y)));
    return add(colour, scale(vec(1.0, 0.9, 0.7), 0.35 * pow(glow, 40)));
}

/* The floor has squares of two colours, which fade into their mean where they are smaller than a pixel. */
static void floor_material(struct hit *h)
{
    bool odd = ((long)floor(h->point.x) + (long)floor(h->point.z)) & 1;
    struct vec mean = vec(0.52, 0.50, 0.47), colour = odd ? vec(0.22, 0.23, 0.25) : vec(0.82, 0.77, 0.69);
    h->colour = mix(colour, mean, fmin(1, h->distance / 45));
    h->mirror = 0.10;
    h->shine = 0.1;
}

static bool find_hit(struct vec o, struct vec d, struct hit *h)
{
    const struct sphere *nearest = NULL;
    h->distance = d.y < 0 ? -o.y / d.y : HUGE_VAL;
    for (int i = 0; i < SPHERES; i++) {
        double t = distance_to(&spheres[i], o, d);
        if (t > 0 && t < h->distance) {
            h->distance = t;
            nearest = &spheres[i];
        }
    }
    if (h->distance > 1e4) return false;
    h->point = add(o, scale(d, h->distance));
    if (nearest) {
        h->normal = scale(sub(h->point, nearest->centre), 1 / nearest->radius);
        h->colour = nearest->colour;
        h->mirror = nearest->mirror;
        h->shine = nearest->shine;
    } else {
        h->normal = vec(0, 1, 0);
        floor_material(h);
    }
    h->point = add(h->point, scale(h->normal, 1e-5));
    return true;
}

/* The colour that comes along the ray, mirrors followed up to BOUNCES times. */
static struct vec trace(struct vec o, struct vec d, uint32_t seed, int bounces)
{
    struct hit h;
    if (!find_hit(o, d, &h)) return sky(d);
    struct vec to_light = unit(sub(light, h.point));
    double facing = dot(h.normal, to_light), seen = facing > 0 ? light_seen(h.point, seed) : 0;
    struct vec reflected = sub(d, scale(h.normal, 2 * dot(d, h.normal)));
    double highlight = pow(fmax(0, dot(reflected, to_light)), 60) * h.shine * seen;
    double around = 0.17 + 0.08 * h.normal.y; /* light from the sky, stronger from above */
    struct vec colour = scale(h.colour, around + 0.95 * fmax(0, facing) * seen);
    double grazing = pow(1 - fmax(0, -dot(d, h.normal)), 5), mirror = h.mirror + (1 - h.mirror) * 0.35 * grazing;
    if (bounces < BOUNCES && mirror > 0.02) {
        struct vec there = trace(h.point, reflected, seed * 0x9e3779b1u + 1, bounces + 1);
        colour = mix(colour, times(there, mix(vec(1, 1, 1), h.colour, 0.4)), mirror);
    }
    colour = mix(colour, sky(vec(d.x, 0, d.z)), 1 - exp(-h.distance * h.distance / 6000)); /* haze */
    return add(colour, scale(vec(1.0, 0.97, 0.9), highlight));
}

static unsigned char byte_of(double x) { return (unsigned char)(255 * pow(fmin(fmax(x, 0), 1), 1 / 2.2) + 0.5); }

/* The mean of samples x samples rays through the pixel (x, y), 0 0 being the upper left. */
static void render_pixel(long x, long y, unsigned char rgb[3])
{
    const struct vec eye = vec(0.4, 2.5, 8.2), forward = unit(sub(vec(0.0, 0.72, 0.0), eye));
    const struct vec right = unit(cross(forward, vec(0, 1, 0))), up = cross(right, forward);
    struct vec sum = vec(0, 0, 0);
    for (long i = 0; i < samples * samples; i++) {
        uint32_t seed = (uint32_t)((y * width + x) * 289 + i) * 2654435761u;
        double px = (double)x + ((double)(i % samples) + spread(seed + 77)) / (double)samples;
        double py = (double)y + ((double)(i / samples) + spread(seed + 78)) / (double)samples;
        double sx = (px - 0.5 * (double)width) / (double)width, sy = (0.5 * (double)height() - py) / (double)width;
        struct vec d = unit(add(forward, add(scale(right, 1.05 * sx), scale(up, 1.05 * sy))));
        struct vec c = trace(eye, d, seed, 0);
        sum = add(sum, vec(fmin(c.x, 1.5), fmin(c.y, 1.5), fmin(c.z, 1.5)));
    }
    double part = 1.0 / (double)(samples * samples);
    rgb[0] = byte_of(sum.x * part);
    rgb[1] = byte_of(sum.y * part);
    rgb[2] = byte_of(sum.z * part);
}

/* Tile k, counted by rows: where it is, and how large (less than TILE at the right and lower edge). */
struct tile {
    long x, y, w, h;
};

static long tiles(void) { return ((width + TILE - 1) / TILE) * ((height() + TILE - 1) / TILE); }

static struct tile tile(long k)
{
    long in_row = (width + TILE - 1) / TILE;
    struct tile t = {.x = k % in_row * TILE, .y = k / in_row * TILE, .w = TILE, .h = TILE};
    if (t.x + TILE > width) t.w = width - t.x;
    if (t.y + TILE > height()) t.h = height() - t.y;
    return t;
}

/* Renders a tile; pixels is where its first pixel goes, and stride the bytes from row to row there. */
static void render_tile(const struct tile *t, unsigned char *pixels, long stride)
{
    for (long y = 0; y < t->h; y++)
        for (long x = 0; x < t->w; x++) render_pixel(t->x + x, t->y + y, &pixels[y * stride + 3 * x]);
}

static unsigned char *place(unsigned char *picture, const struct tile *t)
{
    return &picture[(t->y * width + t->x) * 3];
}

/* A rank other than 0: each tile is sent as soon as it is ready, from its own part of a buffer for all. */
static void work(int rank, int ranks)
{
    size_t mine = (size_t)((tiles() - rank + ranks - 1) / ranks), n = 0;
    MPI_Request *request = allocate(mine + 1, sizeof *request);
    unsigned char *buffer = allocate(mine + 1, 3 * TILE * TILE);
    for (long k = rank; k < tiles(); k += ranks, n++) {
        struct tile t = tile(k);
        unsigned char *pixels = buffer + n * 3 * TILE * TILE;
        render_tile(&t, pixels, 3 * t.w);
        MPI_Isend(pixels, (int)(3 * t.w * t.h), MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[n]);
    }
    MPI_Waitall((int)n, request, MPI_STATUSES_IGNORE);
    free(buffer);
    free(request);
}

/* Posts the receives of all tiles that others compute; how many. */
static int receive_tiles(unsigned char *picture, int ranks, MPI_Request *request)
{
    int n = 0;
    for (long k = 0; k < tiles(); k++) {
        if (k % ranks == 0) continue;
        struct tile t = tile(k);
        MPI_Datatype in_picture;
        MPI_Type_vector((int)t.h, (int)(3 * t.w), (int)(3 * width), MPI_BYTE, &in_picture);
        MPI_Type_commit(&in_picture);
        MPI_Irecv(place(picture, &t), 1, in_picture, (int)(k % ranks), 0, MPI_COMM_WORLD, &request[n++]);
        MPI_Type_free(&in_picture); /* lives until the receive is done */
    }
    return n;
}

/* Says how far the picture is, at most every two seconds. */
static void report(long done)
{
    static double shown = 0;
    double now = MPI_Wtime();
    if (shown == 0) shown = now;
    if (now - shown < 2) return;
    shown = now;
    printf("%ld of %ld tiles\n", done, tiles());
    fflush(stdout);
}

/* Rank 0: its own tiles, and those of the others as they come. */
static void work_and_collect(unsigned char *picture, int ranks)
{
    MPI_Request *request = allocate((size_t)tiles() + 1, sizeof *request);
    int *which = allocate((size_t)tiles() + 1, sizeof *which), n = receive_tiles(picture, ranks, request), some = 0;
    long done = 0, received = 0;
    for (long k = 0; k < tiles(); k += ranks) {
        struct tile t = tile(k);
        render_tile(&t, place(picture, &t), 3 * width);
        done++;
        if (received < n) MPI_Testsome(n, request, &some, which, MPI_STATUSES_IGNORE);
        received += some;
        some = 0;
        report(done + received);
    }
    while (received < n) {
        MPI_Waitsome(n, request, &some, which, MPI_STATUSES_IGNORE);
        received += some;
        report(done + received);
    }
    free(which);
    free(request);
}

static bool same_as_serial(const unsigned char *picture)
{
    size_t bytes = (size_t)(3 * width * height());
    unsigned char *serial = allocate(bytes, 1);
    for (long k = 0; k < tiles(); k++) {
        struct tile t = tile(k);
        render_tile(&t, place(serial, &t), 3 * width);
        report(k + 1);
    }
    size_t different = 0;
    for (size_t i = 0; i < bytes; i++) different += picture[i] != serial[i];
    free(serial);
    if (different == 0)
        printf("check: the same as the serial run\n");
    else
        fprintf(stderr, "raytrace: check failed: %zu of %zu bytes differ from the serial run\n", different, bytes);
    return different == 0;
}

/* What rank 0 does with the picture: true when all went well. */
static bool finish(const unsigned char *picture)
{
    bool good = true;
    if (output && (good = picture_write(output, (int)width, (int)height(), picture)))
        printf("the picture is %s\n", output);
    else if (output)
        fprintf(stderr, "raytrace: cannot write %s: %s\n", output, strerror(errno));
    if (check) good &= same_as_serial(picture);
    return good;
}

int main(int argc, char **argv)
{
    int rank, ranks, good = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = options_read(argc, argv, options, "raytrace - spheres on a floor, with reflections and soft shadows",
                            rank == 0);
    if (code != OPTIONS_RUN) {
        MPI_Finalize();
        return code;
    }
    if (rank > 0) {
        work(rank, ranks);
    } else {
        unsigned char *picture = allocate((size_t)(3 * width * height()), 1);
        double start = MPI_Wtime();
        work_and_collect(picture, ranks);
        printf("%ld x %ld pixels, %d ranks: %.2f s\n", width, height(), ranks, MPI_Wtime() - start);
        good = finish(picture);
        free(picture);
    }
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return !good;
}
