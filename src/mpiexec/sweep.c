/* sweep.c - signals process groups, searches /proc for strays. */
#include "mpiexec/sweep.h"
#include "base/compiler.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sweep_signal(const struct sweep_groups *g, int sig)
{
    int n = atomic_load(&g->count), there = 0;
    for (int i = 0; i < n; i++) {
        int32_t id = atomic_load(&g->id[i]);
        if (id > 1 && !kill(-id, sig)) there++;
    }
    return there;
}

static bool has_group(const struct sweep_groups *g, int group)
{
    int n = atomic_load(&g->count);
    for (int i = 0; i < n && group > 1; i++)
        if (atomic_load(&g->id[i]) == group) return true;
    return false;
}

static ssize_t read_file(int proc, const char *pid, const char *file, char *buf, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/%s", pid, file);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = -1;
    if (fd < 0) return -1;
    while (n < size && (got = read(fd, buf + n, size - n)) > 0) n += (size_t)got;
    close(fd);
    return (ssize_t)n;
}

/* The group of a process, 0 when it is a zombie or gone. */
static int group_of(int proc, const char *pid)
{
    char stat[512], state;
    int ppid, group;
    ssize_t n = read_file(proc, pid, "stat", stat, sizeof stat - 1);
    if (n <= 0) return 0;
    stat[n] = 0;
    char *end = strrchr(stat, ')'); /* the name before it may hold anything */
    if (!end || sscanf(end + 1, " %c %d %d", &state, &ppid, &group) != 3) return 0;
    return state == 'Z' || state == 'X' ? 0 : group;
}

static bool is_marked(int proc, const char *pid, const char *mark, size_t mark_len)
{
    static char env[256 * 1024];
    ssize_t n = read_file(proc, pid, "environ", env, sizeof env);
    return n > 0 && memmem(env, (size_t)n, mark, mark_len);
}

/* Whom to look for: members of the groups, and who has the job's name in its environment. */
struct wanted {
    const struct sweep_groups *groups;
    char mark[128];
    size_t mark_len; /* with its NUL */
};

static struct wanted wanted_of(const struct sweep_groups *g, const char *job)
{
    struct wanted w = {.groups = g};
    w.mark_len = (size_t)snprintf(w.mark, sizeof w.mark, "%s=%s", SWEEP_MARK, job) + 1;
    return w;
}

/* 1 when it is wanted and was killed. */
static int kill_wanted(int proc, const char *pid, const struct wanted *w)
{
    int group = group_of(proc, pid);
    if (!group) return 0;
    if (!has_group(w->groups, group) && !is_marked(proc, pid, w->mark, w->mark_len)) return 0;
    return !kill(atoi(pid), SIGKILL);
}

int sweep_all(const struct sweep_groups *g, const char *job)
{
    struct wanted w = wanted_of(g, job);
    DIR *d = opendir("/proc");
    int found = 0;
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) {
        int pid = atoi(e->d_name);
        if (pid > 1 && pid != getpid()) found += kill_wanted(dirfd(d), e->d_name, &w);
    }
    closedir(d);
    return found;
}

/* --- descendants -------------------------------------------------------------------------------------------------- */

struct pids {
    int *pid, count, room;
};

static bool add_pid(struct pids *l, int pid)
{
    if (l->count == l->room) {
        int room = l->room ? 2 * l->room : 64;
        int *more = realloc(l->pid, (size_t)room * sizeof *more);
        if (!more) return false;
        l->pid = more, l->room = room;
    }
    l->pid[l->count++] = pid;
    return true;
}

/* Of one thread; false where the system does not tell them, or there is no memory. */
static bool add_children_of(struct pids *l, int tasks, const char *tid)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/children", tid);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC), pid;
    if (fd < 0) return faccessat(tasks, tid, F_OK, 0) != 0; /* the thread has ended */
    FILE *children = fdopen(fd, "r");
    bool all = children != NULL;
    while (all && fscanf(children, "%d", &pid) == 1) all = add_pid(l, pid);
    if (children)
        fclose(children);
    else
        close(fd);
    return all;
}

static bool add_children(struct pids *l, int proc, const char *pid)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/task", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true; /* the process has ended */
    DIR *tasks = fdopendir(fd);
    bool all = tasks != NULL;
    for (struct dirent *e; all && (e = readdir(tasks));)
        if (e->d_name[0] != '.') all = add_children_of(l, fd, e->d_name);
    if (tasks)
        closedir(tasks);
    else
        close(fd);
    return all;
}

/* Of this process's descendants; false when they cannot all be found. A process's children are noted before it is killed. */
static bool kill_descendants(int proc, const struct wanted *w, int *found)
{
    struct pids l = {0};
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    bool all = add_children(&l, proc, pid);
    for (int i = 0; all && i < l.count; i++) {
        snprintf(pid, sizeof pid, "%d", l.pid[i]);
        all = add_children(&l, proc, pid);
        *found += kill_wanted(proc, pid, w);
    }
    free(l.pid);
    return all;
}

int sweep_descendants(const struct sweep_groups *g, const char *job)
{
    struct wanted w = wanted_of(g, job);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
    bool all = proc >= 0;
    /* A second time if nothing was found: a process whose parent ends comes to us, whose children were read already. */
    for (int round = 0; all && !found && round < 2; round++) all = kill_descendants(proc, &w, &found);
    if (proc >= 0) close(proc);
    return all ? found : sweep_all(g, job);
}
