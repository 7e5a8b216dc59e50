/*
 * connected.h - tables that are too long for datagrams go over a TCP connection that is made for that and closed then.
 *
 *     caller                                   acceptor
 *                                              connected_listen; sends by datagram where (MESSAGE_MEET)
 *     connected_dial  ----- handshake ----->   connected_meet
 *                     <---- handshake ------   strangers are turned away; a caller that is turned out with them dials again
 *     connected_send  ----- records ------->   connected_recv
 *     connected_recv  <---- records --------   connected_send
 *
 *     a record        length 4 (network order), so many bytes of the table, sealed
 *
 * The key is that of the two datagram endpoints (partner_key), so only the partner can take part. A partner that dies, falls silent
 * for TERN_DGRAM_TIMEOUT, or sends what it should not is an error; so is a message of it by datagram meanwhile (TERN_AGAIN,
 * without words: it is to be received). All calls wait by the progress of the library.
 *
 * Functions that return int return 0 or a code with words. Threads: as a partner's.
 */
#ifndef TERN_DPM_CONNECTED_H
#define TERN_DPM_CONNECTED_H

#include "dpm/endpoints.h"
#include "transport/net_addr.h"

#define CONNECTED_RECORD 65536 /* bytes of a table in one record, at most */

struct connected;

/* The acceptor: listens at the address of the endpoint. *at: where. */
int connected_listen(struct partner *, struct connected **, struct net_addr *at);
int connected_meet(struct connected *); /* until the partner is there */

/* The caller: both at once. */
int connected_dial(struct partner *, const struct net_addr *at, struct connected **);

int connected_send(struct connected *, const void *bytes, size_t n);
int connected_recv(struct connected *, size_t n, void **bytes_p); /* *bytes_p is malloc'ed */

void connected_close(struct connected *); /* may be NULL */

#endif
