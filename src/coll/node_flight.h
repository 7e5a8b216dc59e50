/*
 * node_flight.h - an operation inside a node that goes on in the background (node_start.c): what it keeps, and what of
 * it has no room in the slots (node_rest.c). Under the lane's lock, but where it says otherwise.
 */
#ifndef TERN_COLL_NODE_FLIGHT_H
#define TERN_COLL_NODE_FLIGHT_H

#include "coll/node_block.h"
#include "coll/node_pairs.h"

struct node_flight {
    struct link link;
    struct coll_call call;
    struct request *req;         /* NULL: somebody waits for `landed` */
    uint32_t number;             /* of the messages, should there be no block, and of `rest` */
    bool big, put, landed, lost; /* lost: there is none */
    bool awaits, taken;          /* needs others' contributions; nothing is left to be done in the slots */
    bool finished;               /* nor in the node */
    int rc;
    struct request *rest; /* the messages for what has no room; NULL: none, or they are over */
    void *arrays;         /* of the call, kept; NULL: they are the caller's, or there are none */
    struct node_wait wait;
    struct node_pairs *pairs; /* of a large one, or for what has no room; else NULL */
};

/* References to types and operator. */
void node_flight_hold(const struct node_flight *);
void node_flight_let_go(const struct node_flight *);

/* The arrays are the user's again when the call has returned. False: memory is out. */
bool node_flight_keep_arrays(struct node_flight *);

/* Prepares it for pairs; 0 or a code. Takes the lock: others that are in flight may be looked at meanwhile. */
int node_flight_pairs(struct node_flight *);

/* What has no room in the slots: its copies or messages are prepared (the lock as above; 0 or a code), or dropped
 * before they have been started, since there is no block. */
int node_flight_prepare_rest(struct node_flight *);
void node_flight_drop_rest(struct node_flight *) TERN_COLD;

/* Sender and receiver do not agree (an error of the program): nothing shall wait for what does not come. */
void node_flight_straighten(struct node_flight *) TERN_COLD;

int node_flight_no_memory(enum coll_kind) TERN_COLD; /* words and code */

#endif
