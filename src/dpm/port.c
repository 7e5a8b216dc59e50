/* port.c - see port.h. */
#include "dpm/port.h"
#include "base/err.h"
#include "base/hex.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "tern"
#define CHECK 4 /* bytes */

static_assert(sizeof BEGIN + 8 + 2 * (DGRAM_CARD + CRYPTO_KEY + CHECK) + 3 + PORT_MORE * (1 + 2 * DGRAM_ADDR) <= PORT_NAME,
              "a name has room");
static_assert(PORT_NAME <= MPI_MAX_PORT_NAME, "a program has room for it");

/* The bytes up to `end`, at most `room`; how many, -1: it is not so. */
static int get_hex(const char *from, const char *end, uint8_t *bytes, int room)
{
    int n = (int)((end - from) / 2);
    return (end - from) % 2 == 0 && n <= room && hex_get(from, bytes, (size_t)n) ? n : -1;
}

static void make_check(const struct port *p, const struct crypto *c, uint8_t tag[CRYPTO_TAG])
{
    uint8_t all[DGRAM_CARD + PORT_MORE * (1 + DGRAM_ADDR)];
    size_t n = p->card_bytes;
    memcpy(all, p->card, n);
    for (unsigned i = 0; i < p->mores; i++) {
        all[n++] = p->more[i].n;
        memcpy(all + n, p->more[i].bytes, p->more[i].n);
        n += p->more[i].n;
    }
    c->tag(tag, all, n, p->key);
}

void port_write(const struct port *p, const struct crypto *c, char name[PORT_NAME])
{
    uint8_t tag[CRYPTO_TAG];
    make_check(p, c, tag);
    name += sprintf(name, BEGIN "%d:", PORT_VERSION);
    name = hex_put(name, p->card, p->card_bytes);
    for (unsigned i = 0; i < p->mores; i++) {
        *name++ = '+';
        name = hex_put(name, p->more[i].bytes, p->more[i].n);
    }
    *name++ = ':';
    name = hex_put(name, p->key, sizeof p->key);
    *name++ = ':';
    hex_put(name, tag, CHECK);
}

static int no_port(const char *name)
{
    return err_set(TERN_ERR_PORT, "'%.40s%s' is no name of a port (MPI_Open_port gives one), or a part of it is missing or changed",
                   name, strlen(name) > 40 ? "..." : "");
}

/* The addresses behind a card: "+ADDRESS+ADDRESS" up to `end`. */
static bool read_more(const char *at, const char *end, struct port *p)
{
    while (at < end) {
        const char *from = at + 1, *plus = memchr(from, '+', (size_t)(end - from));
        if (p->mores == PORT_MORE) return false;
        struct dgram_addr *a = &p->more[p->mores++];
        int n = get_hex(from, plus ? plus : end, a->bytes, sizeof a->bytes);
        if (n <= 0) return false;
        a->n = (uint8_t)n;
        at = plus ? plus : end;
    }
    return true;
}

int port_read(const char *name, const struct crypto *c, struct port *p)
{
    uint8_t tag[CRYPTO_TAG], check[CHECK];
    int version, begin = 0;
    *p = (struct port){0};
    if (sscanf(name, BEGIN "%4d:%n", &version, &begin) != 1 || !begin) return no_port(name);
    if (version != PORT_VERSION)
        return err_set(TERN_ERR_PORT, "the port was opened by another version of Tern MPI: its name begins with %s%d, and this one knows %s%d",
                       BEGIN, version, BEGIN, PORT_VERSION);
    const char *card = name + begin, *card_end = strchr(card, ':'), *key = card_end ? card_end + 1 : NULL;
    const char *key_end = key ? strchr(key, ':') : NULL;
    if (!key_end) return no_port(name);
    const char *plus = memchr(card, '+', (size_t)(card_end - card)), *more = plus ? plus : card_end;
    int n = get_hex(card, more, p->card, sizeof p->card);
    if (n <= 0 || !read_more(more, card_end, p) || get_hex(key, key_end, p->key, sizeof p->key) != (int)sizeof p->key) return no_port(name);
    if (get_hex(key_end + 1, key_end + strlen(key_end), check, CHECK) != CHECK) return no_port(name);
    p->card_bytes = (size_t)n;
    make_check(p, c, tag);
    return memcmp(tag, check, CHECK) ? no_port(name) : 0;
}

size_t port_at(const struct port *p, unsigned i, uint8_t card[DGRAM_CARD])
{
    struct dgram_card c;
    memcpy(card, p->card, p->card_bytes);
    if (!i) return p->card_bytes;
    if (!dgram_card_read(p->card, p->card_bytes, &c)) return 0;
    c.addr = p->more[i - 1];
    return dgram_card_write(card, &c);
}
