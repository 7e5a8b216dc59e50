/* helper_pace.c - see helper_pace.h. */
#include "pt2pt/helper_pace.h"
#include "base/clock.h"
#include "pt2pt/background.h"
#include "pt2pt/helper_sleep.h"

/* How long the helper goes on looking after it found something, at most: about what it costs to be woken. */
#define LOOK_MAX_NS 20000u

/* It gets up by itself, after twice the time as before as long as that was for nothing, should anything have been missed. */
#define NAP_MIN_NS 50000000u
#define NAP_MAX_NS 1000000000u

/* Naps of a helper that watches: what each costs the thread whose core it is, 5 us, is a tenth of the first and half a percent of the
 * last. */
#define WATCH_MIN_NS 50000u
#define WATCH_MAX_NS 1000000u

static uint64_t look_ns, look_max_ns; /* as in wait.c; 0: there is no core to spare for it */
static uint64_t nap_ns, watch_ns;

void helper_pace_open(bool spare)
{
    look_max_ns = spare ? LOOK_MAX_NS : 0;
    look_ns = look_max_ns;
    nap_ns = NAP_MIN_NS;
    watch_ns = WATCH_MIN_NS;
}

bool helper_looks_on(uint64_t *since)
{
    if (!look_ns) return false;
    uint64_t now = clock_ns();
    if (!*since) *since = now;
    cpu_relax();
    return now - *since < look_ns;
}

/* What a sleep of `slept` ns teaches. */
static void learn(uint64_t slept)
{
    nap_ns = slept < nap_ns ? NAP_MIN_NS : 2 * nap_ns;
    if (nap_ns > NAP_MAX_NS) nap_ns = NAP_MAX_NS;
    if (slept < 2 * look_max_ns) look_ns = 2 * look_ns + 1000;
    else look_ns -= look_ns / 4;
    if (look_ns > look_max_ns) look_ns = look_max_ns;
}

void helper_nap(struct bell *b, uint32_t ticket)
{
    uint64_t since = clock_ns(), most = nap_ns;
    /* callers do not always arm it then, and may take back what it has armed itself */
    if (atomic_load_explicit(&background.standing, memory_order_relaxed) && most > BACKGROUND_HEARD_NS) most = BACKGROUND_HEARD_NS;
    helper_sleep(b, ticket, most);
    learn(clock_ns() - since);
}

bool helper_watch_nap(struct bell *b, uint32_t ticket)
{
    bool longest = watch_ns >= WATCH_MAX_NS;
    helper_sleep(b, ticket, watch_ns);
    if (!longest) watch_ns *= 2;
    return longest;
}

void helper_watch_over(void) { watch_ns = WATCH_MIN_NS; }
