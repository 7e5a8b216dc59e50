/*
 * exposure.h - what a process shows the others of its node of its part of a window. It lies in the process's segment
 * (peer_shared_alloc), and the others map it (ep_map).
 *
 *     | lock | accumulate lock | what the memory is | seats of the first: n + 1 | seats of the second: n + 1 | busy words: n + 1 |
 *     and in windows that may have private memory (created, dynamic)  | where the mail is |
 *
 * Each process of the window that is on the node has a seat in both locks: its number among them, by rank. Seat n is that of
 * the target for the origins that use messages (serve.c).
 *
 * The part in the middle is written before the window is complete, and does not change but for `attached`, `stopped`, `few` and `given_up`.
 */
#ifndef TERN_RMA_EXPOSURE_H
#define TERN_RMA_EXPOSURE_H

#include "rma/win_lock.h"
#include "transport/remote.h"

/* A piece of memory. */
struct win_region {
    uint64_t address, bytes;     /* in its owner */
    uint64_t serial;             /* which attachment it is, 0: none */
    uint32_t common;             /* all processes of the node reach it by loads and stores (apply.h) */
    uint32_t key_bytes;          /* 0: it cannot be mapped */
    uint8_t key[REMOTE_KEY_MAX]; /* remote_key_pack */
};
static_assert(sizeof(struct win_region) == 192, "shared layout");

struct win_exposure {
    struct win_lock lock;       /* of MPI_Win_lock */
    struct win_lock accumulate; /* of accumulates that are more than one operation of the processor each (near.c) */
    struct win_region memory;   /* nothing in a dynamic window */
    int64_t unit;
    _Atomic uint64_t attached;  /* to a dynamic window (memory.h) */
    _Atomic uint32_t stopped;   /* atomic operations on the memory: enum atomics_state */
    _Atomic uint32_t given_up;  /* 0, or the memory is not to be touched any more (win.c, abandon): 2 + win.because_of */
    uint32_t few;               /* changes of few elements in turn, while they are stopped (atomics.h) */
    uint32_t pad[9];
    _Atomic uint64_t seats[];
};
static_assert(sizeof(struct win_exposure) == 6 * CACHE_LINE, "shared layout");

/* The description of the mail (mail.h), behind all that; of no bytes where the process has none. */
static inline struct win_region *exposure_mail(struct win_exposure *x, int32_t n) { return (struct win_region *)(x->seats + 3 * (n + 1)); }

static inline size_t exposure_bytes(int32_t n, bool mail)
{
    return sizeof(struct win_exposure) + 3 * (size_t)(n + 1) * sizeof(uint64_t) + (mail ? sizeof(struct win_region) : 0);
}

#endif
