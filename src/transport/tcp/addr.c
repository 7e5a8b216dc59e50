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

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CARD_VERSION 1
#define CARD_SEALED 0x80 /* in its byte: TERN_TCP_SEAL */
#define CARD_BYTES 255

static size_t addr_bytes(const struct tcp_addr *a) { return a->family == 4 ? 4 : 16; }

/* Do the first `bits` bits of two addresses agree? */
static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole)) return false;
    return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

static bool same_addr(const struct tcp_addr *a, const struct tcp_addr *b)
{
    return a->family == b->family && !memcmp(a->bytes, b->bytes, addr_bytes(a));
}

static bool is_loopback(const struct tcp_addr *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return a->family == 4 ? a->bytes[0] == 127 : !memcmp(a->bytes, one, 16);
}

static bool is_link_local(const struct tcp_addr *a)
{
    return a->family == 6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

/* ---- forms ---- */

socklen_t tcp_addr_sock(const struct tcp_addr *a, struct sockaddr_storage *s)
{
    memset(s, 0, sizeof *s);
    if (a->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)s;
        in->sin_family = AF_INET;
        in->sin_port = htons(a->port);
        memcpy(&in->sin_addr, a->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)s;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(a->port);
    memcpy(&in->sin6_addr, a->bytes, 16);
    return sizeof *in;
}

void tcp_addr_from(struct tcp_addr *a, const struct sockaddr_storage *s)
{
    memset(a, 0, sizeof *a);
    if (s->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)s;
        a->family = 4;
        a->port = ntohs(in->sin_port);
        memcpy(a->bytes, &in->sin_addr, 4);
    } else if (s->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)s;
        a->family = 6;
        a->port = ntohs(in->sin6_port);
        memcpy(a->bytes, &in->sin6_addr, 16);
    }
}

void tcp_addr_text(const struct tcp_addr *a, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, ip, sizeof ip);
    snprintf(text, size, a->family == 4 ? "%s:%u" : "[%s]:%u", ip, a->port);
}

const char *tcp_addr_near(const struct tcp_dom *d, int fd)
{
    struct sockaddr_storage s = {0};
    struct tcp_addr a;
    socklen_t n = sizeof s;
    if (getsockname(fd, (struct sockaddr *)&s, &n)) return "?";
    tcp_addr_from(&a, &s);
    for (unsigned i = 0; i < d->ifs_count; i++)
        if (same_addr(&a, &d->ifs[i].addr)) return d->ifs[i].name;
    return is_loopback(&a) ? "lo" : "?";
}

/* ---- which interfaces ---- */

/* Is the word `item`, n characters, the name of this interface or a prefix ("10.0.0.0/8") of its address? */
static bool item_matches(const char *item, size_t n, const struct tcp_if *f)
{
    char text[64], *slash;
    struct tcp_addr want = {0};
    if (strlen(f->name) == n && !strncmp(f->name, item, n)) return true;
    if (n >= sizeof text) return false;
    memcpy(text, item, n);
    text[n] = 0;
    if (!(slash = strchr(text, '/'))) return false;
    *slash = 0;
    int bits = atoi(slash + 1);
    want.family = strchr(text, ':') ? 6 : 4;
    if (inet_pton(want.family == 4 ? AF_INET : AF_INET6, text, want.bytes) != 1) return false;
    return want.family == f->addr.family && bits >= 0 && bits <= (int)(8 * addr_bytes(&want)) &&
           same_prefix(want.bytes, f->addr.bytes, (unsigned)bits);
}

static bool list_matches(const char *list, const struct tcp_if *f)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n && item_matches(list, n, f)) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* `loopback`: what is wanted where nobody has named interfaces. */
static bool wanted(const struct tcp_if *f, const char *list, bool loopback)
{
    if (is_link_local(&f->addr)) return false;
    if (*list && *list != '^') return list_matches(list, f);
    if (*list && list_matches(list + 1, f)) return false;
    if (loopback) return is_loopback(&f->addr) && f->addr.family == 4;
    return !is_loopback(&f->addr);
}

