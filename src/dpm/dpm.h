/*
 * dpm.h - dynamic processes (MPI-5.0 chapter 11): groups that did not start together, and become the two groups of an
 * intercommunicator.
 *
 *     root of the group that accepts             root of the group that calls
 *     opens a port (port.h)                      has its name
 *     receives             <---- HELLO ------    its table (table.h)
 *     its table             ----- TABLE ---->
 *     receives             <---- THANKS ------   it has all
 *     sends it to its group                      sends it to its group
 *
 * One message each way, and one that it has come: datagrams that are made reliable (endpoints.h). Either side may say NO instead, with
 * words. Long tables go over a connection (connected.h): MEET says where. Then every process makes the communicator by itself.
 * Processes are connected when they talk to each other first.
 *
 * Files, in reading order. The calls: spawn.c, ports.c (accept, connect), join.c, names.c. The exchange: connect.c. What is told:
 * members.c (each member to its root), table.c (a group), message.c (between the roots). By what: endpoints.c (datagrams), connected.c
 * (a connection for long tables), port.c (the text of a port's name). keys.c: the keys of two jobs; early.c: what MPI_Init makes ready.
 * The arguments of a spawn: program.c, soft.c.
 *
 * Functions return 0 or a code with words. Collective ones fail everywhere in the group, if they do at the root.
 * Threads: any; collective calls on one communicator one after the other.
 */
#ifndef TERN_DPM_DPM_H
#define TERN_DPM_DPM_H

#include "obj/comm.h"
#include "proc/proc.h"

#include <stdlib.h>

/* Opens a port of this process; its name, of at most MPI_MAX_PORT_NAME bytes. dpm_close_port: TERN_ERR_PORT if this process has none
 * of that name. */
int dpm_open_port(char *name);
int dpm_close_port(const char *name);

/*
 * Collective over the intracommunicator `local`; `port` is significant at the root; NULL: the root has none, and all fail. dpm_accept waits
 * for a group that connects to a port of the root; one that fails to, dies meanwhile, or calls and then falls silent for
 * TERN_DGRAM_TIMEOUT, is waited for no more, and the next one takes its place. dpm_connect: TERN_ERR_PORT if that is no port, if nobody
 * answers there, or if this process was given up there.
 */
int dpm_accept(struct comm *local, int root, const char *port, struct comm **out);
int dpm_connect(struct comm *local, int root, const char *port, struct comm **out);

/* The same without a port, where the two roots are in one communicator (comm/create.h): MPI_Intercomm_create of groups with processes of
 * several jobs, whose members may know nothing of each other's. */
int dpm_inter_create(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag, struct comm **out);

/* A program of a job to be spawned. `argv` ends with NULL, is without the program's own name, and may be NULL. */
struct dpm_program {
    const char *command;
    char **argv;
    int n; /* processes */
    const struct info *info; /* NULL: none */
};

/* How many processes of a program were asked for, and were started: fewer, where info key soft allows it; or none. */
struct dpm_count {
    int32_t asked, started;
};

/*
 * Collective over `local`: the root has the programs started as one job, and all get the intercommunicator with it. `programs` is
 * significant at the root; NULL: it has none, and all fail. All get the counts of the programs, malloc'ed (NULL, 0: nobody knows
 * them), also if the call fails. TERN_ERR_SPAWN: what the launcher says; or a process has ended before the groups were
 * connected (one that exits in order is told from one that has connected and finalized only when all have ended). TERN_ERR_PEER: the
 * launcher has gone before it answered. TERN_ERR_INFO: soft, file or env cannot be read. TERN_ERR_ARG: an argument or info value that the
 * launcher does not take.
 * How long the phases took is in the communicator's info: tern_spawn_scheduling, tern_spawn_start, tern_spawn_connect, in seconds.
 */
int dpm_spawn(struct comm *local, int root, const struct dpm_program *programs, int count, struct comm **out, struct dpm_count **counts_p,
              int *count_p);

/* False in a process that certainly has no parent, at the price of a look: MPI_Init calls dpm_parent only if this is true. */
#define DPM_PARENT_PORT "TERN_PARENT_PORT" /* in the environment of spawned processes */
static inline bool dpm_may_have_parent(void)
{
    const struct proc_info *me = proc_self();
    return (*me->parent || me->parent_unknown) && getenv(DPM_PARENT_PORT);
}

/* The library opens, as soon as the process knows its job: what dpm_parent will need is made ready (early.h). dpm_close: it closes. */
int dpm_open(void);
void dpm_close(void);

/* Collective over `world`, of the processes of a spawned job, at their start: the communicator with those that have spawned it.
 * NULL: nobody has. */
int dpm_parent(struct comm *world, struct comm **out);

/* Published names, at the launcher (proc/dynamic.h). TERN_ERR_DUPLICATE: it is published already. TERN_ERR_SERVICE: it is not, or another
 * job has done so. TERN_ERR_NAME: nobody has published it. `port` has room for MPI_MAX_PORT_NAME bytes. */
int dpm_publish(const char *service, const char *port);
int dpm_unpublish(const char *service);
int dpm_lookup(const char *service, char *port);

/* With the process at the other end of a connected stream socket, which calls this as well. The socket carries the name of a port each
 * way and a byte, and is left as it was; behind a failure something may be left in it. TERN_ERR_PEER: the other process has closed it, or
 * has failed. */
int dpm_join(int fd, struct comm **out);

/* The last user of the library has left: ports that are left are closed. */
void dpm_close_ports(void);

#endif
