/*
 * addr.c - the addresses of this process and of its peers.
 *
 * A card:
 *     | version 1 | host length 1 | host | count 1 | count times:
 *     | family 1 (4 or 6) | prefix 1 | port 2, network order | address 4 or 16 |
 *
 * In use are the addresses of interfaces that are up; of a job on one node that is not connected with others the
 * loopback only; TERN_TCP_INTERFACES names others. A peer's addresses are tried in the order: what has worked for its
 * host, what shares a subnet with us, the rest, what did not work, and last addresses that are our own as well (bridges
 * of containers have the same on many hosts).
 */
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/tcp/tcp.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define CARD_VERSION 1
#define CARD_SEALED 0x80 /* in its byte: TERN_TCP_SEAL */
#define CARD_BYTES 255

const char *tcp_addr_near(const struct tcp_dom *d, int fd)
{
    struct sockaddr_storage s = {0};
    struct net_addr a;
    socklen_t n = sizeof s;
    if (getsockname(fd, (struct sockaddr *)&s, &n)) return "?";
    net_addr_from(&a, &s);
    for (unsigned i = 0; i < d->ifs.n; i++)
        if (net_addr_same(&a, &d->ifs.v[i].addr)) return d->ifs.v[i].name;
    return net_addr_is_loopback(&a) ? "lo" : "?";
}

/* Nobody has named interfaces, and the loopback one is enough. */
static bool is_near(const char *list, bool others)
{
    return (!*list || *list == '^') && proc_self()->nodes == 1 && !others;
}

int tcp_addr_open(struct tcp_dom *d, bool others)
{
    d->near = is_near(var_text(VAR_TCP_INTERFACES), others);
    net_host(d->host);
    return net_ifs(&d->ifs, proc_self()->nodes == 1 && !others);
}

int tcp_addr_more(struct tcp_dom *d)
{
    if (!d->near) return 0;
    d->near = false;
    return net_ifs_more(&d->ifs);
}

/* ---- cards ---- */

int tcp_card_write(const struct tcp_dom *d, void *buf, size_t cap)
{
    uint8_t card[CARD_BYTES];
    size_t n = 0, host = strlen(d->host);
    card[n++] = CARD_VERSION | (d->sealed ? CARD_SEALED : 0);
    card[n++] = (uint8_t)host;
    memcpy(card + n, d->host, host);
    n += host;
    uint8_t *count = &card[n++];
    *count = 0;
    for (unsigned i = 0; i < d->ifs.n; i++) {
        const struct net_addr *a = &d->ifs.v[i].addr;
        if (!a->port || n + 4 + net_addr_bytes(a) > sizeof card) continue;
        uint8_t head[4] = {a->family, a->prefix, (uint8_t)(a->port >> 8), (uint8_t)a->port};
        memcpy(card + n, head, 4);
        memcpy(card + n + 4, a->bytes, net_addr_bytes(a));
        n += 4 + net_addr_bytes(a);
        ++*count;
    }
    if (n > cap) return err_set(TERN_ERR_INTERN, "no room for the card of tcp");
    memcpy(buf, card, n);
    return (int)n;
}

static bool read_addr(struct net_addr *a, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    memset(a, 0, sizeof *a);
    if (end - p < 4) return false;
    *a = (struct net_addr){.family = p[0], .prefix = p[1], .port = (uint16_t)(p[2] << 8 | p[3])};
    if ((a->family != 4 && a->family != 6) || a->prefix > 8 * net_addr_bytes(a) || !a->port) return false;
    if ((size_t)(end - p - 4) < net_addr_bytes(a)) return false;
    memcpy(a->bytes, p + 4, net_addr_bytes(a));
    *at = p + 4 + net_addr_bytes(a);
    return true;
}

bool tcp_card_read(struct tcp_card *c, const void *buf, size_t n)
{
    const uint8_t *p = buf, *end = p + n;
    memset(c, 0, sizeof *c);
    if (n < 3 || (p[0] & ~CARD_SEALED) != CARD_VERSION || p[1] >= sizeof c->host || n < 3u + p[1]) return false;
    c->sealed = p[0] & CARD_SEALED;
    memcpy(c->host, p + 2, p[1]);
    p += 2 + p[1];
    c->count = *p++;
    if (!c->count || c->count > TCP_ADDRS) return false;
    for (unsigned i = 0; i < c->count; i++)
        if (!read_addr(&c->addr[i], &p, end)) return false;
    return p == end;
}

/* ---- how near, and in which order ---- */

static bool own_address(const struct tcp_dom *d, const struct net_addr *a)
{
    for (unsigned i = 0; i < d->ifs.n; i++)
        if (net_addr_same(a, &d->ifs.v[i].addr)) return true;
    return false;
}

static bool usable(const struct tcp_dom *d, const struct tcp_card *c, const struct net_addr *a)
{
    if (net_addr_is_loopback(a)) return !strcmp(c->host, d->host);
    for (unsigned i = 0; i < d->ifs.n; i++)
        if (d->ifs.v[i].addr.family == a->family) return true;
    return false;
}

bool tcp_card_usable(const struct tcp_dom *d, const struct tcp_card *c)
{
    for (unsigned i = 0; i < c->count; i++)
        if (usable(d, c, &c->addr[i])) return true;
    return false;
}

/* What became of the addresses of a host: its other processes have the same. */
static struct lesson {
    char host[64];
    struct net_addr addr;
    bool good;
} lessons[64];
static unsigned next_lesson;

static const struct lesson *find_lesson(const char *host, const struct net_addr *a)
{
    for (unsigned i = 0; i < ARRAY_LEN(lessons); i++)
        if (!strcmp(lessons[i].host, host) && net_addr_same(a, &lessons[i].addr)) return &lessons[i];
    return NULL;
}

void tcp_addr_learn(const char *host, const struct net_addr *a, bool good)
{
    const struct lesson *old = find_lesson(host, a);
    struct lesson *l = old ? &lessons[old - lessons] : &lessons[next_lesson++ % ARRAY_LEN(lessons)];
    snprintf(l->host, sizeof l->host, "%s", host);
    l->addr = *a;
    l->good = good;
}

static bool same_subnet(const struct tcp_dom *d, const struct net_addr *a)
{
    for (unsigned i = 0; i < d->ifs.n; i++) {
        const struct net_addr *own = &d->ifs.v[i].addr;
        if (own->family == a->family && own->prefix == a->prefix && net_addr_agree(own->bytes, a->bytes, a->prefix)) return true;
    }
    return false;
}

/* Small: to be tried early. */
static int rank_of(const struct tcp_dom *d, const struct tcp_card *c, const struct net_addr *a)
{
    const struct lesson *l = find_lesson(c->host, a);
    if (own_address(d, a) && strcmp(c->host, d->host)) return 5;
    if (l) return l->good ? 0 : 4;
    return same_subnet(d, a) ? 1 : 2;
}

/* Drops what cannot be used and sorts the rest; those of one rank stay in their order. */
void tcp_addr_rank(const struct tcp_dom *d, struct tcp_card *c)
{
    struct tcp_card sorted = {.count = 0};
    for (int rank = 0; rank <= 5; rank++)
        for (unsigned i = 0; i < c->count; i++)
            if (usable(d, c, &c->addr[i]) && rank_of(d, c, &c->addr[i]) == rank) sorted.addr[sorted.count++] = c->addr[i];
    memcpy(sorted.host, c->host, sizeof sorted.host);
    *c = sorted;
}
