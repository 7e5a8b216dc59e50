/* stats.c - see stats.h. */
#include "pt2pt/stats.h"
#include "base/var.h"
#include "copy/budget.h"
#include "copy/count.h"
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

/* "12345 bytes" */
static const char *least(size_t n, char to[32])
{
    if (n == SIZE_MAX) return "none";
    snprintf(to, 32, "%zu bytes", n);
    return to;
}

static void say_engine(const struct copy_record *r)
{
    char cached[32], uncached[32];
    double ends = r->ends ? 1e3 * (double)r->ends : 1;
    stats_line("copy engine %s: issuing a batch takes %.2f us, %.2f at first; least batch %s from a cache, %s from memory", r->engine,
               1e-3 * (double)r->issue_ns[1], 1e-3 * (double)r->issue_ns[0], least(r->worth[COPY_NEAR], cached),
               least(r->worth[COPY_FAR], uncached));
    stats_line("copy engine %s: %llu ends observed, after %.2f us, predicted %.2f us, in the mean; %llu corrections, %llu trials",
               r->engine, (unsigned long long)r->ends, r->observed_ns / ends, r->predicted_ns / ends,
               (unsigned long long)r->corrections, (unsigned long long)r->trials);
}

/* Nothing where there was nothing to choose. */
static void say_copies(void)
{
    struct copy_counts c = copy_counts();
    if (c.copies[COPY_BY_MEMCPY] + c.copies[COPY_BY_NONTEMPORAL] + c.copies[COPY_BY_ENGINE])
        stats_line("copies: %llu by memcpy, %.1f MB; %llu past the caches, %.1f MB; %llu by an engine, %.1f MB",
                   (unsigned long long)c.copies[COPY_BY_MEMCPY], 1e-6 * (double)c.bytes[COPY_BY_MEMCPY],
                   (unsigned long long)c.copies[COPY_BY_NONTEMPORAL], 1e-6 * (double)c.bytes[COPY_BY_NONTEMPORAL],
                   (unsigned long long)c.copies[COPY_BY_ENGINE], 1e-6 * (double)c.bytes[COPY_BY_ENGINE]);
    if (c.last.engine) say_engine(&c.last);
}

static void (*const all[])(void) = {say_lanes, say_wires, say_copies};

void stats_say(void)
{
    if (!var_int(VAR_STATS)) return;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) all[i]();
}
