/*
 * wire.h - the messages of one-sided communication: a batch of records from an origin to a target (AM_RMA_OPS), and a batch of
 * answers (AM_RMA_ANSWERS). Both have the context of the window in h0, and 0 in h1.
 *
 *     batch      | record | runs, data | padding | record | ...
 *     answers    | answer | data | padding | answer | ...
 *
 * Records are done in their order, those of a later batch behind those of an earlier one. Records that say so are answered,
 * in the same order, so answers carry no number.
 *
 * The place of an operation is `displacement` units and `offset` bytes behind the start of the target's memory; the target
 * knows its unit, and finds what lies outside. A record with runs has several places: pairs of an offset from there and a
 * number of elements, or bytes; or the target has these already (outline.h). Elements are as they lie in memory, gaps of a pair type included.
 */
#ifndef TERN_RMA_WIRE_H
#define TERN_RMA_WIRE_H

#include "rma/access_log.h"
#include "transport/am.h"
#include "transport/remote.h"

enum { AM_RMA_OPS = TP_AM_RMA, AM_RMA_ANSWERS };

enum win_record_kind {
    WIN_PUT,            /* `count` bytes */
    WIN_GET,            /* the same; answered by the data */
    WIN_ACCUMULATE,     /* `count` elements of `type` */
    WIN_GET_ACCUMULATE, /* the same; answered by what was there */
    WIN_COMPARE_AND_SWAP, /* 1 element; the data is what is compared with, and what is stored. Answered by what was there */
    WIN_LOCK,           /* `op`: enum win_lock_mode; `displacement`: 0, or how many of the above follow until WIN_UNLOCK */
    WIN_UNLOCK,         /* answered */
    WIN_FLUSH,          /* answered */
    WIN_POST,           /* to an origin: MPI_Win_post */
    WIN_COMPLETE,
    WIN_KEY,            /* answered by struct win_key */
    WIN_NOTE,           /* struct win_note: of the next operation. This and the next with TERN_CHECK=rma only */
    WIN_SEEN,           /* answered as WIN_FLUSH: what is before it is done */
    WIN_RECORD_KINDS
};

struct win_record {
    uint8_t kind;
    uint8_t op;    /* enum op_index of an accumulate */
    uint16_t type; /* value of the predefined type's constant */
    uint16_t runs; /* 0: one place */
    uint16_t outline; /* 0, or which runs these are from now on, or are (outline.h) */
    int64_t displacement, offset;
    int64_t count;
    uint64_t bytes; /* of runs and data that follow */
};
static_assert(sizeof(struct win_record) == 40, "wire format");

struct win_run {
    int64_t offset, count;
};

/* What the target's log gets to know of an operation (checking.h). */
struct win_note {
    uint64_t number;  /* of the call: how many operations with data the origin has called on the window */
    uint64_t fences;  /* how many MPI_Win_fence it has behind it */
    uint64_t reads_over; /* what it has read here by calls up to this one has come */
    uint8_t call, epoch; /* as in struct access */
    uint8_t pad[6];
    char place[ACCESS_PLACE];
};
static_assert(sizeof(struct win_note) == 72, "wire format");

/* Two accesses that conflict: the data of an answer to WIN_FLUSH, WIN_UNLOCK or WIN_SEEN with the code TERN_ERR_WIN_CONFLICT. */
struct win_conflict {
    struct access own, other; /* of the origin that is told; and the one that its access conflicts with */
    uint32_t why;             /* enum access_clash */
    uint32_t pad;
};
static_assert(sizeof(struct win_conflict) == 200, "wire format");

struct win_answer {
    uint32_t kind; /* of the record */
    int32_t code;  /* 0; or why nothing was done, or of the first operation since the last unlock or flush that was refused; or
                      that two have conflicted */
    int64_t offset, count; /* with a code: what was asked for, in bytes of the target's memory, which has ...; or a rank that was lost */
    uint64_t there;        /* ... so many */
    uint64_t bytes;        /* of data that follow */
};
static_assert(sizeof(struct win_answer) == 40, "wire format");

/* The memory of the target, for large data (moves.h). */
struct win_key {
    int64_t unit;       /* of displacements */
    uint32_t key_bytes; /* 0: it has no key */
    uint8_t key[REMOTE_KEY_MAX];
    uint32_t pad;
};
static_assert(sizeof(struct win_key) == 176, "wire format");

#define WIN_PADDED(n) (((size_t)(n) + 7) & ~(size_t)7)

/* Bytes of data in one record at most: what is longer is divided. */
#define WIN_PIECE ((size_t)64 << 10)
#define WIN_PIECE_RUNS 1024 /* and runs */
static_assert(WIN_PIECE_RUNS <= UINT16_MAX, "win_record.runs");

#endif
