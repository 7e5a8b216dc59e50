/*
 * remote.h - memory of other processes. Its owner registers it and sends a packed key, which does not depend on
 * addresses, to other processes, the origins. They open the key and then read, write and atomically change the memory.
 * It is the ground for MPI's one-sided operations (why so: doc/decisions/remote-memory.md).
 *
 *     owner     remote_reg -> remote_key_pack ~~ message ~~> remote_key_open    origin
 *                                                            remote_put, remote_get, remote_amo, remote_flush
 *               remote_dereg        <~~ message ~~           remote_key_close
 *
 * One set of calls for all ways. Which way an operation goes is decided when the key is opened:
 *   mapped    the memory is mapped here (key->at): loads, stores and atomic instructions of the processor
 *   direct    the transport reads and writes it without the owner's help (struct tp_remote)
 *   messages  the owner does it when it makes progress (emulate/). Any transport has this way, so all operations work.
 *
 * Results of an operation: TERN_DONE: complete on return, op->done is not called; 0: op->done(op, rc) is called once,
 * later or during the call; TERN_AGAIN: too many operations are under way to the peer, and nothing was started; else a
 * code with words, nothing was started, and op->done is not called:
 *   TERN_ERR_ARG        the range is not within the memory, or not aligned for an amo; or the memory is not registered
 *                       for this kind of access
 *   TERN_ERR_NOT_FOUND  the memory is not registered any more
 *   TERN_ERR_PEER       the peer is lost
 *   TERN_ERR_NOMEM      memory is out
 *
 * "Complete" means:
 *   put            the local memory may change again. The data is in the owner's memory after a flush
 *   get            the data is in the local memory, which must not be used before
 *   amo            (an atomic operation) with a result: it has been executed and the result is there;
 *                  without one: nothing of the caller's is needed any more, as with a put
 *   flush          all puts and amos that this process has started to the peer before are in its memory
 *
 * If the owner refuses a put, or an amo without a result, the operation itself ends with 0; the next flush has the
 * code.
 *
 * Order: none between operations but by flush, with one exception: amos of one process through one key are done in the
 * order of the calls.
 *
 * Atomicity: an amo is one atomic operation of a processor that has the memory, at a place aligned to its width. So the
 * amos of all processes, by whatever ways and keys, and atomic operations of that width by the owner itself, are
 * atomic with respect to each other. A transport whose hardware cannot keep this leaves amos to messages. Puts and gets
 * are not atomic.
 *
 * The end: an owner deregisters memory when the others have closed their keys. An operation that is started through a
 * key whose memory has been deregistered ends with TERN_ERR_NOT_FOUND, and touches nothing. An operation that is under
 * way at that moment may still touch the memory. If a transport is just writing the data of a put there, the owner
 * loses that peer.
 *
 * When the peer is lost, operations under way end with TERN_ERR_PEER, and so do operations that are started later. On
 * mapped memory only the next flush ends so.
 *
 * Threads: remote_find and remote_was, and loads, stores and atomic instructions at remote_at: any thread. The rest under
 * the lane's lock.
 */
#ifndef TERN_TRANSPORT_REMOTE_H
#define TERN_TRANSPORT_REMOTE_H

#include "transport/transport.h"

struct remote_mem; /* registered memory of this process */

enum remote_access { REMOTE_READ = 1, REMOTE_WRITE = 2, REMOTE_ATOMIC = 4 };

/* Atomic operations on unsigned integers of 1, 2, 4 or 8 bytes in the order of bytes of the processor. */
enum remote_op { REMOTE_ADD, REMOTE_AND, REMOTE_OR, REMOTE_XOR, REMOTE_SWAP, REMOTE_CAS, REMOTE_OPS };

struct remote_amo {
    enum remote_op op;
    uint32_t width;   /* 1, 2, 4, 8 */
    uint64_t operand; /* its lower `width` bytes */
    uint64_t compare; /* of REMOTE_CAS, which stores `operand` if this is there */
};

#define REMOTE_BYTES_MAX ((uint64_t)1 << 48) /* of one registered memory */
#define REMOTE_KEY_MAX 160                   /* bytes of a packed key, at most */

/* Memory of another process, opened here. */
struct remote_key {
    struct peer *peer;
    char *at;                     /* it is mapped here, at this address until the key is closed; NULL: it is not */
    const _Atomic uint64_t *live; /* `id` as long as the memory is registered; NULL: only the owner knows */
    uint64_t id, bytes;
    uint32_t access; /* enum remote_access */
    uint8_t align;   /* address of its first byte, modulo 8 */
    bool direct;     /* put and get are the transport's */
    bool direct_amo; /* so are amos */
    bool opened;     /* key_open has taken it, and key_close is called for it */
    uint64_t priv;   /* the transport's own */
};

