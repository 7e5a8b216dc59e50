/*
 * select.c - see select.h. The built-in rules of an operation are read by the same code as a user's, when the first
 * algorithm of that operation is chosen: a process that starts pays for none of them.
 */
#include "coll/select.h"

#include "base/err.h"
#include "base/text.h"
#include "base/var.h"
#include <pthread.h>
#include <stdatomic.h>
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
 * Ranks that share cores are done when all the work is, so few messages count. 8 and 16 ranks on 2 cores, 64 KB: bcast by binomial 119 and
 * 216 us, by scatter 1136 and 1118; reduce by binomial 135 and 260, by halving 998 and 4600; 4 ranks: reduce 54 and 29.
 * Those for `leaders` follow from the number of messages that cross the network, and those for `domain_leaders` from
 * that of messages between caches; they are not measured.
 *
 * Between two groups (inter_...): messages across are few with the leaders, but one after the other. 4 and 4 ranks on 2 busy
 * cores: allreduce of 8 B: leader 159 us, direct 274; of 1 MB: 9.7 ms, chunks 11.5; gather of 4 KB: linear 137 us,
 * leader 232. 2 and 2: allreduce of 8 B: direct 55 us, leader 99; reduce of 1 MB: chunks 1.1 ms, leader 1.7.
 */
static const char *const builtin[COLL_KINDS] = {
    [COLL_BARRIER] = "barrier domain_leaders ranks 32+ : domain_leaders\n"
                     "barrier leaders : leaders\n"
                     "barrier : dissemination\n"
                     "barrier ranks 1-8 : inter_direct\n"
                     "barrier : inter_leader\n",
    [COLL_BCAST] = "bcast domain_leaders ranks 32+ below 64K : domain_leaders\n"
                   "bcast leaders below 64K : leaders\n"
                   "bcast below 16K : binomial\n"
                   "bcast ranks 1-2 : binomial\n" /* one message */
                   "bcast oversubscribed ranks 5+ : binomial\n"
                   "bcast : scatter\n"
                   "bcast below 64K : inter_leader\n"
                   "bcast : inter_scatter\n",
    [COLL_REDUCE] = "reduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
                    "reduce leaders below 64K : leaders\n"
                    "reduce below 32K : binomial\n"
                    "reduce oversubscribed ranks 5+ : binomial\n"
                    "reduce : halving\n"
                    "reduce below 64K : inter_leader\n"
                    "reduce ranks 1-4 : inter_chunks\n"
                    "reduce : inter_leader\n",
    [COLL_ALLREDUCE] = "allreduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
                       "allreduce leaders below 64K : leaders\n"
                       "allreduce below 16K : doubling\n"
                       "allreduce : halving\n"
                       "allreduce ranks 1-4 below 8K : inter_direct\n"
                       "allreduce : inter_leader\n",
    [COLL_GATHER] = "gather leaders below 4K : leaders\n"
                    "gather below 4K : binomial\n"
                    "gather : linear\n"
                    "gather ranks 1-16 : inter_linear\n"
                    "gather below 4K : inter_leader\n"
                    "gather : inter_linear\n",
    [COLL_GATHERV] = "gatherv : linear\n"
                     "gatherv : inter_linear\n",
    [COLL_SCATTER] = "scatter leaders below 4K : leaders\n"
                     "scatter below 4K : binomial\n"
                     "scatter : linear\n"
                     "scatter ranks 1-16 : inter_linear\n"
                     "scatter below 4K : inter_leader\n"
                     "scatter : inter_linear\n",
    [COLL_SCATTERV] = "scatterv : linear\n"
                      "scatterv : inter_linear\n",
    [COLL_ALLGATHER] = "allgather leaders below 4K : leaders\n"
                       "allgather below 4K : doubling\n" /* where it fits */
                       "allgather below 4K : bruck\n"
                       "allgather ranks 1-64 : direct\n"
                       "allgather : ring\n"
                       "allgather ranks 1-8 below 16K : inter_direct\n"
                       "allgather below 4K : inter_leader\n"
                       "allgather : inter_ring\n",
    [COLL_ALLGATHERV] = "allgatherv ranks 1-64 : direct\n"
                        "allgatherv : ring\n"
                        "allgatherv ranks 1-16 : inter_direct\n"
                        "allgatherv : inter_ring\n",
    [COLL_ALLTOALL] = "alltoall far below 8K : bruck\n"
                      "alltoall ranks 1-4 : direct\n"
                      "alltoall below 256 : bruck\n"
                      "alltoall ranks 65+ below 1K : bruck\n"
                      "alltoall ranks 257+ below 4K : bruck\n"
                      "alltoall ranks 1-64 below 32K : direct\n"
                      "alltoall : pairwise\n"
                      "alltoall ranks 1-64 below 32K : inter_direct\n"
                      "alltoall : inter_pairwise\n",
    [COLL_ALLTOALLV] = "alltoallv ranks 1-64 : direct\n"
                       "alltoallv : pairwise\n"
                       "alltoallv ranks 1-64 : inter_direct\n"
                       "alltoallv : inter_pairwise\n",
    [COLL_ALLTOALLW] = "alltoallw ranks 1-64 : direct\n"
                       "alltoallw : pairwise\n"
                       "alltoallw ranks 1-64 : inter_direct\n"
                       "alltoallw : inter_pairwise\n",
    [COLL_REDUCE_SCATTER] = "reduce_scatter ranks 1-64 : direct\n"
                            "reduce_scatter : tree\n"
                            "reduce_scatter : inter_leader\n",
    [COLL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block ranks 1-8 : direct\n"
                                  "reduce_scatter_block below 256 : tree\n"
                                  "reduce_scatter_block : direct\n"
                                  "reduce_scatter_block ranks 1-16 : inter_direct\n"
                                  "reduce_scatter_block below 16K : inter_leader\n"
                                  "reduce_scatter_block : inter_direct\n",
    [COLL_SCAN] = "scan below 64K : doubling\n"
                  "scan : chain\n",
    [COLL_EXSCAN] = "exscan below 64K : doubling\n"
                    "exscan : chain\n",
    [COLL_NEIGHBOR_ALLGATHER] = "neighbor_allgather : direct\n",
    [COLL_NEIGHBOR_ALLGATHERV] = "neighbor_allgatherv : direct\n",
    [COLL_NEIGHBOR_ALLTOALL] = "neighbor_alltoall : direct\n",
    [COLL_NEIGHBOR_ALLTOALLV] = "neighbor_alltoallv : direct\n",
    [COLL_NEIGHBOR_ALLTOALLW] = "neighbor_alltoallw : direct\n",
};

static struct coll_table users; /* of TERN_COLL_TABLE */
static uint64_t digest;

/* The built-in rules, by operation. */
static struct {
    struct coll_table rules;
    _Atomic bool there; /* release: the rules are; pairs with the acquire in own_rules */
} own[COLL_KINDS];
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

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
    char *text = users.n ? coll_table_print(&users) : strdup("");
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
    int rc = *path ? coll_table_load(&users, path) : 0;
    return rc ? rc : make_digest();
}

