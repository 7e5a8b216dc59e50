/* dynamic.c - checks the arguments, and hands on to the launcher's side of it. */
#include "proc/dynamic.h"
#include "base/err.h"
#include "proc/proc.h"

#include <string.h>

static const struct proc_dynamic none;

static const struct proc_dynamic *services(void)
{
    const struct proc_boot *b = proc_booted();
    return b && b->dynamic ? b->dynamic : &none;
}

/* Before what needs a launcher: a process that has none starts one. */
static int start(void)
{
    const struct proc_boot *b = proc_booted();
    return b && b->start_launcher ? b->start_launcher() : 0;
}

static int unsupported(const char *what)
{
    return err_set(TERN_ERR_UNSUPPORTED, "the launcher of this process (%s) cannot %s; Tern's mpiexec can",
                   proc_self()->bootstrap ? proc_self()->bootstrap : "none", what);
}

/* A text that is not empty, and short enough. */
static int check(const char *what, const char *text, size_t most)
{
    if (!*text) return err_set(TERN_ERR_ARG, "%s may not be empty", what);
    if (strlen(text) < most) return 0;
    return err_set(TERN_ERR_ARG, "%s is longer than %zu bytes", what, most - 1);
}

int proc_publish(const char *name, const char *value)
{
    int rc = check("a published name", name, PROC_NAME_MAX);
    if (rc) return rc;
    if (strlen(value) >= PROC_VALUE_MAX)
        return err_set(TERN_ERR_ARG, "what is published under '%s' is longer than %d bytes", name, PROC_VALUE_MAX - 1);
    if ((rc = start())) return rc;
    return services()->publish ? services()->publish(name, value) : unsupported("publish names");
}

int proc_unpublish(const char *name)
{
    int rc = check("a published name", name, PROC_NAME_MAX);
    if (rc || (rc = start())) return rc;
    return services()->unpublish ? services()->unpublish(name) : unsupported("publish names");
}

int proc_lookup(const char *name, int wait_ms, char *value, size_t cap)
{
    int rc = check("a published name", name, PROC_NAME_MAX);
    if (rc || (rc = start())) return rc;
    return services()->lookup ? services()->lookup(name, wait_ms, value, cap) : unsupported("look up names");
}

int proc_connect(const char *job, struct proc_job *j)
{
    int rc = check("the name of a job", job, PROC_NAME_MAX);
    if (rc || (rc = start())) return rc;
    return services()->connect ? services()->connect(job, j) : unsupported("connect jobs");
}

int proc_disconnect(const char *job)
{
    int rc = check("the name of a job", job, PROC_NAME_MAX);
    if (rc) return rc;
    return services()->disconnect ? services()->disconnect(job) : unsupported("connect jobs");
}

int proc_job_card(const char *job, uint32_t rank, void *buf, size_t cap)
{
    int rc = check("the name of a job", job, PROC_NAME_MAX);
    if (rc || (rc = start())) return rc;
    return services()->job_card ? services()->job_card(job, rank, buf, cap) : unsupported("tell of other jobs");
}

int proc_spawn(const struct proc_app *apps, int napps, struct proc_spawned *s)
{
    for (int i = 0; i < napps; i++) {
        if (!apps[i].n) return err_set(TERN_ERR_ARG, "a program to be spawned as 0 processes");
        if (!apps[i].argv || !apps[i].argv[0] || !*apps[i].argv[0])
            return err_set(TERN_ERR_ARG, "no program to be spawned");
    }
    if (napps < 1) return err_set(TERN_ERR_ARG, "no program to be spawned");
    int rc = start();
    if (rc) return rc;
    return services()->spawn ? services()->spawn(apps, napps, s) : unsupported("spawn processes");
}

int proc_connected(const char *job, uint64_t ns)
{
    return services()->connected ? services()->connected(job, ns) : unsupported("tell of other jobs");
}

bool proc_opens_files(void)
{
    return services()->open_file && !proc_booted()->start_launcher;
}

int proc_open_file(const char *job, uint32_t rank, uint32_t fd, uint64_t key, int *own)
{
    if (strlen(job) >= PROC_NAME_MAX)
        return err_set(TERN_ERR_ARG, "a job's name is longer than %d bytes", PROC_NAME_MAX - 1);
    return services()->open_file ? services()->open_file(job, rank, fd, key, own)
                                 : unsupported("hand out memory of other processes");
}

int proc_watch(const char *job)
{
    int rc = check("the name of a job", job, PROC_NAME_MAX);
    if (rc || (rc = start())) return rc;
    return services()->watch ? services()->watch(job) : unsupported("tell of other jobs");
}

int proc_unwatch(const char *job)
{
    return services()->unwatch ? services()->unwatch(job) : unsupported("tell of other jobs");
}

int proc_event(struct proc_event *e) { return services()->event ? services()->event(e) : 0; }

void proc_event_signal(struct proc_signal *s)
{
    *s = (struct proc_signal){.fd = -1};
    if (services()->event_signal) services()->event_signal(s);
}
