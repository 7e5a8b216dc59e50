/* sleep.c - futex, futex_waitv, poll and membarrier behind the doorbells of sleep.h. */
#include "base/sleep.h"
#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int membarrier_state; /* 0 unknown, 1 registered, -1 not to be had */

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

static socklen_t socket_address(struct sockaddr_un *a, uint64_t name)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX}; /* a name that begins with a zero byte is no file */
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "tern-bell-%016llx", (unsigned long long)name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int bell_open_socket(struct bell *b)
{
    struct sockaddr_un a;
    uint64_t name;
    if (getrandom(&name, sizeof name, 0) != sizeof name || !name)
        return err_sys("no random number for a socket's name");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, socket_address(&a, name))) {
        int rc = err_sys("cannot make the socket that wakes a sleeping process");
        if (fd >= 0) close(fd);
        return rc;
    }
    b->socket = fd;
    atomic_store_explicit(&b->name, name, memory_order_relaxed); /* ordered by announce */
    return 0;
}

void bell_close(struct bell *b)
{
    if (!bell_has_socket(b)) return;
    atomic_store_explicit(&b->name, 0, memory_order_relaxed);
    close(b->socket);
}

/* With a fence of this side. */
static void announce(struct bell *b, enum bell_sleep how)
{
    /* release: whoever rings finds the socket's name; pairs with the acquire in bell_ring */
    atomic_store_explicit(&b->asleep, how, memory_order_release);
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
    announce(b, bell_has_socket(b) ? BELL_SOCKET : BELL_FUTEX);
    barrier_for_all(b);
    return ticket;
}

void bell_announce_helper(struct bell *b) { announce(b, bell_has_socket(b) ? BELL_HELPER_SOCKET : BELL_HELPER); }

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

void futex_wake_one(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

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

/* Can a thread sleep on several words? Not before Linux 5.16, nor where the call is filtered. */
static bool have_waitv(void)
{
    static _Atomic int known; /* relaxed: any thread finds the same */
    int have = atomic_load_explicit(&known, memory_order_relaxed);
    if (!have) {
        have = syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 && errno == EINVAL ? 1 : -1;
        atomic_store_explicit(&known, have, memory_order_relaxed);
    }
    return have > 0;
}

static void wait_several(struct bell *b, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns)
{
    enum { WORD_32 = 2 };
    struct waitv v[1 + SLEEP_WORDS_MAX] = {{ticket, (uintptr_t)&b->ring, WORD_32, 0}};
    struct timespec end = end_of(most_ns);
    for (uint32_t i = 0; i < words->n; i++)
        v[1 + i] = (struct waitv){words->at[i].value, (uintptr_t)words->at[i].word, WORD_32, 0};
    syscall(SYS_futex_waitv, v, 1 + words->n, 0, &end, CLOCK_MONOTONIC);
}

void bell_wait(struct bell *b, uint32_t ticket, const struct sleep_words *words, uint64_t most_ns)
{
    if (words && words->n)
        wait_several(b, ticket, words, most_ns);
    else
        futex_sleep(&b->ring, ticket, most_ns);
}

/* How long a sleeper relies on being woken through its socket, should its waker be out of descriptors. */
#define POLL_MS 1000

void bell_poll(struct bell *b, uint32_t ticket, const int *fds, int n, uint64_t most_ns)
{
    int ms = most_ns < POLL_MS * UINT64_C(1000000) ? (int)(most_ns / 1000000) : POLL_MS;
    struct pollfd p[1 + BELL_FDS_MAX] = {{.fd = b->socket, .events = POLLIN}};
    for (int i = 0; i < n; i++) p[1 + i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    /* acquire: pairs with the release in bell_ring, as the return from poll does through the kernel */
    if (atomic_load_explicit(&b->ring, memory_order_acquire) == ticket) poll(p, 1 + (nfds_t)n, ms);
}

#define SOCKET_TAKE 64 /* bytes taken at once: a stranger who sends on and on does not keep us here */

void bell_empty_socket(struct bell *b)
{
    char byte;
    for (int i = 0; i < SOCKET_TAKE && recv(b->socket, &byte, 1, MSG_DONTWAIT) >= 0; i++) continue;
}

/* Sends to the owner's socket, by a socket made for that: a sleeper's switch costs more. */
void bell_ring_name(uint64_t name)
{
    struct sockaddr_un a;
    if (!name) return; /* the owner has woken its threads, to sleep without it */
    socklen_t n = socket_address(&a, name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return; /* it wakes up by itself (POLL_MS) */
    /* A full socket wakes as well; the owner may have gone. */
    (void)!sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, n);
    close(fd);
}

void bell_ring(struct bell *b)
{
    /* Only the first of several wakers makes the system call; acq_rel orders it against the owner's next sleep. */
    uint32_t how = atomic_exchange_explicit(&b->asleep, BELL_AWAKE, memory_order_acq_rel);
    if (how == BELL_AWAKE) return;
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release);
    if (how == BELL_SOCKET || how == BELL_HELPER_SOCKET)
        bell_ring_name(atomic_load_explicit(&b->name, memory_order_relaxed));
    else wake_set(&b->ring, how == BELL_HELPER ? HELPER_SET : ~HELPER_SET);
}

/* A thread that announces its sleep behind this look finds the work: both have a full barrier in between. */
void bell_ring_waiter(struct bell *b)
{
    if (!bell_sleep_is_helper(atomic_load_explicit(&b->asleep, memory_order_relaxed))) bell_ring(b);
}

void bell_wake_all(struct bell *b)
{
    atomic_fetch_add_explicit(&b->ring, 1, memory_order_release);
    if (bell_has_socket(b)) bell_ring_name(atomic_load_explicit(&b->name, memory_order_relaxed));
    futex_wake_all(&b->ring);
}

uint32_t gate_enter(struct gate *g, const struct bell *b, uint32_t counted, struct sleep_words *words)
{
    bool by_bell = counted == GATE_POLLER || bell_has_socket(b) || !have_waitv() || words->n == SLEEP_WORDS_MAX;
    uint32_t weight = by_bell ? GATE_POLLER : 1;
    if (!by_bell) {
        words->at[words->n].word = &g->ring;
        words->at[words->n++].value = atomic_load_explicit(&g->ring, memory_order_relaxed);
    }
    /* relaxed: ordered by bell_announce */
    if (counted != weight) atomic_fetch_add_explicit(&g->sleepers, weight - counted, memory_order_relaxed);
    return weight;
}

void gate_leave(struct gate *g, uint32_t counted)
{
    atomic_fetch_sub_explicit(&g->sleepers, counted, memory_order_relaxed);
}

bool gate_open(struct gate *g)
{
    /* release: who is woken sees what was published; the word has changed for who is just going to sleep */
    atomic_fetch_add_explicit(&g->ring, 1, memory_order_release);
    uint32_t sleepers = atomic_load_explicit(&g->sleepers, memory_order_relaxed);
    if (sleepers % GATE_POLLER) futex_wake_all(&g->ring);
    return sleepers >= GATE_POLLER;
}
