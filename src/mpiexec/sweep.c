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

int sweep_strays(const struct sweep_groups *g, const char *job)
{
    char mark[128];
    size_t mark_len = (size_t)snprintf(mark, sizeof mark, "%s=%s", SWEEP_MARK, job) + 1; /* with its NUL */
    DIR *d = opendir("/proc");
    int found = 0;
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) {
        int pid = atoi(e->d_name);
        if (pid <= 1 || pid == getpid()) continue;
        int group = group_of(dirfd(d), e->d_name);
        if (!group) continue;
        if (!has_group(g, group) && !is_marked(dirfd(d), e->d_name, mark, mark_len)) continue;
        if (!kill(pid, SIGKILL)) found++;
    }
    closedir(d);
    return found;
}
