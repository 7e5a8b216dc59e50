/*
 * sink.h - where output goes: a descriptor with a queue before it, so that the launcher never blocks on a slow reader.
 */
#ifndef TERN_MPIEXEC_SINK_H
#define TERN_MPIEXEC_SINK_H

#include "base/compiler.h"
#include <event2/event.h>

enum sink_kind { SINK_FILE, SINK_PIPE, SINK_TTY };

struct sink {
    int fd;
    enum sink_kind kind;
    const char *name; /* for messages: "standard output", a file's name; NULL = losing it is no news */
    char *queue;
    size_t length, room;
    struct event *writable;
    const void *owner; /* who wrote the unfinished line at its end, NULL = the last byte was a newline */
    bool ending;       /* sink_end was called; fd is -1 when it was closed */
    int lost;          /* errno of the write that failed; nothing is taken any more */
};

/* A sink on `fd`, which the sink owns from now on. */
struct sink *sink_new(struct event_base *, int fd, const char *name);

/* Appends bytes of `owner`; puts a newline first if somebody else's line is unfinished. */
void sink_put(struct sink *, const void *owner, const char *data, size_t n);

/* Writes what the descriptor takes now; the rest when it is ready. */
void sink_flush(struct sink *);

/* Should its writers be held up? */
static inline bool sink_is_full(const struct sink *s) { return s->length > 1 << 20; }

/* Called by sink_flush when a full sink has room again. */
extern void (*sink_has_room)(void);

/* Closes the descriptor when all is written. */
void sink_end(struct sink *);

#endif
