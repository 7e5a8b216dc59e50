/* net_addr.c - see net_addr.h. */
#include "transport/net_addr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- forms ---- */

bool net_addr_agree(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole)) return false;
    return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

bool net_addr_same(const struct net_addr *a, const struct net_addr *b)
{
    return a->family == b->family && !memcmp(a->bytes, b->bytes, net_addr_bytes(a));
}

bool net_addr_is_loopback(const struct net_addr *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return a->family == 4 ? a->bytes[0] == 127 : !memcmp(a->bytes, one, 16);
}

static bool is_link_local(const struct net_addr *a)
{
    return a->family == 6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

socklen_t net_addr_sock(const struct net_addr *a, struct sockaddr_storage *s)
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

void net_addr_from(struct net_addr *a, const struct sockaddr_storage *s)
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

void net_addr_ip(const struct net_addr *a, char ip[NET_IP])
{
    strcpy(ip, "?");
    inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, ip, NET_IP);
}

void net_addr_text(const struct net_addr *a, char *text, size_t size)
{
    char ip[NET_IP];
    net_addr_ip(a, ip);
    snprintf(text, size, a->family == 4 ? "%s:%u" : "[%s]:%u", ip, a->port);
}

/* ---- which interfaces ---- */

/* Is the word `item`, n characters, the name of this interface or a prefix ("10.0.0.0/8") of its address? */
static bool item_matches(const char *item, size_t n, const struct net_if *f)
{
    char text[64], *slash;
    struct net_addr want = {0};
    if (strlen(f->name) == n && !strncmp(f->name, item, n)) return true;
    if (n >= sizeof text) return false;
    memcpy(text, item, n);
    text[n] = 0;
    if (!(slash = strchr(text, '/'))) return false;
    *slash = 0;
    int bits = atoi(slash + 1);
    want.family = strchr(text, ':') ? 6 : 4;
    if (inet_pton(want.family == 4 ? AF_INET : AF_INET6, text, want.bytes) != 1) return false;
    return want.family == f->addr.family && bits >= 0 && bits <= (int)(8 * net_addr_bytes(&want)) &&
           net_addr_agree(want.bytes, f->addr.bytes, (unsigned)bits);
}

static bool list_matches(const char *list, const struct net_if *f)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n && item_matches(list, n, f)) return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* `loopback`: what is wanted where nobody has named interfaces. */
static bool wanted(const struct net_if *f, const char *list, bool loopback)
{
    if (is_link_local(&f->addr)) return false;
    if (*list && *list != '^') return list_matches(list, f);
    if (*list && list_matches(list + 1, f)) return false;
    if (loopback) return net_addr_is_loopback(&f->addr) && f->addr.family == 4;
    return !net_addr_is_loopback(&f->addr);
}

/* ---- what the system has ---- */

#define LISTING 16384 /* bytes of the longest message with addresses */

/* The addresses of interfaces that are up. getifaddrs would ask for all about each interface as well: 75 us rather than 20. */
struct listing {
    int netlink, any; /* sockets: the latter for what is asked by number or name */
    char *bytes;      /* LISTING: what was read last */
    struct net_if *v; /* malloc'ed */
    unsigned n, room;
};

static bool is_up(const struct listing *l, int index, char name[IFNAMSIZ])
{
    struct ifreq r = {.ifr_ifindex = index};
    if (ioctl(l->any, SIOCGIFNAME, &r)) return false;
    memcpy(name, r.ifr_name, IFNAMSIZ);
    name[IFNAMSIZ - 1] = 0;
    return !ioctl(l->any, SIOCGIFFLAGS, &r) && (r.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static bool add_address(struct listing *l, const struct nlmsghdr *h)
{
    const struct ifaddrmsg *m = NLMSG_DATA(h);
    const void *address = NULL;
    size_t n = m->ifa_family == AF_INET ? 4 : 16;
    int left = (int)IFA_PAYLOAD(h);
    struct net_if f = {.addr = {.family = m->ifa_family == AF_INET ? 4 : 6, .prefix = m->ifa_prefixlen}};
    for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        bool own = a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !address); /* the latter may be that of the other end */
        if (own && RTA_PAYLOAD(a) == n) address = RTA_DATA(a);
    }
    if ((m->ifa_family != AF_INET && m->ifa_family != AF_INET6) || !address || !is_up(l, (int)m->ifa_index, f.name)) return true;
    memcpy(f.addr.bytes, address, n);
    if (l->n == l->room) {
        struct net_if *more = realloc(l->v, (l->room = 2 * l->room + 8) * sizeof *more);
        if (!more) return false;
        l->v = more;
    }
    l->v[l->n++] = f;
    return true;
}