static uint8_t prefix_of(const struct sockaddr *mask)
{
    const uint8_t *b = NULL;
    unsigned n = 0, bytes = 0;
    if (mask && mask->sa_family == AF_INET) b = (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr, bytes = 4;
    if (mask && mask->sa_family == AF_INET6) b = (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr, bytes = 16;
    while (n < 8 * bytes && b[n / 8] >> (7 - n % 8) & 1) n++;
    return (uint8_t)n;
}

static bool read_if(struct tcp_if *f, const struct ifaddrs *a)
{
    struct sockaddr_storage s = {0};
    if (!a->ifa_addr || (a->ifa_flags & (IFF_UP | IFF_RUNNING)) != (IFF_UP | IFF_RUNNING)) return false;
    if (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6) return false;
    memcpy(&s, a->ifa_addr, a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    tcp_addr_from(&f->addr, &s);
    f->addr.prefix = prefix_of(a->ifa_netmask);
    snprintf(f->name, sizeof f->name, "%s", a->ifa_name);
    return true;
}

static void choose(struct tcp_dom *d, const struct ifaddrs *all, const char *list, bool loopback)
{
    struct tcp_if f;
    for (const struct ifaddrs *a = all; a && d->ifs_count < TCP_ADDRS; a = a->ifa_next)
        if (read_if(&f, a) && wanted(&f, list, loopback)) d->ifs[d->ifs_count++] = f;
}

/* What there would be, for who asked for something else. */
static void name_all(char *text, size_t size, const struct ifaddrs *all)
{
    struct tcp_if f;
    size_t n = 0;
    text[0] = 0;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        char ip[INET6_ADDRSTRLEN];
        if (!read_if(&f, a) || is_link_local(&f.addr)) continue;
        inet_ntop(f.addr.family == 4 ? AF_INET : AF_INET6, f.addr.bytes, ip, sizeof ip);
        int k = snprintf(text + n, size - n, "%s%s %s/%u", n ? ", " : "", f.name, ip, f.addr.prefix);
        if (k < 0 || (n += (size_t)k) >= size) return;
    }
}

/* Nobody has named interfaces, and the loopback one is enough. */
static bool is_near(const char *list, bool others)
{
    return (!*list || *list == '^') && proc_self()->nodes == 1 && !others;
}

int tcp_addr_open(struct tcp_dom *d, bool others)
{
    const char *list = var_text(VAR_TCP_INTERFACES);
    struct ifaddrs *all = NULL;
    char text[300];
    bool alone = proc_self()->nodes == 1 && !others;
    d->near = is_near(list, others);
    d->ifs_count = 0;
    if (gethostname(d->host, sizeof d->host)) strcpy(d->host, "?");
    d->host[sizeof d->host - 1] = 0;
    if (getifaddrs(&all)) return err_sys("the network interfaces of %s cannot be listed", d->host);
    choose(d, all, list, alone);
    if (!d->ifs_count && (!*list || *list == '^') && !alone) choose(d, all, list, true);
    name_all(text, sizeof text, all);
    freeifaddrs(all);
    if (d->ifs_count) return 0;
    if (*list && *text)
        return err_set(TERN_ERR_ARG, "variable TERN_TCP_INTERFACES: '%s' selects none of the interfaces of %s, which are: %s", list, d->host, text);
    return err_set(TERN_ERR_NOT_FOUND, "no network interface of %s is up", d->host);
}

int tcp_addr_more(struct tcp_dom *d)
{
    struct ifaddrs *all = NULL;
    if (!d->near) return 0;
    d->near = false;
    if (getifaddrs(&all)) return err_sys("the network interfaces of %s cannot be listed", d->host);
    choose(d, all, var_text(VAR_TCP_INTERFACES), false);
    freeifaddrs(all);
    return 0;
}

int tcp_addr_ports(uint16_t *low, uint16_t *high)
{
    const char *name = "variable TERN_TCP_PORTS", *text = var_text(VAR_TCP_PORTS), *env = getenv("MPIEXEC_PORT_RANGE");
    *low = *high = 0;
    if (!*text && env) name = "MPIEXEC_PORT_RANGE", text = env;
    if (!*text) return 0;
    unsigned a, b;
    char sep, more;
    if (sscanf(text, "%u%c%u%c", &a, &sep, &b, &more) != 3 || (sep != '-' && sep != ':') || !a || a > b || b > 65535)
        return err_set(TERN_ERR_ARG, "%s: '%s' is no range of ports, such as 20000-20100", name, text);
    *low = (uint16_t)a;
    *high = (uint16_t)b;
    return 0;
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
    for (unsigned i = 0; i < d->ifs_count; i++) {
        const struct tcp_addr *a = &d->ifs[i].addr;
        if (!a->port || n + 4 + addr_bytes(a) > sizeof card) continue;
        uint8_t head[4] = {a->family, a->prefix, (uint8_t)(a->port >> 8), (uint8_t)a->port};
        memcpy(card + n, head, 4);
        memcpy(card + n + 4, a->bytes, addr_bytes(a));
        n += 4 + addr_bytes(a);
        ++*count;
    }
    if (n > cap) return err_set(TERN_ERR_INTERN, "no room for the card of tcp");
    memcpy(buf, card, n);
    return (int)n;
}

static bool read_addr(struct tcp_addr *a, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    memset(a, 0, sizeof *a);
    if (end - p < 4) return false;
    *a = (struct tcp_addr){.family = p[0], .prefix = p[1], .port = (uint16_t)(p[2] << 8 | p[3])};
    if ((a->family != 4 && a->family != 6) || a->prefix > 8 * addr_bytes(a) || !a->port) return false;
    if ((size_t)(end - p - 4) < addr_bytes(a)) return false;
    memcpy(a->bytes, p + 4, addr_bytes(a));
    *at = p + 4 + addr_bytes(a);
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

static bool own_address(const struct tcp_dom *d, const struct tcp_addr *a)
{
    for (unsigned i = 0; i < d->ifs_count; i++)
        if (same_addr(a, &d->ifs[i].addr)) return true;
    return false;
}

static bool usable(const struct tcp_dom *d, const struct tcp_card *c, const struct tcp_addr *a)
{
    if (is_loopback(a)) return !strcmp(c->host, d->host);
    for (unsigned i = 0; i < d->ifs_count; i++)
        if (d->ifs[i].addr.family == a->family) return true;
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
    struct tcp_addr addr;
    bool good;
} lessons[64];
static unsigned next_lesson;

static const struct lesson *find_lesson(const char *host, const struct tcp_addr *a)
{
    for (unsigned i = 0; i < ARRAY_LEN(lessons); i++)
        if (!strcmp(lessons[i].host, host) && same_addr(a, &lessons[i].addr)) return &lessons[i];
    return NULL;
}

void tcp_addr_learn(const char *host, const struct tcp_addr *a, bool good)
{
    const struct lesson *old = find_lesson(host, a);
    struct lesson *l = old ? &lessons[old - lessons] : &lessons[next_lesson++ % ARRAY_LEN(lessons)];
    snprintf(l->host, sizeof l->host, "%s", host);
    l->addr = *a;
    l->good = good;
}

static bool same_subnet(const struct tcp_dom *d, const struct tcp_addr *a)
{
    for (unsigned i = 0; i < d->ifs_count; i++) {
        const struct tcp_addr *own = &d->ifs[i].addr;
        if (own->family == a->family && own->prefix == a->prefix && same_prefix(own->bytes, a->bytes, a->prefix)) return true;
    }
    return false;
}

/* Small: to be tried early. */
static int rank_of(const struct tcp_dom *d, const struct tcp_card *c, const struct tcp_addr *a)
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
