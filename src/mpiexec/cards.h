/*
 * cards.h - gets the cards (by which processes are reached) that ranks of this node want from the nodes of their
 * owners, and gives other nodes the cards of this one. The ranks' part of it is drawn in src/proc/job_block.h.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_CARDS_H
#define TERN_MPIEXEC_CARDS_H

#include "mpiexec/launch.h"

/* In a process that serves a node. If the job has several nodes, makes the pipe of wanted cards, reads it, and takes
 * the messages of other nodes. Called when the block and the event loop are there, before ranks start. 0, or an exit
 * code after saying why. */
int cards_open(struct job *);

/* Undoes that; questions that were not answered are dropped. The pipe is the block's, and stays. */
void cards_close(void);

/* A rank has said, by a question (ASK_LOOK) or by the pipe, that a card is wanted or there: looks at all wanted bits.
 */
void cards_look(void);

/* The card of a rank of this node: `done` is called once, now or when the card is there; without bytes when the rank has
 * ended and wrote none. */
typedef void (*cards_done_fn)(void *arg, const void *card, size_t n);
void cards_fetch(uint32_t rank, cards_done_fn done, void *arg);

/* A rank of this node has ended, and block_end was called: nodes that wait for a card which it never wrote are told. */
void cards_end(int rank);

#endif
