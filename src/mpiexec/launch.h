/*
 * launch.h - the running job, as the parts of the launcher share it.
 *
 * One thread (the main one) owns everything here and runs the event loop; the PMIx library's thread only enters
 * server.c, which hands over what it learns through its own locked state and a descriptor.
 */
#ifndef TERN_MPIEXEC_LAUNCH_H
#define TERN_MPIEXEC_LAUNCH_H

#include "mpiexec/block.h"
#include "mpiexec/guard.h"
#include "mpiexec/output.h"
#include "mpiexec/place.h"
#include "mpiexec/program.h"
#include "mpiexec/spec.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

struct rank {
    int rank, appnum;
    pid_t pid;   /* 0 = not started, or gone and reaped */
    bool exited; /* status holds */
    int status;  /* as of waitpid */
    struct place place;
    struct stream out, err; /* what it writes */
};

/* What the ranks of one app have in common. */
struct app {
    const struct app_spec *spec;
    struct program program;
    struct strv env;
    struct strv shell_argv; /* "/bin/sh path arguments", for a script without #! */
};

struct job {
    const struct spec *spec;
    char name[64]; /* = PMIx namespace */
    int size;
    struct rank *ranks;
    struct app *apps;
    struct event_base *base;
    struct block block;
    struct guard guard;
    hwloc_topology_t topology; /* NULL unless placement was asked for */
    /* As the launcher found them, given back to the ranks. */
    sigset_t signal_mask;
    struct rlimit nofile;
    double started; /* seconds of the monotonic clock */
};

static inline double launch_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
