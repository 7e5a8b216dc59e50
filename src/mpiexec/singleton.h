/*
 * singleton.h - the mpiexec of a process that was started without one, and has started this one for itself
 * (src/proc/ask.h). It is a first mpiexec (spawn.h) whose job is that process, alone: it answers its questions
 * and starts the jobs that it spawns.
 *
 * The process is not our child. That it has ended is seen by a descriptor of the process, or, where the system has no
 * such descriptors, by the end of file on the line. If it has left MPI before, the spawned jobs go on, and this mpiexec
 * ends with the last of them. Else they are ended.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_SINGLETON_H
#define TERN_MPIEXEC_SINGLETON_H

/* All that this mpiexec does, from its start to its exit code. `path`: its own. */
int singleton_run(char *path);

#endif
