/* psets.c - see psets.h. The job does not change once its ranks run, so that any thread may read it. */
#include "mpiexec/psets.h"

#include <stdlib.h>
#include <string.h>

static const struct job *job;

char *psets_names(const struct spec *s, size_t *bytes)
{
    bool any = false;
    size_t n = 0;
    for (int i = 0; i < s->napps; i++) {
        n += (s->apps[i].pset ? strlen(s->apps[i].pset) : 0) + 1;
        any |= s->apps[i].pset != NULL;
    }
    *bytes = any ? n : 0;
    if (!any) return NULL;
    char *names = xcalloc(n, 1), *at = names;
    for (int i = 0; i < s->napps; i++) at = stpcpy(at, s->apps[i].pset ? s->apps[i].pset : "") + 1;
    return names;
}

void psets_open(const struct job *j) { job = j; }

static bool names_set(int app, const char *name)
{
    const char *of_app = job->spec->apps[app].pset;
    return of_app && !strcmp(of_app, name);
}

/* Programs may name the same set: the first one counts. */
static bool is_first(int app)
{
    for (int a = 0; a < app; a++)
        if (names_set(a, job->spec->apps[app].pset)) return false;
    return true;
}

/* "a,b,c" */
static bool answer_names(pmix_info_t *to)
{
    char *list = xstrdup("");
    for (int a = 0; a < job->spec->napps; a++) {
        if (!job->spec->apps[a].pset || !is_first(a)) continue;
        char *more = xasprintf("%s%s%s", list, *list ? "," : "", job->spec->apps[a].pset);
        free(list);
        list = more;
    }
    PMIX_INFO_LOAD(to, PMIX_QUERY_PSET_NAMES, list, PMIX_STRING);
    free(list);
    return true;
}

static bool answer_members(pmix_info_t *to, const char *name)
{
    size_t n = 0;
    for (int r = 0; r < job->size; r++) n += names_set(job->ranks[r].appnum, name);
    if (!n) return false;
    pmix_data_array_t *a;
    PMIX_DATA_ARRAY_CREATE(a, n, PMIX_PROC);
    pmix_proc_t *p = a->array;
    for (int r = 0; r < job->size; r++)
        if (names_set(job->ranks[r].appnum, name)) {
            PMIX_PROC_LOAD(p, job->name, (pmix_rank_t)r);
            p++;
        }
    PMIX_LOAD_KEY(to->key, PMIX_QUERY_PSET_MEMBERSHIP);
    to->value.type = PMIX_DATA_ARRAY;
    to->value.data.darray = a;
    return true;
}

static const char *wanted_set(const pmix_query_t *q)
{
    for (size_t i = 0; i < q->nqual; i++)
        if (PMIX_CHECK_KEY(&q->qualifiers[i], PMIX_PSET_NAME)) return q->qualifiers[i].value.data.string;
    return "";
}

static bool answer(pmix_info_t *to, const char *key, const pmix_query_t *q)
{
    if (!strcmp(key, PMIX_QUERY_PSET_NAMES)) return answer_names(to);
    return !strcmp(key, PMIX_QUERY_PSET_MEMBERSHIP) && answer_members(to, wanted_set(q));
}

static void release(void *infos)
{
    pmix_info_t *info = infos;
    PMIX_INFO_FREE(info, 1);
}

/* One answer to the first question: clients that want more ask again. */
pmix_status_t psets_query(pmix_proc_t *p, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t done, void *arg)
{
    (void)p;
    pmix_info_t *info;
    if (!n || !queries[0].keys || !queries[0].keys[0]) return PMIX_ERR_BAD_PARAM;
    PMIX_INFO_CREATE(info, 1);
    if (!answer(info, queries[0].keys[0], &queries[0])) {
        release(info);
        return PMIX_ERR_NOT_FOUND;
    }
    done(PMIX_SUCCESS, info, 1, arg, release, info);
    return PMIX_SUCCESS;
}
