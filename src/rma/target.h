/*
 * target.h - another process of a window (or this one), as this process knows it: where its memory is, whether it may be
 * accessed now, and, for a far one, what has been started.
 *
 * Threads: under the lane of the window's communicator; `epoch` and what is constant by any.
 */
#ifndef TERN_RMA_TARGET_H
#define TERN_RMA_TARGET_H

#include "rma/win.h"

enum win_open { WIN_CLOSED, WIN_STARTED, WIN_LOCKED_SHARED, WIN_LOCKED_EXCLUSIVE };

struct win_target {
    /* what an operation on mapped memory reads. Constant but for `epoch` */
    int32_t rank;
    _Atomic uint32_t epoch; /* that of the window in which the target was found open; 0: in none */
    int64_t unit;           /* of displacements, where it is near */
    struct win_memory memory; /* where it is near; of a dynamic window it has no bytes */
    struct win_exposure *exposure; /* NULL: it is far */
    _Atomic uint64_t *busy; /* this process's busy word there (atomics.h); near */
    uint64_t unstopped;     /* atomics_are_many; near */

    struct win *win;
    struct peer *peer;
    struct win_attached attached; /* in a dynamic window, what is known of it */
    struct win_locking lock, accumulate; /* near */
    struct win_mail *mail;  /* near, with private memory; else NULL. Its memory */
    struct win_memory mailbox;
    uint32_t seat;          /* near: the target's own */
    struct win_letters *letters; /* in it, of small operations; NULL: nothing so far */
    struct win_dock *dock;  /* in it, of large operations; NULL: nothing so far */
    uint32_t vain;          /* how often the target was waited for in vain since it has come last */
    uint64_t away_until;    /* ns, clock_ns: no letter is posted before; 0: it is there, as far as is known */
    enum win_open open;
    bool unchecked;         /* MPI_MODE_NOCHECK: the lock is not taken */
    bool held;              /* the lock is */
    bool taking[2];         /* a thread of this process waits for the lock (0), or for the accumulate lock (1) */
    struct win_far *far;    /* what has been started there by messages (far.c), NULL: nothing so far */
    struct win_served *served; /* what that process wants here by messages (serve.c), NULL: nothing so far */
    uint64_t reads_over;    /* TERN_CHECK=rma: what has been read there by calls up to this one has come (checking.h) */
    int32_t posts;          /* MPI_Win_post of that process that no MPI_Win_start has met yet */
    int32_t completes;      /* MPI_Win_complete of that process that no MPI_Win_wait has met yet; -1: one that failed awaits it */
};

/* Stands for no target: win.last at first. */
extern TERN_HIDDEN struct win_target win_nobody;

/* That of a rank; made at the first time. NULL with words: the process is lost or cannot be reached, or memory is out. Lane
 * held. */
struct win_target *win_target(struct win *, int32_t rank);

/* The same by the window's last one, by any thread; NULL: ask win_target. */
static inline struct win_target *win_target_last(const struct win *w, int rank)
{
    /* acquire: pairs with the release in win_target */
    struct win_target *t = atomic_load_explicit(&w->last, memory_order_acquire);
    return likely(t->rank == rank) ? t : NULL;
}

/* Has a near target given up its part of the window? 0, or TERN_ERR_PEER with words. */
int win_target_given_up(const struct win_target *);

/* A target has given it up, since this rank was lost (another number: since the window was not made by all). TERN_ERR_PEER with words. */
int win_target_gives_up(const struct win_target *, int64_t lost) TERN_COLD;

/* That of a rank if there is one. Lane held. */
struct win_target *win_target_known(const struct win *, int32_t rank);

/* The window's end: all of them go. */
void win_targets_close(struct win *);

/* Calls `each` with all of them, until it returns a code. Lane held. */
int win_targets_each(struct win *, int (*each)(struct win_target *));

#endif
