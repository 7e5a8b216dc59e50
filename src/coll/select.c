/*
 * select.c - see select.h. The built-in rules of an operation are read by the same code as a user's, when the first
 * algorithm or way of that operation is chosen: a process that starts pays for none of them.
 */
#include "coll/select.h"

#include "base/err.h"
#include "base/text.h"
#include "base/var.h"
#include "coll/rules.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        rc = coll_table_read(&own[kind].rules, coll_rules[kind], "the built-in table of collectives");
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

/* "auto" is neither an algorithm nor a way. */
static int by_variable(enum coll_kind k) { return coll_alg_find(k, var_text(variable[k])); }

static enum coll_way way_by_variable(enum coll_kind k)
{
    return var_is_set(variable[k]) ? coll_way_find(k, COLL_CALLS_ANY, var_text(variable[k])) : COLL_WAY_NONE;
}

uint32_t coll_select_forced(const struct coll_choice wanted[COLL_KINDS])
{
    uint32_t kinds = 0;
    for (int k = 0; k < COLL_KINDS; k++) {
        bool hinted = wanted && (wanted[k].alg >= 0 || wanted[k].way);
        if (hinted ? wanted[k].alg >= 0 : var_is_set(variable[k]) && by_variable((enum coll_kind)k) >= 0) kinds |= UINT32_C(1) << k;
    }
    return kinds;
}

/* Does it decide about ways of such calls? */
static bool is_about(const struct coll_rule *r, bool blocking)
{
    if (!r->use.way) return blocking && r->use.messages;
    return r->calls != (blocking ? COLL_CALLS_NONBLOCKING : COLL_CALLS_BLOCKING);
}

uint32_t coll_select_asked(const struct coll_choice wanted[COLL_KINDS], bool blocking)
{
    uint32_t kinds = 0;
    for (int k = 0; k < COLL_KINDS; k++)
        if ((wanted && wanted[k].way) || way_by_variable((enum coll_kind)k)) kinds |= UINT32_C(1) << k;
    for (size_t i = 0; i < users.n; i++)
        if (is_about(&users.rule[i], blocking)) kinds |= UINT32_C(1) << users.rule[i].kind;
    return kinds;
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

/* ---- ways ----------------------------------------------------------------------- */

/* Of hint or variable. True: it says messages. */
static bool add_named(const struct coll_choice *c, struct coll_way_list *l)
{
    if (c->way && c->way != COLL_WAY_MESSAGES) coll_way_add(l, (enum coll_way)c->way, c->slices);
    return c->way == COLL_WAY_MESSAGES;
}

/* Of the tables, the user's first. */
static int add_by_rules(const struct coll_shape *s, bool blocking, struct coll_way_list *l)
{
    const struct coll_table *rules;
    bool end = coll_table_ways(&users, s, blocking, l);
    int rc = end ? 0 : own_rules((enum coll_kind)s->kind, &rules);
    if (rc) return rc;
    if (!end) end = coll_table_ways(rules, s, blocking, l);
    if (!end && !blocking && var_is_set(VAR_COLL_PAIRS)) coll_way_add(l, COLL_WAY_ONCE, 0); /* from there on: node/possible.c */
    return 0;
}

int coll_select_ways(const struct coll_shape *s, bool blocking, const struct coll_choice wanted[COLL_KINDS], struct coll_way_list *l)
{
    struct coll_choice by_var = {.way = (uint8_t)way_by_variable((enum coll_kind)s->kind)};
    *l = (struct coll_way_list){0};
    if ((wanted && add_named(&wanted[s->kind], l)) || add_named(&by_var, l)) return 0;
    return add_by_rules(s, blocking, l);
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
    for (int w = COLL_WAY_SLOTS; w < COLL_WAYS; w++)
        fprintf(f, "%-22s %-14s %s\n", "(inside a node)", coll_ways[w].name, coll_ways[w].meaning);
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
