/*
 * agent.h - the program that starts a command on another host: ssh, or what the user names in its place. It is called
 * as
 *
 *     AGENT [options] HOST 'command'
 *
 * and its standard input is the command's. It gets a process group of its own, so that the terminal's signals do not
 * cut the connection to the hosts before the launcher has ended the job, and the kernel ends it with the launcher.
 */
#ifndef TERN_MPIEXEC_AGENT_H
#define TERN_MPIEXEC_AGENT_H

#include "mpiexec/spec.h"
#include <event2/event.h>
#include <sys/types.h>

struct agent {
    pid_t pid;  /* 0 = not started, or gone and reaped */
    int status; /* as of waitpid, when it is gone */
    int in;     /* our end of its standard input, -1 = closed: end of file tells the command that nobody waits for it */
    int out;    /* what it writes on standard output and error, -1 = closed */
    struct event *readable;
    size_t said_length;
    char said[1024]; /* the last of that */
};

/* Starts `command` on `host`, with `input` (a few kB at most) on its standard input. 0 or an exit code after saying
 * why. */
int agent_start(struct agent *, struct event_base *, const struct launcher_spec *, const char *host,
                const char *command, const char *input);

/* Closes its standard input. */
void agent_detach(struct agent *);

/* What it said, on one line; "" when nothing. Into buf. */
const char *agent_words(struct agent *, char *buf, size_t size);

/* Its name for messages. */
const char *agent_name(const struct launcher_spec *);

/* Ends it. */
void agent_kill(struct agent *, int sig);

/* Forgets it after its end. */
void agent_close(struct agent *);

/* `word` in quotes for the shell of the other side. The caller's to free. */
char *agent_quote(const char *word);

#endif
