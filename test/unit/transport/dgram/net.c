/* net.c - see net.h. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct datagram {
    struct link link;
    uint64_t at;
    uint8_t from;
    size_t n;
    uint8_t bytes[];
};

struct station {
    struct dgram_wire wire;
    bool open;
    unsigned waiting;
    struct link coming;
    uint8_t room[16384];
};

uint64_t net_now, net_delay, net_overrun, net_full;
unsigned net_queue;
void (*net_tap)(unsigned, unsigned, const void *, size_t);
static struct station stations[NET_STATIONS];

static struct station *station_of(const struct dgram_wire *w) { return container_of(w, struct station, wire); }
static unsigned number_of(const struct dgram_wire *w) { return (unsigned)(station_of(w) - stations); }

static void empty(struct station *s)
{
    for (struct link *l; s->coming.next && (l = list_pop(&s->coming));) free(container_of(l, struct datagram, link));
    list_init(&s->coming);
    s->waiting = 0;
}

void net_reset(void)
{
    for (unsigned i = 0; i < NET_STATIONS; i++) empty(&stations[i]);
    net_now = 1000000;
    net_delay = NET_TRIP;
    net_overrun = net_full = 0;
    net_queue = 128;
    net_tap = NULL;
}

void net_inject(unsigned from, unsigned to, const void *bytes, size_t n)
{
    struct station *s = &stations[to % NET_STATIONS];
    if (net_tap) net_tap(from, to, bytes, n);
    if (!s->open) return;
    if (s->waiting == net_queue) {
        net_overrun++;
        return;
    }
    struct datagram *f = malloc(sizeof *f + n);
    if (!f) abort();
    f->at = net_now + net_delay;
    f->from = (uint8_t)from;
    f->n = n;
    memcpy(f->bytes, bytes, n);
    list_push(&s->coming, &f->link);
    s->waiting++;
}

uint64_t net_next(void)
{
    uint64_t at = UINT64_MAX;
    for (unsigned i = 0; i < NET_STATIONS; i++) {
        if (!stations[i].open || list_empty(&stations[i].coming)) continue;
        uint64_t own = container_of(stations[i].coming.next, struct datagram, link)->at;
        if (own < at) at = own;
    }
    return at;
}

static bool is_full(const struct dgram_wire *w) { return net_full >> number_of(w) & 1; }
static void *net_room(struct dgram_wire *w) { return is_full(w) ? NULL : station_of(w)->room; }

static void net_send(struct dgram_wire *w, const struct dgram_addr *to, size_t n)
{
    net_inject(number_of(w), to->bytes[0], station_of(w)->room, n);
}

static void net_flush(struct dgram_wire *w, uint64_t now)
{
    (void)w;
    (void)now;
}

static struct dgram_addr address(unsigned station) { return (struct dgram_addr){1, {(uint8_t)station}}; }

static int net_poll(struct dgram_wire *w, uint64_t now, int budget, dgram_take_fn take, void *arg)
{
    struct station *s = station_of(w);
    int taken = 0;
    if (now > net_now) net_now = now; /* of an owner with another clock */
    while (taken < budget && !list_empty(&s->coming)) {
        struct datagram *f = container_of(s->coming.next, struct datagram, link);
        if (f->at > now) break;
        list_remove(&f->link);
        s->waiting--;
        struct dgram_addr from = address(f->from);
        take(arg, &from, f->bytes, f->n);
        free(f);
        taken++;
    }
    return taken;
}

/* No descriptor says that a datagram is there. */
static uint64_t net_due(const struct dgram_wire *w)
{
    const struct link *coming = &station_of(w)->coming;
    uint64_t at = list_empty(coming) ? UINT64_MAX : container_of(coming->next, struct datagram, link)->at;
    return is_full(w) ? min_size(at, net_now + NET_TRIP) : at;
}

static bool net_valid(const struct dgram_wire *w, const struct dgram_addr *a)
{
    (void)w;
    return a->n == 1 && a->bytes[0] < NET_STATIONS;
}

static void net_text(const struct dgram_wire *w, const struct dgram_addr *a, char *buf, size_t n)
{
    (void)w;
    snprintf(buf, n, "station %u", a->bytes[0]);
}

static void net_close(struct dgram_wire *w)
{
    station_of(w)->open = false;
    empty(station_of(w));
}

static const struct dgram_wire_ops ops = {
    .name = "simulated datagrams",
    .close = net_close,
    .room = net_room,
    .send = net_send,
    .flush = net_flush,
    .poll = net_poll,
    .due = net_due,
    .valid = net_valid,
    .text = net_text,
};

struct dgram_wire *net_open(unsigned station, uint32_t mtu)
{
    struct station *s = &stations[station];
    empty(s);
    s->open = true;
    s->wire = (struct dgram_wire){.ops = &ops, .mtu = mtu, .fd = -1, .kind = DGRAM_TEST, .own = address(station)};
    return &s->wire;
}
