/*
 * mail.h - operations on private memory that the target does for an origin of its node, while it is in the library anyway: cache
 * lines that go over and back, where cross-memory attach is a call of the system, and one process copies where two could.
 *
 *     origin   writes operations into a letter, POSTED; changes the bell; looks at the letter for a while
 *     target   its turn finds the bell changed: POSTED -> TAKEN, does them in their order, DONE
 *     origin   DONE: takes the results. Else, after MAIL_PATIENCE_NS: POSTED -> FREE, and does them by itself
 *
 * The target need not come, so nothing is lost if it sleeps: an origin that has waited in vain does not post the next letters. Nor is it woken for one letter, but
 * when some have been in vain. An accumulate is done on behalf of an origin that has what the rule of atomicity wants (apply.h).
 *
 * The mail of a process is a block of its arena (transport/arena.h), one for each created or dynamic window:
 *
 *     | bell | dock | opened | letters of seat 0 | letters of seat 1 | ... | letters of the dock |
 *
 * Each origin has MAIL_LETTERS letters there for small operations, several in each (letters.h). The large letters of the dock are
 * for large operations, piece by piece, of one origin at a time (dock.h). What nobody has opened is not touched, so it costs
 * no memory. A window over memory that all have mapped has none of it.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_MAIL_H
#define TERN_RMA_MAIL_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct step_ops;
struct win;
struct win_region;
struct win_target;

#define MAIL_LETTERS 2 /* of a seat: one is written while the other is done */
#define MAIL_LETTER_BYTES ((size_t)2048)
/* Letters of the dock. A put of 4 MB on two cores that share a cache of 32 MB: 4 x 32 KB 50 GB/s, 4 x 16 KB 46, 8 x 16 KB 45, 8 x 8 KB 40; a
 * plain copy 56, cross-memory attach 15. */
#define MAIL_DOCKED 4
#define MAIL_DOCKED_BYTES ((size_t)32768 + 64)
#define MAIL_PATIENCE_NS 2000u /* about what cross-memory attach costs */

/* An operation in a letter. */
struct mail_head {
    uint8_t kind;     /* enum win_record_kind: WIN_PUT ... WIN_COMPARE_AND_SWAP */
    uint8_t op;       /* enum op_index of an accumulate */
    uint16_t type;    /* value of the constant of its elements' type */
    uint32_t count;   /* bytes, or elements */
    uint64_t address; /* in the target */
};

/* Its data lies behind the head, then its result; of MPI_Compare_and_swap what is compared with, and then what is stored. */
static inline size_t mail_padded(size_t n) { return (n + 7) & ~(size_t)7; }

struct win_letter {
    _Atomic uint32_t state; /* enum mail_state */
    uint32_t bytes;         /* of operations, each padded to 8 */
    char ops[];
};

struct win_mail {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t bell; /* another value with each letter */
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t docked; /* whose the dock is: its seat and 1, 0: nobody's */
    _Atomic uint8_t opened[]; /* by seats: the letters have been used; [n]: the dock has */
};

static inline size_t mail_head_bytes(int32_t n)
{
    return (offsetof(struct win_mail, opened) + (size_t)n + 1 + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}
static inline size_t mail_bytes(int32_t n)
{
    return mail_head_bytes(n) + (size_t)n * MAIL_LETTERS * MAIL_LETTER_BYTES + MAIL_DOCKED * MAIL_DOCKED_BYTES;
}

/* Letters of n seats; those of the dock have their data at the start of a cache line. */
static inline struct win_letter *mail_letter(struct win_mail *m, int32_t n, uint32_t seat, uint32_t which)
{
    return (struct win_letter *)((char *)m + mail_head_bytes(n) + (seat * MAIL_LETTERS + which) * MAIL_LETTER_BYTES);
}
static inline struct win_letter *mail_docked(struct win_mail *m, int32_t n, uint32_t which)
{
    char *first = (char *)mail_letter(m, n, (uint32_t)n, 0) + which * MAIL_DOCKED_BYTES;
    return (struct win_letter *)(first + CACHE_LINE - sizeof(struct win_letter) - sizeof(struct mail_head));
}
#define MAIL_LETTER_ROOM (MAIL_LETTER_BYTES - sizeof(struct win_letter))
#define MAIL_DOCKED_ROOM (MAIL_DOCKED_BYTES - CACHE_LINE + sizeof(struct mail_head))

/* What the origin remembers of an operation in a letter. */
struct mail_item {
    struct mail_head head;
    uint32_t at; /* in win_letter.ops, its data */
    void *to;    /* gets the result; NULL: it is not wanted, or taken otherwise */
};

/* The mail of a window: its owner makes it, describes it to the others and takes it away. Without memory for it there is none. */
void mail_make(struct win *, struct win_region *);
void mail_take_away(struct win *);

/* The same at an origin, of one target. */
void mail_find(struct win_target *, const struct win_region *);

/* Origin. The target is asked for so many bytes of operations; then waited for: they are done, by whoever, and the letter is free
 * again. 0, or a code with words. */
void mail_post(struct win_target *, struct win_letter *, size_t bytes);
int mail_finish(struct win_target *, struct win_letter *, const struct mail_item *, unsigned n);

/* A letter is free: before it is used first, and behind its end. */
void mail_open(struct win_letter *);

/* Takes back a letter of an origin that has died; what the target has begun is done on return. The second: the letters of a seat,
 * before what the dead one has locked is given to others; so does dock_forget. Any process that has the target's mail. */
void mail_clear(struct win_target *, struct win_letter *);
void mail_forget(struct win_target *, uint32_t seat);

/* Is the target there, as far as is known? If not, it does not pay to post a letter now. */
bool mail_is_read(struct win_target *);

/* Does what a letter says, which has not been posted. 0, or a code with words. */
int mail_by_hand(struct win_target *, struct win_letter *, const struct mail_item *, unsigned n);

/* Target. What has come; and the same by one that has other things to do, but is in the library. */
void mail_serve(struct win *);
void mail_look(struct win *);

extern TERN_HIDDEN const struct step_ops mail_ops; /* of struct win.mail */

#endif
