/*
 * port.h - the names of ports (MPI-5.0 section 11.9.1): all that a process has to know to reach the one that has opened the port.
 *
 *     tern1:CARD+ADDRESS+...:KEY:CHECK      in hexadecimal
 *
 *     1        the version of the messages at a port (message.h)
 *     CARD     of the datagram endpoint: its id, its address (transport/dgram/dgram.h)
 *     ADDRESS  more addresses of it, of hosts with several networks: which one leads here is found by trying (port_at)
 *     KEY      of that endpoint. Whoever has the name of a port may connect to it
 *     CHECK    the first bytes of the tag of all these under the key: a name that was cut or mistyped is found to be so
 *
 * Source: MPI-5.0 section 11.9.1; DPM-8, DPM-9.
 */
#ifndef TERN_DPM_PORT_H
#define TERN_DPM_PORT_H

#include "base/crypto.h"
#include "transport/dgram/packet.h"

#define PORT_VERSION 1
#define PORT_MORE 7   /* addresses, besides that of the card */
#define PORT_NAME 800 /* bytes of the longest name, with the final zero; MPI_MAX_PORT_NAME is more */

struct port {
    uint8_t card[DGRAM_CARD];
    size_t card_bytes;
    struct dgram_addr more[PORT_MORE];
    unsigned mores;
    uint8_t key[CRYPTO_KEY];
};

void port_write(const struct port *, const struct crypto *, char name[PORT_NAME]);

/* 0; or TERN_ERR_PORT with words: it is no name of a port, one of another version, or damaged. */
int port_read(const char *name, const struct crypto *, struct port *);

/* The card with the i-th address of the port, 0 ... port.mores; its length, 0: the card is none. */
size_t port_at(const struct port *, unsigned i, uint8_t card[DGRAM_CARD]);

#endif
