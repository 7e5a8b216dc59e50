/* offers.c - see offers.h. */
#include "mpiexec/offers.h"
#include "base/err.h"
#include "base/memfile.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define OFFERS_MAX 256 /* at one time */
#define OFFER_S 10     /* for a process that has asked to come for it */

struct offer {
    uint8_t ticket[ASK_TICKET];
    int fd;
    struct event *over;
    struct offer *next;
};

static struct {
    struct job *job;
    struct offer *all;
    int count;
} self;

void offers_open(struct job *j) { self.job = j; }

/* ---- files ---- */

/* The process that is the rank, as this process sees it; 0: none, or it cannot be seen. */
static int process_of(uint32_t rank)
{
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)rank, .l_len = 1};
    if (fcntl(self.job->block.fd, F_GETLK, &byte) || byte.l_type == F_UNLCK) return 0;
    return byte.l_pid > 0 ? byte.l_pid : 0;
}

/* -1 with errno. */
static int open_file(uint32_t rank, uint32_t fd, uint64_t key)
{
    const struct block *b = &self.job->block;
    if (b->memory >= 0 && memfile_key(b->head->memory_id) == key) return fcntl(b->memory, F_DUPFD_CLOEXEC, 0);
    int pid = process_of(rank);
    if (pid) return memfile_take_at(pid, (int)fd, key);
    errno = ESRCH;
    return -1;
}

/* ---- tickets ---- */

static struct offer **find(const void *ticket)
{
    struct offer **at = &self.all;
    while (*at && memcmp((*at)->ticket, ticket, ASK_TICKET) != 0) at = &(*at)->next;
    return at;
}

static int forget(struct offer **at)
{
    struct offer *o = *at;
    int fd = o->fd;
    *at = o->next;
    self.count--;
    event_free(o->over);
    free(o);
    return fd;
}

static void on_over(evutil_socket_t none, short what, void *arg)
{
    (void)none, (void)what;
    close(forget(find(((struct offer *)arg)->ticket)));
}

static struct offer *add(int fd)
{
    struct offer *o = xcalloc(1, sizeof *o);
    *o = (struct offer){.fd = fd, .next = self.all};
    o->over = event_new(self.job->base, -1, 0, on_over, o);
    if (!o->over || event_add(o->over, &(struct timeval){.tv_sec = OFFER_S}) ||
        getrandom(o->ticket, sizeof o->ticket, 0) != sizeof o->ticket) {
        if (o->over) event_free(o->over);
        free(o);
        return NULL;
    }
    self.all = o;
    self.count++;
    return o;
}

void offers_make(const struct asker *a, uint64_t socket_id, uint32_t rank, uint32_t fd, uint64_t key)
{
    uint8_t room[sizeof socket_id + ASK_TICKET];
    struct ask_out out = {.bytes = room, .room = sizeof room};
    int file = self.count < OFFERS_MAX ? open_file(rank, fd, key) : (errno = EMFILE, -1);
    struct offer *o = file >= 0 ? add(file) : NULL;
    if (!o) {
        asks_refuse(a, TERN_ERR_PEER, "the launcher cannot get at descriptor %u of rank %u: %s", fd, rank, strerror(errno));
        if (file >= 0) close(file);
        return;
    }
    ask_put64(&out, socket_id);
    ask_put(&out, o->ticket, sizeof o->ticket);
    asks_answer(a, 0, out.bytes, out.n);
}

int offers_take(const void *ticket, size_t n)
{
    struct offer **at = n == ASK_TICKET ? find(ticket) : NULL;
    return at && *at ? forget(at) : -1;
}
