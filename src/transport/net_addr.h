/*
 * net_addr.h - the addresses by which other processes reach this one over IP: those of the interfaces that are up and that
 * TERN_TCP_INTERFACES allows.
 *
 * Functions that return int return 0 or a code with words. Threads: any.
 */
#ifndef TERN_TRANSPORT_NET_ADDR_H
#define TERN_TRANSPORT_NET_ADDR_H

#include "base/compiler.h"

#include <net/if.h>
#include <sys/socket.h>

#define NET_IFS 8   /* addresses that are used */
#define NET_HOST 64 /* bytes of a host's name */
#define NET_IP 46   /* bytes of an address as text */

struct net_addr {
    uint8_t bytes[16]; /* 4 are used by IPv4 */
    uint16_t port;
    uint8_t family; /* 4 or 6 */
    uint8_t prefix; /* bits that its subnet has in common */
};

struct net_if { /* an address of this process */
    char name[IFNAMSIZ];
    struct net_addr addr;
};

struct net_ifs {
    unsigned n;
    struct net_if v[NET_IFS];
};

static inline size_t net_addr_bytes(const struct net_addr *a) { return a->family == 4 ? 4 : 16; }
bool net_addr_agree(const uint8_t *a, const uint8_t *b, unsigned bits); /* in their first bits */
bool net_addr_same(const struct net_addr *, const struct net_addr *);   /* but for the port */
bool net_addr_is_loopback(const struct net_addr *);

/* To and from the system's form; as text, without and with its port. */
socklen_t net_addr_sock(const struct net_addr *, struct sockaddr_storage *);
void net_addr_from(struct net_addr *, const struct sockaddr_storage *);
void net_addr_ip(const struct net_addr *, char ip[NET_IP]);
void net_addr_text(const struct net_addr *, char *text, size_t size);

/* The addresses of this host; `near`: where nobody has named interfaces, the loopback's, which is enough for processes of this
 * node. What others reach is looked up at most once a second. TERN_ERR_NOT_FOUND: there is none. net_ifs_more adds those that are not only near. */
int net_ifs(struct net_ifs *, bool near);
int net_ifs_more(struct net_ifs *);

/* The address of this host from which packets go to that one. TERN_ERR_SYSTEM: there is no way to it. */
int net_addr_towards(const struct net_addr *to, struct net_addr *own);

/* The ports that processes listen at (TERN_TCP_PORTS); 0, 0: any. TERN_ERR_ARG. */
int net_ports(uint16_t *low, uint16_t *high);

/* The name of this host, cut to what has room. */
void net_host(char host[NET_HOST]);

#endif
