/*
 * grow.h - the daemons below this process: their start by agents, all at once, and their connections back.
 *
 *     COMING --(connection, handshake)--> OPEN --(end of the connection)--> GONE
 *        \____(agent failed, too late)______________________________________/
 *
 * The listening socket exists while a daemon is still coming. A stranger on it costs one link for LINK_STRANGER_S.
 */
#ifndef TERN_MPIEXEC_GROW_H
#define TERN_MPIEXEC_GROW_H

#include "mpiexec/agent.h"
#include "mpiexec/launch.h"
#include "mpiexec/link.h"

struct child {
    enum { CHILD_COMING, CHILD_OPEN, CHILD_GONE } state;
    int vertex, node;
    struct agent agent;
    double deadline;   /* COMING: when it is too late, on the clock of launch_now */
    struct tree_link *link; /* OPEN */
};

struct grow_calls {
    void (*opened)(struct child *);
    bool (*message)(struct child *, const struct link_head *, const void *bytes);
    void (*lost)(struct child *, const char *why); /* it and all below are gone; `why` begins with the host's name */
};

/* Starts the children, whose vertex and node are set, for the process with vertex `vertex`. 0 or an exit code after
 * saying why. */
int grow_open(struct job *, int vertex, struct child *, int n, const struct grow_calls *);

/* A process of ours has ended: was it an agent? */
bool grow_exited(pid_t, int status);

/* Stops waiting for those that are still coming. */
void grow_give_up(void);

/* How many links are open, and how many agents run. */
int grow_links(void);
int grow_agents(void);
void grow_kill_agents(int sig);

#endif
