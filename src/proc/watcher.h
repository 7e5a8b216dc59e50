/*
 * watcher.h - deaths of processes of this host, where the launcher does not tell of them.
 *
 * A thread sleeps on a descriptor of each process that is watched (pidfd), adds the rank of one that has ended to a list, and
 * wakes this process. There is no thread before the first process is watched, and none at all where the launcher tells
 * (proc_deaths). Where the system has no such descriptors, nothing is heard.
 *
 * Threads: watcher_add by any; the others by one, while no other thread uses the library.
 */
#ifndef TERN_PROC_WATCHER_H
#define TERN_PROC_WATCHER_H

#include "proc/proc.h"

/* The list, for a job of so many ranks. Nothing is watched before. */
struct proc_deaths watcher_open(uint32_t ranks);

/* How this process is woken: called by the thread, until watcher_close. */
void watcher_wakes(void (*wake)(void));

/* Watches over a process, which is known by this number here, until it ends. One that has ended is told of at once. */
void watcher_add(uint32_t rank, pid_t);

void watcher_close(void);

#endif
