/* namespace.c - see namespace.h. */
#include "mpiexec/namespace.h"
#include "mpiexec/wire.h"

#include <pmix_server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_u32(pmix_info_t **at, const char *key, int v)
{
    uint32_t u = (uint32_t)v;
    PMIX_INFO_LOAD(*at, key, &u, PMIX_UINT32);
    ++*at;
}

static void add_u16(pmix_info_t **at, const char *key, int v)
{
    uint16_t u = (uint16_t)v;
    PMIX_INFO_LOAD(*at, key, &u, PMIX_UINT16);
    ++*at;
}

static void add_rank(pmix_info_t **at, const char *key, int v)
{
    pmix_rank_t r = (pmix_rank_t)v;
    PMIX_INFO_LOAD(*at, key, &r, PMIX_PROC_RANK);
    ++*at;
}

static void add_text(pmix_info_t **at, const char *key, const char *text, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(*at, key, text, type);
    ++*at;
}

/* An array of infos as one info; returns where its first element goes. */
static pmix_info_t *add_array(pmix_info_t **at, const char *key, size_t n)
{
    pmix_data_array_t *a;
    PMIX_DATA_ARRAY_CREATE(a, n, PMIX_INFO);
    PMIX_LOAD_KEY((*at)->key, key);
    (*at)->value.type = PMIX_DATA_ARRAY;
    (*at)->value.data.darray = a;
    ++*at;
    return a->array;
}

static void add_proc(pmix_info_t **at, const struct job *j, const struct rank *r, int app_rank)
{
    enum { FIELDS = 8 };
    pmix_info_t *p = add_array(at, PMIX_PROC_DATA, FIELDS);
    add_rank(&p, PMIX_RANK, r->rank);
    add_rank(&p, PMIX_GLOBAL_RANK, r->rank);
    add_rank(&p, PMIX_APP_RANK, app_rank);
    add_u16(&p, PMIX_LOCAL_RANK, r->local);
    add_u16(&p, PMIX_NODE_RANK, r->local);
    add_u32(&p, PMIX_APPNUM, r->appnum);
    add_u32(&p, PMIX_NODEID, r->node);
    add_text(&p, PMIX_HOSTNAME, launch_host(j, r), PMIX_STRING);
}

static void add_app(pmix_info_t **at, int appnum, int size, int leader)
{
    pmix_info_t *a = add_array(at, PMIX_APP_INFO_ARRAY, 3);
    add_u32(&a, PMIX_APPNUM, appnum);
    add_u32(&a, PMIX_APP_SIZE, size);
    add_rank(&a, PMIX_APPLDR, leader);
}

/* "0,2,4": the ranks of a node. */
static char *ranks_of(const struct node *n)
{
    char *list = xcalloc((size_t)n->nranks, 7), *p = list;
    for (int i = 0; i < n->nranks; i++) p += sprintf(p, i ? ",%d" : "%d", n->ranks[i]);
    return list;
}

static void add_node(pmix_info_t **at, const struct node *n, int number)
{
    enum { FIELDS = 5 };
    pmix_info_t *p = add_array(at, PMIX_NODE_INFO_ARRAY, FIELDS);
    char *peers = ranks_of(n);
    add_u32(&p, PMIX_NODEID, number);
    add_text(&p, PMIX_HOSTNAME, n->name, PMIX_STRING);
    add_u32(&p, PMIX_NODE_SIZE, n->nranks);
    add_u32(&p, PMIX_LOCAL_SIZE, n->nranks);
    add_text(&p, PMIX_LOCAL_PEERS, peers, PMIX_STRING);
    free(peers);
}

/* The library's generator of short forms writes names into a buffer of 50 bytes, and reads numbers in them as int
 * (libpmix 4.2: preg/native). Other names go in the form that is not short. */
enum { SHORT_NAME_MAX = 49, SHORT_DIGITS_MAX = 9 };

static bool can_be_short(const struct job *j)
{
    for (int i = 0; i < j->nnodes; i++) {
        const char *name = j->nodes[i].name;
        if (strlen(name) > SHORT_NAME_MAX) return false;
        for (; *name; name += *name != 0) {
            size_t digits = strspn(name, "0123456789");
            if (digits > SHORT_DIGITS_MAX) return false;
            name += digits;
        }
    }
    return true;
}

