/*
 * output.h - what the ranks write, passed on in whole lines.
 *
 *     rank's pipe -> struct stream (holds an unfinished line) -> struct sink (bytes on their way out) -> descriptor
 *
 * Lines of different ranks never mix: a line goes out when it is complete. A line that stays unfinished (a prompt, a
 * row of dots) goes out after a delay: a short one when the sink is a terminal or has one writer only, else a long one;
 * if somebody else writes before it is completed, a newline is put between. A sink whose reader is slow holds up the
 * ranks, not the launcher: its streams are not read while it is full.
 *
 * A daemon passes what it reads to the root as it comes (relay.h), which does all this there.
 */
#ifndef TERN_MPIEXEC_OUTPUT_H
#define TERN_MPIEXEC_OUTPUT_H

#include "base/compiler.h"
#include <event2/event.h>

struct job;
struct sink;

struct stream {
    int fd; /* -1 = closed or never opened */
    int rank;
    const char *name; /* "stdout", "stderr" */
    struct event *readable;
    struct sink *to[2]; /* [1] is a copy, or NULL */
    char *line;         /* the unfinished line */
    size_t length, room;
    double since; /* when its last piece came */
    bool paused;  /* not read, for a sink is full */
    struct stream *next; /* of those that belong to no rank */
};

/* Opens the sinks that the options ask for. 0 or an exit code after saying why. */
int output_open(struct job *);

/* Takes what a rank on another host has written. Is a sink of it full? */
void output_take(struct stream *, const char *data, size_t n);
bool output_is_full(const struct stream *);

/* Takes over the read end of a rank's pipe, at start; -1: the rank has none for this stream. */
void output_attach(struct stream *, int fd);

/* A stream of no rank of the job ("stdout" or "stderr"): whole lines that are tagged already. Forwarded from now on, and
 * until it ends or is detached; what is in its pipe then is passed on. */
void output_join(struct stream *, int fd, const char *name);
void output_detach(struct stream *);

/* Begins to forward what the attached streams carry. */
void output_start(struct job *);

/* Passes on what is in the pipes of a rank now, for a rank that has ended. */
void output_drain(struct job *, int rank);

/* Shows unfinished lines, closes the streams. Sinks may still hold bytes: output_pending. */
void output_finish(struct job *);

/* Reads the streams again that were not read for a full sink. */
void output_resume(void);

/* Bytes that wait for a slow reader of the sinks. */
size_t output_pending(void);

/* Was a sink lost (full disk, reader gone)? Then something the ranks wrote is missing. */
bool output_lost(void);

/* Was standard output given up because its reader went away? The ranks that write on get SIGPIPE. */
bool output_broken(void);

/* A daemon: the root's standard output was given up. */
void output_break(void);

#endif
