/* stats.c - see stats.h. */
#include "pt2pt/stats.h"
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/wire_lock.h"

#include <stdarg.h>
#include <stdio.h>

static double ms(uint64_t ns) { return (double)ns / 1e6; }

void stats_line(const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "tern: rank %u: %s\n", proc_self()->rank, text);
}

static void say_lane(struct lane *l)
{
    lane_enter(l);
    uint32_t times = l->lock.waits;
    uint64_t ns = l->lock.waited_ns;
    lane_leave(l);
    stats_line("lane %u: sections waited for its lock %u times, %.3f ms in all", l->ids.lane, times, ms(ns));
}

static void say_lanes(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) say_lane(l);
}

/* Until threads share the transports these have no locks. */
static void say_wires(void)
{
    const struct wire *w;
    for (int i = 0; wires_threaded && (w = wires_at(i)); i++) {
        struct wire_waits c = wire_waited(i);
        stats_line("%s: looks found another thread there %llu times; calls waited for it %llu times, %.3f ms in all", w->ops->name,
                   (unsigned long long)c.busy, (unsigned long long)c.waits, ms(c.waited_ns));
    }
}

static void (*const all[])(void) = {say_lanes, say_wires};

void stats_say(void)
{
    if (!var_int(VAR_STATS)) return;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) all[i]();
}
