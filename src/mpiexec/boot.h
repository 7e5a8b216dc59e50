/*
 * boot.h - how a daemon finds its parent: what it is told on its standard input, and the connection that it makes.
 *
 *     tern-daemon 1
 *     key 64 hexadecimal digits      the tree's, for the handshake; nowhere else but here
 *     place NODE VERTEX PARENT       numbers: the node it serves, its vertex in the tree and its parent's (tree.c)
 *     seconds N                      how long it may try
 *     address 10.0.0.1 40123         where the parent listens: several, to be tried side by side
 *     end
 */
#ifndef TERN_MPIEXEC_BOOT_H
#define TERN_MPIEXEC_BOOT_H

#include "mpiexec/link.h"
#include <sys/socket.h>

#define BOOT_ADDRESSES 16
#define BOOT_TEXT 4096 /* bytes of the whole, at most */

struct boot {
    uint8_t key[CRYPTO_KEY];
    int node, vertex, parent;
    int seconds;
    int naddresses;
    struct sockaddr_storage addresses[BOOT_ADDRESSES];
};

/* The text; the caller's to free. */
char *boot_text(const struct boot *);

/* Reads the text of n bytes. NULL, or what is wrong with it. */
const char *boot_parse(struct boot *, const char *text, size_t n);

/* Reads it from a descriptor, for at most `seconds`. 0 or an exit code after saying why. */
int boot_read(struct boot *, int fd, int seconds);

/* The addresses of this host with a port, best first: those of interface `iface`, or of all that are up. */
void boot_addresses(struct boot *, const char *iface, int port);

/* Tries to connect to the parent until it works or the time is over, from within the event loop. Then `done`, once,
 * with an open link that has these calls and argument, or NULL and why. */
void boot_connect(struct event_base *, const struct boot *, void (*done)(struct tree_link *, const char *why));

#endif
