/* select.c - the table of choices. Rules are read from top to bottom; the first that fits decides. */
#include "coll/select.h"

#include "base/var.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY INT32_MAX
#define KB  INT64_C(1024)
#define ALL INT64_MAX

/*
 * Set by the `coll` benchmark with each algorithm forced in turn, 4 ranks on 2 cores over shared memory; e.g. bcast of
 * 1 MB: scatter 166 us, chain 266, binomial 555; reduce of 64 KB: halving 12, chain 28, binomial 29; allgather of 1 MB:
 * direct 619, doubling 715, ring 822, bruck 1121. Many ranks and other wires are not measured yet.
 */
static const struct rule {
    uint8_t kind;   /* enum coll_kind */
    int max_ranks;  /* up to so many ranks ... */
    int64_t below;  /* ... and fewer bytes than this (as in coll_shape.bytes) */
    const char *alg;
} rules[] = {
    {COLL_BARRIER, ANY, ALL, "dissemination"},
    {COLL_BCAST, ANY, 16 * KB, "binomial"},
    {COLL_BCAST, ANY, ALL, "scatter"},
    {COLL_REDUCE, ANY, 32 * KB, "binomial"},
    {COLL_REDUCE, ANY, ALL, "halving"},
    {COLL_ALLREDUCE, ANY, 16 * KB, "doubling"},
    {COLL_ALLREDUCE, ANY, ALL, "halving"},
    {COLL_GATHER, ANY, 4 * KB, "binomial"},
    {COLL_GATHER, ANY, ALL, "linear"},
    {COLL_GATHERV, ANY, ALL, "linear"},
    {COLL_SCATTER, ANY, 4 * KB, "binomial"},
    {COLL_SCATTER, ANY, ALL, "linear"},
    {COLL_SCATTERV, ANY, ALL, "linear"},
    {COLL_ALLGATHER, ANY, 4 * KB, "doubling"},
    {COLL_ALLGATHER, ANY, 4 * KB, "bruck"},
    {COLL_ALLGATHER, 64, ALL, "direct"},
    {COLL_ALLGATHER, ANY, ALL, "ring"},
    {COLL_ALLGATHERV, 64, ALL, "direct"},
    {COLL_ALLGATHERV, ANY, ALL, "ring"},
    {COLL_ALLTOALL, 4, ALL, "direct"},
    {COLL_ALLTOALL, ANY, 256, "bruck"},
    {COLL_ALLTOALL, 64, 32 * KB, "direct"},
    {COLL_ALLTOALL, ANY, ALL, "pairwise"},
    {COLL_ALLTOALLV, 64, ALL, "direct"},
    {COLL_ALLTOALLV, ANY, ALL, "pairwise"},
    {COLL_ALLTOALLW, 64, ALL, "direct"},
    {COLL_ALLTOALLW, ANY, ALL, "pairwise"},
    {COLL_REDUCE_SCATTER, 64, ALL, "direct"},
    {COLL_REDUCE_SCATTER, ANY, ALL, "tree"},
    {COLL_REDUCE_SCATTER_BLOCK, 8, ALL, "direct"},
    {COLL_REDUCE_SCATTER_BLOCK, ANY, 256, "tree"},
    {COLL_REDUCE_SCATTER_BLOCK, ANY, ALL, "direct"},
    {COLL_SCAN, ANY, 64 * KB, "doubling"},
    {COLL_SCAN, ANY, ALL, "chain"},
    {COLL_EXSCAN, ANY, 64 * KB, "doubling"},
    {COLL_EXSCAN, ANY, ALL, "chain"},
    {COLL_NEIGHBOR_ALLGATHER, ANY, ALL, "direct"},
    {COLL_NEIGHBOR_ALLGATHERV, ANY, ALL, "direct"},
    {COLL_NEIGHBOR_ALLTOALL, ANY, ALL, "direct"},
    {COLL_NEIGHBOR_ALLTOALLV, ANY, ALL, "direct"},
    {COLL_NEIGHBOR_ALLTOALLW, ANY, ALL, "direct"},
};

