/*
 * progress.h - what the progress of this process drives besides the transports: sources, and retries.
 *
 * A source has a function that is to be called when its descriptor is readable or its time has come; an endpoint of
 * datagrams is one (dgram/dgram.h). Progress looks at it as often as at a transport whose poll is a system call, and
 * its descriptor and its time wake the threads that sleep in the wait. Where none is open there are no descriptors, and
 * progress does not look at this file.
 *
 * All sources share one timer, which sleepers poll together with the sources' descriptors:
 *
 *     progress    what has come is taken; the timer is set if a source is due sooner than it says
 *     idle        before a sleep: the timer is set to the first time at which a source is due
 *     sleep       in poll: doorbell's socket, transports, sources, timer
 *
 * A retry is something that waits for room in a transport. It is tried at the end of every turn of progress, behind the
 * transports that may have made room. Meanwhile a sleeper is also woken by room (tp_ops.idle), and the process does not
 * take its leave (tp_ops.drained). Where none waits, progress looks at one pointer.
 *
 * Threads: under the lane's lock, except for progress_fds.
 */
#ifndef TERN_TRANSPORT_PROGRESS_H
#define TERN_TRANSPORT_PROGRESS_H

#include "base/list.h"

#define PROGRESS_SOURCES 4 /* open at a time */
#define PROGRESS_FDS (1 + PROGRESS_SOURCES)

/* The owner's memory; not moved while it is open. */
struct progress_source {
    int fd; /* readable while something has come; -1: none, `due` says when to look */

    /* Does what is to be done at `now` (clock_ns, which never goes back) and returns how much happened. Never blocks. */
    int (*progress)(struct progress_source *, uint64_t now);

    /* When `progress` is to be called though nothing came, in ns of clock_ns; UINT64_MAX: never; 0: at once. */
    uint64_t (*due)(const struct progress_source *);
};

/*
 * progress_open: from now on progress drives the source. 0, or a code with words: there are too many sources or no
 * descriptors. progress_close: no more; on return no thread polls the source's descriptor. Layers above point-to-point
 * communication call pt_progress_open and pt_progress_close (pt2pt/api.h), which take the lock and stop the helper
 * thread meanwhile.
 */
int progress_open(struct progress_source *);
void progress_close(struct progress_source *);

/* The owner has given a source something to do: wakes sleeping threads to do it. Nothing happens if the source is not
 * open. */
void progress_hurry(const struct progress_source *);

/* The owner's memory; `link` a list of its own at first. */
struct progress_retry {
    struct link link;

    /* Tries once more and returns how many messages were sent. Never blocks; asks for the next try by progress_await. */
    int (*retry)(struct progress_retry *);
};

/* progress_await: `retry` is called in the next turn of progress. progress_await_no_more: it is not. Both may be called
 * at any time, and by `retry`; neither fails. */
void progress_await(struct progress_retry *);
void progress_await_no_more(struct progress_retry *);

/* For wires.c. progress_waits: does anything wait for room? progress_retries: tries all of it; how many messages were
 * sent. */
extern TERN_HIDDEN struct link progress_waiting;
static inline bool progress_waits(void) { return !list_empty(&progress_waiting); }
int progress_retries(void) TERN_COLD;

/*
 * For wires.c.
 *   progress_look   progress of all sources; how much happened
 *   progress_idle   true: no source has anything to do now, and the timer is set for the first that is due
 *   progress_fds    the descriptors to poll, at most PROGRESS_FDS; how many. By any thread
 */
int progress_look(void);
bool progress_idle(void);
int progress_fds(int *fds);

#endif