/* What a transport does by itself; tp_ops.remote. Who calls, what blocks, who owns memory: as in transport.h, unless
 * said otherwise. */
struct tp_remote {
    /* Memory of this process that others may reach by this transport; `id` is its number in this process.
     * TERN_ERR_UNSUPPORTED: not by this transport. The transport's own state of it in *mem. */
    int (*mem_reg)(struct tp_dom *, uint64_t id, void *base, size_t bytes, uint32_t access, void **mem);
    void (*mem_dereg)(struct tp_dom *, void *mem);

    /* Writes what peers need to reach it, at most cap bytes; returns the length. */
    int (*key_pack)(struct tp_dom *, const void *mem, void *buf, size_t cap);

    /* Sets `at`, `live`, `direct`, `direct_amo` and `priv` of a key whose other members are set. TERN_ERR_UNSUPPORTED:
     * operations go by messages. */
    int (*key_open)(struct tp_ep *, const void *packed, size_t n, struct remote_key *);
    void (*key_close)(struct tp_ep *, struct remote_key *); /* of each key that key_open took. NULL: nothing to do */

    /* As remote_put and so on, checked already, for keys with `direct`. TERN_ERR_UNSUPPORTED: it has ceased to work,
     * and the operation goes by messages, as all others through the key from then on. Needed if key_open sets the
     * flags. */
    int (*put)(struct tp_ep *, struct remote_key *, uint64_t offset, const void *local, size_t n, struct tp_op *);
    int (*get)(struct tp_ep *, struct remote_key *, uint64_t offset, void *local, size_t n, struct tp_op *);
    int (*amo)(struct tp_ep *, struct remote_key *, uint64_t offset, const struct remote_amo *, void *result,
               struct tp_op *);

    /* Puts and amos of this transport are done at the peer. Never TERN_AGAIN. NULL: they are so when they are complete. */
    int (*flush)(struct tp_ep *, struct tp_op *);
};

/* Registers [base, base + bytes), which stays the caller's, with all transports. `access`: what others may do there
 * (enum remote_access). 0, or a code with words: TERN_ERR_ARG (there is no such memory), TERN_ERR_NOMEM, or a
 * transport's. */
int remote_reg(void *base, size_t bytes, uint32_t access, struct remote_mem **);
void remote_dereg(struct remote_mem *);

/* Writes the key for other processes into buf, at most REMOTE_KEY_MAX bytes. The length; or TERN_ERR_INTERN, with
 * words: it has more than cap bytes; or a transport's code. */
int remote_key_pack(const struct remote_mem *, void *buf, size_t cap);

/* Opens a key that `peer` has packed; connects the peer if it is not connected. 0, or a code with words: TERN_ERR_ARG
 * (the bytes are no key), TERN_ERR_NOMEM, or a code of peer_connect. */
int remote_key_open(struct peer *, const void *packed, size_t n, struct remote_key **);
void remote_key_close(struct remote_key *); /* no operation is under way through it */

int remote_put(struct remote_key *, uint64_t offset, const void *local, size_t n, struct tp_op *);
int remote_get(struct remote_key *, uint64_t offset, void *local, size_t n, struct tp_op *);

/* The value before the operation is written to `result`, `width` bytes, unless that is NULL. */
int remote_amo(struct remote_key *, uint64_t offset, const struct remote_amo *, void *result, struct tp_op *);

int remote_flush(struct peer *, struct tp_op *);

/* The memory itself, where it is mapped: [offset, offset + n) of it; NULL: it is not, or is not so long. */
static inline void *remote_at(const struct remote_key *k, uint64_t offset, size_t n)
{
    return k->at && offset <= k->bytes && n <= k->bytes - offset ? k->at + offset : NULL;
}

/* ---- for the rest of the transport layer ---- */

/* Registered memory of this process. What was registered once keeps its place until the end. */
struct remote_mem {
    char *base;
    uint64_t bytes, id;
    uint32_t access, slot;
    _Atomic uint64_t live;     /* id, 0 when it is not registered */
    struct remote_mem *unused; /* the next entry that is not registered */
    void *wire[WIRES_MAX];     /* *mem of tp_remote.mem_reg, by the number of the wire (wires_at) */
};
struct remote_mem *remote_find(uint64_t id); /* NULL: none with this id is registered now */
bool remote_was(uint64_t id); /* is it one that has been deregistered? */

/* For fault injection and measurement. False: operations through keys that are opened from now on go by messages. */
extern TERN_HIDDEN bool remote_by_wires;

int remote_open(void); /* before the transports open: its messages have ids. 0, or a code with words */
void remote_close(void);
void remote_forget(struct peer *); /* the peer is closed, and no operation is under way */

#endif
