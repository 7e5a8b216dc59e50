/*
 * channel.h - the connection of a process to its launcher (ask.h), opened when there is something to ask.
 *
 * A connection carries one question at a time, so that an answer that takes long holds nobody up: a thread that finds
 * no idle connection makes another one. Idle connections are kept for the next questions.
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
 * launcher forgets the question; or a code with words, which the launcher may have found. */
int channel_ask(enum ask_type, const struct ask_out *question, int wait_ms, struct channel_answer *);

/* Takes the descriptor that a launcher keeps for this ticket (ASK_FILE): of the own job, or of another one on this node.
 * `*own` is closed by exec. 0, or a code with words. */
int channel_take(uint64_t socket_id, const uint8_t ticket[ASK_TICKET], int wait_ms, int *own);

/*
 * A question whose answer may come when no thread waits: by a connection of its own, which all such questions share,
 * and whose descriptor becomes readable then. A process that asks several at a time tells them apart by `id`.
 */
int channel_post(enum ask_type, const struct ask_out *question, uint32_t id);

/* The answer to one of them, if there is one: 1, with its id and the launcher's status (not 0: a code, set with words);
 * 0: there is none yet; or a code with words. Any thread, one at a time. */
int channel_collect(uint32_t *id, int *status, struct channel_answer *);

/* Needs no answer any more; one may be on its way. */
int channel_cancel(uint32_t id);

_Atomic uint32_t *channel_events(void); /* job_head.events */
int channel_post_fd(void);              /* -1 before channel_post */

#endif
