/*
 * select.c - see select.h. The built-in table is read at start by the same code as a user's.
 */
#include "coll/select.h"

#include "base/err.h"
#include "base/var.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Set by the `coll` benchmark with each algorithm forced in turn, 4 ranks on 2 cores over shared memory; e.g. bcast of
 * 1 MB: scatter 166 us, chain 266, binomial 555; reduce of 64 KB: halving 12, chain 28, binomial 29; allgather of 1 MB:
 * direct 619, doubling 715, ring 822, bruck 1121. Over TCP a message costs more than the bytes that come along: alltoall
 * of 16 ranks, 256 bytes: bruck 0.8 ms, direct 1.7; 4 KB: 1.4 and 2.2. tern_tune measures all this on another machine.
 * With many ranks the connections count, of which every pair needs one and Bruck's alltoall makes few: 512 ranks on 2 cores,
 * 256 bytes, the first time: bruck 0.12 s, pairwise 17; later, 100 ranks: 16 ms and 45 (bench/mpi/scale.c).
 * Those for `leaders` follow from the number of messages that cross the network, and those for `domain_leaders` from
 * that of messages between caches; they are not measured.
 */
static const char builtin[] =
    "barrier domain_leaders ranks 32+ : domain_leaders\n"
    "barrier leaders : leaders\n"
    "barrier : dissemination\n"
    "bcast domain_leaders ranks 32+ below 64K : domain_leaders\n"
    "bcast leaders below 64K : leaders\n"
    "bcast below 16K : binomial\n"
    "bcast ranks 1-2 : binomial\n" /* one message */
    "bcast : scatter\n"
    "reduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
    "reduce leaders below 64K : leaders\n"
    "reduce below 32K : binomial\n"
    "reduce : halving\n"
    "allreduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
    "allreduce leaders below 64K : leaders\n"
    "allreduce below 16K : doubling\n"
    "allreduce : halving\n"
    "gather leaders below 4K : leaders\n"
    "gather below 4K : binomial\n"
    "gather : linear\n"
    "gatherv : linear\n"
    "scatter leaders below 4K : leaders\n"
    "scatter below 4K : binomial\n"
    "scatter : linear\n"
    "scatterv : linear\n"
    "allgather leaders below 4K : leaders\n"
    "allgather below 4K : doubling\n" /* where it fits */
    "allgather below 4K : bruck\n"
    "allgather ranks 1-64 : direct\n"
    "allgather : ring\n"
    "allgatherv ranks 1-64 : direct\n"
    "allgatherv : ring\n"
    "alltoall far below 8K : bruck\n"
    "alltoall ranks 1-4 : direct\n"
    "alltoall below 256 : bruck\n"
    "alltoall ranks 65+ below 1K : bruck\n"
    "alltoall ranks 257+ below 4K : bruck\n"
    "alltoall ranks 1-64 below 32K : direct\n"
    "alltoall : pairwise\n"
    "alltoallv ranks 1-64 : direct\n"
    "alltoallv : pairwise\n"
    "alltoallw ranks 1-64 : direct\n"
    "alltoallw : pairwise\n"
    "reduce_scatter ranks 1-64 : direct\n"
    "reduce_scatter : tree\n"
    "reduce_scatter_block ranks 1-8 : direct\n"
    "reduce_scatter_block below 256 : tree\n"
    "reduce_scatter_block : direct\n"
    "scan below 64K : doubling\n"
    "scan : chain\n"
    "exscan below 64K : doubling\n"
    "exscan : chain\n"
    "neighbor_allgather : direct\n"
    "neighbor_allgatherv : direct\n"
    "neighbor_alltoall : direct\n"
    "neighbor_alltoallv : direct\n"
    "neighbor_alltoallw : direct\n"
    /* Between two groups: messages across are few with the leaders, but one after the other. 4 and 4 ranks on 2 busy
     * cores: allreduce of 8 B: leader 159 us, direct 274; of 1 MB: 9.7 ms, chunks 11.5; gather of 4 KB: linear 137 us,
     * leader 232. 2 and 2: allreduce of 8 B: direct 55 us, leader 99; reduce of 1 MB: chunks 1.1 ms, leader 1.7. */
    "barrier ranks 1-8 : inter_direct\n"
    "barrier : inter_leader\n"
    "bcast below 64K : inter_leader\n"
    "bcast : inter_scatter\n"
    "reduce below 64K : inter_leader\n"
    "reduce ranks 1-4 : inter_chunks\n"
    "reduce : inter_leader\n"
    "allreduce ranks 1-4 below 8K : inter_direct\n"
    "allreduce : inter_leader\n"
    "gather ranks 1-16 : inter_linear\n"
    "gather below 4K : inter_leader\n"
    "gather : inter_linear\n"
    "gatherv : inter_linear\n"
    "scatter ranks 1-16 : inter_linear\n"
    "scatter below 4K : inter_leader\n"
    "scatter : inter_linear\n"
    "scatterv : inter_linear\n"
    "allgather ranks 1-8 below 16K : inter_direct\n"
    "allgather below 4K : inter_leader\n"
    "allgather : inter_ring\n"
    "allgatherv ranks 1-16 : inter_direct\n"
    "allgatherv : inter_ring\n"
    "alltoall ranks 1-64 below 32K : inter_direct\n"
    "alltoall : inter_pairwise\n"
    "alltoallv ranks 1-64 : inter_direct\n"
    "alltoallv : inter_pairwise\n"
    "alltoallw ranks 1-64 : inter_direct\n"
    "alltoallw : inter_pairwise\n"
    "reduce_scatter : inter_leader\n"
    "reduce_scatter_block ranks 1-16 : inter_direct\n"
    "reduce_scatter_block below 16K : inter_leader\n"
    "reduce_scatter_block : inter_direct\n";

