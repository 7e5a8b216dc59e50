/*
 * pmix.c - bootstrap through PMIx (version 4 and later): what Slurm, PRRTE, Open MPI's
 * mpirun and Tern's own mpiexec offer. A module of its own, loaded on demand, so that
 * the library needs no PMIx at run time.
 *
 * Cards are exchanged lazily: each process puts and commits its own, and another process
 * gets it when it first sends to it (direct modex); PMIx waits until the card is there. If a
 * job spans nodes and its launcher is not known to serve such questions, all cards are
 * collected by a fence at the start instead.
 *
 * The module cannot see the library's symbols: words of failures go through
 * proc_boot.fail, which the library sets when it has loaded the module.
 */
#include "proc/pmix/pmix_module.h"
#include "base/err.h"
#include "proc/job_block.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define SECRET_KEY "tern.secret"

int (*pmix_fail)(int code, const char *fmt, ...);
pmix_proc_t pmix_me;
uint32_t pmix_job_size;
static uint32_t my_node;
static uint32_t *node_table; /* by rank, UINT32_MAX = not asked for yet; NULL: all on one node */
static char *node_list;      /* its names, split at the commas; node_name[0 .. node_count - 1] point into it */
static char **node_name;
static uint32_t node_count;
static uint8_t secret[32], half[32]; /* in rank 0, which makes them */
static bool joined; /* PMIx_Init has been called, and PMIx_Finalize not since */

/* ---- what the job is made of ---- */

bool pmix_to_u32(const pmix_value_t *v, uint32_t *out)
{
    switch (v->type) {
    case PMIX_UINT32: *out = v->data.uint32; return true;
    case PMIX_UINT16: *out = v->data.uint16; return true;
    case PMIX_INT: *out = (uint32_t)v->data.integer; return v->data.integer >= 0;
    case PMIX_INT32: *out = (uint32_t)v->data.int32; return v->data.int32 >= 0;
    case PMIX_PROC_RANK: *out = v->data.rank; return true;
    case PMIX_UINT64: *out = (uint32_t)v->data.uint64; return v->data.uint64 <= UINT32_MAX;
    case PMIX_SIZE: *out = (uint32_t)v->data.size; return v->data.size <= UINT32_MAX;
    default: return false;
    }
}

/* What the launcher gave at the start, to be released; NULL if it did not. No questions are sent anywhere. */
static pmix_value_t *at_hand(const char *key, pmix_rank_t rank)
{
    pmix_proc_t p = pmix_me;
    pmix_info_t no_questions;
    pmix_value_t *v = NULL;
    p.rank = rank;
    PMIX_INFO_LOAD(&no_questions, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    return PMIx_Get(&p, key, &no_questions, 1, &v) == PMIX_SUCCESS ? v : NULL;
}

static uint32_t number(const char *key, pmix_rank_t rank, uint32_t otherwise)
{
    pmix_value_t *v = at_hand(key, rank);
    if (!v) return otherwise;
    uint32_t n = otherwise;
    if (!pmix_to_u32(v, &n)) n = otherwise;
    PMIX_VALUE_RELEASE(v);
    return n;
}

/* malloc'ed; NULL if there is none. */
static char *text(const char *key, pmix_rank_t rank)
{
    pmix_value_t *v = at_hand(key, rank);
    if (!v) return NULL;
    char *s = v->type == PMIX_STRING && v->data.string ? strdup(v->data.string) : NULL;
    PMIX_VALUE_RELEASE(v);
    return s;
}

/* ---- nodes: a node's number is its place in the launcher's list, the same for all who ask ---- */

static bool nodes_open(uint32_t ranks)
{
    node_list = text(PMIX_NODE_LIST, PMIX_RANK_WILDCARD);
    node_count = node_list != NULL;
    for (const char *c = node_list; c && *c; c++) node_count += *c == ',';
    node_name = malloc((node_count + 1) * sizeof *node_name);
    node_table = malloc(ranks * sizeof *node_table);
    if (!node_name || !node_table) return false;
    memset(node_table, 0xff, ranks * sizeof *node_table);
    char *at = node_list;
    for (uint32_t i = 0; i < node_count; i++) node_name[i] = strsep(&at, ",");
    return true;
}

static void nodes_close(void)
{
    free(node_list);
    free(node_name);
    free(node_table);
    node_list = NULL;
    node_name = NULL;
    node_table = NULL;
}

/* Ranks of one node mostly follow each other, so the search begins where the last one ended. A rank that is on none of the
 * list is on a node of its own. */
static uint32_t node_number(pmix_rank_t rank)
{
    static uint32_t last;
    char *name = text(PMIX_HOSTNAME, rank);
    uint32_t found = node_count + rank;
    for (uint32_t i = 0; name && i < node_count; i++) {
        uint32_t n = (last + i) % node_count;
        if (strcmp(node_name[n], name)) continue;
        found = last = n;
        break;
    }
    free(name);
    return found;
}

static uint32_t boot_node_of(uint32_t rank)
{
    if (!node_table || rank >= pmix_job_size) return my_node;
    if (node_table[rank] == UINT32_MAX) node_table[rank] = node_number(rank);
    return node_table[rank];
}

bool pmix_by_tern(void) { return getenv(JOB_ENV_RANK) != NULL; }

/* Open MPI's launchers do not say who has spawned a job. */
static void describe_parent(struct proc_info *p)
{
    pmix_value_t *v = at_hand(PMIX_PARENT_ID, PMIX_RANK_WILDCARD);
    if (v && v->type == PMIX_PROC && v->data.proc) snprintf(p->parent, sizeof p->parent, "%s", v->data.proc->nspace);
    p->parent_unknown = !v && !pmix_by_tern();
    if (v) PMIX_VALUE_RELEASE(v);
}

static int describe(struct proc_info *p)
{
    snprintf(p->job, sizeof p->job, "%s", pmix_me.nspace);
    describe_parent(p);
    p->rank = pmix_me.rank;
    p->size = pmix_job_size = number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD, 0);
    if (!p->size || p->rank >= p->size)
        return pmix_fail(TERN_ERR_SYSTEM, "PMIx says that this is rank %u of a job of %u processes", p->rank, p->size);
    p->nodes = number(PMIX_NUM_NODES, PMIX_RANK_WILDCARD, 1);
    p->local_size = number(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD, p->nodes == 1 ? p->size : 1);
    p->local_rank = number(PMIX_LOCAL_RANK, pmix_me.rank, p->nodes == 1 ? pmix_me.rank : 0);
    p->universe = number(PMIX_UNIV_SIZE, PMIX_RANK_WILDCARD, 0);
    p->appnum = number(PMIX_APPNUM, pmix_me.rank, 0);
    if (p->nodes > 1 && !nodes_open(p->size)) return pmix_fail(TERN_ERR_NOMEM, "no memory for the nodes of %u processes", p->size);
    p->node = my_node = boot_node_of(pmix_me.rank);
    return 0;
}

