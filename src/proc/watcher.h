/*
 * watcher.h - hears of the ends of processes of this host where no launcher tells of them: one list, and a thread that
 * sleeps until the system says that one of the listed processes has ended.
 *
 *     watcher_watch(index, pid)         the thread sleeps (epoll) on a descriptor of the process (pidfd)
 *     the process ends                  the thread notes that, and rings (watcher_ring_by), which wakes a thread of MPI
 *     watcher_next                      that thread takes the end from the list, in its next turn of progress
 *
 * A caller that finds an end in another way notes it in the same list (watcher_note). Where the system has no
 * descriptors of processes (before Linux 5.3), or no more of them, the thread looks every 50 ms whether the process is
 * still there. The thread is made with the first watched process, so a process that watches none has no such thread.
 *
 * A process is named by its index (jobs.h), and is in the list once. The watcher does not know whether a process has
 * ended in order; the transport does (tp_ops.how_ended).
 *
 * Threads: any, but for watcher_close: no other function of this file is called while it runs.
 */
#ifndef TERN_PROC_WATCHER_H
#define TERN_PROC_WATCHER_H

#include "base/compiler.h"

#include <sys/types.h>

/* From now on the end of this process is noted, at once if it has ended; nothing happens if it is watched already. 0,
 * or a code with words: TERN_ERR_NOMEM, and it is not watched; TERN_ERR_SYSTEM, and only watcher_look finds its end,
 * since there is no thread. */
int watcher_watch(uint32_t index, pid_t pid);
void watcher_forget(uint32_t index); /* its end is not noted any more; it may be watched anew */

/* The process has ended, as the caller has found out; nothing if that is in the list already, or was. */
void watcher_note(uint32_t index);

/* The next one that has ended, each once. False: there is none. */
bool watcher_next(uint32_t *index);

/* If there is no thread, notes the ends of watched processes until now. Does not ring. */
void watcher_look(void);

/* Forgets all processes, and ends the thread. */
void watcher_close(void);

/* Of the layer above; NULL: none, and when this returns the one before is not called any more. It is called when an end has been
 * noted, by the thread, or by the caller of watcher_note or watcher_watch, with the watcher's lock held. */
void watcher_ring_by(void (*)(void));

#endif
