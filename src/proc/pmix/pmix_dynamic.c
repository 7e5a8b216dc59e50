/*
 * pmix_dynamic.c - what a launcher does for processes that run (dynamic.h), by PMIx. A single process asks each
 * question. PMIx_Connect, which all processes of both sides would have to call, is not needed to get the data that PMIx
 * has of another job.
 */
#include "base/clock.h"
#include "base/err.h"
#include "proc/ask.h"
#include "proc/pmix/pmix_module.h"
#include "proc/pmix/spawn_keys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- published names ---- */

static int no_name(const char *name) { return pmix_fail(TERN_ERR_NOT_FOUND, "no name '%s' is published", name); }

/* What a launcher says that has no such service. */
bool pmix_has_none(pmix_status_t rc) { return rc == PMIX_ERR_NOT_SUPPORTED || rc == PMIX_ERR_NOT_IMPLEMENTED; }

static int cannot(const char *what, const char *name, pmix_status_t rc)
{
    return pmix_fail(pmix_has_none(rc) ? TERN_ERR_UNSUPPORTED : TERN_ERR_SYSTEM, "cannot %s the name '%s' by PMIx: %s",
                     what, name, PMIx_Error_string(rc));
}

/* A key of PMIx's own means something else. */
static int check_name(const char *name)
{
    if (strlen(name) <= PMIX_MAX_KEYLEN && strncmp(name, "pmix", 4)) return 0;
    return pmix_fail(TERN_ERR_ARG,
                     "the name '%s' cannot be published by PMIx: it begins with 'pmix', or has more than %d bytes",
                     name, PMIX_MAX_KEYLEN);
}

static int publish_name(const char *name, const char *value)
{
    pmix_info_t info;
    int rc = check_name(name);
    if (rc) return rc;
    PMIX_INFO_LOAD(&info, name, value, PMIX_STRING);
    pmix_status_t status = PMIx_Publish(&info, 1);
    PMIX_INFO_DESTRUCT(&info);
    if (status == PMIX_ERR_DUPLICATE_KEY)
        return pmix_fail(TERN_ERR_DUPLICATE, "the name '%s' is published already", name);
    return status == PMIX_SUCCESS ? 0 : cannot("publish", name, status);
}

/* Has the launcher wait for the whole seconds of ms, without end if that is negative. */
static pmix_status_t look(const char *name, int64_t ms, pmix_pdata_t *found)
{
    pmix_info_t info[2];
    int all = 1, seconds = ms > 0 ? (int)(ms / 1000) : 0;
    size_t n = ms < 0 ? 1 : seconds ? 2 : 0;
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &all, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_PDATA_CONSTRUCT(found);
    PMIX_LOAD_KEY(found->key, name);
    return PMIx_Lookup(found, 1, n ? info : NULL, n);
}

#define LOOK_PAUSE_MS 50 /* at most, between two questions of a launcher that does not wait */

/* Milliseconds of wait_ms that are left; -1: without end. */
static int64_t time_left(uint64_t start, int wait_ms)
{
    int64_t spent = (int64_t)((clock_ns() - start) / 1000000);
    if (wait_ms < 0) return -1;
    return spent < wait_ms ? wait_ms - spent : 0;
}

/* What is left of the time when the launcher has waited, it is asked now and then; the last time when it is over. */
static pmix_status_t look_until(const char *name, int wait_ms, pmix_pdata_t *found)
{
    uint64_t start = clock_ns();
    for (int64_t pause = 1;; pause = pause < LOOK_PAUSE_MS ? 2 * pause : LOOK_PAUSE_MS) {
        int64_t left = time_left(start, wait_ms);
        pmix_status_t status = look(name, left, found);
        if ((status != PMIX_ERR_NOT_FOUND && status != PMIX_ERR_TIMEOUT) || !left) return status;
        PMIX_PDATA_DESTRUCT(found);
        left = time_left(start, wait_ms);
        usleep((useconds_t)(left >= 0 && left < pause ? left : pause) * 1000);
    }
}

static int lookup_name(const char *name, int wait_ms, char *value, size_t cap)
{
    pmix_pdata_t found;
    int rc = check_name(name);
    if (rc) return rc;
    pmix_status_t status = look_until(name, wait_ms, &found);
    const char *text = found.value.type == PMIX_STRING ? found.value.data.string : NULL;
    if ((status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT) && wait_ms)
        rc = pmix_fail(TERN_ERR_NOT_FOUND, "nobody has published the name '%s' within %d ms", name, wait_ms);
    else if (status == PMIX_ERR_NOT_FOUND)
        rc = no_name(name);
    else if (status != PMIX_SUCCESS)
        rc = cannot("look up", name, status);
    else if (!text)
        rc = pmix_fail(TERN_ERR_SYSTEM, "what is published under the name '%s' is no text", name);
    else if (strlen(text) >= cap)
        rc = pmix_fail(TERN_ERR_TRUNCATE, "what was published has %zu bytes, and there is room for %zu",
                       strlen(text) + 1, cap);
    else
        strcpy(value, text);
    PMIX_PDATA_DESTRUCT(&found);
    return rc;
}