/* The messages of one read. 1: there are more, 0: that was all, -1: it failed, with errno. */
static int take_addresses(struct listing *l)
{
    ssize_t n = recv(l->netlink, l->bytes, LISTING, 0);
    if (n < 0) return errno == EINTR ? 1 : -1;
    for (const struct nlmsghdr *h = (const void *)l->bytes; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
        if (h->nlmsg_type == NLMSG_DONE) return 0;
        if (h->nlmsg_type == NLMSG_ERROR || (h->nlmsg_type == RTM_NEWADDR && !add_address(l, h))) {
            errno = h->nlmsg_type == NLMSG_ERROR ? EPROTO : ENOMEM;
            return -1;
        }
    }
    return 1;
}

static int list(struct listing *l, char host[NET_HOST])
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg what;
    } all = {.head = {.nlmsg_len = sizeof all, .nlmsg_type = RTM_GETADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    int more = -1;
    *l = (struct listing){.netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE),
                          .any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                          .bytes = malloc(LISTING)};
    if (l->any < 0) l->any = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    net_host(host);
    if (l->bytes && l->netlink >= 0 && l->any >= 0 && send(l->netlink, &all, sizeof all, 0) == sizeof all)
        while ((more = take_addresses(l)) > 0) {}
    int rc = more ? err_sys("the network interfaces of %s cannot be listed", host) : 0;
    if (l->netlink >= 0) close(l->netlink);
    if (l->any >= 0) close(l->any);
    free(l->bytes);
    if (rc) free(l->v);
    return rc;
}

static void choose(struct net_ifs *v, const struct listing *all, const char *names, bool loopback)
{
    for (unsigned i = 0; i < all->n && v->n < NET_IFS; i++)
        if (wanted(&all->v[i], names, loopback)) v->v[v->n++] = all->v[i];
}

/* What there would be, for who asked for something else. */
static void name_all(char *text, size_t size, const struct listing *all)
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < all->n; i++) {
        const struct net_if *f = &all->v[i];
        char ip[NET_IP];
        if (is_link_local(&f->addr)) continue;
        net_addr_ip(&f->addr, ip);
        int k = snprintf(text + n, size - n, "%s%s %s/%u", n ? ", " : "", f->name, ip, f->addr.prefix);
        if (k < 0 || (n += (size_t)k) >= size) return;
    }
}

static int look(struct net_ifs *v, bool near)
{
    const char *names = var_text(VAR_TCP_INTERFACES);
    struct listing all;
    char text[300], host[NET_HOST];
    v->n = 0;
    int rc = list(&all, host);
    if (rc) return rc;
    choose(v, &all, names, near);
    if (!v->n && (!*names || *names == '^') && !near) choose(v, &all, names, true);
    name_all(text, sizeof text, &all);
    free(all.v);
    if (v->n) return 0;
    if (*names && *text)
        return err_set(TERN_ERR_ARG, "variable TERN_TCP_INTERFACES: '%s' selects none of the interfaces of %s, which are: %s", names, host, text);
    return err_set(TERN_ERR_NOT_FOUND, "no network interface of %s is up", host);
}

#define KEEP_NS 1000000000u /* a process that is spawned would list them twice */

int net_ifs(struct net_ifs *v, bool near)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct net_ifs known; /* of the last listing for others, by these names */
    static char names[300];
    static uint64_t until;
    if (near) return look(v, true);
    pthread_mutex_lock(&lock);
    uint64_t now = clock_ns();
    bool fresh = now < until && !strcmp(names, var_text(VAR_TCP_INTERFACES));
    int rc = fresh ? 0 : look(&known, false);
    if (!fresh) {
        bool kept = snprintf(names, sizeof names, "%s", var_text(VAR_TCP_INTERFACES)) < (int)sizeof names;
        until = kept && !rc ? now + KEEP_NS : 0;
    }
    *v = known;
    pthread_mutex_unlock(&lock);
    return rc;
}

int net_ifs_more(struct net_ifs *v)
{
    struct listing all;
    char host[NET_HOST];
    int rc = list(&all, host);
    if (rc) return rc;
    choose(v, &all, var_text(VAR_TCP_INTERFACES), false);
    free(all.v);
    return 0;
}

int net_addr_towards(const struct net_addr *to, struct net_addr *own)
{
    struct net_addr at = *to;
    struct sockaddr_storage s;
    char text[64];
    if (!at.port) at.port = 9; /* nothing is sent there */
    socklen_t n = net_addr_sock(&at, &s);
    int fd = socket(s.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && !connect(fd, (struct sockaddr *)&s, n) && !getsockname(fd, (struct sockaddr *)&s, &n);
    net_addr_text(to, text, sizeof text);
    int rc = good ? 0 : err_sys("there is no way to %s", text);
    if (fd >= 0) close(fd);
    if (good) net_addr_from(own, &s);
    own->port = 0;
    return rc;
}

void net_host(char host[NET_HOST])
{
    if (gethostname(host, NET_HOST)) strcpy(host, "?");
    host[NET_HOST - 1] = 0;
}

int net_ports(uint16_t *low, uint16_t *high)
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
