/*
 * launch.h - the running job, as the parts of the launcher share it.
 *
 * The mpiexec that the user started is the root. It serves the node of its own host, if ranks go there, as a daemon on
 * another host (tree.h) serves that one: with the same code and this same structure, in which every process knows all
 * nodes and ranks of the job, but descriptors and processes of its own node only.
 *
 * One thread (the main one) owns everything here and runs the event loop; the PMIx library's thread only enters
 * server.c, which hands over what it learns through its own locked state and a descriptor.
 */
#ifndef TERN_MPIEXEC_LAUNCH_H
#define TERN_MPIEXEC_LAUNCH_H

#include "mpiexec/block.h"
#include "mpiexec/guard.h"
#include "mpiexec/library.h"
#include "mpiexec/output.h"
#include "mpiexec/place.h"
#include "mpiexec/program.h"
#include "mpiexec/spec.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#define NODE_NONE (-1)

/* A host on which ranks of the job run. Its number is its place in job->nodes and the node's number in MPI. */
struct node {
    char *name; /* as it was given: never shortened, never resolved on the host itself */
    int slots;  /* as given; 0 = not said */
    bool own;   /* the root's host: served by the root, without a daemon */
    int nranks;
    int *ranks; /* [nranks], by local rank */
};

struct rank {
    int rank, appnum;
    int node, local; /* where it runs, and its number among the ranks there */
    pid_t pid;       /* 0 = not started, or gone and reaped */
    bool exited;     /* status holds */
    int status;      /* as of waitpid */
    bool joined;     /* known when it has exited: it was an MPI process of this job */
    char *slots;     /* of a rank file; NULL = none said */
    struct place place;
    struct stream out, err; /* what it writes */
};

/* What the ranks of one app have in common. */
struct app {
    const struct app_spec *spec;
    struct program program; /* where this process starts some of its ranks */
    struct library library; /* that it is linked with */
    struct strv env;
    struct strv shell_argv; /* "/bin/sh path arguments", for a script without #! */
};

struct job {
    const struct spec *spec;
    char name[64];      /* = PMIx namespace */
    char parent[64];    /* the job that spawned this one, "" = none */
    uint8_t key[32];    /* the tree's: made by the root, given to daemons by their agents, never sent otherwise */
    uint8_t secret[32]; /* the ranks' key, made of that one; the same in the blocks of all nodes */
    char mark[80];      /* SWEEP_MARK of this process's ranks: several daemons may share a machine */
    int size;
    struct rank *ranks;
    struct node *nodes;
    int nnodes;
    int node; /* the one that this process serves; NODE_NONE: the root has no ranks on its host */
    bool root;
    bool adopted; /* its only rank is no child of this process (singleton.h), and is not ended by it */
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

/* Makes the table of ranks from the apps' sizes; then, when each has its node: local ranks, and the nodes' lists. */
void launch_make_ranks(struct job *);
void launch_number_locals(struct job *);

/* Makes the ranks' key of the tree's. */
void launch_make_secret(struct job *);

/* Sets the mark, when name and node are known. */
void launch_set_mark(struct job *);

/* The node this process serves has the number job->node; how many of its ranks there are, and the i-th. */
static inline int launch_nlocal(const struct job *j) { return j->node == NODE_NONE ? 0 : j->nodes[j->node].nranks; }
static inline struct rank *launch_local(const struct job *j, int i) { return &j->ranks[j->nodes[j->node].ranks[i]]; }

static inline const char *launch_host(const struct job *j, const struct rank *r) { return j->nodes[r->node].name; }

/* The node that a message came from (tree.h): the root's own, if the root sent it. */
static inline int launch_node_of(const struct job *j, int from)
{
    for (int i = 0; from < 0 && i < j->nnodes; i++)
        if (j->nodes[i].own) return i;
    return from < 0 || from >= j->nnodes ? NODE_NONE : from;
}

static inline double launch_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
