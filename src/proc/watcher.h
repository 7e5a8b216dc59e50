/*
 * watcher.h - processes of this host whose end is to be heard of where no launcher tells: one list, and a thread that sleeps
 * until the system says that one of them has ended.
 *
 *     watcher_watch(index, pid)         the thread sleeps (epoll) on a descriptor of the process (pidfd)
 *     it ends                           the thread notes that, and calls watcher_rings
 *     watcher_next                      whoever was rung for takes it from the list
 *
 * Who finds an end in another way notes it in the same list (watcher_note). Where the system has no descriptors of processes
 * (before Linux 5.3), or no more of them, the thread looks every 50 ms whether the process is still there. The thread is made
 * with the first process, so a process that watches none has none.
 *
 * A process is told by its index (jobs.h), and is in the list once. Whether it has ended in order is for others to say.
 *
 * Threads: any. The lock is never held while something is called.
 */
#ifndef TERN_PROC_WATCHER_H
#define TERN_PROC_WATCHER_H

#include "base/compiler.h"

#include <sys/types.h>

/* From now on its end is noted, at once if it has ended; nothing if it is watched already. TERN_ERR_NOMEM, and it is not
 * watched; TERN_ERR_SYSTEM with words, and only watcher_look finds its end, since there is no thread. */
int watcher_watch(uint32_t index, pid_t pid);
void watcher_forget(uint32_t index); /* no more, and it may be watched anew */

/* The process has ended, as the caller has found out; nothing if that is in the list already, or was. */
void watcher_note(uint32_t index);

/* The next one that has ended, each once. False: there is none. */
bool watcher_next(uint32_t *index);

/* Notes what has ended by now, if there is no thread that does. Does not call watcher_rings. */
void watcher_look(void);

/* All are forgotten, and there is no thread any more. */
void watcher_close(void);

/* Called when an end has been noted: by the thread, or by the caller of watcher_note or watcher_watch. NULL: nobody is. */
extern void (*watcher_rings)(void);

#endif
