/* watcher.c - see watcher.h. The thread and those that add processes are the writers of the list (`lock`). */
#include "proc/watcher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define STACK_BYTES ((size_t)256 << 10)
#define STOP UINT64_MAX /* what epoll says of the descriptor that ends the thread */

static struct {
    _Atomic uint32_t count;
    _Atomic uint32_t *rank; /* [room] */
    uint32_t room;
    pthread_mutex_t lock;
    pthread_t thread;
    bool runs;
    int epoll, stop;
    void (*wake)(void);
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lock held. */
static void note(uint32_t rank)
{
    uint32_t n = atomic_load_explicit(&watch.count, memory_order_relaxed);
    if (n == watch.room) return;
    atomic_store_explicit(&watch.rank[n], rank, memory_order_relaxed);
    atomic_store_explicit(&watch.count, n + 1, memory_order_release); /* pairs with pt_hear_deaths */
}

/* A child of the program's may have the descriptor too: so it is taken out, and not only closed. */
static void tell(uint64_t what)
{
    int fd = (int)(what >> 32);
    epoll_ctl(watch.epoll, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
    pthread_mutex_lock(&watch.lock);
    note((uint32_t)what);
    pthread_mutex_unlock(&watch.lock);
    watch.wake();
}

static void *run(void *none)
{
    struct epoll_event e;
    (void)none;
    for (;;) {
        int n = epoll_wait(watch.epoll, &e, 1, -1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 1 || e.data.u64 == STOP) return NULL;
        tell(e.data.u64);
    }
}

static bool start_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = !pthread_create(&watch.thread, &attr, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (runs) pthread_setname_np(watch.thread, "tern-deaths");
    return runs;
}

/* Lock held. Where the system refuses, deaths are not heard of in this way. */
static bool start(void)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = STOP};
    if (watch.runs) return true;
    watch.epoll = epoll_create1(EPOLL_CLOEXEC);
    watch.stop = eventfd(0, EFD_CLOEXEC);
    if (watch.epoll >= 0 && watch.stop >= 0 && !epoll_ctl(watch.epoll, EPOLL_CTL_ADD, watch.stop, &e))
        watch.runs = start_thread();
    if (watch.runs) return true;
    if (watch.epoll >= 0) close(watch.epoll);
    if (watch.stop >= 0) close(watch.stop);
    return false;
}

struct proc_deaths watcher_open(uint32_t ranks)
{
    if (!watch.rank) watch.rank = calloc(ranks, sizeof *watch.rank);
    watch.room = watch.rank ? ranks : 0;
    return (struct proc_deaths){&watch.count, watch.rank};
}

void watcher_wakes(void (*wake)(void)) { watch.wake = wake; }

static void add(uint32_t rank, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ESRCH) note(rank);
    if (fd < 0) return;
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)fd << 32 | rank};
    if (epoll_ctl(watch.epoll, EPOLL_CTL_ADD, fd, &e)) close(fd);
}

void watcher_add(uint32_t rank, pid_t pid)
{
    pthread_mutex_lock(&watch.lock);
    if (watch.room && watch.wake && pid > 0 && start()) add(rank, pid);
    pthread_mutex_unlock(&watch.lock);
}

void watcher_close(void)
{
    uint64_t one = 1;
    if (watch.runs) {
        (void)!write(watch.stop, &one, sizeof one);
        pthread_join(watch.thread, NULL);
        close(watch.stop);
        close(watch.epoll); /* descriptors of processes that live are left to the end of this one */
    }
    watch.runs = false;
    watch.wake = NULL;
    watch.room = 0;
    free(watch.rank);
    watch.rank = NULL;
    atomic_store_explicit(&watch.count, 0, memory_order_relaxed);
}