/* PMIx says nothing of a name that nobody has published. */
static int unpublish_name(const char *name)
{
    char *keys[] = {(char *)(uintptr_t)name, NULL};
    pmix_pdata_t found;
    int rc = check_name(name);
    if (rc) return rc;
    pmix_status_t status = look(name, 0, &found);
    PMIX_PDATA_DESTRUCT(&found);
    if (status == PMIX_ERR_NOT_FOUND) return no_name(name);
    if (status == PMIX_SUCCESS) status = PMIx_Unpublish(keys, NULL, 0);
    return status == PMIX_SUCCESS ? 0 : cannot("unpublish", name, status);
}

/* ---- spawning ---- */

static void add_list(char ***to, const char *const *list)
{
    for (; list && *list; list++) PMIX_ARGV_APPEND((int){0}, *to, *list);
}

static void fill_infos(pmix_app_t *a, const char *const *info)
{
    size_t n = 0;
    while (info && info[n]) n++;
    PMIX_INFO_CREATE(a->info, n / 2 + 1);
    for (size_t i = 0; i + 1 < n; i += 2)
        PMIX_INFO_LOAD(&a->info[a->ninfo++], spawn_key_to_pmix(info[i]), info[i + 1], PMIX_STRING);
}

static int spawn_job(const struct proc_app *apps, int napps, struct proc_spawned *s)
{
    pmix_nspace_t name = {0};
    pmix_app_t *a;
    uint32_t n = 0;
    PMIX_APP_CREATE(a, (size_t)napps);
    for (int i = 0; i < napps; i++) {
        a[i].cmd = strdup(apps[i].argv[0]);
        add_list(&a[i].argv, apps[i].argv);
        add_list(&a[i].env, apps[i].env);
        if (apps[i].wdir) a[i].cwd = strdup(apps[i].wdir);
        a[i].maxprocs = (int)apps[i].n;
        fill_infos(&a[i], apps[i].info);
        n += apps[i].n;
    }
    pmix_status_t rc = PMIx_Spawn(NULL, 0, a, (size_t)napps, name);
    PMIX_APP_FREE(a, (size_t)napps);
    if (pmix_has_none(rc))
        return pmix_fail(TERN_ERR_UNSUPPORTED, "the launcher of this process cannot spawn processes by PMIx");
    if (rc != PMIX_SUCCESS)
        return pmix_fail(TERN_ERR_SPAWN, "cannot spawn %s by PMIx: %s", apps[0].argv[0], PMIx_Error_string(rc));
    *s = (struct proc_spawned){.size = n};
    snprintf(s->job, sizeof s->job, "%s", name);
    return 0;
}

/* ---- other jobs ---- */

/* Those that this process is connected to. */
static struct link {
    char job[PROC_NAME_MAX];
    struct link *next;
} * links;
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;

static bool take_key(const pmix_value_t *v, uint8_t key[PROC_KEY])
{
    if (v->type != PMIX_BYTE_OBJECT || v->data.bo.size != PROC_KEY) return false;
    memcpy(key, v->data.bo.bytes, PROC_KEY);
    explicit_bzero(v->data.bo.bytes, PROC_KEY);
    return true;
}

static bool get_pair(const char *job, uint8_t key[PROC_KEY], pmix_status_t *status)
{
    pmix_value_t v;
    *status = pmix_get_of_job(job, ASK_PAIR_NAME, &v);
    if (*status != PMIX_SUCCESS) return false;
    bool good = take_key(&v, key);
    PMIX_VALUE_DESTRUCT(&v);
    return good;
}

static bool get_half(const char *job, uint8_t key[PROC_KEY], pmix_status_t *status)
{
    pmix_proc_t first;
    pmix_value_t v;
    PMIX_PROC_LOAD(&first, job, 0);
    *status = pmix_get_put(&first, HALF_KEY, &v);
    if (*status != PMIX_SUCCESS) return false;
    bool good = take_key(&v, key);
    PMIX_VALUE_DESTRUCT(&v);
    return good;
}

static int no_job(const char *job, pmix_status_t status)
{
    if (pmix_has_none(status))
        return pmix_fail(TERN_ERR_UNSUPPORTED, "the launcher of this process does not tell of other jobs by PMIx: %s",
                         PMIx_Error_string(status));
    if (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_INVALID_NAMESPACE)
        return pmix_fail(TERN_ERR_NOT_FOUND, "there is no job '%s' here (any more), as far as PMIx knows", job);
    if (status == PMIX_ERR_TIMEOUT)
        return pmix_fail(TERN_ERR_NOT_FOUND,
                         "PMIx does not answer within %d s whether there is a job '%s': there is none, or the launcher "
                         "of this process does not tell of other jobs",
                         PMIX_JOB_S, job);
    return pmix_fail(TERN_ERR_SYSTEM, "PMIx does not tell of job '%s': %s", job, PMIx_Error_string(status));
}

static bool is_own(const char *job) { return !strcmp(job, pmix_me.nspace); }

