/*
 * endpoints.h - the datagram endpoints by which the roots of two groups talk while they are not connected otherwise
 * (transport/dgram/dgram.h).
 *
 *     endpoint   by which this process sends and receives, with a key of its own: that of a port, or one that calls at a port
 *     partner    the process at the other side: one that has called here (endpoint_await), or that is called (endpoint_call)
 *
 * All endpoints of the process are one step of progress (transport/progress.h): whoever makes progress, or sleeps, in this process
 * drives them. The step is open while there are endpoints.
 *
 * Functions that return int return 0 or a code with words. Threads: any, with different partners; a thread that is in a call here
 * is in no lane.
 */
#ifndef TERN_DPM_ENDPOINTS_H
#define TERN_DPM_ENDPOINTS_H

#include "base/list.h"
#include "dpm/port.h"
#include "transport/net_addr.h"

struct endpoint;
struct partner;

/* The cryptography of all endpoints, loaded at the first call; NULL with words: it cannot be. */
const struct crypto *endpoints_crypto(void);

/* An endpoint to be called at, at all addresses of this host, with a random key, which is part of its name: that of a port (port.h).
 * endpoint_close: its partners are gone then as well. */
int endpoint_open(struct endpoint **);
void endpoint_name(const struct endpoint *, char name[PORT_NAME]);
void endpoint_close(struct endpoint *);

/*
 * An endpoint that calls a port, at the i-th of its addresses (port_at), and the process there. It is given up after `patience` (ns) without
 * an answer; 0: TERN_DGRAM_TIMEOUT. TERN_ERR_SYSTEM: there is no way to that address.
 *
 * endpoint_order: the addresses from the one that probably leads there to the one that probably does not; how many. First those of
 * networks that this host is in, last those that it has itself: networks of its own (of containers) are alike on many hosts.
 */
int endpoint_call(const struct port *, unsigned i, uint64_t patience, struct endpoint **, struct partner **);
unsigned endpoint_order(const struct port *, uint8_t order[1 + PORT_MORE]);

/* Waits until a process calls that no other thread has been given; or until endpoint_give_up was called, whose code and words it has
 * then. */
int endpoint_await(struct endpoint *, struct partner **);

/* Nobody will call any more, and nothing more comes from partners than is here already. By a thread that is in the first lane, or in a
 * step of progress. */
void endpoint_give_up(struct endpoint *, int code, const char *words);

/* The same is done as soon as something can be read from this descriptor, or its other end is closed, while a thread waits for a caller:
 * TERN_ERR_PEER. Before anybody waits. */
void endpoint_give_up_at(struct endpoint *, int fd);

/*
 * Waits until a descriptor that epoll takes is ready for `events` (POLLIN, POLLOUT), at most until then (ns of clock_ns). `p`, if not
 * NULL, is watched meanwhile. TERN_ERR_PEER: it was too late, or p has gone. TERN_AGAIN, without words: a message of p is there. While
 * there are endpoints; one thread at a time for a descriptor.
 */
int endpoints_await_fd(int fd, short events, struct partner *p, uint64_t until);

/* Waits so long (ns). TERN_ERR_PEER and TERN_AGAIN as above, earlier. */
int endpoints_pause(struct partner *, uint64_t ns);

/* Sends (`out`) or receives all n bytes by a stream socket, blocking or not. Waits as endpoints_await_fd: with a partner at most
 * TERN_DGRAM_TIMEOUT for each piece, without one as long as it takes. TERN_ERR_PEER also: the other side has closed the socket. */
int endpoints_move(int fd, struct partner *, void *bytes, size_t n, bool out);

/* TERN_DGRAM_TIMEOUT in ns. */
uint64_t endpoints_patience(void);

/* From now on progress calls `look`, with the first lane held, when `fd` is readable; until endpoints_listen(-1, NULL). While there are
 * endpoints. */
int endpoints_listen(int fd, void (*look)(void));

/* Sends n bytes, which are copied, behind what was sent before. Does not wait. */
int partner_send(struct partner *, const void *bytes, size_t n);

/* Waits for the next message of the partner: *bytes_p is malloc'ed, of *n_p bytes. Fails if it is gone, or after endpoint_give_up.
 * partner_recv_for: waits at most so long (ns). TERN_AGAIN, with words: no message has come; none is taken any more, and so it
 * can find out (partner_flush). */
int partner_recv(struct partner *, void **bytes_p, size_t *n_p);
int partner_recv_for(struct partner *, uint64_t ns, void **bytes_p, size_t *n_p);

/* Waits until the partner has acknowledged all that was sent, at most so long (ns). False: it has not, or has gone. */
bool partner_flush(struct partner *, uint64_t ns);

/* Has the partner acknowledged all that was sent? It may be gone now. */
bool partner_has_acked(const struct partner *);

/* A key for a connection that belongs to the exchange, known to both sides only. `calls`: this side has called. */
void partner_key(const struct partner *, bool calls, uint8_t key[CRYPTO_KEY]);

/* Is there a message of it that was not received yet? */
bool partner_has_message(struct partner *);

/* The address of this host from which the partner is reached, without a port. */
int partner_own_address(const struct partner *, struct net_addr *);

/* Nothing more is to be sent or received. */
void partner_leave(struct partner *);

/* Closes all endpoints that are left: at the end of the library. */
void endpoints_close(void);

#endif