/* Asked first where messages cross a network (COLL_FAR), and each costs more than the bytes that come along: alltoall of
 * 16 ranks over TCP, 256 bytes: bruck 0.8 ms, direct 1.7; 4 KB: 1.4 and 2.2. */
static const struct rule far_rules[] = {
    {COLL_ALLTOALL, ANY, 8 * KB, "bruck"},
};

/* Between two groups: ranks of both, and bytes as in inter_key. Messages across are few with the leaders, but one after
 * the other. */
static const struct rule inter_rules[] = {
    {COLL_BARRIER, 8, ALL, "inter_direct"},
    {COLL_BARRIER, ANY, ALL, "inter_leader"},
    {COLL_BCAST, ANY, 64 * KB, "inter_leader"},
    {COLL_BCAST, ANY, ALL, "inter_scatter"},
    {COLL_REDUCE, ANY, 64 * KB, "inter_leader"},
    {COLL_REDUCE, ANY, ALL, "inter_chunks"},
    {COLL_ALLREDUCE, 8, 2 * KB, "inter_direct"},
    {COLL_ALLREDUCE, ANY, 64 * KB, "inter_leader"},
    {COLL_ALLREDUCE, ANY, ALL, "inter_chunks"},
    {COLL_GATHER, ANY, 4 * KB, "inter_leader"},
    {COLL_GATHER, ANY, ALL, "inter_linear"},
    {COLL_GATHERV, ANY, ALL, "inter_linear"},
    {COLL_SCATTER, ANY, 4 * KB, "inter_leader"},
    {COLL_SCATTER, ANY, ALL, "inter_linear"},
    {COLL_SCATTERV, ANY, ALL, "inter_linear"},
    {COLL_ALLGATHER, 8, 16 * KB, "inter_direct"},
    {COLL_ALLGATHER, ANY, 4 * KB, "inter_leader"},
    {COLL_ALLGATHER, ANY, ALL, "inter_ring"},
    {COLL_ALLGATHERV, 16, ALL, "inter_direct"},
    {COLL_ALLGATHERV, ANY, ALL, "inter_ring"},
    {COLL_ALLTOALL, 64, 32 * KB, "inter_direct"},
    {COLL_ALLTOALL, ANY, ALL, "inter_pairwise"},
    {COLL_ALLTOALLV, 64, ALL, "inter_direct"},
    {COLL_ALLTOALLV, ANY, ALL, "inter_pairwise"},
    {COLL_ALLTOALLW, 64, ALL, "inter_direct"},
    {COLL_ALLTOALLW, ANY, ALL, "inter_pairwise"},
    {COLL_REDUCE_SCATTER, ANY, ALL, "inter_leader"},
    {COLL_REDUCE_SCATTER_BLOCK, 16, ALL, "inter_direct"},
    {COLL_REDUCE_SCATTER_BLOCK, ANY, 16 * KB, "inter_leader"},
    {COLL_REDUCE_SCATTER_BLOCK, ANY, ALL, "inter_direct"},
};