/* ---- life ---- */

static void part(void)
{
    if (!joined) return;
    PMIx_Finalize(NULL, 0);
    joined = false;
    pmix_events_part();
}

/* Tern's launcher takes a process that joined and left, in turns, as often as it likes; what it published stays. Others are
 * left when the process has done with MPI: Open MPI 4's server loses what a process publishes while another one is leaving
 * or coming back. */
static void boot_state(int state)
{
    if (state == JOB_LIFE_INITIALISED && !joined) {
        joined = PMIx_Init(&pmix_me, NULL, 0) == PMIX_SUCCESS;
        if (joined) pmix_events_join();
    }
    if (state == JOB_LIFE_FINALISED && pmix_by_tern()) part();
}

static void boot_close(void)
{
    nodes_close();
    part();
    pmix_events_close();
    pmix_dynamic_close();
}

static int boot_open(struct proc_info *p)
{
    if (!getenv("PMIX_NAMESPACE") || !getenv("PMIX_RANK")) return TERN_ERR_NOT_FOUND;
    pmix_status_t rc = PMIx_Init(&pmix_me, NULL, 0);
    if (rc != PMIX_SUCCESS) return pmix_fail(TERN_ERR_SYSTEM, "cannot join the job by PMIx: %s", PMIx_Error_string(rc));
    joined = true;
    int code = describe(p);
    if (code)
        boot_close();
    else
        pmix_events_join();
    return code;
}

/* Launchers other than Tern's say nothing, and some have killed this process before PMIx_Abort returns. */
static bool is_mute(void) { return !pmix_by_tern(); }

static bool boot_abort(int code, const char *words)
{
    PMIx_Abort(code, words, NULL, 0);
    return false;
}

/* ---- cards ---- */

/* Launchers that answer questions for single cards over nodes name themselves in every rank's environment. */
static bool answers_single_questions(void)
{
    static const char *const known[] = {"OMPI_COMM_WORLD_SIZE", "PRTE_LAUNCHED", "SLURM_STEP_ID", JOB_ENV_RANK};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (getenv(known[i])) return true;
    return false;
}

