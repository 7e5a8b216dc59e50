/* watcher.c - see watcher.h. */
#include "proc/watcher.h"
#include "base/err.h"
#include "base/signals.h"
#include "proc/proc.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define LOOK_MS 50 /* at processes without a descriptor */
#define KICK UINT32_MAX /* no index: the thread's eventfd */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched {
    uint32_t index;
    pid_t pid;
    int fd; /* its descriptor, in `set`; -1: none */
    enum { LIVES, ENDED, TOLD } state;
} * all;
static uint32_t count, room;
static uint32_t to_look; /* that live and have no descriptor */

static int set = -1, kick = -1;
static pthread_t thread;
static bool running, stop; /* there is a thread; it is to end */
static void (*on_news)(void);

static void ring(bool news)
{
    if (news && on_news) on_news();
}

/* ---- the list, with the lock ---- */

static struct watched *find(uint32_t index)
{
    uint32_t i = 0;
    while (i < count && all[i].index != index) i++;
    return i < count ? &all[i] : NULL;
}

static struct watched *add(uint32_t index, pid_t pid)
{
    if (count == room) {
        struct watched *more = realloc(all, (room + 64) * sizeof *all);
        if (!more) return NULL;
        all = more;
        room += 64;
    }
    all[count] = (struct watched){.index = index, .pid = pid, .fd = -1, .state = LIVES};
    return &all[count++];
}

static void drop_fd(struct watched *w)
{
    if (w->fd < 0) return;
    epoll_ctl(set, EPOLL_CTL_DEL, w->fd, NULL);
    close(w->fd);
    w->fd = -1;
}

/* True: that is news. */
static bool note(struct watched *w)
{
    if (w->state != LIVES) return false;
    to_look -= w->pid && w->fd < 0;
    drop_fd(w);
    w->state = ENDED;
    return true;
}

/* ---- looking ---- */

static bool look_at_rest(void)
{
    bool news = false;
    for (uint32_t i = 0; i < count && to_look; i++)
        if (all[i].state == LIVES && all[i].fd < 0 && proc_has_ended(all[i].pid)) news |= note(&all[i]);
    return news;
}

/* The thread need not be kicked twice. */
static bool take_kick(void)
{
    eventfd_t kicks;
    return !eventfd_read(kick, &kicks);
}

static bool take(const struct epoll_event *e, int n)
{
    bool news = false;
    for (int i = 0; i < n; i++) {
        struct watched *w = e[i].data.u32 == KICK && take_kick() ? NULL : find(e[i].data.u32);
        if (w && proc_has_ended(w->pid)) news |= note(w); /* it may have been forgotten meanwhile, and the index be another's */
    }
    return news | look_at_rest();
}

static void *run(void *arg)
{
    struct epoll_event e[16];
    (void)arg;
    pthread_mutex_lock(&lock);
    while (!stop) {
        int ms = to_look ? LOOK_MS : -1;
        pthread_mutex_unlock(&lock);
        int n = epoll_wait(set, e, ARRAY_LEN(e), ms);
        pthread_mutex_lock(&lock);
        ring(take(e, n));
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void watcher_look(void)
{
    struct epoll_event e[16];
    pthread_mutex_lock(&lock);
    if (count && !running) take(e, set < 0 ? 0 : epoll_wait(set, e, ARRAY_LEN(e), 0));
    pthread_mutex_unlock(&lock);
}

/* ---- the thread's life, with the lock ---- */

static int open_set(void)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = KICK};
    if (set >= 0) return 0;
    set = epoll_create1(EPOLL_CLOEXEC);
    kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set >= 0 && kick >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, kick, &e)) return 0;
    int rc = err_sys("the ends of other processes cannot be watched for (epoll)");
    if (set >= 0) close(set);
    if (kick >= 0) close(kick);
    set = kick = -1;
    return rc;
}

/* No signal of the program's is handled in the thread. */
static int start(void)
{
    sigset_t before;
    int rc = open_set();
    if (rc || running) return rc;
    signals_block(&before);
    stop = false;
    rc = pthread_create(&thread, NULL, run, NULL);
    signals_restore(&before);
    if (rc) return err_set(TERN_ERR_SYSTEM, "the thread that watches for the ends of other processes cannot be made: %s", strerror(rc));
    pthread_setname_np(thread, "tern-watcher");
    running = true;
    return 0;
}

static void kick_thread(void)
{
    if (kick >= 0) eventfd_write(kick, 1);
}

/* True: it has ended. */
static bool open_fd(struct watched *w)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = w->index};
    w->fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    if (w->fd < 0 && errno == ESRCH) return true;
    if (w->fd >= 0 && set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, w->fd, &e)) return false;
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    return proc_has_ended(w->pid);
}

/* ---- for others ---- */

void watcher_ring_by(void (*rings)(void))
{
    pthread_mutex_lock(&lock);
    on_news = rings;
    pthread_mutex_unlock(&lock);
}

static int watch(uint32_t index, pid_t pid, bool *news)
{
    if (find(index)) return 0;
    struct watched *w = add(index, pid);
    if (!w) return err_set(TERN_ERR_NOMEM, "no memory to watch for the end of a process");
    int rc = start();
    bool ended = open_fd(w);
    to_look += w->fd < 0;
    if (ended) *news = note(w);
    else if (w->fd < 0) kick_thread();
    return rc;
}

int watcher_watch(uint32_t index, pid_t pid)
{
    bool news = false;
    pthread_mutex_lock(&lock);
    int rc = watch(index, pid, &news);
    ring(news);
    pthread_mutex_unlock(&lock);
    return rc;
}

void watcher_forget(uint32_t index)
{
    pthread_mutex_lock(&lock);
    struct watched *w = find(index);
    if (w) {
        note(w);
        *w = all[--count];
    }
    pthread_mutex_unlock(&lock);
}

/* Without memory the process is found by what else looks at it. */
void watcher_note(uint32_t index)
{
    pthread_mutex_lock(&lock);
    struct watched *w = find(index);
    if (!w) w = add(index, 0);
    ring(w && note(w));
    pthread_mutex_unlock(&lock);
}

bool watcher_next(uint32_t *index)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < count && all[i].state != ENDED) i++;
    bool found = i < count;
    if (found) {
        *index = all[i].index;
        all[i].state = TOLD;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void end_thread(void)
{
    pthread_mutex_lock(&lock);
    bool there = running;
    stop = true;
    running = false;
    kick_thread();
    pthread_mutex_unlock(&lock);
    if (there) pthread_join(thread, NULL);
}

void watcher_close(void)
{
    end_thread();
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) drop_fd(&all[i]);
    free(all);
    all = NULL;
    count = room = to_look = 0;
    if (set >= 0) close(set);
    if (kick >= 0) close(kick);
    set = kick = -1;
    pthread_mutex_unlock(&lock);
}
