/*
 * bsend.h - buffered sends (MPI-5.0 sections 3.4, 3.6): the message is copied, packed,
 * into a buffer that the user attached - to one communicator, or to the process - and
 * goes from there; the call is over at once.
 *
 * A buffer is cut into segments in the order of addresses; free neighbours are joined:
 *
 *     | segment: size, owner ... | packed data ... | segment | free         |
 *
 * A message of s packed bytes takes less than s + MPI_BSEND_OVERHEAD. The request
 * that sends it is the library's own, so nothing of the protocol lies in user's memory.
 * With MPI_BUFFER_AUTOMATIC segments come from the heap, one for each message.
 *
 * Threads: any; everything is under the lane's lock.
 *
 * All results: 0 or a code with words. `c` NULL means the buffer of the process.
 */
#ifndef TERN_PT2PT_BSEND_H
#define TERN_PT2PT_BSEND_H

#include "obj/comm.h"
#include "obj/request.h"
#include "type/type.h"

/* TERN_ERR_BUFFER: there is one already, or nothing can be put into it. buffer may be MPI_BUFFER_AUTOMATIC. */
int bsend_attach(struct comm *c, void *buffer, int64_t size);

/* Waits until every message has left the buffer, and gives it back. TERN_ERR_BUFFER: none is attached. */
int bsend_detach(struct comm *c, void **buffer_p, int64_t *size_p);

/* Waits until the messages that are in the buffer now have left it; or gives a request for that. */
int bsend_flush(struct comm *c);
int bsend_iflush(struct comm *c, struct request **req_p);

/* Takes the message, or fails with TERN_ERR_BUFFER when there is no room for it, and nothing is sent. */
int bsend_send(struct comm *c, const void *buf, int64_t count, struct type *, int dest, int tag);

/* Persistent (REQ_BSEND): each start is a bsend_send, after which the request is complete. */
int bsend_init(struct comm *c, const void *buf, int64_t count, struct type *, int dest, int tag, struct request **req_p);
int bsend_start(struct request *);

/* The communicator goes: as bsend_detach, if a buffer is attached. */
void bsend_drop(struct comm *c);

/* At the end of the library: forgets the buffer of the process. */
void bsend_close(void);

#endif
