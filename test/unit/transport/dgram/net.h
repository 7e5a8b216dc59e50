/*
 * net.h - a simulated network with a clock of its own, for endpoints of the datagram
 * layer that are all in this process.
 */
#ifndef TEST_DGRAM_NET_H
#define TEST_DGRAM_NET_H

#include "transport/dgram/dgram.h"

#define NET_STATIONS 64
#define NET_TRIP 50000u /* ns from one station to another */

/* Time and the stations of the network; set to zeros by net_reset. */
extern uint64_t net_now;
extern uint64_t net_delay;      /* ns from one station to another; NET_TRIP at first */
extern unsigned net_queue;      /* datagrams that wait for a station at most; more are lost, as at a full socket */
extern uint64_t net_overrun;    /* those lost so */
extern uint64_t net_full;       /* bit i: station i has no room to send now */
/* Sees every datagram when it is sent; may change nothing. NULL: nobody listens. */
extern void (*net_tap)(unsigned from, unsigned to, const void *bytes, size_t n);

void net_reset(void);

/* A wire at a station that is free or whose wire was closed; what comes for a station without one is lost. */
struct dgram_wire *net_open(unsigned station, uint32_t mtu);

/* Puts a datagram on the network, now. */
void net_inject(unsigned from, unsigned to, const void *bytes, size_t n);

/* When the next datagram arrives somewhere; UINT64_MAX: none is under way. */
uint64_t net_next(void);

#endif