static struct coll_table own, users; /* users: of TERN_COLL_TABLE */
static uint64_t digest;

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

/* ---- the tables ------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const char *text)
{
    for (; *text; text++) h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return (h ^ '\n') * UINT64_C(1099511628211);
}

/* Of the table, and of each variable that says of itself that it has to be equal on all ranks. */
static int make_digest(void)
{
    char *text = coll_table_print(&users);
    if (!text) return err_set(TERN_ERR_NOMEM, "no memory for the table of collectives");
    digest = mix(UINT64_C(14695981039346656037), text);
    free(text);
    for (int id = 0; id < VAR_COUNT; id++)
        if (strstr(var_table[id].meaning, "equal on all ranks")) digest = mix(digest, var_text((enum var_id)id));
    return 0;
}

int coll_select_open(void)
{
    const char *path = var_text(VAR_COLL_TABLE);
    if (var_int(VAR_COLL_RADIX) < 2 || var_int(VAR_COLL_RADIX) > COLL_RADIX_MAX)
        return err_set(TERN_ERR_ARG, "variable TERN_COLL_RADIX: %s is not 2 to %d", var_text(VAR_COLL_RADIX), COLL_RADIX_MAX);
    int rc = coll_table_read_checked(&own, builtin, "the built-in table of collectives");
    if (!rc && *path) rc = coll_table_load(&users, path);
    return rc ? rc : make_digest();
}

void coll_select_close(void)
{
    coll_table_free(&own);
    coll_table_free(&users);
}

uint64_t coll_select_digest(void) { return digest; }

/* ---- hints ------------------------------------------------------------------- */

#define HINT "tern_coll_"

static bool read_hint(enum coll_kind kind, const char *value, struct coll_choice *c)
{
    bool good = !coll_choice_read(kind, value, HINT, c);
    if (!good) err_clear();
    return good;
}

bool coll_select_hint(const char *key, const char *value)
{
    struct coll_choice c;
    if (strncmp(key, HINT, strlen(HINT))) return false;
    for (int k = 0; k < COLL_KINDS; k++)
        if (!strcmp(key + strlen(HINT), coll_kind_name((enum coll_kind)k))) return read_hint((enum coll_kind)k, value, &c);
    return false;
}

void coll_select_hints(const struct info *hints, struct coll_choice wanted[COLL_KINDS])
{
    for (int k = 0; k < COLL_KINDS; k++) {
        char key[64];
        snprintf(key, sizeof key, HINT "%s", coll_kind_name((enum coll_kind)k));
        const char *value = info_get(hints, key);
        if (!value || !read_hint((enum coll_kind)k, value, &wanted[k])) wanted[k] = (struct coll_choice){.alg = -1};
    }
}

