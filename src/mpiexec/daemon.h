/* daemon.h - mpiexec --tern-daemon: what an agent starts on another host, to serve a node of the job there. */
#ifndef TERN_MPIEXEC_DAEMON_H
#define TERN_MPIEXEC_DAEMON_H

#define DAEMON_OPTION "--tern-daemon"

/* The whole life of a daemon; returns its exit code. */
int daemon_run(void);

#endif
