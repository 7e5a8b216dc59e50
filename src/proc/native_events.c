/*
 * native_events.c - the events of watched jobs. For each watched job one question (ASK_WATCH) waits at the launcher,
 * which answers it when it has something to tell. Then this process asks again, with the number of ends that it knows
 * by then.
 */
#include "proc/native_dynamic.h"
#include "base/err.h"
#include "proc/channel.h"
#include "proc/event_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    char job[PROC_NAME_MAX];
    uint32_t id;   /* of its question */
    uint32_t seen; /* ends that the launcher has told of */
    struct watch *next;
};

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct watch *watches;
    struct event_queue events;
    uint32_t last_id;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct watch **find(const char *job, uint32_t id)
{
    struct watch **at = &self.watches;
    while (*at && (job ? strcmp((*at)->job, job) != 0 : (*at)->id != id)) at = &(*at)->next;
    return at;
}

static int ask(struct watch *w)
{
    uint8_t room[PROC_NAME_MAX + 16];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    w->id = ++self.last_id;
    ask_put32(&q, w->seen);
    ask_put_text(&q, w->job);
    return channel_post(ASK_WATCH, &q, w->id);
}

static void forget(struct watch **at)
{
    struct watch *w = *at;
    *at = w->next;
    free(w);
}

static int add_watch(const char *job)
{
    if (*find(job, 0)) return err_set(TERN_ERR_ARG, "job '%s' is watched already", job);
    struct watch *w = calloc(1, sizeof *w);
    if (!w) return err_set(TERN_ERR_NOMEM, "no memory to watch a job");
    strcpy(w->job, job);
    w->next = self.watches;
    self.watches = w;
    int rc = ask(w);
    if (rc) forget(&self.watches);
    return rc;
}

static int queue(const struct proc_event *e)
{
    if (event_queue_push(&self.events, e)) return 0;
    return err_set(TERN_ERR_NOMEM, "no memory for the event that a process of job %s has ended", e->job);
}

static int queue_end_of_job(struct watch **at)
{
    struct proc_event e = {.ended = true};
    strcpy(e.job, (*at)->job);
    forget(at);
    return queue(&e);
}

static int queue_ends_of_ranks(struct watch *w, struct ask_in *in, uint32_t n)
{
    int rc = 0;
    struct proc_event e = {0};
    strcpy(e.job, w->job);
    for (; n && !in->bad && !rc; n--, w->seen++) {
        e.rank = ask_get32(in);
        e.status = (int)ask_get32(in);
        e.clean = ask_get32(in);
        if (!in->bad) rc = queue(&e);
    }
    return rc;
}

/* An answer: what has happened to one job. One that nobody watches any more may still be answered. */
static int take_answer(uint32_t id, int status, const struct channel_answer *a)
{
    struct watch **at = find(NULL, id);
    struct ask_in in = ask_of(a->bytes, a->n);
    if (!*at) return 0;
    if (status == TERN_ERR_NOT_FOUND) return queue_end_of_job(at);
    if (status) return status;
    bool ended = ask_get32(&in);
    int rc = queue_ends_of_ranks(*at, &in, ask_get32(&in));
    if (rc || !ask_done(&in)) return rc ? rc : err_set(TERN_ERR_SYSTEM, "the launcher's answer is none");
    return ended ? queue_end_of_job(at) : ask(*at);
}

static int collect(void)
{
    uint32_t id;
    int status, rc;
    struct channel_answer a;
    while ((rc = channel_collect(&id, &status, &a)) > 0) {
        rc = take_answer(id, status, &a);
        free(a.bytes);
        if (rc) return rc;
    }
    return rc;
}

/* ---- what is called ---- */

int native_watch(const char *job)
{
    pthread_mutex_lock(&self.lock);
    int rc = add_watch(job);
    pthread_mutex_unlock(&self.lock);
    return rc;
}

int native_unwatch(const char *job)
{
    int rc = 0;
    pthread_mutex_lock(&self.lock);
    struct watch **at = find(job, 0);
    if (!*at)
        rc = err_set(TERN_ERR_NOT_FOUND, "job '%s' is not watched", job);
    else
        rc = channel_cancel((*at)->id);
    if (*at) forget(at);
    event_queue_drop(&self.events, job);
    pthread_mutex_unlock(&self.lock);
    return rc;
}

int native_event(struct proc_event *e)
{
    pthread_mutex_lock(&self.lock);
    int rc = self.events.first ? 0 : collect();
    if (event_queue_pop(&self.events, e)) rc = 1;
    pthread_mutex_unlock(&self.lock);
    return rc;
}

void native_events_close(void)
{
    struct proc_event e;
    while (self.watches) forget(&self.watches);
    while (event_queue_pop(&self.events, &e)) continue;
}