/* ---- choosing ------------------------------------------------------------------ */

static int by_variable(enum coll_kind k)
{
    return coll_alg_find(k, var_text(variable[k])); /* "auto" is no algorithm */
}

uint32_t coll_select_forced(const struct coll_choice wanted[COLL_KINDS])
{
    uint32_t kinds = 0;
    for (int k = 0; k < COLL_KINDS; k++)
        if ((wanted && wanted[k].alg >= 0) || (var_is_set(variable[k]) && by_variable((enum coll_kind)k) >= 0))
            kinds |= UINT32_C(1) << k;
    return kinds;
}

uint32_t coll_select_tabled(void)
{
    uint32_t kinds = 0;
    for (size_t i = 0; i < users.n; i++)
        if (users.rule[i].use.messages) kinds |= UINT32_C(1) << users.rule[i].kind;
    return kinds;
}

bool coll_select_messages(const struct coll_shape *s)
{
    const struct coll_rule *r = coll_table_find(&users, s);
    return r && r->use.messages;
}

static bool fits(int alg, const struct coll_shape *s) { return alg >= 0 && coll_alg_fits(alg, s); }

/* Between two groups: the shape with its ranks and bytes as both see them alike. */
static struct coll_shape inter_key(const struct coll_shape *s)
{
    struct coll_shape key = *s;
    key.size = s->size + s->remote;
    key.nodes = 1; /* each group knows its own only */
    key.domains = 0;
    if (s->from > s->bytes) key.bytes = s->from;                              /* the larger direction */
    if (s->kind == COLL_REDUCE_SCATTER_BLOCK) key.bytes = s->bytes * s->size; /* the whole vector */
    if (coll_has_blocks((enum coll_kind)s->kind)) key.bytes = 0;
    return key;
}

static struct coll_choice choose(const struct coll_shape *s, const struct coll_choice *wanted)
{
    struct coll_choice by_var = {.alg = by_variable((enum coll_kind)s->kind)};
    if (wanted && fits(wanted[s->kind].alg, s)) return wanted[s->kind];
    if (fits(by_var.alg, s)) return by_var;
    struct coll_shape key = s->remote ? inter_key(s) : *s;
    const struct coll_rule *r = coll_table_find(&users, &key);
    if (!r) r = coll_table_find(&own, &key);
    assert(r); /* the last rule of every operation fits everything: a test sees to it */
    return r->use;
}

/* What of a number decides: the user's variable, the rule, or the variable's default. */
static int64_t decide(enum var_id id, int64_t by_rule) { return by_rule && !var_is_set(id) ? by_rule : var_int(id); }

void coll_select(struct coll_shape *s, const struct coll_choice wanted[COLL_KINDS])
{
    struct coll_choice c = choose(s, wanted);
    s->alg = (uint8_t)c.alg;
    s->segment = decide(VAR_COLL_SEGMENT, c.segment);
    s->radix = (int32_t)decide(VAR_COLL_RADIX, c.radix);
}

/* ---- text ------------------------------------------------------------------------- */

char *coll_select_print(void)
{
    char *text = NULL, *a = coll_table_print(&users), *b = coll_table_print(&own);
    if (a && b && asprintf(&text, "%s%s", a, b) < 0) text = NULL;
    free(a);
    free(b);
    return text;
}

char *coll_select_print_algs(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    for (int i = 0; i < coll_algs_count; i++) {
        const struct coll_alg *a = &coll_algs[i];
        fprintf(f, "%-22s %-14s %s%s%s%s%s%s\n", coll_kind_name(a->kind), a->name, a->meaning,
                a->flags & ALG_COMMUTES ? "; not for operators that do not commute" : "",
                a->flags & ALG_EXACT ? "; only where any order gives the same bits" : "",
                a->flags & ALG_POWER2 ? "; only for 2, 4, 8 ... ranks" : "",
                a->flags & ALG_NODES ? "; only on several nodes" : "",
                a->flags & ALG_DOMAINS ? "; only where a node has several domains (TERN_COLL_DOMAINS)" : "");
    }
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}
