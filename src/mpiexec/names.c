/* names.c - a list of published names behind a lock; jobs have few. */
#include "mpiexec/names.h"
#include "mpiexec/xalloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

/* Keys of the library's own say how to publish (range, persistence); one job needs none of that. */
static bool is_directive(const pmix_info_t *i) { return !strncmp(i->key, "pmix.", 5); }

static bool any_taken(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++)
        if (!is_directive(&info[i]) && *find(info[i].key)) return true;
    return false;
}

static void add(const pmix_proc_t *p, const pmix_info_t *i)
{
    struct name *n = xcalloc(1, sizeof *n);
    n->key = xstrdup(i->key);
    n->owner = *p;
    PMIx_Value_xfer(&n->value, (pmix_value_t *)&i->value); /* only read; old headers lack the const */
    n->next = names;
    names = n;
}

pmix_status_t names_publish(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo)
{
    pthread_mutex_lock(&lock);
    bool taken = any_taken(info, ninfo);
    for (size_t i = 0; i < ninfo && !taken; i++)
        if (!is_directive(&info[i])) add(p, &info[i]);
    pthread_mutex_unlock(&lock);
    return taken ? PMIX_ERR_DUPLICATE_KEY : PMIX_SUCCESS;
}

pmix_status_t names_lookup(char **keys, pmix_pdata_t **data_p, size_t *n_p)
{
    size_t asked = 0, found = 0;
    while (keys && keys[asked]) asked++;
    pmix_pdata_t *data = xcalloc(asked, sizeof *data);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < asked; i++) {
        const struct name *n = *find(keys[i]);
        if (!n) continue;
        PMIX_PDATA_CONSTRUCT(&data[found]);
        data[found].proc = n->owner;
        PMIX_LOAD_KEY(data[found].key, n->key);
        PMIx_Value_xfer(&data[found].value, (pmix_value_t *)&n->value);
        found++;
    }
    pthread_mutex_unlock(&lock);
    *data_p = data;
    *n_p = found;
    return found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

void names_free(pmix_pdata_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++) PMIX_PDATA_DESTRUCT(&data[i]);
    free(data);
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

pmix_status_t names_unpublish(const pmix_proc_t *p, char **keys)
{
    pthread_mutex_lock(&lock);
    for (struct name **n = &names; *n;)
        if (listed(keys, (*n)->key) && (*n)->owner.rank == p->rank && !strcmp((*n)->owner.nspace, p->nspace))
            forget(n);
        else
            n = &(*n)->next;
    pthread_mutex_unlock(&lock);
    return PMIX_SUCCESS;
}
