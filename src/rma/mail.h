/*
 * mail.h - small operations on private memory that the target does for an origin of its node, while it is in the library anyway: two
 * cache lines that go over and back, where cross-memory attach is a call of the system.
 *
 *     origin   writes the operation into its slot, POSTED; writes the bell; looks at the slot for a while
 *     target   its turn finds the bell changed: POSTED -> TAKEN, does it, DONE
 *     origin   DONE: takes the result. Else, after MAIL_PATIENCE_NS: POSTED -> FREE, and does it by itself
 *
 * The target need not come: an origin that has waited in vain does not try again for the next operations. Nor is it
 * woken for one operation, but when some have been in vain. An accumulate is done on behalf of an origin that has what the rule of atomicity wants (apply.h).
 *
 * The mail lies behind the exposure of created and dynamic windows, with a slot for each seat but the target's own:
 *
 *     | bell | slot | slot | ...
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_MAIL_H
#define TERN_RMA_MAIL_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdint.h>

struct step_ops;
struct type;
struct win;
struct win_op;
struct win_target;

#define MAIL_MOST 104          /* bytes of data of an operation, or of its result */
#define MAIL_PATIENCE_NS 2000u /* about what cross-memory attach costs */

struct win_slot {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t state; /* enum mail_state */
    uint8_t kind;     /* enum win_record_kind: WIN_PUT ... WIN_COMPARE_AND_SWAP */
    uint8_t op;       /* enum op_index of an accumulate */
    uint16_t type;    /* value of the constant of its elements' type */
    uint64_t address; /* in the target */
    uint32_t count;   /* bytes, or elements */
    uint32_t pad;
    char data[MAIL_MOST];
};
static_assert(sizeof(struct win_slot) == 2 * CACHE_LINE, "shared layout");

struct win_mail {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t bell; /* another value with each operation */
    struct win_slot slots[];                        /* by seat */
};

/* Does the target do it? a: contiguous on both sides, at most MAIL_MOST bytes there and back; `data`: n bytes, or elements, or NULL,
 * and `back`, which gets the result or is NULL. 0; TERN_ERR_UNSUPPORTED: it has not; TERN_ERR_PEER with words: it has died. */
int mail_do(struct win_target *, const struct win_op *a, uint64_t address, const void *data, void *back, int64_t n);

/* What has come to this process. */
void mail_serve(struct win *);

extern TERN_HIDDEN const struct step_ops mail_ops; /* of struct win.mail */

#endif