static pmix_status_t collect(void)
{
    pmix_info_t all;
    bool yes = true;
    PMIX_INFO_LOAD(&all, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    return PMIx_Fence(NULL, 0, &all, 1);
}

static pmix_status_t put(const char *key, const void *bytes, size_t n)
{
    pmix_value_t v = {.type = PMIX_BYTE_OBJECT};
    v.data.bo.bytes = (char *)(uintptr_t)bytes;
    v.data.bo.size = n;
    return PMIx_Put(PMIX_GLOBAL, key, &v);
}

/* Tern's launcher gives the job's secret to all of its processes. */
static bool has_been_given(uint8_t key[32])
{
    pmix_value_t *v = at_hand(SECRET_KEY, PMIX_RANK_WILDCARD);
    bool good = v && v->type == PMIX_BYTE_OBJECT && v->data.bo.size == 32;
    if (good) memcpy(key, v->data.bo.bytes, 32);
    if (v) PMIX_VALUE_RELEASE(v);
    return good;
}

/* In rank 0, once, whichever thread asks first. */
static bool make_secret(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool made;
    pthread_mutex_lock(&lock);
    if (!made) made = getrandom(secret, sizeof secret, 0) == sizeof secret && getrandom(half, sizeof half, 0) == sizeof half;
    bool good = made;
    pthread_mutex_unlock(&lock);
    return good;
}

static pmix_status_t put_secret(void)
{
    uint8_t given[32];
    if (pmix_me.rank != 0 || has_been_given(given)) return PMIX_SUCCESS;
    if (!make_secret()) return PMIX_ERR_OUT_OF_RESOURCE;
    pmix_status_t rc = put(SECRET_KEY, secret, sizeof secret);
    return rc == PMIX_SUCCESS ? put(HALF_KEY, half, sizeof half) : rc;
}

static int boot_card_put(const void *card, size_t len)
{
    pmix_status_t rc = put(CARD_KEY, card, len);
    if (rc == PMIX_SUCCESS) rc = put_secret();
    if (rc == PMIX_SUCCESS) rc = PMIx_Commit();
    if (rc == PMIX_SUCCESS && node_table && !answers_single_questions()) rc = collect();
    return rc == PMIX_SUCCESS ? 0 : pmix_fail(TERN_ERR_SYSTEM, "cannot publish this process's address by PMIx: %s", PMIx_Error_string(rc));
}

/* What this process's server has, or has been told of. */
static bool boot_card_there(uint32_t rank)
{
    pmix_info_t now;
    pmix_proc_t p = pmix_me;
    pmix_value_t *v = NULL;
    bool yes = true;
    p.rank = rank;
    PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    if (PMIx_Get(&p, CARD_KEY, &now, 1, &v) != PMIX_SUCCESS) return false;
    PMIX_VALUE_RELEASE(v);
    return true;
}

static int no_answer(const char *what, uint32_t rank, pmix_status_t status)
{
    if (status == PMIX_ERR_PROC_TERM_WO_SYNC)
        return pmix_fail(TERN_ERR_PEER, "rank %u of the job has ended without calling MPI_Init", rank);
    if (status == PMIX_ERR_TIMEOUT)
        return pmix_fail(TERN_ERR_PEER,
                         "PMIx has not told %s rank %u within %d s: the process has not called MPI_Init, or it has ended, and "
                         "the launcher does not say so",
                         what, rank, PMIX_PUT_S);
    return pmix_fail(TERN_ERR_PEER, "PMIx does not tell %s rank %u: %s", what, rank, PMIx_Error_string(status));
}

/* Under other launchers the first process makes it up and leaves it beside its card (doc/security.md says who can read
 * it there). */
int pmix_own_secret(uint8_t key[32])
{
    pmix_proc_t first = pmix_me;
    pmix_value_t v;
    first.rank = 0;
    if (has_been_given(key)) return 0;
    if (pmix_me.rank == 0) {
        if (!make_secret()) return pmix_fail(TERN_ERR_SYSTEM, "no random numbers for the job's secret");
        memcpy(key, secret, sizeof secret);
        return 0;
    }
    pmix_status_t rc = pmix_get_put(&first, SECRET_KEY, &v);
    if (rc != PMIX_SUCCESS) return no_answer("the job's secret, from", 0, rc);
    bool good = v.type == PMIX_BYTE_OBJECT && v.data.bo.size == sizeof secret;
    if (good) memcpy(key, v.data.bo.bytes, sizeof secret);
    if (good) explicit_bzero(v.data.bo.bytes, sizeof secret);
    PMIX_VALUE_DESTRUCT(&v);
    return good ? 0 : pmix_fail(TERN_ERR_SYSTEM, "what PMIx has as the job's secret is none");
}

int pmix_take_card(pmix_value_t *v, const pmix_proc_t *p, void *buf, size_t cap)
{
    bool bytes = v->type == PMIX_BYTE_OBJECT;
    size_t n = bytes ? v->data.bo.size : 0;
    if (bytes && n <= cap) memcpy(buf, v->data.bo.bytes, n);
    PMIX_VALUE_DESTRUCT(v);
    if (!bytes)
        return pmix_fail(TERN_ERR_SYSTEM, "what PMIx has as the address of rank %u of job '%s' is none", p->rank, p->nspace);
    return n <= cap ? (int)n : pmix_fail(TERN_ERR_INTERN, "the card of rank %u of job '%s' has %zu bytes", p->rank, p->nspace, n);
}

int pmix_own_card(uint32_t rank, void *buf, size_t cap)
{
    pmix_proc_t p = pmix_me;
    pmix_value_t v;
    p.rank = rank;
    if (rank >= pmix_job_size) return pmix_fail(TERN_ERR_RANK, "the job has no rank %u", rank);
    pmix_status_t rc = pmix_get_put(&p, CARD_KEY, &v);
    if (rc != PMIX_SUCCESS) return no_answer("the address of", rank, rc);
    return pmix_take_card(&v, &p, buf, cap);
}

/* ---- process sets ---- */

/* The answer to one question, with at most one qualifier; NULL: the launcher has none. The caller frees `infos`. */
static const pmix_value_t *ask(const char *key, const char *qualifier, const char *value, pmix_info_t **infos, size_t *n)
{
    pmix_query_t q;
    *infos = NULL;
    *n = 0;
    PMIX_QUERY_CONSTRUCT(&q);
    PMIX_ARGV_APPEND((int){0}, q.keys, key);
    if (qualifier) {
        PMIX_QUERY_QUALIFIERS_CREATE(&q, 1);
        PMIX_INFO_LOAD(&q.qualifiers[0], qualifier, value, PMIX_STRING);
    }
    pmix_status_t rc = PMIx_Query_info(&q, 1, infos, n);
    PMIX_QUERY_DESTRUCT(&q);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < *n; i++)
        if (PMIX_CHECK_KEY(&(*infos)[i], key)) return &(*infos)[i].value;
    return NULL;
}

