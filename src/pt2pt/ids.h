/*
 * ids.h - the names under which the other side of a message knows our requests.
 *
 * What goes over a wire is never an address, but the number of an entry of this table, of which each lane has one,
 * and how often that entry had been used before:
 *
 *     id     | generation, 32 bits, never 0 | number of the lane, 6 | entry, 26 |
 *
 *     entry  | request | peer | generation | awaits, request's next free |
 *
 *     block 0: 64 entries   block 1: 128   block 2: 256 ...   allotted as they are needed, kept until ids_close
 *
 * An entry says who may name it and for what: a message with an id that is unknown, was given up, belongs to another
 * peer or awaits something else is a protocol violation of its sender, and finds no request (ids_find).
 *
 * A send that is being cancelled may be over before the answer to the cancel comes: its entry then stays, without a
 * request, until that answer.
 *
 * Threads: under the lane's lock. Once threads share the transports (transport/wire_lock.h), entries come and go under a lock of
 * the table as well, so that a thread that is in a wire, and in no lane, may look for one between ids_lock and ids_unlock:
 * of the receives that fragments come to.
 */
#ifndef TERN_PT2PT_IDS_H
#define TERN_PT2PT_IDS_H

#include "base/lock.h"
#include "obj/request.h"

#define IDS_FIRST 64 /* entries of block 0 */
#define IDS_BITS 26   /* of the number of an entry */
#define IDS_BLOCKS 20

/* What the peer may still send about a request. */
enum id_await {
    AWAIT_ACK = 1,       /* a synchronous send: that it was matched */
    AWAIT_CTS = 2,       /* an offered send: that it is wanted in fragments */
    AWAIT_FRAG = 4,      /* a receive: fragments */
    AWAIT_CANCELLED = 8, /* a send: the answer to its cancel */
    AWAIT_BULK = 16,     /* nothing that is a message: the wire's own protocol brings the data (rndv/bulk.c) */
};

struct id_entry {
    struct request *request;  /* NULL: free, or nothing but AWAIT_CANCELLED is left */
    struct peer *peer;        /* NULL: free */
    uint32_t generation;      /* never 0 */
    uint32_t awaits;          /* enum id_await; 0 while a send waits for room, and while it goes out, of which nothing more is said */
    uint32_t self, next_free; /* numbers of entries */
};
static_assert(sizeof(struct id_entry) == 32, "two to a cache line");

struct ids {
    struct id_entry *block[IDS_BLOCKS];
    uint32_t made, free, used; /* entries that exist; the first free one (UINT32_MAX: none); those in use */
    uint32_t lane;             /* its number */
    struct lock lock;          /* a leaf */
};

/* The number of the lane in an id. */
static inline uint32_t ids_lane(uint64_t id) { return (uint32_t)id >> IDS_BITS; }

void ids_open(struct ids *, uint32_t lane);
void ids_close(struct ids *);

/* Gives r an id (r->id), by which r->peer may send what `awaits` says; one that it has gets that besides. 0, or
 * TERN_ERR_NOMEM in words. */
int ids_give(struct ids *, struct request *r, uint32_t awaits);

/* Of a request that has an id. What a send asks for is awaited from the moment that the question goes out, not while it
 * waits for room: an answer then would end a request that is still in a queue. Before the call that sends it, since a
 * message to ourselves is answered during it; and no more if that failed. */
void ids_await(struct ids *, const struct request *, uint32_t what);
void ids_await_no_more(struct ids *, const struct request *, uint32_t what);

/* The entry with this id if `from` may send `what` about it, else NULL. */
struct id_entry *ids_find(struct ids *, uint64_t id, const struct peer *from, uint32_t what);

void ids_lock(struct ids *);
void ids_unlock(struct ids *);

/* That of a request which has one. */
struct id_entry *ids_of(struct ids *, const struct request *);

/* The request is over: its id names it no more. */
void ids_drop(struct ids *, struct request *);

void ids_free(struct ids *, struct id_entry *);

/* The first entry in use at or after number *at whose peer is `peer` (NULL: any), and its number; NULL: none. */
struct id_entry *ids_next(struct ids *, const struct peer *peer, uint32_t *at);

#endif
