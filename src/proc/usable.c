/* usable.c - see usable.h. */
#include "proc/usable.h"
#include "base/affinity.h"
#include "proc/proc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A whole number at the start of a file, -1 when there is none. */
static long file_number(const char *path, long *second)
{
    long a = -1;
    FILE *f = fopen(path, "re");
    if (!f) return -1;
    if (fscanf(f, "%ld %ld", &a, second) < 1) a = -1;
    fclose(f);
    return a;
}

/* -1: none. */
static long quota_cpus(void)
{
    long period = 0, quota = file_number("/sys/fs/cgroup/cpu.max", &period);
    if (quota <= 0) {
        long none;
        quota = file_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &none);
        period = quota > 0 ? file_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &none) : 0;
    }
    return quota > 0 && period > 0 ? (quota + period - 1) / period : -1;
}

/* All of the machine that this process sees; 0: unknown. */
static uint32_t online_cpus(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 0;
}

static uint32_t cut(uint32_t n, long by) { return by > 0 && by < (long)n ? (uint32_t)by : n; }

/* At least 1. */
static uint32_t within_quota(uint32_t n)
{
    n = cut(n, quota_cpus());
    return n ? n : 1;
}

/* 0: not to be seen. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *name_end = strrchr(text, ')'); /* "7 (name) S 1 ...", where the name may have blanks and brackets */
    return name_end && sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/*
 * The launcher on this node: the nearest ancestor in another process group; 0: not to be seen. Launchers make a group
 * for each process that they start. Between the two there may be shells and tools (`numactl ... program`), which may be
 * bound as this process is, and stay in its group.
 */
static pid_t launcher(void)
{
    pid_t own = getpgrp(), p = getppid();
    while (p > 0 && getpgid(p) == own) p = parent_of(p);
    return p;
}

/* A launcher that may not run where its ranks may, since it has a core of its own, does not show what they may use. */
uint32_t usable_by_launcher(uint32_t *bound)
{
    pid_t l = launcher();
    uint32_t own = affinity_count(0), n = l && affinity_is_within(0, l) ? affinity_count(l) : 0;
    *bound = own < n ? own : 0;
    if (!n) n = online_cpus();
    return within_quota(cut(n, proc_env_number("SLURM_CPUS_ON_NODE")));
}

uint32_t usable_here(void)
{
    uint32_t n = affinity_count(0);
    return within_quota(n ? n : online_cpus());
}
