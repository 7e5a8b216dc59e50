/*
 * am.h - the ids of active messages, and who handles them.
 *
 * A layer has a block of ids, and names the messages of its own in it, so that an id is a constant where it is
 * sent and an array index where it is delivered. It registers them before the transports open (peers_open).
 * The card of a process says by one number which ids it knows by which names, and how large the structs in those messages
 * are: processes with another number, since they run another version of the library, are not connected, which the error
 * says in words (peer_connect).
 *
 *     ids    0, 1     nothing, and the filler of the transports
 *            2 ...    a block for each layer (enum tp_am_block)
 *
 * Threads: registering by one thread, while no transport is open.
 */
#ifndef TERN_TRANSPORT_AM_H
#define TERN_TRANSPORT_AM_H

#include "base/compiler.h"

struct peer;

enum {
    AM_NONE = 0, /* not an id: rings use it for "empty" */
    AM_PAD = 1,  /* reserved for the transports: a filler, or a note of their own, that is not delivered */
    TP_AM_MAX = 64
};

/* The first id of each layer's block. */
enum tp_am_block {
    TP_AM_TRANSPORT = 2, /* of this layer itself, over any transport */
    TP_AM_PT2PT = 8,     /* src/pt2pt/protocol.h */
    TP_AM_COLL = 28,     /* no messages yet, as in the next two: one-sided operations, dynamic processes */
    TP_AM_RMA = 32,
    TP_AM_DPM = 48,
    TP_AM_TESTS = 56
};

/* To be counted up with each change of what processes send each other, or share, that neither a name nor the size of a
 * struct shows: of an order, of a meaning, of the layout of a transport's memory. */
#define TP_WIRE_VERSION 1

/* Delivery of one message from `from`. n bytes at data, valid during the call (keep.h: beyond it); h0, h1 as sent. */
typedef void (*tp_handler_fn)(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);

/* Returns where the payload of a message that is just arriving is to go: n bytes of writable memory, which stay so
 * until the handler is called with data == that memory, or tp_lost with this peer, or its ep is severed. NULL: to
 * memory of the transport, which has no more than max_short bytes; the transport may lose the sender of a longer
 * message. Only a transport that reads from a stream asks, for messages longer than what it has read already. */
typedef void *(*tp_sink_fn)(struct peer *from, uint64_t h0, uint64_t h1, size_t n);

struct tp_am {
    unsigned id;
    const char *name;      /* what it is, for the card and for errors; is not copied */
    tp_handler_fn handler; /* not NULL */
    tp_sink_fn sink;       /* NULL: it needs none */
    bool question;         /* only the sender needs it: a process may end before the message has gone out */
    uint32_t bytes;        /* of the structs that it carries or says the place of, 0: none */
};

/* By id; NULL where none is registered. Read by the transports. */
extern TERN_HIDDEN tp_handler_fn tp_handlers[TP_AM_MAX];
extern TERN_HIDDEN tp_sink_fn tp_sinks[TP_AM_MAX];
extern TERN_HIDDEN bool tp_questions[TP_AM_MAX];

/* 0; or, with words, and then none is registered: TERN_ERR_INTERN for an id that is none or is taken, or when transports
 * are open already. */
int tp_am_register(const struct tp_am *, size_t n);
void tp_am_unregister(const struct tp_am *, size_t n); /* those that are not registered are left out */

/* A number that stands for TP_WIRE_VERSION, all ids, their names and the sizes of their structs. Nothing more is registered until tp_am_unseal. */
uint64_t tp_am_seal(void);
void tp_am_unseal(void);

#endif