static int size_of(const char *job, uint32_t *size)
{
    pmix_value_t v;
    pmix_status_t status;
    uint32_t n;
    if (is_own(job)) {
        *size = pmix_job_size;
        return 0;
    }
    status = pmix_get_of_job(job, PMIX_JOB_SIZE, &v);
    if (status != PMIX_SUCCESS) return no_job(job, status);
    if (!pmix_to_u32(&v, &n)) n = 0;
    PMIX_VALUE_DESTRUCT(&v);
    if (!n) return pmix_fail(TERN_ERR_SYSTEM, "PMIx does not say how many processes job '%s' has", job);
    *size = n;
    return 0;
}

/*
 * Tern's launcher has a key for each two jobs, and tells each of them. Elsewhere rank 0 of each job has left a random
 * half beside its card, and the key is made of both: as secret as what PMIx tells of the two (doc/security.md).
 */
static int pair_key(const char *job, uint8_t key[PROC_KEY])
{
    uint8_t half[PROC_KEY];
    pmix_status_t status;
    if (is_own(job)) return pmix_own_secret(key);
    if (get_pair(job, key, &status)) return 0;
    bool good = !pmix_by_tern() && get_half(job, key, &status) && get_half(pmix_me.nspace, half, &status);
    for (int i = 0; i < PROC_KEY && good; i++) key[i] ^= half[i];
    explicit_bzero(half, sizeof half);
    if (good) return 0;
    explicit_bzero(key, PROC_KEY);
    return pmix_fail(TERN_ERR_SYSTEM, "no key for connections with job '%s' is to be had by PMIx: %s", job,
                     PMIx_Error_string(status));
}

static struct link **find_link(const char *job)
{
    struct link **at = &links;
    while (*at && strcmp((*at)->job, job)) at = &(*at)->next;
    return at;
}

static int add_link(const char *job)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l) return pmix_fail(TERN_ERR_NOMEM, "no memory for the connection to a job");
    snprintf(l->job, sizeof l->job, "%s", job);
    pthread_mutex_lock(&links_lock);
    if (*find_link(job)) {
        free(l);
    } else {
        l->next = links;
        links = l;
    }
    pthread_mutex_unlock(&links_lock);
    return 0;
}

static int connect_job(const char *job, struct proc_job *j)
{
    struct proc_job got = {0};
    int rc = size_of(job, &got.size);
    if (!rc) rc = pair_key(job, got.key);
    if (!rc) rc = add_link(job);
    if (!rc) *j = got;
    explicit_bzero(&got, sizeof got);
    return rc;
}

static int disconnect_job(const char *job)
{
    pthread_mutex_lock(&links_lock);
    struct link **at = find_link(job), *l = *at;
    if (l) *at = l->next;
    pthread_mutex_unlock(&links_lock);
    if (!l) return pmix_fail(TERN_ERR_NOT_FOUND, "this process is not connected to a job '%s'", job);
    free(l);
    return 0;
}

void pmix_dynamic_close(void)
{
    pthread_mutex_lock(&links_lock);
    while (links) {
        struct link *l = links;
        links = l->next;
        free(l);
    }
    pthread_mutex_unlock(&links_lock);
}

static int no_card(const char *job, uint32_t rank, pmix_status_t status)
{
    if (status == PMIX_ERR_PROC_TERM_WO_SYNC)
        return pmix_fail(TERN_ERR_PEER, "rank %u of job '%s' has ended without calling MPI_Init", rank, job);
    if (status == PMIX_ERR_TIMEOUT)
        return pmix_fail(TERN_ERR_PEER,
                         "PMIx has not told the address of rank %u of job '%s' within %d s: the process has not called "
                         "MPI_Init, or it has ended, and the launcher does not say so",
                         rank, job, PMIX_PUT_S);
    if (status == PMIX_ERR_NOT_FOUND)
        return pmix_fail(TERN_ERR_NOT_FOUND, "PMIx knows no address of rank %u of job '%s' (any more)", rank, job);
    return pmix_fail(TERN_ERR_PEER, "PMIx does not know the address of rank %u of job '%s': %s", rank, job,
                     PMIx_Error_string(status));
}

static int job_card(const char *job, uint32_t rank, void *buf, size_t cap)
{
    pmix_status_t status;
    pmix_proc_t p;
    pmix_value_t v;
    uint32_t size;
    int rc = size_of(job, &size);
    if (rc) return rc;
    if (rank >= size) return pmix_fail(TERN_ERR_RANK, "job %s has no rank %u", job, rank);
    if (is_own(job)) return pmix_own_card(rank, buf, cap);
    PMIX_PROC_LOAD(&p, job, rank);
    status = pmix_get_put(&p, CARD_KEY, &v);
    return status == PMIX_SUCCESS ? pmix_take_card(&v, &p, buf, cap) : no_card(job, rank, status);
}

const struct proc_dynamic pmix_dynamic = {
    .publish = publish_name,
    .unpublish = unpublish_name,
    .lookup = lookup_name,
    .connect = connect_job,
    .disconnect = disconnect_job,
    .job_card = job_card,
    .watch = pmix_watch,
    .unwatch = pmix_unwatch,
    .event = pmix_event,
    .event_signal = pmix_event_signal,
    .spawn = spawn_job,
};
