/*
 * goal.h - schedules: what one rank does in one collective operation, as data.
 *
 * A program is a dependency graph of sends, receives and local operations, laid
 * out as one contiguous, position-independent, versioned block (GOAL-12). It is
 * immutable, so any number of runs (frames, exec.h) share it; build.h makes one,
 * verify.c judges one that came from elsewhere, print.c shows one as text.
 *
 *   block:  | head | slot ranges | indep[] | op | op | op ...              |
 *   op:     | type index tag | dependencies | edge counts | peer |         24 bytes
 *           | pieces: in..., out...                              |         16 bytes each
 *           | after-finish successors, after-start successors    |          4 bytes each, padded to 8
 *
 * Everything inside the block is found by byte offsets from its start. Numbers are
 * in the byte order of the machine; another order is refused by the magic number.
 *
 * Memory is named, never addressed: a piece is (slot, offset, length). Slot 0 is
 * the send buffer, 1 the receive buffer, 2 the scratchpad; others are what the
 * builder makes of them (one a peer in alltoallw). Offsets and lengths count bytes
 * of *packed* data: in a slot that a frame binds to a datatype of size s and extent
 * e, offset k*s is the element at base + k*e. A program therefore serves every
 * datatype of the same size, contiguous or not. Offsets may be negative (negative
 * displacements of the v-collectives); the slot ranges in the block say what is touched.
 *
 * Peers are ranks of the communicator. Reduction operator and datatype belong to the
 * frame. A message is identified by (source, destination, tag); the tag distinguishes
 * the messages between two ranks inside one program, so that nothing depends on the
 * order in which they are posted.
 */
#ifndef TERN_COLL_GOAL_H
#define TERN_COLL_GOAL_H

#include "base/compiler.h"
#include <stdatomic.h>

#define GOAL_MAGIC   0x4c414f47u /* "GOAL" in memory on a little-endian machine */
#define GOAL_VERSION 2

enum goal_slot_name { GOAL_SEND_BUF = 0, GOAL_RECV_BUF = 1, GOAL_SCRATCH = 2, GOAL_SLOT_USER = 3 };
#define GOAL_SLOT_MAX 65535

/* What an operation does; each is documented where exec.c starts it. Values are part of the format. */
enum goal_type {
    GOAL_OP_SEND = 1,
    GOAL_OP_RECV = 2,
    GOAL_OP_COPY = 3,
    GOAL_OP_REDUCE = 4,
    GOAL_OP_REDUCE3 = 5,
    GOAL_OP_JOIN = 6,
    GOAL_OP_STAMP = 7,
    GOAL_OP_ARITH = 8, /* arithmetic on plain numbers: the tag says which (arith.h) */
    GOAL_OP_END
};

enum goal_head_flag {
    GOAL_TYPED_SCRATCH = 1 /* the scratchpad holds elements of the reduction's datatype rather than bytes */
};

enum goal_slot_flag { GOAL_SLOT_READ = 1, GOAL_SLOT_WRITE = 2 };

struct goal_range {
    int64_t lo, hi; /* all pieces in this slot lie in [lo, hi), bytes of packed data */
    uint32_t flags; /* enum goal_slot_flag: what the operations do with it */
    uint32_t zero;
};
static_assert(sizeof(struct goal_range) == 24, "format");

struct goal_head {
    uint32_t magic;
    uint16_t version;
    uint16_t flags; /* enum goal_head_flag */
    uint32_t bytes; /* of the whole block */
    uint32_t op_count;
    uint32_t indep_ops_count; /* operations without predecessors */
    uint32_t slot_count;
    int32_t rank, size; /* whose program, in a communicator of how many */
    int64_t scratch;    /* bytes of packed data the scratchpad holds */
    uint32_t first_op;  /* offset of the first operation */
    uint32_t zero;
    /* struct goal_range[slot_count], then uint32_t indep[indep_ops_count] (offsets of operations) */
};
static_assert(sizeof(struct goal_head) == 48, "format");

struct goal_piece {
    int64_t off;
    uint64_t where; /* slot << 48 | length */
};
static_assert(sizeof(struct goal_piece) == 16, "format");

#define GOAL_LEN_MAX (((uint64_t)1 << 48) - 1)