static void add_names(pmix_info_t **at, const struct job *j, const char *names)
{
    char *form = NULL;
    if (can_be_short(j)) PMIx_generate_regex(names, &form);
    if (!form) form = xasprintf("raw:%s", names);
    add_text(at, PMIX_NODE_MAP, form, PMIX_REGEX);
    free(form);
}

/* What the nodes are called, and who is on each: "a,b" and "0,1;2,3", in the library's forms. */
static void add_maps(pmix_info_t **at, const struct job *j)
{
    struct wire_out names = {0}, ranks = {0};
    char *short_ranks = NULL;
    for (int i = 0; i < j->nnodes; i++) {
        char *list = ranks_of(&j->nodes[i]);
        wire_put_raw(&names, ",", i > 0);
        wire_put_raw(&names, j->nodes[i].name, strlen(j->nodes[i].name));
        wire_put_raw(&ranks, ";", i > 0);
        wire_put_raw(&ranks, list, strlen(list));
        free(list);
    }
    wire_put8(&names, 0);
    wire_put8(&ranks, 0);
    PMIx_generate_ppn((char *)ranks.bytes, &short_ranks);
    add_names(at, j, (const char *)names.bytes);
    add_text(at, PMIX_PROC_MAP, short_ranks, PMIX_REGEX);
    wire_free(&names);
    wire_free(&ranks);
}

/* The job that spawned this one; which of its ranks is not known. */
static void add_parent(pmix_info_t **at, const char *parent)
{
    pmix_proc_t p;
    PMIX_PROC_LOAD(&p, parent, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(*at, PMIX_PARENT_ID, &p, PMIX_PROC);
    ++*at;
}

/* The key of the job's processes, as in the job block. It goes to clients of this job only: servers of other jobs are not
 * told what is said of this one here. */
static void add_secret(pmix_info_t **at, const uint8_t *secret, size_t n)
{
    pmix_byte_object_t bytes = {.bytes = (char *)(uintptr_t)secret, .size = n};
    PMIX_INFO_LOAD(*at, "tern.secret", &bytes, PMIX_BYTE_OBJECT);
    ++*at;
}

static void add_job(pmix_info_t **at, const struct job *j)
{
    const struct node *here = &j->nodes[j->node];
    char *peers = ranks_of(here);
    int universe = spec_universe(j->spec);
    add_u32(at, PMIX_JOB_SIZE, j->size);
    add_u32(at, PMIX_UNIV_SIZE, universe);
    add_u32(at, PMIX_MAX_PROCS, universe);
    add_u32(at, PMIX_JOB_NUM_APPS, j->spec->napps);
    add_u32(at, PMIX_NUM_NODES, j->nnodes);
    add_u32(at, PMIX_LOCAL_SIZE, here->nranks);
    add_u32(at, PMIX_NODE_SIZE, here->nranks);
    add_u32(at, PMIX_NODEID, j->node);
    add_rank(at, PMIX_LOCALLDR, here->ranks[0]);
    add_text(at, PMIX_JOBID, j->name, PMIX_STRING);
    add_text(at, PMIX_LOCAL_PEERS, peers, PMIX_STRING);
    add_maps(at, j);
    if (*j->parent) add_parent(at, j->parent);
    add_secret(at, j->secret, sizeof j->secret);
    add_text(at, PMIX_TMPDIR, j->guard.page->dir, PMIX_STRING);
    add_text(at, PMIX_NSDIR, j->guard.page->dir, PMIX_STRING);
    free(peers);
}

pmix_info_t *namespace_describe(const struct job *j, size_t *n_p)
{
    enum { JOB_FIELDS = 17 };
    size_t n = JOB_FIELDS + (size_t)j->nnodes + (size_t)j->spec->napps + (size_t)j->size;
    pmix_info_t *info, *at;
    PMIX_INFO_CREATE(info, n);
    at = info;
    add_job(&at, j);
    for (int i = 0; i < j->nnodes && j->nnodes > 1; i++) add_node(&at, &j->nodes[i], i);
    for (int a = 0, first = 0; a < j->spec->napps; first += j->spec->apps[a++].n) {
        add_app(&at, a, j->spec->apps[a].n, first);
        for (int r = 0; r < j->spec->apps[a].n; r++) add_proc(&at, j, &j->ranks[first + r], r);
    }
    *n_p = (size_t)(at - info);
    return info;
}
