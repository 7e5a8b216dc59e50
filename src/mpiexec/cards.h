/*
 * cards.h - gets the cards (wire-up addresses) that ranks of this node want from the nodes of their owners, and gives
 * them ours. The ranks' part of it is drawn in src/proc/job_block.h.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_CARDS_H
#define TERN_MPIEXEC_CARDS_H

#include "mpiexec/launch.h"

/* In a process that serves a node; if it is one of several, makes the pipe of wanted cards, listens to it, takes the messages of other
 * nodes. To be called when the block and the event loop are there, before ranks start. 0 or an exit code after saying
 * why. */
int cards_open(struct job *);

/* Undoes that; questions that were not answered are dropped. The pipe is the block's, and stays. */
void cards_close(void);

/* A rank says that its card is there, by a question, or by the pipe: looks at all wanted bits. */
void cards_look(void);

/* The card of a rank of this node: `done` is called once, now or when the card is there; without bytes when the rank has
 * ended and wrote none. */
typedef void (*cards_done_fn)(void *arg, const void *card, size_t n);
void cards_fetch(uint32_t rank, cards_done_fn done, void *arg);

/* A rank of this node has ended, and block_end was called: nodes that wait for a card which it never wrote are told. */
void cards_end(int rank);

#endif
