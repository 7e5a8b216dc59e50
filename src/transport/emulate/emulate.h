/*
 * emulate.h - operations on remote memory by messages (remote.h): they work over every transport. The origin starts
 * them, the owner of the memory executes them when it makes progress.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_TRANSPORT_EMULATE_H
#define TERN_TRANSPORT_EMULATE_H

#include "transport/am.h"
#include "transport/remote.h"

#define EMULATE_DEPTH 32 /* operations of a peer under way at most, and answers that the owner still has to send it */
#define EMULATE_FRAGMENT_MAX ((size_t)1 << 20) /* bytes of data in a message that a peer has to take */

enum { AM_REMOTE = TP_AM_TRANSPORT, AM_REMOTE_BACK };

/*
 * The messages. h0: the id of the memory; h1, from its highest bit on:
 *
 *     | kind 4 | operation 4 | width 2: 1 << it | 0 6 | offset 48 |
 *
 *     EMULATE_PUT          payload: the data
 *     EMULATE_GET          payload: how many bytes (8)
 *     EMULATE_AMO          payload: operand (8), compare (8)
 *     EMULATE_AMO_SILENT   the same, without a result
 *     EMULATE_FLUSH        h0 and the rest of h1 are 0
 *
 * All but puts and silent amos are answered, in their order, by AM_REMOTE_BACK. h1 is the kind alone:
 *
 *     EMULATE_GET          h0: place in the data, which comes in order; payload: data
 *     EMULATE_AMO          h0: the value from before
 *     EMULATE_FLUSH        h0: 0, or 1: memory of a put or silent amo since the last flush was not registered any more
 *     EMULATE_REFUSED      h0: 0; in place of the (rest of the) answer: the memory is not registered any more
 */
enum emulate_kind { EMULATE_PUT = 1, EMULATE_GET, EMULATE_AMO, EMULATE_AMO_SILENT, EMULATE_FLUSH, EMULATE_REFUSED };

static inline uint64_t emulate_word(enum emulate_kind kind, enum remote_op op, uint32_t width, uint64_t offset)
{
    return (uint64_t)kind << 60 | (uint64_t)op << 56 | (uint64_t)(31 - __builtin_clz(width)) << 54 | offset;
}

int emulate_open(void); /* 0, or a code with words */
void emulate_close(void);

/* As remote_put and so on, with the same results; arguments are checked, the peer is connected. */
int emulate_put(struct remote_key *, uint64_t offset, const void *local, size_t n, struct tp_op *);
int emulate_get(struct remote_key *, uint64_t offset, void *local, size_t n, struct tp_op *);
int emulate_amo(struct remote_key *, uint64_t offset, const struct remote_amo *, void *result, struct tp_op *);
int emulate_flush(struct peer *, struct tp_op *);

/* The memory with this id has been deregistered. A peer whose data a transport is just writing there is lost. */
void emulate_deregistered(uint64_t id);

/* The peer is closed: frees what is kept of it. No operation is under way. */
void emulate_forget(struct peer *);

#endif