struct goal_op {
    uint8_t type; /* enum goal_type */
    uint8_t zero;
    uint16_t tag;          /* of messages; operator and type of arithmetic; else 0 */
    uint16_t n_in, n_out;  /* pieces read, pieces written */
    uint32_t index;        /* position among the operations of the program */
    uint32_t dependencies; /* edges that lead here */
    uint16_t n_finish;     /* num_dep_ops: successors released when this one has finished ... */
    uint16_t n_start;      /* ... and when it has been started */
    int32_t peer;          /* of messages */
    struct goal_piece piece[]; /* in..., out...; after them uint32_t dep_offset[n_finish + n_start] */
};
static_assert(sizeof(struct goal_op) == 24 && offsetof(struct goal_op, type) == 0, "format; the type comes first");

#define GOAL_PIECES_MAX 65535
#define GOAL_EDGES_MAX  65535 /* of one kind out of one operation; a builder that needs more fans out over joins */

/* A program: the block and its owners. Immutable but for the count. */
struct goal_prog {
    _Atomic int32_t refs;
    uint32_t zero;
    struct goal_head head; /* the block starts here */
};

static inline unsigned goal_piece_slot(const struct goal_piece *p) { return (unsigned)(p->where >> 48); }
static inline int64_t goal_piece_len(const struct goal_piece *p) { return (int64_t)(p->where & GOAL_LEN_MAX); }

static inline const struct goal_range *goal_ranges(const struct goal_head *h)
{
    return (const struct goal_range *)(h + 1);
}

static inline const uint32_t *goal_indep(const struct goal_head *h)
{
    return (const uint32_t *)(goal_ranges(h) + h->slot_count);
}

static inline const struct goal_op *goal_op_at(const struct goal_head *h, uint32_t off)
{
    return (const struct goal_op *)((const char *)h + off);
}

static inline const uint32_t *goal_edges(const struct goal_op *op)
{
    return (const uint32_t *)(op->piece + op->n_in + op->n_out);
}

static inline uint32_t goal_op_off(const struct goal_head *h, const struct goal_op *op)
{
    return (uint32_t)((const char *)op - (const char *)h);
}

static inline size_t goal_op_bytes(size_t pieces, size_t edges)
{
    return round_up(sizeof(struct goal_op) + pieces * sizeof(struct goal_piece) + edges * sizeof(uint32_t), 8);
}

/* The operation behind `op` in the block (the first is at head.first_op, there are head.op_count). */
static inline const struct goal_op *goal_op_next(const struct goal_op *op)
{
    size_t n = goal_op_bytes((size_t)op->n_in + op->n_out, (size_t)op->n_finish + op->n_start);
    return (const struct goal_op *)((const char *)op + n);
}

/*
 * Judges a block of `size` bytes at an 8-aligned address that came from outside: 0, or TERN_ERR_PROGRAM
 * with words. A block that passes can be run without any access outside the block, the declared slot
 * ranges and the scratchpad, and its graph has no cycle, so a run ends if its messages do (GOAL-2, GOAL-12).
 */
int goal_verify(const void *block, size_t size);

/* The same; *op_p becomes the operation that is wrong, GOAL_NO_OP if it is not one operation. */
int goal_verify_at(const void *block, size_t size, uint32_t *op_p);
#define GOAL_NO_OP UINT32_MAX

/* A new program from a block made elsewhere (copied, judged by goal_verify). One reference. */
int goal_import(const void *block, size_t size, struct goal_prog **prog_p);

struct goal_prog *goal_ref(struct goal_prog *);
void goal_unref(struct goal_prog *); /* NULL is fine */

/* The program as text, one line an operation; malloc'ed, NULL when memory is out. Only for valid programs. */
char *goal_print(const struct goal_head *);
char *goal_print_op(const struct goal_op *); /* one operation: what it does, without number and edges */

/*
 * The other way: the program of a text as goal_print writes it; blanks may be more or fewer. TERN_ERR_PROGRAM with words
 * that name the line. One reference.
 */
int goal_parse(const char *text, struct goal_prog **prog_p);

/* The same for a text that begins at line *line of a file; *line becomes that of operation 0, which the others follow. */
int goal_parse_at(const char *text, int *line, struct goal_prog **prog_p);

/* Name of an operation type ("send", ...), NULL for values that are none. */
const char *goal_type_name(unsigned type);

#endif
