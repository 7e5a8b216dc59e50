/*
 * hot.c - connections that are read without asking epoll, and room for much that they expect.
 *
 * Large data that nobody reads for a while, since the program computes, is taken by the system: it lies in the
 * receiving socket, and the sender is over. Two things are in the way of that. The system offers little room at first,
 * and more as it is read. And while the room shrinks it delays its acknowledgements, by 40 ms, whenever the reader is
 * behind: the sender has all that it may have under way. Both end if the reader says that it does not want to hear of
 * less than so many bytes (SO_RCVLOWAT): then there is room for them, and they are acknowledged at once until they are
 * there (Linux 4.18). 4 MB over the loopback interface to a reader that sleeps for 60 ms: 31 ms without such a mark and
 * 0.9 with; to one that reads all the time: 2.3 and 0.4.
 *
 * But epoll does not tell of less then. So a connection has a mark only while it is hot, and none is left when the
 * process sleeps.
 *
 * SO_RCVBUF would not do: its limit is lower, and it ends the adaption of the room.
 */
#include "transport/tcp/tcp.h"

#include <sys/socket.h>

#define COLD_LOOKS 1000 /* reads in turn without a byte, then a connection is left to epoll */

/* Expected bytes that a mark is set for, and what else may lie in the socket. */
#define MARK_FROM ((uint64_t)512 << 10)
#define MARK_MORE ((uint64_t)64 << 10)
#define MARK_MOST ((uint64_t)1 << 30) /* the system has a limit of its own, half of tcp_rmem's last word */

static bool set_mark(struct tcp_ep *e, int bytes)
{
    return !setsockopt(e->src.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void unmark(struct tcp_ep *e)
{
    if (e->mark && e->src.fd >= 0) (void)set_mark(e, 1); /* if enough is there, epoll tells of it now */
    e->mark = 0;
}

void tcp_hot_remove(struct tcp_ep *e)
{
    unmark(e);
    for (unsigned i = 0; i < tcp_dom.hot_count; i++)
        if (tcp_dom.hot[i] == e) tcp_dom.hot[i--] = tcp_dom.hot[--tcp_dom.hot_count];
}

static bool is_hot(const struct tcp_ep *e)
{
    for (unsigned i = 0; i < tcp_dom.hot_count; i++)
        if (tcp_dom.hot[i] == e) return true;
    return false;
}

void tcp_hot_add(struct tcp_ep *e)
{
    if (is_hot(e)) return;
    if (tcp_dom.hot_count == TCP_HOT) tcp_hot_remove(tcp_dom.hot[tcp_dom.turn % TCP_HOT]);
    tcp_dom.hot[tcp_dom.hot_count++] = e;
    e->fruitless = 0;
}

int tcp_hot_read(int budget)
{
    int n = 0;
    for (unsigned i = 0; i < tcp_dom.hot_count && n < budget && !tcp_dom.held; i++) {
        struct tcp_ep *e = tcp_dom.hot[i];
        if (++e->fruitless > COLD_LOOKS)
            tcp_hot_remove(e);
        else
            n += tcp_recv(e, budget - n);
    }
    return n;
}

bool tcp_hot_unmark(void)
{
    bool any = false;
    for (unsigned i = 0; i < tcp_dom.hot_count; i++) {
        any |= tcp_dom.hot[i]->mark != 0;
        unmark(tcp_dom.hot[i]);
    }
    return any;
}

/* Of those that are hot already, or if there is a place: marks that are set and taken back would cost more than they
 * save. */
void tcp_expect(struct tp_ep *ep, uint64_t bytes)
{
    struct tcp_ep *e = ep->priv;
    if (bytes < MARK_FROM || bytes <= e->mark || e->state != TCP_OPEN) return;
    if (!is_hot(e) && tcp_dom.hot_count == TCP_HOT) return;
    if (bytes > MARK_MOST) bytes = MARK_MOST;
    if (!set_mark(e, (int)(bytes + MARK_MORE))) return;
    e->mark = (uint32_t)bytes;
    tcp_hot_add(e);
}
