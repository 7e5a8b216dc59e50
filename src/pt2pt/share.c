/*
 * share.c - who may be in a lane: its lock, the helper's way in (drawn in lane.h), and how
 * a lane that one thread used without the lock becomes one that threads share, while that
 * thread, the owner, may be anywhere: outside, in the middle of a call, or asleep in a
 * receive.
 *
 * LANE_THREADED is set in lane.mode; from then on all threads take the lock. Sends on the
 * short way, which takes no lock, find no peers any more. What the owner began before goes
 * on without the lock, and no other thread may begin until it is over. Two things tell that:
 *
 *   inside   counts the sections (lane_enter) that the owner is in; one that waits
 *            notices, and takes the lock from there on (lane_catch_up)
 *   quiet    what is outside of sections - a short send, a reference counted - is a few
 *            hundred instructions without a loop: it is over when the owner has run for
 *            a millisecond since, or sleeps
 *
 * This happens once in a process, and only when a second thread opens a session while
 * the first one said that it is alone (MPI_THREAD_SINGLE or FUNNELED).
 */
#include "base/sleep.h"
#include "pt2pt/lane.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int owner_tid;

void lane_own(struct lane *l, int tid)
{
    l->owner = pthread_self();
    owner_tid = tid;
}

/* ---- the lock, for a lane that is shared ---- */

/* The owner, in a section that it entered before the lane was shared. */
static bool goes_without(const struct lane *l)
{
    return unlikely(atomic_load_explicit(&l->inside, memory_order_relaxed)) && pthread_equal(l->owner, pthread_self());
}

static void count(struct lane *l, int by)
{
    int32_t n = atomic_load_explicit(&l->inside, memory_order_relaxed) + by;
    atomic_store_explicit(&l->inside, n, memory_order_release); /* see lane_out */
}

_Thread_local bool lane_helping;

/* Looks before the owner sleeps: the helper, if it runs, is out after a message or a chunk. */
#define LOOKS 300

static void await_helper(struct lane *l)
{
    uint32_t mode;
    for (int i = 0; i < LOOKS; i++) {
        if (!(atomic_load_explicit(&l->mode, memory_order_acquire) & LANE_HELPER)) return;
        cpu_relax();
    }
    while ((mode = atomic_load_explicit(&l->mode, memory_order_acquire)) & LANE_HELPER) /* pairs with lane_release */
        if (mode & LANE_AWAITED ||
            atomic_compare_exchange_weak_explicit(&l->mode, &mode, mode | LANE_AWAITED, memory_order_relaxed, memory_order_relaxed))
            futex_sleep(&l->mode, mode | LANE_AWAITED, 0);
}

static void take_back(struct lane *l)
{
    /* acquire: pairs with lane_release, also of a helper that is out already */
    if (atomic_fetch_and_explicit(&l->mode, ~(uint32_t)LANE_LENT, memory_order_acquire) & LANE_HELPER) await_helper(l);
    peer_short_open(true);
}

void lane_lend(struct lane *l)
{
    peer_short_open(false);
    /* release: pairs with the acquire in claim_from_owner */
    atomic_fetch_or_explicit(&l->mode, LANE_LENT, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in lane_claim, see helper.h */
}

/* What the helper calls from inside the lane may enter it again: it has it. */
void lane_lock(struct lane *l)
{
    if (lane_helping) return;
    if (lane_threaded(l) && !goes_without(l)) {
        pthread_mutex_lock(&l->lock);
        l->depth++;
        return;
    }
    count(l, 1); /* the helper sees that somebody wants the lane */
    if (lane_mode(l) & LANE_LENT) take_back(l);
}

void lane_unlock(struct lane *l)
{
    if (lane_helping) return;
    if (!lane_threaded(l) || goes_without(l)) {
        count(l, -1);
        return;
    }
    l->depth--;
    pthread_mutex_unlock(&l->lock);
}

bool lane_is_outermost(const struct lane *l)
{
    bool counted = !lane_threaded(l) || goes_without(l);
    return (counted ? atomic_load_explicit(&l->inside, memory_order_relaxed) : l->depth) == 1;
}

bool lane_catch_up(struct lane *l)
{
    if (!goes_without(l)) return false;
    int32_t depth = atomic_load_explicit(&l->inside, memory_order_relaxed);
    count(l, -depth);
    for (int32_t i = 0; i < depth; i++) pthread_mutex_lock(&l->lock); /* once for each lane_leave to come */
    l->depth += depth;
    return true;
}

/* ---- the helper ---- */

static bool claim_from_owner(struct lane *l)
{
    uint32_t mode = LANE_LENT;
    /* acquire: pairs with lane_lend */
    return atomic_compare_exchange_strong_explicit(&l->mode, &mode, LANE_LENT | LANE_HELPER, memory_order_acquire, memory_order_relaxed);
}

static void give_back(struct lane *l)
{
    /* release: pairs with take_back and await_helper */
    uint32_t mode = atomic_fetch_and_explicit(&l->mode, ~(uint32_t)(LANE_HELPER | LANE_AWAITED), memory_order_release);
    if (mode & LANE_AWAITED) futex_wake_all(&l->mode);
}

bool lane_claim(struct lane *l)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with lane_lend */
    if (lane_wanted(l)) return false;
    if (lane_threaded(l) ? pthread_mutex_trylock(&l->lock) : !claim_from_owner(l)) return false;
    lane_helping = true;
    if (!lane_wanted(l)) return true;
    lane_release(l);
    return false;
}

void lane_release(struct lane *l)
{
    lane_helping = false;
    if (lane_threaded(l)) pthread_mutex_unlock(&l->lock);
    else give_back(l);
}

/* ---- quiet ---- */

/* Nanoseconds that a thread has run; -1 if it is no more. */
static int64_t ran(int tid)
{
    struct timespec t;
    clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6); /* the kernel's number of a thread's own clock */
    return clock_gettime(clock, &t) ? -1 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Asleep in the kernel (not merely waiting for a page), or gone. */
static bool sleeps(int tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *state = strrchr(text, ')'); /* "tid (name) S ..." */
    return !state || state[1] != ' ' || state[2] == 'S';
}

static bool is_out(struct lane *l) { return !atomic_load_explicit(&l->inside, memory_order_acquire); }

#define QUIET_NS 1000000

int lane_share(struct lane *l)
{
    int rc = peer_short_prepare();
    if (rc) return rc;
    bool mine = pthread_equal(l->owner, pthread_self());
    atomic_fetch_or_explicit(&l->mode, LANE_THREADED, memory_order_seq_cst);
    handle_set_threaded(true);
    peer_short_open(false);
    int64_t start = mine ? -1 : ran(owner_tid), now = start;
    while (start >= 0 && now >= 0 && !(is_out(l) && (now - start > QUIET_NS || sleeps(owner_tid)))) {
        bell_ring(wires_bell()); /* asleep in a section? then it notices when it gets up */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        now = ran(owner_tid);
    }
    peer_short_open(false); /* the owner may just have taken the lane back */
    request_share();
    return 0;
}
