/*
 * keep.h - the data of a message beyond its handler.
 *
 * The data that a handler is given is valid during the call. A handler that needs the bytes for longer, since a copy
 * engine or another thread works on them, keeps them, and releases them later. The transport that delivers the message
 * holds them in place if it can (tp_ops.keep): it does not use the record, the packet or the buffer again until the
 * release. Bytes that it does not hold are copied here, so a handler need not know.
 *
 * Two times, since a transport holds a bounded number of bytes:
 *
 *   TP_KEEP_BRIEFLY   the release does not depend on a further message. A transport may hold the bytes in a ring, whose
 *                     sender then runs out of room until the release. For a copy engine, or a thread that computes.
 *   TP_KEEP_LONG      the release comes when the program does something, which may wait for further messages. Only a
 *                     transport that can go on without these bytes for ever holds them.
 *
 * Of a ring of shared memory at most a quarter is kept at a time, and more is copied; so three quarters of it are the
 * sender's until it comes to the bytes that are kept. TCP, mock and modules hand out the memory and take other memory.
 *
 * Threads: keeping is the handler's, during its call and under the lane's lock. Releasing is for any thread, with the
 * lock or without; all that was kept is released before the transports close (peers_close).
 */
#ifndef TERN_TRANSPORT_KEEP_H
#define TERN_TRANSPORT_KEEP_H

#include "base/compiler.h"

/* Fewer bytes are copied without asking a transport: that costs less than to hold them. */
#define TP_KEEP_LEAST 256

enum tp_keep_time { TP_KEEP_BRIEFLY, TP_KEEP_LONG };

struct tp_kept {
    const void *data; /* the bytes: where the handler has them, or a copy */
    size_t bytes;
    void (*end)(struct tp_kept *); /* the transport's: takes the bytes back, by any thread; NULL: they are a copy */
    void *held;                    /* the transport's own */
};

/* n bytes (which may be 0) at data, which the handler that calls this was given, or a part of them. NULL with words: no memory. */
struct tp_kept *tp_keep(const void *data, size_t n, enum tp_keep_time);

/* As tp_keep, if the transport holds them in place. NULL, without words: it does not, and the caller copies them as it
 * likes. */
struct tp_kept *tp_keep_in_place(const void *data, size_t n, enum tp_keep_time);

/* Called once for each tp_kept; NULL: nothing happens. */
void tp_release(struct tp_kept *);

#endif
