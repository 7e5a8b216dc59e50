/*
 * spawn.c - spawning; see dpm.h.
 *
 *     root of the parents                       launcher                     root of the children
 *     an endpoint for this call
 *     programs, and the port's name  ---------> starts them
 *       in their environment                    the job's name <----
 *     waits for a call                                                        MPI_Init: calls at the port
 *       or for the news that the job has ended
 *
 * The three phases of spawning: the launcher finds places (scheduling) and starts the processes (spawn); then the two groups connect
 * (communication, connect.h).
 */
#include "base/clock.h"
#include "base/err.h"
#include "comm/talk.h"
#include "dpm/connect.h"
#include "dpm/early.h"
#include "dpm/program.h"
#include "obj/info.h"
#include "proc/dynamic.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- what has become of the job meanwhile ---- */

/* A call that waits for its processes. In `waiting_spawns`, under the first lane's lock. */
struct spawning {
    struct link link;
    struct endpoint *endpoint;
    char job[PROC_NAME_MAX];
    bool curious; /* the launcher wants to know how long connecting takes */
};

static struct link waiting_spawns = LIST_INIT(waiting_spawns);
static unsigned listening; /* spawns that wait, counted under `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* An end that comes too early: the groups are not connected yet. */
static void describe_end(const struct proc_event *e, char *words, size_t n)
{
    const char *when = "before the groups were connected";
    if (e->ended) snprintf(words, n, "all processes of the spawned job have ended %s", when);
    else if (WIFSIGNALED(e->status))
        snprintf(words, n, "process %u of the spawned job was killed by signal %d %s", e->rank, WTERMSIG(e->status), when);
    else snprintf(words, n, "process %u of the spawned job exited with code %d %s", e->rank, WEXITSTATUS(e->status), when);
}

/* A process that exits in order is no reason to give up: it may have connected, and finalized, already. */
static void take_event(const struct proc_event *e)
{
    char words[200];
    list_each (at, next, &waiting_spawns) {
        struct spawning *s = container_of(at, struct spawning, link);
        if (strcmp(s->job, e->job) || (!e->ended && e->clean)) continue;
        describe_end(e, words, sizeof words);
        endpoint_give_up(s->endpoint, TERN_ERR_SPAWN, words);
    }
}

/* The launcher tells nothing any more, or an event is lost: no call can rely on hearing of an end. */
static void give_up_all(void)
{
    char words[256];
    snprintf(words, sizeof words, "%s", err_words());
    list_each (at, next, &waiting_spawns)
        endpoint_give_up(container_of(at, struct spawning, link)->endpoint, TERN_ERR_SPAWN, words);
}

static void look(void)
{
    struct proc_event e;
    int rc;
    while ((rc = proc_event(&e)) > 0) take_event(&e);
    if (rc < 0) give_up_all();
}

/* Where the launcher sends no events of other jobs, the call waits. */
static int watch(struct spawning *s)
{
    struct proc_signal signal;
    lane_enter(lanes_first());
    list_push(&waiting_spawns, &s->link); /* first: another thread may take the event */
    lane_leave(lanes_first());
    int rc = proc_watch(s->job);
    if (rc) {
        lane_enter(lanes_first());
        list_remove(&s->link);
        lane_leave(lanes_first());
        return rc == TERN_ERR_UNSUPPORTED ? 0 : rc;
    }
    proc_event_signal(&signal);
    pthread_mutex_lock(&lock);
    rc = listening++ || signal.fd < 0 ? 0 : endpoints_listen(signal.fd, look);
    pthread_mutex_unlock(&lock);
    return rc;
}

static void unwatch(struct spawning *s)
{
    if (list_empty(&s->link)) return;
    pthread_mutex_lock(&lock);
    if (!--listening) endpoints_listen(-1, NULL);
    pthread_mutex_unlock(&lock);
    lane_enter(lanes_first());
    list_remove(&s->link);
    lane_leave(lanes_first());
    (void)proc_unwatch(s->job); /* it may have ended */
}

/* ---- phases ---- */

/* How long the phases of this call took, ns: for MPI_Comm_get_info of the communicator (DPM-2). */
struct phases {
    uint64_t scheduling, spawn, communication;
};

static int show_phases(struct comm *c, const struct phases *p)
{
    const struct {
        const char *key;
        uint64_t ns;
    } all[] = {{"tern_spawn_scheduling", p->scheduling}, {"tern_spawn_start", p->spawn}, {"tern_spawn_connect", p->communication}};
    int rc = 0;
    if (!c->info && !(c->info = info_new())) return err_code();
    for (size_t i = 0; i < sizeof all / sizeof *all && !rc; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.6f", (double)all[i].ns * 1e-9);
        rc = info_set(c->info, all[i].key, text);
    }
    return rc;
}

