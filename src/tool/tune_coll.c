/*
 * tune_coll.c - measures the algorithms of the collectives and their ways inside a node, and writes a table of rules.
 *
 * For each number of ranks, operation and size, all algorithms and ways that can be used are measured in
 * rounds, each once a round and in an order of its own, so that a noisy moment hits all of them. The
 * figure of an algorithm is the median over the rounds of the slowest rank's time. Each algorithm has a
 * communicator that asks for it by hint, so the very path of a user's call is measured.
 *
 * All ranks take the same decisions: times are combined by MPI_Allreduce, the random numbers are the same
 * everywhere, and whether there is time left is what rank 0 says.
 */
#include "tool/tune_bench.h"

#include "base/var.h"
#include "coll/places.h"
#include "proc/job_block.h"
#include "proc/proc.h"
#include "transport/find.h"
#include <stdlib.h>
#include <string.h>

#define SAMPLE_S 0.001 /* a sample is repetitions of about so long */

/* ---- one call ----------------------------------------------------------------------- */

/* Seconds of a call at the slowest rank, over `reps` of them. */
static double sample(const struct bench *b, MPI_Comm c, int n, int reps)
{
    MPI_Barrier(b->comm);
    double start = tune_now(), slowest;
    for (int i = 0; i < reps; i++) tune_call(b, c, n);
    double mine = (tune_now() - start) / reps;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    return slowest;
}

/* ---- candidates ----------------------------------------------------------------------- */

static struct coll_shape shape_of(const struct bench *b, int alg, int64_t bytes)
{
    bool reduces = coll_reduces(b->kind);
    return (struct coll_shape){.kind = (uint8_t)b->kind,
                               .alg = (uint8_t)alg,
                               .rank = b->rank,
                               .size = b->size,
                               .nodes = b->nodes,
                               .domains = b->domains,
                               .flags = (uint16_t)b->mixed,
                               .radix = 2,
                               .bytes = bytes,
                               .grain = reduces ? 8 : 1,
                               .segment = 4096};
}

static uint32_t operations_of(const struct bench *b, const struct coll_shape *s)
{
    struct goal_prog *prog = NULL;
    if (coll_has_blocks((enum coll_kind)s->kind) || coll_compile(s, &b->given, &prog)) return 0;
    uint32_t n = prog->head.op_count;
    goal_unref(prog);
    return n;
}

/* Does an algorithm take notice of the radix, or the segment? At any rank. */
static void depends(const struct bench *b, int alg, bool *radix, bool *segment)
{
    struct coll_shape s = shape_of(b, alg, 1 << 20);
    *radix = *segment = false;
    if ((coll_algs[alg].flags & ALG_NODES) && !b->given.node)
        return; /* the launcher does not say where the ranks are */
    uint32_t plain = operations_of(b, &s);
    s.radix = 8;
    int differs[2] = {operations_of(b, &s) != plain, 0};
    s.radix = 2;
    s.segment = 65536;
    differs[1] = operations_of(b, &s) != plain;
    MPI_Allreduce(MPI_IN_PLACE, differs, 2, MPI_INT, MPI_MAX, b->comm);
    *radix = differs[0];
    *segment = differs[1];
}

