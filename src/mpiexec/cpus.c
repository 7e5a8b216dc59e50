/* cpus.c - affinity mask and cgroup quota (versions 1 and 2). */
#include "mpiexec/cpus.h"
#include "base/affinity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int mask_cpus(void)
{
    uint32_t n = affinity_count(0);
    long online = n ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
    return n ? (int)n : online > 0 ? (int)online : 1;
}

static bool read_line(const char *dir, const char *file, char *line, int size)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, size, f) != NULL;
    fclose(f);
    return ok;
}

/* The quota of one cgroup directory in whole cpus, 0 = none. */
static int quota_of(const char *dir)
{
    char line[64], period_line[64];
    long long quota = 0, period = 0;
    if (read_line(dir, "cpu.max", line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2) return 0; /* "max 100000" */
    } else if (read_line(dir, "cpu.cfs_quota_us", line, sizeof line) &&
               read_line(dir, "cpu.cfs_period_us", period_line, sizeof period_line)) {
        quota = atoll(line);
        period = atoll(period_line);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

/* The smallest quota from root/path upwards to root. Where the path is not visible (another cgroup namespace) its
 * visible ancestors still count. */
static int quota_upwards(const char *root, const char *path)
{
    char dir[4500];
    int least = 0;
    size_t root_len = strlen(root);
    snprintf(dir, sizeof dir, "%s%s", root, path);
    for (;;) {
        int q = quota_of(dir);
        if (q && (!least || q < least)) least = q;
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < root_len) return least;
        *slash = 0;
    }
}

/* Does a version 1 line's list of controllers have "cpu"? */
static bool has_cpu(const char *list)
{
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (!strncmp(list, "cpu", 3) && (list[3] == ',' || !list[3])) return true;
    return false;
}

int cpus_cgroup_quota(const char *self, const char *root)
{
    FILE *f = fopen(self, "re");
    char line[4200], mount[256];
    int least = 0;
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) { /* id:controllers:path; version 2 has no controllers */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        controllers++;
        if (*controllers && !has_cpu(controllers)) continue;
        snprintf(mount, sizeof mount, "%s%s", root, *controllers ? "/cpu" : "");
        int q = quota_upwards(mount, path);
        if (q && (!least || q < least)) least = q;
    }
    fclose(f);
    return least;
}

int cpus_usable(void)
{
    static int known; /* launchers that the starter makes need not look again */
    if (known) return known;
    int mask = mask_cpus(), quota = cpus_cgroup_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return known = quota && quota < mask ? quota : mask;
}
