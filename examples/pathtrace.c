/*
 * pathtrace.c - a path tracer whose workers come and go while it draws.
 *
 * The master, rank 0, has the picture. It hands out tiles by their numbers and gets pixels back. A worker has AHEAD tiles
 * in hand, so the next one is there when it has finished one. The workers are the other ranks of MPI_COMM_WORLD
 * (--static), or processes that the master spawns, more at one time and fewer at another:
 *
 *     --workers 2 --plan 8@30,3@70    two; eight from 30 % of the picture on; three from 70 % on
 *     --workers auto                  as many as make it faster (see steer_by_rate)
 *
 * A group of workers is what one call of MPI_Comm_spawn has brought: one intercommunicator, which is disconnected as a
 * whole. So n workers that may have to go in parts are spawned as groups of 1, 2, 4 ... and the rest: any number up to n is a
 * sum of these. A worker that is to go is told so, sends what it has in hand, and disconnects.
 *
 * While the master is in MPI_Comm_spawn, no tile is handed out. So before it calls, each worker gets as many more as it draws
 * in that time (stock_up), and the drawing goes on.
 *
 * A pixel depends on its place alone (scene.h), so the picture is the same to the last bit with any number of workers,
 * however they came. Tiles are drawn in an order that is spread over the picture: their rate and the percentage are even then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "allocate.h"
#include "options.h"
#include "picture.h"
#include "scene.h"
#include "spawning.h"
#include <sched.h>
#include <unistd.h>

enum { AHEAD = 2, SLOTS = 64, WORKERS = 4096, STEPS = 64 }; /* tiles in hand; those at most; workers at most; of a plan */
enum { TAG_SETUP, TAG_TILE, TAG_LEAVE, TAG_PIXELS };

static long width = 900, height = 900, samples = 16, side = 32;
static const char *count = "2", *plan = "", *output = NULL;
static const char *pairs[SPAWNING_PAIRS];
static int npairs;
static bool is_static, is_worker, bench;

static const struct option options[] = {
    {.name = "width", .number = &width, .min = 1, .max = 100000, .help = "pixels (900)"},
    {.name = "height", .number = &height, .min = 1, .max = 100000, .help = "pixels (900)"},
    {.name = "samples", .number = &samples, .min = 1, .max = 1000000, .help = "paths of light for each pixel (16)"},
    {.name = "tile", .number = &side, .min = 1, .max = 1024, .help = "pixels in a row of a tile (32)"},
    {.name = "workers", .text = &count, .what = "N|auto", .help = "workers that are spawned at the start (2)"},
    {.name = "plan", .text = &plan, .what = "N@PERCENT,...", .help = "N workers from there on"},
    {.name = "static", .flag = &is_static, .help = "the workers are ranks 1 and up of MPI_COMM_WORLD; alone, rank 0 draws"},
    {.name = "info", .text = pairs, .given = &npairs, .max = SPAWNING_PAIRS, .what = "KEY=VALUE",
     .help = "for MPI_Comm_spawn; may be repeated"},
    {.name = "output", .text = &output, .help = "the picture, .ppm or .png"},
    {.name = "bench", .flag = &bench, .help = "prints figures, a line each: key value"},
    {.name = "worker", .flag = &is_worker, .help = "(given to spawned workers, to be seen in lists of processes)"},
    {.name = NULL}};

