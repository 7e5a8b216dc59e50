/*
 * channel.h - the connection of a process to its launcher (ask.h), opened when there is something to ask.
 *
 * A connection carries one question at a time, so that an answer that takes long holds up no other thread: a thread
 * that finds no idle connection makes another one. Idle connections are kept for the next questions.
 *
 * Functions that can fail return 0 or a code with words. Each may return TERN_ERR_UNSUPPORTED (the process has no
 * launcher, or that has no socket), TERN_ERR_ARG (the question is too long), TERN_ERR_PEER (the launcher has closed the
 * connection), TERN_ERR_SYSTEM (it cannot be reached, or its answer makes no sense) and TERN_ERR_NOMEM.
 *
 * Threads: any, between channel_open and channel_close.
 */
#ifndef TERN_PROC_CHANNEL_H
#define TERN_PROC_CHANNEL_H

#include "proc/ask.h"
#include "proc/job_block.h"

/* Notes where the launcher is. Nothing is opened. */
void channel_open(struct job_head *, uint32_t rank);
void channel_close(void);

struct channel_answer {
    uint8_t *bytes; /* malloc'ed, the caller's to free; NULL: none */
    size_t n;
};

/* Asks, and waits for the answer: at most wait_ms, -1 = without end. 0; TERN_AGAIN when the time is over, and the
 * launcher forgets the question; or a code with words, those of the launcher if it has refused the question. */
int channel_ask(enum ask_type, const struct ask_out *question, int wait_ms, struct channel_answer *);

/* Takes the descriptor that a launcher on this node, of this job or another, keeps for the ticket (ASK_FILE, ASK_TAKE).
 * `*own` is close-on-exec and the caller's to close. Waits at most wait_ms. */
int channel_take(uint64_t socket_id, const uint8_t ticket[ASK_TICKET], int wait_ms, int *own);

/*
 * A question whose answer may come when no thread waits. All such questions share one connection, apart from the
 * others, whose descriptor (channel_post_fd) is readable when an answer has come. The caller tells several questions
 * apart by `id`.
 */
int channel_post(enum ask_type, const struct ask_out *question, uint32_t id);

/* Takes an answer to one of the posted questions. 1: with its id and the launcher's status (0, or a code with words);
 * 0: there is no answer yet; or a code with words: TERN_ERR_NOMEM leaves the answer to the next call. One thread at a time. */
int channel_collect(uint32_t *id, int *status, struct channel_answer *);

/* The posted question with this id needs no answer any more; one may still come. */
int channel_cancel(uint32_t id);

_Atomic uint32_t *channel_events(void); /* job_head.events */
int channel_post_fd(void);              /* -1 before channel_post */

#endif
