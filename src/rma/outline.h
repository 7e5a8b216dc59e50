/*
 * outline.h - the runs of memory of a type at the target, which travel once: the first record with them says under which number the
 * target is to keep them, later ones of the same type and count name the number only.
 *
 *     origin   struct outlines_told, one for each target     (count x type), piece --> number
 *     target   struct outlines, one for each origin          number --> runs
 *
 * Both have OUTLINES of them; a new one takes the place of the oldest. Records are done in their order, so both agree.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_OUTLINE_H
#define TERN_RMA_OUTLINE_H

#include "rma/wire.h"
#include "type/type.h"

#define OUTLINES 32
#define OUTLINE_PIECES 8 /* of an operation: more would push out all others */
#define OUTLINE_FROM 4 /* runs; fewer are as short as what saves them */

/* win_record.outline: 0, or a number and one of these. */
#define OUTLINE_NEW ((uint16_t)0x4000)   /* its runs follow */
#define OUTLINE_KNOWN ((uint16_t)0x8000) /* they do not */
#define OUTLINE_NUMBER ((uint16_t)0x3fff)

/* What a piece of an operation is, that has always the same runs. */
struct outline_of {
    struct type *type;        /* a reference is held; NULL: nothing */
    int64_t count;
    const struct type *basic; /* runs of its elements; NULL: of bytes */
    uint32_t piece;
};

struct outlines_told {
    struct outline_told {
        struct outline_of of;
        uint16_t runs;
        int64_t elements; /* in all of them */
    } told[OUTLINES];
    uint32_t next;
};

/* The number of one that the target knows; -1: it does not. */
int outline_find(const struct outlines_told *, const struct outline_of *);

/* A new one: its number. It does not matter if it is forgotten again, as it has not been sent. */
int outline_tell(struct outlines_told *, const struct outline_of *, uint16_t runs, int64_t elements);
void outline_forget(struct outlines_told *, int number);
void outlines_told_close(struct outlines_told *);

struct outlines {
    struct win_run *runs[OUTLINES]; /* malloc'ed */
    uint16_t n[OUTLINES];
};

/* The runs of a record, behind which `rest` begins, or NULL: the record cannot be. *bytes: how many of them lie there. Keeps new ones. */
const char *outline_runs(struct outlines *, const struct win_record *, const char *rest, size_t *bytes);
void outlines_close(struct outlines *);

#endif
