/*
 * spawn.c - spawning; see dpm.h.
 *
 *     root of the parents                       launcher                     root of the children
 *     an end for this call alone
 *     programs, and the port's name  ---------> starts them
 *       in their environment                    the job's name <----
 *     waits for a call                                                        MPI_Init: calls at the port
 *       or for a word that the job has ended
 *
 * The three phases of spawning: the launcher finds places (scheduling) and starts the processes (spawn); then the two groups connect
 * (communication, connect.h).
 */
#include "base/err.h"
#include "dpm/connect.h"
#include "obj/info.h"
#include "comm/talk.h"
#include "proc/dynamic.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARENT_PORT "TERN_PARENT_PORT" /* in the environment of spawned processes */

/* ---- what has become of the job meanwhile ---- */

/* A call that waits for its processes. In `calls`, under the first lane's lock. */
struct spawning {
    struct link link;
    struct end *end;
    char job[PROC_NAME_MAX];
};

static struct link calls = LIST_INIT(calls);
static unsigned listening; /* calls, counted under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_event(const struct proc_event *e)
{
    char words[200];
    list_each (at, next, &calls) {
        struct spawning *s = container_of(at, struct spawning, link);
        if (strcmp(s->job, e->job) || (!e->ended && e->clean)) continue;
        if (e->ended) snprintf(words, sizeof words, "all its processes have ended before they called MPI_Init");
        else snprintf(words, sizeof words, "process %u of the job has ended (status %d) before it called MPI_Init", e->rank, e->status);
        end_give_up(s->end, TERN_ERR_SPAWN, words);
    }
}

static void look(void)
{
    struct proc_event e;
    while (proc_event(&e) > 0) take_event(&e);
}

/* Where the launcher tells nothing of other jobs, nothing is heard: the call waits. */
static int watch(struct spawning *s)
{
    struct proc_signal signal;
    int rc = proc_watch(s->job);
    if (rc) return rc == TERN_ERR_UNSUPPORTED ? 0 : rc;
    proc_event_signal(&signal);
    lane_enter(lanes_first());
    list_push(&calls, &s->link);
    lane_leave(lanes_first());
    pthread_mutex_lock(&lock);
    rc = listening++ || signal.fd < 0 ? 0 : ends_listen(signal.fd, look);
    pthread_mutex_unlock(&lock);
    return rc;
}

static void unwatch(struct spawning *s)
{
    if (list_empty(&s->link)) return;
    pthread_mutex_lock(&lock);
    if (!--listening) ends_listen(-1, NULL);
    pthread_mutex_unlock(&lock);
    lane_enter(lanes_first());
    list_remove(&s->link);
    lane_leave(lanes_first());
    (void)proc_unwatch(s->job); /* it may have ended */
}

/* ---- what is started ---- */

/* The lists of one program, as the launcher takes them. The texts themselves are others'. */
struct texts {
    const char **argv, **info;
};

static const char **make_argv(const struct dpm_program *p)
{
    size_t n = 0;
    while (p->argv && p->argv[n]) n++;
    const char **argv = calloc(n + 2, sizeof *argv);
    if (!argv) return NULL;
    argv[0] = p->command;
    for (size_t i = 0; i < n; i++) argv[i + 1] = p->argv[i];
    return argv;
}

static const char **make_info(const struct info *info)
{
    int n = info ? info->n : 0;
    const char **list = calloc(2 * (size_t)n + 1, sizeof *list);
    for (int i = 0; list && i < n; i++) {
        list[2 * i] = info->pair[i].key;
        list[2 * i + 1] = info->pair[i].value;
    }
    return list;
}

/* What the kernel has given this process as its environment, texts one after the other; malloc'ed, of *n_p bytes. */
static char *first_environment(size_t *n_p)
{
    size_t n = 0, room = 65536;
    char *all = malloc(room);
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    for (ssize_t k; all && fd >= 0 && (k = read(fd, all + n, room - n)) > 0;) {
        n += (size_t)k;
        if (n < room) continue;
        char *more = realloc(all, room *= 2);
        if (!more) break;
        all = more;
    }
    if (fd >= 0) close(fd);
    *n_p = n;
    return all;
}

static bool has_text(const char *all, size_t n, const char *text)
{
    size_t length = strlen(text) + 1;
    for (const char *at = all; at < all + n; at += strnlen(at, (size_t)(all + n - at)) + 1)
        if ((size_t)(all + n - at) >= length && !memcmp(at, text, length)) return true;
    return false;
}