static void fail(const char *words)
{
    fprintf(stderr, "pathtrace: %s\n", words);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* ---- tiles ---- */

/* All that a worker has to know. */
struct job {
    int64_t width, height, samples, side;
};

/* Where a tile is, and how large (less than the side at the right and lower edge). */
struct tile {
    long x, y, w, h;
};

static int64_t tiles_in_row(const struct job *j) { return (j->width + j->side - 1) / j->side; }
static int64_t tiles_of(const struct job *j) { return tiles_in_row(j) * ((j->height + j->side - 1) / j->side); }
static size_t message_bytes(const struct job *j) { return sizeof(int64_t) + (size_t)(3 * j->side * j->side); }

static struct tile tile_at(const struct job *j, int64_t number)
{
    struct tile t = {.x = number % tiles_in_row(j) * j->side, .y = number / tiles_in_row(j) * j->side, .w = j->side, .h = j->side};
    if (t.x + t.w > j->width) t.w = j->width - t.x;
    if (t.y + t.h > j->height) t.h = j->height - t.y;
    return t;
}

/* The pixels go to `rgb`, `stride` bytes from row to row. */
static void draw_tile(const struct job *j, const struct tile *t, unsigned char *rgb, size_t stride)
{
    for (long y = 0; y < t->h; y++)
        for (long x = 0; x < t->w; x++)
            scene_pixel(t->x + x, t->y + y, j->width, j->height, j->samples, &rgb[(size_t)y * stride + 3 * (size_t)x]);
}

/* ---- a worker ---- */

/* A message with a tile: its number, then its pixels. Up to SLOTS are under way. */
static void draw_and_send(const struct job *j, int64_t number, MPI_Comm master, unsigned char *message, MPI_Request *request)
{
    struct tile t = tile_at(j, number);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    memcpy(message, &number, sizeof number);
    draw_tile(j, &t, message + sizeof number, (size_t)(3 * t.w));
    MPI_Isend(message, (int)(sizeof number + (size_t)(3 * t.w * t.h)), MPI_BYTE, 0, TAG_PIXELS, master, request);
}

static void work(MPI_Comm master)
{
    struct job j;
    MPI_Request request[SLOTS];
    MPI_Status status;
    int64_t number;
    MPI_Recv(&j, sizeof j, MPI_BYTE, 0, TAG_SETUP, master, MPI_STATUS_IGNORE);
    unsigned char *messages = allocate(SLOTS, message_bytes(&j));
    for (int i = 0; i < SLOTS; i++) request[i] = MPI_REQUEST_NULL;
    for (int i = 0;; i = (i + 1) % SLOTS) {
        MPI_Recv(&number, 1, MPI_INT64_T, 0, MPI_ANY_TAG, master, &status);
        if (status.MPI_TAG == TAG_LEAVE) break;
        draw_and_send(&j, number, master, messages + (size_t)i * message_bytes(&j), &request[i]);
    }
    MPI_Waitall(SLOTS, request, MPI_STATUSES_IGNORE);
    free(messages);
}

/* ---- the master ---- */

struct group {
    MPI_Comm comm;
    int n, here;  /* workers, those that have not sent all yet */
    bool leaves;
    struct group *next;
};

struct worker {
    struct group *group;
    int rank, held; /* there; tiles in hand */
    unsigned char *message;
};

struct step {
    int percent, workers;
};

/* How the rate of tiles answers to one more worker (--workers auto). */
struct trial {
    bool on, tries; /* the count is still looked for; the last group is on trial */
    int doubts;     /* measurements, one after the other, by which it does not pay */
    double start, rate; /* of the measurement under way; what was measured before the last one came */
    int64_t done;
};

struct master {
    struct job job;
    int64_t tiles, given, done, stride; /* tile number k in order is k * stride % tiles */
    unsigned char *picture;
    struct worker worker[WORKERS];
    MPI_Request request[WORKERS]; /* of worker[i].message */
    int n, leaving;               /* workers; those of groups that leave */
    struct group *groups;
    struct step step[STEPS];
    int steps, next_step;
    bool in_parts; /* not all workers will leave together */
    struct trial trial;
    char *program;
    MPI_Info info;
    int spawns, most;
    double start, first_pixel, spawn_s, last_spawn_s, worker_s; /* worker_s: that workers have been there, in all */
    double noted, shown;
};

static int staff(const struct master *m) { return m->n - m->leaving; }

static void note_time(struct master *m)
{
    double now = MPI_Wtime();
    m->worker_s += (now - m->noted) * m->n;
    m->noted = now;
}

/* An order of tiles that is spread over the picture: steps of about 0.618 of all, without a common divisor. */
static int64_t spread_stride(int64_t tiles)
{
    int64_t stride = tiles * 618 / 1000 + 1, a, b;
    for (;; stride++) {
        for (a = tiles, b = stride; b;) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return stride;
    }
}

/* One tile more to a worker, if there is any. */
static void give_tile(struct master *m, int i)
{
    struct worker *w = &m->worker[i];
    if (m->given == m->tiles || w->group->leaves) return;
    int64_t number = m->given++ * m->stride % m->tiles;
    w->held++;
    MPI_Send(&number, 1, MPI_INT64_T, w->rank, TAG_TILE, w->group->comm);
}

static void listen(struct master *m, int i)
{
    const struct worker *w = &m->worker[i];
    MPI_Irecv(w->message, (int)message_bytes(&m->job), MPI_BYTE, w->rank, TAG_PIXELS, w->group->comm, &m->request[i]);
}

static void enlist(struct master *m, struct group *g, int rank)
{
    int i = m->n;
    if (i == WORKERS) fail("too many workers");
    m->worker[i] = (struct worker){.group = g, .rank = rank, .message = allocate(1, message_bytes(&m->job))};
    note_time(m);
    m->n++;
    m->most = m->n > m->most ? m->n : m->most;
    MPI_Send(&m->job, sizeof m->job, MPI_BYTE, rank, TAG_SETUP, g->comm);
    listen(m, i);
    for (int k = 0; k < AHEAD; k++) give_tile(m, i);
}

static struct group *new_group(struct master *m, MPI_Comm comm, int n)
{
    struct group *g = allocate(1, sizeof *g);
    *g = (struct group){.comm = comm, .n = n, .here = n, .next = m->groups};
    return m->groups = g;
}

/* The worker has sent all that it had, and its group is leaving: the last one of it takes the intercommunicator along. */
static void strike_off(struct master *m, int i)
{
    struct group *g = m->worker[i].group;
    note_time(m);
    free(m->worker[i].message);
    m->n--;
    m->leaving--;
    m->worker[i] = m->worker[m->n];
    m->request[i] = m->request[m->n];
    if (--g->here || is_static) return;
    MPI_Comm_disconnect(&g->comm);
    struct group **at = &m->groups;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    free(g);
}

/* A worker that has nothing in hand has no receive to wait for. */
static void dismiss(struct master *m, struct group *g)
{
    int64_t none = 0;
    g->leaves = true;
    m->leaving += g->n;
    for (int r = m->n - 1; r >= 0; r--) {
        struct worker *w = &m->worker[r];
        if (w->group != g) continue;
        MPI_Send(&none, 1, MPI_INT64_T, w->rank, TAG_LEAVE, g->comm);
        if (w->held) continue;
        MPI_Cancel(&m->request[r]);
        MPI_Wait(&m->request[r], MPI_STATUS_IGNORE);
    }
    for (int i = m->n - 1, left = g->here; i >= 0 && left; i--) {
        if (m->worker[i].group != g) continue;
        left--;
        if (!m->worker[i].held) strike_off(m, i);
    }
}

/* Enough tiles that no worker waits while the next ones are spawned, but no more than its part of what is left. */
static void stock_up(struct master *m)
{
    note_time(m);
    double rate = m->worker_s > 0 ? (double)m->done / m->worker_s : 0;
    int64_t part = m->n ? (m->tiles - m->given) / (2 * m->n) : 0;
    int64_t enough = AHEAD + (int64_t)(1.5 * m->last_spawn_s * rate + 0.5);
    if (enough > part + AHEAD) enough = part + AHEAD;
    if (enough > SLOTS) enough = SLOTS;
    for (int i = 0; i < m->n; i++)
        while (m->worker[i].held < enough && m->given < m->tiles && !m->worker[i].group->leaves) give_tile(m, i);
}

/* One call of MPI_Comm_spawn; false, in words: the drawing goes on without them. */
static bool spawn(struct master *m, int n)
{
    char word[] = "--worker", *argv[] = {word, NULL};
    MPI_Comm comm;
    int came;
    stock_up(m);
    double start = MPI_Wtime();
    int code = MPI_Comm_spawn(m->program, argv, n, m->info, 0, MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE);
    if (code) {
        fprintf(stderr, "pathtrace: %d worker%s cannot be spawned: %s\n", n, n > 1 ? "s" : "", spawning_words(code));
        if (!staff(m) && m->given < m->tiles) fail("there are no workers");
        return false;
    }
    m->last_spawn_s = MPI_Wtime() - start;
    m->spawn_s += m->last_spawn_s;
    m->spawns++;
    MPI_Comm_remote_size(comm, &came);
    struct group *g = new_group(m, comm, came);
    for (int r = 0; r < came; r++) enlist(m, g, r);
    return true;
}

static void grow(struct master *m, int n)
{
    for (int part = m->in_parts ? 1 : n; n > 0; part *= 2) {
        if (part > n) part = n;
        if (!spawn(m, part)) return;
        n -= part;
    }
}

static struct group *largest_group(const struct master *m, int most)
{
    struct group *best = NULL;
    for (struct group *g = m->groups; g; g = g->next)
        if (!g->leaves && g->n <= most && (!best || g->n > best->n)) best = g;
    return best;
}

/* Whole groups go. If no sum of them fits any more, one is too many, and what is missing then comes anew. */
static void shrink(struct master *m, int n)
{
    while (n > 0) {
        struct group *g = largest_group(m, n);
        if (!g) g = largest_group(m, WORKERS);
        if (!g) return;
        n -= g->n;
        dismiss(m, g);
    }
    grow(m, -n);
}

static void set_workers(struct master *m, int n)
{
    if (n > staff(m)) grow(m, n - staff(m));
    else shrink(m, staff(m) - n);
}

/* ---- how many ---- */

static int usable_processors(void)
{
    cpu_set_t set;
    int *universe, there;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &there);
    if (there && *universe > 1) return *universe;
    if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static void measure_anew(struct master *m)
{
    m->trial.start = MPI_Wtime();
    m->trial.done = m->done;
}

/*
 * The count is looked for upwards from half the processors, by one worker more at a time. With n workers, one more should
 * make the rate 1 + 1/n times as high. If it brings half of that, it stays, and the next one is tried; if not, in two
 * measurements, it goes, and the count stands. A measurement takes a second and twelve tiles of each worker at least; the tiles before it,
 * which were handed out to fewer workers, do not count.
 */
static void steer_by_rate(struct master *m)
{
    struct trial *t = &m->trial;
    double seconds = MPI_Wtime() - t->start;
    int n = staff(m);
    if (!t->on || m->leaving || seconds < 1 || m->done - t->done < 12 * n || m->tiles - m->given < 24 * n) return;
    double rate = (double)(m->done - t->done) / seconds;
    if (t->tries && rate < t->rate * (1 + 0.5 / (n - 1))) {
        measure_anew(m);
        if (++t->doubts < 2) return;
        t->on = false;
        shrink(m, 1);
        return;
    }
    t->doubts = 0;
    t->rate = rate;
    t->tries = spawn(m, 1);
    t->on = t->tries;
    measure_anew(m);
}

static void steer(struct master *m)
{
    while (m->next_step < m->steps && m->done * 100 >= m->step[m->next_step].percent * m->tiles && m->done < m->tiles)
        set_workers(m, m->step[m->next_step++].workers);
    steer_by_rate(m);
}

/* "8@30,3@70", with rising percentages; false: it is not that. */
static bool read_plan(struct master *m, const char *text)
{
    for (int end; *text; text += end + (text[end] == ',')) {
        struct step s;
        if (m->steps == STEPS || sscanf(text, "%d@%d%n", &s.workers, &s.percent, &end) != 2) return false;
        if ((text[end] != ',' && text[end]) || (text[end] && !text[end + 1])) return false;
        if (s.workers < 1 || s.workers > WORKERS || s.percent < 0 || s.percent > 100) return false;
        if (m->steps && s.percent <= m->step[m->steps - 1].percent) return false;
        m->step[m->steps++] = s;
    }
    return true;
}

/* The workers at the start, 0: something is wrong with the options. */
static int read_count(struct master *m)
{
    char *end;
    long n = strtol(count, &end, 10);
    m->trial.on = !strcmp(count, "auto");
    if (m->trial.on) n = (usable_processors() + 1) / 2;
    else if (*end || end == count || n < 1 || n > WORKERS) n = 0;
    if (n < 1) fprintf(stderr, "--workers %s: neither a number between 1 and %d nor auto\n", count, WORKERS);
    if (n < 1) return 0;
    if (!read_plan(m, plan)) {
        fprintf(stderr, "--plan %s: not of the form N@PERCENT,N@PERCENT with rising percentages\n", plan);
        return 0;
    }
    m->in_parts = m->trial.on || m->steps;
    return (int)n;
}

/* ---- the drawing ---- */

static void show_progress(struct master *m)
{
    static int terminal = -1;
    double now = MPI_Wtime(), seconds = now - m->start;
    if (terminal < 0) terminal = isatty(STDERR_FILENO);
    if (bench || now - m->shown < (terminal ? 0.2 : 5) || m->done == m->tiles) return;
    m->shown = now;
    fprintf(stderr, "%s%5.1f %%, %d workers, %.0f tiles/s%s", terminal ? "\r" : "", 100.0 * (double)m->done / (double)m->tiles, m->n,
            (double)m->done / seconds, terminal ? "   " : "\n");
}

static void take_tile(struct master *m, const unsigned char *message)
{
    int64_t number;
    memcpy(&number, message, sizeof number);
    if (number < 0 || number >= m->tiles) fail("a worker has sent a tile that there is not");
    struct tile t = tile_at(&m->job, number);
    const unsigned char *from = message + sizeof number;
    for (long y = 0; y < t.h; y++)
        memcpy(&m->picture[3 * ((size_t)(t.y + y) * (size_t)width + (size_t)t.x)], &from[3 * y * t.w], (size_t)(3 * t.w));
    if (!m->done++) m->first_pixel = MPI_Wtime() - m->start;
}

/* What worker i has sent is in its message. */
static void hear(struct master *m, int i)
{
    struct worker *w = &m->worker[i];
    take_tile(m, w->message);
    w->held--;
    if (w->group->leaves && !w->held) {
        strike_off(m, i);
        return;
    }
    while (w->held < AHEAD && m->given < m->tiles && !w->group->leaves) give_tile(m, i);
    listen(m, i);
}

/* From the last to the first: one that leaves gives its place to the last one, which was heard before. */
static void hear_some(struct master *m)
{
    static int which[WORKERS];
    int some, here[WORKERS / 32] = {0};
    MPI_Waitsome(m->n, m->request, &some, which, MPI_STATUSES_IGNORE);
    for (int k = 0; k < some; k++) here[which[k] / 32] |= (int)(1u << which[k] % 32);
    for (int i = m->n - 1; i >= 0; i--)
        if ((unsigned)here[i / 32] >> i % 32 & 1) hear(m, i);
}

/* Without workers, the master draws. */
static void draw_alone(struct master *m)
{
    for (; m->done < m->tiles; m->done++) {
        struct tile t = tile_at(&m->job, m->done * m->stride % m->tiles);
        draw_tile(&m->job, &t, &m->picture[3 * ((size_t)t.y * (size_t)width + (size_t)t.x)], 3 * (size_t)width);
        if (!m->done) m->first_pixel = MPI_Wtime() - m->start;
        show_progress(m);
    }
}

static void draw(struct master *m, int ranks, int workers)
{
    m->start = m->noted = m->shown = MPI_Wtime();
    if (is_static && ranks > 1) {
        struct group *g = new_group(m, MPI_COMM_WORLD, ranks - 1);
        for (int r = 1; r < ranks; r++) enlist(m, g, r);
    } else if (!is_static) {
        grow(m, workers);
    } else {
        draw_alone(m);
    }
    measure_anew(m);
    while (m->done < m->tiles) {
        hear_some(m);
        if (!is_static) steer(m);
        show_progress(m);
    }
    note_time(m);
}

static void dismiss_all(struct master *m)
{
    struct group *next;
    for (struct group *g = m->groups; g; g = next) {
        next = g->next;
        if (!g->leaves) dismiss(m, g);
    }
}

static void print_result(const struct master *m, double seconds, double all)
{
    double workers = seconds > 0 ? m->worker_s / seconds : 0;
    if (bench) {
        printf("mode %s\nwidth %ld\nheight %ld\nsamples %ld\ntiles %lld\n", is_static ? "static" : "dynamic", width, height, samples,
               (long long)m->tiles);
        printf("workers_most %d\nworkers_mean %.2f\nworkers_last %d\nspawns %d\nspawn_seconds %.4f\n", m->most, workers, m->n, m->spawns,
               m->spawn_s);
        printf("first_tile_seconds %.4f\ndraw_seconds %.4f\nall_seconds %.4f\ntiles_per_second %.1f\n", m->first_pixel, seconds, all,
               (double)m->tiles / seconds);
        return;
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%40s\r", "");
    printf("%ld x %ld pixels, %ld samples: %.2f s, %d workers at most, %.1f in the mean, %d at the end\n", width, height, samples, seconds,
           m->most, workers, m->n);
}

static int run_master(const char *argv0, int ranks)
{
    static struct master m;
    m = (struct master){.job = {width, height, samples, side}, .info = MPI_INFO_NULL};
    int workers = is_static ? ranks : read_count(&m);
    if (!workers || !spawning_info(pairs, npairs, &m.info)) return OPTIONS_BAD;
    m.tiles = tiles_of(&m.job);
    m.stride = spread_stride(m.tiles);
    m.picture = allocate((size_t)width * (size_t)height, 3);
    m.program = spawning_program(argv0);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    draw(&m, ranks, workers);
    double seconds = MPI_Wtime() - m.start;
    bool good = !output || picture_write(output, (int)width, (int)height, m.picture);
    if (!good) fprintf(stderr, "pathtrace: cannot write %s: %s\n", output, strerror(errno));
    int at_end = m.n;
    dismiss_all(&m);
    m.n = at_end;
    print_result(&m, seconds, MPI_Wtime() - m.start);
    if (m.info != MPI_INFO_NULL) MPI_Info_free(&m.info);
    free(m.program);
    free(m.picture);
    return !good;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    int code = options_read(argc, argv, options, "pathtrace - a picture, by workers that come and go", rank == 0);
    if (code == OPTIONS_RUN) {
        code = 0;
        scene_open();
        if (parent != MPI_COMM_NULL) work(parent);
        else if (rank == 0) code = run_master(argv[0], ranks);
        else if (is_static) work(MPI_COMM_WORLD);
        if (parent != MPI_COMM_NULL) MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return code;
}
