/*
 * hosts.h - the hosts that ranks may run on: lists of the command line, files of hosts in both dialects, and what a
 * resource manager says (hostenv.c). Names stay as they were written, whole; none is ever resolved, but several words
 * for this host are one host.
 */
#ifndef TERN_MPIEXEC_HOSTS_H
#define TERN_MPIEXEC_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#define HOSTS_MAX 16384 /* in one list */
#define SLOTS_MAX (1 << 20)

struct host {
    char
        *name; /* as the agent takes it: perhaps user@name, an IPv6 address without brackets; this host: hosts_self() */
    int slots; /* ranks meant for it, at least 1 */
    bool said; /* the slots were said, or the host was named several times */
    bool self; /* this host */
    unsigned hash; /* of the name: lists are searched from end to end */
};

struct hosts {
    struct host *v;
    int n;
};

/* The name of this host, as the kernel has it. */
const char *hosts_self(void);

/* The name that a host has in lists: this one's own for all words that mean it, else the word itself. */
const char *hosts_canonical(const char *name);

/* Takes "host[:slots],host ...", an IPv6 address with slots as "[::1]:4". Entries for one host add their slots, 1 if
 * none are said. 0, or an exit code after saying what is wrong. */
int hosts_list(struct hosts *, const char *list);

/* The same for a file with a host a line: "host[:slots] [slots=N] [max_slots=N]"; '#' starts a comment. */
int hosts_file(struct hosts *, const char *path);

/* The hosts that a resource manager (Slurm, PBS, LSF) gave us by variables of the environment; nothing if there is none
 * (hostenv.c). */
int hosts_environment(struct hosts *);

/* Adds one host with so many slots, 0 = not said. `where` is for messages. */
int hosts_add(struct hosts *, const char *name, int slots, const char *where);

struct host *hosts_find(const struct hosts *, const char *name);

/* Takes this host out of the list. */
void hosts_drop_self(struct hosts *);

/* Frees the names, and leaves the list empty. */
void hosts_free(struct hosts *);

/* Sorts by slots, those with equally many in the order they were in. */
void hosts_sort(struct hosts *, bool descending);

/* Leaves in `all` only what `list` names too; slots said there count. A host that `all` has not is an error. */
int hosts_pick(struct hosts *all, const struct hosts *list);

#endif
