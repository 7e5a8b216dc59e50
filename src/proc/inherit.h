/*
 * inherit.h - descriptors that a process has inherited from Tern's mpiexec, and where to get them when a program in
 * between has closed them: at mpiexec itself, which keeps them open under the same numbers.
 */
#ifndef TERN_PROC_INHERIT_H
#define TERN_PROC_INHERIT_H

#include "base/compiler.h"

/* The launcher's process id and the id of the job block, from JOB_ENV_ID. False: there is no such variable. */
bool inherit_source(int *launcher, uint64_t *block_id);

/* A descriptor of the file with this id (memfile_id_of; 0: not known): `fd` itself or one opened at the launcher (0:
 * none). It is closed by exec from now on. Nothing else is ever opened: an `fd` that is another file now is left alone.
 * -1 with errno: the file is out of reach. */
int inherit_fd(int fd, uint64_t id, int launcher);

/* Has the process `launcher` the file of the descriptor `own` open as `fd`? Then the number means the launcher here
 * too. */
bool inherit_is_at(int launcher, int fd, int own);

#endif