static void forget(pmix_info_t *infos, size_t n)
{
    if (infos) PMIX_INFO_FREE(infos, n);
}

/* A list with commas between; a launcher that knows no such question has no sets. */
static int boot_psets(void (*each)(void *arg, const char *name), void *arg)
{
    pmix_info_t *infos;
    size_t n;
    const pmix_value_t *v = ask(PMIX_QUERY_PSET_NAMES, NULL, NULL, &infos, &n);
    char *list = v && v->type == PMIX_STRING && v->data.string ? strdup(v->data.string) : NULL, *at = list, *name;
    while (at && (name = strsep(&at, ",")))
        if (*name) each(arg, name);
    free(list);
    forget(infos, n);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Members of other jobs are left out. */
static int boot_pset_ranks(const char *name, uint32_t *ranks)
{
    pmix_info_t *infos;
    size_t n, count = 0;
    const pmix_value_t *v = ask(PMIX_QUERY_PSET_MEMBERSHIP, PMIX_PSET_NAME, name, &infos, &n);
    const pmix_data_array_t *a = v && v->type == PMIX_DATA_ARRAY ? v->data.darray : NULL;
    const pmix_proc_t *p = a && a->type == PMIX_PROC ? a->array : NULL;
    for (size_t i = 0; p && i < a->size && count < pmix_job_size; i++)
        if (PMIX_CHECK_NSPACE(p[i].nspace, pmix_me.nspace) && p[i].rank < pmix_job_size) ranks[count++] = p[i].rank;
    forget(infos, n);
    qsort(ranks, count, sizeof *ranks, by_number);
    return count ? (int)count : TERN_ERR_NOT_FOUND;
}

TERN_EXPORT extern const struct proc_boot tern_proc_pmix;
const struct proc_boot tern_proc_pmix = {
    .name = "pmix",
    .fail = &pmix_fail,
    .ring = &pmix_ring,
    .open = boot_open,
    .card_put = boot_card_put,
    .card_get = pmix_own_card,
    .card_there = boot_card_there,
    .node_of = boot_node_of,
    .secret = pmix_own_secret,
    .mute = is_mute,
    .abort = boot_abort,
    .deaths = pmix_deaths,
    .bell = pmix_bell,
    .state = boot_state,
    .leave = part,
    .psets = boot_psets,
    .pset_ranks = boot_pset_ranks,
    .dynamic = &pmix_dynamic,
    .close = boot_close,
};