/* ---- the calls ---- */

/* What all processes get of a call: the programs, and the processes of each. */
struct spawn_result {
    int32_t programs;
    struct phases phases;
};

/* The root: an endpoint for the children to call at, and them started; counts[i] of program i. */
static int start_children(struct spawning *s, const struct dpm_program *p, int count, struct dpm_count *counts, struct phases *t)
{
    char parent_variable[sizeof DPM_PARENT_PORT + PORT_NAME] = DPM_PARENT_PORT "=";
    struct program_list list = {0};
    struct proc_spawned job;
    uint64_t start = clock_ns();
    int rc = endpoint_open(&s->endpoint);
    if (rc) return rc;
    endpoint_name(s->endpoint, parent_variable + strlen(parent_variable));
    if (!(rc = program_make(&list, p, count, parent_variable)) && !(rc = proc_spawn(list.app, count, &job))) {
        for (int i = 0; i < count; i++) counts[i].started = (int32_t)list.app[i].n;
        memcpy(s->job, job.job, sizeof s->job);
        s->curious = job.curious;
        t->scheduling = job.scheduling_ns;
        t->spawn = clock_ns() - start - t->scheduling;
    }
    program_free(&list);
    explicit_bzero(parent_variable, sizeof parent_variable);
    return rc ? rc : watch(s);
}

/* The counts of the root to all; malloc'ed. */
static int spread_counts(struct comm *local, int root, struct spawn_result *t, struct dpm_count **counts)
{
    void *bytes = *counts;
    int rc = talk_spread(local, t, sizeof *t, root);
    if (rc || !t->programs) return rc;
    rc = talk_spread_new(local, &bytes, (size_t)t->programs * sizeof **counts, root);
    *counts = bytes;
    return rc;
}

static int root_call(struct spawning *s, const struct dpm_program *p, int count, struct spawn_result *t, struct dpm_count **counts)
{
    if (!p) return err_set(TERN_ERR_ARG, "the root has no programs to spawn");
    if (!(*counts = calloc((size_t)count, sizeof **counts))) return err_set(TERN_ERR_NOMEM, "no memory to spawn processes");
    t->programs = count;
    for (int i = 0; i < count; i++) (*counts)[i].asked = p[i].n;
    return start_children(s, p, count, *counts, &t->phases);
}

int dpm_spawn(struct comm *local, int root, const struct dpm_program *p, int count, struct comm **out, struct dpm_count **counts_p, int *count_p)
{
    struct spawning s = {0};
    struct spawn_result t = {0};
    int rc = 0;
    list_init(&s.link);
    *counts_p = NULL;
    if (local->rank == root) rc = root_call(&s, p, count, &t, counts_p);
    uint64_t start = clock_ns();
    rc = connect_groups(local, root, rc, connect_accept_children, s.endpoint, out);
    t.phases.communication = clock_ns() - start;
    err_keep(&s, rc);
    unwatch(&s);
    if (s.endpoint) endpoint_close(s.endpoint);
    if (!rc && s.curious) (void)proc_connected(s.job, t.phases.communication);
    (void)spread_counts(local, root, &t, counts_p);
    err_recall(&s, rc);
    *count_p = *counts_p ? t.programs : 0;
    for (int i = 0; rc && i < *count_p; i++) (*counts_p)[i].started = 0;
    if (!rc) (void)show_phases(*out, &t.phases); /* the call has succeeded, whatever becomes of its times and counts */
    return rc;
}

int dpm_open(void)
{
    if (dpm_may_have_parent()) early_begin();
    return 0;
}

void dpm_close(void) { early_end(); }

int dpm_parent(struct comm *world, struct comm **out)
{
    const struct proc_info *me = proc_self();
    *out = NULL;
    if (!dpm_may_have_parent()) return 0;
    char *name = strdup(getenv(DPM_PARENT_PORT));
    int rc = name ? 0 : err_set(TERN_ERR_NOMEM, "no memory for the name of a port");
    rc = connect_groups(world, 0, rc, connect_call, name, out);
    free(name);
    /* The variable alone says that there are parents; programs that this one starts have none. */
    if (!rc && !*me->parent) unsetenv(DPM_PARENT_PORT);
    early_end();
    return rc;
}
