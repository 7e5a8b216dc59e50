/* boot.c - the text of boot.h, and this host's addresses. */
#include "mpiexec/boot.h"
#include "base/hex.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

char *boot_text(const struct boot *b)
{
    char *text = xcalloc(BOOT_TEXT, 1), *at = text;
    at += sprintf(at, "tern-daemon 1\nkey ");
    at = hex_put(at, b->key, CRYPTO_KEY);
    at += sprintf(at, "\nplace %d %d %d\nseconds %d\n", b->node, b->vertex, b->parent, b->seconds);
    for (int i = 0; i < b->naddresses; i++) {
        const struct sockaddr_storage *a = &b->addresses[i];
        const struct sockaddr_in *v4 = (const void *)a;
        const struct sockaddr_in6 *v6 = (const void *)a;
        char host[INET6_ADDRSTRLEN];
        bool six = a->ss_family == AF_INET6;
        inet_ntop(a->ss_family, six ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host, sizeof host);
        at += sprintf(at, "address %s %d\n", host, ntohs(six ? v6->sin6_port : v4->sin_port));
    }
    strcpy(at, "end\n");
    return text;
}

/* --- parsing ----------------------------------------------------------------------------------------------------- */

static bool parse_key(struct boot *b, const char *hex)
{
    return hex_get(hex, b->key, CRYPTO_KEY) && !hex[2 * CRYPTO_KEY];
}

static bool parse_address(struct boot *b, const char *rest)
{
    char host[64];
    int port, end = 0;
    if (b->naddresses == BOOT_ADDRESSES) return false;
    if (sscanf(rest, "%63s %d%n", host, &port, &end) != 2 || rest[end] || port < 1 || port > 65535) return false;
    struct sockaddr_storage *a = &b->addresses[b->naddresses++];
    struct sockaddr_in *v4 = (void *)a;
    struct sockaddr_in6 *v6 = (void *)a;
    a->ss_family = strchr(host, ':') ? AF_INET6 : AF_INET;
    if (a->ss_family == AF_INET6) {
        v6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1;
    }
    v4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

static bool parse_place(struct boot *b, const char *rest)
{
    int end = 0;
    return sscanf(rest, "%d %d %d%n", &b->node, &b->vertex, &b->parent, &end) == 3 && !rest[end] && b->node >= 0 &&
           b->vertex > b->parent && b->parent >= 0;
}

static bool parse_seconds(struct boot *b, const char *rest)
{
    char *end;
    long v = strtol(rest, &end, 10);
    b->seconds = (int)v;
    return end != rest && !*end && v > 0 && v <= 86400;
}

static bool parse_line(struct boot *b, char *line)
{
    char *rest = strchr(line, ' ');
    if (!rest) return false;
    *rest++ = 0;
    if (!strcmp(line, "key")) return parse_key(b, rest);
    if (!strcmp(line, "place")) return parse_place(b, rest);
    if (!strcmp(line, "seconds")) return parse_seconds(b, rest);
    return !strcmp(line, "address") && parse_address(b, rest);
}

const char *boot_parse(struct boot *b, const char *text, size_t n)
{
    static const uint8_t no_key[CRYPTO_KEY];
    char copy[BOOT_TEXT], *rest = copy, *line;
    if (n >= sizeof copy || memchr(text, 0, n)) return "it is too long, or no text";
    memcpy(copy, text, n);
    copy[n] = 0;
    memset(b, 0, sizeof *b);
    if (!(line = strsep(&rest, "\n")) || strcmp(line, "tern-daemon 1")) return "its first line is another";
    while ((line = strsep(&rest, "\n")) && strcmp(line, "end"))
        if (!parse_line(b, line)) return "a line of it is wrong";
    if (!line) return "it has no end";
    bool all = b->seconds && b->naddresses && b->vertex && memcmp(b->key, no_key, sizeof no_key);
    return all ? NULL : "something is missing";
}

int boot_read(struct boot *b, int fd, int seconds)
{
    char text[BOOT_TEXT];
    size_t n = 0;
    time_t until = time(NULL) + seconds;
    while (n < sizeof text && !(n >= 4 && !memcmp(text + n - 4, "end\n", 4)) && time(NULL) <= until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 1000) <= 0) continue;
        ssize_t got = read(fd, text + n, sizeof text - n);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) break;
        if (got > 0) n += (size_t)got;
    }
    const char *why = boot_parse(b, text, n);
    explicit_bzero(text, sizeof text);
    if (!why) return 0;
    say("--tern-daemon is for mpiexec's own use; what came on standard input is not from it: %s", why);
    return EXIT_USAGE;
}

/* --- addresses --------------------------------------------------------------------------------------------------- */

/* Which are of use: 0 no, 1 the loopback (a daemon on this very host), 2 others. */
static int worth(const struct ifaddrs *i, const char *iface)
{
    const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) return 0;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) return 0;
    if (i->ifa_addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return 0;
    if (iface && strcmp(iface, i->ifa_name)) return 0;
    return i->ifa_flags & IFF_LOOPBACK ? 1 : 2;
}

static void add_address(struct boot *b, const struct sockaddr *from, int port)
{
    if (b->naddresses == BOOT_ADDRESSES) return;
    struct sockaddr_storage *a = &b->addresses[b->naddresses++];
    struct sockaddr_in *v4 = (void *)a;
    struct sockaddr_in6 *v6 = (void *)a;
    memset(a, 0, sizeof *a);
    memcpy(a, from, from->sa_family == AF_INET6 ? sizeof *v6 : sizeof *v4);
    *(from->sa_family == AF_INET6 ? &v6->sin6_port : &v4->sin_port) = htons((uint16_t)port);
}

void boot_addresses(struct boot *b, const char *iface, int port)
{
    struct ifaddrs *all;
    b->naddresses = 0;
    if (getifaddrs(&all)) return;
    for (int wanted = 2; wanted; wanted--)
        for (struct ifaddrs *i = all; i; i = i->ifa_next)
            if (worth(i, iface) == wanted) add_address(b, i->ifa_addr, port);
    freeifaddrs(all);
}
