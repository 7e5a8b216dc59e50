/*
 * check.h - TERN_CHECK=types: every message is preceded by one with the signature of its
 * data, which its receive compares with its own (3.3.1 of MPI-5.0: the types of a send
 * and its receive must match, element by element; a receive may be longer).
 *
 *   AM_SIGNATURE   -   -   struct pt_signature: of the next AM_EAGER, AM_EAGER_SYNC or AM_RTS
 *
 * Off by default, and then nothing but a branch that is never taken. When on, all sends
 * go the long way. It must be set on all ranks alike, as all variables are.
 *
 * Threads: the caller holds the lane's lock.
 */
#ifndef TERN_PT2PT_CHECK_H
#define TERN_PT2PT_CHECK_H

#include "pt2pt/api.h"
#include "pt2pt/match/body.h"

/* Registers the messages that a signature may come before (pt_register), with handlers by TERN_CHECK. */
int pt_check_register(void);
void pt_check_unregister(void);

int pt_check_open(void); /* reads TERN_CHECK */
void pt_check_close(void);

/* Before a message is sent: 0, TERN_AGAIN (nothing was sent), or a code. Does nothing if it was done for this one. */
int pt_check_announce(struct request *send);

/* The signature of the message that is being handled is kept with its body; and becomes that of the message being
 * handled again. */
void pt_check_keep(const void *body);
void pt_check_recall(const void *body);

/* The message being handled, of `bytes` bytes, meets its receive: 0, or TERN_ERR_TYPE in words. */
int pt_check_receive(const struct request *recv, int32_t source, int32_t tag, uint64_t bytes);

#endif
