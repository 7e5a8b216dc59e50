/* helper_doze.c - see helper_doze.h. */
#include "pt2pt/helper_doze.h"
#include "base/err.h"
#include "transport/wires.h"

#include <sys/epoll.h>
#include <unistd.h>

static int all = -1, called = -1;

/* `called` will wake. Set before it is so, and wiped out by the helper after it has woken: where it is seen wiped out, the
 * helper has woken since, or does so just now. */
static _Atomic bool armed;

static int watch(int set, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events};
    return fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

static int fill_sets(const struct bell *b)
{
    int fds[BELL_FDS_MAX], n = wires_wait_fds(fds);
    all = epoll_create1(EPOLL_CLOEXEC);
    called = epoll_create1(EPOLL_CLOEXEC);
    int rc = watch(all, b->socket, EPOLLIN) || watch(called, all, EPOLLONESHOT);
    for (int i = 0; i < n && !rc; i++) rc = watch(all, fds[i], EPOLLIN);
    return rc;
}

int doze_open(struct bell *b)
{
    atomic_store_explicit(&armed, false, memory_order_relaxed);
    if (!bell_has_socket(b) || !fill_sets(b)) return 0;
    int rc = err_sys("the helper thread cannot wait for sockets (epoll)");
    doze_close();
    return rc;
}

void doze_close(void)
{
    if (all >= 0) close(all);
    if (called >= 0) close(called);
    all = called = -1;
}

static void arm(bool on)
{
    struct epoll_event e = {.events = EPOLLONESHOT | (on ? EPOLLIN : 0)};
    atomic_store_explicit(&armed, on, memory_order_relaxed);
    epoll_ctl(called, EPOLL_CTL_MOD, all, &e);
}

static bool is_armed(void) { return atomic_load_explicit(&armed, memory_order_relaxed); }

bool doze_is_called(const struct bell *b)
{
    return atomic_load_explicit(&b->asleep, memory_order_relaxed) && (!bell_has_socket(b) || is_armed());
}

void doze_call(struct bell *b)
{
    if (bell_has_socket(b) && !is_armed()) arm(true);
    bell_announce_helper(b);
}

void doze_recall(struct bell *b)
{
    atomic_store_explicit(&b->asleep, BELL_AWAKE, memory_order_relaxed);
    if (bell_has_socket(b) && is_armed()) arm(false);
}

void doze_rouse(struct bell *b)
{
    if (bell_has_socket(b)) arm(true);
    bell_rouse(b);
}

/* acquire: pairs with the release in bell_ring, as the return from epoll_wait does through the kernel */
static void wait_called(struct bell *b, uint32_t ticket, uint64_t most_ns)
{
    struct epoll_event e;
    if (atomic_load_explicit(&b->ring, memory_order_acquire) != ticket) return;
    if (epoll_wait(called, &e, 1, (int)(most_ns / 1000000u)) > 0) atomic_store_explicit(&armed, false, memory_order_relaxed);
}

void doze(struct bell *b, uint32_t ticket, uint64_t most_ns)
{
    if (bell_has_socket(b))
        wait_called(b, ticket, most_ns);
    else bell_wait_helper(b, ticket, most_ns);
}
