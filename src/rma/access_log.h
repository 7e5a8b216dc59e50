/*
 * access_log.h - the accesses to the memory of one target that may be going on at the same time, and which of them conflict
 * (TERN_CHECK=rma, checking.h).
 *
 * An access is there from its call until no other access can be concurrent with it any more, as far as the target can know:
 *
 *     epoch of            it goes when
 *     MPI_Win_fence       an access of a later fence epoch comes, or the target's own fence has ended
 *     MPI_Win_start       MPI_Win_wait ends at the target
 *     MPI_Win_lock, _all  its origin flushes or unlocks, since origins may order what follows by messages of their own
 *
 * Two accesses that touch the same bytes conflict (access_clash) unless
 *     both only read;
 *     or both are accumulates of the same elements of the same predefined type, and these are of one origin, which orders them;
 *         or have the same operator; or one is MPI_Compare_and_swap, or, if the hint accumulate_ops allows it, MPI_NO_OP.
 *
 * The log is bounded: neighbouring accesses of one place in the program are joined, and the oldest ones go when it is full.
 *
 * Source: MPI-5.0 sections 12.7 and 12.2.1.
 * Threads: the caller's business.
 */
#ifndef TERN_RMA_ACCESS_LOG_H
#define TERN_RMA_ACCESS_LOG_H

#include "base/compiler.h"

#include <stdint.h>

enum access_epoch { ACCESS_FENCE, ACCESS_START, ACCESS_LOCK_SHARED, ACCESS_LOCK_EXCLUSIVE, ACCESS_LOCK_ALL, ACCESS_EPOCHS };

#define ACCESS_PLACE 40

/* Also a part of answers (struct win_conflict). */
struct access {
    uint64_t first, last; /* numbers of the calls: of one, or of several that were joined */
    uint64_t fences;      /* that the origin has behind it on this window */
    int64_t begin, end;   /* bytes of the target's memory, or addresses in a dynamic window */
    int32_t origin;
    uint16_t type;        /* of accumulates: value of the predefined type's constant */
    uint8_t kind;         /* enum win_record_kind: WIN_PUT ... WIN_COMPARE_AND_SWAP */
    uint8_t op;           /* enum op_index, of accumulates */
    uint8_t call;         /* which MPI call it was (checking.c) */
    uint8_t epoch;        /* enum access_epoch */
    uint8_t phase;        /* of accumulates: begin modulo the extent of an element */
    uint8_t flushed;      /* its origin has waited until it was done */
    uint8_t brief;        /* it is over as soon as it is done: compared with those that are there, and not kept */
    uint8_t pad[3];
    char place[ACCESS_PLACE]; /* where in the program, in words; "": not known */
};
static_assert(sizeof(struct access) == 96, "wire format");

enum access_clash { CLASH_NONE, CLASH_PUT, CLASH_GET, CLASH_TYPES, CLASH_ELEMENTS, CLASH_OPERATORS, CLASHES };

/* What the hints of the window say. */
struct access_rules {
    bool same_op;   /* accumulate_ops=same_op: not beside MPI_NO_OP either */
    bool unordered; /* accumulate_ordering allows other orders of one origin's accumulates */
};

struct access_log {
    struct access *of;
    int32_t n, room;
    uint64_t fences; /* the most that an access has said */
    bool dropped;    /* accesses had to go, or have not come in, for want of room */
};

#define ACCESS_MOST 4096

/* Why two accesses must not be concurrent. */
enum access_clash access_clash(const struct access *, const struct access *, const struct access_rules *);

/* Adds one. Returns why it conflicts with one that is there, which is copied to *other. */
enum access_clash access_log_add(struct access_log *, const struct access *, const struct access_rules *, struct access *other);

void access_log_flush(struct access_log *, int32_t origin);                      /* it has flushed, unlocked or completed */
void access_log_reads_over(struct access_log *, int32_t origin, uint64_t upto);  /* what it has read by calls up to this one has come */
void access_log_fence(struct access_log *, uint64_t fences);                     /* as many have ended */
void access_log_end_exposure(struct access_log *);                               /* MPI_Win_wait */
void access_log_forget(struct access_log *, int32_t origin);
void access_log_close(struct access_log *);

#endif
