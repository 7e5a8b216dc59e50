/*
 * tune_coll.c - measures the algorithms of the collectives, and writes a table of rules.
 *
 * For each number of ranks, operation and size, all algorithms that can be used are measured in
 * rounds, each once a round and in an order of its own, so that a noisy moment hits all of them. The
 * figure of an algorithm is the median over the rounds of the slowest rank's time. Each algorithm has a
 * communicator that asks for it by hint, so the very path of a user's call is measured.
 *
 * All ranks take the same decisions: times are combined by MPI_Allreduce, the random numbers are the same
 * everywhere, and whether there is time left is what rank 0 says.
 */
#include "tool/tune.h"

#include "coll/table.h"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 64
#define SIZES_MAX      16
#define MEMORY_MAX     (INT64_C(64) << 20) /* of a buffer */
#define SAMPLE_S       0.001               /* a sample is repetitions of about so long */
#define LEAD           0.97                /* who is not faster by so much does not replace the choice for the size before */

struct candidate {
    struct coll_choice choice;
    char hint[96];
    MPI_Comm comm;
    double *sample; /* [rounds] */
    double median;  /* seconds */
    bool hopeless;  /* not measured any more */
};

struct bench { /* one operation with one number of ranks */
    const struct tune_options *o;
    enum coll_kind kind;
    int rank, size, nodes;
    const char *place;
    MPI_Comm comm;
    struct candidate *c;
    int n;
    char *send, *recv;
    int *counts, *displs;
    uint64_t random;
};

/* Operations with more than one algorithm; the v-collectives, which are told apart by ranks only, with blocks of 4 KB. */
static const enum coll_kind measured[] = {COLL_BARRIER,    COLL_BCAST,      COLL_REDUCE,         COLL_ALLREDUCE,
                                          COLL_GATHER,     COLL_SCATTER,    COLL_ALLGATHER,      COLL_ALLTOALL,
                                          COLL_REDUCE_SCATTER_BLOCK,        COLL_SCAN,           COLL_EXSCAN,
                                          COLL_ALLGATHERV, COLL_ALLTOALLV,  COLL_REDUCE_SCATTER};
enum { V_BYTES = 4096 };

/* ---- one call ----------------------------------------------------------------------- */

