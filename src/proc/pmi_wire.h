/*
 * pmi_wire.h - questions and answers between a process and a launcher that speaks PMI:
 * text over a stream socket that the launcher left open (PMI_FD), or that it listens at
 * (PMI_PORT). One question is under way at a time.
 *
 *     PMI-1, and the first question of both      cmd=get kvsname=j key=k\n
 *     PMI-2                                      "    18" cmd=kvs-get;key=k;
 *
 * What comes is bounded by PMI_TEXT_MAX and must be printable: anything else, an answer to
 * another question, and the end of the connection are errors in words, after which the
 * connection is closed and every further question fails.
 *
 * Threads: one at a time; the caller sees to that.
 */
#ifndef TERN_PROC_PMI_WIRE_H
#define TERN_PROC_PMI_WIRE_H

#include "base/compiler.h"

#define PMI_TEXT_MAX 8192 /* bytes of a question or an answer, with a final zero */

struct pmi_answer {
    char sep; /* between its fields */
    const char *text; /* valid until the next question */
};

/* Does the environment name a launcher that can be talked to? A PMI_FD that is no open socket (a program that a rank
 * started inherits the variable only) does not. */
bool pmi_wire_here(void);

/* Connects. A launcher that listens says who this process is: rank and size are set, else they stay.
 * TERN_ERR_NOT_FOUND: there is none. */
int pmi_wire_open(uint32_t *rank, uint32_t *size);

void pmi_wire_frames(void); /* from now on it is PMI-2 */
bool pmi_wire_is_open(void);
void pmi_wire_close(void);

/* Sends one question, whose text begins with "cmd=", without its end. */
int pmi_say(const char *fmt, ...) TERN_PRINTF(1, 2);

/* The same, and waits for the answer, which must be `cmd`. */
int pmi_ask(struct pmi_answer *, const char *cmd, const char *fmt, ...) TERN_PRINTF(3, 4);

/* A field of an answer, into `to` (cap bytes with the final zero): false if it has none, or it does not fit. */
bool pmi_field(const struct pmi_answer *, const char *name, char *to, size_t cap);

/* A field that is a number; `otherwise` if there is none, or it is no number. */
int64_t pmi_number(const struct pmi_answer *, const char *name, int64_t otherwise);

/* 0, or an error in words with what the launcher says about it, if the answer's rc is not 0. */
int pmi_good(const struct pmi_answer *, const char *doing);

#endif
