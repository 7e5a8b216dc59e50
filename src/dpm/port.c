/* port.c - see port.h. */
#include "dpm/port.h"
#include "base/err.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "tern"
#define CHECK 4 /* bytes */

static_assert(sizeof BEGIN + 8 + 2 * (DGRAM_CARD + CRYPTO_KEY + CHECK) + 3 <= PORT_NAME, "a name has room");
static_assert(PORT_NAME <= MPI_MAX_PORT_NAME, "a program has room for it");

static char *put_hex(char *to, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) to += sprintf(to, "%02x", bytes[i]);
    return to;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes up to `end`, at most `room`; how many, -1: it is not so. */
static int get_hex(const char *from, const char *end, uint8_t *bytes, int room)
{
    int n = 0;
    for (; end - from >= 2 && n < room; from += 2, n++) {
        int high = digit(from[0]), low = digit(from[1]);
        if (high < 0 || low < 0) return -1;
        bytes[n] = (uint8_t)(high << 4 | low);
    }
    return from == end ? n : -1;
}

static void make_check(const struct port *p, const struct crypto *c, uint8_t tag[CRYPTO_TAG])
{
    c->tag(tag, p->card, p->card_bytes, p->key);
}

void port_write(const struct port *p, const struct crypto *c, char name[PORT_NAME])
{
    uint8_t tag[CRYPTO_TAG];
    make_check(p, c, tag);
    name += sprintf(name, BEGIN "%d:", PORT_VERSION);
    name = put_hex(name, p->card, p->card_bytes);
    *name++ = ':';
    name = put_hex(name, p->key, sizeof p->key);
    *name++ = ':';
    put_hex(name, tag, CHECK);
}

static int no_port(const char *name)
{
    return err_set(TERN_ERR_PORT, "'%.40s%s' is no name of a port (MPI_Open_port gives one), or a part of it is missing or changed",
                   name, strlen(name) > 40 ? "..." : "");
}

int port_read(const char *name, const struct crypto *c, struct port *p)
{
    uint8_t tag[CRYPTO_TAG], check[CHECK];
    int version, begin = 0;
    *p = (struct port){0};
    if (sscanf(name, BEGIN "%4d:%n", &version, &begin) != 1 || !begin) return no_port(name);
    if (version != PORT_VERSION)
        return err_set(TERN_ERR_PORT, "the port was opened by another version of Tern MPI: its name begins with " BEGIN "%d, and this one knows " BEGIN
                                      "%d", version, PORT_VERSION);
    const char *card = name + begin, *card_end = strchr(card, ':'), *key = card_end ? card_end + 1 : NULL;
    const char *key_end = key ? strchr(key, ':') : NULL;
    if (!key_end) return no_port(name);
    int n = get_hex(card, card_end, p->card, sizeof p->card);
    if (n <= 0 || get_hex(key, key_end, p->key, sizeof p->key) != (int)sizeof p->key) return no_port(name);
    if (get_hex(key_end + 1, key_end + strlen(key_end), check, CHECK) != CHECK) return no_port(name);
    p->card_bytes = (size_t)n;
    make_check(p, c, tag);
    return memcmp(tag, check, CHECK) ? no_port(name) : 0;
}
