/*
 * pmix_get.c - questions for what a process has put, or for what the launcher knows of a job as a whole.
 *
 * A server may keep a question until it has the answer, or say that there is none yet: libpmix 4.2 does so after 2 s,
 * for a process of its own node, and Open MPI 4 at once, while it is still starting the process. So a question for what
 * a process will put is asked again until the process is known to have ended. A server may never answer: Open MPI 4
 * does not where it does not know the job, whatever limit it is given. So a question may be left behind; whichever
 * comes second then, the answer or the end of the wait, frees it.
 */
#include "base/clock.h"
#include "proc/pmix/pmix_module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ASK_PAUSE_MS 5     /* before the same question is asked again */
#define LOOK_MS 1000       /* a sleeper looks at the clock so often */
#define LAST_WORDS_MS 1000 /* for the answer about a process that has ended */
#define NS_PER_MS 1000000u

struct question {
    pmix_proc_t proc;
    pmix_info_t how;
    pmix_value_t value; /* a copy */
    pmix_status_t status;
    bool answered, left;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards status, answered and left of all questions */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void free_question(struct question *q)
{
    PMIX_VALUE_DESTRUCT(&q->value);
    explicit_bzero(q, sizeof *q);
    free(q);
}

/* On the library's thread; the value is the library's. */
static void on_value(pmix_status_t status, pmix_value_t *v, void *arg)
{
    struct question *q = arg;
    pthread_mutex_lock(&lock);
    q->status = status != PMIX_SUCCESS ? status : v ? PMIx_Value_xfer(&q->value, v) : PMIX_ERR_NOT_FOUND;
    q->answered = true;
    bool left = q->left;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (left) free_question(q);
}

void pmix_get_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* With the lock. The system's clock may be set meanwhile, so each sleep is short. */
static void nap(uint64_t ns)
{
    struct timespec t;
    if (ns > LOOK_MS * (uint64_t)NS_PER_MS) ns = LOOK_MS * (uint64_t)NS_PER_MS;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ns % 1000000000u);
    t.tv_sec += (time_t)(ns / 1000000000u) + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&changed, &lock, &t);
}

/* Until there is an answer, or the time is over; with the lock. */
static void await(const struct question *q, uint64_t until)
{
    bool gone = false;
    for (uint64_t now; !q->answered && (now = clock_ns()) < until;) {
        if (!gone && (gone = pmix_gone(&q->proc)) && until - now > LAST_WORDS_MS * (uint64_t)NS_PER_MS)
            until = now + LAST_WORDS_MS * (uint64_t)NS_PER_MS;
        nap(until - now);
    }
}

/* Once; PMIX_ERR_TIMEOUT also if there is no answer by then. */
static pmix_status_t ask(const pmix_proc_t *p, const char *key, bool fresh, uint64_t until, pmix_value_t *value)
{
    bool yes = true;
    struct question *q = calloc(1, sizeof *q);
    if (!q) return PMIX_ERR_NOMEM;
    q->proc = *p;
    PMIX_INFO_LOAD(&q->how, PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);
    PMIX_VALUE_CONSTRUCT(&q->value);
    pmix_status_t status = PMIx_Get_nb(&q->proc, key, fresh ? &q->how : NULL, fresh, on_value, q);
    if (status != PMIX_SUCCESS) { /* on_value will not be called */
        free_question(q);
        return status;
    }
    pthread_mutex_lock(&lock);
    await(q, until);
    bool left = q->left = !q->answered;
    status = left ? PMIX_ERR_TIMEOUT : q->status;
    pthread_mutex_unlock(&lock);
    if (left) return status;
    if (status == PMIX_SUCCESS) {
        *value = q->value;
        PMIX_VALUE_CONSTRUCT(&q->value);
    }
    free_question(q);
    return status;
}

/* That something is not found means of a process of another job that the job has ended. */
static bool is_not_yet(pmix_status_t status, const pmix_proc_t *p)
{
    bool own = !strcmp(p->nspace, pmix_me.nspace);
    return status == PMIX_ERR_TIMEOUT ||
           (own && (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_PROC_ENTRY_NOT_FOUND));
}

pmix_status_t pmix_get_put(const pmix_proc_t *p, const char *key, pmix_value_t *value)
{
    uint64_t until = clock_ns() + PMIX_PUT_S * (uint64_t)1000000000;
    for (;;) {
        bool gone = pmix_gone(p); /* before the question: nothing is put behind the end */
        pmix_status_t status = ask(p, key, false, until, value);
        if (!is_not_yet(status, p)) return status;
        if (gone) return PMIX_ERR_PROC_TERM_WO_SYNC;
        if (clock_ns() >= until) return PMIX_ERR_TIMEOUT;
        usleep(ASK_PAUSE_MS * 1000);
    }
}

pmix_status_t pmix_get_of_job(const char *job, const char *key, pmix_value_t *value)
{
    pmix_proc_t p;
    PMIX_PROC_LOAD(&p, job, PMIX_RANK_WILDCARD);
    return ask(&p, key, true, clock_ns() + PMIX_JOB_S * (uint64_t)1000000000, value);
}
