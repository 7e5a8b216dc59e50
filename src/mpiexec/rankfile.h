/*
 * rankfile.h - --rankfile: the host, and the processors, of each rank, one a line:
 *
 *     rank 0=a slot=1:0-2      cores 0 to 2 of socket 1 of host a (cpulist.h)
 *     rank 1=b slot=0,2        # a comment
 *     rank 2=+n1               the second host of the job, bound to nothing
 */
#ifndef TERN_MPIEXEC_RANKFILE_H
#define TERN_MPIEXEC_RANKFILE_H

#include "mpiexec/hosts.h"

#define RANKS_MAX (1 << 20) /* ranks of a job */

struct rankfile {
    const char *path; /* NULL: there is none */
    int n;            /* 1 + the highest rank */
    struct rankfile_line {
        char *host;  /* as hosts_canonical; NULL: no line for this rank */
        char *slots; /* NULL: not said */
    } * v;
    struct hosts hosts; /* all that are named, with a slot for each of their ranks */
};

/* 0 or an exit code after saying what is wrong. */
int rankfile_read(struct rankfile *, const char *path);

/* Has each of `size` ranks its line? More lines than ranks are fine. 0 or an exit code after saying which has none. */
int rankfile_check(const struct rankfile *, int size);

/* The place of a rank's host in the list of the job's; -1: it is not there ("+nN" beyond its end, or --nolocal). */
int rankfile_host(const struct rankfile *, int rank, const struct hosts *all);

/* Frees the lines, and leaves the file as if it had not been read. */
void rankfile_free(struct rankfile *);

#endif
