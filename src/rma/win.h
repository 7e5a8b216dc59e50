/*
 * win.h - windows: memory that each process of a communicator exposes to the others (MPI-5.0 chapter 12).
 *
 * A window has a communicator of its own, a duplicate of the user's, by whose context messages find the window and whose
 * collectives it uses. How the memory of another process is reached depends on where that is:
 *
 *     near   on the same node, and its struct win_exposure is mapped here: by loads and stores where the memory is mapped
 *            (win_memory.at); else by the target, if it is in the library (mail.h), or by cross-memory attach (near.h)
 *     far    all others, and near ones whose private memory the system does not let this process reach: by messages,
 *            which the target handles when it makes progress (far.h, serve.h)
 *
 * What a window knows of another process is a struct win_target, made when this process first has something to do with that
 * one in this window. So a window costs what is used of it, however large its communicator.
 *
 * Threads: the state of a window is under the lane of its communicator, which is the first one (lanes.h), but for what is said
 * of a member.
 */
#ifndef TERN_RMA_WIN_H
#define TERN_RMA_WIN_H

#include "base/list.h"
#include "obj/comm.h"
#include "rma/exposure.h"
#include "rma/memory.h"
#include "rma/passive.h"
#include "transport/progress.h"
#include "type/type.h"

struct info;
struct peer;
struct remote_key;
struct remote_mem;
struct win_checking;
struct win_target;

/* What this process may do, or is doing, as an origin. */
enum win_access { WIN_NO_ACCESS, WIN_FENCE, WIN_START, WIN_LOCK_ALL };

/* The processes of the window on this node, by seats (exposure.h). */
struct win_near {
    int32_t n, own;  /* how many, and which one this process is */
    int32_t *rank;   /* [n] in the window, ascending */
    uint64_t *place; /* [n] of their exposures in their segments (tp_ops.map), 0: not to be mapped. NULL: nobody else can be near */
    bool alone;      /* there is none but this one: nobody else reaches its memory without messages */
    bool stops;      /* all of them have called atomics_prepare */
    struct win_exposure *exposure; /* this process's */
    uint64_t offset;               /* of it in the segment */
    bool shared;                   /* it lies there; else it is this process's own */
    struct win_mail *mail;         /* what others ask for (mail.h), NULL: there is none; its memory */
    struct win_memory mailbox;
};

struct win {
    struct handle h;
    struct comm *comm;
    int flavor;      /* MPI_WIN_FLAVOR_... */
    void *base;      /* of this process's memory */
    MPI_Aint bytes;
    MPI_Aint unit;   /* of displacements */
    int unit_int;    /* the same, as attribute */
    int model;       /* MPI_WIN_UNIFIED: attribute */
    void *memory;    /* that was allocated for the window, NULL: none was */
    int64_t before;  /* bytes of those with lower ranks in the one piece of memory */
    bool together;   /* MPI_Win_allocate_shared gave all of them one piece of memory, which is the one of seat 0 */
    struct win_memory shown;  /* the memory, or the one piece where that is this process's */
    struct win_attached attached; /* to a dynamic window */
    enum win_passive passive; /* how others that use messages are served */
    bool standing;            /* this is a service in the background (background.h) */
    int64_t moves_from;       /* bytes: TERN_RMA_MOVES */
    bool lands;               /* landing_open was called */
    struct remote_key *block; /* of the one piece, opened here; NULL: it is this process's */
    struct win_near near;

    /* line: what an operation looks at. `last` by any thread */
    TERN_ALIGNED(CACHE_LINE) struct win_target *_Atomic last; /* the one that was used last; at first one without a rank */
    _Atomic uint32_t epoch; /* changes when access epochs to all targets begin and end; see win_target.open */
    enum win_access access;
    int32_t locks;          /* targets locked by MPI_Win_lock */
    bool fence_used;        /* operations have followed MPI_Win_fence, so it has begun an epoch */
    uint32_t sends;         /* messages and moves that have gone out (far.c) */
    uint32_t calls;         /* that have looked for messages, or might have (epoch.c) */
    bool exposed;           /* between MPI_Win_post and the end of MPI_Win_wait */
    bool unchecked;         /* MPI_Win_lock_all, or MPI_Win_start, said MPI_MODE_NOCHECK */

    struct win_target **targets; /* by rank: a hash table of `room` entries, a power of two */
    uint32_t room, count;

    int32_t *started, starts;  /* the targets of MPI_Win_start, how many */
    int32_t *origins, posted;  /* the origins of MPI_Win_post */
    struct step lost;          /* ends what was started at a peer that is lost */
    struct step mail;          /* looks at near.mail */

    struct win_serve *serve; /* what others want of this process by messages (serve.c), NULL: nothing so far */

    struct win_checking *checking; /* TERN_CHECK=rma: every operation is looked at (checking.h); NULL: none is */

    struct errhandler *errh;
    struct info *info; /* hints that the user gave, owned; NULL: none */
    void *attrs;
    char name[MPI_MAX_OBJECT_NAME];
    bool given_up;      /* see win.c, abandon: its memory is not to be touched any more ... */
    int32_t because_of; /* ... since this rank was lost; -1: none was */
};

/* Its memory may be private while others are near. */
static inline bool win_has_mail(const struct win *w)
{
    return w->near.n > 1 && (w->flavor == MPI_WIN_FLAVOR_CREATE || w->flavor == MPI_WIN_FLAVOR_DYNAMIC);
}

#endif