static void call(const struct bench *b, MPI_Comm c, int n)
{
    int d = n / 8;
    switch (b->kind) {
    case COLL_BARRIER: MPI_Barrier(c); break;
    case COLL_BCAST: MPI_Bcast(b->send, n, MPI_BYTE, 0, c); break;
    case COLL_REDUCE: MPI_Reduce(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, 0, c); break;
    case COLL_ALLREDUCE: MPI_Allreduce(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_GATHER: MPI_Gather(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, 0, c); break;
    case COLL_SCATTER: MPI_Scatter(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, 0, c); break;
    case COLL_ALLGATHER: MPI_Allgather(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, c); break;
    case COLL_ALLTOALL: MPI_Alltoall(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, c); break;
    case COLL_REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_SCAN: MPI_Scan(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_EXSCAN: MPI_Exscan(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_ALLGATHERV: MPI_Allgatherv(b->send, n, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, c); break;
    case COLL_ALLTOALLV:
        MPI_Alltoallv(b->send, b->counts, b->displs, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, c);
        break;
    default: MPI_Reduce_scatter(b->send, b->recv, b->counts, MPI_BYTE, MPI_BOR, c); break;
    }
}

/* Seconds of a call at the slowest rank, over `reps` of them. */
static double sample(const struct bench *b, MPI_Comm c, int n, int reps)
{
    MPI_Barrier(b->comm);
    double start = tune_now(), slowest;
    for (int i = 0; i < reps; i++) call(b, c, n);
    double mine = (tune_now() - start) / reps;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    return slowest;
}

/* ---- candidates ----------------------------------------------------------------------- */

static struct coll_shape shape_of(const struct bench *b, int alg, int64_t bytes)
{
    bool reduces = coll_reduces(b->kind);
    return (struct coll_shape){.kind = (uint8_t)b->kind, .alg = (uint8_t)alg, .rank = b->rank, .size = b->size, .nodes = b->nodes,
                               .radix = 2, .bytes = bytes, .grain = reduces ? 8 : 1, .segment = 4096};
}

static uint32_t operations_of(const struct coll_shape *s)
{
    struct goal_prog *prog = NULL;
    if (coll_has_blocks((enum coll_kind)s->kind) || coll_compile(s, &coll_given_nothing, &prog)) return 0;
    uint32_t n = prog->head.op_count;
    goal_unref(prog);
    return n;
}

/* Does an algorithm take notice of the radix, or the segment? At any rank. */
static void depends(const struct bench *b, int alg, bool *radix, bool *segment)
{
    struct coll_shape s = shape_of(b, alg, 1 << 20);
    *radix = *segment = false;
    if (coll_algs[alg].flags & ALG_NODES) return; /* cannot be compiled without saying where the ranks are */
    uint32_t plain = operations_of(&s);
    s.radix = 8;
    int differs[2] = {operations_of(&s) != plain, 0};
    s.radix = 2;
    s.segment = 65536;
    differs[1] = operations_of(&s) != plain;
    MPI_Allreduce(MPI_IN_PLACE, differs, 2, MPI_INT, MPI_MAX, b->comm);
    *radix = differs[0];
    *segment = differs[1];
}

static void add_candidate(struct bench *b, int alg, int radix, int64_t segment)
{
    if (b->n == CANDIDATES_MAX) return;
    struct candidate *c = &b->c[b->n++];
    char key[64];
    MPI_Info info;
    c->choice = (struct coll_choice){alg, radix, segment};
    int n = snprintf(c->hint, sizeof c->hint, "%s", coll_algs[alg].name);
    if (radix) n += snprintf(c->hint + n, sizeof c->hint - (size_t)n, " radix %d", radix);
    if (segment) snprintf(c->hint + n, sizeof c->hint - (size_t)n, " segment %lldK", (long long)(segment >> 10));
    snprintf(key, sizeof key, "tern_coll_%s", coll_kind_name(b->kind));
    MPI_Info_create(&info);
    MPI_Info_set(info, key, c->hint);
    MPI_Comm_dup_with_info(b->comm, info, &c->comm);
    MPI_Info_free(&info);
    c->sample = calloc((size_t)b->o->rounds, sizeof *c->sample);
    if (!c->sample) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_candidates(struct bench *b)
{
    static const int radixes[] = {2, 4, 8};
    static const int64_t segments[] = {8 << 10, 32 << 10, 128 << 10};
    for (int alg = 0; alg < coll_algs_count; alg++) {
        struct coll_shape s = shape_of(b, alg, 0);
        bool radix, segment;
        if (!coll_alg_fits(alg, &s)) continue;
        depends(b, alg, &radix, &segment);
        for (int i = 0; i < (radix ? 3 : 1); i++)
            for (int k = 0; k < (segment ? 3 : 1); k++)
                if (radixes[i] <= b->size || !i) add_candidate(b, alg, radix ? radixes[i] : 0, segment ? segments[k] : 0);
    }
}

static void close_candidates(struct bench *b)
{
    while (b->n) {
        struct candidate *c = &b->c[--b->n];
        MPI_Comm_free(&c->comm);
        free(c->sample);
    }
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void shuffle(struct bench *b, int order[])
{
    for (int i = 0; i < b->n; i++) order[i] = i;
    for (int i = b->n - 1; i > 0; i--) {
        int k = (int)(tune_random(&b->random) % (unsigned)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

/* After some rounds those that are far behind are left out. */
static void drop_hopeless(struct bench *b, int rounds)
{
    double best = 1e30, v[64];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->n; i++) {
            memcpy(v, b->c[i].sample, (size_t)rounds * sizeof *v);
            double m = tune_median(v, rounds);
            if (!pass && m < best) best = m;
            if (pass && m > 2 * best) b->c[i].hopeless = true;
            b->c[i].median = m;
        }
}

static void measure(struct bench *b, int n)
{
    int order[CANDIDATES_MAX], reps[CANDIDATES_MAX];
    for (int i = 0; i < b->n; i++) {
        call(b, b->c[i].comm, n); /* compiles, connects */
        double t = sample(b, b->c[i].comm, n, 1);
        reps[i] = t < SAMPLE_S / 200 ? 200 : 1 + (int)(SAMPLE_S / t);
        b->c[i].hopeless = false;
    }
    for (int round = 0; round < b->o->rounds; round++) {
        shuffle(b, order);
        for (int k = 0; k < b->n; k++) {
            struct candidate *c = &b->c[order[k]];
            if (!c->hopeless) c->sample[round] = sample(b, c->comm, n, reps[order[k]]);
        }
        if (round == 2) drop_hopeless(b, 3);
    }
    for (int i = 0; i < b->n; i++)
        if (!b->c[i].hopeless) b->c[i].median = tune_median(b->c[i].sample, b->o->rounds);
}

/* The one chosen for the size before (-1: none), or else the first one in the list, unless it is clearly slower. */
static int winner(const struct bench *b, int before)
{
    double best = b->c[0].median;
    for (int i = 1; i < b->n; i++)
        if (b->c[i].median < best) best = b->c[i].median;
    if (before >= 0 && LEAD * b->c[before].median <= best) return before;
    int first = 0;
    while (LEAD * b->c[first].median > best) first++;
    return first;
}

/* ---- rules -------------------------------------------------------------------------------- */

static const char *size_text(int64_t n, char text[24])
{
    int unit = 0;
    while (unit < 2 && n % 1024 == 0) n /= 1024, unit++;
    snprintf(text, 24, "%lld%.1s", (long long)n, &"\0KM"[unit]);
    return text;
}

struct span { /* neighbouring sizes with the same choice */
    int winner;
    int64_t from, below; /* below 0: no end */
};

static void print_figures(FILE *f, const struct bench *b, int n, bool sized)
{
    char text[24];
    fprintf(f, "# %s, %d ranks", coll_kind_name(b->kind), b->size);
    if (sized) fprintf(f, ", %s", size_text(n, text));
    for (int i = 0; i < b->n; i++)
        fprintf(f, "%s %s %.2f us%s", i ? "," : ":", b->c[i].hint, 1e6 * b->c[i].median,
                b->c[i].hopeless ? " (3 samples)" : "");
    fputc('\n', f);
}

static void print_rule(FILE *f, const struct bench *b, const struct span *s, const char *ranks)
{
    char text[24];
    fprintf(f, "%s %s%s ranks %s", coll_kind_name(b->kind), b->place, coll_reduces(b->kind) ? " commutes" : "", ranks);
    if (s->from) fprintf(f, " from %s", size_text(s->from, text));
    if (s->below) fprintf(f, " below %s", size_text(s->below, text));
    fprintf(f, " : %s\n", b->c[s->winner].hint);
}

/* Is there time for more? Rank 0 decides for all. */
static bool time_left(const struct bench *b, double start)
{
    int yes = tune_now() - start < b->o->seconds;
    MPI_Bcast(&yes, 1, MPI_INT, 0, b->comm);
    return yes;
}

/* All sizes of the operation; rules of what was measured when the time is over. False then. */
static bool tune_kind(struct bench *b, FILE *f, const char *ranks, double start)
{
    bool sized = b->kind != COLL_BARRIER && !coll_has_blocks(b->kind), in_time = true;
    struct span span = {-1, 0, 0};
    for (int64_t n = sized ? 8 : V_BYTES; n <= (sized ? b->o->max_bytes : V_BYTES); n *= 4) {
        if (n * b->size > MEMORY_MAX) break;
        in_time = time_left(b, start);
        if (!in_time) break;
        measure(b, (int)n);
        int w = winner(b, span.winner);
        if (f && span.winner >= 0 && w != span.winner) {
            span.below = 2 * (n / 4);
            print_rule(f, b, &span, ranks);
        }
        if (w != span.winner) span = (struct span){w, span.winner < 0 ? 0 : 2 * (n / 4), 0};
        if (f) print_figures(f, b, (int)n, sized);
        if (!sized) break;
    }
    if (f && span.winner >= 0) print_rule(f, b, &span, ranks);
    return in_time;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Is `word` in the list "a,b,c"? NULL: the list of everything. */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == ',' || !p[n])) return true;
    return !list;
}

/* Which rules will be asked for by these ranks: near, far or leaders, as the library sees it. */
static void find_place(struct bench *b)
{
    MPI_Comm node;
    int rank, sum[2];
    const char *transports = getenv("TERN_TRANSPORTS");
    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    sum[0] = rank == 0;
    sum[1] = transports && *transports && !strstr(transports, "shm");
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_SUM, b->comm);
    b->nodes = sum[0];
    b->place = b->nodes == 1 ? sum[1] ? "far" : "near" : b->nodes < b->size ? "leaders" : "far";
}

static void open_buffers(struct bench *b)
{
    size_t most = (size_t)(b->o->max_bytes * b->size < MEMORY_MAX ? b->o->max_bytes * b->size : MEMORY_MAX);
    if (most < (size_t)b->o->max_bytes) most = (size_t)b->o->max_bytes;
    if (most < (size_t)(V_BYTES * b->size)) most = (size_t)(V_BYTES * b->size);
    b->send = calloc(1, most);
    b->recv = calloc(1, most);
    b->counts = calloc(2 * (size_t)b->size, sizeof *b->counts);
    b->c = calloc(CANDIDATES_MAX, sizeof *b->c);
    if (!b->send || !b->recv || !b->counts || !b->c) MPI_Abort(MPI_COMM_WORLD, 1);
    b->displs = b->counts + b->size;
    for (int i = 0; i < b->size; i++) {
        b->counts[i] = V_BYTES;
        b->displs[i] = i * V_BYTES;
    }
}

static void close_buffers(struct bench *b)
{
    free(b->send);
    free(b->recv);
    free(b->counts);
    free(b->c);
}

/* With the first `size` ranks of the world; the others wait, asleep, for the broadcast at the end. */
static bool tune_ranks(const struct tune_options *o, int size, int next, FILE *f, double start)
{
    struct bench b = {.o = o, .size = size, .random = o->seed};
    char ranks[32];
    bool in_time = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_split(MPI_COMM_WORLD, b.rank < size ? 0 : MPI_UNDEFINED, 0, &b.comm);
    snprintf(ranks, sizeof ranks, next > size + 1 ? "%d-%d" : "%d", size, next - 1);
    if (b.comm != MPI_COMM_NULL) {
        open_buffers(&b);
        find_place(&b);
    }
    for (size_t k = 0; k < ARRAY_LEN(measured) && in_time; k++) {
        b.kind = measured[k];
        if (!listed(o->operations, coll_kind_name(b.kind))) continue;
        if (f && !o->quiet)
            fprintf(stderr, "tern_tune: %.0f s: %s, %d ranks\n", tune_now() - start, coll_kind_name(b.kind), size);
        if (b.comm == MPI_COMM_NULL) continue;
        open_candidates(&b);
        if (b.n > 1) in_time = tune_kind(&b, f, ranks, start);
        close_candidates(&b);
    }
    if (b.comm != MPI_COMM_NULL) {
        close_buffers(&b);
        MPI_Comm_free(&b.comm);
    }
    MPI_Bcast(&in_time, 1, MPI_C_BOOL, 0, MPI_COMM_WORLD);
    return in_time;
}

/* The numbers of ranks to measure, ascending: those asked for, or 2, 4, 8 ... and all. Returns how many; -1: nonsense. */
static int choose_ranks(const struct tune_options *o, int all, int n[64])
{
    int k = 0;
    for (int i = 2; !o->ranks && i < all && k < 62; i *= 2) n[k++] = i;
    if (!o->ranks && all > 1) n[k++] = all;
    for (const char *p = o->ranks; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *end;
        long v = strtol(p, &end, 10);
        if ((*end && *end != ',') || v < 2 || v > all || k == 62 || (k && v <= n[k - 1])) return -1;
        n[k++] = (int)v;
    }
    return k;
}

static bool check_operations(const char *list)
{
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        bool known = false;
        for (size_t k = 0; k < ARRAY_LEN(measured); k++) {
            const char *name = coll_kind_name(measured[k]);
            known |= !strncmp(p, name, strlen(name)) && strchr(",", p[strlen(name)]);
        }
        if (!known) return false;
    }
    return true;
}

int tune_coll(const struct tune_options *o)
{
    int rank, all, n[64], good = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    int k = choose_ranks(o, all, n);
    if (k < 1 || !check_operations(o->operations)) {
        if (rank == 0) fprintf(stderr, "tern_tune: %s\n", all < 2 ? "start it with mpiexec -n 2 or more" :
                               k < 1 ? "--ranks must be ascending numbers from 2 to that of the job's ranks" :
                               "--ops names an operation that is not measured");
        return 2;
    }
    FILE *f = rank == 0 ? tune_output(o) : NULL;
    good = rank != 0 || f;
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!good) return 1;
    double start = tune_now();
    if (f) fprintf(f, "# Written by tern_tune, seed %u, %d rounds; for TERN_COLL_TABLE. See tern_tune(1).\n", o->seed, o->rounds);
    bool in_time = true;
    for (int i = 0; i < k && in_time; i++) in_time = tune_ranks(o, n[i], i + 1 < k ? n[i + 1] : 2 * n[i], f, start);
    if (f && !in_time) fprintf(f, "# The time (%.0f s) was over before everything was measured.\n", o->seconds);
    if (f && !in_time && !o->quiet) fprintf(stderr, "tern_tune: the time is over; what was measured is written\n");
    good = !f || tune_close(f);
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good ? 0 : 1;
}
