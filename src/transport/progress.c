/*
 * progress.c - the table of progress sources, and their timer; the list of retries.
 */
#include "transport/progress.h"
#include "base/clock.h"
#include "base/err.h"
#include "transport/wires.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define NEVER UINT64_MAX

static struct progress_source *sources[PROGRESS_SOURCES]; /* NULL: free */
static int source_count;

/* The descriptor of each of them, and behind them the timer's; relaxed: wires_wake_all orders them. */
static _Atomic int fds[PROGRESS_FDS] = {-1, -1, -1, -1, -1};
static_assert(PROGRESS_FDS == 5, "no descriptor is -1");
#define TIMER PROGRESS_SOURCES

static uint64_t armed = NEVER; /* the time to which the timer is set; it is readable if that is over */

static int get_fd(int i) { return atomic_load_explicit(&fds[i], memory_order_relaxed); }
static void set_fd(int i, int fd) { atomic_store_explicit(&fds[i], fd, memory_order_relaxed); }

/* ---- the timer ---- */

/* The timer is not readable until then. All zeros would stop it. */
static void set_timer(uint64_t when)
{
    struct itimerspec t = {.it_value = {0, 0}};
    if (when != NEVER) t.it_value = (struct timespec){(time_t)(when / 1000000000u), (long)(when % 1000000000u) + !when};
    timerfd_settime(get_fd(TIMER), TFD_TIMER_ABSTIME, &t, NULL);
    armed = when;
}

static uint64_t first_due(void)
{
    uint64_t first = NEVER;
    for (int i = 0; i < PROGRESS_SOURCES; i++) {
        uint64_t due = sources[i] ? sources[i]->due(sources[i]) : NEVER;
        if (due < first) first = due;
    }
    return first;
}

/* ---- open and close ---- */

static int slot_of(const struct progress_source *s)
{
    int i = 0;
    while (i < PROGRESS_SOURCES && sources[i] != s) i++;
    return i;
}

/* The first source brings the timer, and sleeps by descriptors if there were none to sleep on. */
static int start(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0) return err_sys("cannot make the timer of progress");
    int rc = wires_poll_start();
    if (rc) {
        close(timer);
        return rc;
    }
    set_fd(TIMER, timer);
    armed = NEVER;
    return 0;
}

int progress_open(struct progress_source *s)
{
    int i = slot_of(NULL);
    if (i == PROGRESS_SOURCES) return err_set(TERN_ERR_INTERN, "more than %d progress sources", PROGRESS_SOURCES);
    int rc = source_count ? 0 : start();
    if (rc) return rc;
    sources[i] = s;
    source_count++;
    set_fd(i, s->fd);
    wires_wake_all();
    return 0;
}

void progress_close(struct progress_source *s)
{
    int i = slot_of(s), timer = get_fd(TIMER);
    bool last = source_count == 1;
    if (i == PROGRESS_SOURCES) return;
    sources[i] = NULL;
    source_count--;
    set_fd(i, -1);
    if (last) set_fd(TIMER, -1);
    wires_wake_all();
    if (!last) return;
    wires_poll_stop();
    close(timer);
}

/* ---- progress ---- */

int progress_look(void)
{
    if (likely(!source_count)) return 0;
    uint64_t now = clock_ns();
    int n = 0;
    for (int i = 0; i < PROGRESS_SOURCES; i++)
        if (sources[i]) n += sources[i]->progress(sources[i], now);
    if (!source_count) return n; /* one has closed itself, and was the last */
    uint64_t due = first_due();
    if (due < armed || armed <= now) set_timer(due);
    if (n) wires_wake_others();
    return n;
}

bool progress_idle(void)
{
    uint64_t due = source_count ? first_due() : NEVER;
    if (due != NEVER && due <= clock_ns()) return false;
    if (source_count && due != armed) set_timer(due);
    return true;
}

void progress_hurry(const struct progress_source *s)
{
    if (slot_of(s) < PROGRESS_SOURCES) set_timer(0);
}

int progress_fds(int *to)
{
    int n = 0;
    for (int i = 0; i < PROGRESS_FDS; i++)
        if ((to[n] = get_fd(i)) >= 0) n++;
    return n;
}

/* ---- retries ---- */

struct link progress_waiting = LIST_INIT(progress_waiting);

void progress_await(struct progress_retry *r)
{
    if (list_empty(&r->link)) list_push(&progress_waiting, &r->link);
}

void progress_await_no_more(struct progress_retry *r) { list_remove(&r->link); }

/* Those that wait again have their next try in the next turn. */
int progress_retries(void)
{
    struct link now = LIST_INIT(now);
    int n = 0;
    for (struct link *l; (l = list_pop(&progress_waiting));) list_push(&now, l);
    for (struct link *l; (l = list_pop(&now));) {
        struct progress_retry *r = container_of(l, struct progress_retry, link);
        n += r->retry(r);
    }
    return n;
}
