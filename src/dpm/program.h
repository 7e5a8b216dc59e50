/*
 * program.h - the programs of a job to be spawned, as the launcher takes them (proc/dynamic.h). Info keys that are looked at
 * here, in the process that spawns; the launcher knows the others (doc/man/mpiexec.1 has the list):
 *
 *     soft   how many processes (soft.h)
 *     file   a file with more pairs, "key=value" on each line; those of the info object go first
 *     env    variables for the processes, NAME=value on each line
 *     arch   the kind of processor, as uname -m has it; another one than this host's cannot be had
 *     wdir   the directory; without it, that of this process
 *     hostfile, add-hostfile   made absolute, as the launcher has another directory
 *
 * A key that the launcher makes an option of is in the table of mpiexec/spawn_command.c (option_of); the test is test/mpi/dpm/info.c.
 *
 * Threads: any, with different lists.
 */
#ifndef TERN_DPM_PROGRAM_H
#define TERN_DPM_PROGRAM_H

#include "dpm/dpm.h"
#include "proc/dynamic.h"

struct program_list {
    int n;
    struct proc_app *app; /* [n] */
    void *own;            /* what they point to */
};

/* `parent_variable`: "NAME=value", a variable that all processes get besides those of this process. 0 or a code with words: TERN_ERR_INFO,
 * TERN_ERR_SPAWN, TERN_ERR_NOMEM, TERN_ERR_SYSTEM. In any case followed by program_free. */
int program_make(struct program_list *, const struct dpm_program *, int count, const char *parent_variable);
void program_free(struct program_list *);

#endif
