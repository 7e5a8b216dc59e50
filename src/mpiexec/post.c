/* post.c - a list behind a lock, and an eventfd that says that there is something on it. */
#include "mpiexec/post.h"
#include "base/compiler.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    struct post *first, **last;
    int fd;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &self.first, .fd = -1};

static void on_post(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    (void)what, (void)arg;
    (void)!read(fd, &count, sizeof count); /* before the list is taken: what comes later rings again */
    pthread_mutex_lock(&self.lock);
    struct post *p = self.first;
    self.first = NULL;
    self.last = &self.first;
    pthread_mutex_unlock(&self.lock);
    for (struct post *next; p; p = next) {
        next = p->next;
        p->run(p);
    }
}

bool post_open(struct event_base *base)
{
    if (self.fd >= 0) return true;
    self.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct event *e = self.fd < 0 ? NULL : event_new(base, self.fd, EV_READ | EV_PERSIST, on_post, NULL);
    return e && !event_add(e, NULL);
}

void post_run(struct post *p, void (*run)(struct post *))
{
    uint64_t one = 1;
    p->next = NULL;
    p->run = run;
    pthread_mutex_lock(&self.lock);
    *self.last = p;
    self.last = &p->next;
    pthread_mutex_unlock(&self.lock);
    (void)!write(self.fd, &one, sizeof one); /* the counter cannot overflow */
}