/* Variables that the program has set itself: the launcher knows the others. With `word` in front. NULL: memory is out. */
static const char **make_environment(const char *word)
{
    size_t n = 0, bytes, k = 0;
    char *first = first_environment(&bytes);
    while (environ[n]) n++;
    const char **list = first ? calloc(n + 2, sizeof *list) : NULL;
    if (list) list[k++] = word;
    for (size_t i = 0; list && i < n; i++)
        if (strncmp(environ[i], PARENT_PORT "=", sizeof PARENT_PORT) && !has_text(first, bytes, environ[i])) list[k++] = environ[i];
    free(first);
    return list;
}

static void free_texts(struct texts *t, int count)
{
    for (int i = 0; t && i < count; i++) {
        free(t[i].argv);
        free(t[i].info);
    }
    free(t);
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to spawn processes"); }

/* Has the launcher start all. */
static int start(const struct dpm_program *p, int count, const char *port, char job[PROC_NAME_MAX], uint32_t *size)
{
    char word[sizeof PARENT_PORT + PORT_NAME], *here = getcwd(NULL, 0);
    const char **env = NULL;
    struct proc_app *app = calloc((size_t)count, sizeof *app);
    struct texts *t = calloc((size_t)count, sizeof *t);
    snprintf(word, sizeof word, PARENT_PORT "=%s", port);
    int rc = app && t && here && (env = make_environment(word)) ? 0 : no_memory();
    for (int i = 0; i < count && !rc; i++) {
        t[i] = (struct texts){make_argv(&p[i]), make_info(p[i].info)};
        if (!t[i].argv || !t[i].info) rc = no_memory();
        app[i] = (struct proc_app){.n = (uint32_t)p[i].n, .argv = t[i].argv, .env = env, .info = t[i].info, .wdir = here};
        const char *wdir = p[i].info ? info_get(p[i].info, "wdir") : NULL;
        if (wdir) app[i].wdir = wdir;
    }
    if (!rc) rc = proc_spawn(app, count, job, size);
    free_texts(t, count);
    free(env);
    free(here);
    free(app);
    explicit_bzero(word, sizeof word);
    return rc;
}

/* ---- the calls ---- */

/* The root: an end for the children to call at, and them started. */
static int start_children(struct spawning *s, const struct dpm_program *p, int count, int *asked, int *started)
{
    const struct crypto *c = ends_crypto();
    uint8_t key[CRYPTO_KEY];
    char name[PORT_NAME];
    struct port port;
    uint32_t size = 0;
    if (!c) return err_code();
    for (int i = 0; i < count; i++) *asked += p[i].n;
    c->random(key, sizeof key);
    int rc = end_open(key, &s->end);
    explicit_bzero(key, sizeof key);
    if (rc) return rc;
    end_port(s->end, &port);
    port_write(&port, c, name);
    explicit_bzero(&port, sizeof port);
    rc = start(p, count, name, s->job, &size);
    explicit_bzero(name, sizeof name);
    if (!rc) *started = (int)size;
    return rc ? rc : watch(s);
}

int dpm_spawn(struct comm *local, int root, const struct dpm_program *p, int count, struct comm **out, int *asked_p, int *started_p)
{
    struct spawning s = {0};
    int32_t n[2] = {0, 0};
    int rc = 0;
    list_init(&s.link);
    if (local->rank == root) rc = p ? start_children(&s, p, count, &n[0], &n[1]) : err_set(TERN_ERR_ARG, "the root has no programs to spawn");
    rc = connect_groups(local, root, rc, connect_accept, s.end, out);
    unwatch(&s);
    if (s.end) end_close(s.end);
    err_keep(&s, rc);
    int told = talk_spread(local, n, sizeof n, root);
    err_recall(&s, rc);
    *asked_p = n[0];
    *started_p = rc ? 0 : n[1];
    return rc ? rc : told;
}

int dpm_parent(struct comm *world, struct comm **out)
{
    const char *name = getenv(PARENT_PORT);
    struct port port = {0};
    int rc = 0;
    *out = NULL;
    if (!name || !*proc_self()->parent) return 0;
    const struct crypto *c = ends_crypto();
    if (world->rank == 0) rc = c ? port_read(name, c, &port) : err_code();
    rc = connect_groups(world, 0, rc, connect_call, &port, out);
    explicit_bzero(&port, sizeof port);
    return rc;
}
