/*
 * ends.h - the datagram endpoints by which the roots of two groups talk while they are not connected otherwise
 * (transport/dgram/dgram.h).
 *
 *     end        an endpoint with a key of its own: that of a port, or one that calls at a port
 *     partner    the process at the other side: one that has called here (end_await), or that is called (end_call)
 *
 * All ends of the process are one step of progress (transport/progress.h): whoever makes progress, or sleeps, in this process
 * drives them. The step is open while there are ends.
 *
 * Functions that return int return 0 or a code with words. Threads: any, with different partners; a thread that is in a call here
 * is in no lane.
 */
#ifndef TERN_DPM_ENDS_H
#define TERN_DPM_ENDS_H

#include "base/list.h"
#include "dpm/port.h"
#include "transport/net_addr.h"

struct end;
struct partner;

/* The cryptography of all ends, loaded at the first call; NULL with words: it cannot be. */
const struct crypto *ends_crypto(void);

/* An end to be called at, at all addresses of this host, with a random key, which is part of its name: that of a port (port.h).
 * end_close: its partners are gone then as well. */
int end_open(struct end **);
void end_name(const struct end *, char name[PORT_NAME]);
void end_close(struct end *);

/*
 * An end that calls a port, at the i-th of its addresses (port_at), and the process there. It is given up after `patience` (ns) without an
 * answer; 0: TERN_DGRAM_TIMEOUT. TERN_ERR_SYSTEM: there is no way to that address.
 *
 * end_order: the addresses from the one that probably leads there to the one that probably does not; how many. First those of
 * networks that this host is in, last those that it has itself: networks of its own (of containers) are alike on many hosts.
 */
int end_call(const struct port *, unsigned i, uint64_t patience, struct end **, struct partner **);
unsigned end_order(const struct port *, uint8_t order[1 + PORT_MORE]);

/* Waits until a process calls that no other thread has been given; or until end_give_up was called, whose code and words it has
 * then. */
int end_await(struct end *, struct partner **);

/* Nobody will call any more, and partners that have called say no more than has come. By a thread that is in the first lane, or in a
 * step of progress. */
void end_give_up(struct end *, int code, const char *words);

/*
 * Waits until a descriptor that epoll takes is ready for `events` (POLLIN, POLLOUT), at most until then (ns of clock_ns). `p`, if not
 * NULL, is watched meanwhile. TERN_ERR_PEER: it was too late, or p has gone. TERN_AGAIN, without words: p has said something. While
 * there are ends; one thread at a time for a descriptor.
 */
int ends_await_fd(int fd, short events, struct partner *p, uint64_t until);

/* Sends (`out`) or receives all n bytes by a stream socket, blocking or not. Waits as ends_await_fd: with a partner at most
 * TERN_DGRAM_TIMEOUT for each piece, without one as long as it takes. TERN_ERR_PEER also: the other side has closed the socket. */
int ends_move(int fd, struct partner *, void *bytes, size_t n, bool out);

/* TERN_DGRAM_TIMEOUT in ns. */
uint64_t ends_patience(void);

/* From now on progress calls `look`, with the first lane held, when `fd` is readable; until ends_listen(-1, NULL). While there are
 * ends. */
int ends_listen(int fd, void (*look)(void));

/* Sends n bytes, which are copied, behind what was said before. Does not wait. */
int partner_say(struct partner *, const void *bytes, size_t n);

/* Waits for what the partner says next: *bytes_p is malloc'ed, of *n_p bytes. Fails if it is gone, or after end_give_up.
 * partner_hear_for: waits at most so long (ns). TERN_AGAIN, with words: it has said nothing; nor will it be heard any more, and so it
 * can find out (partner_has_all). */
int partner_hear(struct partner *, void **bytes_p, size_t *n_p);
int partner_hear_for(struct partner *, uint64_t ns, void **bytes_p, size_t *n_p);

/* Waits until the partner has all that was said, at most so long (ns). False: it has not, or has gone. */
bool partner_has_all(struct partner *, uint64_t ns);

/* Has the partner all that was said, although it may be gone now? */
bool partner_had_all(const struct partner *);

/* A key for a connection that belongs to the exchange, known to both sides only. `calls`: this side has called. */
void partner_key(const struct partner *, bool calls, uint8_t key[CRYPTO_KEY]);

/* Has it said something that is not heard yet? */
bool partner_has_spoken(struct partner *);

/* The address of this host from which the partner is reached, without a port. */
int partner_own_address(const struct partner *, struct net_addr *);

/* No more is to be said or heard. */
void partner_leave(struct partner *);

/* Closes all ends that are left: at the end of the library. */
void ends_close(void);

#endif