static void add_candidate(struct bench *b, struct coll_choice choice)
{
    if (b->n == CANDIDATES_MAX) return;
    struct candidate *c = &b->c[b->n++];
    char key[64];
    MPI_Info info;
    c->choice = choice;
    const char *way = choice.way ? coll_ways[choice.way].name : "unasked";
    int n = snprintf(c->hint, sizeof c->hint, "%s", choice.alg < 0 ? way : coll_algs[choice.alg].name);
    if (choice.radix) n += snprintf(c->hint + n, sizeof c->hint - (size_t)n, " radix %d", choice.radix);
    if (choice.segment)
        snprintf(c->hint + n, sizeof c->hint - (size_t)n, " segment %lldK", (long long)(choice.segment >> 10));
    snprintf(key, sizeof key, "tern_coll_%s", coll_kind_name(b->kind));
    MPI_Info_create(&info);
    if (choice.alg >= 0 || choice.way) MPI_Info_set(info, key, c->hint);
    MPI_Comm_dup_with_info(b->comm, info, &c->comm);
    MPI_Info_free(&info);
    c->sample = calloc((size_t)b->o->rounds, sizeof *c->sample);
    if (!c->sample) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Inside a node: what the library does by itself, which is the slots as far as they reach; and the other ways without messages. */
static void add_ways(struct bench *b)
{
    add_candidate(b, (struct coll_choice){.alg = -1});
    for (int w = COLL_WAY_WIDE; w <= COLL_WAY_ONCE; w++)
        if (coll_way_is_of((enum coll_way)w, b->kind, COLL_CALLS_BLOCKING))
            add_candidate(b, (struct coll_choice){.alg = -1, .way = (uint8_t)w});
}

static void open_candidates(struct bench *b)
{
    static const int radixes[] = {2, 4, 8};
    static const int64_t segments[] = {8 << 10, 32 << 10, 128 << 10};
    if (b->nodes == 1 && strcmp(b->place, "far")) add_ways(b);
    b->algs = b->n;
    for (int alg = 0; alg < coll_algs_count; alg++) {
        struct coll_shape s = shape_of(b, alg, 0);
        bool radix, segment;
        if (!coll_alg_fits(alg, &s)) continue;
        depends(b, alg, &radix, &segment);
        for (int i = 0; i < (radix ? 3 : 1); i++)
            for (int k = 0; k < (segment ? 3 : 1); k++)
                if (radixes[i] <= b->size || !i)
                    add_candidate(b, (struct coll_choice){.alg = alg,
                                                          .radix = radix ? radixes[i] : 0,
                                                          .segment = segment ? segments[k] : 0});
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

/* After some rounds those that are far behind the fastest algorithm are left out. */
static void drop_slow(struct bench *b, int rounds)
{
    double best = 1e30, v[64];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->n; i++) {
            memcpy(v, b->c[i].sample, (size_t)rounds * sizeof *v);
            double m = tune_median(v, rounds);
            if (!pass && i >= b->algs && m < best) best = m;
            if (pass && i >= b->algs && m > 2 * best) b->c[i].too_slow = true;
            b->c[i].median = m;
        }
}

/* Is there time for more? Rank 0 decides for all. */
static bool time_left(const struct bench *b)
{
    int yes = tune_now() - b->start < b->o->seconds;
    MPI_Bcast(&yes, 1, MPI_INT, 0, b->comm);
    return yes;
}

/* Compiles, connects, and finds out how many calls a sample is. False: the time is over. */
static bool warm_up(struct bench *b, int n, int reps[])
{
    for (int i = 0; i < b->n; i++) {
        if (!time_left(b)) return false;
        tune_call(b, b->c[i].comm, n);
        double t = sample(b, b->c[i].comm, n, 1);
        reps[i] = t < SAMPLE_S / 200 ? 200 : 1 + (int)(SAMPLE_S / t);
        b->c[i].too_slow = false;
    }
    return true;
}

/* False: the time was over before there were figures. */
static bool measure(struct bench *b, int n)
{
    int order[CANDIDATES_MAX], reps[CANDIDATES_MAX];
    if (!warm_up(b, n, reps)) return false;
    for (int round = 0; round < b->o->rounds; round++) {
        shuffle(b, order);
        if (!time_left(b)) return false;
        for (int k = 0; k < b->n; k++) {
            struct candidate *c = &b->c[order[k]];
            if (!c->too_slow) c->sample[round] = sample(b, c->comm, n, reps[order[k]]);
        }
        if (round == 2) drop_slow(b, 3);
    }
    for (int i = 0; i < b->n; i++)
        if (!b->c[i].too_slow) b->c[i].median = tune_median(b->c[i].sample, b->o->rounds);
    return true;
}

/* All sizes of the operation; rules of what was measured when the time is over. False then. */
static bool tune_kind(struct bench *b, FILE *f, const char *ranks)
{
    bool sized = tune_has_sizes(b->kind), in_time = true;
    int step = b->o->quick ? 16 : 4;
    struct span span = {{-1, 0}, 0, 0};
    for (int64_t n = sized ? 8 : V_BYTES; n <= (sized ? tune_most(b) : V_BYTES); n *= step) {
        in_time = measure(b, (int)n);
        if (!in_time) break;
        struct choice is = tune_winner(b, span.is);
        int64_t border = step == 4 ? n / 2 : n / 4; /* between the two sizes */
        bool first = span.is.alg < 0, changes = is.alg != span.is.alg || is.faster != span.is.faster;
        span.below = border;
        if (f && !first && changes) tune_print_rule(f, b, &span, ranks);
        if (changes) span = (struct span){is, first ? 0 : border, 0};
        if (f) tune_print_figures(f, b, (int)n);
        if (!sized) break;
    }
    span.below = 0;
    if (f && span.is.alg >= 0) tune_print_rule(f, b, &span, ranks);
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

/* Nodes, and whether memory is not shared, as MPI tells. */
static bool count_nodes(struct bench *b)
{
    MPI_Comm node;
    int rank, sum[2];
    const char *transports = getenv("TERN_TRANSPORTS");
    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    sum[0] = rank == 0;
    sum[1] = transports && *transports && !tp_list_shares(transports);
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_SUM, b->comm);
    b->nodes = b->domains = sum[0];
    return sum[1];
}

/* Under Tern's own launcher, which nodes and domains: by the code that the library has for that. */
static void ask_launcher(struct bench *b)
{
    struct coll_comm cc = {0};
    struct comm first = {.rank = b->rank, .size = b->size};
    if (!getenv(JOB_ENV_FD) || var_open() || proc_open()) return;
    first.map = first.local = rankmap_line(b->size, 0, 1); /* of MPI_COMM_WORLD */
    if (first.map && !coll_places_open() && coll_places_find(&first, &cc)) {
        b->nodes = cc.nodes;
        b->domains = cc.domains;
        b->mixed = (cc.mixed ? COLL_MIXED : 0) | (cc.shuffled ? COLL_SHUFFLED : 0);
        b->given = (struct coll_given){.node = cc.node_of, .domain = cc.domain_of};
    }
    rankmap_unref(first.map);
    proc_close();
}

/* Which rules will be asked for by these ranks: near, far or leaders, as the library sees it. */
static void find_place(struct bench *b)
{
    bool apart = count_nodes(b);
    ask_launcher(b);
    if (b->domains > b->nodes && b->domains < b->size)
        b->place = "domain_leaders";
    else if (b->nodes == 1)
        b->place = apart ? "far" : "near";
    else
        b->place = b->nodes < b->size ? "leaders" : "far";
}

/* With the first `size` ranks of the world; the others wait, asleep, for the broadcast at the end. */
static bool tune_ranks(const struct tune_options *o, int size, int next, FILE *f, double start)
{
    struct bench b = {.o = o, .size = size, .random = o->seed, .start = start};
    char ranks[32];
    bool in_time = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_split(MPI_COMM_WORLD, b.rank < size ? 0 : MPI_UNDEFINED, 0, &b.comm);
    snprintf(ranks, sizeof ranks, next > size + 1 ? "%d-%d" : "%d", size, next - 1);
    if (b.comm != MPI_COMM_NULL) {
        tune_buffers_open(&b);
        find_place(&b);
    }
    for (size_t k = 0; k < tune_measured_count && in_time; k++) {
        b.kind = tune_measured[k];
        if (!listed(o->operations, coll_kind_name(b.kind))) continue;
        if (f && !o->quiet)
            fprintf(stderr, "tern_tune: %.0f s of at most %.0f: %s, %d ranks\n", tune_now() - start, o->seconds,
                    coll_kind_name(b.kind), size);
        if (b.comm == MPI_COMM_NULL) continue;
        open_candidates(&b);
        if (b.n - b.algs > 1) in_time = tune_kind(&b, f, ranks);
        close_candidates(&b);
    }
    if (b.comm != MPI_COMM_NULL) {
        tune_buffers_close(&b);
        free((void *)b.given.node);
        free((void *)b.given.domain);
        MPI_Comm_free(&b.comm);
    }
    MPI_Bcast(&in_time, 1, MPI_C_BOOL, 0, MPI_COMM_WORLD);
    return in_time;
}

/* The numbers of ranks to measure, ascending: those asked for, or 2, 4, 8 ... and all. Returns how many; -1: nonsense.
 */
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
        for (size_t k = 0; k < tune_measured_count; k++) {
            const char *name = coll_kind_name(tune_measured[k]);
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
        if (rank == 0)
            fprintf(stderr, "tern_tune: %s\n",
                    all < 2 ? "start it with mpiexec -n 2 or more"
                    : k < 1 ? "--ranks must be ascending numbers from 2 to that of the job's ranks"
                            : "--ops names an operation that is not measured");
        return 2;
    }
    FILE *f = rank == 0 ? tune_output(o) : NULL;
    good = rank != 0 || f;
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!good) return 1;
    double start = tune_now();
    if (f)
        fprintf(f, "# Written by tern_tune, seed %u, %d rounds; for TERN_COLL_TABLE. See tern_tune(1).\n", o->seed,
                o->rounds);
    bool in_time = true;
    for (int i = 0; i < k && in_time; i++) in_time = tune_ranks(o, n[i], i + 1 < k ? n[i + 1] : 2 * n[i], f, start);
    if (f && !in_time) fprintf(f, "# The time (%.0f s) was over before everything was measured.\n", o->seconds);
    if (f && !in_time && !o->quiet) fprintf(stderr, "tern_tune: the time is over; what was measured is written\n");
    double took = tune_now() - start;
    good = !f || tune_close(f);
    if (f && good && !o->quiet) fprintf(stderr, "tern_tune: done in %.0f s\n", took);
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good ? 0 : 1;
}
