/*
 * udp.h - datagrams by UDP, as a wire of the datagram layer (wire.h).
 *
 * Threads: as the wire's.
 */
#ifndef TERN_TRANSPORT_UDP_H
#define TERN_TRANSPORT_UDP_H

#include "transport/dgram/wire.h"

#define UDP_MTU_MOST 9000 /* bytes of a datagram that is sent; all that are not longer are received */

/* Opens a socket on `address`, by which others reach this process: numeric IPv4 or IPv6, neither "any" nor link-local.
 * low, high: the ports that may be used, those of TERN_TCP_PORTS; 0, 0: any. `mtu`: bytes of a datagram, 0:
 * TERN_DGRAM_MTU. 0, or a code with words: TERN_ERR_ARG (the address or the mtu cannot be used), TERN_ERR_SYSTEM,
 * TERN_ERR_NOMEM. */
int udp_open(const char *address, uint16_t low, uint16_t high, uint32_t mtu, struct dgram_wire **);

/* The same, but what is sent to any address of this host comes in as well. */
int udp_open_wide(const char *address, uint16_t low, uint16_t high, uint32_t mtu, struct dgram_wire **);

#endif
