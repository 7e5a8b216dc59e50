/*
 * progress_open.c - open steps: their descriptors, and the timer that they share; see progress.h.
 */
#include "base/clock.h"
#include "base/err.h"
#include "transport/progress.h"
#include "transport/wires.h"

#include <sys/timerfd.h>
#include <unistd.h>

#define NEVER UINT64_MAX

static struct step *open_steps[PROGRESS_OPEN_MAX]; /* NULL: free */
static int open_count;

/* The descriptor of each of them, and behind them the timer's; relaxed: wires_wake_all orders them. */
static _Atomic int fds[PROGRESS_FDS] = {-1, -1, -1, -1, -1};
static_assert(PROGRESS_FDS == 5, "no descriptor is -1");
#define TIMER PROGRESS_OPEN_MAX

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
    for (int i = 0; i < PROGRESS_OPEN_MAX; i++) {
        const struct step *s = open_steps[i];
        uint64_t due = s && s->ops->due ? s->ops->due(s) : NEVER;
        if (due < first) first = due;
    }
    return first;
}

/* ---- open and close ---- */

static int slot_of(const struct step *s)
{
    int i = 0;
    while (i < PROGRESS_OPEN_MAX && open_steps[i] != s) i++;
    return i;
}

/* The first step brings the timer, and sleeps by descriptors if there were none to sleep on. */
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

int progress_open(struct step *s)
{
    int i = slot_of(NULL);
    if (i == PROGRESS_OPEN_MAX) return err_set(TERN_ERR_INTERN, "more than %d open steps of progress", PROGRESS_OPEN_MAX);
    int rc = open_count ? 0 : start();
    if (rc) return rc;
    step_add(&progress_process, s);
    open_steps[i] = s;
    open_count++;
    set_fd(i, s->fd);
    wires_turns();
    wires_wake_all();
    return 0;
}

void progress_close(struct step *s)
{
    int i = slot_of(s), timer = get_fd(TIMER);
    bool last = open_count == 1;
    if (i == PROGRESS_OPEN_MAX) return;
    step_remove(s);
    open_steps[i] = NULL;
    open_count--;
    set_fd(i, -1);
    if (last) set_fd(TIMER, -1);
    wires_turns();
    wires_wake_all();
    if (!last) return;
    wires_poll_stop();
    close(timer);
}

/* ---- progress ---- */

uint32_t progress_open_ns(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < PROGRESS_OPEN_MAX; i++)
        if (open_steps[i]) sum += open_steps[i]->ops->poll_ns ? open_steps[i]->ops->poll_ns : 1;
    return sum;
}

int progress_look(void)
{
    if (likely(!open_count)) return 0;
    uint64_t now = clock_ns();
    int n = 0;
    for (int i = 0; i < PROGRESS_OPEN_MAX; i++)
        if (open_steps[i]) n += open_steps[i]->ops->poll(open_steps[i]);
    if (!open_count) return n; /* one has closed itself, and was the last */
    uint64_t due = first_due();
    if (due < armed || armed <= now) set_timer(due);
    if (n) wires_wake_others();
    return n;
}

bool progress_timer_idle(void)
{
    uint64_t due = open_count ? first_due() : NEVER;
    if (due != NEVER && due <= clock_ns()) return false;
    if (open_count && due != armed) set_timer(due);
    return true;
}

void progress_hurry(const struct step *s)
{
    if (slot_of(s) < PROGRESS_OPEN_MAX) set_timer(0);
}

int progress_fds(int *to)
{
    int n = 0;
    for (int i = 0; i < PROGRESS_FDS; i++)
        if ((to[n] = get_fd(i)) >= 0) n++;
    return n;
}
