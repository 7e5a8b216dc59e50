/* names.c - a list of published names; jobs have few. */
#include "mpiexec/names.h"
#include "mpiexec/xalloc.h"

#include <stdlib.h>
#include <string.h>

static struct name {
    char *key;
    pmix_proc_t owner;
    pmix_value_t value;
    struct name *next;
} * names;

static struct name **find(const char *key)
{
    struct name **n = &names;
    while (*n && strcmp((*n)->key, key)) n = &(*n)->next;
    return n;
}

/* Keys of the library's own say how to publish (range, persistence); one job on one host needs none of that. */
static bool is_directive(const pmix_info_t *i) { return !strncmp(i->key, "pmix.", 5); }

pmix_status_t names_publish(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                            void *arg)
{
    (void)done, (void)arg;
    for (size_t i = 0; i < ninfo; i++)
        if (!is_directive(&info[i]) && *find(info[i].key)) return PMIX_ERR_DUPLICATE_KEY;
    for (size_t i = 0; i < ninfo; i++) {
        if (is_directive(&info[i])) continue;
        struct name *n = xcalloc(1, sizeof *n);
        n->key = xstrdup(info[i].key);
        n->owner = *p;
        PMIx_Value_xfer(&n->value, (pmix_value_t *)&info[i].value); /* only read; old headers lack the const */
        n->next = names;
        names = n;
    }
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t names_lookup(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                           pmix_lookup_cbfunc_t done, void *arg)
{
    (void)p, (void)info, (void)ninfo;
    size_t asked = 0, found = 0;
    while (keys[asked]) asked++;
    pmix_pdata_t *data = xcalloc(asked, sizeof *data);
    for (size_t i = 0; i < asked; i++) {
        const struct name *n = *find(keys[i]);
        if (!n) continue;
        PMIX_PDATA_CONSTRUCT(&data[found]);
        data[found].proc = n->owner;
        PMIX_LOAD_KEY(data[found].key, n->key);
        PMIx_Value_xfer(&data[found].value, (pmix_value_t *)&n->value);
        found++;
    }
    if (found) done(PMIX_SUCCESS, data, found, arg); /* copies */
    for (size_t i = 0; i < found; i++) PMIX_PDATA_DESTRUCT(&data[i]);
    free(data);
    return found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static void forget(struct name **at)
{
    struct name *n = *at;
    *at = n->next;
    PMIX_VALUE_DESTRUCT(&n->value);
    free(n->key);
    free(n);
}

static bool listed(char **keys, const char *key)
{
    if (!keys) return true;
    for (; *keys; keys++)
        if (!strcmp(*keys, key)) return true;
    return false;
}

pmix_status_t names_unpublish(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                              pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo, (void)done, (void)arg;
    for (struct name **n = &names; *n;)
        if (listed(keys, (*n)->key) && (*n)->owner.rank == p->rank && !strcmp((*n)->owner.nspace, p->nspace))
            forget(n);
        else
            n = &(*n)->next;
    return PMIX_OPERATION_SUCCEEDED;
}