void coll_select_close(void)
{
    for (int k = 0; k < COLL_KINDS; k++) {
        coll_table_free(&own[k].rules);
        atomic_store_explicit(&own[k].there, false, memory_order_relaxed);
    }
    coll_table_free(&users);
}

static TERN_COLD int read_own(enum coll_kind kind)
{
    int rc = 0;
    pthread_mutex_lock(&reading);
    if (!atomic_load_explicit(&own[kind].there, memory_order_relaxed))
        rc = coll_table_read(&own[kind].rules, builtin[kind], "the built-in table of collectives");
    if (!rc) atomic_store_explicit(&own[kind].there, true, memory_order_release);
    pthread_mutex_unlock(&reading);
    return rc;
}

static int own_rules(enum coll_kind kind, const struct coll_table **rules)
{
    int rc = atomic_load_explicit(&own[kind].there, memory_order_acquire) ? 0 : read_own(kind);
    *rules = &own[kind].rules;
    return rc;
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

/* By the tables, the user's first. The last rule of every operation fits everything: a test sees to it. */
static int by_rules(const struct coll_shape *s, struct coll_choice *c)
{
    const struct coll_table *rules;
    struct coll_shape key = s->remote ? inter_key(s) : *s;
    const struct coll_rule *r = coll_table_find(&users, &key);
    int rc = r ? 0 : own_rules((enum coll_kind)s->kind, &rules);
    if (rc) return rc;
    if (!r) r = coll_table_find(rules, &key);
    assert(r);
    *c = r->use;
    return 0;
}

static int choose(const struct coll_shape *s, const struct coll_choice *wanted, struct coll_choice *c)
{
    struct coll_choice by_var = {.alg = by_variable((enum coll_kind)s->kind)};
    bool hinted = wanted && fits(wanted[s->kind].alg, s);
    if (!hinted && !fits(by_var.alg, s)) return by_rules(s, c);
    *c = hinted ? wanted[s->kind] : by_var;
    return 0;
}

/* What of a number decides: the user's variable, the rule, or the variable's default. */
static int64_t decide(enum var_id id, int64_t by_rule) { return by_rule && !var_is_set(id) ? by_rule : var_int(id); }

int coll_select(struct coll_shape *s, const struct coll_choice wanted[COLL_KINDS])
{
    struct coll_choice c;
    int rc = choose(s, wanted, &c);
    if (rc) return rc;
    s->alg = (uint8_t)c.alg;
    s->segment = decide(VAR_COLL_SEGMENT, c.segment);
    s->radix = (int32_t)decide(VAR_COLL_RADIX, c.radix);
    return 0;
}

/* ---- text ------------------------------------------------------------------------- */

char *coll_select_print(void)
{
    char *text = coll_table_print(&users);
    for (int k = 0; k < COLL_KINDS && text; k++) {
        const struct coll_table *rules;
        char *before = text, *more = own_rules((enum coll_kind)k, &rules) ? NULL : coll_table_print(rules);
        if (!more || asprintf(&text, "%s%s", before, more) < 0) text = NULL;
        free(before);
        free(more);
    }
    return text;
}

static void print_algs(FILE *f, const void *what)
{
    (void)what;
    for (int i = 0; i < coll_algs_count; i++) {
        const struct coll_alg *a = &coll_algs[i];
        fprintf(f, "%-22s %-14s %s%s%s%s%s%s\n", coll_kind_name(a->kind), a->name, a->meaning,
                a->flags & ALG_COMMUTES ? "; not for operators that do not commute" : "",
                a->flags & ALG_EXACT ? "; only where any order gives the same bits" : "",
                a->flags & ALG_POWER2 ? "; only for 2, 4, 8 ... ranks" : "",
                a->flags & ALG_NODES ? "; only on several nodes" : "",
                a->flags & ALG_DOMAINS ? "; only where a node has several domains (TERN_COLL_DOMAINS)" : "");
    }
}

char *coll_select_print_algs(void) { return text_of(print_algs, NULL); }
