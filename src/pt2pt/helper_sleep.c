/* helper_sleep.c - see helper_sleep.h. */
#include "pt2pt/helper_sleep.h"
#include "base/err.h"
#include "transport/wires.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `all` is another one for each helper. The rest stays until the end: a thread that found a helper may call it when that has been
 * stopped. */
static int all = -1, armed_set = -1;
static _Atomic int calls = -1;

/* `armed_set` will wake the helper. Set before it is so; the helper clears it after it has woken. So where it is found
 * clear, the helper has woken since, or is just waking. */
static _Atomic bool armed;

static int watch(int set, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    return fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

static int make_calls(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    armed_set = epoll_create1(EPOLL_CLOEXEC);
    atomic_store_explicit(&calls, fd, memory_order_relaxed);
    return watch(armed_set, fd, EPOLLIN | EPOLLET);
}

static int fill_sets(const struct bell *b)
{
    int fds[BELL_FDS_MAX], n = wires_wait_fds(fds), rc = armed_set < 0 && make_calls();
    if (rc) return rc;
    all = epoll_create1(EPOLL_CLOEXEC);
    rc = watch(all, b->socket, EPOLLIN) || watch(armed_set, all, EPOLLONESHOT);
    for (int i = 0; i < n && !rc; i++) rc = watch(all, fds[i], EPOLLIN);
    return rc;
}

int helper_sleep_open(struct bell *b)
{
    bool first = armed_set < 0; /* no thread has called yet */
    helper_sleep_close();
    atomic_store_explicit(&armed, false, memory_order_relaxed);
    if (!bell_has_socket(b) || !fill_sets(b)) return 0;
    int rc = err_sys("the helper thread cannot wait for sockets (epoll)");
    if (first) helper_sleep_end();
    else helper_sleep_close();
    return rc;
}

static void drop(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void helper_sleep_close(void) { drop(&all); }

void helper_sleep_end(void)
{
    int fd = atomic_exchange_explicit(&calls, -1, memory_order_relaxed);
    drop(&all);
    drop(&armed_set);
    drop(&fd);
}

static void set_armed(bool on)
{
    struct epoll_event e = {.events = EPOLLONESHOT | (on ? EPOLLIN : 0), .data.fd = all};
    atomic_store_explicit(&armed, on, memory_order_relaxed);
    epoll_ctl(armed_set, EPOLL_CTL_MOD, all, &e);
}

static bool is_armed(void) { return atomic_load_explicit(&armed, memory_order_relaxed); }

bool helper_is_armed(const struct bell *b)
{
    return atomic_load_explicit(&b->asleep, memory_order_relaxed) && (!bell_has_socket(b) || is_armed());
}

void helper_arm(struct bell *b)
{
    if (bell_has_socket(b) && !is_armed()) set_armed(true);
    bell_announce_helper(b);
}

void helper_disarm(struct bell *b)
{
    atomic_store_explicit(&b->asleep, BELL_AWAKE, memory_order_relaxed);
    if (bell_has_socket(b) && is_armed()) set_armed(false);
}

/* Each call is an edge, so that nobody has to read it. */
void helper_wake(struct bell *b)
{
    if (!bell_has_socket(b)) {
        bell_wake_all(b);
        return;
    }
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release); /* for one that is not asleep yet: wait_armed */
    (void)!write(atomic_load_explicit(&calls, memory_order_relaxed), &(uint64_t){1}, sizeof(uint64_t));
}

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* As epoll_wait for one event. Where the system knows milliseconds only, before Linux 5.11, a nap takes one. */
static long wait_event(struct epoll_event *e, uint64_t most_ns)
{
    struct timespec most = {(time_t)(most_ns / 1000000000u), (long)(most_ns % 1000000000u)};
    long n = syscall(SYS_epoll_pwait2, armed_set, e, 1, &most, NULL, 0);
    return n < 0 && errno == ENOSYS ? epoll_wait(armed_set, e, 1, (int)((most_ns + 999999u) / 1000000u)) : n;
}

/* acquire: pairs with the release in bell_ring, as the return from epoll_wait does through the kernel */
static void wait_armed(struct bell *b, uint32_t ticket, uint64_t most_ns)
{
    struct epoll_event e;
    if (atomic_load_explicit(&b->ring, memory_order_acquire) != ticket) return;
    if (wait_event(&e, most_ns) <= 0) return;
    if (e.data.fd == all) atomic_store_explicit(&armed, false, memory_order_relaxed);
}

void helper_sleep(struct bell *b, uint32_t ticket, uint64_t most_ns)
{
    if (bell_has_socket(b))
        wait_armed(b, ticket, most_ns);
    else bell_wait_helper(b, ticket, most_ns);
}
