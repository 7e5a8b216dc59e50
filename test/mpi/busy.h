/*
 * busy.h - a test program says, when it exits, for how long it ran or was ready to run: one line with nanoseconds,
 * appended to the file that TERN_TEST_BUSY names. test/mpi/idle.c adds them up. Nothing is said by a rank that is
 * killed, and by one whose threads have ended after they had done something: how long they waited for a cpu is not to
 * be found out any more.
 */
#ifndef TERN_TEST_BUSY_H
#define TERN_TEST_BUSY_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct busy {
    long long ran, waited; /* ns on a cpu, and waiting for one */
};

/* Adds what /proc/.../schedstat says; nothing where the kernel does not say. */
static inline void busy_add_task(struct busy *b, const char *path)
{
    long long ran, waited;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lld %lld", &ran, &waited) == 2) {
        b->ran += ran;
        b->waited += waited;
    }
    if (f) fclose(f);
}

static inline struct busy busy_of_threads(void)
{
    struct busy b = {0, 0};
    char path[300];
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        if (e->d_name[0] != '.') busy_add_task(&b, path);
    }
    if (d) closedir(d);
    return b;
}

#define BUSY_GONE_NS 5000000 /* of threads that have ended: too little to matter */

static inline void busy_say(void)
{
    struct rusage u;
    struct busy b = busy_of_threads();
    const char *file = getenv("TERN_TEST_BUSY");
    getrusage(RUSAGE_SELF, &u);
    long long all =
        (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
    FILE *f = file && all - b.ran < BUSY_GONE_NS ? fopen(file, "a")
                                                 : NULL; /* one line is one write, at the end of the file */
    if (!f) return;
    fprintf(f, "%lld\n", b.ran + b.waited);
    fclose(f);
}

static inline void busy_open(void) { atexit(busy_say); }

#endif
