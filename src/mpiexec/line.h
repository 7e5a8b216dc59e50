/*
 * line.h - a connection by a Unix socket that carries questions and answers (src/proc/ask.h): of a rank of this node,
 * or of a launcher to the one that it started for a spawned job. A frame that cannot be is refused in words, and ends
 * the line.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_LINE_H
#define TERN_MPIEXEC_LINE_H

#include "proc/ask.h"
#include <event2/event.h>

struct line;

/* What becomes of a line. line_close may be called in each of them. */
struct line_calls {
    /* The head is in the host's order, the bytes are valid during the call. */
    void (*frame)(struct line *, const struct ask_head *, const void *bytes);
    /* The other side has gone; called once, unless we close the line. The line is closed then. */
    void (*gone)(struct line *);
};

/* On a connected socket, which the line owns from now on. `silent_s`: how long the other side may say nothing until
 * line_trust; 0 = for ever. */
struct line *line_open(struct event_base *, int fd, const struct line_calls *, int silent_s);
void line_trust(struct line *);

/* From here on its calls are these. */
void line_set_calls(struct line *, const struct line_calls *);

/* The line's number, which no other line of this process ever has; never 0. The line of a number; NULL: it is closed. */
uint32_t line_number(const struct line *);
struct line *line_of(uint32_t number);

/* Sends a frame: at once what the socket takes, later the rest. Never waits. */
void line_send(struct line *, const struct ask_head *, const void *bytes);

/* Says why to the other side, as the answer to the question `id`, and closes the line when that is sent. In a call of
 * `frame` only. */
void line_refuse(struct line *, uint32_t id, int status, const char *why);

/* Sends a byte with the descriptor, which stays the caller's: as the only thing that is ever sent on this line, which the
 * caller closes then. False: it could not be sent. */
bool line_hand_out(struct line *, int fd);

void line_close(struct line *);

#endif
