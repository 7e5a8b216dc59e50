/* quiet.c - see quiet.h. */
#include "base/quiet.h"
#include "base/compiler.h"
#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RUN_NS 1000000
#define NAP_NS 100000

/* A thread, and how long it had run at the beginning. */
struct task {
    int tid;
    int64_t ran;
};

/* Threads are looked at so many at a time: no memory is needed after quiet_open. */
enum { TASKS = 128 };

struct quiet {
    DIR *threads;
    struct task tasks[TASKS];
    int n;
};

int quiet_open(struct quiet **q_p)
{
    struct quiet *q = calloc(1, sizeof *q);
    if (!q) return err_set(TERN_ERR_NOMEM, "no memory to look at the threads of this process");
    q->threads = opendir("/proc/self/task");
    if (!q->threads) {
        int rc = err_sys("the threads of this process are not listed (/proc/self/task)");
        free(q);
        return rc;
    }
    *q_p = q;
    return 0;
}

void quiet_close(struct quiet *q)
{
    closedir(q->threads);
    free(q);
}

/* Nanoseconds that a thread has run; -1 if it has ended. */
static int64_t ran(int tid)
{
    struct timespec t;
    clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6); /* the kernel's number of a thread's own clock */
    return clock_gettime(clock, &t) ? -1 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Asleep in the kernel, or ended: neither on a core, nor about to be, nor waiting for a page or stopped on its way. */
static bool is_out(int tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == ESRCH; /* of any other reason, as too many files, its clock tells */
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *state = strrchr(text, ')'); /* "tid (name) S ..." */
    return !state || state[1] != ' ' || !strchr("RDTt", state[2]);
}

static bool is_over(const struct task *t)
{
    int64_t now = ran(t->tid);
    return now < 0 || now - t->ran > RUN_NS || is_out(t->tid);
}

/* The next threads of the list, but for this one. */
static int list(struct quiet *q)
{
    struct dirent *e;
    int own = (int)syscall(SYS_gettid);
    q->n = 0;
    while (q->n < TASKS && (e = readdir(q->threads))) {
        int tid = atoi(e->d_name);
        if (tid > 0 && tid != own) q->tasks[q->n++] = (struct task){tid, ran(tid)};
    }
    return q->n;
}

static void await_listed(struct quiet *q)
{
    while (q->n) {
        if (is_over(&q->tasks[q->n - 1])) q->n--;
        else nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* Twice, as a thread that ends while the list is read may keep another one out of it. */
void quiet_await(struct quiet *q)
{
    for (int i = 0; i < 2; i++) {
        rewinddir(q->threads);
        while (list(q)) await_listed(q);
    }
}
