/*
 * wire.h - the contract between the datagram layer (dgram.h) and the carriers of its
 * datagrams: UDP (udp.h), queue pairs of unreliable datagrams, a fault shim around
 * another carrier (faults.h), or a simulated network in a test.
 *
 * A carrier is called a wire in this folder's names. It takes datagrams of up to `mtu` bytes
 * to addresses. It may lose, double, delay, reorder and damage them. Nothing here blocks, and
 * nothing fails: a datagram that cannot be sent is lost, and `trouble` says why the last one was.
 *
 * How a queue pair of verbs fills it: the address is GID, queue pair number and queue key;
 * room() is a registered send slot whose completion has come, or NULL; send() posts it
 * with the address handle of `to`; flush() polls for completions; poll() steps over the
 * 40 bytes of global header that lie before every received datagram, and makes `from` of
 * the GID in there, the sender's number in the completion, and its own queue key, which is
 * that of the job; `fd` is the completion channel's.
 *
 * Threads: one at a time.
 */
#ifndef TERN_TRANSPORT_DGRAM_WIRE_H
#define TERN_TRANSPORT_DGRAM_WIRE_H

#include "base/compiler.h"

#include <string.h>

#define DGRAM_ADDR 39 /* bytes of the longest address */

/* An address. Only wires of its kind look into it. */
struct dgram_addr {
    uint8_t n;
    uint8_t bytes[DGRAM_ADDR];
};

static inline bool dgram_addr_same(const struct dgram_addr *a, const struct dgram_addr *b)
{
    return a->n == b->n && !memcmp(a->bytes, b->bytes, a->n);
}

/* Kinds of wires, as cards name them. Endpoints with wires of different kinds cannot reach each other. */
enum dgram_kind { DGRAM_UDP = 1, DGRAM_VERBS_UD = 2, DGRAM_TEST = 255 };

/* A datagram has come. The n bytes are the wire's, valid and writable during the call. */
typedef void (*dgram_take_fn)(void *arg, const struct dgram_addr *from, void *bytes, size_t n);

struct dgram_wire;
struct dgram_wire_ops {
    const char *name; /* "UDP" */

    void (*close)(struct dgram_wire *);

    /* Memory for one datagram of mtu bytes, the wire's; NULL: not now, and `due` says when flush may make some. The same on each call
     * until send. */
    void *(*room)(struct dgram_wire *);

    /* Sends the first n bytes of room(), perhaps not before flush. */
    void (*send)(struct dgram_wire *, const struct dgram_addr *to, size_t n);
    void (*flush)(struct dgram_wire *, uint64_t now);

    /* Hands at most about `budget` datagrams to `take`, which may send. Returns how many. `now` as in dgram_progress. */
    int (*poll)(struct dgram_wire *, uint64_t now, int budget, dgram_take_fn take, void *arg);

    /* When flush is to be called though nothing came; UINT64_MAX: never. */
    uint64_t (*due)(const struct dgram_wire *);

    /* Is this an address that send can use? It has come over the network, from a sender that has the key. */
    bool (*valid)(const struct dgram_wire *, const struct dgram_addr *);

    /* An address at which nobody listens any more, as its host has said to a datagram that was sent there: each once. False:
     * there is none. NULL: this carrier cannot tell. */
    bool (*refused)(struct dgram_wire *, struct dgram_addr *);

    /* Is that an address of this host, which always says when nobody listens there? NULL: never. */
    bool (*near)(const struct dgram_wire *, const struct dgram_addr *);

    /* The address for people, e.g. "10.0.0.1 port 4000"; cut to n bytes. */
    void (*text)(const struct dgram_wire *, const struct dgram_addr *, char *buf, size_t n);
};

struct dgram_wire {
    const struct dgram_wire_ops *ops;
    uint32_t mtu;          /* bytes that one datagram takes; what is received may be longer */
    int fd;                /* readable when datagrams have come; -1: none */
    int trouble;           /* errno of the last datagram that the system refused to send, 0: none; until one to ... */
    struct dgram_addr trouble_to; /* ... that address goes */
    enum dgram_kind kind;
    struct dgram_addr own; /* where others reach it */
};

#endif