/* The variable of an operation, indexed by enum coll_kind. */
static const enum var_id variable[COLL_KINDS] = {
    [COLL_BARRIER] = VAR_COLL_BARRIER,
    [COLL_BCAST] = VAR_COLL_BCAST,
    [COLL_REDUCE] = VAR_COLL_REDUCE,
    [COLL_ALLREDUCE] = VAR_COLL_ALLREDUCE,
    [COLL_GATHER] = VAR_COLL_GATHER,
    [COLL_GATHERV] = VAR_COLL_GATHERV,
    [COLL_SCATTER] = VAR_COLL_SCATTER,
    [COLL_SCATTERV] = VAR_COLL_SCATTERV,
    [COLL_ALLGATHER] = VAR_COLL_ALLGATHER,
    [COLL_ALLGATHERV] = VAR_COLL_ALLGATHERV,
    [COLL_ALLTOALL] = VAR_COLL_ALLTOALL,
    [COLL_ALLTOALLV] = VAR_COLL_ALLTOALLV,
    [COLL_ALLTOALLW] = VAR_COLL_ALLTOALLW,
    [COLL_REDUCE_SCATTER] = VAR_COLL_REDUCE_SCATTER,
    [COLL_REDUCE_SCATTER_BLOCK] = VAR_COLL_REDUCE_SCATTER_BLOCK,
    [COLL_SCAN] = VAR_COLL_SCAN,
    [COLL_EXSCAN] = VAR_COLL_EXSCAN,
    [COLL_NEIGHBOR_ALLGATHER] = VAR_COLL_NEIGHBOR_ALLGATHER,
    [COLL_NEIGHBOR_ALLGATHERV] = VAR_COLL_NEIGHBOR_ALLGATHERV,
    [COLL_NEIGHBOR_ALLTOALL] = VAR_COLL_NEIGHBOR_ALLTOALL,
    [COLL_NEIGHBOR_ALLTOALLV] = VAR_COLL_NEIGHBOR_ALLTOALLV,
    [COLL_NEIGHBOR_ALLTOALLW] = VAR_COLL_NEIGHBOR_ALLTOALLW,
};

/* What the user wants, if it can be had for this shape; -1 if not. */
static int forced(const struct coll_shape *s)
{
    int alg = coll_alg_find(s->kind, var_text(variable[s->kind])); /* "auto" is no algorithm */
    return alg >= 0 && coll_alg_fits(alg, s) ? alg : -1;
}

static int by_rule(const struct coll_shape *s, const struct rule *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &table[i];
        if (r->kind != s->kind || s->size > r->max_ranks || s->bytes >= r->below) continue;
        int alg = coll_alg_find(s->kind, r->alg);
        if (coll_alg_fits(alg, s)) return alg;
    }
    return -1;
}

/* The shape with its ranks and bytes as both groups see them alike. */
static struct coll_shape inter_key(const struct coll_shape *s)
{
    struct coll_shape key = *s;
    key.size = s->size + s->remote;
    if (s->from > s->bytes) key.bytes = s->from;                                  /* the larger direction */
    if (s->kind == COLL_REDUCE_SCATTER_BLOCK) key.bytes = s->bytes * s->size;     /* the whole vector */
    if (coll_has_blocks((enum coll_kind)s->kind)) key.bytes = 0;
    return key;
}

static int by_inter_rule(const struct coll_shape *s)
{
    struct coll_shape key = inter_key(s);
    return by_rule(&key, inter_rules, ARRAY_LEN(inter_rules));
}

void coll_select(struct coll_shape *s)
{
    int alg = forced(s);
    if (alg < 0 && s->remote) alg = by_inter_rule(s);
    if (alg < 0 && (s->flags & COLL_FAR)) alg = by_rule(s, far_rules, ARRAY_LEN(far_rules));
    if (alg < 0) alg = by_rule(s, rules, ARRAY_LEN(rules));
    assert(alg >= 0); /* the last rule of every operation fits everything: a test sees to it */
    s->alg = (uint8_t)alg;
    s->segment = var_int(VAR_COLL_SEGMENT);
    s->radix = 4;
}

static void print_rules(FILE *f, const struct rule *table, size_t n, const char *where)
{
    for (size_t i = 0; i < n; i++) {
        const struct rule *r = &table[i];
        fprintf(f, "%-22s%s", coll_kind_name(r->kind), where);
        if (r->max_ranks != ANY) fprintf(f, " up to %d ranks", r->max_ranks);
        if (r->below != ALL) fprintf(f, " below %lld bytes", (long long)r->below);
        fprintf(f, ": %s\n", r->alg);
    }
}

char *coll_select_print(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    print_rules(f, far_rules, ARRAY_LEN(far_rules), " over a network");
    print_rules(f, inter_rules, ARRAY_LEN(inter_rules), " between two groups");
    print_rules(f, rules, ARRAY_LEN(rules), "");
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}
