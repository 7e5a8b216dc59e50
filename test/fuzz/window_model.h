/*
 * window_model.h - the memory of a window at its target, and what the messages of an origin make of it (rma/wire.h): slow and
 * obvious, to compare the target with.
 *
 * The model has a copy of all memory that is looked at: that of the window, and what lies around it. It takes the same
 * batches as the target, and says what that must have done: which bytes have changed, which answers it has given, whether the
 * origin waits for a lock, and whether it has sent what cannot be.
 */
#ifndef TEST_WINDOW_MODEL_H
#define TEST_WINDOW_MODEL_H

#include "rma/outline.h"
#include "rma/wire.h"
#include "rma/win_lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_PIECES = 4, MODEL_BATCHES = 256 };

/* One target. */
struct model {
    uint8_t *real, *copy; /* `room` bytes each */
    size_t room;
    bool dynamic;
    int64_t unit;
    int pieces; /* of the window's memory within `real`, by address; 1 but for dynamic windows */
    struct model_piece {
        uint8_t *at;
        int64_t bytes;
    } piece[MODEL_PIECES];
    int held[2];          /* by others than the origins: shared, exclusive (by enum win_lock_mode) */
    bool accumulate_held; /* the accumulate lock */
    bool stopped;         /* and atomic operations are stopped: all wait for it */
    struct win_key key;   /* what the target says of its memory */
    struct model_origin *origin[2];
};

/* What one origin has sent. */
struct model_origin {
    struct model *m;
    int holds; /* 0, or 1 + enum win_lock_mode */
    bool impossible;
    bool counts;       /* the lock request has said how many operations follow; */
    int64_t announced; /* so many have not come */
    int64_t posts, completes;
    struct win_answer refused;
    struct model_bytes {
        uint8_t *at;
        size_t n, room;
    } kept, answers; /* what waits for a lock; what it was answered, which the caller takes from there */
    struct model_outline {
        uint8_t *runs; /* malloc'ed */
        uint16_t n;
    } outline[OUTLINES]; /* runs that it has sent to be kept */
    size_t batch[MODEL_BATCHES]; /* the bytes of each batch in `kept` */
    int batches;
};

/* `real` is as it is to be. */
void model_open(struct model *, uint8_t *real, size_t room);
void model_close(struct model *);
void model_origin_open(struct model *, int which, struct model_origin *);
void model_origin_close(struct model_origin *); /* it is lost: what it holds is given back */

void model_say(struct model_origin *, const void *batch, size_t n);
void model_go_on(struct model_origin *); /* a lock was given back, perhaps */
bool model_waits(const struct model_origin *);
bool model_is_full(const struct model_origin *); /* nothing more may be said now */

/* The first byte that is not as it should be; NULL: all are. */
const uint8_t *model_differs(const struct model *);

void model_append(struct model_bytes *, const void *, size_t n);

#endif
