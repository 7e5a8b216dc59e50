/* sleep.c - futex, futex_waitv, poll and membarrier behind the doorbells of sleep.h. */
#include "base/sleep.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int membarrier_state; /* 0 unknown, 1 registered, -1 not to be had */
static bool no_waitv;        /* the kernel has no futex_waitv (before 5.16, or filtered) */

bool sleep_membarrier_open(void)
{
    if (!membarrier_state)
        membarrier_state = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 ? 1 : -1;
    return membarrier_state > 0;
}

void bell_open(struct bell *b, bool fenced)
{
    atomic_store_explicit(&b->fenced, fenced || !sleep_membarrier_open(), memory_order_relaxed);
}

int bell_open_pipe(struct bell *b)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return err_sys("cannot make the pipe that wakes a sleeping process");
    b->out = ends[0];
    b->in = ends[1];
    b->pid = (uint32_t)getpid();
    return 0;
}

void bell_close(struct bell *b)
{
    if (!bell_has_pipe(b)) return;
    close(b->in);
    close(b->out);
    b->in = b->out = 0;
}

/* With a fence of this side. */
static void announce(struct bell *b, enum bell_sleep how)
{
    atomic_store_explicit(&b->asleep, bell_has_pipe(b) ? BELL_PIPE : how, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* (A), pairs with (B) in bell_check */
}

/* The wakers' side of (A), where they do nothing for it themselves. */
static void barrier_for_all(const struct bell *b)
{
    if (!atomic_load_explicit(&b->fenced, memory_order_relaxed))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

uint32_t bell_announce(struct bell *b)
{
    uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_relaxed);
    announce(b, BELL_FUTEX);
    barrier_for_all(b);
    return ticket;
}

void bell_announce_helper(struct bell *b) { announce(b, BELL_HELPER); }

void bell_set_helped(struct bell *b, bool helped)
{
    atomic_store_explicit(&b->helped, helped, memory_order_relaxed);
    barrier_for_all(b); /* who publishes from now on knows */
}

static struct timespec span(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

void futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec t = span(timeout_ns);
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns ? &t : NULL, NULL, 0);
}

void futex_wake_all(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

/* The set of the futex that the helper waits in; all others wait in both. */
#define HELPER_SET 2u

static void wake_set(_Atomic uint32_t *word, uint32_t set)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, set);
}

/* Some forms of the call take the end, not the length. */
static struct timespec end_of(uint64_t most_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + most_ns;
    return (struct timespec){t.tv_sec + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

void bell_wait_helper(struct bell *b, uint32_t ticket, uint64_t most_ns)
{
    struct timespec t = end_of(most_ns);
    syscall(SYS_futex, &b->ring, FUTEX_WAIT_BITSET, ticket, &t, NULL, HELPER_SET);
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
struct waitv { /* the kernel's struct futex_waitv, which older headers lack */
    uint64_t val, addr;
    uint32_t flags, reserved;
};

/* Sleeps on both words; false when the kernel cannot. */
static bool wait_two(struct bell *b, uint32_t ticket, _Atomic uint32_t *word, uint32_t value, uint64_t most_ns)
{
    struct timespec end = end_of(most_ns);
    struct waitv v[2] = {{ticket, (uintptr_t)&b->ring, 2, 0}, {value, (uintptr_t)word, 2, 0}}; /* 2: 32-bit word */
    long rc = syscall(SYS_futex_waitv, v, 2, 0, &end, CLOCK_MONOTONIC);
    return !(rc < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL));
}

/* Without futex_waitv a change of `word` is noticed late: sleeps are cut to this. */
#define BLIND_SLEEP_NS 200000u

void bell_wait(struct bell *b, uint32_t ticket, _Atomic uint32_t *word, uint32_t value, uint64_t most_ns)
{
    if (!word)
        futex_sleep(&b->ring, ticket, most_ns);
    else if (no_waitv || !wait_two(b, ticket, word, value, most_ns)) {
        no_waitv = true;
        if (atomic_load_explicit(word, memory_order_acquire) == value) futex_sleep(&b->ring, ticket, BLIND_SLEEP_NS);
    }
}

/* How long a sleeper relies on being woken through its pipe, should its waker be out of descriptors. */
#define POLL_MS 1000

void bell_poll(struct bell *b, uint32_t ticket, const int *fds, int n, uint64_t most_ns)
{
    int ms = most_ns < POLL_MS * UINT64_C(1000000) ? (int)(most_ns / 1000000) : POLL_MS;
    struct pollfd p[1 + BELL_FDS_MAX] = {{.fd = b->out, .events = POLLIN}};
    for (int i = 0; i < n; i++) p[1 + i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    /* acquire: pairs with the release in bell_ring, as the return from poll does through the kernel */
    if (atomic_load_explicit(&b->ring, memory_order_acquire) == ticket) poll(p, 1 + (nfds_t)n, ms);
}

void bell_empty_pipe(struct bell *b)
{
    char bytes[64];
    while (read(b->out, bytes, sizeof bytes) == (ssize_t)sizeof bytes) continue;
}

/* Writes into the owner's pipe. It is opened for each ring: a sleeper's switch costs more than that. */
static void ring_pipe(const struct bell *b)
{
    char path[48];
    bool own = b->pid == (uint32_t)getpid();
    snprintf(path, sizeof path, "/proc/%u/fd/%d", b->pid, b->in);
    /* For reading too: if the owner ends just now, the write is to ourselves and no SIGPIPE. */
    int fd = own ? b->in : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return; /* it has gone, or wakes up by itself (POLL_MS) */
    (void)!write(fd, "", 1); /* a full pipe wakes as well */
    if (!own) close(fd);
}

void bell_ring(struct bell *b)
{
    /* Only the first of several wakers makes the system call; acq_rel orders it against the owner's next sleep. */
    uint32_t how = atomic_exchange_explicit(&b->asleep, BELL_AWAKE, memory_order_acq_rel);
    if (how == BELL_AWAKE) return;
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release);
    if (how == BELL_PIPE) ring_pipe(b);
    else wake_set(&b->ring, how == BELL_HELPER ? HELPER_SET : ~HELPER_SET);
}

void bell_rouse(struct bell *b)
{
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release);
    if (bell_has_pipe(b)) ring_pipe(b);
    futex_wake_all(&b->ring);
}

bool gate_open(struct gate *g)
{
    /* release: who is woken sees what was published; the word has changed for who is just going to sleep */
    atomic_fetch_add_explicit(&g->ring, 1, memory_order_release);
    uint32_t sleepers = atomic_load_explicit(&g->sleepers, memory_order_relaxed);
    if (sleepers % GATE_POLLER) futex_wake_all(&g->ring);
    return sleepers >= GATE_POLLER;
}
