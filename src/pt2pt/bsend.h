/*
 * bsend.h - buffered sends (MPI-5.0 sections 3.4, 3.6): the message is copied, packed,
 * into a buffer that the user attached - to one communicator, else to its session, else
 * to the process - and goes from there; the call is over at once.
 *
 * A buffer is cut into segments in the order of addresses; free neighbours are joined:
 *
 *     | segment: size, owner ... | packed data ... | segment | free         |
 *
 * A message of s packed bytes takes less than s + MPI_BSEND_OVERHEAD. The request
 * that sends it is the library's own, so nothing of the protocol lies in user's memory.
 * With MPI_BUFFER_AUTOMATIC segments come from the heap, one for each message.
 *
 * Threads: any; there is a lock for all buffers.
 *
 * All results: 0 or a code with words. A place is where a buffer is attached: the
 * address of struct comm.bsend or struct session.bsend, or bsend_process().
 */
#ifndef TERN_PT2PT_BSEND_H
#define TERN_PT2PT_BSEND_H

#include "obj/comm.h"
#include "obj/request.h"
#include "type/type.h"

void **bsend_process(void);

/* TERN_ERR_BUFFER: there is one already, or nothing can be put into it. buffer may be MPI_BUFFER_AUTOMATIC. */
int bsend_attach(void **place, void *buffer, int64_t size);

/* Waits until every message has left the buffer, and gives it back. TERN_ERR_BUFFER: none is attached. */
int bsend_detach(void **place, void **buffer_p, int64_t *size_p);

/* Waits until the messages that are in the buffer now have left it; or gives a request for that. */
int bsend_flush(void **place);
int bsend_iflush(void **place, struct request **req_p);

/* Takes the message, or fails with TERN_ERR_BUFFER when there is no room for it, and nothing is sent. */
int bsend_send(struct comm *c, const void *buf, int64_t count, struct type *, int dest, int tag);

/* Persistent (REQ_BSEND): each start is a bsend_send, after which the request is complete. */
int bsend_init(struct comm *c, const void *buf, int64_t count, struct type *, int dest, int tag, struct request **req_p);

/* The object of the place goes: as bsend_detach, if a buffer is attached. */
void bsend_drop(void **place);

#endif
