/* sleep.c - futex, futex_waitv and membarrier behind the doorbells of sleep.h. */
#include "base/sleep.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
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

uint32_t bell_announce(struct bell *b)
{
    uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_relaxed);
    atomic_store_explicit(&b->asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* (A), pairs with (B) in bell_check */
    if (!atomic_load_explicit(&b->fenced, memory_order_relaxed))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return ticket;
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

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
struct waitv { /* the kernel's struct futex_waitv, which older headers lack */
    uint64_t val, addr;
    uint32_t flags, reserved;
};

/* Sleeps on both words; false when the kernel cannot. */
static bool wait_two(struct bell *b, uint32_t ticket, _Atomic uint32_t *word, uint32_t value)
{
    struct waitv v[2] = {{ticket, (uintptr_t)&b->ring, 2, 0}, {value, (uintptr_t)word, 2, 0}}; /* 2: 32-bit word */
    long rc = syscall(SYS_futex_waitv, v, 2, 0, NULL, CLOCK_MONOTONIC);
    return !(rc < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL));
}

/* Without futex_waitv a change of `word` is noticed late: sleeps are cut to this. */
#define BLIND_SLEEP_NS 200000u

void bell_wait(struct bell *b, uint32_t ticket, _Atomic uint32_t *word, uint32_t value)
{
    if (!word) futex_sleep(&b->ring, ticket, 0);
    else if (no_waitv || !wait_two(b, ticket, word, value)) {
        no_waitv = true;
        if (atomic_load_explicit(word, memory_order_acquire) == value) futex_sleep(&b->ring, ticket, BLIND_SLEEP_NS);
    }
}

void bell_ring(struct bell *b)
{
    /* Only the first of several wakers makes the system call; acq_rel orders it against the owner's next sleep. */
    if (!atomic_exchange_explicit(&b->asleep, 0, memory_order_acq_rel)) return;
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release);
    futex_wake_all(&b->ring);
}

void gate_open(struct gate *g)
{
    /* release: who is woken sees what was published; the word has changed for who is just going to sleep */
    atomic_fetch_add_explicit(&g->ring, 1, memory_order_release);
    futex_wake_all(&g->ring);
}
